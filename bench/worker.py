"""One side of a benchmark: times named workloads with the library named on the command line; requests come as JSON lines.
With the arguments LIBRARY NAME COUNT it makes that many calls and ends, for counting instructions."""

from __future__ import annotations

import importlib
import json
import sys
import time

import graphs

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


class GPT(nn.Module):
    """4 layers, width 256, 8 heads, vocabulary 4,096."""

    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(4096, 256), nn.Embedding(128, 256)
        self.blocks = nn.ModuleList([Block() for _ in range(4)])
        self.norm, self.head = nn.LayerNorm(256), nn.Linear(256, 4096, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.place(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(256), nn.LayerNorm(256)
        self.qkv, self.out = nn.Linear(256, 768), nn.Linear(256, 256)
        self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, t, 3, 8, 32).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.second(x))))


def step_of(model, optimizer):
    """A training step of a batch; `forward` stands for the model where it is given."""

    def step(x, y, forward=model):
        optimizer.zero_grad()
        out = forward(x)
        loss = F.cross_entropy(out.view(-1, out.shape[-1]), y.view(-1))
        loss.backward()
        optimizer.step()
        return loss

    return step


def parts(name: str):
    """A model, its optimiser, a batch, and how many steps make a block."""
    if name == "mlp_step":
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        return model, torch.optim.SGD(model.parameters(), lr=0.01), torch.randn(64, 784), torch.randint(0, 10, (64,)), 20
    model = GPT()
    tokens = torch.randint(0, 4096, (2, 128))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4), tokens, tokens, 3


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


def adamw():
    p = nn.Parameter(torch.randn(10_000_000))
    p.grad = torch.randn(10_000_000)
    best = {"fused": True} if lib == "torch" else {}
    optimizer = torch.optim.AdamW([p], lr=1e-3, **best)
    return optimizer.step, 3


def copy():
    a, b = torch.zeros(4 * 2**20), torch.zeros(4 * 2**20)
    return (lambda: b.copy_(a)), 20


WORK = {
    "add": overhead_add, "add_grad": overhead_add_grad, "view": overhead_view, "empty": overhead_empty, "linear_4x4": overhead_linear,
    "chain_1000": chain, "mlp_step": lambda: training("mlp_step"), "gpt_step": lambda: training("gpt_step"), "softmax": lambda: unary(lambda x: F.softmax(x, -1)),
    "layernorm": lambda: unary(lambda x: F.layer_norm(x, (1024,))), "sum": lambda: unary(lambda x: x.sum(-1)),
    "gelu": lambda: unary(F.gelu), "matmul_1024": lambda: matmul(1024, torch.float32), "matmul_2048": lambda: matmul(2048, torch.float32),
    "matmul_2048_bf16": lambda: matmul(2048, torch.bfloat16), "conv_3x3": conv, "adamw_10m": adamw, "copy_16m": copy,
}
BLOCK = 0.02  # seconds that a block of an operator's calls takes
ready: dict = {}
operators: dict = {}


def operator(name: str):
    """A workload of ops.py, with the number of calls that make a block."""
    if not operators:
        operators.update(ops.work(torch))
    call = operators[name]
    start = time.perf_counter()
    call()
    call()
    return call, max(1, min(1000, int(2 * BLOCK / (time.perf_counter() - start))))


def seconds(name: str) -> float:
    if name not in ready:
        kind, _, of = name.partition(":")
        made = graphs.calls(lib, torch, globals(), kind == "compiled", of) if of else WORK[name]() if name in WORK else operator(name)
        ready[name] = made
        for _ in range(3):
            ready[name][0]()
    f, n = ready[name]
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
