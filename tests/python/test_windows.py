"""strata.signal.windows against NumPy's windows, and by their definitions."""

import math

import numpy as np
import pytest
import strata as torch
from strata.signal import windows

NAMES = sorted(windows.__all__)
NEEDED = {"general_cosine": {"a": [0.4, 0.5, 0.1]}}


@pytest.mark.parametrize("count", [2, 7, 12])
@pytest.mark.parametrize(
    ("name", "other"),
    [("bartlett", np.bartlett), ("blackman", np.blackman), ("hamming", np.hamming), ("hann", np.hanning)],
)
def test_windows_agree_with_numpy(name, other, count):
    found = getattr(windows, name)(count, dtype=torch.float64)
    np.testing.assert_allclose(found.numpy(), other(count), atol=1e-12)


def test_kaiser_agrees_with_numpy():
    found = windows.kaiser(9, beta=6.5, dtype=torch.float64)
    np.testing.assert_allclose(found.numpy(), np.kaiser(9, 6.5), atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_every_window(name):
    make, needed = getattr(windows, name), NEEDED.get(name, {})
    symmetric = make(9, dtype=torch.float64, **needed)
    torch.testing.assert_close(symmetric, symmetric.flip(0))
    torch.testing.assert_close(make(8, sym=False, dtype=torch.float64, **needed), symmetric[:-1])
    assert make(0, **needed).shape == (0,) and make(1, **needed).tolist() == [1.0]
    assert make(4, requires_grad=True, **needed).requires_grad and make(4, **needed).dtype == torch.float32
    with pytest.raises(ValueError, match=f"{name} requires non-negative window length, got M=-1"):
        make(-1, **needed)
    with pytest.raises(ValueError, match="float32 or float64"):
        make(3, dtype=torch.bfloat16, **needed)
    with pytest.raises(TypeError, match="'colour'"):
        make(3, colour=1, **needed)


def test_definitions():
    at = torch.arange(5, dtype=torch.float64)
    torch.testing.assert_close(windows.gaussian(5, std=0.7, dtype=torch.float64), (-(((at - 2) / 0.7) ** 2) / 2).exp())
    torch.testing.assert_close(windows.exponential(5, tau=2.0, dtype=torch.float64), (-(at - 2).abs() / 2).exp())
    late = windows.exponential(5, center=3, tau=2.0, sym=False, dtype=torch.float64)
    torch.testing.assert_close(late, (-(at - 3).abs() / 2).exp())
    torch.testing.assert_close(windows.cosine(5, dtype=torch.float64), ((at + 0.5) * math.pi / 5).sin())
    four = windows.nuttall(5, dtype=torch.float64)
    assert four[0].item() == pytest.approx(0.3635819 - 0.4891775 + 0.1365995 - 0.0106411) and four[
        2
    ].item() == pytest.approx(1)


def test_refusals():
    for error, call in [
        (ValueError, lambda: windows.kaiser(3, beta=-1.0)),
        (ValueError, lambda: windows.gaussian(3, std=0.0)),
        (ValueError, lambda: windows.exponential(3, tau=-1.0)),
        (ValueError, lambda: windows.exponential(3, center=1)),
        (ValueError, lambda: windows.general_cosine(3, a=[])),
        (TypeError, lambda: windows.general_cosine(3, a=0.5)),
    ]:
        with pytest.raises(error):
            call()


def test_the_length_of_a_signal_may_be_any_number():
    frames, window = torch.ones(1, 5, 4, dtype=torch.complex64), torch.hann_window(8)
    for length in (2**63 - 1, -5):
        with pytest.raises(RuntimeError):
            frames.istft(8, 3, window=window, length=length)
