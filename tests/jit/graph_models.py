"""Training steps for the tests of graphs: an MLP and a small GPT, each with dropout, clipping and a schedule."""

from __future__ import annotations

import strata

nn, F = strata.nn, strata.nn.functional


def same(a, b) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and strata.equal(a, b)


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.first, self.second, self.drop = nn.LayerNorm(width), nn.LayerNorm(width), nn.Dropout(0.1)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(y.transpose(1, 2).reshape(b, t, d)))
        return x + self.drop(self.down(F.gelu(self.up(self.second(x)))))


class GPT(nn.Module):
    def __init__(self, words: int = 100, length: int = 32, width: int = 64, heads: int = 4, layers: int = 2):
        super().__init__()
        self.token, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.place(strata.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def mlp():
    model = nn.Sequential(nn.Linear(196, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 128), nn.ReLU(), nn.LayerNorm(128), nn.Linear(128, 10))
    return model, lambda: (strata.randn(32, 196), strata.randint(0, 10, (32,)))


def gpt():
    return GPT(), lambda: (strata.randint(0, 100, (2, 32)), strata.randint(0, 100, (2, 32)))


def step_of(model, optimiser):
    def step(x, y):
        optimiser.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out.view(-1, out.shape[-1]), y.view(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimiser.step()
        return loss

    return step


def everything(model, optimiser) -> list:
    """All that training changes: parameters, gradients, the optimiser's state, the generator's."""
    state = [v for t in optimiser.state.values() for v in t.values() if v is not None]
    return [*(p.detach().clone() for p in model.parameters()), *(p.grad.clone() for p in model.parameters()),
            *(v.clone() for v in state), strata.default_generator.get_state()]
