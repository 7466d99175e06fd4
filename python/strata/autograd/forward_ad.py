"""Forward-mode derivatives by PyTorch's names: dual tensors, whose tangents go through a function with its values.

Reverse mode computes them: the derivative of a gradient by what it is multiplied with. So a tangent costs two backward
passes when it is asked for, and functions must be twice differentiable.
"""

from __future__ import annotations

from collections import namedtuple

import strata
from strata import Tensor
from strata.autograd.graph import _leaves_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])
UnpackedDualTensor.__doc__ = "A dual tensor's value and its tangent, None where it has none."

_pairs: list[tuple[Tensor, Tensor]] | None = None  # of the level: inputs with the tangents that they were given


def enter_dual_level() -> int:
    """Begins the level in which dual tensors live. RuntimeError inside another one."""
    global _pairs
    if _pairs is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _pairs = []
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Ends the level: its tensors have no tangents from then on. RuntimeError outside of one."""
    global _pairs
    if _pairs is None:
        raise RuntimeError("Trying to exit a forward AD level but no level is currently active")
    _pairs = None


class dual_level:
    """A level within `with`."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *_: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The tensor with a tangent of its shape. RuntimeError outside of a level, or where shapes or dtypes differ; ValueError
    for tensors that cannot have gradients."""
    if _pairs is None:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.")
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not (tangent.is_floating_point() or tangent.is_complex()):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    if tensor.shape != tangent.shape or tensor.dtype != tangent.dtype:
        raise RuntimeError(
            f"make_dual: expected a tangent of the primal's shape {tuple(tensor.shape)} and dtype {tensor.dtype}, got "
            f"{tuple(tangent.shape)} and {tangent.dtype}"
        )
    with strata.enable_grad():
        dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    _pairs.append((dual, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A tensor's value and its tangent: None outside of a level, and where no dual tensor reached it."""
    pairs = _pairs or []
    if not pairs or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    learns = strata.is_grad_enabled() and _learns(tensor)
    primal = tensor.view_as(tensor) if learns else tensor.detach()
    for dual, tangent in pairs:
        if tensor is dual:
            return UnpackedDualTensor(primal, tangent)
    outer = strata.is_grad_enabled()
    with strata.enable_grad():
        weights = strata.zeros_like(tensor, requires_grad=True)
        inputs = [dual for dual, _ in pairs]
        grads = strata.autograd.grad(tensor, inputs, weights, retain_graph=True, create_graph=True, allow_unused=True)
        reached = [(g, t) for g, (_, t) in zip(grads, pairs, strict=True) if g is not None]
        if not reached:
            return UnpackedDualTensor(tensor, None)
        terms = [(g, t) for g, t in reached if g.requires_grad]
        if not terms:
            return UnpackedDualTensor(primal, strata.zeros_like(tensor))
        learns = learns or (outer and any(t.requires_grad for _, t in terms))
        (tangent,) = strata.autograd.grad([g for g, _ in terms], weights, [t for _, t in terms], retain_graph=True, create_graph=learns)
    return UnpackedDualTensor(primal, tangent)


def _learns(tensor: Tensor) -> bool:
    """Whether it also comes from tensors that learn, beside the leaves that stand for dual ones here."""
    own = {id(dual) for dual, _ in _pairs or []}
    return any(id(leaf) not in own for leaf in _leaves_of([tensor]))


def _is_fwd_grad_enabled() -> bool:
    """True."""
    return True


class _set_fwd_grad_enabled:
    """Accepted: tangents are computed when they are asked for."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> Any:
        return None

    def __exit__(self, *_: object) -> None:
        pass
