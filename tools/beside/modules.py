"""Random modules of nn and losses, as programs of fuzz-beside: results, gradients, buffers, keys of the state and what they print."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

Made = tuple[str, dict[str, Any], tuple, list[tuple[int, ...]]]  # class, keywords, positional arguments, shapes of the inputs


def sizes(r: random.Random, rank: int, *choices: int) -> tuple[int, ...]:
    return tuple(r.choice(choices) for _ in range(rank))


def convolution(r: random.Random) -> Made:
    rank, groups, transposed = r.choice([1, 2, 3]), r.choice([1, 1, 2]), r.random() < 0.4
    channels, filters = groups * r.choice([1, 2, 3]), groups * r.choice([1, 2])
    words: dict[str, Any] = {"stride": r.choice([1, 2, 3]), "dilation": r.choice([1, 1, 2]), "groups": groups, "bias": r.random() < 0.5}
    if transposed:
        words |= {"padding": r.choice([0, 1]), "output_padding": r.choice([0, 0, 1])}
    else:
        words |= {"padding": r.choice([0, 1, 2, "same", "valid"]), "padding_mode": r.choice(["zeros", "zeros", "reflect", "replicate", "circular"])}
    batch = (r.choice([0, 1, 2, 3]),) if r.random() < 0.9 else ()
    name = f"Conv{'Transpose' * transposed}{rank}d"
    return name, words, (channels, filters, sizes(r, rank, 1, 2, 3)), [(*batch, channels, *sizes(r, rank, 3, 4, 5, 6))]


def pooling(r: random.Random) -> Made:
    rank = r.choice([1, 2, 3])
    kind, window = r.choice(["Max", "Avg", "LP", "AdaptiveAvg", "AdaptiveMax"]), r.choice([1, 2, 3])
    words: dict[str, Any] = {}
    args: tuple = (window,)
    if kind == "Max":
        words = {"padding": r.choice([0, 1]), "dilation": r.choice([1, 2]), "return_indices": r.random() < 0.5}
    elif kind == "Avg":
        words = {"padding": r.choice([0, 1]), "count_include_pad": r.random() < 0.5}
        words |= {"divisor_override": r.choice([None, 3])} if rank > 1 else {}
    elif kind == "LP":
        args = (r.choice([1.0, 2.0, 3.0]), window)
    if not kind.startswith("Adaptive"):
        words |= {"stride": r.choice([None, 1, 2]), "ceil_mode": r.random() < 0.5}
    batch = (r.choice([0, 1, 2]),) if r.random() < 0.8 else ()
    return f"{kind}Pool{rank}d", words, args, [(*batch, r.choice([1, 2, 3]), *sizes(r, rank, 3, 4, 5, 7))]


def normalisation(r: random.Random) -> Made:
    name = r.choice("BatchNorm1d BatchNorm2d InstanceNorm1d InstanceNorm2d GroupNorm LayerNorm RMSNorm LocalResponseNorm".split())
    channels, rank = r.choice([2, 4]), {"1": 1, "2": 2}.get(name[-2], r.choice([1, 2]))
    shape = (r.choice([1, 2, 3]), channels, *sizes(r, rank, 1, 2, 3))
    if name[0] in "BI":
        words: dict[str, Any] = {"affine": r.random() < 0.5, "track_running_stats": r.random() < 0.5}
        return name, words | ({"momentum": r.choice([0.1, None])} if name[0] == "B" else {}), (channels,), [shape]
    if name == "GroupNorm":
        return name, {"affine": r.random() < 0.5}, (r.choice([1, 2]), channels), [shape]
    if name == "LocalResponseNorm":
        return name, {}, (2,), [shape]
    words = {"elementwise_affine": r.random() < 0.5} | ({"bias": r.random() < 0.5} if name == "LayerNorm" else {})
    return name, words, (list(shape[-r.choice([1, 2]) :]),), [shape]


def recurrent(r: random.Random) -> Made:
    name = r.choice(["RNN", "LSTM", "GRU"])
    words: dict[str, Any] = {k: r.random() < 0.5 for k in ("bias", "batch_first", "bidirectional")} | {"num_layers": r.choice([1, 2])}
    words |= {"RNN": {"nonlinearity": r.choice(["tanh", "relu"])}, "LSTM": {"proj_size": r.choice([0, 0, 1])}}.get(name, {})
    return name, words, (3, 2), [(*sizes(r, 2, 1, 2, 4), 3) if r.random() < 0.8 else (4, 3)]


def attention(r: random.Random) -> Made:
    words: dict[str, Any] = {k: r.random() < 0.5 for k in ("bias", "add_bias_kv", "add_zero_attn", "batch_first")}
    words |= {"kdim": r.choice([None, 3]), "vdim": r.choice([None, 3])}
    return "MultiheadAttention", words, (4, 2), [(3, 2, 4), (3, 2, words["kdim"] or 4), (3, 2, words["vdim"] or 4)]


def transformer(r: random.Random) -> Made:
    name = r.choice(["TransformerEncoderLayer", "TransformerDecoderLayer"])
    words: dict[str, Any] = {k: r.random() < 0.5 for k in ("norm_first", "batch_first", "bias")}
    words |= {"dropout": 0.0, "activation": r.choice(["relu", "gelu"])}
    return name, words, (4, 2, 6), [(3, 2, 4)] * (2 if "Decoder" in name else 1)


def resampling(r: random.Random) -> Made:
    mode = r.choice(["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
    words: dict[str, Any] = {"scale_factor": r.choice([2, 1.5, 0.5, (2.0, 1.5)]), "mode": mode, "recompute_scale_factor": r.choice([None, True])}
    return "Upsample", words | ({"align_corners": r.random() < 0.5} if mode[:2] == "bi" else {}), (), [(1, 2, r.choice([3, 4]), r.choice([2, 5]))]


def other(r: random.Random) -> Made:
    image, matrix = [(1, 2, 3, 3)], [(2, 3)]
    return r.choice([
        ("PixelShuffle", {}, (2,), [(1, 4, 2, 3)]), ("PixelUnshuffle", {}, (2,), [(1, 2, 4, 2)]), ("ChannelShuffle", {}, (2,), [(1, 4, 2, 2)]),
        ("Bilinear", {}, (2, 3, 2), [(4, 2), (4, 3)]), ("PReLU", {}, (r.choice([1, 3]),), [(2, 3, 2)]), ("GLU", {}, (r.choice([1, -1]),), [(2, 4, 2)]),
        ("Softmax2d", {}, (), image), ("CosineSimilarity", {"dim": 1}, (), [(2, 3, 2)] * 2), ("Softmin", {}, (1,), matrix),
        ("PairwiseDistance", {"p": r.choice([1.0, 2.0, 3.0]), "keepdim": r.random() < 0.5}, (), matrix * 2),
        ("Fold", {"stride": r.choice([1, 2])}, ((4, 5), 2), [(1, 8, 12)]),
        ("Unfold", {"dilation": r.choice([1, 2]), "padding": r.choice([0, 1]), "stride": r.choice([1, 2])}, (2,), [(1, 2, 4, 5)]),
        ("Flatten", {}, (r.choice([0, 1]), r.choice([-1, 2])), [(2, 3, 2)]), ("Unflatten", {}, (1, (2, 2)), [(2, 4)]),
        ("ReflectionPad2d", {}, ((1, 0, 2, 1),), image), ("ReplicationPad3d", {}, (1,), [(1, 1, 2, 3, 2)]), ("CircularPad1d", {}, ((1, 2),), [(2, 2, 3)]),
        ("ZeroPad2d", {}, ((1, -1, 0, 2),), image), ("ConstantPad1d", {}, ((-1, 2), 3.5), [(1, 2, 3)]), ("Hardtanh", {}, (-0.5, 0.7), matrix),
        ("Threshold", {}, (0.1, 5.0), matrix), ("CELU", {}, (0.5,), matrix), ("Softshrink", {}, (0.3,), matrix), ("LogSigmoid", {}, (), matrix),
    ])  # fmt: skip


def loss(r: random.Random) -> tuple[str, dict[str, Any]]:
    name = r.choice(
        "MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss KLDivLoss PoissonNLLLoss SoftMarginLoss HingeEmbeddingLoss "
        "CosineEmbeddingLoss MarginRankingLoss TripletMarginLoss GaussianNLLLoss CrossEntropyLoss NLLLoss MultiMarginLoss "
        "MultiLabelSoftMarginLoss".split()
    )
    more: dict[str, dict[str, Any]] = {
        "CrossEntropyLoss": {"ignore_index": r.choice([-100, 1]), "label_smoothing": r.choice([0.0, 0.2])},
        "NLLLoss": {"ignore_index": r.choice([-100, 1])}, "KLDivLoss": {"log_target": r.random() < 0.5},
        "PoissonNLLLoss": {"log_input": r.random() < 0.5, "full": r.random() < 0.5}, "GaussianNLLLoss": {"full": r.random() < 0.5},
        "SmoothL1Loss": {"beta": r.choice([0.0, 0.5, 1.0])}, "TripletMarginLoss": {"p": r.choice([1.0, 2.0]), "swap": r.random() < 0.5},
        "MultiMarginLoss": {"p": r.choice([1, 2])},
    }  # fmt: skip
    return name, {"reduction": r.choice(["none", "mean", "sum"])} | more.get(name, {})


def targets(T: Any, name: str, x: Any) -> tuple:
    """What a loss takes beside its input."""
    y = x.detach().flip(0)
    if name in ("CrossEntropyLoss", "NLLLoss", "MultiMarginLoss"):
        return (T.tensor([0, 1, 2, 1]),)
    return {
        "BCELoss": (y.sigmoid(),), "BCEWithLogitsLoss": (y.sigmoid(),), "KLDivLoss": (y.softmax(1),), "MarginRankingLoss": (y, y.sign()),
        "CosineEmbeddingLoss": (y, T.tensor([1.0, -1.0, 1.0, -1.0], dtype=T.float64)), "TripletMarginLoss": (y, x.detach().flip(1)),
        "GaussianNLLLoss": (y, y.abs() + 0.1), "SoftMarginLoss": (y.sign(),), "HingeEmbeddingLoss": (y.sign(),),
        "MultiLabelSoftMarginLoss": ((y > 0).double(),), "PoissonNLLLoss": (y.abs(),),
    }.get(name, (y,))  # fmt: skip


def filled(T: Any, r: random.Random, shape: tuple[int, ...]) -> Any:
    t = T.tensor([((i * 7 + 3) % 11 - 5) / 4 for i in range(math.prod(shape))], dtype=T.float64).reshape(shape)
    layout = r.random()
    if len(shape) == 4 and layout < 0.3:
        t = t.contiguous(memory_format=T.channels_last)
    elif len(shape) > 1 and layout < 0.5:
        t = t.mT.contiguous().mT
    return t.requires_grad_()


def flattened(value: Any) -> list:
    return [t for v in value for t in flattened(v)] if isinstance(value, tuple) else [value]


def steps(T: Any, r: random.Random, shown: Callable[[Any], str]) -> Iterator[str]:
    """What one module tells, or a loss."""
    if r.random() < 0.25:
        name, words = loss(r)
        args: tuple = ()
        inputs = [filled(T, r, (4, 3))]
        inputs[0] = inputs[0].detach().sigmoid().requires_grad_() if name == "BCELoss" else inputs[0]
    else:
        kinds = [convolution, convolution, pooling, normalisation, recurrent, attention, transformer, resampling, other, other]
        name, words, args, shapes = r.choice(kinds)(r)
        inputs = [filled(T, r, s) for s in shapes]
    yield f"{name}(*{args}, **{words}) of {[tuple(x.shape) for x in inputs]}"
    module = getattr(T.nn, name)(*args, **words).double().train(r.random() < 0.8)
    with T.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(T.tensor([((j * 5 + i) % 9 - 4) / 8 for j in range(p.numel())], dtype=T.float64).reshape(p.shape))
    result = module(*inputs, *(targets(T, name, inputs[0]) if name.endswith("Loss") else ()))
    results = flattened(result)
    yield from (f"result: {shown(t)}" for t in results)
    if results[0].requires_grad:
        results[0].sum().backward()
    yield from (f"gradient: {shown(x.grad)}" for x in inputs)
    yield from (f"gradient of {k}: {shown(p.grad)}" for k, p in module.named_parameters())
    yield from (f"buffer {k}: {shown(b)}" for k, b in module.named_buffers())
    yield f"state: {list(module.state_dict())}"
    yield repr(module)
