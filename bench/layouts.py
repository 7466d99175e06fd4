"""`./run bench layouts`: random reductions and normalisations over tensors that are permuted and cut, beside the same with
contiguous() first, both ours and on one thread. No layout is to take longer than to lay it out: LIMIT, and MORE seconds. What
seems slower is measured again. `./run bench layouts --seed S --programs N` takes others."""

from __future__ import annotations

import math
import random
import time

from random_programs import seconds

LIMIT, MORE = 1.3, 3e-6
DIMS = {
    "sum": lambda x, d: x.sum(d),
    "mean": lambda x, d: x.mean(d),
    "amax": lambda x, d: x.amax(d),
    "norm": lambda x, d: x.norm(dim=d),
    "var": lambda x, d: x.var(d),
    "logsumexp": lambda x, d: x.logsumexp(d),
}
DIM = {
    "softmax": lambda x, d: x.softmax(d),
    "prod": lambda x, d: x.prod(d),
    "argmax": lambda x, d: x.argmax(d),
    "max": lambda x, d: x.max(d),
}


def case(torch, choose: random.Random) -> tuple:
    """The name of an operator, it, a tensor and the dims."""
    rank, left = choose.randint(2, 5), choose.choice([3e3, 3e4, 3e5, 1e6])
    sizes = []
    for _ in range(rank - 1):
        sizes.append(max(1, int(left ** choose.random())))
        left = max(1, left / sizes[-1])
    sizes.append(int(left))
    choose.shuffle(sizes)
    dtype = getattr(torch, choose.choice(["float32"] * 3 + ["bfloat16", "float64", "int64"]))
    is_cut = choose.random() < 0.2
    x = torch.randn([n + is_cut for n in sizes]).mul(9).to(dtype)[tuple(slice(0, n) for n in sizes)]
    x = x.permute(choose.sample(range(rank), rank))
    if choose.random() < 0.6:
        name = choose.choice(list(DIMS))
        return name, DIMS[name], x, tuple(sorted(choose.sample(range(rank), choose.randint(1, rank))))
    name = choose.choice(list(DIM))
    return name, DIM[name], x, choose.randrange(rank)


def main(seed: int, count: int) -> None:
    import strata as torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    choose = random.Random(seed)
    slower, logs, done, shown = [], 0.0, 0, time.monotonic()
    while done < count:
        name, f, x, dims = case(torch, choose)
        try:
            f(x, dims)
        except (RuntimeError, NotImplementedError):
            continue  # means of integers, among others
        for _ in range(3):
            own = seconds(lambda f=f, x=x, d=dims: f(x, d))
            first = seconds(lambda f=f, x=x, d=dims: f(x.contiguous(), d))
            is_slower = own > LIMIT * first and own - first > MORE
            if not is_slower:
                break
        done += 1
        logs += math.log(own / first)
        if is_slower:
            words = f"{own * 1e6:.1f} of {first * 1e6:.1f} us: {name}, dims {dims}, {x.dtype} {list(x.shape)} {list(x.stride())}"
            slower.append((own / first, words))
        if time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(f"{done} of {count} cases, {len(slower)} slower", flush=True)
    for ratio, words in sorted(slower, reverse=True)[:15]:
        print(f"{ratio:6.2f}  {words}")
    print(f"{done} cases (seed {seed}): {math.exp(logs / done):.2f} of the time with contiguous() first (geometric mean); {len(slower)} are slower by more than "
          f"{LIMIT - 1:.0%} and {MORE * 1e6:.0f} us, the worst {max(slower, default=(1,))[0]:.2f} times")
