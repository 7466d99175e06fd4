"""__torch_function__, __torch_dispatch__, their modes, and pytree."""

from collections import OrderedDict, namedtuple

import pytest
import strata as torch
from strata.overrides import (
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    is_tensor_like,
    resolve_name,
)
from strata.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from strata.utils._pytree import tree_flatten, tree_map, tree_map_only, tree_unflatten

# ---- __torch_function__


class Tagged(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((func, types))
        return super().__torch_function__(func, types, args, kwargs or {})


class Plain(torch.Tensor):
    pass


def tagged(*size):
    Tagged.calls.clear()
    return torch.ones(*size).as_subclass(Tagged)


def test_function_and_method_are_public_objects():
    x = tagged(2)
    y = torch.add(x, 1)
    assert Tagged.calls[0][0] is torch.add and Tagged.calls[0][1] == (Tagged,)
    assert type(y) is Tagged and resolve_name(torch.add) == "strata.add"
    x.add(1)
    assert Tagged.calls[-1][0] is torch.Tensor.add and resolve_name(torch.Tensor.add) == "strata.Tensor.add"


def test_subclasses_without_override_keep_their_class():
    x = torch.ones(2).as_subclass(Plain)
    assert type(x + 1) is Plain and type(torch.ones(2) + x) is Plain and type(x.exp()) is Plain
    with torch._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is torch.Tensor


def test_arguments_in_keywords_and_lists():
    x = tagged(2)
    torch.add(torch.ones(2), other=x)
    assert len(Tagged.calls) == 1
    torch.cat([torch.ones(2), x])
    assert len(Tagged.calls) == 2


def test_arguments_of_plain_tensors_methods():
    asked = []

    class Told(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x, i = torch.arange(4.0), torch.tensor([0, 2]).as_subclass(Told)
    x[i], x.view(2, 2)[0, i[:1] * 0], x[[i]]
    x[0] = torch.tensor(5.0).as_subclass(Told)
    x[i] = 1.0
    torch.result_type(x, i)
    wanted = ["__getitem__", "__getitem__", "mul", "__getitem__", "__getitem__", "__setitem__", "__setitem__", "result_type"]
    assert asked == wanted and x.tolist() == [1, 1, 1, 3]
    asked.clear()
    x[0], x[:2], x[None], x[..., 0], x[torch.tensor([1])], x[(slice(None), None)], x.to(torch.float64)
    assert not asked


def test_subclasses_come_before_their_bases():
    order = []

    class Base(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append(cls)
            return NotImplemented

    class Derived(Base):
        pass

    class Other(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append(cls)
            return "answer"

    make = lambda cls: torch.ones(1).as_subclass(cls)  # noqa: E731
    assert torch.where(make(Base), make(Derived), make(Other)) == "answer"
    assert order == [Derived, Base, Other]
    with pytest.raises(TypeError, match="no implementation found for.*Derived, Base"):
        torch.add(make(Base), make(Derived))


def test_duck_types():
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args, kwargs

    duck = Duck()
    assert torch.exp(duck) == (torch.exp, (duck,), {})
    assert torch.add(torch.ones(1), duck)[0] is torch.add
    assert is_tensor_like(duck) and has_torch_function((1, duck)) and has_torch_function_unary(duck)
    assert not has_torch_function((1, torch.ones(1))) and not has_torch_function_unary(torch.ones(1))
    assert handle_torch_function(print, (duck,), 1, a=2) == (print, (1,), {"a": 2})


def test_errors_in_handlers_pass_through():
    class Fails:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise KeyError("handler")

    with pytest.raises(KeyError, match="handler"):
        torch.exp(Fails())


def test_disabled_implementation():
    class Off(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    x = torch.ones(2).as_subclass(Off)
    assert type(x + 1) is torch.Tensor and not has_torch_function_unary(x)


def test_operators_reach_torch_function_too():
    x = tagged(2)
    assert type(torch.ops.aten.add.Tensor(x, x)) is Tagged
    assert Tagged.calls[0][0] is torch.ops.aten.add.Tensor


class Log(TorchFunctionMode):
    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_function_mode():
    x = torch.ones(2)
    with Log() as log:
        y = torch.exp(x)
        x.add(y)
    torch.exp(x)
    assert log.names == ["exp", "add"]


def test_function_modes_nest():
    x = torch.ones(2)
    with Log() as outer, Log() as inner:
        x.exp()
    assert outer.names == inner.names == ["exp"]

    class Stop(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return "stopped"

    with Log() as outer, Stop():
        assert x.exp() == "stopped"
    assert outer.names == []
    with Log() as log, torch._C.DisableTorchFunction():
        x.exp()
    assert log.names == []


def test_mode_is_restored_after_an_error():
    class Fails(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError

    with Fails():
        for _ in range(2):
            with pytest.raises(KeyError):
                torch.ones(2).exp()
    torch.ones(2).exp()


# ---- __torch_dispatch__


class Wrapped(torch.Tensor):
    """Holds a plain tensor and logs the operators that reach it."""

    log = []
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype, device=inner.device, requires_grad=requires_grad
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.log.append(str(func))
        assert all(issubclass(t, Wrapped) for t in types)
        inner = tree_map_only(Wrapped, lambda t: t.inner, (args, kwargs or {}))
        out = func(*inner[0], **inner[1])
        wrapped = tree_map_only(torch.Tensor, cls, out)
        return return_and_correct_aliasing(func, args, kwargs, wrapped)

    def __repr__(self):
        return f"Wrapped({self.inner})"


@pytest.fixture(autouse=True)
def empty_log():
    Wrapped.log.clear()


def test_wrapper_subclass():
    x = Wrapped(torch.ones(2))
    y = (x + 1) * x
    assert type(y) is Wrapped and y.inner.tolist() == [2.0, 2.0] and y.shape == (2,)
    assert Wrapped.log == ["aten.add.Tensor", "aten.mul.Tensor"] or Wrapped.log == ["aten.add.Scalar", "aten.mul.Tensor"]


def test_wrapper_subclass_under_autograd():
    x = Wrapped(torch.tensor([1.0, 2.0]), requires_grad=True)
    y = (x * x).sum()
    assert type(y) is Wrapped and y.grad_fn is not None and not y.inner.requires_grad
    y.backward()
    assert type(x.grad) is Wrapped and x.grad.inner.tolist() == [2.0, 4.0]
    assert "aten.sum.default" in Wrapped.log


def test_wrapper_subclass_whose_result_is_saved():
    x = Wrapped(torch.tensor([1.0, 2.0]), requires_grad=True)
    x.exp().sum().backward()
    assert torch.allclose(x.grad.inner, torch.tensor([1.0, 2.0]).exp())


def test_wrapper_in_place_and_lists():
    x = Wrapped(torch.ones(2))
    y = x.add_(1)
    assert y is x and x.inner.tolist() == [2.0, 2.0]


def test_handlers_may_decline():
    class Declines(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    x = torch.Tensor._make_subclass(Declines, torch.ones(2))
    with pytest.raises(TypeError, match="no implementation found for aten::exp.*Declines"):
        x.exp()
    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(Plain, (2,))


class Trace(TorchDispatchMode):
    def __init__(self):
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_dispatch_mode():
    x = torch.ones(2, requires_grad=True)
    with Trace() as trace:
        y = (x.exp() * 2).sum()
        torch.zeros(3)
    assert trace.names[0] == "aten.exp.default" and trace.names[-1] == "aten.zeros.default"
    y.backward()
    assert x.grad is not None
    assert len(trace.names) == 4


def test_dispatch_mode_sees_backward():
    x = torch.ones(2, requires_grad=True)
    y = (x * 3.0).sum()
    with Trace() as trace:
        y.backward()
    assert trace.names and x.grad.tolist() == [3.0, 3.0]


def test_dispatch_modes_nest_and_replace():
    class Zeros(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return torch.zeros(2) if func is torch.ops.aten.exp.default else func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Trace() as outer, Zeros():
        assert x.exp().tolist() == [0.0, 0.0]
    assert outer.names == ["aten.zeros.default"]
    assert x.exp().tolist() != [0.0, 0.0]


def test_dispatch_mode_before_subclasses():
    x = Wrapped(torch.ones(2))
    with Trace() as trace:
        x.exp()
    assert trace.names[0] == "aten.exp.default" and Wrapped.log[0] == "aten.exp.default"


def test_dispatch_mode_errors():
    class Wrong(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return "not a tensor"

    x = torch.ones(2)
    with Wrong(), pytest.raises(TypeError, match="aten::exp.*__torch_dispatch__ of Wrong returned str; expected Tensor"):
        x.exp()
    x.exp()


def test_arguments_equal_to_their_default_are_left_out():
    seen = []

    class Args(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((len(args), kwargs))
            return func(*args, **kwargs)

    x = torch.ones(2)
    with Args():
        torch.ops.aten.add.Tensor(x, x)
        torch.ops.aten.add.Tensor(x, x, alpha=2)
    assert seen == [(2, {}), (2, {"alpha": 2})]


# ---- pytree

Point = namedtuple("Point", "x y")


def test_pytree():
    tree = {"a": [1, (2, Point(3, 4))], "b": OrderedDict(c=5), "d": None}
    leaves, spec = tree_flatten(tree)
    assert leaves == [1, 2, 3, 4, 5, None] and tree_unflatten(leaves, spec) == tree
    assert tree_map(lambda a, b: (a, b), [1, 2], [3, 4]) == [(1, 3), (2, 4)]
    assert tree_map_only(int, lambda v: v + 1, {"a": 1, "b": "x"}) == {"a": 2, "b": "x"}
    with pytest.raises(ValueError, match="6 leaves, got 1"):
        tree_unflatten([1], spec)


# ---- parameters of such classes


def test_parameters_keep_their_class():
    class Named(torch.Tensor):
        pass

    for data in (Wrapped(torch.ones(2)), torch.ones(2).as_subclass(Named)):
        p = torch.nn.Parameter(data)
        assert type(p) is type(data) and isinstance(p, torch.nn.Parameter) and p.requires_grad and p.is_leaf
        assert not isinstance(data, torch.nn.Parameter) and not isinstance(p, torch.nn.Buffer)
        model = torch.nn.Module()
        model.weight = p
        assert dict(model.named_parameters()) == {"weight": p}
        assert type(torch.nn.Parameter(p, requires_grad=False)) is type(data)

    class Turned(Wrapped):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return args[0].inner

    with pytest.raises(RuntimeError, match="Turned requires that detach.* but return type Tensor was found"):
        torch.nn.Parameter(Turned(torch.ones(2)))
