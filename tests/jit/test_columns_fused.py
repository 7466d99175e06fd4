"""Reductions of columns that are fused with what is computed of them: operands that are one value for all columns of a row, or
the same ones in every row, and what else may lie there, have eager's bits at every size."""

import graph_models
import pytest
import strata as torch

SHAPES = [(2, 4096), (3, 1500), (5, 900), (17, 256), (29, 1024), (64, 65), (100, 100), (300, 16), (1023, 17), (1025, 16), (2000, 33), (5000, 3)]
LONG = [(65537, 16), (70001, 20), (131073, 2)]
FUNCTIONS = {
    "value": lambda x, y, row, column: (x * column).sum(0),
    "values": lambda x, y, row, column: ((x - column) * column.exp() * y).sum(0),
    "row": lambda x, y, row, column: (x * row).sum(0),
    "norm": lambda x, y, row, column: ((x - row) * (x - row)).mean(0),
    "both": lambda x, y, row, column: (x * row + column).sum(0),
    "number": lambda x, y, row, column: (x * 0.01 + (column * 0.01 + 1)).prod(0),
    "largest": lambda x, y, row, column: (x * column - row).amax(0),
    "alone": lambda x, y, row, column: (x + y).sum(0),
    "kept": lambda x, y, row, column: (x * row).sum(0) * row,
    "square": lambda x, y, row, column: (column * column).sum(0) + (x * column).sum(0),
    "where": lambda x, y, row, column: torch.where(x > column, y, row).sum(0),
}
FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


def check(f, *args):
    g = torch.graph(f, *args).compile()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        assert graph_models.same(g(*args), f(*args)), (threads, [a.shape for a in args])
    torch.set_num_threads(2)
    return g


def operands(rows, columns, dtype):
    return (torch.randn(s).to(dtype) for s in ((rows, columns), (rows, columns), (columns,), (rows, 1)))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sizes(name, dtype):
    torch.manual_seed(0)
    for rows, columns in SHAPES if dtype == torch.float32 else SHAPES[::2]:
        check(FUNCTIONS[name], *operands(rows, columns, dtype))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_long_columns(name):
    for rows, columns in LONG:
        check(FUNCTIONS[name], *operands(rows, columns, torch.float32))


def test_whole_numbers():
    for name in ("value", "row", "both", "largest", "alone"):
        for rows, columns in SHAPES:
            x, y, row, column = (t.mul(10).to(torch.int64) for t in operands(rows, columns, torch.float32))
            check(FUNCTIONS[name], x, y, row, column)


def test_layouts():
    """Of several kept or reduced dims, with gaps, turned over, expanded."""
    x = torch.randn(40, 6, 50)
    for f, *others in (
        (lambda x, r: (x * r).sum(0), torch.randn(40, 1, 1)),
        (lambda x, r: (x * r).sum(0), torch.randn(40, 6, 1)),
        (lambda x, r: (x * r).sum(0), torch.randn(40, 1, 50)),
        (lambda x, r: (x * r).sum((0, 1)), torch.randn(40, 6, 1)),
        (lambda x, r: (x * r).sum((0, 1)), torch.randn(40, 1, 1)),
        (lambda x, r: (x * r).sum((0, 1)), torch.randn(50)),
        (lambda x, r: (x * r).sum(1), torch.randn(40, 1, 50)),
        (lambda x, r: (x * r).sum(1), torch.randn(6, 1)),
        (lambda x, r: (x * r).sum((0, 2)), torch.randn(6, 1)),
        (lambda x, r, s: (x * r + s).sum(0), torch.randn(40, 6, 1), torch.randn(6, 50)),
    ):
        check(f, x, *others)
    wide, column = torch.randn(200, 2, 64), torch.randn(200, 1)
    check(lambda x, r: (x * r).sum(0), wide[:, 1], column)
    check(lambda x, r: (x * r).sum(0), wide[:, 0].t().contiguous().t(), column)
    check(lambda x, r: (x * r).sum(0), torch.randn(64).expand(200, 64), column)
    check(lambda x, r: (x * r).sum(0), wide[:, 0], column.expand(200, 64))
    check(lambda x, r: (x * r).sum(0), wide[:, 0], torch.randn(200, 3)[:, 1:2])
    check(lambda x, r: (x * r).sum(0), wide[:, 0], torch.randn(64, 2)[:, 0])


def test_they_are_one_kernel():
    x, y, row, column = operands(200, 64, torch.float32)
    for name in ("value", "row", "norm", "both", "largest"):
        assert "1 fused kernels, 0 operators" in check(FUNCTIONS[name], x, y, row, column).explain(), name
