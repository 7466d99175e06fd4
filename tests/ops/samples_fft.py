"""Samples of Fourier transforms: lengths 1, odd, even, prime and composed, of one dim and several."""

from __future__ import annotations

import numpy as np
from kit import D, T, call, sample


def half_of(m, *shape: int, dim: int = -1) -> T:
    """What a real signal of an even length has: its first and last values are real."""
    t = m.tensor(*shape)
    if m.is_complex:
        ends = np.moveaxis(t.data, dim, -1)
        ends[..., 0], ends[..., -1] = ends[..., 0].real, ends[..., -1].real
    return t


@sample("fft_c2c")
def fft_c2c(m):
    yield call(m.tensor(3, 5), [1], 0, True)
    yield call(m.tensor(4, 3), [0], 1, False)
    yield call(m.tensor(2, 3, 4), [2, 0], 2, True)
    yield call(m.tensor(2, 67), [1], 2, False)
    yield call(m.tensor(40, 6), [1], 0, True)
    yield call(m.tensor(1), [0], 0, True)
    yield call(m.tensor(2, 3), [], 0, True)


@sample("fft_r2c")
def fft_r2c(m):
    yield call(m.tensor(3, 5), [1], 0, True)
    yield call(m.tensor(3, 6), [1], 1, True)
    yield call(m.tensor(4, 3), [0], 2, False)
    yield call(m.tensor(4, 3, 6), [0, 2], 0, True)
    yield call(m.tensor(4, 3, 6), [2, 0], 0, False)
    yield call(m.tensor(2, 1), [1], 0, True)
    yield call(m.tensor(40, 9), [1], 0, True)


@sample("fft_c2r")
def fft_c2r(m):
    yield call(half_of(m, 3, 4), [1], 0, 6)
    yield call(m.tensor(3, 4), [1], 1, 7)
    yield call(half_of(m, 4, 3, dim=0), [0], 2, 6)
    yield call(half_of(m, 4, 3, 4), [1, 2], 2, 6)
    yield call(half_of(m, 2, 1), [1], 0, 1)
    yield call(half_of(m, 40, 5), [1], 0, 8)


@sample("fft")
def fft(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(3, 4), 6, 0, "ortho")
    yield call(m.tensor(3, 4), 2, norm="forward")
    yield call(m.tensor(7), 7, -1, "backward")


@sample("fft_of_real")
def fft_of_real(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(4, 3), 6, 0, "ortho")
    yield call(m.tensor(3, 6), 4, norm="forward")


@sample("fft_of_half")
def fft_of_half(m):
    yield call(half_of(m, 3, 4))
    yield call(m.tensor(3, 4), 7, norm="ortho")
    yield call(m.tensor(4, 3), 5, 0, "forward")


@sample("fftn")
def fftn(m):
    yield call(m.tensor(2, 3, 4))
    yield call(m.tensor(2, 3, 4), [3, 5], norm="ortho")
    yield call(m.tensor(2, 3, 4), [-1, 2], [2, 0], "forward")


@sample("fftn_of_real")
def fftn_of_real(m):
    yield call(m.tensor(2, 3, 4))
    yield call(m.tensor(2, 3, 4), [3, 5], norm="ortho")
    yield call(m.tensor(2, 3, 4), dim=[2, 0], norm="forward")


@sample("fftn_of_half")
def fftn_of_half(m):
    yield call(m.tensor(2, 3, 4), [2, 3, 7])
    yield call(m.tensor(2, 3, 4), [3, 5], norm="ortho")
    yield call(m.tensor(4, 3, 2), [-1, 5], [1, 0], "forward")


@sample("fft2")
def fft2(m):
    yield call(m.tensor(2, 3, 4))
    yield call(m.tensor(2, 3, 4), [2, 5], [0, 2], "ortho")


@sample("fft2_of_real")
def fft2_of_real(m):
    yield call(m.tensor(2, 3, 4))
    yield call(m.tensor(2, 3, 4), [2, 5], [2, 0], "ortho")


@sample("fft2_of_half")
def fft2_of_half(m):
    yield call(m.tensor(2, 3, 4), [3, 7])
    yield call(m.tensor(2, 3, 4), [2, 5], [0, 2], "ortho")


@sample("frequencies")
def frequencies(m):
    yield call(5)
    yield call(6, 0.25)
    yield call(7, 2.0, dtype=D("float64"))


@sample("fftshift")
def fftshift(m):
    yield call(m.tensor(4, 5))
    yield call(m.tensor(4, 5), [1])
    yield call(m.tensor(7))


def window(m, n: int) -> T:
    real = {"complex64": "float32", "complex128": "float64"}.get(m.dtype, m.dtype)
    return m.tensor(n, low=0.5, high=1.5, dtype=real)


@sample("stft")
def stft(m):
    yield call(m.tensor(20), 8, onesided=m.is_float, return_complex=True)
    yield call(m.tensor(2, 20), 6, 3, 4, window(m, 4), True, "constant", True, False, True)
    yield call(m.tensor(17), 5, 2, center=False, onesided=False, return_complex=False)


@sample("istft")
def istft(m):
    yield call(m.tensor(5, 6), 8, 3, window=window(m, 8), onesided=True)
    yield call(m.tensor(2, 5, 6), 8, 2, 6, window(m, 6), True, True, True, 11)
    yield call(m.tensor(8, 4), 8, 2, center=False, onesided=False, return_complex=True)
