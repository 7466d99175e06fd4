"""Calls on operands that are not contiguous, the same in every interpreter: channels_last ones of every operator, the samples with images
or volumes and one made of them where no sample has any; functions that are no operators; and orders of dims in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from kit import SAMPLES, Call, Maker, T, call, flattened

SHAPES = {4: (2, 3, 4, 5), 5: (2, 3, 4, 5, 6)}
# Results of chance or of memory that nothing wrote have layouts, too; what depends on the values' order has not.
SKIPPED = ("aten::as_strided", "aten::_unsafe_view", "aten::set_", "aten::resize_")


# The last two dims exchanged, or all of them the other way round.
ORDERS = ("exchanged", "reversed")


def in_order(t: Any, order: str) -> Any:
    """The values of a tensor of either library, with its dims in this order in memory."""
    dims = list(range(t.dim()))
    dims[-2:] = dims[-2:][::-1]
    if order == "reversed":
        dims = dims[::-1] if t.dim() > 2 else dims
    return t.permute(dims).contiguous().permute([dims.index(d) for d in range(t.dim())])


def word(results: Any, library: Any) -> str:
    """A digit for each tensor: whether it is contiguous."""
    found = [r for r in flattened([results]) if isinstance(r, library.Tensor)]
    return "".join(str(int(r.layout == library.strided and r.is_contiguous())) for r in found)


def tensors(c: Call) -> list[T]:
    return [v for v in flattened([list(c.args), list(c.kwargs.values())]) if isinstance(v, T)]


def has_images(c: Call) -> bool:
    return any(t.data.ndim in SHAPES and t.data.size > 0 for t in tensors(c))


def enlarged(c: Call, rank: int) -> Call | None:
    """The call with images of one shape in place of its tensors, which are of one shape."""
    found = tensors(c)
    if not found or len({t.data.shape for t in found}) != 1:
        return None

    def grown(value: Any) -> Any:
        if isinstance(value, T):
            return T(np.resize(value.data, SHAPES[rank]), value.dtype) if value.data.size else value
        return type(value)(grown(v) for v in value) if isinstance(value, (list, tuple)) else value

    return Call(grown(c.args), {k: grown(v) for k, v in c.kwargs.items()})


def cases(full: str, samples: str, dtype: str = "float32") -> Iterator[Call]:
    """The calls of an operator."""
    if full.startswith(SKIPPED):
        return
    made = list(SAMPLES[samples](Maker(full, dtype)))
    found = [c for c in made if has_images(c)]
    yield from found
    if not found:
        for c in made:
            grown = [g for g in (enlarged(c, 4), enlarged(c, 5)) if g]
            if grown and has_images(grown[0]):
                yield from grown
                return


def functional(m: Maker) -> dict[str, Call]:
    """Functions of nn.functional and methods by name: the operand first."""
    image, volume = m.tensor(*SHAPES[4]), m.tensor(*SHAPES[5])
    wide = m.tensor(2, 8, 4, 6)
    grid2, grid3 = m.tensor(2, 3, 4, 2, low=-1, high=1), m.tensor(2, 3, 4, 5, 3, low=-1, high=1)
    weight = m.tensor(3, low=0.5, high=2)
    made: dict[str, Call] = {}
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area"):
        for size in ((7, 9), (2, 3)):
            made[f"interpolate {mode} {size}"] = call(image, size=size, mode=mode)
    for mode in ("bilinear", "bicubic"):
        made[f"interpolate {mode} antialias"] = call(image, size=(2, 3), mode=mode, antialias=True)
    for mode in ("nearest", "nearest-exact", "trilinear", "area"):
        made[f"interpolate {mode} 3d"] = call(volume, size=(3, 7, 5), mode=mode)
    for mode in ("bilinear", "nearest", "bicubic"):
        made[f"grid_sample {mode}"] = call(image, grid2, mode=mode, align_corners=False)
    for mode in ("bilinear", "nearest"):
        made[f"grid_sample {mode} 3d"] = call(volume, grid3, mode=mode, align_corners=False)
    for mode in ("constant", "reflect", "replicate", "circular"):
        made[f"pad {mode}"] = call(image, (1, 2, 1, 0), mode=mode)
        made[f"pad {mode} 3d"] = call(volume, (1, 2, 1, 0, 1, 1), mode=mode)
    made["batch_norm"] = call(image, m.tensor(3), m.tensor(3, low=1, high=2), weight, weight, training=False)
    made["batch_norm training"] = call(image, None, None, weight, weight, training=True)
    made["batch_norm 3d"] = call(volume, None, None, weight, weight, training=True)
    made["instance_norm"] = call(image)
    made["instance_norm weight"] = call(image, None, None, weight, weight)
    made["group_norm"] = call(wide, 4)
    made["layer_norm"] = call(image, (4, 5))
    made["local_response_norm"] = call(image, 3)
    made["local_response_norm 3d"] = call(volume, 3)
    made["rms_norm"] = call(image, (5,))
    made["normalize"] = call(image)
    made["pixel_shuffle"] = call(wide, 2)
    made["pixel_unshuffle"] = call(wide, 2)
    made["channel_shuffle"] = call(wide, 4)
    made["prelu"] = call(image, weight)
    made["max_pool2d"] = call(image, 2)
    made["max_pool2d ceil"] = call(image, 3, 2, 1, 1, True)
    made["max_pool3d"] = call(volume, 2)
    made["lp_pool2d"] = call(image, 2.0, 2)
    made["avg_pool2d"] = call(image, 2)
    made["avg_pool3d"] = call(volume, 2)
    made["adaptive_avg_pool2d"] = call(image, (2, 3))
    made["adaptive_avg_pool2d one"] = call(image, 1)
    made["adaptive_avg_pool3d"] = call(volume, (2, 3, 2))
    made["adaptive_avg_pool3d one"] = call(volume, 1)
    made["adaptive_max_pool2d"] = call(image, (2, 3))
    made["adaptive_max_pool3d"] = call(volume, (2, 3, 2))
    made["fractional_max_pool2d"] = call(image, 2, output_size=(2, 3))
    for name in ("dropout", "dropout2d", "alpha_dropout", "feature_alpha_dropout"):
        made[f"{name}"] = call(image, 0.5)
        made[f"{name} eval"] = call(image, 0.5, training=False)
    made["dropout3d"] = call(volume, 0.5)
    for name in ("relu", "relu6", "gelu", "silu", "elu", "selu", "celu", "hardswish", "hardtanh", "hardsigmoid",
                 "leaky_relu", "logsigmoid", "mish", "softplus", "softshrink", "softsign", "tanhshrink", "threshold"):
        made[name] = call(image, *((0.5, 1.0) if name == "threshold" else ()))
    made["rrelu training"] = call(image, training=True)
    made["gumbel_softmax"] = call(image, dim=1)
    made["gumbel_softmax hard"] = call(image, dim=1, hard=True)
    made["glu"] = call(wide, 1)
    made["softmax"] = call(image, 1)
    made["log_softmax"] = call(image, 1)
    made["conv2d"] = call(image, m.tensor(4, 3, 2, 2))
    made["conv2d depthwise"] = call(image, m.tensor(3, 1, 2, 2), groups=3)
    made["conv2d one"] = call(image, m.tensor(4, 3, 1, 1))
    made["conv3d"] = call(volume, m.tensor(4, 3, 2, 2, 2))
    made["conv_transpose2d"] = call(image, m.tensor(3, 4, 2, 2))
    made["conv_transpose3d"] = call(volume, m.tensor(3, 4, 2, 2, 2))
    made["unfold"] = call(image, 2)
    made["one_hot"] = call(m.integers(2, 3, 4, 5))
    for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        made[name] = call(image, m.tensor(*SHAPES[4]), reduction="none")
    return made
