"""jit.script: what is given runs as Python; what only a compiler of source text has is refused."""

from __future__ import annotations

import pytest
import strata
from strata import nn


@strata.jit.script
def halved(x, n: int):
    for _ in range(n):
        if x.sum() > 1:
            x = x / 2
    return x


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.n = 2

    def forward(self, x):
        for _ in range(self.n):
            x = self.inner(x)
        return x

    @strata.jit.export
    def other(self, x):
        return x * self.n


def test_a_function_runs_with_its_branches():
    assert halved(strata.ones(2), 3).tolist() == [0.5, 0.5] and halved.name == "halved"
    assert halved(strata.zeros(2), 3).tolist() == [0.0, 0.0]
    assert strata.compile(halved)(strata.ones(2), 3).tolist() == [0.5, 0.5]
    assert strata.jit.script(halved) is halved


def test_a_module_shares_what_it_is_made_of():
    m, x = Twice(), strata.ones(1, 2)
    s = strata.jit.script(m)
    assert isinstance(s, Twice) and strata.equal(s(x), m(x)) and s.other(x).tolist() == [[2.0, 2.0]]
    s(x).sum().backward()
    assert m.inner.weight.grad is not None and list(s.state_dict()) == ["inner.weight", "inner.bias"]
    assert repr(s) == (
        "RecursiveScriptModule(\n  original_name=Twice\n  (inner): RecursiveScriptModule(original_name=Linear)\n)"
    )
    assert repr(m).startswith("Twice(") and strata.jit.script(s)(x).shape == (1, 2)
    assert strata.equal(strata.jit.trace(s, x)(x), m(x))


@pytest.mark.parametrize("name", ["graph", "code", "save", "inlined_graph"])
def test_what_a_compiler_of_text_would_have(name):
    for scripted in (halved, strata.jit.script(nn.ReLU())):
        with pytest.raises(NotImplementedError, match=f"{name} is not provided, as source text is not compiled: strata.jit.trace"):
            getattr(scripted, name)


def test_classes_futures_and_others():
    class Point:
        pass

    assert strata.jit.script(Point) is Point
    future = strata.jit.fork(lambda a: a + 1, strata.ones(1))
    assert strata.jit.wait(future).tolist() == [2.0]
    with pytest.raises(TypeError, match="expected a function, a module or a class, got int"):
        strata.jit.script(3)
