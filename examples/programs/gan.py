"""A generative adversarial network that learns where points lie, with convolutions over pairs of them."""

import math
import random

import strata as torch
from strata import nn, optim

random.seed(1)


def normal(*shape):
    return torch.tensor([random.gauss(0, 1) for _ in range(math.prod(shape))]).reshape(shape)


def weights_init(module):
    name = module.__class__.__name__
    if name.find("Conv") != -1 or name.find("Linear") != -1:
        module.weight.data = normal(*module.weight.shape) * 0.2
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif name.find("BatchNorm") != -1:
        nn.init.constant_(module.weight, 1.0)
        nn.init.zeros_(module.bias)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose1d(4, 8, 4, 1, 0, bias=False), nn.BatchNorm1d(8), nn.ReLU(True),
            nn.ConvTranspose1d(8, 1, 4, 2, 1, bias=False), nn.Tanh(),
        )  # fmt: skip

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv1d(1, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv1d(8, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, input):
        return self.main(input).view(-1)


netG, netD = Generator(), Discriminator()
netG.apply(weights_init)
netD.apply(weights_init)
print(netG)
criterion = nn.BCELoss()
optimizerD = optim.Adam(netD.parameters(), lr=0.01, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=0.01, betas=(0.5, 0.999))
wave = torch.sin(torch.arange(8) * math.pi / 4)
for step in range(12):
    real = (wave + 0.05 * normal(16, 8)).unsqueeze(1)
    netD.zero_grad()
    label = torch.full((16,), 1.0)
    errD_real = criterion(netD(real), label)
    errD_real.backward()
    fake = netG(normal(16, 4, 1))
    label.fill_(0.0)
    errD_fake = criterion(netD(fake.detach()), label)
    errD_fake.backward()
    optimizerD.step()
    netG.zero_grad()
    label.fill_(1.0)
    errG = criterion(netD(fake), label)
    errG.backward()
    optimizerG.step()
    if step % 4 == 3:
        print(f"[{step}] Loss_D: {(errD_real + errD_fake).item():.3f} Loss_G: {errG.item():.3f}")
print(fake.shape, netG.main[1].num_batches_tracked.item(), f"{netG.main[1].running_var.mean().item():.3f}")
