"""Batches of products with few results each: the bits of the same products one by one, and powers that are products."""

from __future__ import annotations

import pytest
import strata

DTYPES = ["float32", "float64", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8", "complex64", "complex128"]


def made(dtype, *shape):
    if dtype.is_floating_point or dtype.is_complex:
        return strata.randn(*shape, dtype=dtype)
    return strata.randint(0 if dtype == strata.uint8 else -9, 9, shape, dtype=dtype)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1), (1, 3)])
def test_a_batch_has_the_bits_of_its_products(name, shape):
    dtype, (m, n) = getattr(strata, name), shape
    strata.manual_seed(0)
    threads = strata.get_num_threads()
    try:
        for batch, k in ((3, 7), (4, 1), (8, 64), (17, 1025), (40, 33), (5, 2500)):
            a, b = made(dtype, batch, m, k), made(dtype, batch, k, n)
            turned = a.transpose(1, 2).contiguous().transpose(1, 2), made(dtype, n, batch, 2 * k)[:, :, ::2].permute(1, 2, 0)
            for x, y in ((a, b), turned, (a[:1].expand(batch, m, k), b)):
                with strata.backends.mkldnn.flags(enabled=False):
                    want = strata.stack([x[i] @ y[i] for i in range(batch)])
                    for count in (1, 2):
                        strata.set_num_threads(count)
                        assert strata.equal(strata.bmm(x, y), want), (batch, k, count)
    finally:
        strata.set_num_threads(threads)


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
def test_powers_that_are_products_and_roots(name):
    dtype = getattr(strata, name)
    strata.manual_seed(0)
    x = strata.randn(3000, dtype=dtype)
    special = strata.tensor([0.0, -0.0, 1.0, -1.0, strata.inf, -strata.inf, strata.nan]).to(dtype)
    for t in (x, x[::2], special) if not dtype.is_complex else (x, x[::2]):
        for exponent, want in ((3, t * t * t), (-1, t.reciprocal()), (-2, 1 / (t * t)), (-0.5, t.rsqrt()), (0.5, t.sqrt())):
            if dtype.is_complex and exponent not in (3, -1):
                continue
            for got in (t**exponent, strata.pow(t, exponent), t.clone().pow_(exponent), strata.pow(t, exponent, out=strata.empty_like(t))):
                assert got.dtype == dtype and strata.equal(strata.view_as_real(got.conj()) if dtype.is_complex else got.nan_to_num(7), strata.view_as_real(want.conj()) if dtype.is_complex else want.nan_to_num(7)), exponent
    if not dtype.is_complex:
        x = x.abs().add(0.5).double().requires_grad_()
        for exponent in (3, -1, -2, -0.5):
            assert strata.autograd.gradcheck(lambda t, e=exponent: t**e, (x[:5].detach().requires_grad_(),))


def test_counts():
    strata.manual_seed(0)
    for bins, n in ((3, 1001), (1024, 5000), (1025, 5000), (1, 7), (5, 3)):
        x = strata.randint(0, bins, (n,))
        assert strata.bincount(x, minlength=bins).tolist() == [int((x == i).sum()) for i in range(max(bins, int(x.max()) + 1))]
    b = strata.rand(7, 9) > 0.5
    assert strata.count_nonzero(b) == b.int().sum() and strata.equal(strata.count_nonzero(b, 1), b.int().sum(1))


def test_the_gradient_of_a_sum_through_a_scatter():
    """It says one element again and again."""
    strata.manual_seed(0)
    x = strata.randn(2, 3, 12, 12, requires_grad=True)  # results of 1,024 elements and more
    F = strata.nn.functional
    for f in (
        lambda t: F.avg_pool2d(t, 3, 2, 1), lambda t: F.adaptive_avg_pool2d(t, 5), lambda t: F.interpolate(t, scale_factor=3),
        lambda t: F.interpolate(t, size=(17, 25), mode="bilinear"), lambda t: F.interpolate(t, size=(17, 25), mode="bicubic"),
        lambda t: F.pad(t, (3, 2, 1, 4), mode="reflect"), lambda t: F.fold(F.unfold(t, 3), (12, 12), 3), lambda t: F.max_pool2d(t, 3, 2, 1),
        lambda t: t.gather(-1, strata.arange(864).view(2, 3, 12, 12) * 7 % 12), lambda t: t.sort(-1)[0], lambda t: t[:, :, strata.arange(36) % 12],
        lambda t: t.index_select(3, strata.arange(30) % 5), lambda t: F.interpolate(t, scale_factor=5, mode="nearest-exact"),
    ):  # fmt: skip
        y = f(x)
        for shape in ((), (1, 3, 1, 1), (1, 1, 1, y.shape[-1]), (2, 1, 1, 1)):
            g = strata.randn(shape).expand(y.shape)
            (want,) = strata.autograd.grad(y, x, g.contiguous(), retain_graph=True)
            assert strata.equal(strata.autograd.grad(y, x, g, retain_graph=True)[0], want)
