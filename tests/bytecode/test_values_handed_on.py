"""Where a captured function does nothing but call a graph, calls hand it the values that the guards have read: no text reads them
again. What they are is still what the program finds at that call."""

from __future__ import annotations

import gc
import weakref

import pytest
import strata


def _direct(f) -> list:
    """Of each entry: whether what it guards is called with what the guards read."""
    return [entry.direct is not None for entry in f._strata_compiled.start.entries]


def test_a_steps_gradients_are_those_of_each_call():
    """New ones, ones that another call left, a parameter's own tensor replaced in the group, and none at all."""
    seen = []
    for wrap in (lambda f: f, lambda f: strata.compile(f, dynamic=False)):
        strata.manual_seed(0)
        params = [strata.nn.Parameter(strata.randn(3)) for _ in range(4)]
        optimizer = strata.optim.SGD(params, lr=0.5)
        step = wrap(optimizer.step)
        for call in range(6):
            for i, p in enumerate(params):
                p.grad = strata.full((3,), float(call + i)) if call != 3 else p.grad
            if call == 2:
                optimizer.param_groups[0]["params"][1] = params[1] = strata.nn.Parameter(strata.ones(3))
                params[1].grad = strata.ones(3)
            if call == 4:
                params[0].grad = None
                optimizer.param_groups[0]["lr"] = 0.25
            if call == 5:
                optimizer.param_groups[0]["params"].reverse()
            assert step() is None
            seen.append([p.tolist() for p in params])
    assert seen[:6] == seen[6:]
    assert any(_direct(step))


def test_parameters_of_a_module_are_those_of_each_call():
    model = strata.nn.Sequential(strata.nn.Linear(4, 3), strata.nn.ReLU(), strata.nn.Linear(3, 2))

    def f(x):
        return model(x)

    compiled, x = strata.compile(f, dynamic=False), strata.randn(5, 4)
    for change in range(4):
        if change == 1:
            model[0].weight = strata.nn.Parameter(strata.randn(3, 4))
        if change == 2:
            model[2] = strata.nn.Linear(3, 2)
        if change == 3:
            model[2].bias = None
        assert compiled(x).equal(f(x))
    assert all(_direct(compiled))


def test_a_value_that_ends_with_its_read_lives_through_the_call():
    """A property makes a tensor anew at each read."""

    class Scaled:
        factor = 2.0

        @property
        def weight(self):
            return strata.full((4,), self.factor)

    holder = Scaled()

    def f(x):
        return x * holder.weight

    compiled, x = strata.compile(f), strata.ones(4)
    for factor in (2.0, 2.0, 3.0):
        holder.factor = factor
        assert compiled(x).equal(f(x))


def test_a_gradient_of_no_leaf_is_read_as_python_reads_it():
    leaf = strata.ones(3, requires_grad=True)
    inner = leaf * 2
    inner.retain_grad()
    inner.sum().backward()

    def f(t):
        return t.grad + 1

    compiled = strata.compile(f)
    for _ in range(2):
        assert compiled(inner).equal(strata.full((3,), 2.0))
    other = leaf * 3
    with pytest.warns(UserWarning, match="not a leaf"), pytest.raises(TypeError):
        compiled(other)


def test_what_the_graph_raises_passes_through():
    table = strata.randn(4, 2)

    def f(i):
        return table.index_select(0, i)

    compiled = strata.compile(f)
    assert compiled(strata.tensor([1, 3])).equal(f(strata.tensor([1, 3])))
    assert all(_direct(compiled))
    for _ in range(2):
        with pytest.raises(IndexError):
            compiled(strata.tensor([1, 9]))
        assert compiled(strata.tensor([0, 2])).equal(f(strata.tensor([0, 2])))


def test_a_call_by_keyword_or_from_python_gives_the_same():
    weight = strata.randn(3)

    def f(x, y):
        return (x * weight + y).sum()

    compiled, x, y = strata.compile(f), strata.randn(3), strata.randn(3)
    wanted = f(x, y)
    for _ in range(2):
        for found in (compiled(x, y), compiled(y=y, x=x), compiled._call(x, y), compiled._call(x, y=y)):
            assert found.equal(wanted)
    assert all(_direct(compiled))


@pytest.mark.parametrize("kept", ["attribute", "group"])
def test_a_step_that_its_optimizer_keeps_goes_with_it(kept):
    """What reads the optimiser's numbers before a call is seen by the collector."""

    def made():
        parameter = strata.nn.Parameter(strata.ones(3))
        parameter.grad = strata.ones(3)
        optimizer = strata.optim.SGD([parameter], lr=0.5)
        optimizer.init_state()
        step = strata.compile(optimizer.step, dynamic=False)
        if kept == "group":
            optimizer.param_groups[0]["kept"] = step
        else:
            optimizer.kept = step
        for _ in range(2):
            step()
        assert all(_direct(step))
        return weakref.ref(optimizer), weakref.ref(step._strata_compiled)

    references = made()
    gc.collect()
    assert [reference() for reference in references] == [None, None]
