"""Samples of windows."""

from __future__ import annotations

from kit import D, call, sample


def window(m, *more):
    # PyTorch rounds each step of a window of half floats.
    dtype = {"dtype": D(m.dtype)} if m.dtype in ("float32", "float64") else {}
    for length in (0, 1, 2, 7, 8, -1):
        yield call(length, *more, **dtype)
    if not m.is_float:
        yield call(4, *more, dtype=D(m.dtype))


def windows(m, *more):
    yield from window(m, True, *more)
    yield from window(m, False, *more)


@sample("create_window")
def create_window(m):
    yield from window(m)


@sample("create_window_periodic")
def create_window_periodic(m):
    yield from windows(m)


@sample("create_window_alpha")
def create_window_alpha(m):
    yield from windows(m, 0.6)


@sample("create_window_alpha_beta")
def create_window_alpha_beta(m):
    yield from windows(m, 0.6, 0.3)


@sample("create_window_beta")
def create_window_beta(m):
    yield from windows(m, 5.0)
    yield from windows(m, -0.5)
