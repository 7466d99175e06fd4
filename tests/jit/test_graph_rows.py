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
