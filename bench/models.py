"""Models of the benchmarks, of the library that the command line names."""

from __future__ import annotations

import importlib
import sys

lib = sys.argv[1]
torch = importlib.import_module(lib)
nn = importlib.import_module(lib + ".nn")
F = importlib.import_module(lib + ".nn.functional")


class GPT(nn.Module):
    """4 layers, width 256, 8 heads, vocabulary 4,096."""

    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(4096, 256), nn.Embedding(128, 256)
        self.blocks = nn.ModuleList([Block() for _ in range(4)])
        self.norm, self.head = nn.LayerNorm(256), nn.Linear(256, 4096, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(256), nn.LayerNorm(256)
        self.qkv, self.out = nn.Linear(256, 768), nn.Linear(256, 256)
        self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, t, 3, 8, 32).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.second(x))))


def step_of(model, optimizer):
    """A training step of a batch; `forward` stands for the model where it is given."""

    def step(x, y, forward=model):
        optimizer.zero_grad()
        out = forward(x)
        loss = F.cross_entropy(out.view(-1, out.shape[-1]), y.view(-1))
        loss.backward()
        optimizer.step()
        return loss

    return step


def parts(name: str):
    """A model, its optimiser, a batch, and how many steps make a block."""
    if name == "mlp_step":
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        return model, torch.optim.SGD(model.parameters(), lr=0.01), torch.randn(64, 784), torch.randint(0, 10, (64,)), 20
    model = GPT()
    tokens = torch.randint(0, 4096, (2, 128))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4), tokens, tokens, 3


class Residual(nn.Module):
    """Convolutions and a way past them; WIDER channels come out for each of `width`."""

    WIDER = 1

    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__()
        outputs = self.WIDER * width
        past = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.past = past if stride > 1 or inputs != outputs else nn.Identity()


class Basic(Residual):
    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__(inputs, width, stride)
        self.conv1, self.norm1 = nn.Conv2d(inputs, width, 3, stride, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.past(x))


class Bottleneck(Residual):
    WIDER = 4

    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__(inputs, width, stride)
        self.conv1, self.norm1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(self.norm3(self.conv3(y)) + self.past(x))


def resnet(kind: type[Residual], counts: tuple[int, ...]):
    """He et al. 2015, with the stride in the 3 x 3 convolutions; for inference."""
    layers = [nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)]
    inputs = 64
    for width, count, stride in zip((64, 128, 256, 512), counts, (1, 2, 2, 2), strict=True):
        for i in range(count):
            layers.append(kind(inputs, width, stride if i == 0 else 1))
            inputs = kind.WIDER * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)).eval()


def resnet18():
    return resnet(Basic, (2, 2, 2, 2))


def resnet50():
    return resnet(Bottleneck, (3, 4, 6, 3))
