"""A small language model: embedding, causal attention, layer_norm, AdamW and a learning-rate schedule learn a text."""

import pytest
import strata
from strata import nn
from strata.nn import functional as F

TEXT = (
    "how sweet the moonlight sleeps upon this bank! here will we sit and let the sounds of music creep in our ears: soft "
    "stillness and the night become the touches of sweet harmony. sit, jessica. look how the floor of heaven is thick "
    "inlaid with patines of bright gold: there's not the smallest orb which thou behold'st but in his motion like an "
    "angel sings, still quiring to the young-eyed cherubins."
)
CONTEXT = 32


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, symbols, width=48, heads=4, layers=2):
        super().__init__()
        self.token, self.place = nn.Embedding(symbols, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, symbols, bias=False)
        self.head.weight = self.token.weight
        for table in (self.token, self.place):
            nn.init.normal_(table.weight, 0.0, 0.1)

    def forward(self, tokens):
        x = self.token(tokens) + self.place(strata.arange(tokens.size(1)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    @strata.no_grad()
    def write(self, tokens, count):
        for _ in range(count):
            best = self(tokens[:, -CONTEXT:])[:, -1].argmax(-1, keepdim=True)
            tokens = strata.cat([tokens, best], 1)
        return tokens


def encoded():
    symbols = sorted(set(TEXT))
    return symbols, strata.tensor([symbols.index(c) for c in TEXT])


def train(model, data, steps, autocast=False):
    optimizer = strata.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = strata.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    windows = data.unfold(0, CONTEXT + 1, 1)
    losses = []
    for _ in range(steps):
        batch = windows[strata.randint(len(windows), (12,))]
        with strata.autocast("cpu", dtype=strata.bfloat16, enabled=autocast):
            scores = model(batch[:, :-1])
            loss = F.cross_entropy(scores.flatten(0, 1), batch[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def test_it_learns_the_text():
    strata.manual_seed(0)
    symbols, data = encoded()
    model = GPT(len(symbols))
    losses = train(model, data, 300)
    assert losses[0] > 2.5 and sum(losses[-10:]) / 10 < 0.35
    start = TEXT[:16]
    written = model.eval().write(data[None, :16], 40)[0].tolist()
    assert "".join(symbols[i] for i in written).startswith(start)
    assert sum(a == b for a, b in zip(written, data.tolist(), strict=False)) > 45


@pytest.mark.parametrize("autocast", [False, True])
def test_the_first_steps_lower_the_loss(autocast):
    strata.manual_seed(1)
    symbols, data = encoded()
    losses = train(GPT(len(symbols)), data, 40, autocast)
    assert losses[-1] < losses[0] - 0.7


def test_later_tokens_do_not_reach_earlier_ones():
    strata.manual_seed(2)
    symbols, data = encoded()
    model = GPT(len(symbols))
    a, b = data[None, :CONTEXT].clone(), data[None, :CONTEXT].clone()
    b[0, 20:] = (b[0, 20:] + 1) % len(symbols)
    assert strata.equal(model(a)[:, :20], model(b)[:, :20])
    assert not strata.equal(model(a)[:, 20:], model(b)[:, 20:])
