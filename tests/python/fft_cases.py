"""Calls of strata.fft, stft and istft whose results tools/record_fft.py records from PyTorch."""

from __future__ import annotations


def signal(torch, *shape, complex=False):
    n = 1
    for size in shape:
        n *= size
    x = torch.arange(n, dtype=torch.float64)
    x = ((x * x * 0.37 + x * 0.11) % 1.7 - 0.8).reshape(shape)
    return torch.complex(x, x.flip(0) * 0.5) if complex else x


def _real(torch, x):
    return torch.view_as_real(x.resolve_conj().contiguous()) if x.is_complex() else x


# name: call(torch, module fft)
CALLS = {
    "fft": lambda t, f: f.fft(signal(t, 3, 5), n=8, dim=0, norm="ortho"),
    "fft of integers": lambda t, f: f.fft(t.arange(6)),
    "ifft": lambda t, f: f.ifft(signal(t, 3, 5, complex=True), n=4, norm="forward"),
    "rfft": lambda t, f: f.rfft(signal(t, 2, 7), n=6, norm="forward"),
    "irfft": lambda t, f: f.irfft(signal(t, 3, 5, complex=True)),
    "irfft odd": lambda t, f: f.irfft(signal(t, 3, 5, complex=True), n=7, dim=0, norm="ortho"),
    "hfft": lambda t, f: f.hfft(signal(t, 3, 5, complex=True)),
    "hfft odd": lambda t, f: f.hfft(signal(t, 3, 5, complex=True), n=5, norm="forward"),
    "ihfft": lambda t, f: f.ihfft(signal(t, 3, 6)),
    "fft2": lambda t, f: f.fft2(signal(t, 2, 3, 4)),
    "ifft2": lambda t, f: f.ifft2(signal(t, 2, 3, 4), s=(2, -1), dim=(0, 2)),
    "rfft2": lambda t, f: f.rfft2(signal(t, 2, 3, 4), norm="ortho"),
    "irfft2": lambda t, f: f.irfft2(signal(t, 2, 3, 4, complex=True), s=(3, 5)),
    "fftn": lambda t, f: f.fftn(signal(t, 2, 3, 4)),
    "fftn s": lambda t, f: f.fftn(signal(t, 2, 3, 4), s=(5, 2)),
    "ifftn": lambda t, f: f.ifftn(signal(t, 2, 3, 4), dim=(0, 1)),
    "rfftn": lambda t, f: f.rfftn(signal(t, 2, 3, 4), dim=(2, 0)),
    "irfftn": lambda t, f: f.irfftn(signal(t, 2, 3, 4, complex=True)),
    "hfft2": lambda t, f: f.hfft2(signal(t, 2, 3, 4, complex=True)),
    "ihfft2": lambda t, f: f.ihfft2(signal(t, 2, 3, 4)),
    "hfftn": lambda t, f: f.hfftn(signal(t, 2, 3, 4, complex=True), s=(3, 5), dim=(0, 2), norm="ortho"),
    "ihfftn": lambda t, f: f.ihfftn(signal(t, 2, 3, 4), norm="forward"),
    "fftfreq": lambda t, f: f.fftfreq(5, 0.1, dtype=t.float64),
    "rfftfreq": lambda t, f: f.rfftfreq(6, 0.1, dtype=t.float64),
    "fftshift": lambda t, f: f.fftshift(signal(t, 4, 5)),
    "ifftshift": lambda t, f: f.ifftshift(signal(t, 4, 5), dim=1),
    "stft": lambda t, f: t.stft(signal(t, 40), 8, return_complex=True),
    "stft window": lambda t, f: t.stft(
        signal(t, 2, 40), 8, 3, 6, t.hann_window(6, dtype=t.float64), normalized=True, pad_mode="constant", return_complex=True
    ),
    "stft two sides": lambda t, f: t.stft(signal(t, 40), 8, center=False, onesided=False, return_complex=False),
    "stft aligned": lambda t, f: t.stft(signal(t, 40), 8, 2, 5, center=False, align_to_window=True, return_complex=True),
    "stft not aligned": lambda t, f: t.stft(signal(t, 40), 8, 2, 5, center=False, align_to_window=False, return_complex=True),
    "istft": lambda t, f: t.istft(
        t.stft(signal(t, 2, 40), 8, 2, window=t.hann_window(8, dtype=t.float64), return_complex=True),
        8, 2, window=t.hann_window(8, dtype=t.float64), length=39,
    ),
}  # fmt: skip
# Gradients of sum(result * weights), with and without conjugate partners.
GRADIENTS = {
    "fft": (lambda t, x: t.fft.fft(x, n=7), True),
    "rfft even": (lambda t, x: t.fft.rfft(x), False),
    "rfft odd": (lambda t, x: t.fft.rfft(x, n=5, norm="ortho"), False),
    "irfft even": (lambda t, x: t.fft.irfft(x), True),
    "irfft odd": (lambda t, x: t.fft.irfft(x, n=7), True),
    "hfft": (lambda t, x: t.fft.hfft(x), True),
    "ihfft": (lambda t, x: t.fft.ihfft(x), False),
    "fft2": (lambda t, x: t.fft.fft2(x), True),
    "irfftn": (lambda t, x: t.fft.irfftn(x), True),
    "stft": (lambda t, x: t.stft(x.reshape(-1), 4, 2, return_complex=True), False),
}


def numbers(torch, x):
    """Shape and values; what is complex as pairs."""
    x = _real(torch, x.detach().resolve_conj()).double()
    return [list(x.shape), [round(v, 12) + 0.0 for v in x.flatten().tolist()]]


def gradient(torch, name):
    function, is_complex = GRADIENTS[name]
    x = signal(torch, 4, 6, complex=is_complex).requires_grad_()
    y = _real(torch, function(torch, x))
    (y * (signal(torch, *y.shape) + 0.3)).sum().backward()
    return numbers(torch, x.grad)
