"""Launches that write parts of one tensor are one kernel where the parts share no element; bits are eager's where they do,
too, and where parts are written in short pieces."""

import graph_models
import pytest
import strata as torch

DTYPES = [torch.float32, torch.bfloat16, torch.int64]


def made(function, *args):
    compiled = torch.graph(function, *args).compile()
    for _ in range(2):
        assert graph_models.same(compiled(*[a.clone() for a in args]), function(*[a.clone() for a in args]))
    return compiled


def data(*shape, dtype):
    return (torch.randn(shape) * 10).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_cat(dim, dtype):
    for shape in ((3, 5, 70), (4, 64, 64), (2, 3, 7), (1, 1, 1)):
        x = data(*shape, dtype=dtype)
        made(lambda x: torch.cat([x, x * 2], dim), x)
        made(lambda x: torch.cat([x + 1, x * 2, x], dim) * 3, x)
        made(lambda x: torch.stack([x + 1, x * 2, x], dim), x)
        made(lambda x: torch.cat([x, x * 2], dim), x.transpose(0, 2))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_slices(dtype):
    """Of rows, of columns, every other, that overlap, of one that is read."""

    def of(first, second):
        def step(x, y):
            y = y.clone()
            y[first] = x
            y[second] = x * 2
            return y

        def in_place(x, y):
            y[first] = x
            y[second] = y[first] * 2 + x
            return y

        return step, in_place

    s = slice
    for rows, columns in ((8, 100), (64, 128)):
        x, y = data(rows, columns, dtype=dtype), data(3 * rows, 3 * columns, dtype=dtype)
        for first, second in (
            ((s(0, rows), s(0, columns)), (s(rows, 2 * rows), s(0, columns))),
            ((s(0, rows), s(0, columns)), (s(0, rows), s(columns, 2 * columns))),
            ((s(0, rows), s(0, columns)), (s(1, rows + 1), s(0, columns))),
            ((s(0, rows), s(0, columns)), (s(0, rows), s(1, columns + 1))),
            ((s(0, rows), s(0, columns)), (s(0, rows), s(columns - 1, 2 * columns - 1))),
            ((s(0, rows), s(0, columns)), (s(rows - 1, 2 * rows - 1), s(columns, 2 * columns))),
            ((s(0, 2 * rows, 2), s(0, columns)), (s(1, 2 * rows, 2), s(0, columns))),
            ((s(0, rows), s(0, 2 * columns, 2)), (s(0, rows), s(1, 2 * columns, 2))),
            ((s(0, rows), s(2 * columns, 3 * columns)), (s(1, rows + 1), s(0, columns))),
        ):
            for step in of(first, second):
                made(step, x, y)


def test_one_kernel():
    x = torch.randn(8, 64, 64)
    for dim in (0, 1, 2):
        explained = made(lambda x, dim=dim: torch.cat([x, x * 2], dim), x).explain()
        assert "1 fused kernels, 0 operators by themselves" in explained and "reads 1, writes 2" in explained
    short = made(lambda x: torch.cat([x, x * 2], 2), torch.randn(8, 64, 28)).explain()
    assert "it writes short pieces" in short
