"""`make_tensor`: uniform random tensors of any dtype, for tests."""

import math

import strata


def _limits(dtype):
    """(lowest, highest, default low, default high); the highest is exclusive for integers."""
    if dtype is strata.bool:
        return 0, 2, 0, 2
    if dtype.is_floating_point or dtype.is_complex:
        info = strata.finfo(dtype)
        return info.min, info.max, -9, 9
    info = strata.iinfo(dtype)
    # randint's bounds are int64, so the last value of int64 (and above) cannot be drawn.
    return max(info.min, -(2**63)), min(info.max + 1, 2**63 - 1), -9, 10


def _range(dtype, low, high):
    lowest, highest, default_low, default_high = _limits(dtype)
    low = default_low if low is None else low
    high = default_high if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"make_tensor: low and high must be numbers, got low={low} and high={high}")
    if low >= high:
        raise ValueError(
            f"make_tensor: low must be less than high, got {low} >= {high}; strata.full makes a constant tensor"
        )
    if high < lowest or low >= highest:
        raise ValueError(f"make_tensor: [{low}, {high}) has no value of {dtype}, which holds [{lowest}, {highest})")
    low, high = (min(max(value, lowest), highest) for value in (low, high))
    if dtype.is_floating_point or dtype.is_complex:
        return low, high
    return math.ceil(low), math.ceil(high)


def _uniform(t, low, high):
    if high - low >= strata.finfo(t.dtype).max:
        # The width itself would overflow the dtype.
        return t.uniform_(low / 2, high / 2).mul_(2)
    return t.uniform_(low, high)


def make_tensor(
    *shape,
    dtype,
    device,
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """A tensor of uniform random values from [low, high).

    Args:
        shape: sizes, or one sequence of sizes.
        dtype, device: of the result.
        low, high: range, clamped to the finite values of the dtype. Defaults: [-9, 9) for floating point and
            complex (both parts), [-9, 10) for integers ([0, 10) if unsigned), both values for bool.
        requires_grad: for floating point and complex dtypes.
        noncontiguous: every second element of a tensor twice as wide, starting at the second (from 2 elements on).
        exclude_zero: zeros become 1 (integers, bool) or the smallest normal number.
        memory_format: of the result; not together with `noncontiguous`.

    Raises:
        ValueError: empty or foreign range, `requires_grad` for integers, two layouts asked for.
    """
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = shape[0]
    shape = tuple(shape)
    inexact = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise ValueError("make_tensor: noncontiguous and memory_format exclude each other; give one")
    if requires_grad and not inexact:
        raise ValueError(f"make_tensor: requires_grad=True needs a floating point or complex dtype, got {dtype}")
    low, high = _range(dtype, low, high)
    noncontiguous = noncontiguous and math.prod(shape) > 1
    full = (*shape[:-1], 2 * shape[-1]) if noncontiguous else shape
    if inexact:
        result = strata.empty(full, dtype=dtype, device=device)
        _uniform(strata.view_as_real(result) if dtype.is_complex else result, low, high)
    else:
        result = strata.randint(low, high, full, dtype=dtype, device=device)
    if noncontiguous:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result.masked_fill_(result == 0, strata.finfo(dtype).tiny if inexact else 1)
    return result.requires_grad_(requires_grad) if inexact else result
