"""One side of a benchmark: times named workloads with the library named on the command line; requests come as JSON lines.
With the arguments LIBRARY NAME COUNT it makes that many calls and ends, for counting instructions."""

from __future__ import annotations

import functools
import importlib
import json
import sys
import time

import graphs
from models import parts, step_of

import ops

lib = sys.argv[1]
torch = importlib.import_module(lib)
nn = importlib.import_module(lib + ".nn")
F = importlib.import_module(lib + ".nn.functional")
torch.set_num_threads(2)
torch.manual_seed(0)


def overhead_add():
    a, b = torch.ones(2, 2), torch.ones(2, 2)
    return lambda: torch.add(a, b), 20000


def overhead_add_grad():
    a, b = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
    return lambda: torch.add(a, b), 10000


def overhead_view():
    a = torch.ones(2, 2)
    return lambda: a.view(4), 20000


def overhead_empty():
    return lambda: torch.empty(2, 2), 20000


def overhead_linear():
    x, w, b = torch.ones(4, 4), torch.ones(4, 4), torch.ones(4)
    return lambda: F.linear(x, w, b), 10000


def chain():
    x = torch.ones(1, requires_grad=True)
    c = torch.ones(1)

    def run():
        y = x
        for _ in range(1000):
            y = y * c
        y.backward()

    return run, 5


def training(name: str):
    model, optimizer, x, y, count = parts(name)
    step = step_of(model, optimizer)
    return (lambda: step(x, y)), count


def unary(f):
    x = torch.randn(4096, 1024)
    return (lambda: f(x)), 10


def matmul(n, dtype):
    a, b = torch.randn(n, n).to(dtype), torch.randn(n, n).to(dtype)
    return (lambda: a @ b), 2 if n > 1024 else 5


def conv():
    x, w = torch.randn(8, 64, 56, 56), torch.randn(64, 64, 3, 3)
    return (lambda: F.conv2d(x, w, padding=1)), 5


@functools.cache  # eager and compiled steps are of the same parameters: where these lie is a tenth of the time
def adamw():
    p = nn.Parameter(torch.randn(10_000_000))
    p.grad = torch.randn(10_000_000)
    best = {"fused": True} if lib == "torch" else {}
    optimizer = torch.optim.AdamW([p], lr=1e-3, **best)
    return optimizer.step, 3


def copy(moved, way):
    """Of half as many bytes as are moved; stream: by a kernel whose stores stream where they are more than the cache holds;
    place: as many that are written where they were read, which nobody has to make room for."""
    a, b = torch.ones(moved // 8), torch.ones(moved // 8)
    ways = {"copy": lambda: b.copy_(a), "stream": lambda: torch.neg(a, out=b), "place": lambda: b.mul_(1.0)}
    return ways[way], 3


WORK = {
    "add": overhead_add, "add_grad": overhead_add_grad, "view": overhead_view, "empty": overhead_empty, "linear_4x4": overhead_linear,
    "chain_1000": chain, "mlp_step": lambda: training("mlp_step"), "gpt_step": lambda: training("gpt_step"), "softmax": lambda: unary(lambda x: F.softmax(x, -1)),
    "layernorm": lambda: unary(lambda x: F.layer_norm(x, (1024,))), "sum": lambda: unary(lambda x: x.sum(-1)),
    "gelu": lambda: unary(F.gelu), "matmul_1024": lambda: matmul(1024, torch.float32), "matmul_2048": lambda: matmul(2048, torch.float32),
    "matmul_2048_bf16": lambda: matmul(2048, torch.bfloat16), "conv_3x3": conv, "adamw_10m": adamw,
}
BLOCK = 0.02  # seconds that a block of an operator's calls takes
ready: dict = {}
operators: dict = {}


def operator(name: str):
    """A workload of ops.py, with the number of calls that make a block."""
    if not operators:
        operators.update(ops.work(torch))
    call, count = operators[name], 0
    call()  # the first one may open a library, print a plan and start threads
    start = time.perf_counter()
    while time.perf_counter() - start < BLOCK:
        call()
        count += 1
    return call, count


def seconds(name: str) -> float:
    if name not in ready:
        kind, _, of = name.partition(":")
        if of:
            made = copy(int(of), kind) if kind in ("copy", "stream", "place") else graphs.calls(lib, torch, globals(), kind == "compiled", of)
        else:
            made = WORK[name]() if name in WORK else operator(name)
        ready[name] = made
        for _ in range(3):
            ready[name][0]()
    f, n = ready[name]
    f()  # the first one after a pause is the machine's waking up: it takes twice the time, of a copy as of a kernel
    start = time.perf_counter()
    for _ in range(n):
        f()
    return (time.perf_counter() - start) / n


if len(sys.argv) == 4:
    call, _ = WORK[sys.argv[2]]()
    for _ in range(int(sys.argv[3])):
        call()
    sys.exit()
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "about":
        answer = f"{lib} {torch.__version__}, {torch.get_num_threads()} threads"
    elif request["op"] == "operators":
        operators.update(operators or ops.work(torch, request.get("hot", False)))
        answer = list(operators)
    else:
        answer = {"seconds": seconds(request["name"])}
    print(json.dumps(answer), flush=True)
