"""g.run with feed and fetch: parts of a graph, values in the place of others, and what must run all the same."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import strata

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from fuzz_graphs import ERRORS, Maker, copy, raw  # noqa: E402

SEED = int(os.environ.get("STRATA_TEST_SEED", "1"))
COUNT = 200 if os.environ.get("STRATA_TEST_ALL") else 25
F = strata.nn.functional


def same(a, b) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and strata.equal(a, b)


def named(g, op, which=0):
    return [n for n in g.nodes if n.op == op][which]


def chain(x, y):
    a = x.sin()
    b = a * y
    return b.exp() + a


def test_static_half_of_the_first_snippet():
    a, b = strata.ones(5), strata.ones(5)
    g = strata.graph(lambda a, b: a + b, a, b)
    assert g.run(a, b).tolist() == g(a, b).tolist() == [2.0] * 5
    (c,) = g.run(a, b, fetch=[named(g, "aten::add.Tensor")])
    assert c.tolist() == [2.0] * 5
    assert g.run(feed={"a": a, "b": a * 2}).tolist() == [3.0] * 5


def test_fetch_gives_values_of_nodes():
    x, y = strata.randn(4), strata.randn(4)
    g = strata.graph(chain, x, y)
    sin, mul, exp = named(g, "aten::sin"), named(g, "aten::mul.Tensor"), named(g, "aten::exp")
    got = g.run(x, y, fetch=[exp, sin.name, mul, "x"])
    assert type(got) is list and same(got[0], (x.sin() * y).exp()) and same(got[1], x.sin()) and same(got[2], x.sin() * y) and got[3] is x
    assert same(g.run(x, y, fetch=sin), x.sin()), "one value is given as it is"
    assert type(g.run(x, y, fetch=(sin, sin))) is tuple
    assert g.run(x, y, fetch=[]) == []


def test_only_what_is_needed_must_be_there():
    x, y = strata.randn(4), strata.randn(4)
    g = strata.graph(chain, x, y)
    sin, mul = named(g, "aten::sin"), named(g, "aten::mul.Tensor")
    assert same(g.run(feed={"x": x}, fetch=sin), x.sin())
    assert same(g.run(feed={sin: y, "y": x}, fetch=mul), y * x)
    with pytest.raises(ValueError, match=r"%1 \('y'\) is needed and was not given; feed it"):
        g.run(feed={"x": x}, fetch=mul)
    with pytest.raises(ValueError, match="is needed and was not given"):
        g.run(feed={"x": x})


def test_feed_takes_the_place_of_a_value():
    x, y, z = strata.randn(4), strata.randn(4), strata.randn(4)
    g = strata.graph(chain, x, y)
    sin, mul = named(g, "aten::sin"), named(g, "aten::mul.Tensor")
    assert same(g.run(x, y, feed={sin: z}), (z * y).exp() + z)
    assert same(g.run(x, y, feed={mul.name: z}), z.exp() + x.sin())
    assert same(g.run(x, y, feed={sin: z, mul: y}, fetch=named(g, "aten::add.Tensor")), y.exp() + z)
    assert same(g.run(x, y, feed={sin: z}, fetch=sin), z)
    t = strata.randn(4, 3).t()
    h = strata.graph(lambda x: (x + 1).view(12) * 2, strata.randn(3, 4))
    assert same(h.run(strata.randn(3, 4), feed={named(h, "aten::add.Scalar"): t}), t.contiguous().view(12) * 2), "laid out as captured"


def test_writes_of_what_is_needed_are_run():
    def f(x, w):
        a = x * 2
        b = a + 1
        a.mul_(w)
        c = a[1:] - 1
        a.zero_()
        return b, c, a

    x, w = strata.randn(4), strata.randn(4)
    g = strata.graph(f, x, w)
    a, b, c = named(g, "aten::mul.Scalar"), named(g, "aten::add.Scalar"), named(g, "aten::sub.Scalar")
    assert same(g.run(x, w, fetch=c), (x * 2 * w)[1:] - 1)
    assert same(g.run(feed={"x": x}, fetch=b), x * 2 + 1), "the write that comes later needs w"
    got = g.run(x, w, fetch=[a, c])
    assert same(got[0], x * 2), "as it was when its node had run"
    z = strata.randn(4)
    kept = z.clone()
    assert same(g.run(x, w, feed={a: z}, fetch=c), (z * w)[1:] - 1) and same(z, kept), "fed tensors are not written"
    got = g.run(x, w, feed={a: z})
    assert same(got[0], z + 1) and same(got[1], (z * w)[1:] - 1) and got[2].tolist() == [0] * 4 and same(z, kept)


def test_what_is_not_needed_is_not_run():
    table, index = strata.randn(3, 2), strata.tensor([0, 5])

    def f(table, index):
        return table.sum(), F.embedding(index, table)

    g = strata.graph(f, table, strata.tensor([0, 1]))
    assert same(g.run(table, index, fetch=named(g, "aten::sum")), table.sum())
    with pytest.raises(IndexError):
        g.run(table, index)
    model = strata.nn.BatchNorm1d(3)
    x = strata.randn(4, 3)
    h = strata.graph(lambda x: model(x * 2), x)
    before = model.running_mean.clone()
    h.run(x, fetch=named(h, "aten::mul.Scalar"))
    assert same(model.running_mean, before)
    h.run(x, feed={named(h, "aten::mul.Scalar"): x})
    assert not same(model.running_mean, before), "without fetch, effects are the function's"


def test_random_numbers_are_those_of_a_whole_run():
    def f(x):
        a = F.dropout(x, 0.5)
        b = strata.rand_like(x)
        return a + 1, b * 2

    x = strata.randn(50)
    g = strata.graph(f, x)
    strata.manual_seed(3)
    a, b = g.run(x)
    strata.manual_seed(3)
    assert same(g.run(x, fetch=named(g, "aten::mul.Scalar", -1)), b)
    strata.manual_seed(3)
    assert same(g.run(x, fetch=named(g, "aten::add.Scalar", -1)), a)


def test_gradients_can_be_fetched():
    x = strata.randn(4, requires_grad=True)
    g = strata.graph(lambda x: x.sin() * 3, x)
    last = g.nodes[-1]
    slope = g.run(x, feed={"gradient of result 0": strata.ones(4)}, fetch=last)
    assert same(slope, x.detach().cos() * 3)
    with pytest.raises(ValueError, match="'gradient of result 0'.* is needed and was not given"):
        g.run(x, fetch=last)


def test_parts_of_a_training_step():
    model = strata.nn.Linear(3, 2)
    optimiser = strata.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimiser.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimiser.step()
        return loss

    x = strata.randn(4, 3)
    g = strata.graph(step, x)
    before = [p.detach().clone() for p in model.parameters()]
    loss = g.run(x, fetch=named(g, "aten::sum"))
    assert same(loss, model(x).square().sum().detach())
    assert all(same(p.detach(), b) for p, b in zip(model.parameters(), before, strict=True)), "nothing was learned"
    w = strata.zeros(2, 3)
    assert same(g.run(x, feed={"model.weight": w}, fetch=named(g, "aten::addmm")), model.bias.detach().expand(4, 2))


def test_names_that_are_none():
    x, y = strata.randn(4), strata.randn(4)
    g = strata.graph(chain, x, y)
    sin = named(g, "aten::sin")
    with pytest.raises(ValueError, match=r"the graph has no value '%99'"):
        g.run(x, y, fetch="%99")
    with pytest.raises(ValueError, match=r"no value 'gradient of result'; is it"):
        strata.graph(chain, x.clone().requires_grad_(), y).run(x, y, fetch="gradient of result")
    with pytest.raises(TypeError, match="expected a value's name"):
        g.run(x, y, feed={3: x})
    with pytest.raises(ValueError, match="two keys of feed are one value"):
        g.run(x, y, feed={sin: x, sin.name: x})
    with pytest.raises(ValueError, match=r"feed of %2: expected f32\[4\], got f32\[5\]"):
        g.run(x, y, feed={sin: strata.randn(5)})
    with pytest.raises(ValueError, match=r"feed of %2: expected f32\[4\], got f64\[4\]"):
        g.run(x, y, feed={sin: x.double()})
    with pytest.raises(TypeError):
        g.run(x, y, feed={sin: 3.0})
    pair = strata.graph(lambda x: x.max(0), x)
    node = named(pair, "aten::max.dim")
    with pytest.raises(ValueError, match=r"has 2 results; name one of them: %1, %2"):
        pair.run(x, fetch=node)
    assert same(pair.run(x, fetch=node.results[1]), x.max(0)[1])


def test_parts_of_random_graphs(tmp_path):
    """Each value fetched alone is what it is when all are fetched; fed with that, the results are the whole run's; and so it is of
    the graph that was saved."""
    tried = 0
    for number in range(COUNT):
        maker = Maker(SEED, number)
        maker.grow()
        f, text = maker.function()

        def given(maker=maker):
            return [copy(t) for t in maker.inputs]

        try:
            g = strata.graph(f, *given())
        except ERRORS:
            continue
        tried += 1
        g.save(tmp_path / "g")
        h = strata.load_graph(tmp_path / "g")
        assert str(h) == str(g)
        strata.manual_seed(number)
        whole = g(*given())
        strata.manual_seed(number)
        assert [raw(t) for t in h(*given())] == [raw(t) for t in whole], text
        # All but memory that holds nothing yet.
        names = [r for n in g.nodes if n.op != "input" and "empty" not in n.op for r in n.results]
        strata.manual_seed(number)
        values = dict(zip(names, g.run(*given(), fetch=names), strict=True))
        for name in names[:: max(1, len(names) // 6)]:
            strata.manual_seed(number)
            assert raw(h.run(*given(), fetch=name)) == raw(values[name]), f"{text}{g}{name}"
        written = any(n.op.split(".")[0].endswith("_") for n in g.nodes)
        if names and not written:
            name = names[len(names) // 2]
            strata.manual_seed(number)
            fed = g.run(*given(), feed={name: values[name]})
            assert [raw(t) for t in fed] == [raw(t) for t in whole], f"{text}{g}{name}"
    assert tried > COUNT // 2
