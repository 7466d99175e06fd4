"""Window functions of M points. sym: symmetric, for filters; else the first M points of a symmetric window of M + 1,
for spectra. dtype is float32 or float64, by default the default dtype. ValueError for other dtypes and for M below 0.

Source of the formulas: F. Harris, "On the use of windows for harmonic analysis", Proceedings of the IEEE 66 (1978).
"""

from __future__ import annotations

import math

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _made(
    name: str, M: int, sym: bool, options: dict[str, Any], first: float, step: Callable[[int], float],
    values: Callable[[Tensor], Tensor],
) -> Tensor:  # fmt: skip
    """values(k) at M numbers from `first` on, `step` of the window's period apart."""
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    dtype = options.pop("dtype", None) or strata.get_default_dtype()
    layout, grad = options.pop("layout", strata.strided), options.pop("requires_grad", False)
    device = options.pop("device", None)
    if options:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(options))}'")
    if layout is not strata.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (strata.float32, strata.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    if M <= 1:
        made = strata.ones(M, dtype=dtype, device=device)
    else:
        by = step(M - 1 if sym else M)
        made = values(strata.linspace(first, first + (M - 1) * by, M, dtype=strata.float64, device=device)).to(dtype)
    return made.requires_grad_() if grad else made


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A triangle from 0 to 1 and back."""
    return _made("bartlett", M, sym, options, -1.0, lambda period: 2 / period, lambda k: 1 - k.abs())


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Half a wave of the sine, sampled between its zeros."""
    period = max(M if sym else M + 1, 1)
    return _made("cosine", M, sym, options, math.pi / 2 / period, lambda _: math.pi / period, strata.sin)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """exp(-|n - center| / tau); the centre is the middle unless given, which a symmetric window refuses."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = (M if not sym and M > 1 else M - 1) / 2 if center is None else center
    return _made("exponential", M, sym, options, -middle / tau, lambda _: 1 / tau, lambda k: (-k.abs()).exp())


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """exp(-(n / std)^2 / 2), n counted from the middle."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    width = std * math.sqrt(2)
    middle = (M if not sym and M > 1 else M - 1) / 2
    return _made("gaussian", M, sym, options, -middle / width, lambda _: 1 / width, lambda k: (-k * k).exp())


def general_cosine(M: int, *, a: Sequence[float], sym: bool = True, **options: Any) -> Tensor:
    """The sum of cosines of 0, 1, 2... periods with the factors a, of alternating signs."""
    return _cosines("general_cosine", M, a, sym, options)


def _cosines(name: str, M: int, a: Sequence[float], sym: bool, options: dict[str, Any]) -> Tensor:
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")

    def values(k: Tensor) -> Tensor:
        total = strata.full_like(k, a[0])
        for i, factor in enumerate(a[1:], 1):
            total = total + (-1) ** i * factor * (i * k).cos()
        return total

    return _made(name, M, sym, options, 0.0, lambda period: 2 * math.pi / period, values)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi n / period)."""
    return _cosines("general_hamming", M, [alpha, 1.0 - alpha], sym, options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_hamming with alpha 0.54."""
    return _cosines("hamming", M, [0.54, 0.46], sym, options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_hamming with alpha 0.5: a raised cosine."""
    return _cosines("hann", M, [0.5, 0.5], sym, options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_cosine with the factors 0.42, 0.5 and 0.08."""
    return _cosines("blackman", M, [0.42, 0.5, 0.08], sym, options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """general_cosine with Nuttall's four factors."""
    return _cosines("nuttall", M, [0.3635819, 0.4891775, 0.1365995, 0.0106411], sym, options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """i0(beta sqrt(1 - (2 n / period - 1)^2)) / i0(beta), i0 the modified Bessel function."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    whole = strata.i0(strata.tensor(beta, dtype=strata.float64)).item()

    def values(k: Tensor) -> Tensor:
        return strata.i0(beta * (1 - k * k).clamp(min=0).sqrt()) / whole

    return _made("kaiser", M, sym, options, -1.0, lambda period: 2 / period, values)
