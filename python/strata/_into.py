"""Results of Python functions into their `out=`."""

from __future__ import annotations

from strata import Tensor

__all__ = ["stored"]


def stored(name: str, value: Tensor, out: Tensor | None) -> Tensor:
    """out, resized and filled with the value of function `name`; the value itself without one.

    What can't be kept there (another device, a complex value in a real tensor) raises RuntimeError and leaves out as it was.
    """
    if out is None:
        return value
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}: out: expected a Tensor, got {type(out).__name__}")
    if out.device != value.device:
        raise RuntimeError(f"{name}: out: expected a tensor on {value.device}, where the result is, got one on {out.device}")
    if value.is_complex() and not out.is_complex():
        raise RuntimeError(f"{name}: result type {value.dtype} can't be cast to the desired output type {out.dtype}")
    return out.resize_(value.shape).copy_(value)
