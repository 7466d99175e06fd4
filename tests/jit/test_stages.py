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


def _norm(x):
    return F.layer_norm(x, x.shape[-1:]).exp().sin().tanh()


def _sum(x):
    return x.exp().sin().tanh().sum(-1)


def _softmax(x):
    return (x.tanh().exp().sin().softmax(-1) + 1).log().exp()


def _row_written(x):
    x.copy_((x.sin().exp().tanh() - x.amax(-1, keepdim=True)).softmax(-1).log1p().exp().sin())
    return x.sum(-1)


ROWS = {f.__name__[1:]: f for f in (_norm, _sum, _softmax, _row_written)}


@pytest.mark.parametrize("layout", ["dense", "every second", "half"])
@pytest.mark.parametrize("shape", [(40, 50), (40, 100), (7, 333), (4, 1024), (3, 70_003), (1, 200_001)])
@pytest.mark.parametrize("name", ROWS)
def test_rows(name, shape, layout):
    """Passes over rows are cut, too; few long rows go in parts that several threads share, and are written where they are read."""
    f = ROWS[name]
    torch.manual_seed(0)
    x = torch.randn(shape[0], 2 * shape[1])[:, ::2] if layout == "every second" else torch.randn(shape)
    x = x.half() if layout == "half" else x

    def copy():
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x)

    want, got = copy(), copy()
    a = f(want)
    b = torch.graph(f, copy()).compile()(got)
    assert graph_models.same(a.nan_to_num(7.0), b.nan_to_num(7.0))
    assert graph_models.same(want.nan_to_num(7.0), got.nan_to_num(7.0))


def _doubled(x, out):
    out[: x.shape[0], : x.shape[1]].copy_(x.softmax(-1) * 2)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.bfloat16, torch.float32, torch.int64, torch.float64])
def test_ends_of_rows(dtype):
    """Of each width, whatever is left behind the last whole vector; what lies behind a row is not written."""
    for n in (*range(1, 34), 47, 65, 100):
        x = (torch.arange(5 * n).reshape(5, n) * 7 % 23).to(dtype)
        assert x.sum(-1).tolist() == [sum(row) for row in x.to(torch.int64).tolist()] or dtype == torch.bfloat16
        assert x.amax(-1).tolist() == [max(row) for row in x.tolist()]
        into = torch.full((6, n + 3), 9.0).to(dtype)
        into[:5, :n] = x.cumsum(-1).to(dtype)
        assert (into[:, n:] == 9).all() and (into[5] == 9).all()
        if x.is_floating_point():
            rows = torch.full((6, n + 3), 9.0).to(dtype)
            torch.graph(_doubled, x, rows).compile()(x, rows)
            assert rows[:5, :n].equal(x.softmax(-1) * 2)
            assert (rows[:, n:] == 9).all() and (rows[5] == 9).all()
