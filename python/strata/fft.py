"""Fourier transforms. `norm` scales by 1/n on the way back ("backward", the default), forth ("forward") or by 1/sqrt(n)
both ways ("ortho"); `n` and `s` cut a dim or fill it with zeros first."""

from __future__ import annotations

import builtins
import itertools
import math

import strata
from strata import Tensor
from strata._dft import dft
from strata._into import stored as _stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft",
    "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip
_FORTH, _BACK = -1, 1


def _checked(name: str, x: Any) -> Tensor:
    """A floating-point or complex tensor. TypeError or RuntimeError."""
    if not isinstance(x, Tensor):
        raise TypeError(f"fft_{name}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}")
    if x.dtype in (strata.float16, strata.bfloat16):
        raise RuntimeError(f"Unsupported dtype {x.dtype}: fft.{name} takes float32, float64, complex64 and complex128")
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(strata.get_default_dtype())
    return x


def _complex(x: Tensor) -> Tensor:
    return x if x.is_complex() else x.to(strata.complex64 if x.dtype == strata.float32 else strata.complex128)


def _real(name: str, x: Any) -> Tensor:
    x = _checked(name, x)
    if x.is_complex():
        kind = "ComplexFloat" if x.dtype == strata.complex64 else "ComplexDouble"
        raise RuntimeError(f"{name} expects a real input tensor, but got {kind}")
    return x


def _dim(x: Tensor, dim: int) -> int:
    dims = builtins.max(x.dim(), 1)
    if not -dims <= dim < dims:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-dims}, {dims - 1}], but got {dim})")
    return dim % dims


def _resized(x: Tensor, dim: int, n: int) -> Tensor:
    """The dim cut, or filled with zeros, to n."""
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    have = x.shape[dim]
    if n <= have:
        return x.narrow(dim, 0, n) if n < have else x
    pad = [0, 0] * (x.dim() - 1 - dim) + [0, n - have]
    return strata.nn.functional.pad(x, pad)


def _scale(x: Tensor, norm: str | None, n: int, sign: int) -> Tensor:
    norm = norm or "backward"
    if norm not in ("backward", "forward", "ortho"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return x * (1 / math.sqrt(n))
    return x * (1 / n) if norm == ("forward" if sign == _FORTH else "backward") else x


def _along(x: Tensor, n: int | None, dim: int, norm: str | None, sign: int) -> Tensor:
    """The complex transform of one dim."""
    dim = _dim(x, dim)
    x = _resized(_complex(x), dim, x.shape[dim] if n is None else n)
    return _scale(dft(x, dim, sign), norm, x.shape[dim], sign)


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """sum over j of input[j] exp(-2 pi i j k / n) along a dim; complex."""
    return _stored("fft", _along(_checked("fft", input), n, dim, norm, _FORTH), out)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of fft."""
    return _stored("ifft", _along(_checked("ifft", input), n, dim, norm, _BACK), out)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The first n // 2 + 1 values of fft of a real tensor; the others are their conjugates."""
    return _stored("rfft", _one_sided(_real("rfft", input), n, dim, norm, _FORTH), out)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The first n // 2 + 1 values of ifft of a real tensor: the inverse of hfft."""
    return _stored("ihfft", _one_sided(_real("ihfft", input), n, dim, norm, _BACK), out)


def _one_sided(x: Tensor, n: int | None, dim: int, norm: str | None, sign: int) -> Tensor:
    dim = _dim(x, dim)
    found = _along(x, n, dim, norm, sign)
    return found.narrow(dim, 0, found.shape[dim] // 2 + 1)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of rfft: n real values, by default 2 * (size - 1), from the first n // 2 + 1 ones."""
    return _stored("irfft", _to_real(_checked("irfft", input), n, dim, norm, _BACK), out)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """fft of values of which the first n // 2 + 1 are given and the others are their conjugates: n real values."""
    return _stored("hfft", _to_real(_checked("hfft", input), n, dim, norm, _FORTH), out)


def _to_real(x: Tensor, n: int | None, dim: int, norm: str | None, sign: int) -> Tensor:
    x, dim = _complex(x), _dim(x, dim)
    n = 2 * (x.shape[dim] - 1) if n is None else n
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    half = _resized(x, dim, n // 2 + 1)
    rest = half.narrow(dim, 1, (n - 1) // 2).conj().flip(dim)
    # What has no partner counts by its real part alone.
    whole = dft(strata.cat([half, rest], dim), dim, sign)
    return _scale(whole.real, norm, n, sign)


def _sizes(x: Tensor, s: Sequence[int] | None, dim: Sequence[int] | int | None) -> tuple[list[int | None], list[int]]:
    """The lengths to make of dims, and the dims, ascending in the order given. RuntimeError where they do not fit."""
    dim = [dim] if isinstance(dim, int) else dim
    s = [s] if isinstance(s, int) else s
    if dim is None:
        if s is not None and len(s) > x.dim():
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {x.dim()} dimensions.")
        dims = list(range(x.dim())) if s is None else list(range(x.dim() - len(s), x.dim()))
    else:
        dims = [_dim(x, d) for d in itertools.islice(dim, x.dim() + 1)]  # one too many is twice the same
    if len(builtins.set(dims)) != len(dims):
        raise RuntimeError("FFT dims must be unique")
    if s is not None and len(s) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    return [None] * len(dims) if s is None else [None if n == -1 else n for n in s], dims


def _many(x: Tensor, s: Any, dim: Any, norm: str | None, sign: int) -> Tensor:
    lengths, dims = _sizes(x, s, dim)
    x = _complex(x)
    for n, d in zip(lengths, dims, strict=True):
        x = _along(x, n, d, norm, sign)
    return x


def fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """fft of several dims, all by default. s: their lengths (-1: as they are)."""
    return _stored("fftn", _many(_checked("fftn", input), s, dim, norm, _FORTH), out)


def ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of fftn."""
    return _stored("ifftn", _many(_checked("ifftn", input), s, dim, norm, _BACK), out)


def _many_one_sided(x: Tensor, s: Any, dim: Any, norm: str | None, sign: int) -> Tensor:
    lengths, dims = _sizes(x, s, dim)
    if not dims:
        raise RuntimeError("must transform at least one axis")
    x = _one_sided(x, lengths[-1], dims[-1], norm, sign)
    for n, d in zip(lengths[:-1], dims[:-1], strict=True):
        x = _along(x, n, d, norm, sign)
    return x


def _many_to_real(x: Tensor, s: Any, dim: Any, norm: str | None, sign: int) -> Tensor:
    lengths, dims = _sizes(x, s, dim)
    if not dims:
        raise RuntimeError("must transform at least one axis")
    for n, d in zip(lengths[:-1], dims[:-1], strict=True):
        x = _along(x, n, d, norm, sign)
    return _to_real(x, lengths[-1], dims[-1], norm, sign)


def rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """rfft of the last of several dims, fft of the others."""
    return _stored("rfftn", _many_one_sided(_real("rfftn", input), s, dim, norm, _FORTH), out)


def irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of rfftn; s says whether the last dim was even or odd."""
    return _stored("irfftn", _many_to_real(_checked("irfftn", input), s, dim, norm, _BACK), out)


def hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """hfft of the last of several dims, fft of the others."""
    return _stored("hfftn", _many_to_real(_checked("hfftn", input), s, dim, norm, _FORTH), out)


def ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of hfftn."""
    return _stored("ihfftn", _many_one_sided(_real("ihfftn", input), s, dim, norm, _BACK), out)


def _of_two(many: Any) -> Any:
    """The form of a function of several dims whose default is the last two."""

    def function(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
        return many(input, s, dim, norm, out=out)

    function.__name__ = function.__qualname__ = many.__name__[:-1] + "2"
    function.__doc__ = f"{many.__name__} of the last two dims, or of those named."
    return function


fft2, ifft2, rfft2, irfft2 = _of_two(fftn), _of_two(ifftn), _of_two(rfftn), _of_two(irfftn)
hfft2, ihfft2 = _of_two(hfftn), _of_two(ihfftn)


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    """The frequencies of fft's values, in cycles per unit where samples are d apart: 0, 1, ..., -2, -1 over n * d."""
    dtype = dtype or strata.get_default_dtype()
    k = strata.cat([strata.arange(0, (n + 1) // 2, device=device), strata.arange(-(n // 2), 0, device=device)])
    return (k.to(dtype) * (1.0 / (n * d))).requires_grad_(requires_grad)


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    """The frequencies of rfft's values."""
    dtype = dtype or strata.get_default_dtype()
    return (strata.arange(0, n // 2 + 1, device=device).to(dtype) * (1.0 / (n * d))).requires_grad_(requires_grad)


def _all_dims(x: Tensor, dim: Any) -> list[int]:
    return list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Frequency 0 into the middle of the dims."""
    dims = _all_dims(input, dim)
    return strata.roll(input, [input.shape[d] // 2 for d in dims], dims)


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of fftshift."""
    dims = _all_dims(input, dim)
    return strata.roll(input, [(input.shape[d] + 1) // 2 for d in dims], dims)
