"""`./run bench layouts`: random reductions and normalisations over tensors that are permuted and cut, beside the same with
contiguous() first, both ours and on one thread. No layout is to take longer than to lay it out: LIMIT, and MORE seconds. What
seems slower is measured again. `./run bench layouts --seed S --programs N` takes others."""

from __future__ import annotations

import random

from random_programs import Slowest, seconds

LIMIT, MORE = 1.3, 3e-6
DIMS = ("sum", "mean", "amax", "norm", "var", "logsumexp")  # over several
DIM = ("softmax", "prod", "argmax", "max")  # over one


def case(torch, choose: random.Random) -> tuple:
    """The name of an operator, a tensor and the dims."""
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
        return choose.choice(DIMS), x, tuple(sorted(choose.sample(range(rank), choose.randint(1, rank))))
    return choose.choice(DIM), x, choose.randrange(rank)


def main(seed: int, count: int) -> None:
    import strata as torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    choose = random.Random(seed)
    slowest = Slowest(count, "cases", LIMIT, MORE)
    while slowest.done < count:
        name, x, dims = case(torch, choose)
        f = getattr(torch.Tensor, name)
        try:
            f(x, dim=dims)
        except (RuntimeError, NotImplementedError):
            continue  # means of integers, among others
        for _ in range(3):
            own = seconds(lambda f=f, x=x, d=dims: f(x, dim=d))
            first = seconds(lambda f=f, x=x, d=dims: f(x.contiguous(), dim=d))
            if not slowest.is_slower(first, own):
                break
        slowest.add(first, own, f"{name}, dims {dims}, {x.dtype} {list(x.shape)} {list(x.stride())}")
    print(slowest.said(f"(seed {seed}): {{:.2f}} of the time with contiguous() first"))
