"""strata.linalg: what decompositions promise, and derivatives where vectors or inputs have freedoms that a plain check of
derivatives does not know: signs and phases, triangles that are not read."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import strata
from strata import linalg
from strata.autograd import gradcheck, gradgradcheck

KINDS = [strata.float32, strata.float64, strata.complex64, strata.complex128]
WIDE = [strata.float64, strata.complex128]


def made(*shape, dtype=strata.float64, seed=0):
    """Small values and 2, 4, 6... on the diagonal: different singular values."""
    random = np.random.default_rng(seed)
    a = random.uniform(-0.5, 0.5, shape)
    if dtype.is_complex:
        a = a + 1j * random.uniform(-0.5, 0.5, shape)
    k = min(shape[-2:])
    a[..., np.arange(k), np.arange(k)] += 2 * np.arange(1, k + 1)
    return strata.from_numpy(a).to(dtype)


def close(a, b):
    tolerance = 1e-5 if a.dtype in (strata.float32, strata.complex64) else 1e-12
    return a.shape == b.shape and strata.allclose(a, b.to(a.dtype), rtol=tolerance, atol=tolerance)


def eye(n, dtype):
    return strata.eye(n, dtype=dtype)


@pytest.mark.parametrize("dtype", KINDS, ids=str)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 5, 3), (2, 3, 3, 5)], ids=str)
def test_factors_give_the_matrix(shape, dtype):
    a = made(*shape, dtype=dtype)
    m, n = shape[-2:]
    for mode, size in (("reduced", min(m, n)), ("complete", m)):
        q, r = linalg.qr(a, mode)
        assert close(q @ r, a) and close(q.mH @ q, eye(size, dtype).expand(*shape[:-2], size, size))
        assert close(r.triu(), r)
    assert close(linalg.qr(a, "r").R, linalg.qr(a).R)
    for full, size in ((False, min(m, n)), (True, m)):
        u, s, vh = linalg.svd(a, full)
        k = min(m, n)
        assert close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a)
        assert close(u.mH @ u, eye(size, dtype).expand(*shape[:-2], size, size))
        assert s.dtype == strata.empty(0, dtype=dtype).abs().dtype and bool((s[..., :-1] >= s[..., 1:]).all())
    assert close(linalg.svdvals(a), linalg.svd(a, False).S)
    u, s, v = strata.svd(a)
    assert close((u * s.unsqueeze(-2)) @ v.mH, a)


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_hermitian_and_positive(dtype):
    a = made(2, 4, 4, dtype=dtype)
    h = a + a.mH
    for word, triangle in (("L", strata.tril), ("U", strata.triu)):
        values, vectors = linalg.eigh(triangle(h), word)  # the other triangle is not read
        assert close((vectors * values.unsqueeze(-2)) @ vectors.mH, h)
        assert close(linalg.eigvalsh(h, word), values)
    p = a @ a.mH + eye(4, dtype)
    lower, upper = linalg.cholesky(p), linalg.cholesky(p, upper=True)
    assert close(lower @ lower.mH, p) and close(upper, lower.mH) and close(lower.tril(), lower)


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_systems(dtype):
    a, b = made(2, 4, 4, dtype=dtype), made(4, 3, dtype=dtype, seed=1)
    assert close(a @ linalg.inv(a), eye(4, dtype).expand(2, 4, 4))
    assert close(a @ linalg.solve(a, b), b.expand(2, 4, 3))
    assert close(linalg.solve(a, b.mT, left=False) @ a, b.mT.expand(2, 3, 4))
    assert close(a.tril() @ linalg.solve_triangular(a, b, upper=False), b.expand(2, 4, 3))
    assert close(linalg.solve_triangular(a, b.mT, upper=True, left=False) @ a.triu(), b.mT.expand(2, 3, 4))
    assert close(linalg.matrix_power(a, -2) @ a @ a, eye(4, dtype).expand(2, 4, 4))
    sign, logarithm = linalg.slogdet(a)
    assert close(sign * logarithm.exp(), linalg.det(a))
    assert close(linalg.det(a), strata.from_numpy(np.linalg.det(a.numpy())))


def test_errors_are_linalg_errors():
    assert issubclass(linalg.LinAlgError, RuntimeError)
    zeros, nan = strata.zeros(2, 3, 3), strata.full((3, 3), float("nan"))
    for call, text in [
        (lambda: linalg.inv(zeros), "linalg.inv: (Batch element 0): The diagonal element 1 is zero"),
        (lambda: strata.inverse(zeros[0]), "linalg.inv: The diagonal element 1 is zero"),
        (lambda: linalg.solve(zeros, strata.ones(3)), "singular"),
        (lambda: linalg.cholesky(-strata.eye(3)), "the leading minor of order 1 is not positive-definite"),
        (lambda: linalg.cholesky(nan), "the leading minor of order 1 is not positive-definite"),
        (lambda: linalg.svd(nan), "non-finite values"),
        (lambda: linalg.eigvalsh(nan), "non-finite values"),
    ]:
        with pytest.raises(linalg.LinAlgError) as caught:
            call()
        assert text in str(caught.value)
    inverse, info = linalg.inv_ex(zeros)
    assert info.tolist() == [1, 1] and info.dtype == strata.int32
    assert linalg.cholesky_ex(-strata.eye(3)).info.item() == 1
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        linalg.qr(strata.ones(2, 2, dtype=strata.float16))


def leaf(a):
    return a.clone().requires_grad_(True)


@pytest.mark.parametrize("dtype", WIDE, ids=str)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 3), (2, 2, 2)], ids=str)
def test_singular_vectors_derive(shape, dtype):
    # Products of a vector with its partner or itself keep no phase.
    def projections(a):
        u, s, vh = linalg.svd(a, False)
        first = u[..., :1] @ vh[..., :1, :]
        return first, (u * s.unsqueeze(-2)) @ vh, vh[..., :1, :].mH @ vh[..., :1, :], u[..., :1] @ u[..., :1].mH

    a = leaf(made(*shape, dtype=dtype))
    assert gradcheck(projections, (a,))
    assert gradgradcheck(projections, (a,))
    assert gradcheck(linalg.svdvals, (a,)) and gradgradcheck(linalg.svdvals, (a,))


@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_hermitian_derivatives(dtype):
    def symmetric(a):
        return a + a.mH

    def projections(a):
        values, vectors = linalg.eigh(symmetric(a))
        return values, vectors[..., :1] @ vectors[..., :1].mH

    def positive(a):
        return a @ a.mH + eye(3, dtype)

    for shape in ((3, 3), (2, 3, 3)):
        a = leaf(made(*shape, dtype=dtype))
        for f in (projections, lambda a: linalg.eigvalsh(symmetric(a), "U"),
                  lambda a: linalg.cholesky(positive(a)), lambda a: linalg.cholesky(positive(a), upper=True)):
            assert gradcheck(f, (a,))
            assert gradgradcheck(f, (a,))


@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_general_eigenvectors(dtype):
    def projections(a):
        values, vectors = linalg.eig(a)
        return values, vectors.unsqueeze(-2) * vectors.conj().unsqueeze(-3)

    for shape in ((3, 3), (2, 3, 3)):
        a = leaf(made(*shape, dtype=dtype))
        values, vectors = linalg.eig(a.detach())
        assert close(vectors * values.unsqueeze(-2), a.detach().to(vectors.dtype) @ vectors)
        assert close(linalg.eigvals(a.detach()), values)
        assert gradcheck(projections, (a,)) and gradgradcheck(projections, (a,))
        assert gradcheck(linalg.eigvals, (a,))
    turn = strata.tensor([[0.0, -2.0], [2.0, 0.0]])
    assert sorted(linalg.eigvals(turn).imag.tolist()) == pytest.approx([-2.0, 2.0])


@pytest.mark.parametrize("dtype", WIDE, ids=str)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_factors_in_use(dtype, upper):
    def triangle(a):
        half = a.triu() if upper else a.tril()
        return half if not dtype.is_complex else half - 1j * strata.diag(half.diagonal().imag)

    a, b = made(3, 3, dtype=dtype), made(3, 2, dtype=dtype, seed=1)
    factor = triangle(a)
    whole = factor.mH @ factor if upper else factor @ factor.mH
    assert close(whole @ strata.cholesky_solve(b, factor, upper), b)
    assert close(whole @ strata.cholesky_inverse(factor, upper), eye(3, dtype))
    for f in (lambda x, y: strata.cholesky_solve(y, triangle(x), upper),
              lambda x, y: strata.cholesky_inverse(triangle(x), upper)):
        assert gradcheck(f, (leaf(a), leaf(b))) and gradgradcheck(f, (leaf(a), leaf(b)))


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_factors_of_general_matrices(dtype):
    for shape in ((3, 3), (2, 4, 3), (2, 3, 4)):
        a = made(*shape, dtype=dtype)
        p, lower, upper = linalg.lu(a)
        assert close(p @ lower @ upper, a) and close(lower.tril(), lower) and close(upper.triu(), upper)
        inverse = linalg.pinv(a)
        assert close(a @ inverse @ a, a) and close(inverse @ a @ inverse, inverse)
        assert linalg.matrix_rank(a).unique().tolist() == [3]
        b = made(*shape[:-1], 2, dtype=dtype, seed=1)
        for driver in ("gels", "gelsy", "gelsd", "gelss"):
            assert close(linalg.lstsq(a, b, driver=driver).solution, inverse @ b)
    a, b = made(3, 3, dtype=dtype), made(3, 2, dtype=dtype, seed=1)
    factors = linalg.lu_factor(a)
    assert close(a @ linalg.lu_solve(*factors, b), b) and close(a.mH @ linalg.lu_solve(*factors, b, adjoint=True), b)
    assert close(linalg.lu_solve(*factors, b.mT, left=False) @ a, b.mT)
    assert close(linalg.lu_solve(*factors, b.mT, left=False, adjoint=True) @ a.mH, b.mT)
    assert all(close(x, y) for x, y in zip(strata.lu(a)[:1], factors[:1], strict=True))
    assert a.lu(get_infos=True)[2].item() == 0
    for hermitian in (False, True):
        h = (a + a.mH if hermitian else a + a.mT) - 4 * eye(3, dtype)
        factors = linalg.ldl_factor(h, hermitian=hermitian)
        assert close(h @ linalg.ldl_solve(*factors, b, hermitian=hermitian), b)
    swap = strata.tensor([[0, 2], [2, 0]], dtype=dtype)
    factors = linalg.ldl_factor(swap)
    assert factors.pivots.tolist() == [-2, -2] and close(swap @ linalg.ldl_solve(*factors, b[:2]), b[:2])
    with pytest.raises(RuntimeError, match="pivots must be those"):
        linalg.ldl_solve(factors.LD, strata.tensor([1, -2]), b[:2])
    double = strata.cat([a, a], 0)
    tall = linalg.lstsq(double, strata.cat([b, -b], 0), driver="gelsd")
    assert close(tall.residuals, 2 * b.abs().pow(2).sum(0)) and tall.rank.item() == 3 and tall.singular_values.shape == (3,)


def test_phases_are_refused():
    a = leaf(made(3, 3, dtype=strata.complex128))
    with pytest.raises(RuntimeError, match="specified up to multiplication by e"):
        linalg.svd(a).U.sum().abs().backward()
    h = leaf(made(3, 3, dtype=strata.complex128))
    with pytest.raises(RuntimeError, match="specified up to multiplication by e"):
        (linalg.eigh(h + h.mH).eigenvectors * (1 + 2j)).imag.sum().backward()


def test_qr_without_derivative():
    a = leaf(made(4, 2))
    with pytest.raises(RuntimeError, match="depends on Q, which is not computed when mode='r'"):
        linalg.qr(a, "r").R.sum().backward()
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"):
        linalg.qr(a, "complete").R.sum().backward()


def test_determinant_of_singular_matrices_derives():
    a = made(3, 3)
    a[2] = a[0] + a[1]
    batch = leaf(strata.stack([a, made(3, 3, seed=1), strata.diag(strata.tensor([2.0, 0.0, 3.0], dtype=strata.float64))]))
    assert gradcheck(linalg.det, (batch,))


@pytest.mark.parametrize("order", [2, -2, "nuc"])
def test_norms_of_singular_values_derive(order):
    a = leaf(made(2, 3, 4))
    assert gradcheck(lambda x: linalg.matrix_norm(x, order), (a,))
    assert gradcheck(lambda x: linalg.norm(x, order, (2, 0), keepdim=True), (a,))


def test_values_do_not_depend_on_threads():
    a = made(6, 40, 40, dtype=strata.float32)
    threads = strata.get_num_threads()
    try:
        results = []
        for n in (1, 2):
            strata.set_num_threads(n)
            results.append([*linalg.svd(a), *linalg.qr(a), linalg.inv(a), *linalg.eigh(a)])
        for x, y in zip(*results, strict=True):
            assert strata.equal(x, y)
    finally:
        strata.set_num_threads(threads)


def run_python(code: str, **environment: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True,
                         timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_reflections_and_exponentials(dtype):
    a = made(4, 3, dtype=dtype)
    factored, tau = strata.geqrf(a)
    q, r = linalg.qr(a, "complete")
    assert close(linalg.householder_product(factored, tau), q[:, :3]) and close(factored[:3].triu(), r[:3])
    assert close(strata.ormqr(factored, tau, a, transpose=True), r)
    small = made(3, 3, dtype=dtype)
    values, vectors = linalg.eigh(small + small.mH)
    assert strata.allclose(linalg.matrix_exp(small + small.mH), (vectors * values.exp()) @ vectors.mH, rtol=1e-9)
    with pytest.raises(NotImplementedError, match="derivative for 'geqrf'"):
        strata.geqrf(leaf(a)).a.abs().sum().backward()


@pytest.mark.parametrize("shape", [(8, 5), (5, 8), (2, 6, 6)], ids=str)
@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_low_rank(shape, dtype):
    strata.manual_seed(0)
    a = made(*shape, dtype=dtype)[..., :3] @ made(3, shape[-1], dtype=dtype, seed=1)  # rank 3
    u, s, v = strata.svd_lowrank(a, q=4)
    assert close((u * s.unsqueeze(-2)) @ v.mH, a) and u.shape == (*shape[:-1], 4) and v.shape == (*shape[:-2], shape[-1], 4)
    assert strata.allclose(s[..., :3], linalg.svdvals(a)[..., :3])
    shifted = strata.svd_lowrank(a, q=4, M=a / 2)
    assert strata.allclose(shifted[1][..., :3] * 2, s[..., :3])
    centred = a - a.mean(-2, keepdim=True)
    u, s, v = strata.pca_lowrank(a, q=4)
    assert close((u * s.unsqueeze(-2)) @ v.mH, centred)
    with pytest.raises(ValueError, match="must be non-negative integer and not greater than min"):
        strata.svd_lowrank(a, q=9)


def test_without_the_plugin():
    code = """
import strata as torch
for call in (lambda: torch.linalg.qr(torch.eye(3)), lambda: torch.inverse(torch.eye(3)), lambda: torch.det(torch.eye(3))):
    try:
        call()
    except NotImplementedError as error:
        assert "libopenblas0-pthread" in str(error) and "STRATA_LAPACK" in str(error), error
    else:
        raise SystemExit("no error")
print(torch.linalg.svdvals(torch.zeros(3, 0)).shape, torch.linalg.inv(torch.empty(2, 3, 3, device="meta")).shape)
"""
    assert "Size([0])" in run_python(code, STRATA_LAPACK="off")


def test_the_library_reports_itself():
    assert strata.backends.lapack_report().startswith("OpenBLAS ")
    code = "import strata; print(strata.backends.lapack_report())"
    assert run_python(code, STRATA_LAPACK="off") == "switched off by STRATA_LAPACK\n"


def test_after_a_fork():
    code = """
import os
import strata as torch
a = torch.randn(4, 60, 60)
want = torch.linalg.svdvals(a)
child = os.fork()
if child == 0:
    os._exit(0 if torch.equal(torch.linalg.svdvals(a), want) else 3)
assert os.waitpid(child, 0)[1] == 0
print("same")
"""
    assert "same" in run_python(code)


def test_shapes_without_memory_do_not_mix_with_values():
    real, shape = strata.eye(3), strata.empty(3, 3, device="meta")
    pivots = strata.empty(3, dtype=strata.int32, device="meta")
    for call in (
        lambda: strata.linalg.solve(real, shape),
        lambda: strata.linalg.solve_triangular(real, shape, upper=True),
        lambda: strata.linalg.lu_solve(real, pivots, real),
        lambda: strata.linalg.ldl_solve(real, pivots, real),
        lambda: strata.linalg.lstsq(real, shape),
        lambda: strata.lu_unpack(real, pivots),
        lambda: strata.linalg.householder_product(real, strata.empty(3, device="meta")),
    ):
        with pytest.raises(RuntimeError, match="same device"):
            call()
