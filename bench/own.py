"""`./run bench own`: small and middle programs, compiled beside eager, both ours and in one process. A compiled one is never to be
more than 3 % slower: LIMIT; what it costs to call one shows beside single operators, FIXED (twice with a backward: two calls). Calls alternate in blocks; what seems slower is measured again before it is reported, since
another's work on the machine slows single blocks. `./run bench captured` is the same of strata.compile beside strata.graph."""

from __future__ import annotations

import statistics
import time
from functools import partial

# suite: what is measured, beside what; how many times its time it may take, and seconds more that a call may cost
PAIRS = {"own": ("compiled", "eager", 1.03, 0.5e-6), "captured": ("captured", "graph", 1.02, 1e-6)}
BLOCK = 0.001  # seconds that a block of calls takes at least
SIZES = (10, 1_000, 30_000, 1_000_000, 10_000_000)
MIDDLE = SIZES[:-1]  # where a row or a backward makes the largest one slow


def matrix(torch, n: int, dtype=None):
    """About n elements, in rows of at most 1024."""
    columns = min(n, 1024)
    return torch.randn(max(1, n // columns), columns, dtype=dtype or torch.float32)


def pointwise(torch) -> dict:
    def of(f, count=1, dtype=None, sizes=SIZES):
        return sizes, lambda n: (f, [torch.randn(n, dtype=dtype or torch.float32) for _ in range(count)])

    def rows(f, sizes=SIZES):
        return sizes, lambda n: (f, [matrix(torch, n), torch.randn(min(n, 1024))])

    F = torch.nn.functional
    return {
        "add": of(lambda x, y: x + y, 2),
        "axpby": of(lambda x, y: 2 * x + 3 * y, 2),
        "relu": of(F.relu),
        "gelu": of(F.gelu),
        "tanh": of(lambda x: x.tanh()),
        "trig": of(lambda x: x.sin() ** 2 + x.cos() ** 2),
        "chain": of(lambda x, y: ((x * y + x).sigmoid() * y).tanh() - x, 2),
        "where": of(lambda x, y: x.where(x > y, y), 2),
        "clamp_i64": of(lambda x: (x * 3).to(x.dtype).clamp(-1, 1)),
        "double": of(lambda x, y: (x * y).exp() + x, 2, torch.float64),
        "bf16_add": of(lambda x, y: x + y, 2, torch.bfloat16),
        "bf16_chain": of(lambda x, y: (x * y + x).tanh() * y, 2, torch.bfloat16),
        "f16_chain": of(lambda x, y: (x * y + x).tanh() * y, 2, torch.float16, MIDDLE),
        "to_bf16": of(lambda x: (x * 2).bfloat16()),
        "row_bias_gelu": rows(lambda x, b: F.gelu(x + b)),
        "row_scale": rows(lambda x, b: x * b),
        "in_place": of(lambda x: x.mul_(0.999).add_(0.001)),
        "in_place_once": of(lambda x: x.mul_(0.999)),
        "dropout": of(lambda x: F.dropout(x, 0.1)),
        "two_results": of(lambda x, y: (x + y, x * y), 2),
        "many_results": of(lambda x: tuple(x * k for k in range(1, 6)), sizes=MIDDLE),
    }


def reductions(torch) -> dict:
    def of(f, dtype=None, sizes=SIZES):
        return sizes, lambda n: (f, [matrix(torch, n, dtype)])

    F = torch.nn.functional

    def normed(n):
        w = torch.rand(min(n, 1024))
        return (lambda x: F.gelu(F.layer_norm(x, w.shape, w, w))), [matrix(torch, n)]

    return {
        "sum": of(lambda x: x.sum(-1)),
        "sum_all": of(lambda x: x.sum()),
        "mean_square": of(lambda x: (x * x).mean(-1)),
        "sum_dim0": of(lambda x: x.sum(0)),
        "var_mean": of(lambda x: x.var(-1) + x.mean(-1)),
        "amax": of(lambda x: x.amax(-1)),
        "argmax": of(lambda x: x.argmax(-1), sizes=MIDDLE),
        "softmax": of(lambda x: F.softmax(x, -1)),
        "softmax_bf16": of(lambda x: F.softmax(x, -1), torch.bfloat16),
        "log_softmax": of(lambda x: F.log_softmax(x, -1)),
        "softmax_dim0": of(lambda x: F.softmax(x, 0), sizes=MIDDLE),
        "layer_norm": of(lambda x: F.layer_norm(x, x.shape[-1:])),
        "layer_norm_gelu": (SIZES, normed),
        "rms_norm": of(lambda x: x * (x * x).mean(-1, keepdim=True).add(1e-6).rsqrt()),
        "normalize": of(lambda x: F.normalize(x, dim=-1)),
        "cumsum": of(lambda x: x.cumsum(-1), sizes=MIDDLE),
        "standard": of(lambda x: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)),
        "logsumexp": of(lambda x: x.logsumexp(-1)),
    }


def moves(torch) -> dict:
    def of(f, count=1, sizes=SIZES):
        return sizes, lambda n: (f, [matrix(torch, n) for _ in range(count)])

    return {
        "cat": of(lambda x, y: torch.cat([x, y]), 2),
        "cat_scaled": of(lambda x, y: torch.cat([x * 2, y + 1], -1), 2),
        "stack": of(lambda x, y: torch.stack([x, y]), 2, MIDDLE),
        "transpose": of(lambda x: x.t().contiguous(), sizes=MIDDLE),
        "transpose_add": of(lambda x, y: x.t() + y.t() * 2, 2, MIDDLE),
        "clone": of(lambda x: x.clone()),
        "view": of(lambda x: x.view(-1)),
        "slices": of(lambda x: x[:, ::2] * 2, sizes=MIDDLE),
        "halves": of(lambda x: x[:, : x.shape[1] // 2] * x[:, x.shape[1] // 2 :], sizes=MIDDLE),
        "pad": of(lambda x: torch.nn.functional.pad(x, (1, 1)) + 1, sizes=MIDDLE),
        "flip": of(lambda x: x.flip(-1), sizes=MIDDLE),
        "gather": (MIDDLE, lambda n: ((lambda x, i: x.gather(-1, i) * 2), [matrix(torch, n), matrix(torch, n).mul(100).long() % min(n, 1024)])),
        "index_select": (MIDDLE, lambda n: ((lambda x, i: x.index_select(0, i)), [matrix(torch, n), torch.zeros(max(1, n // 1024), dtype=torch.int64)])),
        "tril": of(lambda x: x.tril(), sizes=MIDDLE),
        "expand": of(lambda x: x.unsqueeze(0).expand(2, -1, -1).contiguous(), sizes=MIDDLE),
        "fill": of(lambda x: torch.zeros_like(x), sizes=SIZES),
    }


def learning(torch) -> dict:
    """Losses and layers, forward and backward, and steps of training."""
    F, nn = torch.nn.functional, torch.nn

    def both(f, leaves, seed=None):
        y = f(*leaves)
        ones = torch.ones_like(y)
        learned = [t for t in leaves if t.requires_grad]
        return lambda g: lambda: torch.autograd.grad(g(*leaves), learned, ones)

    def grads(f, *makers):
        """The program is f; what is timed is f and its backward."""
        def made(n):
            leaves = [m(n) for m in makers]
            return f, leaves, both(f, leaves)
        return MIDDLE, made

    def x(n):
        return matrix(torch, n).requires_grad_()

    def labels(n):
        return torch.randint(0, min(n, 1024), (max(1, n // 1024),))

    def row(n):
        return torch.rand(min(n, 1024)).requires_grad_()

    def linear(n):
        width = max(2, int((n / 8) ** 0.5))
        model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        return model, [torch.randn(8, width)]

    return {
        "mse": grads(lambda a, b: F.mse_loss(a, b), x, lambda n: matrix(torch, n)),
        "cross_entropy": grads(F.cross_entropy, x, labels),
        "bce": grads(lambda a: F.binary_cross_entropy_with_logits(a, torch.ones_like(a)), x),
        "gelu_grad": grads(F.gelu, x),
        "trig_grad": grads(lambda a: a.sin() ** 2 + a.cos() ** 2, x),
        "softmax_grad": grads(lambda a: F.softmax(a, -1), x),
        "layer_norm_grad": grads(lambda a, w: F.layer_norm(a, w.shape, w, w), x, row),
        "dropout_grad": grads(lambda a: F.dropout(a, 0.1), x),
        "bias_grad": grads(lambda a, w: a * w + w, x, row),
        "linear": (MIDDLE, linear),
    }


def optimisers(torch) -> dict:
    """Steps over n numbers in one tensor, and in many."""
    def of(kind, many, **options):
        def made(n):
            sizes = [max(1, n // 64)] * 64 if many else [n]
            params = [torch.nn.Parameter(torch.randn(s)) for s in sizes]
            for p in params:
                p.grad = torch.randn(p.shape)
            optimizer = getattr(torch.optim, kind)(params, lr=1e-4, **options)
            optimizer.init_state()
            return optimizer.step, []
        return SIZES, made

    kinds = {"sgd": ("SGD", {}), "momentum": ("SGD", {"momentum": 0.9}), "adam": ("Adam", {}), "adamw": ("AdamW", {}), "rmsprop": ("RMSprop", {})}
    return {name + ("_64" if many else ""): of(kind, many, **options) for name, (kind, options) in kinds.items() for many in (False, True)}


def programs(torch) -> dict:
    found: dict = {}
    for family in (pointwise, reductions, moves, learning, optimisers):
        found.update(family(torch))
    return found


def block(call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def compare(old, new, blocks: int) -> tuple[float, float, float]:
    """Seconds of a call of each, medians, and the smaller of two ratios: of the medians and of the minima."""
    for call in (old, new, old, new):
        call()
    count, once = 1, block(old, 1)
    while once * count < BLOCK:
        count = max(2 * count, min(int(BLOCK / once), 8 * count))
        once = block(old, count)
    times: tuple[list, list] = [], []
    for turn in range(blocks):
        for side in (0, 1) if turn % 2 else (1, 0):
            times[side].append(block((old, new)[side], count))
    a, b = (statistics.median(t) for t in times)
    return a, b, min(b / a, min(times[1]) / min(times[0]))


def main(suite: str, only: list[str] | None, blocks: int) -> None:
    import strata as torch

    what, beside, limit, call_cost = PAIRS[suite]
    print(f"{'program':<18}{'elements':>10}{'threads':>9}{beside:>12}{what:>12}{'ratio':>8}")
    ratios, slower, fixed = [], 0, 0
    for name, (sizes, make) in programs(torch).items():
        if only and name not in only:
            continue
        for n in sizes:
            f, args, *wrap = make(n)
            fixed_cost = call_cost * (1 + len(wrap))
            graph = torch.graph(f, *args).compile()
            pair = (f, graph) if suite == "own" else (graph, torch.compile(f, fullgraph=True, dynamic=False))
            old, new = (wrap[0](g) if wrap else partial(g, *args) for g in pair)
            for used in (1, 2):
                torch.set_num_threads(used)
                a, b, ratio = compare(old, new, blocks)
                for more in (2, 4):
                    if ratio > limit and b - a > fixed_cost:
                        a, b, ratio = compare(old, new, more * blocks)
                ratios.append(ratio)
                worse = ratio > limit
                slower += worse and b - a > fixed_cost
                fixed += worse and b - a <= fixed_cost
                if only or (worse and b - a > fixed_cost):
                    word = "" if not worse else "  SLOWER" if b - a > fixed_cost else "  a call's cost"
                    print(f"{name:<18}{n:>10}{used:>9}{a * 1e6:>9.2f} us{b * 1e6:>9.2f} us{ratio:>8.2f}{word}", flush=True)
            torch.compiler.reset()
    print(f"{len(ratios)} comparisons, geometric mean {statistics.geometric_mean(ratios):.2f}; slower by more than {limit - 1:.0%}: {slower}, "
          f"and by a call's cost of at most {call_cost * 1e6:.1f} us: {fixed}")
