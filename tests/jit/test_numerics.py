"""compile(numerics="fast"): roundings of half types that kernels leave out, and that exact ones do not."""

from __future__ import annotations

import re

import pytest
import strata

HALVES = [strata.bfloat16, strata.float16]


def chain(x, w):
    y = (x * w).tanh() + x
    y = y * 0.7 + w
    return (y * y + 0.1).sqrt() * x


def norm(x, w):
    m = x.mean(-1, keepdim=True)
    v = ((x - m) ** 2).mean(-1, keepdim=True)
    return (x - m) * (v + 1e-5).rsqrt() * w


def error(got, wanted):
    return float((got.double() - wanted).abs().mean())


def inputs(dtype, grad=False):
    strata.manual_seed(3)
    return strata.randn(50, 300).to(dtype).requires_grad_(grad), (strata.rand(300) + 0.5).to(dtype).requires_grad_(grad)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("f", [chain, norm])
def test_closer_to_float64(f, dtype):
    x, w = inputs(dtype)
    g = strata.graph(f, x, w)
    eager, exact, fast = f(x, w), g.compile()(x, w), g.compile(numerics="fast")(x, w)
    assert strata.equal(exact, eager) and fast.dtype == dtype and not strata.equal(fast, eager)
    reference = f(x.double(), w.double())
    assert error(fast, reference) < 0.8 * error(exact, reference)
    # What is left out is all that is in between: one rounding, at the end.
    once = f(x.float(), w.float()).to(dtype)
    assert error(fast, once.double()) < 0.1 * error(exact, once.double())


@pytest.mark.parametrize("dtype", HALVES)
def test_gradients(dtype):
    x, w = inputs(dtype, grad=True)
    g = strata.graph(chain, x, w)
    wanted = strata.autograd.grad(chain(x.double(), w.double()).sum(), [x, w])
    eager = strata.autograd.grad(chain(x, w).sum(), [x, w])
    exact = strata.autograd.grad(g.compile()(x, w).sum(), [x, w])
    fast = strata.autograd.grad(g.compile(numerics="fast")(x, w).sum(), [x, w])
    assert all(strata.equal(a, b) for a, b in zip(exact, eager, strict=True))
    assert error(fast[0], wanted[0].double()) < error(exact[0], wanted[0].double())


def test_float32_has_nothing_to_leave_out():
    x, w = strata.randn(40, 70), strata.randn(70)
    g = strata.graph(chain, x, w)
    fast = g.compile(numerics="fast")
    assert strata.equal(fast(x, w), chain(x, w)) and fast.source() == g.compile().source()
    assert 'numerics="fast": 0 roundings left out, in 0 kernels' in fast.explain()


@pytest.mark.parametrize("dtype", HALVES)
def test_what_jumps_reads_rounded_values(dtype):
    """A maximum is found among the values that it is one of; steps are where eager's are."""
    x, w = inputs(dtype)

    def f(x, w):
        y = x * w + 0.3
        return (y == y.amax(-1, keepdim=True)).sum(-1), y.argmax(-1), (y * w).floor(), (y * w).to(strata.int32), y * w > w, y

    g = strata.graph(f, x, w)
    fast, eager = g.compile(numerics="fast")(x, w), f(x, w)
    # y itself has a rounding less; all that hangs on how it compares is of the y that there is.
    assert int(fast[0].min()) >= 1 and strata.equal(fast[0], (fast[5] == fast[5].amax(-1, keepdim=True)).sum(-1))
    assert strata.equal(fast[1], fast[5].argmax(-1)) and strata.equal(eager[1], eager[5].argmax(-1))


@pytest.mark.parametrize("dtype", HALVES)
def test_gradient_of_a_maximum(dtype):
    x, w = inputs(dtype, grad=True)

    def f(x, w):
        return (x * w + 0.3).amax(-1)

    fast = strata.graph(f, x, w).compile(numerics="fast")
    got, wanted = (strata.autograd.grad(h(x, w).sum(), x)[0] for h in (fast, f))
    assert strata.equal(got.sum(-1) != 0, wanted.sum(-1) != 0) and bool((got != 0).any(-1).all())


def test_explained():
    x, w = inputs(strata.bfloat16)
    g = strata.graph(chain, x, w)
    text = g.compile(numerics="fast").explain()
    left_out = int(re.search(r'numerics="fast": (\d+) roundings left out, in 1 kernels', text)[1])
    assert left_out == len([n for n in g.nodes if n.op != "input"]) - 1
    assert f'  numerics="fast": {left_out} roundings to bfloat16 left out, of at most 1/256 of the value each' in text
    assert 'numerics="' not in g.compile().explain()
    half = strata.graph(chain, *inputs(strata.float16)).compile(numerics="fast").explain()
    assert "roundings to float16 left out, of at most 1/2048 of the value each" in half


def test_kept_apart():
    """Each order of asking gives the same: neither serves the other, in the process or on disk."""
    for first in ("exact", "fast"):
        x, w = inputs(strata.bfloat16)
        scale = 1.5 if first == "exact" else 1.25  # kernels that nobody had before would be others' if keys were equal
        g = strata.graph(lambda x, w, scale=scale: chain(x, w).exp() * scale, x, w)
        order = [first, "fast" if first == "exact" else "exact"]
        made = {numerics: g.compile(numerics=numerics) for numerics in order}
        results = {numerics: made[numerics](x, w) for numerics in order}
        assert strata.equal(results["exact"], chain(x, w).exp() * scale) and not strata.equal(results["fast"], results["exact"])
        assert [made[n].numerics for n in order] == order
        assert 'numerics="fast"' in made["fast"].source() and "numerics" not in made["exact"].source()


def test_of_a_saved_graph(tmp_path):
    x, w = inputs(strata.bfloat16)
    g = strata.graph(chain, x, w)
    g.save(tmp_path / "g.graph")
    loaded = strata.load_graph(tmp_path / "g.graph")
    assert strata.equal(loaded.compile()(x, w), chain(x, w))
    assert strata.equal(loaded.compile(numerics="fast")(x, w), g.compile(numerics="fast")(x, w))


@pytest.mark.parametrize("wrong", ["Fast", "", None, True, "bfloat16"])
def test_wrong_numerics(wrong):
    g = strata.graph(lambda x: x + 1, strata.ones(3))
    with pytest.raises(ValueError, match=re.escape(f"compile: expected numerics 'exact' or 'fast', got {wrong!r}")):
        g.compile(numerics=wrong)
