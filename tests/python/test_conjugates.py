"""Conjugates of complex tensors are copies that cannot be written: what would reach the source in PyTorch raises."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import strata

MAKERS = {"conj": lambda z: z.conj(), "function": lambda z: strata.conj(z), "adjoint": lambda z: z.adjoint(), "mH": lambda z: z.mH,
          "H": lambda z: z.H}


def source():
    return strata.tensor([[1 + 2j, 3 - 1j], [0 + 1j, 2 + 2j]])


@pytest.mark.parametrize("maker", MAKERS)
def test_writes_raise(maker):
    z = source()
    expected = z.clone()
    y = MAKERS[maker](z)
    values = y.clone()
    writes = {
        "mul_": lambda: y.mul_(2), "view": lambda: y[0].zero_(), "row": lambda: y[1:, :1].add_(1), "fill_": lambda: y.fill_(1),
        "real": lambda: y.real.add_(1), "imag": lambda: strata.view_as_real(y).zero_(), "transpose": lambda: y.mT.mul_(2),
        "setitem": lambda: y.__setitem__(0, 1), "setitem mask": lambda: y.__setitem__(y.abs() > 0, 1),
        "copy_": lambda: y.copy_(z), "out": lambda: strata.add(z, z, out=y), "composite out": lambda: strata.square(z, out=y),
        "detach": lambda: y.detach().mul_(2), "data": lambda: y.data.mul_(2), "index_put_": lambda: y.index_put_((strata.tensor([0]),), z[0]),
        "iadd": lambda: y.__iadd__(1), "foreach": lambda: strata._foreach_mul_([y], 2.0), "normal_": lambda: y.real.normal_(),
        "resize_": lambda: y.resize_(8), "expand": lambda: y.expand(2, 2, 2)[0].mul_(3),
    }
    for name, write in writes.items():
        with pytest.raises(RuntimeError, match=r"expected a tensor that may be written, got the result of conj"):
            write()
        assert strata.equal(y, values) and strata.equal(z, expected), name
    array = y.numpy()
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1
    assert not np.from_dlpack(y).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        y.__dlpack__()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert strata.from_dlpack(y.clone()).equal(values)


@pytest.mark.parametrize("maker", MAKERS)
def test_what_may_be_written(maker):
    z = source()
    for fresh in (MAKERS[maker](z).clone(), MAKERS[maker](z).resolve_conj(), MAKERS[maker](z) + 0, MAKERS[maker](z).to(strata.complex128)):
        fresh.mul_(2)
        fresh[0] = 1
    assert strata.equal(z, source())
    assert z.conj_physical().mul_(2)[0, 0].item() == 2 - 4j
    real = strata.ones(2, 2)
    MAKERS[maker](real).mul_(2)  # a view, or the tensor itself
    assert real.sum().item() == 8


def test_in_inference_mode_and_of_recorded_tensors():
    with strata.inference_mode():
        y = source().conj()
        with pytest.raises(RuntimeError, match="may be written"):
            y.mul_(2)
        with pytest.raises(RuntimeError, match="may be written"):
            y[0].mul_(2)
    z = source().requires_grad_()
    y = z.conj()
    with pytest.raises(RuntimeError, match="may be written"):
        y.mul_(2)
    (y * (1 + 2j)).real.sum().backward()
    assert z.grad.tolist() == [[1 + 2j] * 2] * 2


def test_gradients_are_not_read_only():
    """A conjugate that a formula made, and one that a user's function gave, may be added to and stepped with."""

    class Conjugate(strata.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.conj_physical()

        @staticmethod
        def backward(ctx, grad):
            return grad.conj()

    for f in (lambda z: strata.conj(z), lambda z: z.mH.mT, Conjugate.apply, lambda z: strata.vdot(z[0], z[1]).reshape(1)):
        z = source().requires_grad_()
        (once,) = strata.autograd.grad((f(z) + f(z)).abs().sum(), z)
        for _ in range(2):
            (f(z) + f(z)).abs().sum().backward()
        z.grad.mul_(2)
        z.grad[0] = 0
        with strata.no_grad():
            z -= 0.1 * z.grad
        assert z[0].tolist() == source()[0].tolist() and strata.allclose(z[1], source()[1] - 0.4 * once[1])


def test_results_of_operators_are_writable():
    z = source()
    results = [*strata.linalg.svd(z), *strata.linalg.qr(z), *strata.linalg.eigh(z @ z.mH), strata.linalg.pinv(z), strata.vdot(z[0], z[1]),
               strata.linalg.inv(z), strata.cov(z), *strata.linalg.eig(z), strata.linalg.cholesky(z @ z.mH + 9 * strata.eye(2)),
               *strata.svd_lowrank(z, q=2), strata.linalg.matrix_exp(z), strata.linalg.lstsq(z, z).solution, strata.corrcoef(z),
               strata.linalg.householder_product(*strata.geqrf(z)), strata.linalg.vecdot(z, z), strata.linalg.matrix_power(z, -1)]
    for r in results:
        twice = 2 * r
        r.mul_(2)
        assert strata.allclose(r, twice, rtol=0, atol=0, equal_nan=True)


def test_tensors_that_share_memory_with_what_they_were_made_from():
    """As in PyTorch: a result that is a tensor of its own does not become a view where there is nothing to compute."""
    x = strata.ones(1, 4, 2, 2)
    for result in (strata.nn.functional.pixel_shuffle(x, 1), strata.nn.functional.pixel_unshuffle(x, 1),
                   strata.chain_matmul(strata.ones(2, 2))):
        assert result.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    m = strata.ones(2, 2)
    strata.chain_matmul(m).mul_(2)
    assert m.sum().item() == 4
