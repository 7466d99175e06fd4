"""Lists of tensors as the fused update kernels take them: one real dtype and one device a call."""

from __future__ import annotations

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .optimizer import Optimizer


def _as_real(lists: tuple[list[Tensor], ...]) -> tuple[list[Tensor], ...]:
    """Complex tensors as real ones with a last dimension of 2, others as they are."""
    return tuple([strata.view_as_real(t) if t.is_complex() else t for t in tensors] for tensors in lists)


def by_kind(*lists: list[Tensor]) -> Iterator[tuple[list[Tensor], ...]]:
    """The lists, split alike so that the first one's tensors share dtype and device; an empty list stays empty."""
    params = lists[0]
    dtype, device = params[0].dtype, params[0].device
    if all(p.dtype == dtype and p.device == device for p in params):
        yield _as_real(lists) if dtype.is_complex else lists
        return
    kinds: dict[Any, list[int]] = {}
    for i, p in enumerate(params):
        kinds.setdefault((p.dtype, p.device), []).append(i)
    for (dtype, _), indices in kinds.items():
        split = tuple([values[i] for i in indices] if values else [] for values in lists)
        yield _as_real(split) if dtype.is_complex else split


def as_scalar(value: float | Tensor) -> float | Tensor:
    """A one-element tensor as 0-dim, so that a graph reads it anew at each step; a number as float."""
    return value.reshape(()) if isinstance(value, Tensor) else float(value)


def scaling(optimizer: Optimizer) -> dict[str, Tensor]:
    """What a gradient scaler left on an optimiser whose kernel unscales by itself."""
    names = ("grad_scale", "found_inf")
    return {name: getattr(optimizer, name) for name in names if getattr(optimizer, name, None) is not None}
