"""Columns that are reduced beside values that are there once for each: what keeps their dims apart is laid out, and lines
too short to be worth it are left to the operators. Bits are eager's whatever is chosen."""

import graph_models
import pytest
import strata as torch

DTYPES = [torch.float32, torch.bfloat16, torch.float64]
SHAPES = [(9, 5, 7), (40, 3, 33), (64, 8, 16), (5, 30, 20), (3, 1030, 64)]
REDUCTIONS = {
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(1),
    "amax": lambda x: x.amax(0),
    "prod": lambda x: x.prod(1),
    "norm": lambda x: x.norm(dim=0),
    "var": lambda x: x.var(0),
    "logsumexp": lambda x: x.logsumexp(1),
}


def same(function, *args):
    compiled, expected = torch.graph(function, *args).compile(), function(*args)
    for _ in range(2):  # what was laid out for one call is not there in the next
        assert graph_models.same(compiled(*args), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_after(name, dtype):
    reduce = REDUCTIONS[name]
    for shape in SHAPES:
        x = torch.randn(shape).to(dtype)
        rows, columns = reduce(x).shape
        for other in ((rows, 1), (1, columns), (columns,), (1, 1), (rows, columns)):
            y = torch.randn(other).to(dtype)
            for lies in (x, x.transpose(1, 2).contiguous().transpose(1, 2)):
                same(lambda x, y: reduce(x) * y + y, lies, y)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_before(name, dtype):
    reduce = REDUCTIONS[name]
    for shape in SHAPES:
        x = torch.randn(shape).to(dtype)
        for keep in range(8):
            y = torch.randn([n if keep >> d & 1 else 1 for d, n in enumerate(shape)]).to(dtype)
            same(lambda x, y: reduce(x * y), x, y)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_short_rows(dtype):
    for shape in ((4, 10, 16, 2), (3, 5, 64, 4), (2, 7, 100, 3)):
        x, y = torch.randn(shape).to(dtype), torch.randn(shape[0], 1, *shape[2:]).to(dtype)
        for reduce in (lambda x: x.sum(-1), lambda x: x.prod(-1), lambda x: x.logsumexp(-1), lambda x: x.softmax(-1)):
            same(lambda x, y, reduce=reduce: reduce(x * y), x, y)


def test_what_goes_by_short_lines_is_not_one():
    """One kernel would call a function for each line of 40 elements: 4 times the time of two kernels."""
    x, y = torch.randn(3, 1000, 40), torch.randn(40)
    made = torch.graph(lambda x, y: (x * y).sum(1), x, y).compile()
    assert graph_models.same(made(x, y), (x * y).sum(1)) and "its rows lie across memory" in made.explain()
    wide, z = torch.randn(3, 1000, 128), torch.randn(128)
    assert "its rows lie across memory" not in torch.graph(lambda x, y: (x * y).sum(1), wide, z).compile().explain()
