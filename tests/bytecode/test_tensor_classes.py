"""Classes with a __torch_function__ of their own in captured functions: asked as in eager, captured where they are plain Python."""

import pytest
import strata
from both import same
from strata import nn


def t(*sizes):
    return strata.arange(4.0) if not sizes else strata.arange(float(strata.Size(sizes).numel())).reshape(sizes)


class Logging(strata.Tensor):
    """Notes what is called."""

    log = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.log.append((func.__name__, len(args), sorted(kwargs or {}), [k.__name__ for k in types]))
        return super().__torch_function__(func, types, args, kwargs)


class Plain(strata.Tensor):
    scale = 2.0

    def twice(self):
        return self * self.scale

    @property
    def half(self):
        return self / 2

    @staticmethod
    def of(x):
        return x.as_subclass(Plain)

    @classmethod
    def named(cls, x):
        return cls.__name__, x.as_subclass(cls)


class Boxes(strata.Tensor):
    """Made with a format, which results carry on."""

    @staticmethod
    def __new__(cls, data, form="xyxy"):
        made = strata.as_tensor(data, dtype=strata.float32).as_subclass(cls)
        made.form = form
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with strata._C.DisableTorchFunctionSubclass():
            found = func(*args, **(kwargs or {}))
        if isinstance(found, strata.Tensor) and func.__name__ in ("mul", "add", "clamp"):
            found = found.as_subclass(cls)
            found.form = next(a.form for a in args if isinstance(a, cls))
        return found


HANDLED = {}


class Wrapped:
    """No tensor, and asked as one."""

    def __init__(self, inner, note):
        self.inner, self.note = inner, note

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in HANDLED:
            return HANDLED[func](*args, **(kwargs or {}))
        inner = [a.inner if isinstance(a, cls) else a for a in args]
        return cls(func(*inner, **(kwargs or {})), next(a.note for a in args if isinstance(a, cls)))


HANDLED[strata.mean] = lambda w: strata.mean(w.inner) * 10
HANDLED[nn.functional.relu] = lambda w, inplace=False: "relu"


def whole(*calls):
    """Each (function, maker of arguments) is one graph, and does what it does as it is."""

    def scenario(n):
        Logging.log.clear()
        for f, make in calls:
            compiled = n.compile(f)
            for _ in range(2):
                n.call(compiled, *make())
        n.say(list(Logging.log))

    assert not same(scenario)


def test_what_is_asked_and_given():
    def operators(x):
        return (x * 2 + 1).relu().sum(dim=0), -x, 3 - x, x[1:], x @ x.T

    def composites(x):
        return nn.functional.softmax(x, -1), nn.functional.linear(x, x), strata.cat([x, x]), strata.stack([x.exp(), strata.ones(2, 2)])

    def attributes(x):
        return x.shape, x.T, x.dtype, x.requires_grad, x.dim(), x.size(0), len(x), x.mT

    def several(x):
        a, b = x.unbind()
        values, places = x.sort(dim=1)
        return a, b, values, places, x.max(dim=0).values

    def in_place(x):
        y = x.clone()
        y += 1
        y[0] = 3
        y.mul_(2)
        return y, list(y)

    def make():
        return (t(2, 2).as_subclass(Logging),)

    whole(*((f, make) for f in (operators, composites, attributes, several, in_place)))


def test_methods_properties_and_class_attributes():
    def f(x):
        return x.twice(), x.half, Plain.of(x.twice()), x.named(x), x.scale, type(x.exp()) is Plain, isinstance(x, strata.Tensor)

    def plain(x):
        return x.as_subclass(strata.Tensor) + 1, strata.Tensor.exp(x)

    whole((f, lambda: (t().as_subclass(Plain),)), (plain, lambda: (t().as_subclass(Plain),)))


def test_attributes_of_instances():
    def carried(b):
        c = b * 2
        return c, c.form, (c + 1).clamp(0, 5).form, b.sum()

    def made(x):
        b = Boxes(x + 1, form="cxcywh")
        return b, b.form, (b * 2).form

    def noted(x):
        y = x * 2
        y.note, y.other = "twice", [x.sum(), 3]
        return y, y.note, y.other

    whole((carried, lambda: (Boxes(t(1, 4), "other"),)), (made, lambda: (t(1, 4),)), (noted, lambda: (t(),)))


def test_what_is_no_tensor():
    w = Wrapped(t(2, 2), "outside")

    def f(w, x):
        y = strata.add(w, x)
        return y.inner, y.note, strata.mean(w), nn.functional.relu(w), strata.matmul(x, w).inner

    whole((f, lambda: (Wrapped(t(2, 2), "argument"), t(2, 2))), (lambda x: strata.mul(w, x).inner, lambda: (t(2, 2),)))


def test_two_classes():
    class First(Logging):
        pass

    class Declines(strata.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    def f(a, b):
        return a + b, b + a, strata.cat([a, b])

    def scenario(n):
        Logging.log.clear()
        compiled = n.compile(f)
        n.call(compiled, t().as_subclass(Logging), t().as_subclass(First))
        n.call(compiled, t().as_subclass(Logging), t())
        n.call(compiled, t().as_subclass(Declines), t())
        n.say(list(Logging.log))

    assert all("no class takes add" in reason for reason in same(scenario))


def test_gradients():
    w = t().requires_grad_()

    def f(x):
        return ((x * w).exp() * x).sum()

    x = (t() / 10).as_subclass(Logging)
    compiled = strata.compile(f, fullgraph=True)
    found, want = (strata.autograd.grad(g(x.detach().requires_grad_()), w)[0] for g in (compiled, f))
    assert strata.equal(found.as_subclass(strata.Tensor), want.as_subclass(strata.Tensor))


def test_what_changes_is_seen(monkeypatch):
    class Changes(strata.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs)

    def other(cls, func, types, args=(), kwargs=None):
        return "other"

    def f(x):
        return x * 2

    def scenario(n):
        compiled = n.compile(f)
        x = t().as_subclass(Changes)
        n.call(compiled, x)
        with strata._C.DisableTorchFunctionSubclass():
            n.call(compiled, x)
        with monkeypatch.context() as patch:
            patch.setattr(Changes, "__torch_function__", classmethod(other))
            n.call(compiled, x)
        n.call(compiled, x)
        n.call(compiled, t().as_subclass(Plain))
        n.call(compiled, t())
        with monkeypatch.context() as patch:
            patch.setattr(Plain, "scale", 5.0)
            n.call(n.compile(lambda x: x.twice()), t().as_subclass(Plain))

    assert not same(scenario)


def test_sizes_are_captured_one_by_one():
    def f(x):
        return x.twice() + x.shape[0]

    def scenario(n):
        compiled = n.compile(f)
        for size in (3, 4, 5):
            n.call(compiled, t(size).as_subclass(Plain))

    assert not same(scenario)


class Arithmetic(strata.Tensor):
    def __add__(self, other):
        return "added"

    def __getattr__(self, name):
        return f"no {name}"


def test_operators_in_python_and_attributes_that_are_not_there():
    def scenario(n):
        for f in (lambda x: x + 1, lambda x: x.nothing, lambda x: (x * 2).nothing):
            n.call(n.compile(f), t().as_subclass(Arithmetic))

    same(scenario)


def test_a_capture_asks_nobody():
    """Also where it breaks."""

    def f(x):
        y = x * 2
        print("between")
        return y.sum()

    def raises(x):
        return x.exp() @ strata.ones(3, 3)

    def scenario(n):
        Logging.log.clear()
        for g in (f, raises):
            compiled = n.compile(g)
            for _ in range(2):
                n.call(compiled, t().as_subclass(Logging))
        n.say(list(Logging.log))

    assert same(scenario)
    assert strata._C._is_torch_function_enabled() and not strata._C._torch_function_modes()


def test_classes_with_torch_dispatch_run_as_they_are():
    class Dispatch(strata.Tensor):
        __torch_function__ = strata._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls, inner):
            made = strata.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*(a.inner if isinstance(a, cls) else a for a in args), **(kwargs or {}))

    compiled = strata.compile(lambda x: x * 2 + 1)
    assert compiled(Dispatch(t())).tolist() == [1.0, 3.0, 5.0, 7.0]
    with pytest.raises(RuntimeError, match="a tensor of the class Dispatch"):
        strata.compile(lambda x: x * 2, fullgraph=True)(Dispatch(t()))


def test_parameters_of_such_classes_in_modules_of_the_library():
    def scenario(n):
        Logging.log.clear()
        strata.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        model[0].weight = nn.Parameter(model[0].weight.detach().as_subclass(Logging))
        compiled = n.compile(lambda x: model(x) * 2)
        n.call(compiled, t())
        n.call(n.compile(lambda x: compiled(x).sum().backward()), t())
        n.say(model[0].weight.grad.tolist(), list(Logging.log))
        optimizer = strata.optim.SGD(model.parameters(), lr=0.1)
        step = n.compile(lambda: optimizer.step())
        n.call(step)
        n.call(step)
        n.say(model[0].weight.tolist())

    reasons = same(scenario)
    assert any("a backward of" in r for r in reasons) and any("SGD.step of a Logging" in r for r in reasons)
