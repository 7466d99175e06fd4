"""MaskedTensor: a tensor with a mask of the elements that count. Pointwise operators keep the mask, reductions use it."""

from __future__ import annotations

import strata
from strata import Tensor, masked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

_REDUCTIONS = {name: getattr(masked, name) for name in "sum mean prod amax amin argmax argmin var std".split()}
_REDUCTIONS |= {"max": masked.amax, "min": masked.amin}
_VIEWS = frozenset(
    "reshape view transpose t permute flatten squeeze unsqueeze expand contiguous clone __getitem__ select narrow movedim".split()
)
_POINTWISE = frozenset(
    "abs neg exp log log1p expm1 sqrt rsqrt reciprocal sin cos tan tanh sigmoid relu square pow floor ceil round sign trunc "
    "clamp nan_to_num positive add sub rsub mul div true_divide maximum minimum fmod remainder float_power logaddexp "
    "eq ne lt le gt ge logical_and logical_or logical_not logical_xor bitwise_and bitwise_or to float double half type where "
    "__rsub__ __rtruediv__ __rpow__".split()
)


def _parts(x: Any) -> tuple[Any, Tensor | None]:
    return (x._masked_data, x._masked_mask) if isinstance(x, MaskedTensor) else (x, None)


class MaskedTensor(Tensor):
    """data, and mask: True where an element counts. ValueError where their shapes differ."""

    def __new__(cls, data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
        if data.shape != mask.shape:
            raise ValueError(f"data and mask must have the same shape, got {data.shape} and {mask.shape}")
        if mask.dtype != strata.bool:
            raise TypeError(f"mask must have dtype bool, got {mask.dtype}")
        made = Tensor._make_subclass(cls, strata.zeros((), dtype=data.dtype).expand(data.shape), False)
        made._masked_data = data.requires_grad_() if requires_grad else data
        made._masked_mask = mask
        return made

    def __init__(self, data: Tensor, mask: Tensor, requires_grad: bool = False) -> None:
        pass

    shape = property(lambda self: self._masked_data.shape)
    dtype = property(lambda self: self._masked_data.dtype)
    device = property(lambda self: self._masked_data.device)
    ndim = property(lambda self: self._masked_data.dim())
    requires_grad = property(lambda self: self._masked_data.requires_grad)
    is_leaf = property(lambda self: self._masked_data.is_leaf)
    grad_fn = property(lambda self: self._masked_data.grad_fn)
    is_sparse = False
    layout = property(lambda self: self._masked_data.layout)

    @property
    def grad(self) -> Any:
        """The gradient of the data, with the mask."""
        grad = self._masked_data.grad
        return None if grad is None else MaskedTensor(grad, self._masked_mask)

    def size(self, dim: int | None = None) -> Any:
        return self._masked_data.size() if dim is None else self._masked_data.size(dim)

    def dim(self) -> int:
        return self._masked_data.dim()

    def numel(self) -> int:
        return self._masked_data.numel()

    def get_data(self) -> Tensor:
        """The data, all of it."""
        return self._masked_data

    def get_mask(self) -> Tensor:
        """The mask."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """The data with `value` where the mask is False."""
        return self._masked_data.masked_fill(~self._masked_mask, value)

    def backward(self, gradient: Any = None, **kwargs: Any) -> None:
        self._masked_data.backward(_parts(gradient)[0], **kwargs)

    def requires_grad_(self, requires_grad: bool = True) -> MaskedTensor:
        self._masked_data.requires_grad_(requires_grad)
        return self

    def detach(self) -> MaskedTensor:
        return MaskedTensor(self._masked_data.detach(), self._masked_mask)

    def tolist(self) -> Any:
        return _listed(self._masked_data, self._masked_mask, lambda v: v, None)

    @classmethod
    def __torch_function__(cls, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        if name in _REDUCTIONS:
            x, *rest = args
            mask = x._masked_mask
            found = _REDUCTIONS[name](x._masked_data, *rest, mask=mask, **kwargs)
            dim, keepdim = (rest[0] if rest else kwargs.get("dim")), kwargs.get("keepdim", False)
            dims = list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
            for d in sorted((d % x.dim() for d in dims), reverse=True):
                mask = mask.any(d, keepdim=keepdim)
            return MaskedTensor(found, mask)
        if name in _VIEWS:
            x, *rest = args
            return MaskedTensor(func(x._masked_data, *rest, **kwargs), func(x._masked_mask, *rest, **kwargs))
        if name in ("softmax", "log_softmax"):
            x, dim = args[0], (args[1] if len(args) > 1 else kwargs["dim"])
            return MaskedTensor(getattr(masked, name)(x._masked_data, dim, mask=x._masked_mask), x._masked_mask)
        if name == "where" and len(args) == 3:
            parts = [(data, strata.ones_like(data, dtype=strata.bool) if mask is None else mask) for data, mask in map(_parts, args[1:])]
            return MaskedTensor(*(func(_parts(args[0])[0], a, b) for a, b in zip(*parts, strict=True)))
        if name not in _POINTWISE:
            raise NotImplementedError(f"{name}: not provided for masked tensors; call it on .to_tensor(value) or .get_data()")
        masks = [m for m in (_parts(a)[1] for a in args) if m is not None]
        if any(m.shape != masks[0].shape or not strata.equal(m, masks[0]) for m in masks[1:]):
            raise ValueError(
                "Input masks must match. If you need support for this, please open an issue on Github."
            )
        found = func(*(_parts(a)[0] for a in args), **kwargs)
        return MaskedTensor(found, masks[0].expand(found.shape))

    def __repr__(self, **_: Any) -> str:
        form = "{0:8.4f}".format if self.dtype.is_floating_point else str
        if self.dim() == 0:
            text = form(self._masked_data.item()) if self._masked_mask.item() else "--"
            return f"MaskedTensor({text}, {bool(self._masked_mask.item())})"
        body = _text(_listed(self._masked_data, self._masked_mask, form, None), 2)
        return f"MaskedTensor(\n{body}\n)"

    def __hash__(self) -> int:
        return id(self)


def _listed(data: Tensor, mask: Tensor, form: Callable, other: Any) -> Any:
    if data.dim() == 0:
        return form(data.item()) if mask.item() else other
    return [_listed(d, m, form, other) for d, m in zip(data.detach(), mask, strict=True)]


def _text(rows: Any, indent: int) -> str:
    """Nested lists with a line for each of the innermost."""
    pad = " " * indent
    if not rows or not isinstance(rows[0], list):
        width = max((8 if text is None else len(text) for text in rows), default=0)
        return f"{pad}[{', '.join('--'.rjust(width) if text is None else text for text in rows)}]"
    inner = ",\n".join(_text(row, indent + 2) for row in rows)
    return f"{pad}[\n{inner}\n{pad}]"


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor with a copy of the data, a leaf."""
    return MaskedTensor(data.detach().clone(), mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor over the data, whose history goes on."""
    return MaskedTensor(data, mask)


def is_masked_tensor(obj: Any) -> bool:
    """Whether it is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)
