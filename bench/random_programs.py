"""`./run bench random`: small random programs over tensors of 3,000 to 1,000,000 elements, of few dims of odd sizes, compiled
beside eager, both ours and in one process, on one thread: how many are slower, and the slowest ones. A program that a fusion
makes slower than its operators one by one shows here; each has eager's bits, else it is said to differ."""

from __future__ import annotations

import math
import random
import time
import warnings

from own import block

LIMIT, MORE = 1.1, 1e-6  # times eager's time, and seconds more, that count as slower
ENOUGH = 0.0003  # seconds that a block of calls takes
LARGEST = 4_000_000  # elements of what a line makes

UNARY = """x.sin() x.exp() x.relu() x.abs() x.sqrt() x.sigmoid() F.gelu(x) x.neg() x*2 x+1 x.tanh() x.clamp(-1,1) x.square() x.round() x.float()
x.bfloat16() x.half()""".split()
BINARY = "x+y x*y x-y torch.maximum(x,y) torch.where(x>y,x,y) x/(y.abs()+1) torch.atan2(x,y) x.lerp(y,0.3) (x-y).square()".split()
REDUCTIONS = """x.sum(D) x.mean(D) x.amax(D) x.sum(D,keepdim=True) x.mean(D,keepdim=True) x.var(D) x.norm(dim=D) x.softmax(D) x.log_softmax(D)
x.cumsum(D) x.sum() x.argmax(D) x.logsumexp(D) F.layer_norm(x,x.shape[-1:]) x.prod(D) x.std(D,keepdim=True)""".split()
MOVES = """x.transpose(-1,D) x[...,::2] x[...,1:] x.flip(D) x.unsqueeze(D) x.reshape(-1) F.pad(x,(1,2)) torch.cat([x,x],D)
torch.cat([x,x*2],D) x.roll(1,D) x.contiguous() torch.stack([x,x]) x.repeat_interleave(2,-1) x.expand(2,*x.shape) F.dropout(x,0.2)
torch.rand_like(x)*x x.masked_fill(x>0.5,0.) x.chunk(2,-1)[0]""".split()


def shape(choose: random.Random) -> list[int]:
    left = choose.choice([3_000, 30_000, 300_000, 1_000_000])
    sizes = []
    for _ in range(choose.choice([0, 1, 1, 1, 2, 2, 3])):
        sizes.append(min(choose.choice([1, 2, 3, 7, 16, 33, 64, 100, 256, 1000]), left))
        left = max(1, left // sizes[-1])
    sizes.append(left)
    choose.shuffle(sizes)
    return sizes


def program(choose: random.Random, torch) -> tuple[str, list[list[int]], str]:
    """(its lines, the shapes of what it gets, their dtype). Each line is tried over shapes alone: second operands broadcast to
    what stands there by then, and a line that does not fit is left out."""
    sizes, lines = [shape(choose)], []
    dtype = choose.choice(["float32"] * 5 + ["bfloat16", "float16", "float64"])

    def empty(sizes):
        return torch.empty(sizes, dtype=getattr(torch, dtype), device="meta")

    x = x0 = empty(sizes[0])
    for _ in range(choose.randint(1, 5)):
        kind = choose.random()
        line = choose.choice(UNARY if kind < 0.35 else BINARY if kind < 0.6 else REDUCTIONS if kind < 0.8 else MOVES)
        y, more = x0, []
        if kind < 0.35 or kind >= 0.6:
            line = line.replace("D", str(choose.choice([-1, -1, 0, 0, 1])))
        elif choose.random() < 0.2 and x.shape == x0.shape:
            line = line.replace("y", "x0")
        else:
            same = choose.random() < 0.3
            more = [[n if same or choose.random() < 0.5 else 1 for n in x.shape]]
            y, line = empty(more[0]), line.replace("y", f"y{len(sizes)}")
        try:
            made = eval(line, {"torch": torch, "F": torch.nn.functional, "x": x, "x0": x0, f"y{len(sizes)}": y})
        except (RuntimeError, IndexError, TypeError, NotImplementedError):
            continue
        if made.numel() > LARGEST:
            continue
        x = made
        sizes += more
        lines.append(line)
    return "; ".join("x = " + line for line in lines), sizes, dtype


def seconds(call) -> float:
    call()
    count = max(1, int(ENOUGH / max(block(call, 1), 1e-7)))
    return min(block(call, count) for _ in range(7))


class Slowest:
    """Times of many cases beside others of theirs: the progress, those that are slower, and the mean ratio."""

    def __init__(self, count: int, noun: str, limit: float, more: float):
        self.count, self.noun, self.limit, self.more = count, noun, limit, more
        self.done, self.logs, self.shown = 0, 0.0, time.monotonic()
        self.slower: list[tuple[float, str]] = []

    def is_slower(self, before: float, after: float) -> bool:
        return after > self.limit * before and after - before > self.more

    def add(self, before: float, after: float, words: str) -> None:
        self.done += 1
        self.logs += math.log(after / before)
        if self.is_slower(before, after):
            self.slower.append((after / before, f"{before * 1e6:.1f} -> {after * 1e6:.1f} us {words}"))
        if time.monotonic() - self.shown > 10:
            self.shown = time.monotonic()
            print(f"{self.done} of {self.count} {self.noun}, {len(self.slower)} slower", flush=True)

    def said(self, what: str) -> str:
        """Prints the worst cases; `what` has a place for the mean."""
        for ratio, words in sorted(self.slower, reverse=True)[:15]:
            print(f"{ratio:6.2f}  {words}")
        worst = max(self.slower, default=(1.0, ""))[0]
        return (f"{self.done} {self.noun} " + what.format(math.exp(self.logs / self.done)) + f" (geometric mean); {len(self.slower)} are slower by more than "
                f"{self.limit - 1:.0%} and {self.more * 1e6:.0f} us, the worst {worst:.2f} times")


def alike(torch, a, b) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(7, 8, 9), b.nan_to_num(7, 8, 9))


def main(seed: int, programs: int) -> None:
    import strata as torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    choose = random.Random(seed)
    slowest, differ = Slowest(programs, "programs", LIMIT, MORE), 0
    while slowest.done < programs:
        text, sizes, dtype = program(choose, torch)
        if not text:
            continue
        names = ", ".join(["x", *(f"y{i}" for i in range(1, len(sizes)))])
        scope = {"torch": torch, "F": torch.nn.functional}
        exec(f"def f({names}):\n  x0 = x; {text}\n  return x", scope)
        torch.manual_seed(slowest.done)
        args = [torch.randn(s).to(getattr(torch, dtype)) for s in sizes]
        if choose.random() < 0.2:
            args[0] = torch.randn(sizes[0][::-1]).to(getattr(torch, dtype)).permute(*range(len(sizes[0]) - 1, -1, -1))
        try:
            torch.manual_seed(slowest.done)
            want = scope["f"](*args)
            graph = torch.graph(scope["f"], *args).compile()
        except (RuntimeError, IndexError, TypeError, NotImplementedError):
            continue  # shapes that do not fit
        torch.manual_seed(slowest.done)
        if not alike(torch, graph(*args), want):
            differ += 1
            print(f"DIFFERS from eager: {sizes} {args[0].stride()} {dtype}: {text}", flush=True)
        eager, compiled = (seconds(lambda call=call, args=args: call(*args)) for call in (scope["f"], graph))
        slowest.add(eager, compiled, f"{sizes} {args[0].stride()} {dtype}: {text}")
    print(slowest.said(f"(seed {seed}): compiled takes {{:.2f}} of eager's time") + f"; {differ} differ")
