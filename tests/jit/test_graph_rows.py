"""Kernels over rows know their length: bits are eager's for lengths that are whole vectors, short, long, and of several parts."""

import pytest
import strata
from strata.nn import functional as F


def programs(n: int):
    w = strata.linspace(-1.0, 1.5, n)
    return {
        "norm_gelu": lambda x: F.gelu(F.layer_norm(x, (n,), w.to(x.dtype), w.to(x.dtype))),
        "softmax": lambda x: F.softmax(x * 1.5, -1) * 2,
        "spread": lambda x: ((x - x.mean(-1, keepdim=True)).square().sum(-1), x.amax(-1) - x.amin(-1)),
        "tail": lambda x: (x / x.norm(dim=-1, keepdim=True)).erfinv().sigmoid().tanh().sin(),
    }


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("n", [16, 24, 32, 48, 96, 128, 992, 1024, 1040, 1056, 2048, 65536, 65568, 131072 + 64])
def test_lengths(n, dtype):
    strata.manual_seed(n)
    x = (3 * strata.randn(3, n)).to(getattr(strata, dtype))
    for name, f in programs(n).items():
        want, got = f(x), strata.graph(f, x).compile()(x)
        for a, b in zip(*[y if isinstance(y, tuple) else (y,) for y in (want, got)], strict=True):
            assert strata.equal(strata.nan_to_num(a), strata.nan_to_num(b)), name


@pytest.mark.parametrize("dtype", [strata.float32, strata.float64])
def test_magnitudes_compared_with_zero(dtype):
    """What is NaN, or whose magnitude is above zero: the compilers that kernels go through must not take the sign for the magnitude's."""
    values = [-1.5, 2.0, 0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-310]
    x = strata.tensor(values, dtype=dtype).repeat(5)

    def magnitudes(x):
        m = x.abs()
        return m.relu(), m.relu().expand(2, -1).sum(0), m > 0, m >= 0, m < 0, m <= 0, m == 0, m != 0, (0 < m) | m.isnan(), m.isnan() | (m > -0.0)

    for got, want in zip(strata.graph(magnitudes, x).compile()(x), magnitudes(x), strict=True):
        assert strata.equal(got.nan_to_num(7.0), want.nan_to_num(7.0)) if got.is_floating_point() else strata.equal(got, want)

    def slope(x):
        return strata.nn.functional.softplus((x * 3).abs().unsqueeze(0).expand(2, -1).relu()).sum()

    leaves = [x[:3].clone().requires_grad_() for _ in range(2)]
    (want,) = strata.autograd.grad(slope(leaves[0]), leaves[0])
    (got,) = strata.autograd.grad(strata.graph(slope, leaves[1]).compile()(leaves[1]), leaves[1])
    assert strata.equal(got, want)
