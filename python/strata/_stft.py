"""Short-time Fourier transforms: frames of a signal, each transformed, and back."""

from __future__ import annotations

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

__all__ = ["istft", "stft"]


def _window(window: Tensor | None, win_length: int, n_fft: int, dtype: strata.dtype, device: strata.device) -> Tensor:
    """The window, in the middle of n_fft places."""
    if window is None:
        window = strata.ones(win_length, dtype=dtype, device=device)
    if window.dim() != 1 or window.shape[0] != win_length:
        raise RuntimeError(f"expected a 1D window tensor of size equal to win_length={win_length}, but got window with size {list(window.shape)}")
    left = (n_fft - win_length) // 2
    return strata.nn.functional.pad(window, (left, n_fft - win_length - left)) if win_length < n_fft else window


def _lengths(name: str, n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int]:
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    if hop <= 0:
        raise RuntimeError(f"{name}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win <= n_fft:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={win}")
    return hop, win


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Transforms of windowed pieces of a signal, hop_length apart: (length) or (B, length) to (B, frequencies, frames).

    hop_length: n_fft // 4 by default. center: pieces around their time, the ends filled by pad_mode. onesided: the first
    n_fft // 2 + 1 frequencies, the default for real signals. RuntimeError where return_complex is not said for a real one.
    """
    if return_complex is None and not (input.is_complex() or (window is not None and window.is_complex())):
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    if input.dim() not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {input.dim()}D")
    hop, win = _lengths("stft", n_fft, hop_length, win_length)
    batched = input.dim() == 2
    x = input if batched else input.unsqueeze(0)
    if center:
        x = strata.nn.functional.pad(x.unsqueeze(1), (n_fft // 2, n_fft // 2), mode=pad_mode).squeeze(1)
    if not 0 < n_fft <= x.shape[-1]:
        raise RuntimeError(f"stft: expected 0 < n_fft < {x.shape[-1]}, but got n_fft={n_fft}")
    frames = x.unfold(-1, n_fft, hop)
    if window is not None or win < n_fft:
        dtype = x.dtype if not x.is_complex() else (strata.float32 if x.dtype == strata.complex64 else strata.float64)
        frames = frames * _window(window, win, n_fft, dtype, x.device)
    one = (not frames.is_complex()) if onesided is None else onesided
    if one and frames.is_complex():
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    norm = "ortho" if normalized else None
    found = (strata.fft.rfft if one else strata.fft.fft)(frames, norm=norm).mT
    found = found if batched else found.squeeze(0)
    return strata.view_as_real(found.contiguous()) if return_complex is False else found


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose stft is nearest to the input: frames added where they overlap, over the sum of squared windows.

    RuntimeError where the windows leave places that no frame reaches.
    """
    if not input.is_complex():
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
    if input.dim() not in (2, 3):
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dimensions, but got {input.dim()}")
    hop, win = _lengths("istft", n_fft, hop_length, win_length)
    batched = input.dim() == 3
    x = (input if batched else input.unsqueeze(0)).mT  # (B, frames, frequencies)
    one = (x.shape[-1] != n_fft) if onesided is None else onesided
    if x.shape[-1] != (n_fft // 2 + 1 if one else n_fft):
        raise RuntimeError(
            f"istft: expected the frequency dimension (2nd to the last) of the input tensor to match "
            f"n_fft{' / 2 + 1' if one else ''} when onesided={one}, but got {x.shape[-1]}"
        )
    dtype = strata.float32 if x.dtype == strata.complex64 else strata.float64
    weights = _window(window, win, n_fft, dtype, x.device)
    norm = "ortho" if normalized else None
    if return_complex:
        frames = strata.fft.ifft(x, norm=norm)
    else:
        frames = strata.fft.irfft(x if one else x[..., : n_fft // 2 + 1], n=n_fft, norm=norm)
    frames = frames * weights
    count = frames.shape[1]
    total = n_fft + hop * (count - 1)
    places = (strata.arange(count, device=x.device)[:, None] * hop + strata.arange(n_fft, device=x.device)).flatten()
    signal = frames.new_zeros(frames.shape[0], total).index_add(1, places, frames.flatten(1))
    envelope = weights.new_zeros(total).index_add(0, places, weights.square().repeat(count))
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else (total - n_fft // 2 if center else total)
    signal, envelope = signal[:, start:end], envelope[start:end]
    if bool((envelope.abs() < 1e-11).any()):
        raise RuntimeError(f"istft: window overlap add min: {envelope.abs().min().item()}: the windows must reach every place")
    signal = signal / envelope
    if length is not None and signal.shape[1] < length:
        signal = strata.nn.functional.pad(signal, (0, length - signal.shape[1]))
    return signal if batched else signal.squeeze(0)
