"""strata.fft, stft and istft against what PyTorch gave, and against NumPy for lengths of every kind."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
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


@pytest.mark.parametrize("library", [True, False])
@pytest.mark.parametrize("n", LENGTHS)
def test_every_kind_of_length(n, library):
    with strata.backends.library(library):
        check_length(n)


def check_length(n):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((2, n)) + 1j * rng.standard_normal((2, n))
    exact = np.fft.fft(x)
    for dtype, tolerance in ((np.complex128, 1e-14), (np.complex64, 4e-7)):
        for function, given, wanted in ((strata.fft.fft, x, exact), (strata.fft.ifft, exact, x)):
            found = function(strata.from_numpy(given.astype(dtype))).numpy()
            assert found.dtype == dtype
            assert distance(found, wanted) < tolerance * max(1, np.log2(n))
    real, half = x.real, np.fft.rfft(x.real)
    for dtype, tolerance in ((np.float64, 1e-14), (np.float32, 4e-7)):
        assert distance(strata.fft.rfft(strata.from_numpy(real.astype(dtype))).numpy(), half) < tolerance * max(1, np.log2(n))
        given = strata.from_numpy(half).to(strata.complex64 if dtype == np.float32 else strata.complex128)
        assert distance(strata.fft.irfft(given, n).numpy(), real) < tolerance * max(1, np.log2(n))


def distance(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def test_second_derivatives():
    x = (strata.linspace(-1, 2, 9, dtype=strata.float64) ** 2).requires_grad_()
    assert strata.autograd.gradgradcheck(lambda x: strata.fft.irfft(strata.fft.rfft(x).abs() ** 2), (x,))


@pytest.mark.parametrize("n", [31, 4096, 10007, 2**18])
@pytest.mark.parametrize("library", [True, False])
def test_bits_do_not_depend_on_threads(n, library):
    x = strata.randn(80 if n < 100 else 2, n, dtype=strata.complex64)
    threads, found = strata.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            strata.set_num_threads(count)
            with strata.backends.library(library):
                found.append(strata.view_as_real(strata.fft.fft(x)))
    finally:
        strata.set_num_threads(threads)
    assert strata.equal(found[0], found[1]) and strata.equal(found[0], found[2])


def test_strides_and_empty_batches():
    x = strata.randn(6, 4, 5, dtype=strata.float64)
    got = strata.fft.fft(x.permute(2, 0, 1)[:, ::2], dim=1)
    want = np.fft.fft(x.permute(2, 0, 1)[:, ::2].numpy(), axis=1)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-13)
    assert strata.fft.rfft(strata.zeros(0, 8)).shape == (0, 5) and strata.fft.irfft(strata.zeros(0, 5)).shape == (0, 8)
    assert strata.fft.fft2(strata.zeros(0, 8, 3)).shape == (0, 8, 3)
    out = strata.empty(0, dtype=strata.complex64)
    assert strata.fft.fft(strata.ones(4), out=out) is out and out[0] == 4


# 256 * 1024 and 200 * 1329 elements, along a dim of any stride, are taken as matrices; twice a prime is not.
@pytest.mark.parametrize("n", [2**18, 600 * 443, 2 * 131101])
def test_long_lines(n):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, 2)) + 1j * rng.standard_normal((n, 2))
    wanted = np.fft.fft(x, axis=0)
    for dtype, tolerance in ((strata.complex128, 1e-14), (strata.complex64, 4e-7)):
        given = strata.from_numpy(x).to(dtype)
        for found in (strata.fft.fft(given, dim=0), strata.fft.fft(given.T.contiguous()).T):
            assert distance(found.numpy(), wanted) < tolerance * np.log2(n)
        assert distance(strata.fft.ifft(strata.fft.fft(given, dim=0), dim=0).numpy(), x) < tolerance * np.log2(n)


# Half of these is a length of matrices, or not.
@pytest.mark.parametrize("n", [2**19, 2 * 600 * 443, 4 * 131101])
def test_long_real_lines(n):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, 2))
    half = np.fft.rfft(x, axis=0)
    for dtype, tolerance in ((strata.float64, 1e-14), (strata.float32, 4e-7)):
        given = strata.from_numpy(x).to(dtype)
        for found in (strata.fft.rfft(given, dim=0), strata.fft.rfft(given.T.contiguous()).T, strata.fft.fft(given, dim=0)[: n // 2 + 1]):
            assert distance(found.numpy(), half) < tolerance * np.log2(n)
        for back in (strata.fft.irfft(found, dim=0), strata.fft.irfft(found.T.contiguous()).T):
            assert distance(back.numpy(), x) < tolerance * np.log2(n)


@pytest.mark.parametrize("n", [2, 4, 6, 16, 62, 64, 96, 130])
def test_a_line_that_is_not_finite_stays_alone(n):
    x = strata.randn(70, n)
    x[33, n // 2] = float("inf")
    for found in (strata.view_as_real(strata.fft.rfft(x)), strata.fft.irfft(strata.fft.rfft(x), n)):
        strange = ~strata.isfinite(found).flatten(1).all(1)
        assert strange.nonzero().flatten().tolist() == [33]


def same(a, b):
    real = (strata.view_as_real(t.contiguous()) if t.is_complex() else t for t in (a, b))
    return strata.equal(*real)


@pytest.mark.parametrize("n", [5, 8, 33, 48, 63, 100])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_bits_do_not_depend_on_places(name, n):
    """Other strides, and memory that begins at any element: lines are brought to where the library takes them."""
    function = getattr(strata.fft, name)
    real = name == "rfft"
    x = strata.randn(40, n, dtype=strata.float32 if real else strata.complex64)
    wanted = function(x)
    room = strata.empty(x.numel() + 3, dtype=x.dtype)
    for first in (1, 2, 3):
        assert same(function(room[first : first + x.numel()].view_as(x).copy_(x)), wanted)
    assert same(function(x.T.contiguous(), dim=0).T, wanted)
    assert same(function(strata.stack([x, x], 2)[..., 1]), wanted)
    assert same(function(x[:1].expand(40, n))[7], function(x[:1].repeat(40, 1))[9])
    assert same(function(strata.cat([x, x[:1]]))[0], function(strata.cat([x, x[:1]]))[40])


def test_operands_stay_as_they_were():
    x = strata.randn(6, 5, 9, dtype=strata.complex64)
    before = x.clone()
    strata.fft.irfftn(x)
    strata.fft.fftn(x)
    strata.fft.hfft(x, dim=0)
    assert same(x, before)


def test_a_half_spectrum_counts_its_ends_by_their_real_parts():
    x = strata.randn(3, 5, dtype=strata.complex128)
    ends = x.clone()
    ends[:, 0] = x[:, 0].real
    ends[:, 4] = x[:, 4].real
    for library in (True, False):
        with strata.backends.library(library):
            assert strata.allclose(strata.fft.irfft(x), strata.fft.irfft(ends), atol=1e-14)
            assert not strata.allclose(strata.fft.irfft(x, 9), strata.fft.irfft(ends, 9))


@pytest.mark.parametrize("name", cases.CALLS)
def test_results_without_the_library(name):
    with strata.backends.library(False):
        test_results(name)


def run_python(code, **environment):
    run = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_without_the_plugin():
    code = """
import strata as torch
x = torch.arange(6.0)
print(torch.backends.fourier_report())
print(torch.fft.rfft(x).real.round().tolist(), torch.fft.irfft(torch.fft.rfft(x)).round().tolist())
"""
    assert run_python(code, STRATA_FFTW="off").splitlines() == [
        "switched off by STRATA_FFTW",
        "[15.0, -3.0, -3.0, -3.0] [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]",
    ]


def test_the_library_reports_itself():
    assert strata.backends.fourier_report().startswith("FFTW 3.")


def test_from_many_threads_at_once():
    x = [strata.randn(3, n) for n in range(60, 90)]
    wanted = [strata.fft.fft(t) for t in x]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            assert all(same(a, b) for a, b in zip(pool.map(strata.fft.fft, x), wanted, strict=True))


def test_more_lengths_than_plans_are_kept():
    """300 lengths, and the first ones again: their plans were made anew."""
    x = strata.randn(2, 400, dtype=strata.complex128)
    before = strata.fft.fft(x[:, :100])
    for n in range(100, 400):
        strata.fft.fft(x[:, :n])
    assert same(strata.fft.fft(x[:, :100]), before)


def test_compiled_and_captured_calls_have_eagers_bits():
    def f(x):
        y = strata.fft.rfft(x * 2) * 0.5
        return strata.fft.irfft(y, n=x.shape[-1]) + strata.fft.fft2(x).abs()

    x = strata.randn(6, 20)
    gradients = []
    for call in (f, strata.compile(f, fullgraph=True), strata.graph(f, x.clone().requires_grad_()).compile()):
        leaf = x.clone().requires_grad_()
        y = call(leaf)
        y.square().sum().backward()
        gradients.append((y.detach(), leaf.grad))
    for y, grad in gradients[1:]:
        assert strata.equal(y, gradients[0][0]) and strata.equal(grad, gradients[0][1])


def test_shapes_alone():
    x = strata.empty(4, 6, device="meta")
    assert strata.fft.rfft2(x).shape == (4, 4) and strata.fft.rfft2(x).dtype == strata.complex64
    assert strata.fft.irfft(strata.fft.rfft(x, dim=0), 9, dim=0).shape == (9, 6)
    assert strata.stft(x.reshape(-1), 8, return_complex=True).shape == (5, 13)


def test_errors():
    x = strata.ones(4)
    with pytest.raises(IndexError, match="tensor has no dimensions"):
        strata.fft.fft(strata.tensor(1.0))
    with pytest.raises(RuntimeError, match="_fft_c2r: last_dim_size: 9 real values have 5 complex ones, but self has 4"):
        strata._fft_c2r(x.to(strata.complex64), [0], 0, 9)
    with pytest.raises(RuntimeError, match="normalization: expected 0"):
        strata._fft_c2c(x.to(strata.complex64), [0], 3, True)
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


@pytest.mark.parametrize("call, text", [
    (lambda s, w: strata.stft(s, 8, align_to_window=False, return_complex=True), "align_to_window should only be set when center = false"),
    (lambda s, w: strata.stft(s, 0, return_complex=True), "stft: expected n_fft > 0, but got n_fft=0"),
    (lambda s, w: strata.stft(s, 50, center=False, return_complex=True), "stft: expected n_fft <= 40, .* but got n_fft=50"),
    (lambda s, w: strata.istft(w, 8, window=strata.ones(8, dtype=strata.complex64)), "Complex windows are incompatible with return_complex=False"),
    (lambda s, w: strata.istft(w, 8, return_complex=True), "Cannot have onesided output if window or input is complex"),
    (lambda s, w: strata.istft(w, 8, 6, 4), "istft: expected hop_length <= win_length, but got hop_length=6 and win_length=4"),
    (lambda s, w: strata.istft(w[:, :0], 8), "istft: input tensor cannot be empty"),
    (lambda s, w: strata.fft.fftfreq(-1), "fftfreq: expected n >= 0, but got n=-1"),
    (lambda s, w: strata.fft.rfftfreq(-1), "rfftfreq: expected n >= 0, but got n=-1"),
])  # fmt: skip
def test_what_is_refused(call, text):
    signal = strata.linspace(-1, 2, 40)
    with pytest.raises(RuntimeError, match=text):
        call(signal, strata.stft(signal, 8, return_complex=True))


@pytest.mark.parametrize("out, text", [
    (lambda: strata.ones(3, 4, dtype=strata.complex64, device="meta"), "Expected all tensors to be on the same device"),
    (lambda: strata.ones(3, 4), "can't be cast to the desired output type"),
    (lambda: 3, "argument .out. must be Tensor, not int"),
])  # fmt: skip
def test_out_that_cannot_hold_the_result_stays_as_it_was(out, text):
    given = out()
    with pytest.raises((RuntimeError, TypeError), match=text):
        strata.fft.fftn(strata.ones(2, 3), out=given)
    assert getattr(given, "shape", (3, 4)) == (3, 4)


def test_lengths_that_no_machine_has():
    most = 2**63 - 1
    long = strata.ones(1, dtype=strata.complex64).expand(2**62 + 5)
    for call in (
        lambda: strata.fft.fftfreq(most),
        lambda: strata.fft.rfftfreq(most),
        lambda: strata.fft.irfft(long),
        lambda: strata.fft.hfft(long),
        lambda: strata.fft.irfftn(long),
    ):
        with pytest.raises(RuntimeError, match="does not fit|too large"):
            call()
