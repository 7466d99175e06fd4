"""strata.special against values computed with mpmath, and what the table's samples do not reach."""

import pytest
import strata
from strata import special

f64 = strata.float64


def at(name, *values):
    arguments = [strata.tensor(v, dtype=f64) for v in values]
    return getattr(special, name)(*arguments).tolist()


VALUES = {
    "bessel_j0": ([2.5, 8.5, 30.0], [-0.048383776468197996, 0.041939251842934504, -0.086367983581040211]),
    "bessel_y1": ([2.5, 8.5, 30.0], [0.1459181379667858, -0.02616867939853747, 0.084425570661747235]),
    "modified_bessel_k1": ([0.5, 4.0], [1.6564411200033009, 0.012483498887268431]),
    "i0": ([0.5, 20.0, -20.0], [1.0634833707413235, 43558282.559553533, 43558282.559553533]),
    "airy_ai": ([-6.0, -2.0, 0.5, 4.0], [-0.32914517362982311, 0.22740742820168558, 0.23169360648083349, 0.00095156385120480187]),
    "erfcx": ([-2.0, 0.5, 30.0], [108.94090438997797, 0.61569034419292587, 0.018795888861416751]),
    "log_ndtr": ([-20.0], [-203.91715537109726]),
    "ndtri": ([0.0001], [-3.7190164854556806]),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    arguments, expected = VALUES[name]
    assert at(name, arguments) == pytest.approx(expected, rel=4e-15)


def test_values_of_two_arguments():
    assert at("zeta", [2.0, 3.5, 2.0, 9.0], [1.0, 0.25, -0.5, 2.5]) == pytest.approx(
        [1.6449340668482264, 128.54695896428435, 8.9348022005446793, 0.00027643925426264713], rel=4e-15
    )
    a, x = [0.5, 3.0, 10.0, 60.0, 2.0], [0.25, 2.5, 14.0, 50.0, 30.0]
    assert at("gammainc", a, x) == pytest.approx(
        [0.52049987781304654, 0.45618688411667048, 0.890600630357261, 0.09226505195893311, 0.99999999999709914], rel=1e-13
    )
    assert at("gammaincc", a, x) == pytest.approx(
        [0.47950012218695346, 0.54381311588332952, 0.109399369642739, 0.90773494804106689, 2.9008631203404541e-12], rel=1e-13
    )
    large = 1e7
    assert at("gammaincc", [large] * 3, [large - 1e4, large + 10, large + 7000]) == pytest.approx(
        [0.99921984678474795, 0.49869638427416661, 0.013442499602782264], rel=1e-10
    )


@pytest.mark.parametrize(
    ("name", "n", "x", "expected"),
    [
        ("chebyshev_polynomial_t", 5, 0.3, 0.99888),
        ("chebyshev_polynomial_u", 4, 1.3, 26.4176),
        ("hermite_polynomial_h", 4, 0.7, -7.6784),
        ("laguerre_polynomial_l", 3, 2.5, 0.27083333333333333),
        ("legendre_polynomial_p", 6, 0.2, -0.080576),
        ("chebyshev_polynomial_t", -1, 0.3, 0.0),
        ("shifted_chebyshev_polynomial_t", 5, 0.65, 0.99888),
    ],
)
def test_polynomials(name, n, x, expected):
    polynomial = getattr(special, name)
    assert polynomial(strata.tensor(x, dtype=f64), n).item() == pytest.approx(expected, rel=1e-14, abs=1e-15)
    assert polynomial(x, strata.tensor([n])).item() == pytest.approx(expected, rel=1e-6)


def test_hermite_polynomials_end_at_a_degree():
    assert special.hermite_polynomial_h(strata.tensor([0.5]), 129).isnan().item()
    assert not special.hermite_polynomial_he(strata.tensor([0.5]), 20).isnan().item()


def test_polygamma():
    x = strata.tensor([0.5, 3.0, -1.5], dtype=f64)
    assert strata.polygamma(3, x).tolist() == pytest.approx([97.409091034002437, 0.11893940226682915, 194.59427621918762], rel=4e-15)
    assert x.polygamma(3).tolist() == strata.polygamma(3, x).tolist()
    assert x.clone().polygamma_(3).tolist() == strata.polygamma(3, x).tolist()
    assert strata.polygamma(2, strata.tensor([0.0, -1.0])).tolist() == [-float("inf")] * 2
    assert strata.polygamma(1, strata.tensor([2])).dtype == strata.float32
    with pytest.raises(RuntimeError, match="does not support negative n"):
        strata.polygamma(-1, x)
    with pytest.raises(RuntimeError, match="can't be cast"):
        strata.tensor([1, 2]).polygamma_(3)


def slope(function, x):
    x = strata.tensor(x, dtype=f64, requires_grad=True)
    function(x).backward()
    return x.grad.item()


def test_derivatives_by_the_second_argument():
    a = strata.tensor(1.5, dtype=f64)
    assert slope(lambda x: strata.igamma(a, x), 2.0) == pytest.approx(0.215963866052752, rel=1e-13)
    assert slope(lambda x: strata.igammac(a, x), 2.0) == pytest.approx(-0.215963866052752, rel=1e-13)
    assert slope(lambda q: special.zeta(3.0, q), 1.5) == pytest.approx(-0.704545517001219, rel=1e-13)


@pytest.mark.parametrize("function", [strata.igamma, strata.igammac, special.zeta])
def test_no_derivative_by_the_first_argument(function):
    a = strata.tensor([1.5, 2.5], requires_grad=True)
    with pytest.raises(RuntimeError, match="not implemented"):
        function(a, strata.tensor([2.0, 3.0])).sum().backward()


def close(a, b, tolerance=1e-8):
    strata.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def test_polynomials_of_large_degree_end():
    x = strata.tensor([0.3, -0.9], dtype=strata.float64)
    n, angle = 10**7, x.acos()
    special = strata.special
    close(special.chebyshev_polynomial_t(x, n), (n * angle).cos())
    close(special.chebyshev_polynomial_u(x, n), ((n + 1) * angle).sin() / angle.sin())
    close(special.chebyshev_polynomial_v(x, n), ((n + 0.5) * angle).cos() / (angle / 2).cos())
    close(special.chebyshev_polynomial_w(x, n), ((n + 0.5) * angle).sin() / (angle / 2).sin())
    # The two ways meet: the recurrence ends where the angles begin.
    near = special.chebyshev_polynomial_t(x, 1 << 16)
    close(near, ((1 << 16) * angle).cos(), 1e-9)
    assert special.legendre_polynomial_p(x, 2**50).isnan().all()
