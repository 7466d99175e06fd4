"""Samples of the pointwise families."""

from __future__ import annotations

import numpy as np
from kit import Maker, T, call, sample


def shapes(m: Maker, **how):
    """One tensor in the shapes that matter: plain, 0-dim, empty, longer than a block."""
    yield call(m.tensor(3, 5, **how))
    yield call(m.tensor(**how))
    yield call(m.tensor(0, 3, **how))
    yield call(m.tensor(2, 19, **how))


@sample("unary", "unary_complex")
def unary(m):
    yield from shapes(m)
    if m.is_float:
        specials = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, 88.0], np.float64 if m.dtype == "float64" else np.float32)
        # The sign of a NaN is nobody's promise.
        yield call(T(specials[1:] if "signbit" in m.op else specials, m.dtype))


@sample("unary_positive")
def unary_positive(m):
    yield from shapes(m, low=0.1, high=9)
    if m.is_float:
        yield call(T(np.array([0.0, np.inf, np.nan, 1.0, 1e-20], np.float32), m.dtype))


@sample("unary_nonzero")
def unary_nonzero(m):
    yield from shapes(m, away=0.3)


@sample("unary_unit")
def unary_unit(m):
    yield from shapes(m, low=-0.95, high=0.95)


@sample("unary_small")
def unary_small(m):
    yield from shapes(m, low=-1.2, high=1.2)


@sample("unary_above_one")
def unary_above_one(m):
    yield from shapes(m, low=1.1, high=6)


@sample("unary_above_minus_one")
def unary_above_minus_one(m):
    yield from shapes(m, low=-0.9, high=5)


@sample("unary_integer")
def unary_integer(m):
    yield from shapes(m, low=-100, high=100)


def pairs(m: Maker, first=None, second=None):
    first, second = first or {}, second or {}
    yield call(m.tensor(3, 4, **first), m.tensor(3, 4, **second))
    yield call(m.tensor(3, 1, **first), m.tensor(1, 4, **second))
    yield call(m.tensor(2, 3, 4, **first), m.tensor(4, **second))
    yield call(m.tensor(3, **first), m.tensor(**second))
    yield call(m.tensor(0, 3, **first), m.tensor(1, 3, **second))


def mixed(m: Maker, **how):
    """Operands of other dtypes."""
    yield call(m.tensor(5, **how), m.tensor(5, dtype="float32", **how))
    yield call(m.tensor(5, **how), m.tensor(dtype="float64", **how))
    yield call(m.tensor(5, dtype="int32", low=1, high=5), m.tensor(5, **how))


@sample("binary")
def binary(m):
    yield from pairs(m)
    yield from mixed(m)


@sample("binary_nonzero")
def binary_nonzero(m):
    yield from pairs(m, second={"away": 0.3})
    yield from mixed(m, away=0.3)


@sample("binary_positive")
def binary_positive(m):
    yield from pairs(m, second={"low": 0.2, "high": 5})


@sample("binary_integer")
def binary_integer(m):
    yield from pairs(m, {"low": -90, "high": 90}, {"low": -90, "high": 90})


def short(m, low=-3, high=3):
    """A number that short floats hold: PyTorch rounds it, and products with it, before it adds."""
    value = m.number(low, high)
    return round(value * 8) / 8 if m.dtype in ("float16", "bfloat16") else value


def factor(m):
    return 2.0 if m.dtype in ("float16", "bfloat16") else m.number(1, 4)


@sample("binary_alpha")
def binary_alpha(m):
    yield from pairs(m)
    yield from mixed(m)
    if m.dtype != "bool":
        for c in pairs(m):
            yield call(*c.args, alpha=factor(m))


@sample("binary_scalar", "binary_integer_scalar")
def binary_scalar(m):
    yield call(m.tensor(3, 4), m.number())
    yield call(m.tensor(), m.number())
    yield call(m.tensor(0, 2), m.number())
    yield call(m.tensor(5), 2)
    if not m.op.startswith("bitwise"):
        yield call(m.tensor(5), 1.5)


@sample("binary_scalar_alpha")
def binary_scalar_alpha(m):
    yield call(m.tensor(3, 4), m.number())
    yield call(m.tensor(5), 2)
    yield call(m.tensor(5), 1.5)
    if m.dtype != "bool":
        yield call(m.tensor(3, 4), short(m), factor(m))


@sample("binary_nonzero_scalar", "binary_scalar_nonzero")
def binary_nonzero_scalar(m):
    yield call(m.tensor(3, 4), m.number(1, 4) or 1)
    yield call(m.tensor(), 2)
    yield call(m.tensor(5), -1.5)


@sample("scalar_binary_nonzero")
def scalar_binary_nonzero(m):
    yield call(m.number(), m.tensor(3, 4, away=0.3))
    yield call(m.number(), m.tensor(3, 4, low=0.3, high=4))


@sample("integer_binary")
def integer_binary(m):
    yield call(5, m.tensor(3, 4, low=0, high=6))
    yield call(5, m.tensor(low=0, high=6))
    yield call(True, m.tensor(0, 3))


@sample("mvlgamma")
def mvlgamma(m):
    for p in (1, 2, 4, 0):
        yield call(m.tensor(3, 4, low=3, high=9), p)


@sample("div_mode")
def div_mode(m):
    for mode in (None, "floor", "trunc"):
        if m.op.endswith("Scalar_mode"):
            yield call(m.tensor(3, 4), 2 if m.is_int else 1.5, rounding_mode=mode)
        else:
            for c in pairs(m, second={"away": 0.3}):
                yield call(*c.args, rounding_mode=mode)


@sample("shift")
def shift(m):
    yield from pairs(m, {"low": -50, "high": 50}, {"low": 0, "high": 6})


@sample("shift_scalar")
def shift_scalar(m):
    yield call(m.tensor(3, 4, low=-50, high=50), 3)


@sample("pow")
def pow_(m):
    yield from pairs(m, {"low": 0.2, "high": 3}, {"low": 0, "high": 3})
    if m.is_float:
        yield call(T(np.array([0.0, -0.0, np.inf, -2.0, 1.0, -1.5, np.nan], np.float32), m.dtype),
                   T(np.array([0.0, 3.0, -1.0, 3.0, np.nan, 0.5, 0.0], np.float32), m.dtype))


@sample("pow_scalar")
def pow_scalar(m):
    for e in (2, 3, 0, 1, 0.5, -1.0, 2.5):
        yield call(m.tensor(3, 4, low=0.2, high=3), e)


@sample("pow_base")
def pow_base(m):
    for base in (2, 0.5, 1):
        yield call(base, m.tensor(3, 4, low=0, high=3))


@sample("round_decimals")
def round_decimals(m):
    for decimals in (0, 2, -1):
        yield call(m.tensor(3, 4, low=-40, high=40), decimals=decimals)


@sample("logit")
def logit(m):
    yield call(m.tensor(3, 4, low=0.05, high=0.95))
    yield call(m.tensor(3, 4, low=-0.2, high=1.2), 0.1)


@sample("nan_to_num")
def nan_to_num(m):
    v = T(np.array([np.nan, np.inf, -np.inf, 1.0], np.float32), m.dtype) if m.is_float else m.tensor(4)
    yield call(v)
    yield call(v, 1.0, 2.0, -3.0)


@sample("lerp_scalar")
def lerp_scalar(m):
    for w in (0.2, 0.5, 0.8):
        yield call(m.tensor(3, 4), m.tensor(3, 4), w)


@sample("lerp_tensor")
def lerp_tensor(m):
    yield call(m.tensor(3, 4), m.tensor(3, 4), m.tensor(3, 4, low=0, high=1))
    yield call(m.tensor(3, 4), m.tensor(4), m.tensor(3, 1, low=0, high=1))


@sample("addcmul")
def addcmul(m):
    yield call(m.tensor(3, 4), m.tensor(3, 4), m.tensor(3, 4))
    yield call(m.tensor(3, 4), m.tensor(4), m.tensor(3, 1), value=m.number(1, 3))


@sample("addcdiv")
def addcdiv(m):
    yield call(m.tensor(3, 4), m.tensor(3, 4), m.tensor(3, 4, away=0.5))
    yield call(m.tensor(3, 4), m.tensor(4), m.tensor(3, 1, away=0.5), value=2)


@sample("clamp")
def clamp(m):
    yield call(m.tensor(3, 4), -1, 2)
    yield call(m.tensor(3, 4), None, 1)
    yield call(m.tensor(3, 4), 0, None)
    yield call(m.tensor(3, 4), 2, 1)
    if m.is_float:
        yield call(T(np.array([np.nan, 5.0, -5.0], np.float32), m.dtype), -0.5, 0.5)


@sample("clamp_tensor")
def clamp_tensor(m):
    yield call(m.tensor(3, 4), m.tensor(3, 4, low=-3, high=0), m.tensor(3, 4, low=0, high=3))
    if m.op != "strata::_clamp_between":
        yield call(m.tensor(3, 4), None, m.tensor(4))


@sample("clamp_min", "clamp_max")
def clamp_min(m):
    yield call(m.tensor(3, 4), 1)
    yield call(m.tensor(3, 4), 0.5)


@sample("leaky_relu")
def leaky_relu(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(3, 5), 0.2)


@sample("elu")
def elu(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(3, 5), 1.5, 1.2, 0.7)


@sample("celu")
def celu(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(3, 5), 1.7)


@sample("softplus")
def softplus(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(3, 5), 2, 3)


@sample("hardtanh")
def hardtanh(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(3, 5), -2, 1)


@sample("threshold")
def threshold(m):
    yield call(m.tensor(3, 5), 1, 7)


@sample("softshrink")
def softshrink(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(3, 5), 1.25)


@sample("prelu")
def prelu(m):
    yield call(m.tensor(3, 5, 2), m.tensor(1, low=0.1, high=0.5))
    yield call(m.tensor(3, 5, 2), m.tensor(5, low=0.1, high=0.5))


@sample("gelu")
def gelu(m):
    yield call(m.tensor(3, 5))
    yield call(m.tensor(3, 5), approximate="tanh")


@sample("gelu_backward")
def gelu_backward(m):
    yield call(m.tensor(3, 5), m.tensor(3, 5))
    yield call(m.tensor(3, 5), m.tensor(3, 5), approximate="tanh")


@sample("where")
def where(m):
    yield call(m.mask(3, 4), m.tensor(3, 4), m.tensor(3, 4))
    yield call(m.mask(3, 1), m.tensor(4), m.tensor(3, 4, dtype="float32"))


@sample("where_scalar_self")
def where_scalar_self(m):
    yield call(m.mask(3, 4), m.number(), m.tensor(3, 4))


@sample("where_scalar_other")
def where_scalar_other(m):
    yield call(m.mask(3, 4), m.tensor(3, 4), m.number())


@sample("where_scalars")
def where_scalars(m):
    yield call(m.mask(3, 4), 1, 2)
    yield call(m.mask(3, 4), 1.5, 2.0)
