"""Numbers that a dtype cannot hold: refused in PyTorch's words where they become elements, wrapped where they stand for a
tensor in arithmetic. The expectations are those of PyTorch 2.13."""

from __future__ import annotations

import math

import pytest
import strata

INTS = {"uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t"}
RANGE = {"uint8": 255, "int8": 127, "int16": 32767, "int32": 2**31 - 1, "int64": 2**63 - 1}
C_NAMES = {**INTS, "float32": "float", "float64": "double", "complex64": r"c10::complex<float>", "float16": "c10::Half"}


def zeros(dtype, *size):
    return strata.zeros(*(size or (3,)), dtype=getattr(strata, dtype))


def setitem(x, index, value):
    x[index] = value
    return x


# Each writes `value` into a tensor of the dtype, and gives a tensor that holds it.
WRITERS = {
    "fill_": lambda d, v: zeros(d).fill_(v),
    "fill": lambda d, v: strata.fill(zeros(d), v),
    "full": lambda d, v: strata.full((2,), v, dtype=getattr(strata, d)),
    "full out": lambda d, v: strata.full((2,), v, out=zeros(d, 2)),
    "full_like": lambda d, v: strata.full_like(zeros(d), v),
    "new_full": lambda d, v: strata.ones(1).new_full((2,), v, dtype=getattr(strata, d)),
    "scalar_tensor": lambda d, v: strata.scalar_tensor(v, dtype=getattr(strata, d)),
    "setitem": lambda d, v: setitem(zeros(d), 0, v),
    "setitem slice": lambda d, v: setitem(zeros(d), slice(0, 2), v),
    "setitem mask": lambda d, v: setitem(zeros(d), strata.tensor([True, False, True]), v),
    "setitem index": lambda d, v: setitem(zeros(d), strata.tensor([0, 2]), v),
    "masked_fill": lambda d, v: zeros(d).masked_fill(strata.tensor([True, False, True]), v),
    "masked_fill_": lambda d, v: zeros(d).masked_fill_(strata.tensor([True, False, True]), v),
    "index_fill": lambda d, v: zeros(d).index_fill(0, strata.tensor([0]), v),
    "scatter": lambda d, v: zeros(d).scatter(0, strata.tensor([0]), v),
    "scatter reduce": lambda d, v: strata.ones(3, dtype=getattr(strata, d)).scatter(0, strata.tensor([0]), v, reduce="multiply"),
    "fill_diagonal_": lambda d, v: zeros(d, 2, 2).fill_diagonal_(v),
    "pad": lambda d, v: strata.constant_pad_nd(zeros(d), [1, 1], v),
    "threshold": lambda d, v: strata.nn.functional.threshold(zeros(d), 1, v),
}
HALF_ROUNDS = {"setitem", "setitem slice", "setitem mask", "setitem index", "scalar_tensor"}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("dtype", INTS)
def test_integers_out_of_range(writer, dtype):
    write = WRITERS[writer]
    highest = RANGE[dtype]
    text = f"value cannot be converted to type {INTS[dtype]} without overflow"
    bad = [math.nan, math.inf, -math.inf, 1e300, float(highest) * 2 + 2]
    if highest < 2**62:
        bad += [highest + 1, 2**40, -(2**40)]
    if dtype == "int64":
        bad += [2**63]
    if writer not in ("index_fill",):
        bad += [1j]
    for value in bad:
        with pytest.raises(RuntimeError, match=text):
            write(dtype, value)
    assert highest in write(dtype, highest).flatten().tolist()
    assert 3 in write(dtype, 3.7).flatten().tolist()
    assert 1 in write(dtype, True).flatten().tolist()
    if dtype == "uint8":
        assert 255 in write(dtype, -1).flatten().tolist() and 56 in write(dtype, -200).flatten().tolist()
        for value in (-256, -1.0):
            with pytest.raises(RuntimeError, match=text):
                write(dtype, value)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(("dtype", "bad"), [("float32", 1e39), ("float32", -1e300), ("complex64", 1e300), ("float16", 70000.0),
                                            ("float16", 10**10), ("float32", 1j), ("float64", 2 + 1j)])
def test_floats_out_of_range(writer, dtype, bad):
    if (writer == "threshold" and dtype == "complex64") or (writer == "index_fill" and isinstance(bad, complex)):
        return
    if dtype == "float16" and writer in HALF_ROUNDS:
        assert math.inf in WRITERS[writer](dtype, bad).flatten().tolist()
        return
    with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
        WRITERS[writer](dtype, bad)
    for good in (math.inf, -math.inf, 0.5):
        assert good in [v.real if isinstance(v, complex) else v for v in WRITERS[writer](dtype, good).flatten().tolist()]
    assert any(math.isnan(v.real) for v in WRITERS[writer](dtype, math.nan).flatten().tolist())


def test_an_error_writes_nothing():
    x = strata.arange(4).to(strata.uint8)
    for index in (0, slice(0, 2), strata.tensor([0, 2]), strata.tensor([True, False, True, False])):
        with pytest.raises(RuntimeError, match="without overflow"):
            x[index] = 300
    assert x.tolist() == [0, 1, 2, 3]


def test_arguments_of_kernels():
    i8, f16, f32 = strata.ones(3, dtype=strata.int8), strata.ones(3, dtype=strata.float16), strata.ones(3)
    for call in (lambda: strata.clamp(i8, min=300), lambda: strata.clamp(i8, max=-200), lambda: i8.clamp_(min=300),
                 lambda: strata.clamp_min(i8, 300), lambda: strata.clamp_max(i8, 300), lambda: strata.add(i8, i8, alpha=300),
                 lambda: strata.sub(i8, i8, alpha=300), lambda: strata.addcmul(i8, i8, i8, value=300),
                 lambda: strata.nn.functional.hardtanh(i8, -1, 300), lambda: strata.clamp(f16, min=70000.0),
                 lambda: strata.clamp(f32, max=1e39), lambda: strata.nn.functional.leaky_relu(f32, 1e39),
                 lambda: strata.lerp(f32, f32, 1e39), lambda: strata.where(i8 > 0, 300, i8), lambda: strata.where(i8 > 0, i8, 300),
                 lambda: strata.where(f32 > 0, 1e39, f32), lambda: strata.addcdiv(f32, f32, f32, value=1e39),
                 lambda: strata.addmm(strata.ones(2, 2, dtype=strata.int8), strata.ones(2, 2, dtype=strata.int8),
                                      strata.ones(2, 2, dtype=strata.int8), beta=300),
                 lambda: i8**300, lambda: i8.pow_(300), lambda: i8.index_add(0, strata.tensor([0]), i8[:1], alpha=300)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
            call()


def test_numbers_beside_tensors_wrap():
    u8, i32 = strata.ones(2, dtype=strata.uint8), strata.ones(2, dtype=strata.int32)
    assert (u8 + 300).tolist() == [45, 45] and (u8 * 300).tolist() == [44, 44] and (300 - u8).tolist() == [43, 43]
    assert (i32 + 2**40).tolist() == [1, 1] and (u8 & 300).tolist() == [0, 0]
    assert strata.trapezoid(u8, dx=300).item() == 300 and strata.cumulative_trapezoid(i32, dx=2**40).tolist() == [float(2**40)]
    assert strata.zeros(1, dtype=strata.bool).fill_(1j).item() is True
    assert strata.where(u8 > 0, 1e10, strata.ones(2, dtype=strata.float16)).tolist() == [math.inf, math.inf]
    assert (strata.ones(2, dtype=strata.float16) * 1e10).tolist() == [math.inf, math.inf]


def test_empty_tensors_have_any_sizes_beside_the_empty_one():
    huge = strata.empty(0, dtype=strata.bool).repeat(5, 2**31, 2**31 - 1, 2)
    assert huge.shape == (5, 2**31, 2**31 - 1, 0)
    with pytest.raises(TypeError, match=r"einsum\(\): a subscripts list: expected numbers and Ellipsis, got Tensor"):
        strata.einsum(strata.ones(2), [strata.ones(2), 1])


@pytest.mark.parametrize("dtype, start, end", [("uint8", 0, 300), ("uint8", -300, 0), ("int16", 0, 1e5), ("int64", 0, math.inf), ("float16", 0, 1e5), ("float32", 1e300, 0)])
@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_ends_of_ranges(name, dtype, start, end):
    make = getattr(strata, name)
    with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
        make(start, end, 3, dtype=getattr(strata, dtype))
    assert make(start, end, 0, dtype=getattr(strata, dtype)).shape == (0,)


def test_ends_that_wrap():
    assert strata.linspace(-1, 5, 3, dtype=strata.uint8).tolist() == [255, 130, 5]
    assert strata.linspace(0, math.inf, 2).isnan().all()
