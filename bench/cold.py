"""One fresh process: the milliseconds from a call of a function that is to be compiled to its results, its gradient too.
Arguments: LIBRARY, and sincos, mlp_step or gpt_step. Import, the model and its data come before the clock."""

from __future__ import annotations

import sys
import time

from models import lib, parts, step_of, torch

torch.set_num_threads(2)
name = sys.argv[2]
if name == "sincos":
    x, ones = torch.randn(1000, requires_grad=True), torch.ones(1000)

    def trig(x):
        return x.sin() ** 2 + x.cos() ** 2

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
print(f"{milliseconds:.3f}")
