"""What was compiled is let go of by reset(): objects are counted, over rounds of compiling and forgetting."""

import gc
import sys

import pytest
import strata
from strata import nn, optim


def pointwise():
    compiled = strata.compile(lambda x, y: (x.sin() + y).relu())
    compiled(strata.ones(3), strata.ones(3))


def sizes():
    compiled = strata.compile(lambda x, n: (x.sin() + n).sum())
    for n in (2, 3, 4, 5):
        compiled(strata.ones(n), n * 0.5)


def module():
    compiled = strata.compile(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Linear(4, 1)))
    compiled(strata.ones(3, 4)).sum().backward()


def training():
    net = nn.Linear(4, 1)
    optimizer = optim.Adam(net.parameters())

    def step(x):
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled = strata.compile(step)
    for _ in range(3):
        compiled(strata.ones(2, 4))


def broken():
    def f(x):
        y = x + 1
        if y.sum() > 0:
            y = y * 2
        return y.sum().item()

    strata.compile(f)(strata.ones(3))


def text():
    space = {}
    exec("def f(x, k=2):\n    return [x * k for _ in range(2)][0] + x.cos()", space)
    strata.compile(space["f"])(strata.ones(3))


def held(work, rounds):
    """How many objects and blocks of memory that many rounds leave behind."""
    for _ in range(rounds):
        work()
        strata.compiler.reset()
    gc.collect()
    return len(gc.get_objects()), sys.getallocatedblocks()


@pytest.mark.parametrize("work", [pointwise, sizes, module, training, broken, text])
def test_rounds_leave_nothing(work):
    held(work, 5)
    objects, blocks = held(work, 5)
    more_objects, more_blocks = held(work, 25)
    assert more_objects - objects < 25
    # An entry is hundreds of blocks; Python's cache of attributes keeps a few names a round until it is full.
    assert more_blocks - blocks < 40 * 25
