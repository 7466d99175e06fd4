"""Kernels of long pointwise text go in stages (lower/pass/stages.h): eager's bits at all sizes, for values of other types that
are kept between, for several results, and where a result lies on an argument."""

import graph_models
import pytest
import strata as torch

F = torch.nn.functional


def _chain(x):
    return x.sin().exp().tanh().log1p()


def _several(x):
    y = x.exp().sin()
    z = F.gelu(y).sigmoid()
    return y, z, (z > 0.5).to(x.dtype), z.erf() * y


def _masks(x):
    m = x > 0
    y = torch.where(m, x.exp(), x.tanh()).sin()
    return torch.where(m, y.cos(), y * x).sigmoid()


def _types(x):
    return (x.double().exp().sin() * 100).int().float().tanh().bfloat16().exp().half().sin()


def _written(x):
    y = x.exp().sin()
    x.mul_(y.tanh())
    return x.sigmoid().log() + y


PROGRAMS = {f.__name__[1:]: f for f in (_chain, _several, _masks, _types, _written)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits(name, dtype):
    f = PROGRAMS[name]
    for n in (1, 15, 17, 1023, 1024, 1025, 70_001):
        torch.manual_seed(n)
        x = (torch.randn(n) * 3).to(dtype)
        want, got = x.clone(), x.clone()
        results = f(want), torch.graph(f, x.clone()).compile()(got)
        for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in results), strict=True):
            assert graph_models.same(a.nan_to_num(7.0), b.nan_to_num(7.0)), n
        assert graph_models.same(want.nan_to_num(7.0), got.nan_to_num(7.0)), n


@pytest.mark.parametrize("layout", ["rows", "turned", "every second"])
def test_layouts(layout):
    torch.manual_seed(0)
    x = {"rows": torch.randn(50, 33), "turned": torch.randn(33, 50).t(), "every second": torch.randn(50, 66)[:, ::2]}[layout]
    y = torch.randn(33)

    def f(x):
        return (x.exp().sin() * y).tanh().atan2(y).cos()

    assert graph_models.same(f(x), torch.graph(f, x).compile()(x))


def test_the_text_says_so():
    source = torch.graph(_chain, torch.randn(100)).compile().source()
    assert "its stages after each other" in source or "v3" not in source and "v4" not in source
    assert "its stages after each other" not in torch.graph(lambda x: x.exp() * 2, torch.randn(100)).compile().source()
