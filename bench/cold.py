"""One fresh process: the milliseconds from a call of a function that is to be compiled to its results, its gradient too.
Arguments: LIBRARY, and sincos, mlp_step or gpt_step. Import, the model and its data come before the clock. With tiny_call: the
milliseconds of one call of a tiny function, once it is compiled."""

from __future__ import annotations

import sys
import time

from models import lib, parts, step_of, torch

torch.set_num_threads(2)
name = sys.argv[2]


def trig(x):
    return x.sin() ** 2 + x.cos() ** 2


if name == "tiny_call":
    x, count, best = torch.randn(10), 20000, 1e9
    compiled = torch.graph(trig, x).compile() if lib == "strata" else torch.compile(trig)
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            compiled(x)
        best = min(best, time.perf_counter() - start)
    milliseconds = best / count * 1e3
elif name == "sincos":
    x, ones = torch.randn(1000, requires_grad=True), torch.ones(1000)
    start = time.perf_counter()
    compiled = torch.graph(trig, x).compile() if lib == "strata" else torch.compile(trig)
    (slope,) = torch.autograd.grad(compiled(x), x, ones)
    milliseconds = (time.perf_counter() - start) * 1e3
    if slope.abs().max() > 1e-6:
        raise SystemExit("a wrong gradient")
else:
    model, optimizer, x, y, _ = parts(name)
    step = step_of(model, optimizer)
    if lib == "strata":
        optimizer.init_state()
    start = time.perf_counter()
    if lib == "strata":
        loss = torch.graph(step, x, y).compile()(x, y)
    else:
        loss = step(x, y, torch.compile(model))
    loss.item()
    milliseconds = (time.perf_counter() - start) * 1e3
print(f"{milliseconds:.6f}")
