"""Discrete Fourier transforms of one dim, built of matrix products with small matrices and of products with roots of 1.

A length whose prime factors are small is split into radices of at most 61 (Cooley and Tukey: n * (sum of radices)
multiplications); any other becomes a convolution of a length that is a power of two (Bluestein). The order of sums
depends on the length alone, so results do not depend on the number of threads.
"""

from __future__ import annotations

import functools
import math

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["dft"]

_LARGEST_PRIME = 61
_RADIX = 32  # up to here one product with a matrix is the quickest


def _roots(count: int, exponents: Tensor, sign: int, dtype: strata.dtype) -> Tensor:
    """exp(sign * 2 pi i * exponents / count), rounded once from float64; exponents are int64."""
    angle = (exponents % count).double() * (sign * 2 * math.pi / count)
    return strata.complex(angle.cos(), angle.sin()).to(dtype)


def _primes(n: int) -> list[int]:
    """The prime factors, ascending."""
    found, p, rest = [], 2, n
    while p * p <= rest:
        while rest % p == 0:
            found.append(p)
            rest //= p
        p += 1
    return found + [rest] * (rest > 1)


def _divisor_near(n: int, wanted: float) -> int:
    """The divisor of n, at most 61 and not 1, that is nearest to `wanted`."""
    divisors = [d for d in range(2, min(n, _LARGEST_PRIME) + 1) if n % d == 0]
    return min(divisors, key=lambda d: abs(math.log(d / wanted)))


@functools.lru_cache(maxsize=64)
def _matrix(n: int, sign: int, dtype: strata.dtype, device: strata.device) -> Tensor:
    i = strata.arange(n, device=device)
    return _roots(n, i[:, None] * i, sign, dtype)


@functools.lru_cache(maxsize=64)
def _twiddles(r: int, m: int, sign: int, dtype: strata.dtype, device: strata.device) -> Tensor:
    return _roots(r * m, strata.arange(r, device=device)[:, None] * strata.arange(m, device=device), sign, dtype)


@functools.lru_cache(maxsize=16)
def _chirp(n: int, size: int, sign: int, dtype: strata.dtype, device: strata.device) -> tuple[Tensor, Tensor]:
    """exp(sign pi i k^2 / n), and the transform of its conjugate as a filter of length `size`."""
    k = strata.arange(n, device=device)
    chirp = _roots(2 * n, k * k, sign, strata.complex128)
    kernel = chirp.new_zeros(size)
    kernel[:n] = chirp.conj()
    kernel[size - n + 1 :] = chirp[1:].conj().flip(0)
    return chirp.to(dtype), _last(kernel, -1).to(dtype)


def _last(x: Tensor, sign: int) -> Tensor:
    """The transform of the last dim of a complex tensor."""
    n = x.shape[-1]
    if n == 1:
        return x.clone()
    primes = _primes(n)
    if primes[-1] > _LARGEST_PRIME:
        return _by_convolution(x, sign)
    if n <= _RADIX or len(primes) == 1:
        return x @ _matrix(n, sign, x.dtype, x.device)
    steps = math.ceil(math.log(n) / math.log(_RADIX))
    r = _divisor_near(n, n ** (1 / steps))
    m = n // r
    parts = _matrix(r, sign, x.dtype, x.device) @ x.reshape(*x.shape[:-1], r, m)
    parts = _last(parts * _twiddles(r, m, sign, x.dtype, x.device), sign)
    return parts.mT.reshape(x.shape)


def _by_convolution(x: Tensor, sign: int) -> Tensor:
    n = x.shape[-1]
    size = 1 << (2 * n - 2).bit_length()
    chirp, kernel = _chirp(n, size, sign, x.dtype, x.device)
    padded = strata.nn.functional.pad(x * chirp, (0, size - n))
    found = _last(_last(padded, -1) * kernel, 1)[..., :n]
    return found * (chirp / size)


class _Transform(strata.autograd.Function):
    """Linear and symmetric: its adjoint is the transform of the other sign."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, sign: int) -> Tensor:
        ctx.dim, ctx.sign = dim, sign
        if x.numel() == 0:
            return x.clone()
        moved = _last(x.movedim(dim, -1).contiguous(), sign)
        return moved.movedim(-1, dim).contiguous()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return _Transform.apply(grad, ctx.dim, -ctx.sign), None, None


def dft(x: Tensor, dim: int, sign: int) -> Tensor:
    """sum over j of x[j] exp(sign * 2 pi i j k / n) along a dim of a complex tensor; no scaling."""
    return _Transform.apply(x, dim, sign)
