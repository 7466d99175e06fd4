"""A recurrent model traced, run with other batches and lengths, trained, saved and loaded."""

import math
import random

import strata as torch
from strata import nn
from strata.nn import functional as F

random.seed(7)


def normal(*shape):
    return torch.tensor([random.gauss(0, 0.4) for _ in range(math.prod(shape))]).reshape(shape)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.norm = nn.Embedding(12, 6), nn.GRU(6, 8, batch_first=True), nn.LayerNorm(8)
        self.out = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 3))

    def forward(self, tokens):
        states, last = self.rnn(self.embed(tokens))
        return self.out(self.norm(states)), last


model = Tagger()
with torch.no_grad():
    for p in model.parameters():
        p.copy_(normal(*p.shape))
tokens = torch.tensor([[random.randrange(12) for _ in range(5)] for _ in range(4)])
traced = torch.jit.trace(model, tokens)
print(traced)
print(list(traced.state_dict()))
for batch in (4, 2, 1):
    scores, last = traced(tokens[:batch])
    expected, _ = model(tokens[:batch])
    print(tuple(scores.shape), tuple(last.shape), torch.allclose(scores, expected, atol=1e-6), f"{scores.abs().mean().item():.4f}")
optimizer = torch.optim.SGD(traced.parameters(), lr=0.5)
target = tokens % 3
for step in range(10):
    optimizer.zero_grad()
    scores, _ = traced(tokens)
    loss = F.cross_entropy(scores.reshape(-1, 3), target.reshape(-1))
    loss.backward()
    optimizer.step()
    if step % 3 == 0:
        print(step, f"{loss.item():.3f}")
print((traced(tokens)[0].argmax(-1) == model(tokens)[0].argmax(-1)).all().item())
traced.eval().save("tagger.pt")
loaded = torch.jit.load("tagger.pt")
print(loaded.original_name, torch.equal(loaded(tokens)[0], traced(tokens)[0]))


def distance(a, b):
    return torch.sqrt(((a - b) ** 2).sum(-1))


points = normal(6, 2)
compiled = torch.jit.trace(distance, (points, points.flip(0)))
print(isinstance(compiled, torch.jit.ScriptFunction), [f"{v:.3f}" for v in compiled(points, points.roll(1, 0)).tolist()])
