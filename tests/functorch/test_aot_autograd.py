"""Graphs of forward and backward for compilers of a program's own."""

import copy

import pytest
import strata
from strata import nn
from strata._dynamo.backends.common import aot_autograd
from strata._functorch.aot_autograd import aot_function, aot_module, make_boxed_func


class Compilers:
    def __init__(self):
        self.forward, self.backward = [], []

    def fw(self, gm, inputs):
        self.forward.append((gm, len(inputs)))
        return make_boxed_func(gm.forward)

    def bw(self, gm, inputs):
        self.backward.append((gm, len(inputs)))
        return gm


def targets(gm):
    return [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]


def test_a_backend_sees_both_graphs():
    strata.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 2))
    like, made, x = copy.deepcopy(net), Compilers(), strata.randn(5, 3)
    compiled = strata.compile(net, backend=aot_autograd(fw_compiler=made.fw, bw_compiler=made.bw))
    for i in range(3):
        results = []
        for f in (like, compiled):
            strata.manual_seed(i)
            results.append(f(x))
            results[-1].sum().backward()
        assert strata.equal(*results)
    assert all(strata.equal(p.grad, q.grad) for p, q in zip(net.parameters(), like.parameters(), strict=True))
    assert all(strata.equal(p, q) for p, q in zip(net.buffers(), like.buffers(), strict=True))
    with strata.no_grad():
        assert strata.equal(compiled.eval()(x), like.eval()(x))
    assert len(made.forward) == 2 and len(made.backward) == 1
    forward, backward = targets(made.forward[0][0]), targets(made.backward[0][0])
    assert sum("addmm" in t for t in forward) == 2 and any("native_batch_norm_backward" in t for t in backward)
    assert not any("grad" in t or "backward" in t for t in forward) and not any("addmm" in t for t in backward)


def test_functions_of_nests():
    made = Compilers()

    def f(a, b, d):
        return {"y": a.cos().cos() * d["k"], "z": (b * 2, 3)}

    g = aot_function(f, fw_compiler=made.fw, bw_compiler=made.bw)
    a, b = strata.randn(2, requires_grad=True), strata.randn(2)
    for _ in range(2):
        a.grad = None
        found, want = g(a, b, {"k": 2}), f(a, b, {"k": 2})
        assert strata.equal(found["y"], want["y"]) and strata.equal(found["z"][0], want["z"][0]) and found["z"][1] == 3
        found["y"].sum().backward()
        assert strata.equal(a.grad, strata.autograd.grad(want["y"].sum(), a)[0])
    assert not found["z"][0].requires_grad and len(made.forward) == len(made.backward) == 1


def test_modules_and_what_is_not_provided():
    made, net = Compilers(), nn.Linear(3, 3)
    aot_module(net, made.fw)(strata.ones(2, 3)).sum().backward()
    assert strata.equal(net.weight.grad, strata.full((3, 3), 2.0)) and made.forward[0][1] == 3
    with pytest.raises(NotImplementedError, match="decompositions is not provided"):
        aot_function(lambda x: x, made.fw, decompositions={1: 2})
    with pytest.raises(NotImplementedError, match="dynamic=True is not provided"):
        aot_function(lambda x: x, made.fw, dynamic=True)
    with pytest.raises(TypeError, match="a compiler must return a function"):
        aot_function(lambda x: x, lambda gm, inputs: None)(strata.ones(2))
