"""Captured graphs as modules of fx, and such modules captured again: the same bits."""

import pytest
import strata
from strata import fx, nn
from strata.fx._from_graph import graph_module


def sin_and_cos(x):
    a = strata.sin(x) ** 2
    b = strata.cos(x) ** 2
    return a + b


def same(a, b):
    return a.dtype == b.dtype and strata.equal(a, b)


def test_a_line_for_each_operator():
    gm = graph_module(strata.graph(sin_and_cos, strata.randn(1, 1000, requires_grad=True)))
    line = sin_and_cos.__code__.co_firstlineno
    assert gm.print_readable(print_output=False) == f'''class GraphModule(strata.nn.Module):
    def forward(self, x: "f32[1, 1000]"):
        # File: {__file__}:{line + 1} in sin_and_cos, code: a = strata.sin(x) ** 2
        sin: "f32[1, 1000]" = strata.ops.aten.sin.default(x)
        pow_1: "f32[1, 1000]" = strata.ops.aten.pow.Tensor_Scalar(sin, 2);  sin = None

        # File: {__file__}:{line + 2} in sin_and_cos, code: b = strata.cos(x) ** 2
        cos: "f32[1, 1000]" = strata.ops.aten.cos.default(x);  x = None
        pow_2: "f32[1, 1000]" = strata.ops.aten.pow.Tensor_Scalar(cos, 2);  cos = None

        # File: {__file__}:{line + 3} in sin_and_cos, code: return a + b
        add: "f32[1, 1000]" = strata.ops.aten.add.Tensor(pow_1, pow_2);  pow_1 = pow_2 = None
        return (add,)
'''


def test_the_printed_class_runs():
    gm = graph_module(strata.graph(sin_and_cos, strata.randn(1, 1000)))
    names = {"strata": strata}
    exec(gm.print_readable(print_output=False), names)
    x = strata.randn(1, 1000)
    (y,) = names["GraphModule"]()(x)
    assert same(y, sin_and_cos(x))


def test_inputs_and_results_have_the_functions_form():
    model = nn.Sequential(nn.Linear(10, 3), nn.ReLU(), nn.BatchNorm1d(3)).eval()

    def f(x, d, k=3):
        c = x * d["a"] + k
        return {"r": model(c), "s": [c, x, 5, None], "m": c.max(1), "d": c[:, ::2].softmax(-1, dtype=strata.float64)}

    x, y = strata.randn(4, 10), strata.randn(4, 10)
    gm = fx.from_graph(strata.graph(f, x, {"a": y}))
    gm.graph.lint()
    assert [n.target for n in gm.graph.find_nodes(op="placeholder")] == ["x", "d_a_"]
    assert {n.target for n in gm.graph.find_nodes(op="get_attr")} >= {"model.0.weight", "model.2.running_mean"}
    x, y = strata.randn(4, 10), strata.randn(4, 10)
    got, expected = gm(x, y), f(x, {"a": y})
    assert got["s"][1] is x and got["s"][2:] == [5, None] and isinstance(got["m"], tuple)
    for key in ("r", "d"):
        assert same(got[key], expected[key])
    assert all(map(same, got["m"], expected["m"]))


def test_writes_and_random_numbers_stay():
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    x = strata.randn(8, 6)
    gm = graph_module(strata.graph(model, x))
    before = {k: v.clone() for k, v in model.state_dict().items()}
    strata.manual_seed(3)
    expected, after = model(x), {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(before)
    strata.manual_seed(3)
    assert same(gm(x)[0], expected)
    assert all(same(v, after[k]) for k, v in model.state_dict().items()) and not same(after["1.running_mean"], before["1.running_mean"])


def test_a_graph_module_is_captured_like_any_other():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

        def forward(self, x):
            return strata.relu(self.norm(self.conv(x))).flatten(1).sum(1)

    net = Net().eval()
    x = strata.randn(2, 3, 8, 8)
    traced = fx.symbolic_trace(net)
    captured = strata.graph(traced, x)
    again = fx.from_graph(captured)
    for f in (traced, captured, captured.compile(), again, strata.graph(again, x), strata.graph(again, x).compile()):
        assert same(f(x), net(x))


def test_gradients_flow_through_the_operators():
    x = strata.randn(1, 50, requires_grad=True)
    gm = graph_module(strata.graph(sin_and_cos, x))
    (got,) = strata.autograd.grad(gm(x)[0].sum(), x)
    (expected,) = strata.autograd.grad(sin_and_cos(x).sum(), x)
    assert same(got, expected) and not got.any()


def test_names_that_modules_use_are_avoided():
    graph = code = strata.randn(3)

    def f(forward, meta):
        return forward + graph, meta * code

    gm = graph_module(strata.graph(f, strata.ones(3), strata.ones(3)))
    assert same(gm(strata.ones(3), strata.ones(3))[0], graph + 1)


def test_what_fx_cannot_hold_is_refused():
    p = nn.Parameter(strata.ones(2))

    def step(x):
        p.grad = None
        (p * x).sum().backward()

    with pytest.raises(NotImplementedError, match="leaves gradients in .grad"):
        fx.from_graph(strata.graph(step, strata.ones(2)))


def test_printed_values_say_strides_and_device():
    gm = graph_module(strata.graph(lambda x: x.t().sin(), strata.randn(2, 3)))
    text = gm.print_readable(print_output=False, include_stride=True, include_device=True)
    assert 'x: "f32[2, 3][3, 1]cpu"' in text and 't: "f32[3, 2][1, 3]cpu"' in text
    node = gm.graph.find_nodes(op="call_function", target=strata.ops.aten.t.default)[0]
    assert node.format_node(include_tensor_metadata=True).startswith('%t : Tensor "f32[3, 2][1, 3]cpu"[num_users=1] = call_function')
