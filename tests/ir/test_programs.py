"""Random programs of views, writes in place, copies that are none, common parts, dead ones and random numbers: each pass, and all
in turn, keep what runs give."""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ops"))

import numpy as np
import test_graphs
from table import pytest, sampled, strata

UNARY = [strata.sin, strata.neg, strata.abs, strata.floor, strata.relu, strata.sigmoid, lambda t: t * 1, lambda t: t / 1, lambda t: t + 0,
         lambda t: t - 0, lambda t: t.neg().neg(), lambda t: t.to(strata.float64).to(strata.float32), lambda t: t.clone(), lambda t: t + -0.0,
         lambda t: t.floor().floor(), lambda t: t.bfloat16().to(strata.float32), lambda t: t * strata.ones(()) * 3]
VIEWS = [lambda t: t[1:], lambda t: t[::2], lambda t: t[..., 0], lambda t: t.t() if t.dim() == 2 else t.unsqueeze(-1), lambda t: t.detach(),
         lambda t: t.unsqueeze(0), lambda t: t.squeeze(), lambda t: t.view(-1), lambda t: t.reshape(-1), lambda t: t.permute(*range(t.dim())[::-1]),
         lambda t: t.diagonal(), lambda t: t.split(2)[-1], lambda t: t.unbind()[0], lambda t: t.chunk(2, -1)[0], lambda t: t.select(0, -1),
         lambda t: t.transpose(0, -1).transpose(0, -1), lambda t: t.view(t.shape), lambda t: t.unsqueeze(1).squeeze(1), lambda t: t.narrow(0, 0, 1),
         lambda t: t.expand(2, *t.shape), lambda t: t.unflatten(0, (1, -1)).flatten(0, 1), lambda t: t.movedim(0, -1)]
WRITES = [lambda t, o: t.mul_(3), lambda t, o: t.add_(o), lambda t, o: t.copy_(o), lambda t, o: t.fill_(2), lambda t, o: t.zero_(),
          lambda t, o: t.neg_(), lambda t, o: t.clamp_(min=0), lambda t, o: t.masked_fill_(t > 0.5, -1), lambda t, o: t[0].add_(1),
          lambda t, o: t.sub_(t.sum()), lambda t, o: t.exp_(), lambda t, o: t.copy_(t.flip(0)), lambda t, o: t.lt_(0.3), lambda t, o: t.t_(),
          lambda t, o: t.index_fill_(0, strata.tensor([0]), 4.0), lambda t, o: t.bernoulli_(0.5), lambda t, o: t.squeeze_(),
          lambda t, o: strata.add(o, 1, out=t)]
OTHERS = [lambda t, o: t + o, lambda t, o: t * o, lambda t, o: strata.cat([t, t]), lambda t, o: t.sum(0), lambda t, o: t.sum() + t,
          lambda t, o: strata.where(t > 0, t, o), lambda t, o: strata.nn.functional.dropout(t, 0.5), lambda t, o: strata.rand_like(t) + t,
          lambda t, o: strata.zeros_like(t), lambda t, o: strata.full((), 2.0).sqrt() * t, lambda t, o: t.softmax(-1), lambda t, o: t.mean(-1, True)]
ERRORS = (RuntimeError, ValueError, TypeError, IndexError)


def program(seed: int):
    """A function of three tensors; a step that raises is none."""

    def f(*inputs):
        chooser, pool = random.Random(seed), list(inputs)
        for _ in range(chooser.randint(4, 14)):
            t, o = chooser.choice(pool), chooser.choice(pool)
            kind, k = chooser.choices(["unary", "view", "write", "other", "again"], [3, 5, 4, 3, 1])[0], chooser.random()
            pick = {"unary": UNARY, "view": VIEWS, "write": WRITES, "other": OTHERS, "again": UNARY}[kind]
            step = pick[int(k * len(pick))]
            try:
                made = step(t) if kind in ("unary", "view", "again") else step(t, o)
                if kind == "again":
                    made = made + step(t)
            except ERRORS:
                continue
            if made.numel() and made.numel() < 200 and made.dtype == strata.float32:
                pool.append(made)
        return chooser.sample(pool, min(len(pool), chooser.randint(1, 4)))

    return f


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("seed", sampled(list(range(4000)), 400))
def test_programs(seed):
    draw = np.random.default_rng(seed)

    def tensors():
        a, b, c = (draw.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 3), (4,)))
        return [strata.tensor(a), strata.tensor(b).t(), strata.tensor(c)]

    f, first, second = program(seed), tensors(), tensors()
    test_graphs.at_word(3)
    # Constants of the program are captured.
    graph, _ = strata._C._record(f, test_graphs.copies(first))
    strata._C._graph_verify(graph, False)
    test_graphs.reads_back(graph)
    test_graphs.keeps_results(graph, second)
