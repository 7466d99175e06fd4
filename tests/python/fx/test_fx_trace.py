"""Tracing: what a stand-in cannot know is refused with the user's line; wrapped functions, classes and tensors are recorded."""

import math
import threading

import pytest
import strata
from strata import _patching, fx, nn
from strata.fx import wrap

wrap("len")
wrap("helper")


@wrap
def decorated(x, n):
    return x * n


def helper(x):
    return x + 1


class Box(metaclass=fx.ProxyableClassMeta):
    def __init__(self, left, right=None):
        self.left, self.right = left, right


def branch(x):
    if x.sum() > 0:
        return x
    return -x


def loop(x):
    return [v for v in x]


def while_loop(x):
    while x < 3:
        x = x + 1
    return x


def whole(x):
    return strata.zeros(3) * int(x)


def index(x):
    return [1, 2, 3][x]


def fraction(x):
    return float(x.mean())


def length(x):
    return x.__len__()


def unpacked(x):
    return strata.add(*x)


def contained(x):
    return 3 in x


REFUSED = {
    branch: (2, "cannot be used as inputs to control flow"),
    loop: (1, "cannot be iterated"),
    while_loop: (1, "cannot be used as inputs to control flow"),
    whole: (1, r"int\(\) of a symbolically traced variable"),
    index: (1, r"int\(\) of a symbolically traced variable"),
    fraction: (1, r"float\(\) of a symbolically traced variable"),
    length: (1, "'len' is not supported"),
    unpacked: (1, "cannot be iterated"),
    contained: (1, "cannot be iterated"),
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_what_needs_a_value_names_the_line(function):
    line, text = REFUSED[function]
    line = function.__code__.co_firstlineno + (1 if function is branch else line)
    with pytest.raises(fx.TraceError, match=text) as error:
        fx.symbolic_trace(function)
    assert f'File "{__file__}", line {line}, in ' in str(error.value)
    assert any(way in str(error.value) for way in ("strata.fx.wrap", "concrete_args"))
    assert not hasattr(nn.Module.__call__, "__wrapped__") and not _patching._installed  # what tracing patches is as before


def test_len_raises_pytorchs_class_as_well():
    with pytest.raises(RuntimeError):
        fx.symbolic_trace(length)


def test_several_values_unpack():
    def f(x):
        a, (b, c) = x
        return a + b - c

    gm = fx.symbolic_trace(f)
    assert gm((1, (2, 5))) == -2


def test_asserts_become_nodes_where_that_is_asked_for():
    names = {}  # as pytest rewrites the asserts of this file
    exec("def f(x):\n  assert x.sum() > 0\n  assert x.dim() == 2, 'message'\n  return x", names)
    f = names["f"]

    class Checked(fx.Tracer):
        trace_asserts = True

    with pytest.raises(fx.TraceError):
        fx.symbolic_trace(f)
    graph = Checked().trace(f)
    assert [n.target.__name__ for n in graph.nodes if n.op == "call_function"].count("assert_fn") == 2
    gm = fx.GraphModule({}, graph)
    gm.recompile()
    with pytest.raises(AssertionError):
        gm(-strata.ones(2, 2))


def test_wrapped_functions_are_calls():
    def f(x):
        return decorated(helper(x), len(x)) / math.sqrt(x.shape[0]) + math.pi

    gm = fx.symbolic_trace(f)
    assert [n.name for n in gm.graph.nodes] == "x helper len_1 decorated getattr_1 getitem sqrt truediv add output".split()
    x = strata.randn(4)
    assert strata.equal(gm(x), f(x)) and strata.equal(fx.symbolic_trace(gm)(x), f(x))
    assert helper(1) == 2 and len("ab") == 2


def test_wrap_is_for_modules():
    with pytest.raises(NotImplementedError, match="top level"):
        wrap("len")
    with pytest.raises(RuntimeError, match="Unsupported type"):
        wrap(3)


def test_objects_of_proxies_are_nodes():
    def f(x, y):
        return Box(x, right=y).left

    gm = fx.symbolic_trace(f)
    assert gm.graph.find_nodes(op="call_function", target=Box) and gm(3, 4) == 3
    assert Box(1).left == 1


def test_tensors_take_stand_ins_as_indices():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", strata.arange(12.0).view(6, 2))

        def forward(self, x, i):
            return x + self.table[: x.shape[0]] + self.table[i] * self.table[i > 2].sum()

    m = Table()
    x, i = strata.ones(6, 2), strata.tensor([1, 5, 3, 0, 2, 2])
    gm = fx.symbolic_trace(m)
    assert strata.equal(gm(x, i), m(x, i))
    assert not hasattr(strata.Tensor.__getitem__, "__fx_recorded__")


def test_branches_may_be_chosen():
    class Left(fx.Tracer):
        def to_bool(self, obj):
            return True

        def iter(self, obj):
            return iter([obj[0], obj[1]])

    assert "neg" not in str(Left().trace(branch)) and str(Left().trace(loop)).count("operator.getitem") == 2


def test_what_is_no_function_is_refused():
    with pytest.raises(AssertionError, match="a module or a Python function, got builtin_function_or_method"):
        fx.symbolic_trace(strata.relu)
    with pytest.raises(NotImplementedError, match="argument of type: <class 'object'>"):
        fx.symbolic_trace(lambda x: x + object())
    other = nn.Linear(2, 2)
    with pytest.raises(NameError, match="not a member"):
        fx.symbolic_trace(lambda x: x @ other.weight)
    with pytest.raises(NameError, match="not installed as a submodule"):
        fx.symbolic_trace(lambda x: other(x))


def test_modules_that_share_a_layer():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3)
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x)) + self.a.weight

    m = Shared()
    x = strata.randn(3, 3)
    assert strata.equal(fx.symbolic_trace(m)(x), m(x))


def test_line_numbers_where_they_are_asked_for():
    class Lines(fx.Tracer):
        record_stack_traces = True

    class Net(nn.Module):
        def forward(self, x):
            y = x.sin()
            return y + 1

    net = Net()
    gm = fx.GraphModule(net, Lines().trace(net))
    line = Net.forward.__code__.co_firstlineno
    assert f"# File: {__file__}:{line + 1} in forward, code: y = x.sin()" in gm.print_readable(print_output=False)
    assert f"# File: {__file__}:{line + 2} in forward, code: return y + 1" in gm.print_readable(print_output=False)


def test_an_error_in_generated_code_shows_its_line(capfd):
    gm = fx.symbolic_trace(lambda x: strata.relu(x.nothing))
    with pytest.raises(AttributeError, match="nothing"):
        gm(strata.ones(1))
    err = capfd.readouterr().err
    assert "line 5 of the traced Module's generated forward function" in err and "<--- HERE" in err and "x.nothing" in err


def test_another_thread_sees_tensors_as_they_are():
    """While one thread traces, modules of others work."""
    layer, x, seen = nn.Linear(2, 2), strata.ones(1, 2), []

    def f(a):
        thread = threading.Thread(target=lambda: seen.append(layer(x)[0]))
        thread.start()
        thread.join()
        return a + 1

    fx.symbolic_trace(f)
    assert strata.equal(seen[0], layer(x)[0])


def test_threads_trace_at_once():
    net, x, failed = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), strata.randn(2, 3), []
    start = threading.Barrier(8)

    def work():
        try:
            start.wait()
            for _ in range(10):
                gm = fx.symbolic_trace(lambda x: helper(x) * len(x))
                assert strata.equal(gm(x), (x + 1) * 2) and len(gm.graph.nodes) == 5
                assert strata.equal(fx.symbolic_trace(net)(x), net(x))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and not _patching._installed


def test_a_trace_in_a_trace():
    def f(x):
        inner = fx.symbolic_trace(lambda y: helper(y) + 1)
        assert len(inner.graph.nodes) == 4
        return inner.forward(x)

    gm = fx.symbolic_trace(f)
    assert gm(3) == 5 and [n.name for n in gm.graph.nodes] == ["x", "add", "add_1", "output"]
