"""Operands that repeat one row or column under a stride of 0 give the bits of their copies."""

from __future__ import annotations

from table import ENTRIES, bits, calls, outputs, pytest, run, sampled, strata
from table import operator as entry_operator

ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)
BY_MEMORY = ("empty", "as_strided", "view", "_unsafe_view", "new_empty", "native_dropout", "rand", "normal", "poisson", "multinomial", "bernoulli",
             "resize", "set_", "stride", "is_")
WRITES = "instance_norm"  # its running statistics, which the schema does not say
CASES = [(e, d) for e in ENTRIES if not e.schema.name.startswith(BY_MEMORY) and e.schema.name != WRITES
         and not any(a.written for a in e.schema.args) for d in ("float32", "float64", "int64", "complex64")]


def repeated(t, dim: int):
    """The first slice along a dim, as often as the dim is long."""
    if not isinstance(t, strata.Tensor) or t.dim() == 0 or t.numel() == 0:
        return t
    return t.narrow(dim, 0, 1).expand(t.shape)


def mapped(value, f):
    return type(value)(mapped(v, f) for v in value) if isinstance(value, (list, tuple)) else f(value)


def results(entry, args, kwargs):
    strata.manual_seed(0)
    try:
        return [bits(a) for a in run(entry_operator(entry.schema), args, kwargs)]
    except ERRORS as error:
        return type(error)


@pytest.mark.parametrize("entry, dtype", sampled(CASES, 700), ids=lambda v: v if isinstance(v, str) else v.schema.full)
def test_expanded_operands_give_the_bits_of_copies(entry, dtype):
    for i, (args, kwargs) in enumerate(calls(entry, dtype)):
        for dim in (0, -1):
            spread = mapped(list(args), lambda t, dim=dim: repeated(t, dim))
            copied = mapped(spread, lambda t: t.contiguous() if isinstance(t, strata.Tensor) else t)
            assert results(entry, spread, kwargs) == results(entry, copied, kwargs), f"sample {i}, dim {dim}"


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int64", "int32", "complex64", "complex128"])
@pytest.mark.parametrize("m, k, n", [(2, 3, 8), (2, 3, 16), (1, 5, 64), (4, 5, 7), (33, 40, 50), (3, 1, 32), (70, 1030, 32)])
def test_products_of_expanded_matrices(dtype, m, k, n):
    t = getattr(strata, dtype)
    a, b = ((strata.arange(p * q) * 7 % 5 - 2).to(t).reshape(p, q) for p, q in ((m, k), (k, n)))
    for x, y in ((a, b[:1].expand(k, n)), (a, b[:, :1].expand(k, n)), (a[:1].expand(m, k), b), (a[:, :1].expand(m, k), b[:1].expand(k, n))):
        want = x.contiguous() @ y.contiguous()
        assert bits(outputs(x @ y)[0]) == bits(outputs(want)[0])
        assert bits(outputs(x.expand(2, m, k) @ y.expand(2, k, n))[0]) == bits(outputs(want.expand(2, m, n))[0])
        assert bits(outputs((y.t() @ x.t()).t())[0]) == bits(outputs((y.t().contiguous() @ x.t().contiguous()).t())[0])


def value(t) -> bytes:
    return bits(outputs(t)[0])


# Rows about the lengths from which they are taken in place, whole blocks and not, and of several outer dims.
SHAPES = [(7, 15), (40, 16), (3000, 31), (700, 64), (5, 9, 96), (300, 127), (400, 128), (3, 130, 129), (2, 3, 17, 200), (40, 1024), (1, 40000), (70, 1000)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int64", "uint8", "bool", "complex64", "complex128"])
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_of_values_and_repeated_rows(dtype, threads):
    t, before = getattr(strata, dtype), strata.get_num_threads()
    strata.set_num_threads(threads)
    for shape in SHAPES:
        x, column, row = ((strata.arange(n) * 37 % 101 - 50).to(t).reshape(s)
                          for n, s in ((strata.Size(shape).numel(), shape), (shape[0], (shape[0],) + (1,) * (len(shape) - 1)), (shape[-1], (shape[-1],))))
        other = column.to(strata.float32)
        wide = strata.empty(shape[:-1] + (shape[-1] + 16,), dtype=t)[..., :-16].copy_(x)
        for a, b in ((x, column), (column, x), (column, row), (x, row), (wide, column), (x, other), (wide[..., 1:], column), (x.transpose(0, -1), row[: 1])):
            full = strata.broadcast_shapes(a.shape, b.shape)
            want = a.expand(full).contiguous() * b.expand(full).contiguous()
            assert value(a * b) == value(want), (shape, a.stride(), b.stride())
            made = strata.empty(full[:-1] + (full[-1] + 3,), dtype=want.dtype)[..., :-3]
            assert value(strata.mul(a, b, out=made)) == value(want), (shape, a.stride(), b.stride())
    strata.set_num_threads(before)
