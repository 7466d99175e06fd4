"""Writes through views of views, recorded: the base's gradient shows the view by the view operators that say it."""

from __future__ import annotations

import random

import pytest
import strata

DOUBLE = strata.float64

VIEWS = {
    "select": lambda t: t[1],
    "select last": lambda t: t[..., 2],
    "steps": lambda t: t[:, 1:4:2],
    "turned": lambda t: t.transpose(0, 1)[2:],
    "permuted": lambda t: t.unsqueeze(1).permute(2, 1, 0),
    "flat": lambda t: t.view(-1)[3:17:3],
    "across rows": lambda t: t.view(-1)[2:9],
    "other shape": lambda t: t.view(2, 2, 5)[:, 1],
    "whole": lambda t: t.view(5, 4),
    "one element": lambda t: t[1:2, 3:4],
    "halves": lambda t: t.chunk(2, 1)[1],
}


@pytest.mark.parametrize("name", [*VIEWS, "diagonal", "windows"])
def test_gradients(name):
    view = {**VIEWS, "diagonal": lambda t: t.diagonal(), "windows": lambda t: t.unfold(1, 2, 2)}[name]

    def write(x, w):
        base = x * 2
        part = view(base)
        part.mul_(w).add_(1)
        return base.sin() + part.sum()

    x = strata.randn(4, 5, dtype=DOUBLE, requires_grad=True)
    w = strata.rand(view(x).shape, dtype=DOUBLE, requires_grad=True)
    assert strata.autograd.gradcheck(write, (x, w)) and strata.autograd.gradgradcheck(write, (x, w))


@pytest.mark.parametrize("name", [*VIEWS, "diagonal"])
def test_which_operators_show_it(name):
    x = strata.randn((3, 3, 4) if name == "diagonal" else (4, 5), requires_grad=True)

    def step(x):
        base = x * 2
        part = VIEWS.get(name, lambda t: t.diagonal())(base)
        part.mul_(3)
        return strata.autograd.grad((base.sum(), part.sum()), x)[0]

    operators = {node.op for node in strata.graph(step, x).nodes}
    assert ("aten::as_strided" in operators) == (name == "diagonal")


def random_view(t, choose):
    kind = choose.choice(["select", "slice", "turn", "one", "flat", "part"])
    if kind == "select" and t.dim() > 1:
        d = choose.randrange(t.dim())
        return t.select(d, choose.randrange(t.shape[d]))
    if kind in ("slice", "part") and t.dim():
        d = choose.randrange(t.dim())
        start = choose.randrange(t.shape[d])
        step = choose.randint(1, 3) if kind == "slice" else 1
        return t[(slice(None),) * d + (slice(start, choose.randint(start + 1, t.shape[d]), step),)]
    if kind == "turn" and t.dim() > 1:
        return t.permute(choose.sample(range(t.dim()), t.dim()))
    if kind == "one":
        return t.unsqueeze(choose.randint(0, t.dim()))
    if kind == "flat" and t.is_contiguous():
        return t.view(-1)
    return t


@pytest.mark.parametrize("seed", range(150))
def test_random_views(seed):
    """What was written is a mask over the base: the gradient passes by 3 where it is, by 1 elsewhere."""
    choose = random.Random(seed)
    shape = [choose.randint(1, 4) for _ in range(choose.randint(1, 4))]
    x = strata.randn(shape, dtype=DOUBLE)
    if choose.random() < 0.5 and len(shape) > 1:
        x = x.permute(choose.sample(range(len(shape)), len(shape)))
    x.requires_grad_()
    chain = random.Random(seed + 1000)
    base = x * 1
    mask = strata.empty_strided(base.shape, base.stride(), dtype=DOUBLE).fill_(1)
    steps, state = chain.randint(1, 5), chain.getstate()
    for target in (base, mask):
        chain.setstate(state)
        view = target
        for _ in range(steps):
            view = random_view(view, chain)
        view.mul_(3)
    seed_grad = strata.randn_like(base)
    base.backward(seed_grad)
    assert strata.equal(x.grad, seed_grad * mask)
