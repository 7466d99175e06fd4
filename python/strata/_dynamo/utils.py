"""Helpers that programs import from PyTorch's capture of bytecode."""

from __future__ import annotations

import strata
from strata import Tensor, _device_names
from strata._bytecode.reasons import counters as counters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["counters", "is_compile_supported", "same"]


def is_compile_supported(device_type: Any) -> bool:
    """Whether strata.compile makes kernels for a device: for the CPU and for those that a plugin offers."""
    name = device_type.type if isinstance(device_type, strata.device) else str(device_type).partition(":")[0]
    return name == "cpu" or _device_names.is_offered(name)


def same(ref: Any, res: Any, *, tol: float = 1e-4, equal_nan: bool = False, exact_dtype: bool = True) -> bool:
    """Whether two nests of results agree: tensors by allclose with `tol` as both bounds, other values by ==."""
    if isinstance(ref, (list, tuple)):
        how = {"tol": tol, "equal_nan": equal_nan, "exact_dtype": exact_dtype}
        return isinstance(res, (list, tuple)) and len(ref) == len(res) and all(same(a, b, **how) for a, b in zip(ref, res, strict=True))
    if isinstance(ref, dict):
        how = {"tol": tol, "equal_nan": equal_nan, "exact_dtype": exact_dtype}
        return isinstance(res, dict) and ref.keys() == res.keys() and all(same(ref[k], res[k], **how) for k in ref)
    if not isinstance(ref, Tensor):
        return bool(ref == res) if not isinstance(ref, float) else strata.allclose(strata.tensor(ref), strata.tensor(res), tol, tol, equal_nan)
    if not isinstance(res, Tensor) or ref.shape != res.shape or (exact_dtype and ref.dtype != res.dtype):
        return False
    if not (ref.is_floating_point() or ref.is_complex()):
        return bool(strata.equal(ref, res.to(ref.dtype)))
    return strata.allclose(ref, res.to(ref.dtype), tol, tol, equal_nan)
