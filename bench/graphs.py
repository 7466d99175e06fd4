"""Workloads that are timed eager and compiled, on both sides. `./run bench graphs` prints ours, compiled, beside the peer's
compiled and the better of its two modes; numerics are exact on our side: compiled results have eager's bits."""

from __future__ import annotations

import statistics

# name: (goal as a share of the peer's time, of its compiled time or of its better mode, bytes moved at least or 0)
ROWS = {
    "trig_2p24": (1 / 7, "compiled", 2 * 4 * 2**24),
    "trig_both_2p24": (1 / 1.5, "compiled", 0),
    "layernorm_gelu": (1 / 1.8, "compiled", 2 * 4 * 4096 * 1024),
    "softmax": (1 / 1.2, "better", 2 * 4 * 4096 * 1024),
    "cross_entropy": (1 / 1.3, "better", 0),
    "mlp_step": (1 / 1.5, "better", 0),
    "gpt_step": (1 / 1.6, "better", 0),
    "adamw_10m": (1.0, "better", 28 * 10_000_000),
    "resnet50": (1 / 1.1, "better", 0),
    "tiny_call": (1.5 / 13.8, "compiled", 0),
}


# The share of the best copy that moves as many bytes.
COPY_GOALS = {"trig_2p24": 0.75, "adamw_10m": 0.80}


def calls(lib: str, torch, worker: dict, compiled: bool, name: str):
    """(a function without arguments, how many calls make a block)."""
    functional = worker["F"]

    def ready(f, *args):
        """f on these arguments, compiled where that is asked for."""
        if not compiled:
            return lambda: f(*args)
        made = torch.graph(f, *args).compile() if lib == "strata" else torch.compile(f)
        return lambda: made(*args)

    def trig(x):
        return x.sin() ** 2 + x.cos() ** 2

    if name == "trig_2p24":
        return ready(trig, torch.randn(2**24)), 3
    if name == "trig_both_2p24":
        x = torch.randn(2**24, requires_grad=True)
        forward, ones = ready(trig, x), torch.ones(2**24)
        return (lambda: torch.autograd.grad(forward(), x, ones)), 2
    if name == "layernorm_gelu":
        weight, bias = torch.rand(1024), torch.rand(1024)
        return ready(lambda x: functional.gelu(functional.layer_norm(x, (1024,), weight, bias)), torch.randn(4096, 1024)), 15
    if name == "softmax":
        return ready(lambda x: functional.softmax(x, -1), torch.randn(4096, 1024)), 30
    if name == "cross_entropy":
        x, y = torch.randn(2048, 32000, requires_grad=True), torch.randint(0, 32000, (2048,))
        forward = ready(functional.cross_entropy, x, y)
        return (lambda: torch.autograd.grad(forward(), x)), 1
    if name == "tiny_call":
        return ready(trig, torch.randn(10)), 20000
    if name == "resnet50":
        from models import resnet50

        with torch.no_grad():
            model, x = resnet50(), torch.randn(1, 3, 224, 224)
            run = ready(model, x)

        def inference():
            with torch.no_grad():
                return run()

        return inference, 2
    if name == "adamw_10m":
        step, count = worker["adamw"]()
        if lib == "torch" or not compiled:
            return step, count
        step.__self__.init_state()
        return ready(step), count
    model, optimizer, x, y, count = worker["parts"](name)
    step = worker["step_of"](model, optimizer)
    if lib == "strata":
        optimizer.init_state()
        return ready(step, x, y), count
    forward = torch.compile(model) if compiled else model
    return (lambda: step(x, y, forward)), count


def copy_seconds(measure, ours, moved: int, ways: tuple[str, ...] = ("copy", "stream")) -> float:
    """The time of the best copy that moves as many bytes, once: from one array to another is what STREAM measures. It is timed
    as the work is that it is compared with: after a pause, in which others use the caches."""
    return min(measure(f"{way}:{moved}", ours, None, 1)[0][0] for way in ways)


def share_of_copy(copies: list[float], times: list[float]) -> str:
    """The share of the best copy's speed: a column. Each time is compared with the copy beside it: what slows the machine
    for a while slows both."""
    return f"{statistics.median(c / t for c, t in zip(copies, times, strict=True)):>9.0%}" if copies else f"{'':>9}"


def ratio(ours: list[float], theirs: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def main(ours, theirs, measure, only: list[str] | None, blocks: int) -> None:
    print("numerics of ours: exact, which is eager's bits; times are medians, ratios medians of those of each turn")
    print(f"{'work':<16}{'numerics':<10}{'eager':>11}{'compiled':>11}{'peer eager':>12}{'compiled':>11}{'ours/peer':>11}{'goal':>7}{'of copy':>9}  result", flush=True)
    for name, (goal, against, moved) in ROWS.items():
        if only and name not in only:
            continue
        mine, peer, eager, peer_eager, copies, arrays = [], [], [], [], [], []
        for _ in range(blocks):  # in turns, so that what slows the machine slows both
            for kind, own, other in (("compiled", mine, peer), ("eager", eager, peer_eager)):
                a, b = measure(f"{kind}:{name}", ours, theirs, 1)
                own += a
                other += b
            if moved:
                copies.append(copy_seconds(measure, ours, moved))
            if name == "adamw_10m":
                # It works in place. A pass in place is judged with, too: half as many addresses, which may stay in a cache.
                arrays.append(copies[-1])
                copies[-1] = min(copies[-1], copy_seconds(measure, ours, moved, ("place",)))
        unit, scale = ("us", 1e6) if name == "tiny_call" else ("ms", 1e3)
        times = [statistics.median(t) * scale if t else None for t in (eager, mine, peer_eager, peer)]
        row = f"{name:<16}{'exact':<10}" + "".join(f"{t:>8.2f} {unit}" if t else f"{'':>11}" for t in times)
        if peer:
            against_peer = ratio(mine, peer if against == "compiled" or times[3] < times[2] else peer_eager)
            row += f"{against_peer:>12.2f}{goal:>7.2f}"
        share = share_of_copy(copies, mine)
        row += share
        if name in COPY_GOALS:
            row += f" of {COPY_GOALS[name]:.0%}: {'met' if float(share.strip().rstrip('%')) >= 100 * COPY_GOALS[name] else 'MISSED'};"
        if peer:
            row += f"  {'met' if against_peer <= goal else 'MISSED'}"
        if arrays:
            row += f";{share_of_copy(arrays, mine).strip():>5} of a copy between two arrays"
        print(row + ("; SLOWER than our eager" if ratio(mine, eager) > 1.03 else ""), flush=True)
