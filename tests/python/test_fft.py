"""strata.fft, stft and istft against what PyTorch gave, and against NumPy for lengths of every kind."""

import json
from pathlib import Path

import fft_cases as cases
import numpy as np
import pytest
import strata

RECORDED = json.loads((Path(__file__).parent.parent / "data" / "fft.json").read_text())
# Small, a prime, products, powers, primes beyond the radices, and a product of one.
LENGTHS = [1, 2, 3, 5, 12, 31, 32, 61, 64, 67, 100, 128, 210, 1009, 1024, 61 * 61, 2 * 67, 3**7, 10007]


@pytest.mark.parametrize("name", cases.CALLS)
def test_results(name):
    found, wanted = cases.numbers(strata, cases.CALLS[name](strata, strata.fft)), RECORDED[name]
    assert found[0] == wanted[0]
    tolerance = 2e-6 if name == "fft of integers" else 1e-11  # float32, and its order of sums
    np.testing.assert_allclose(found[1], wanted[1], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", cases.GRADIENTS)
def test_gradients(name):
    found, wanted = cases.gradient(strata, name), RECORDED[f"gradient of {name}"]
    assert found[0] == wanted[0]
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n", LENGTHS)
def test_every_kind_of_length(n):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((2, n)) + 1j * rng.standard_normal((2, n))
    exact = np.fft.fft(x)
    for dtype, tolerance in ((np.complex128, 1e-14), (np.complex64, 4e-7)):
        for function, given, wanted in ((strata.fft.fft, x, exact), (strata.fft.ifft, exact, x)):
            found = function(strata.from_numpy(given.astype(dtype))).numpy()
            assert found.dtype == dtype
            error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
            assert error < tolerance * max(1, np.log2(n)), error


def test_second_derivatives():
    x = (strata.linspace(-1, 2, 9, dtype=strata.float64) ** 2).requires_grad_()
    assert strata.autograd.gradgradcheck(lambda x: strata.fft.irfft(strata.fft.rfft(x).abs() ** 2), (x,))


@pytest.mark.parametrize("n", [4096, 10007])
def test_bits_do_not_depend_on_threads(n):
    x = strata.randn(8, n, dtype=strata.complex64)
    threads, found = strata.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            strata.set_num_threads(count)
            found.append(strata.view_as_real(strata.fft.fft(x)))
    finally:
        strata.set_num_threads(threads)
    assert strata.equal(found[0], found[1]) and strata.equal(found[0], found[2])


def test_strides_and_empty_batches():
    x = strata.randn(6, 4, 5, dtype=strata.float64)
    got = strata.fft.fft(x.permute(2, 0, 1)[:, ::2], dim=1)
    want = np.fft.fft(x.permute(2, 0, 1)[:, ::2].numpy(), axis=1)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-13)
    assert strata.fft.rfft(strata.zeros(0, 8)).shape == (0, 5)
    out = strata.empty(0, dtype=strata.complex64)
    assert strata.fft.fft(strata.ones(4), out=out) is out and out[0] == 4


def test_errors():
    x = strata.ones(4)
    with pytest.raises(RuntimeError, match=r"Invalid number of data points \(0\) specified"):
        strata.fft.fft(x, n=0)
    with pytest.raises(RuntimeError, match="rfft expects a real input tensor, but got ComplexFloat"):
        strata.fft.rfft(x.to(strata.complex64))
    with pytest.raises(RuntimeError, match="Invalid normalization mode"):
        strata.fft.fft(x, norm="both")
    with pytest.raises(IndexError, match="Dimension out of range"):
        strata.fft.fft(x, dim=1)
    with pytest.raises(RuntimeError, match="FFT dims must be unique"):
        strata.fft.fftn(strata.ones(2, 2), dim=(0, -2))
    with pytest.raises(RuntimeError, match="same length"):
        strata.fft.fftn(strata.ones(2, 2), s=(2,), dim=(0, 1))
    with pytest.raises(RuntimeError, match="Unsupported dtype"):
        strata.fft.fft(x.half())
    with pytest.raises(RuntimeError, match="return_complex"):
        strata.stft(x, 4)
    with pytest.raises(RuntimeError, match="window overlap add min"):
        spectrum = strata.stft(strata.ones(40), 8, 8, center=False, return_complex=True)
        strata.istft(spectrum, 8, 8, window=strata.hann_window(8), center=False)


@pytest.mark.parametrize("out, text", [
    (lambda: strata.ones(3, 4, dtype=strata.complex64, device="meta"), "out: expected a tensor on cpu"),
    (lambda: strata.ones(3, 4), "can't be cast to the desired output type"),
    (lambda: 3, "out: expected a Tensor, got int"),
])  # fmt: skip
def test_out_that_cannot_hold_the_result_stays_as_it_was(out, text):
    given = out()
    with pytest.raises((RuntimeError, TypeError), match=text):
        strata.fft.fftn(strata.ones(2, 3), out=given)
    assert getattr(given, "shape", (3, 4)) == (3, 4)
