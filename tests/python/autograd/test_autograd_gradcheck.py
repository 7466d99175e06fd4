"""gradcheck and gradgradcheck: right derivatives pass, each kind of wrong one is named."""

import pytest
import strata
from strata.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from strata.testing import make_tensor


def real(*shape):
    return make_tensor(shape, dtype=strata.float64, device="cpu", low=-1, high=1, requires_grad=True)


def cplx(*shape):
    return make_tensor(shape, dtype=strata.complex128, device="cpu", low=-1, high=1, requires_grad=True)


def function(forward_fn, backward_fn):
    class Custom(strata.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward_fn(x)

        @staticmethod
        def backward(ctx, g):
            return backward_fn(ctx.saved_tensors[0], g)

    return Custom.apply


WRONG = function(lambda x: x * x, lambda x, g: g * x * 2.1)

GOOD = [
    (strata.sin, (real(3),)),
    (strata.mul, (real(2, 3), real(3))),
    (strata.mm, (real(2, 3), real(3, 2))),
    (strata.exp, (real(),)),
    (strata.tanh, (make_tensor(3, 4, dtype=strata.float64, device="cpu", requires_grad=True, noncontiguous=True),)),
    (lambda x, y: (x * y, x + y), (real(3), real(3))),
    (lambda x, y: x * 2, (real(2), real(2))),
    (lambda x: x, (real(2),)),
    (strata.sin, (real(0, 3),)),
]
GOOD_COMPLEX = [
    (lambda z: z * z * 2j, (cplx(2),)),
    (strata.conj, (cplx(2),)),
    (lambda z: z.abs(), (cplx(3),)),
    (lambda x, z: (x * z, z.real * x), (real(2), cplx(2))),
]


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(("func", "inputs"), GOOD + GOOD_COMPLEX)
def test_right_derivatives_pass(func, inputs, fast):
    assert gradcheck(func, inputs, fast_mode=fast)
    assert gradgradcheck(func, inputs, fast_mode=fast)


def test_wrong_derivative_shows_both_jacobians():
    x = strata.tensor([1.0, 2.0], dtype=strata.float64, requires_grad=True)
    with pytest.raises(GradcheckError) as info:
        gradcheck(WRONG, x)
    text = str(info.value)
    assert text.startswith(
        "Jacobian mismatch for output 0 with respect to input 0,\nnumerical:tensor([[2.0000, 0.0000],"
    )
    assert "analytical:tensor([[2.1000, 0.0000]," in text
    assert x.tolist() == [1.0, 2.0], "inputs are put back"


def test_wrong_derivative_in_fast_mode_shows_the_slow_jacobians():
    with pytest.raises(GradcheckError, match="max per-element difference"):
        gradcheck(WRONG, real(2), fast_mode=True)


def test_raise_exception_false_returns_false():
    assert gradcheck(WRONG, real(2), raise_exception=False) is False


def test_missing_conj_is_found():
    forgot = function(lambda z: z * z, lambda z, g: g * z * 2)
    with pytest.raises(GradcheckError, match="While considering the imaginary part of complex outputs only, Jacobian"):
        gradcheck(forgot, cplx(2))


def test_backward_must_repeat():
    runs = []
    drifting = function(lambda x: x * 1, lambda x, g: g * (1 + 1e-7 * (runs.append(0) or len(runs))))
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(drifting, real(2))
    assert gradcheck(drifting, real(2), nondet_tol=1e-5)


def test_backward_must_be_linear():
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(function(lambda x: x * 1, lambda x, g: strata.ones_like(g)), real(1))


def test_gradient_dtype():
    narrow = function(lambda x: x * 1, lambda x, g: g)
    assert gradcheck(narrow, real(2), check_grad_dtypes=True)


def test_outputs_without_gradient():
    assert gradcheck(lambda x: (x * 2, (x > 0).long()), real(2))
    assert gradcheck(lambda x: (x > 100).long(), real(2))
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach(), real(2))


def test_refusals():
    with pytest.raises(ValueError, match="requires_grad=True"):
        gradcheck(strata.sin, strata.ones(2, dtype=strata.float64))
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(strata.sin, strata.ones(1, dtype=strata.float64).expand(3).detach().requires_grad_())
    with pytest.raises(NotImplementedError, match="check_batched_grad"):
        gradcheck(strata.sin, real(2), check_batched_grad=True)
    with pytest.raises(TypeError, match="output 0 is a float"):
        gradcheck(lambda x: 1.0, real(2))
    with pytest.raises(ValueError, match="no output of func"):
        gradgradcheck(lambda x: x.detach(), real(2))
    with pytest.warns(UserWarning, match="float64 or complex128"):
        gradcheck(strata.sin, strata.ones(2, requires_grad=True), raise_exception=False)


def test_second_derivative_alone_wrong():
    class Cube(strata.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            x = ctx.saved_tensors[0]
            return g * 3 * x.detach() * x.detach()

    assert gradcheck(Cube.apply, real(2))
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(Cube.apply, real(2))


def test_given_grad_outputs():
    assert gradgradcheck(strata.sin, real(3), real(3))
    assert gradgradcheck(strata.sin, real(3), gen_non_contig_grad_outputs=True)
