"""One fresh process: the milliseconds from a call of a function that is to be compiled to its results, its gradient too.
Arguments: LIBRARY, and sincos, mlp_step, gpt_step or resnet18 (inference of one image). Import, the model and its data come before the clock. With tiny_call: the
milliseconds of one call of a tiny function, once it is compiled. Names that begin with code_ are of strata.compile, which reads
bytecode; the others are of strata.graph. code_tensors20: a call with 20 tensors; code_guards148: the guards of a step of Strata's own
modules; code_guards_gpt_step: the same of a user's. code_sizes_STEP: what a step of a new size takes more than the same again, the median over sizes; code_sizes_call: a call of one of two sizes in turn."""

from __future__ import annotations

import sys
import time

from models import lib, parts, resnet18, step_of, torch

torch.set_num_threads(2)
name = sys.argv[2].removeprefix("code_")
code = name != sys.argv[2]


def trig(x):
    return x.sin() ** 2 + x.cos() ** 2


def best_of(call, arguments, count):
    best = 1e9
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            call(*arguments)
        best = min(best, time.perf_counter() - start)
    return best / count * 1e3


def twenty(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t):
    return a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p + q + r + s + t


if code and name in ("tiny_call", "tensors20"):
    function, arguments = (trig, 1) if name == "tiny_call" else (twenty, 20)
    inputs = [torch.randn(10) for _ in range(arguments)]
    milliseconds = best_of(torch.compile(function), inputs, 20000)
elif name == "sizes_call":
    compiled, a, b = torch.compile(trig, dynamic=True), torch.randn(10), torch.randn(11)
    milliseconds = best_of(lambda: (compiled(a), compiled(b)), (), 20000) / 2
elif name.startswith("sizes_"):
    model, optimizer, x, y, _ = parts(name.removeprefix("sizes_"))
    compiled, times = torch.compile(step_of(model, optimizer)), []
    optimizer.init_state()
    for n in range(20, 52):
        batch = (x[:n], y[:n]) if x.dim() == 2 and x.is_floating_point() else (x[:, :n].contiguous(), y[:, :n].contiguous())
        start = time.perf_counter()
        compiled(*batch)
        middle = time.perf_counter()
        compiled(*batch)
        times.append(2 * middle - start - time.perf_counter())
    if len(compiled._strata_compiled.start.entries) != 2:
        raise SystemExit("sizes were compiled for themselves")
    milliseconds = sorted(times[2:])[len(times) // 2 - 1] * 1e3
elif name == "guards148":
    net = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(74)])
    optimizer = torch.optim.AdamW(net.parameters())

    def step(x):
        optimizer.zero_grad()
        loss = net(x).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled, x = torch.compile(step), torch.randn(2, 8)
    for _ in range(3):
        compiled(x)
    milliseconds = best_of(compiled._strata_compiled.start.entries[0].check, [x], 2000)
elif name == "guards_gpt_step":
    model, optimizer, x, y, _ = parts("gpt_step")
    compiled = torch.compile(step_of(model, optimizer))
    optimizer.init_state()
    compiled(x, y)
    milliseconds = best_of(compiled._strata_compiled.start.entries[0].check, [x, y, model], 2000)
elif name == "tiny_call":
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
    compiled = torch.graph(trig, x).compile() if lib == "strata" and not code else torch.compile(trig)
    (slope,) = torch.autograd.grad(compiled(x), x, ones)
    milliseconds = (time.perf_counter() - start) * 1e3
    if slope.abs().max() > 1e-6:
        raise SystemExit("a wrong gradient")
elif name == "resnet18":
    with torch.no_grad():
        model, x = resnet18(), torch.randn(1, 3, 224, 224)
        start = time.perf_counter()
        compiled = torch.graph(model, x).compile() if lib == "strata" and not code else torch.compile(model)
        compiled(x)
        milliseconds = (time.perf_counter() - start) * 1e3
else:
    model, optimizer, x, y, _ = parts(name)
    step = step_of(model, optimizer)
    if lib == "strata":
        optimizer.init_state()
    start = time.perf_counter()
    if lib == "strata":
        loss = (torch.compile(step) if code else torch.graph(step, x, y).compile())(x, y)
    else:
        loss = step(x, y, torch.compile(model))
    loss.item()
    milliseconds = (time.perf_counter() - start) * 1e3
print(f"{milliseconds:.6f}")
