"""Reductions, softmax and normalisation over the elements that a mask picks: `mask` is True where an element counts.

Without a mask all count. Elements that do not count are, in results of the input's shape, the operation's neutral value.
"""

from __future__ import annotations

import strata
from strata import Tensor, _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm",
    "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip


def _filled(x: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    if mask is None:
        return x
    if mask.dtype != strata.bool:
        mask = mask.to(strata.bool)
    return strata.where(mask, x, strata.full((), value, dtype=x.dtype, device=x.device))


def _dims(x: Tensor, dim: Any) -> list[int]:
    if dim is None or dim == ():
        return list(range(x.dim()))
    return [dim] if isinstance(dim, int) else list(dim)


def _lowest(x: Tensor) -> Any:
    return False if x.dtype == strata.bool else -strata.inf if x.is_floating_point() else strata.iinfo(x.dtype).min


def _highest(x: Tensor) -> Any:
    return True if x.dtype == strata.bool else strata.inf if x.is_floating_point() else strata.iinfo(x.dtype).max


def _with_dtype(x: Tensor, dtype: Any) -> Tensor:
    return x if dtype is None else x.to(dtype)


def sum(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:  # noqa: A001
    """The sum; 0 where nothing counts."""
    return _filled(_with_dtype(input, dtype), mask, 0).sum(_dims(input, dim), keepdim=keepdim)


def prod(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The product; 1 where nothing counts."""
    x = _filled(_with_dtype(input, dtype), mask, 1)
    for d in sorted((d % max(x.dim(), 1) for d in _dims(input, dim)), reverse=True):
        x = x.prod(d, keepdim=keepdim)
    return x


def amax(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The largest; the lowest number there is where nothing counts."""
    x = _with_dtype(input, dtype)
    return _filled(x, mask, _lowest(x)).amax(_dims(input, dim), keepdim=keepdim)


def amin(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The smallest; the highest number there is where nothing counts."""
    x = _with_dtype(input, dtype)
    return _filled(x, mask, _highest(x)).amin(_dims(input, dim), keepdim=keepdim)


def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Where the largest stands, as numbers of `dtype`: the input's, as PyTorch has it, unless one is given."""
    return _filled(input, mask, _lowest(input)).argmax(dim, keepdim=keepdim).to(input.dtype if dtype is None else dtype)


def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Where the smallest stands, as argmax."""
    return _filled(input, mask, _highest(input)).argmin(dim, keepdim=keepdim).to(input.dtype if dtype is None else dtype)


def _count(input: Tensor, dim: Any, keepdim: bool, mask: Tensor | None) -> Tensor:
    ones = strata.ones(input.shape, dtype=strata.int64, device=input.device)
    return sum(ones, dim, keepdim=keepdim, mask=mask)


def mean(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The mean; NaN where nothing counts."""
    total = sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count(input, dim, keepdim, mask)


def var(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: int | None = None, keepdim: bool = False,
    dtype: Any = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The variance, over the count less `correction` (unbiased: 1, the default; else 0)."""
    less = correction if correction is not None else (1 if unbiased is None else int(unbiased))
    x = _with_dtype(input, dtype)
    x = x if x.is_floating_point() or x.is_complex() else x.to(strata.get_default_dtype())
    centre = mean(x, dim, keepdim=True, mask=mask)
    apart = x - centre
    squares = sum(apart * apart.conj() if x.is_complex() else apart.square(), dim, keepdim=keepdim, mask=mask)
    return squares / (_count(input, dim, keepdim, mask) - less).clamp(min=0)


def std(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, *, correction: int | None = None, keepdim: bool = False,
    dtype: Any = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The square root of var."""
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


def norm(
    input: Tensor, ord: float = 2.0, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None  # noqa: A002
) -> Tensor:
    """The vector norm of that order."""
    x = _with_dtype(input, dtype)
    fill = strata.inf if ord == -strata.inf else 0
    return strata.linalg.vector_norm(_filled(x, mask, fill), ord, _dims(input, dim), keepdim)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The lower median of a dim; NaN where nothing counts (of integers, whatever that is as one)."""
    x = _with_dtype(input, dtype)
    wide = x if x.is_floating_point() else x.to(strata.float64)
    return strata.nanmedian(_filled(wide, mask, strata.nan), dim, keepdim).values.to(x.dtype)


def logsumexp(input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """log(sum(exp)); of integers, in the default dtype."""
    x = _with_dtype(input, dtype)
    x = x if x.is_floating_point() or x.is_complex() else x.to(strata.get_default_dtype())
    return _filled(x, mask, -strata.inf).logsumexp(_dims(input, dim), keepdim)


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Tensor | None = None, other_mask: Tensor | None = None
) -> Tensor:
    """log(exp(input) + exp(other)) with a mask for each."""
    a, b = _with_dtype(input, dtype), _with_dtype(other, dtype)
    return strata.logaddexp(_filled(a, input_mask, -strata.inf), _filled(b, other_mask, -strata.inf))


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running sums, in the input's dtype unless one is given."""
    return _filled(_with_dtype(input, dtype), mask, 0).cumsum(dim, dtype=dtype or input.dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running products, in the input's dtype unless one is given."""
    return _filled(_with_dtype(input, dtype), mask, 1).cumprod(dim, dtype=dtype or input.dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax over what counts, 0 elsewhere; NaN along a dim where nothing counts."""
    return _filled(_with_dtype(input, dtype), mask, -strata.inf).softmax(dim)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of softmax."""
    return _filled(_with_dtype(input, dtype), mask, -strata.inf).log_softmax(dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """softmax of -input."""
    return softmax(-input, dim, dtype=dtype, mask=mask)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None  # noqa: A002
) -> Tensor:
    """Over its norm along a dim, at least eps."""
    x = _with_dtype(input, dtype)
    length = norm(x, ord, dim, keepdim=True, mask=mask)
    return _filled(x, mask, 0) / strata.maximum(length, length.new_full((), eps))


__getattr__, __dir__ = _lazy.of(globals(), {"._masked_tensor": "MaskedTensor as_masked_tensor is_masked_tensor masked_tensor"})
