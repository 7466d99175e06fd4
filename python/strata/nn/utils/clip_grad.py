"""Limits on gradients. `foreach` is accepted for PyTorch's programs and changes nothing."""

from __future__ import annotations

import warnings

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def _as_list(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of all tensors together, as a 0-dim tensor on the first one's device.

    RuntimeError where error_if_nonfinite and it is infinite or NaN.
    """
    tensors = _as_list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return strata.tensor(0.0)
    with strata.no_grad():
        norms = [strata.linalg.vector_norm(tensor, norm_type).to(tensors[0].device) for tensor in tensors]
        total = strata.linalg.vector_norm(strata.stack(norms), norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales every gradient by max_norm / total_norm where that is below 1."""
    grads = [p.grad for p in _as_list(parameters) if p.grad is not None]
    if not grads:
        return
    with strata.no_grad():
        # Multiplying by 1 instead of asking whether to clip keeps the value on its device.
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(factor.to(grad.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients together so that their norm is at most max_norm; returns the norm before.

    RuntimeError where error_if_nonfinite and the norm is infinite or NaN.
    """
    given = parameters
    parameters = _as_list(parameters)
    if not parameters and hasattr(given, "__next__"):
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    grads = [p.grad for p in parameters if p.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Retired: use clip_grad_norm_."""
    warnings.warn(
        "`nn.utils.clip_grad_norm` is now deprecated in favor of `nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Limits every element of every gradient to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    with strata.no_grad():
        for parameter in _as_list(parameters):
            if parameter.grad is not None:
                parameter.grad.clamp_(min=-clip_value, max=clip_value)
