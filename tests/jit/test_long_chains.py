"""Kernels of long chains take four blocks of 16 elements at a time where registers are many: what is left at the end, is
written over its argument, is the same in every block or lies apart, has eager's bits."""

import graph_models
import pytest
import strata as torch

LENGTHS = (*range(1, 131), 255, 256, 257, 1000, 1025)
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def chain(x, y):
    return ((x * y + x).sigmoid() * y).tanh() - x


def compiled(function, *args):
    return torch.graph(function, *args).compile()


def same(a, b):
    assert graph_models.same(a, b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lengths(dtype):
    torch.manual_seed(0)
    for n in LENGTHS:
        x, y = torch.randn(n, dtype=dtype), torch.randn(n, dtype=dtype)
        same(compiled(chain, x, y)(x, y), chain(x, y))
    if torch._C.cpu_capability() == "v4":
        assert "LOADS_64(" in compiled(chain, x, y).source()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_in_place(dtype):
    def step(x, y):
        return x.copy_(chain(x, y))

    for n in (5, 40, 64, 100, 1000):
        x, y = torch.randn(n, dtype=dtype), torch.randn(n, dtype=dtype)
        g = compiled(step, x.clone(), y)
        a, b = x.clone(), x.clone()
        for _ in range(3):
            g(a, y)
            step(b, y)
            same(a, b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_layouts(dtype):
    for rows, columns in ((7, 33), (3, 100), (65, 17)):
        wide = torch.randn(rows, 2 * columns, dtype=dtype)
        number, row, column = torch.randn((), dtype=dtype), torch.randn(columns, dtype=dtype), torch.randn(rows, 1, dtype=dtype)
        x = wide[:, ::2]
        for other in (number, row, column, torch.randn(columns, rows, dtype=dtype).t()):
            same(compiled(chain, x, other)(x, other), chain(x, other))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows(dtype):
    """What the next row's first pass will read is asked for in the last: rows that follow each other, lie apart, are one."""

    def normed(x, w):
        return chain(torch.nn.functional.layer_norm(x, (128,), w, w), w).softmax(-1)

    w, wide = torch.randn(128, dtype=dtype), torch.randn(9, 300, dtype=dtype)
    if torch._C.cpu_capability() == "v4":
        assert "FETCH(next_" in compiled(normed, wide[:, :128].contiguous(), w).source()
    for x in (wide[:, :128].contiguous(), wide[:, 100:228], wide[:1, :128].expand(9, 128), wide.reshape(-1)[:1280].view(10, 128), wide[:1, :128]):
        same(compiled(normed, x, w)(x, w), normed(x, w))


def test_streams():
    x = torch.randn(3 * 2**22 + 7)
    made = compiled(lambda x: chain(x, x), x)
    same(made(x), chain(x, x))


def test_values_that_are_rare():
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-42, 300.0, -300.0] * 11)
    y = x.flip(0).contiguous()
    for a, b in ((x, y), (x.half(), x.half())):
        got, want = compiled(chain, a, b)(a, b), chain(a, b)
        same(got.isnan(), want.isnan())
        same(got.nan_to_num(7.0), want.nan_to_num(7.0))
