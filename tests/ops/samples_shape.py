"""Samples of joining, repeating, padding, counting factories and whole-tensor comparisons."""

from __future__ import annotations

import numpy as np
from kit import D, T, call, sample


@sample("cat")
def cat(m):
    yield call([m.tensor(2, 3), m.tensor(1, 3), m.tensor(4, 3)])
    yield call([m.tensor(2, 3), m.tensor(2, 1)], -1)
    yield call([m.tensor(2, 3), m.tensor(0), m.tensor(1, 3)])
    yield call([m.tensor(0), m.tensor(0)])
    yield call([m.tensor(2, 2, 3), m.tensor(2, 4, 3)], 1)
    yield call([m.tensor(3), m.tensor(2, dtype="float32"), m.tensor(2, dtype="int32")])
    yield call([m.tensor(2, 3), m.tensor(2, 4)])
    yield call([m.tensor(2, 3), m.tensor(3)])
    yield call([m.tensor(), m.tensor()])
    yield call([m.tensor(2), m.tensor(2)], 1)


@sample("stack")
def stack(m):
    yield call([m.tensor(2, 3), m.tensor(2, 3)])
    yield call([m.tensor(2, 3), m.tensor(2, 3), m.tensor(2, 3)], -1)
    yield call([m.tensor(), m.tensor()])
    yield call([m.tensor(3), m.tensor(3, dtype="float32")], 1)
    yield call([m.tensor(2, 3), m.tensor(3, 2)])
    yield call([m.tensor(2), m.tensor(2)], 2)


@sample("stack_columns")
def stack_columns(m):
    yield call([m.tensor(3), m.tensor(3)])
    yield call([m.tensor(3, 2), m.tensor(3, 1)])
    yield call([m.tensor(), m.tensor()])
    yield call([m.tensor(3, 2), m.tensor(2, 2)])


@sample("stack_rows")
def stack_rows(m):
    yield call([m.tensor(3), m.tensor(3)])
    yield call([m.tensor(3, 2), m.tensor(3, 2)])
    yield call([m.tensor(), m.tensor()])
    yield call([m.tensor(3, 2), m.tensor(3)])


@sample("block_diag")
def block_diag(m):
    yield call([m.tensor(2, 3), m.tensor(2), m.tensor(), m.tensor(1, 2)])
    yield call([m.tensor(2, 3), m.tensor(2, dtype="float32")])
    yield call([m.tensor(1, 2, 3)])


@sample("vectors")
def vectors(m):
    yield call([m.tensor(2), m.tensor(3)])
    yield call([m.tensor(2), m.tensor(3), m.tensor(1)])
    yield call([m.tensor(2)])
    yield call([m.tensor(2, 2), m.tensor(2)])


@sample("vectors_indexing")
def vectors_indexing(m):
    for how in ("ij", "xy", "ab"):
        yield call([m.tensor(2), m.tensor(3), m.tensor(2)], indexing=how)
    yield call([m.tensor(2), m.tensor()], indexing="xy")


@sample("tensors_that_broadcast")
def tensors_that_broadcast(m):
    yield call([m.tensor(3, 1), m.tensor(4), m.tensor()])
    yield call([m.tensor(3), m.tensor(4)])


@sample("repeat")
def repeat(m):
    yield call(m.tensor(2, 3), [2, 1])
    yield call(m.tensor(3), [2, 1, 2])
    yield call(m.tensor(), [2])
    yield call(m.tensor(2, 3), [0, 2])
    yield call(m.tensor(2, 3), [2])
    yield call(m.tensor(2, 3), [2, -1])


@sample("tile")
def tile(m):
    yield call(m.tensor(2, 3), [2])
    yield call(m.tensor(3), [2, 2])
    yield call(m.tensor(2, 3), [])


@sample("constant_pad")
def constant_pad(m):
    yield call(m.tensor(2, 3), [1, 2])
    yield call(m.tensor(2, 3), [1, -1, 0, 2], m.number())
    yield call(m.tensor(2, 3), [-1, -1])
    yield call(m.tensor(3), [1])
    yield call(m.tensor(3), [1, 1, 1, 1])
    yield call(m.tensor(3), [-2, -2])


@sample("pad")
def pad(m):
    yield call(m.tensor(2, 3), [1, 2])
    yield call(m.tensor(2, 3), [1, 2], "constant", 1.0)
    for mode in ("circular",) if m.dtype == "bool" else ("reflect", "replicate", "circular"):
        yield call(m.tensor(1, 2, 3), [1, 2], mode)
        yield call(m.tensor(1, 2, 3, 4), [1, 2, 2, 0], mode)
        yield call(m.tensor(1, 1, 3, 2, 3), [1, 1, 0, 1, 2, 1], mode)
        yield call(m.tensor(2, 4), [-1, 2], mode)
        yield call(m.tensor(1, 2, 3), [5, 2], mode)
        yield call(m.tensor(3), [1, 1], mode)
        yield call(m.tensor(1, 1, 3, 3, 3), [1, 1], mode)
    yield call(m.tensor(2, 3), [1, 2], "nearest")
    yield call(m.tensor(2, 3), [1])


@sample("pad_circular")
def pad_circular(m):
    if "backward" in m.op:
        yield call(m.tensor(1, 2, 6), [1, 2, 3], [1, 2])
        yield call(m.tensor(1, 2, 4, 6), [1, 2, 2, 3], [0, 3, 1, 1])
        yield call(m.tensor(1, 2, 5), [1, 2, 4], [-1, 2])
        return
    yield call(m.tensor(1, 2, 3), [1, 2])
    yield call(m.tensor(1, 2, 3, 2), [1, 1, 0, 3])
    yield call(m.tensor(1, 2, 4), [-1, 2])


def padded(m, dims, least):
    """An operator of shape and padding, or its backward form."""
    if m.dtype == "bool":
        return
    shape = (1, *(3, 2, 3)[-dims:])
    pad = [1, 0, 0, 1, 1, 0][:2 * dims] if dims > 1 else [1, 2]
    if "backward" in m.op:
        out = [s + pad[2 * (dims - 1 - i)] + pad[2 * (dims - 1 - i) + 1] for i, s in enumerate(shape[1:])]
        grad = m.tensor(1, *out)  # whole numbers: PyTorch rounds narrow floats after each addition
        yield call(T(np.round(grad.data), m.dtype), m.tensor(*shape), pad)
        return
    yield call(m.tensor(*shape), pad)
    yield call(m.tensor(1, *shape), pad)
    yield call(m.tensor(*shape), [-1, 2] + [0] * (2 * dims - 2))
    yield call(m.tensor(*shape), [least] + [0] * (2 * dims - 1))
    yield call(m.tensor(2), pad)


for _dims in (1, 2, 3):
    for _kind in ("reflect", "replicate"):
        sample(f"pad_{_kind}{_dims}d")(lambda m, d=_dims, k=_kind: padded(m, d, 7 if k == "reflect" else 9))


# ---- factories


@sample("create_scalar")
def create_scalar(m):
    yield call(m.number(), dtype=D(m.dtype))
    yield call(3)
    yield call(2.5)


@sample("create_new")
def create_new(m):
    yield call(m.tensor(2), [3, 4])
    yield call(m.tensor(2), [], dtype=D("float64"))
    yield call(m.tensor(2), [-1])


@sample("create_new_full")
def create_new_full(m):
    yield call(m.tensor(2), [3, 4], m.number())
    yield call(m.tensor(2), [2], 2.5, dtype=D("float64"))


@sample("create_eye")
def create_eye(m):
    yield call(3, dtype=D(m.dtype))
    yield call(0)
    yield call(-1)


@sample("create_eye_m")
def create_eye_m(m):
    yield call(3, 5, dtype=D(m.dtype))
    yield call(4, 2)
    yield call(2, -1)


def of_numbers(m):
    return {} if m.dtype in ("bool", "complex64") else {"dtype": D(m.dtype)}


@sample("create_arange")
def create_arange(m):
    yield call(7, **of_numbers(m))
    yield call(2.5)
    yield call(0)
    yield call(-1)


@sample("create_arange_start")
def create_arange_start(m):
    yield call(2, 9, **of_numbers(m))
    yield call(0.5, 4)
    yield call(3, 3)
    yield call(4, 2)


@sample("create_arange_step")
def create_arange_step(m):
    yield call(1, 20, 3, **of_numbers(m))
    yield call(5, -5, -2)
    yield call(0, 1, 0.1)
    yield call(1.5, 9, 2.5, **({} if m.is_int else of_numbers(m)))
    yield call(0, 5, 0)
    yield call(0, 5, -1)
    yield call(0, float("nan"), 1)


@sample("create_linspace")
def create_linspace(m):
    yield call(0, 1, 7, **of_numbers(m))
    yield call(-3, 4.5, 31, **({} if m.is_int else of_numbers(m)))
    yield call(2, 5, 1)
    yield call(2, 5, 0)
    yield call(1 + 1j, 2, 3)
    yield call(2, 5, -1)


@sample("create_logspace")
def create_logspace(m):
    if m.is_float:
        yield call(0, 2, 5, **of_numbers(m))
    yield call(-1, 2, 4)
    yield call(0, 3, 4, 2.0)
    yield call(0, 3, -4)


@sample("create_linspace_tensors", "create_logspace_tensors")
def create_between_tensors(m):
    if m.dtype != "float32":
        return  # the dtype of the result is the default one
    yield call(m.integers(low=0, high=1), m.tensor(low=1, high=3), 5)
    yield call(m.tensor(1), m.tensor(), 3)


@sample("complex_parts")
def complex_parts(m):
    if m.dtype == "float16":
        return
    yield call(m.tensor(3, 4, low=0.5), m.tensor(3, 4))
    yield call(m.tensor(3, 1, low=0.5), m.tensor(4))
    yield call(m.tensor(3, low=0.5), m.tensor(3, dtype="float64"))


# ---- writes and comparisons


@sample("fill_tensor_")
def fill_tensor_(m):
    yield call(m.tensor(3, 4), m.tensor())
    yield call(m.tensor(3, 4), m.tensor(dtype="float32", low=0))
    yield call(m.tensor(3, 4), m.tensor(1))


@sample("resize_", "resize_as_")
def resize_(m):
    """To no more elements than there were, since new ones may be anything."""
    for size in ([12], [2, 3], [0, 5], [4, 3]):
        yield call(m.tensor(3, 4), m.tensor(*size) if m.op == "aten::resize_as_" else size)
    if m.op == "aten::resize_":
        yield call(m.tensor(3, 4), [2, -1])


@sample("to_device")
def to_device(m):
    for name in ("float32", "int64"):
        yield call(m.tensor(3, 4), "cpu", D(name))


@sample("to_dtype_layout")
def to_dtype_layout(m):
    yield call(m.tensor(3, 4))
    yield call(m.tensor(3, 4), dtype=D("float64"), copy=True)


@sample("to_other")
def to_other(m):
    for name in ("float32", "int64", "bool"):
        yield call(m.tensor(3, 4), m.tensor(2, dtype=name))


@sample("binary_real")
def binary_real(m):
    yield call(m.tensor(3, 4), m.tensor(3, 4))
    yield call(m.tensor(3, 1), m.tensor(4))
    yield call(m.tensor(5), m.tensor(5, dtype="float32"))


@sample("binary_same_dtype")
def binary_same_dtype(m):
    x = m.tensor(3, 4)
    yield call(x, x)
    yield call(x, m.tensor(3, 4))
    yield call(x, m.tensor(4))
    yield call(m.tensor(0), m.tensor(0))


@sample("check")
def check(m):
    yield call(m.tensor(3, dtype="bool", away=1) if m.dtype == "bool" else m.tensor(3, low=1), "all of them")
    yield call(m.tensor(0), "none of them")
    yield call(T(np.zeros((2,), bool), "bool"), "some of them")


@sample("close")
def close(m):
    x = m.tensor(3, 5)
    y = T(x.data.copy(), x.dtype)
    if m.is_float:
        y.data[0] += np.array([0, 1e-6, 1e-3, np.inf, np.nan], y.data.dtype)
        x.data[0, 4] = np.nan
        x.data[1, 0] = y.data[1, 0] = np.inf
    elif not m.dtype == "bool":
        y.data[0, 0] += 1
    yield call(x, y)
    yield call(x, y, 1e-2, 1e-2, True)
    yield call(x, y, 0.0, 0.0)
    yield call(x, m.tensor(5))
    yield call(x, m.tensor(5, dtype="float32"))
    yield call(x, y, -1.0)
