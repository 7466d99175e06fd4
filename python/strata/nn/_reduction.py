"""Names of loss reductions and the numbers that the operators take for them."""

from __future__ import annotations

import warnings

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """Number of a reduction name; ValueError for another word."""
    number = _NUMBERS.get(reduction)
    if number is None:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=3)
    return number


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Reduction name for the two retired flags; an unset flag counts as True."""
    by_mean = size_average is None or size_average
    reduced = reduce is None or reduce
    reduction = ("mean" if by_mean else "sum") if reduced else "none"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=3,
        )
    return reduction


def resolve(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction asked for, the retired flags winning where either is set."""
    if size_average is None and reduce is None:
        return reduction
    return legacy_get_string(size_average, reduce)
