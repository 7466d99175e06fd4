"""A low-pass filter learned in the frequency domain, a spectrogram and an image's blur."""

import math

import strata as torch
from strata import nn

n = 256
t = torch.arange(n) / n
clean = torch.sin(2 * math.pi * 3 * t) + 0.5 * torch.cos(2 * math.pi * 7 * t)
noisy = clean + 0.4 * torch.sin(2 * math.pi * 60 * t) + 0.3 * torch.cos(2 * math.pi * 90 * t)

spectrum = torch.fft.rfft(noisy)
strength = spectrum.abs()
peaks = strength.topk(4).indices.sort().values
print("peaks at", torch.fft.rfftfreq(n, 1 / n)[peaks].tolist())
kept = torch.where(torch.fft.rfftfreq(n, 1 / n) < 20, spectrum, torch.zeros_like(spectrum))
print(f"error of the cut: {(torch.fft.irfft(kept, n=n) - clean).abs().max().item():.4f}")


class Filter(nn.Module):
    """One gain for each frequency."""

    def __init__(self, length):
        super().__init__()
        self.length = length
        self.gain = nn.Parameter(torch.ones(length // 2 + 1))

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x, norm="ortho") * self.gain, n=self.length, norm="ortho")


model = Filter(n)
optimizer = torch.optim.SGD(model.parameters(), lr=0.005)
for step in range(30):
    optimizer.zero_grad()
    loss = (model(noisy) - clean).pow(2).sum()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
print("gains at the peaks:", [round(g, 2) for g in model.gain[peaks].tolist()])

window = torch.hann_window(64)
frames = torch.stft(noisy, 64, hop_length=16, window=window, return_complex=True)
print(tuple(frames.shape), f"{frames.abs().max().item():.3f}")
back = torch.istft(frames, 64, hop_length=16, window=window, length=n)
print(f"back within 1e-5: {bool((back - noisy).abs().max() < 1e-5)}")

image = torch.outer(torch.sin(torch.arange(32) / 3), torch.cos(torch.arange(24) / 5))
kernel = torch.zeros(32, 24)
kernel[:3, :3] = 1 / 9
blurred = torch.fft.irfft2(torch.fft.rfft2(image) * torch.fft.rfft2(kernel), s=image.shape)
print(tuple(blurred.shape), f"{blurred[5, 7].item():.4f} {image[3:6, 5:8].mean().item():.4f}")
print(torch.fft.fftshift(torch.fft.fftfreq(8)).tolist())
