"""`./run bench layouts`: random reductions and normalisations over tensors that are permuted and cut, and windows and samples of
images whose channels vary fastest with their gradients, beside the same with contiguous() first, both ours and on one thread. No
layout is to take longer than to lay it out: LIMIT, and MORE seconds. What seems slower is measured again. `./run bench layouts
--seed S --programs N` takes others."""

from __future__ import annotations

import functools
import random

from random_programs import Slowest, seconds

LIMIT, MORE = 1.3, 3e-6
DIMS = ("sum", "mean", "amax", "norm", "var", "logsumexp")  # over several
DIM = ("softmax", "prod", "argmax", "max")  # over one
IMAGES = {
    "bilinear": lambda F, x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "bicubic": lambda F, x: F.interpolate(x, size=(7, 9), mode="bicubic"),
    "nearest": lambda F, x: F.interpolate(x, scale_factor=2.0, mode="nearest"),
    "avg_pool2d": lambda F, x: F.avg_pool2d(x, 3, 2, 1),
    "max_pool2d": lambda F, x: F.max_pool2d(x, 3, 2, 1),
    "adaptive_avg_pool2d": lambda F, x: F.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d": lambda F, x: F.adaptive_max_pool2d(x, 3),
    "pad": lambda F, x: F.pad(x, (1, 2, 2, 1)),
    "reflection_pad2d": lambda F, x: F.pad(x, (1, 2, 2, 1), mode="reflect"),
    "pixel_shuffle": lambda F, x: F.pixel_shuffle(x, 2),
    "batch_norm": lambda F, x: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda F, x: F.group_norm(x, 4),
    "softmax": lambda F, x: F.softmax(x, 1),
}


def reduction(torch, choose: random.Random) -> tuple:
    """An operator in words, its call, and the same of contiguous elements."""
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
        name, dim = choose.choice(DIMS), tuple(sorted(choose.sample(range(rank), choose.randint(1, rank))))
    else:
        name, dim = choose.choice(DIM), choose.randrange(rank)
    f = getattr(torch.Tensor, name)
    words = f"{name}, dims {dim}, {x.dtype} {list(x.shape)} {list(x.stride())}"
    return words, lambda: f(x, dim=dim), lambda: f(x.contiguous(), dim=dim)


def image(torch, choose: random.Random) -> tuple:
    """The same of an image with the channels last, forward or backward."""
    shape = choose.choice([1, 2, 8]), choose.choice([4, 16, 64, 256]), choose.randint(5, 40), choose.randint(5, 40)
    dtype = getattr(torch, choose.choice(["float32"] * 3 + ["bfloat16", "float64"]))
    name, backward = choose.choice(list(IMAGES)), choose.random() < 0.6
    x = torch.randn(*shape).to(dtype).to(memory_format=torch.channels_last)
    f = functools.partial(IMAGES[name], torch.nn.functional)
    words = f"{name}{' backward' if backward else ''}, {dtype} {shape} with the channels last"
    if not backward:
        return words, lambda: f(x), lambda: f(x.contiguous())
    x, dense = x.requires_grad_(), x.detach().contiguous().requires_grad_()
    made, made_dense = f(x), f(dense)
    seed = torch.randn(*made.shape).to(dtype).to(memory_format=torch.channels_last)
    return (words, lambda: torch.autograd.grad(made, x, seed, retain_graph=True),
            lambda: (x.detach().contiguous(), torch.autograd.grad(made_dense, dense, seed.contiguous(), retain_graph=True)))


def main(seed: int, count: int) -> None:
    import strata as torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    choose = random.Random(seed)
    slowest = Slowest(count, "cases", LIMIT, MORE)
    while slowest.done < count:
        words, own_call, first_call = (image if choose.random() < 0.3 else reduction)(torch, choose)
        try:
            own_call()
        except (RuntimeError, NotImplementedError):
            continue  # means of integers, among others
        for _ in range(3):
            own, first = seconds(own_call), seconds(first_call)
            if not slowest.is_slower(first, own):
                break
        slowest.add(first, own, words)
    print(slowest.said(f"(seed {seed}): {{:.2f}} of the time with contiguous() first"))
