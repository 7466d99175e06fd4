"""Rows of up to eight vectors: read under a mask, turned over, or in columns, whichever is fastest, with the bits of a row alone."""

from __future__ import annotations

import pytest
import strata

REDUCTIONS = {
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(-1),
    "prod": lambda x: x.prod(-1),
    "amax": lambda x: x.amax(-1),
    "amin": lambda x: x.amin(-1),
    "var": lambda x: x.var(-1),
    "norm": lambda x: strata.linalg.vector_norm(x, dim=-1),
    "softmax": lambda x: x.softmax(-1),
    "layer_norm": lambda x: strata.nn.functional.layer_norm(x, x.shape[-1:]),
    "logsumexp": lambda x: x.logsumexp(-1),
}
LENGTHS = [1, 2, 7, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 79, 80, 95, 100, 111, 112, 113, 127, 128, 129, 160, 191]


def bits(t):
    t = t.float() if t.dtype in (strata.bfloat16, strata.float16) else t
    return strata.where(t == t, t, 0).numpy().tobytes(), (t == t).numpy().tobytes()


def folded(values):
    """Tree T over up to 1,024 elements: neighbours 16 positions apart in pairs, then halves of the 16 lanes."""
    groups = [list(values[i : i + 16]) for i in range(0, len(values), 16)]
    groups[-1] += [strata.tensor(-0.0)] * (16 - len(groups[-1]))
    while len(groups) > 1:
        groups = [[a + b for a, b in zip(*groups[i : i + 2], strict=True)] if i + 1 < len(groups) else groups[i] for i in range(0, len(groups), 2)]
    lanes = groups[0]
    for half in (8, 4, 2, 1):
        lanes = [lanes[i] + lanes[i + half] for i in range(half)]
    return lanes[0]


def table(rows, n, dtype):
    x = strata.randn(rows, n)
    x[1::5, n // 2] = float("inf")
    x[2::5, n - 1] = float("nan")
    x[3::5] = -0.0
    x[4::5, 0] = -float("inf")
    return x.to(dtype)


@pytest.mark.parametrize("dtype", [strata.float32, strata.float64, strata.bfloat16], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_many_rows_are_single_rows(name, dtype):
    f = REDUCTIONS[name]
    for n in LENGTHS:
        x = table(200, n, dtype)
        whole = f(x)
        wide = strata.zeros(200, n + 5).to(dtype)
        wide[:, :n] = x
        pieces = wide[:, :n]
        assert bits(f(pieces)) == bits(whole), n
        for k in (0, 1, 2, 3, 4, 197):
            assert bits(f(x[k].clone())) == bits(whole[k]), (n, k)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33, 49, 64, 65, 100, 127, 128, 129])
def test_sums_are_tree_t(n):
    x = strata.randn(64, n)
    x[5] = -0.0
    found = x.sum(-1)
    for k in (0, 5, 63):
        wanted = folded([x[k, i] for i in range(n)])
        assert bits(found[k]) == bits(wanted)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_in_graphs(name):
    f = REDUCTIONS[name]
    for n in (3, 16, 17, 32, 33, 48, 49, 64, 80, 100, 112, 127, 128, 130):
        x, y = table(150, n, strata.float32), strata.randn(150, n)

        def g(x, y, n=n):
            z = x * y
            return f(z), z - z.mean(-1, keepdim=True), (x + y).var(-1)

        for a, b in zip(strata.graph(g, x, y).compile()(x, y), g(x, y), strict=True):
            assert bits(a) == bits(b), n


@pytest.mark.parametrize("dtype", [strata.float32, strata.float64, strata.bfloat16, strata.int32], ids=str)
@pytest.mark.parametrize("shape", [(8, 3, 16, 33), (4, 5, 28, 28), (3, 9, 49), (70, 2, 16, 64), (2, 3, 200, 200), (9, 4, 1024), (5, 2, 700), (2, 3, 25, 25), (7, 2, 257)], ids=str)
def test_rows_in_pieces(shape, dtype):
    x = (strata.randn(*shape) * 5).to(dtype)
    if dtype.is_floating_point:
        x.view(-1)[::7] = -0.0
    dims = [d for d in range(len(shape)) if d != 1]
    whole = x.transpose(0, 1).reshape(shape[1], -1)
    for f in (strata.sum, strata.mean, strata.amax, strata.linalg.vector_norm, strata.var):
        if not dtype.is_floating_point and f not in (strata.sum, strata.amax):
            continue
        assert bits(f(x, dim=dims)) == bits(f(whole, dim=1)), f
        assert bits(f(x[:, 1:], dim=dims)) == bits(f(whole[1:], dim=1)), f


@pytest.mark.parametrize("dtype", [strata.float32, strata.float64, strata.bfloat16, strata.int32, strata.uint8], ids=str)
def test_elements_of_short_rows(dtype):
    for n in (15, 16, 17, 31, 32, 48, 49, 64, 80, 96):
        x, y = (strata.randint(0, 50, (3, 70, 2 * n)).to(dtype) for _ in range(2))
        b, c, one = y[0, 0, :n], y[0, :, :1], y[0, 0, 0]
        a, z = x[..., :n], y[..., n:]
        for f in (strata.add, strata.mul, strata.maximum):
            for other in (z, b, c, one):
                assert bits(f(a, other)) == bits(f(a.contiguous(), other.contiguous())), n
        assert bits(strata.where(a > z, a, b)) == bits(strata.where(a.contiguous() > z.contiguous(), a.contiguous(), b)), n
        assert bits(a.neg()) == bits(a.contiguous().neg()), n
        want = x.clone()
        want[..., :n] = want[..., :n].contiguous() + b
        x[..., :n] += b
        assert bits(x) == bits(want), n


@pytest.mark.parametrize("shape", [(500, 80), (8, 16), (8, 128), (300, 112)], ids=str)
def test_calls_for_each_lane_in_graphs(shape):
    a = strata.randint(1, 4, shape, dtype=strata.int32)
    for f in (lambda a: (a**a).amax(-1), lambda a: (a**a).sum(-1), lambda a: (a // 2).amin(-1)):
        assert strata.equal(strata.graph(f, a).compile()(a), f(a))


def test_expressions_may_use_the_names_of_printers():
    for k, name in enumerate(["some", "u", "left", "end", "g", "all", "i"]):
        op = strata.library.expression(f"shortrows::n{k}(Tensor self, Tensor other) -> Tensor", f"{name} = self * other\nresult = {name} + self")
        x, y = strata.randn(500, 100), strata.randn(500, 100)

        def f(x, y, op=op):
            return op(x, y).sum(-1) * 2

        assert strata.equal(strata.graph(f, x, y).compile()(x, y), f(x, y))
