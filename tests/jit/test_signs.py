"""Kernels leave out signs that nobody reads: bits are eager's, those of zeros too."""

import pytest
import strata

PROGRAMS = {
    "of_negatives": lambda x, y: (-x) * (-x) + y,
    "of_magnitudes": lambda x, y: x.abs() ** 2 - y.abs() ** 2,
    "of_circles": lambda x, y: x.sin() ** 2 + x.cos() ** 2,
    "kept_beside": lambda x, y: (x.sin(), x.sin() ** 2, (-x, (-x).square())),
    "of_copies": lambda x, y: x.copysign(y).square() * y,
    "of_choices": lambda x, y: strata.where(x < y, -x, y.abs()).square(),
    "of_products": lambda x, y: (-x * y.copysign(x)).abs(),
    "of_quotients": lambda x, y: (-x / y.neg()).square() + x.neg() / x.neg(),
    "twice": lambda x, y: x.neg().abs().neg().square(),
    "in_rows": lambda x, y: (x.neg().square().sum(-1), (x.abs() * x.abs()).amax(-1), x.neg().sum(-1)),
    "not_of_sums": lambda x, y: (x.neg() + y).square() + x.neg() * y,
    "not_of_roots": lambda x, y: x.neg().sqrt().square(),
}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e5, -1e5, 3e38, -3e38, float("inf"), -float("inf"), float("nan"), 1e-40, -1e-40, 0.785, -2.356, 7.0]


def flat(values):
    for v in values if isinstance(values, tuple) else (values,):
        yield from flat(v) if isinstance(v, tuple) else (v,)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits(name, dtype):
    x = strata.tensor(SPECIAL).repeat(16).reshape(16, 16).to(getattr(strata, dtype))
    y = x.t().contiguous()
    f = PROGRAMS[name]
    integer = {2: strata.int16, 4: strata.int32, 8: strata.int64}[x.element_size()]
    for got, want in zip(flat(strata.graph(f, x, y).compile()(x, y)), flat(f(x, y)), strict=True):
        both_nan = got.isnan() & want.isnan()
        assert ((got.view(integer) == want.view(integer)) | both_nan).all()


def test_signs_are_left_out():
    """sin(x)^2 takes no part in finding the sign of sin(x)."""

    def takes_a_sign(f):
        text = strata.graph(f, strata.randn(64)).compile().source()
        return "2147483647 - 1" in text.split("RARELY(any")[1].split("STORE")[0].split("}\n")[-1]

    assert not takes_a_sign(lambda x: x.sin() ** 2)
    assert takes_a_sign(lambda x: x.sin() * 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_arguments_lane_by_lane(dtype):
    """Of a vector in which some need the long way round, eager and compiled."""
    strata.manual_seed(3)
    x = strata.randn(1000, dtype=getattr(strata, dtype))
    x = strata.where(strata.rand(1000) < 0.1, x * 1e9, x)
    x[::97] = float("inf")
    x[::89] = float("nan")
    for f in (strata.sin, strata.cos, strata.tan, lambda x: x.sin() * x.cos() + x.tan()):
        got, want = strata.graph(f, x).compile()(x), f(x)
        assert strata.equal(got.isnan(), want.isnan()) and strata.equal(got.nan_to_num(), want.nan_to_num())
        each = strata.stack([f(v) for v in x[:64]])
        assert strata.equal(each.nan_to_num(), want[:64].nan_to_num())
