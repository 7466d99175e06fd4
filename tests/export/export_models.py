"""Modules of twelve kinds, which are exported, saved, loaded and run in C++."""

from __future__ import annotations

from typing import NamedTuple

import strata
import strata.nn.functional as F
from strata import nn


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))

    def forward(self, x):
        return self.net(x).softmax(-1)


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(8 * 4 * 4, 5)

    def forward(self, x):
        return self.head(F.max_pool2d(F.relu(self.norm(self.conv(x))), 2).flatten(1))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(4, 4, 3, padding=1, bias=False) for _ in range(2))
        self.norm, self.last = nn.BatchNorm2d(4), nn.BatchNorm2d(4)

    def forward(self, x):
        return F.relu(self.last(self.second(F.relu(self.norm(self.first(x))))) + x)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), 2)

    def forward(self, x):
        return self.layers(x)


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(50, 16), nn.Embedding(12, 16)
        self.qkv, self.out, self.norm = nn.Linear(16, 48), nn.Linear(16, 16), nn.LayerNorm(16)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.tokens.weight
        self.register_buffer("mask", strata.tril(strata.ones(12, 12)).bool(), persistent=False)

    def forward(self, tokens):
        batch, length = tokens.shape
        x = self.tokens(tokens) + self.places(strata.arange(length))
        q, k, v = (t.view(batch, length, 4, 4).transpose(1, 2) for t in self.qkv(self.norm(x)).split(16, -1))
        scores = ((q @ k.transpose(-2, -1)) / 2).masked_fill(~self.mask[:length, :length], float("-inf"))
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, 16))
        return self.head(x)


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.LSTM(6, 10, 2, batch_first=True)

    def forward(self, x):
        y, (h, c) = self.net(x)
        return y[:, -1], h, c


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(20, 6, mode="sum")

    def forward(self, tokens, offsets):
        return self.bag(tokens, offsets)


class Vae(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, 6), nn.Linear(3, 8)

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, -1)
        z = mean + strata.randn_like(mean) * (0.5 * log_variance).exp()
        return strata.sigmoid(self.decoder(z)), mean, log_variance


class Pair(NamedTuple):
    a: object
    b: object


class Nests(nn.Module):
    def forward(self, d, p, *, scale=2.0):
        return {"sum": d["x"] + p.a, "pair": Pair(d["y"] * scale, p.b), "n": 3}


class Buffers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", strata.zeros(3))
        self.register_buffer("calls", strata.zeros(()))

    def forward(self, x):
        self.total.add_(x.sum(0))
        self.calls = self.calls + 1
        return x + self.total


class Branch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.yes, self.no = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return strata.cond(x.sum() > 0, lambda x: self.yes(x).relu(), lambda x: self.no(x) * 2, (x,))


class Loop(nn.Module):
    def forward(self, x):
        start = strata.zeros((), dtype=strata.int64), x
        turns, y = strata.while_loop(lambda i, x: (x.abs().sum() < 100) & (i < 20), lambda i, x: (i + 1, x * 1.5), start)
        return y, turns


def cases() -> dict[str, tuple[nn.Module, tuple, tuple]]:
    """By name: a module, example inputs, and others that it is run on."""

    def twice(make):
        return make(), make()

    def floats(*sizes):
        return twice(lambda: (strata.randn(*sizes),))

    x = strata.randn(2, 4)
    return {
        "mlp": (Mlp(), *floats(3, 8)),
        "cnn": (Cnn(), *floats(2, 3, 8, 8)),
        "residual": (Residual(), *floats(2, 4, 6, 6)),
        "encoder": (Encoder().eval(), *floats(2, 5, 16)),
        "gpt": (Gpt(), *twice(lambda: (strata.randint(0, 50, (2, 7)),))),
        "lstm": (Lstm(), *floats(2, 5, 6)),
        "bag": (Bag(), *twice(lambda: (strata.randint(0, 20, (7,)), strata.tensor([0, 3])))),
        "vae": (Vae(), *floats(4, 8)),
        "nests": (Nests(), *twice(lambda: ({"x": strata.randn(3), "y": strata.randn(2)}, Pair(strata.randn(3), strata.randn(1))))),
        "buffers": (Buffers(), *floats(4, 3)),
        "branch": (Branch(), (x.abs(),), (-x.abs(),)),
        "loop": (Loop(), *floats(3)),
    }


def recorded(program) -> dict[str, list[str]]:
    """What of an exported program is PyTorch's, too: the lines of its signature, its nodes' names and what they call."""
    nodes = [f"{n.op} {n.name.removesuffix('_default')} {'' if n.op == 'output' else str(n.target).removesuffix('.default')}" for n in program.graph.nodes]
    return {"signature": str(program.graph_signature).splitlines(), "nodes": nodes}
