"""Values of a summary as messages: numbers, histograms, images, texts, curves, hyperparameters, graphs."""

from __future__ import annotations

import struct
import zlib

import strata
from strata import Tensor
from strata.utils.tensorboard._wire import double, doubles, integer, message, single, singles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FLOAT, _DOUBLE, _STRING = 1, 2, 7  # TensorFlow's numbers of dtypes


def tensor_of(value: Any) -> Tensor:
    """Tensors, arrays, numbers and lists of them as a tensor on the CPU, without history."""
    if isinstance(value, Tensor):
        return value.detach().cpu()
    return strata.as_tensor(value)


def number_of(value: Any, what: str) -> float:
    """A number, or the element of a tensor or array of one. ValueError for more."""
    t = tensor_of(value)
    if t.numel() != 1:
        raise ValueError(f"{what}: expected one number, got a tensor of shape {list(t.shape)}")
    return float(t.item())


def _value(tag: str, *fields: bytes) -> bytes:
    return message(1, message(1, tag) + b"".join(fields))


def _metadata(plugin: str, content: bytes = b"") -> bytes:
    return message(9, message(1, message(1, plugin) + message(2, content)))


def _tensor(dtype: int, shape: list[int], data: bytes) -> bytes:
    dims = b"".join(message(2, integer(1, size)) for size in shape)
    return message(8, integer(1, dtype) + message(2, dims) + data)


def scalar(tag: str, value: float, new_style: bool = False, double_precision: bool = False) -> bytes:
    if new_style:
        dtype, data = (_DOUBLE, doubles(6, [value])) if double_precision else (_FLOAT, singles(5, [value]))
        return _value(tag, _metadata("scalars"), _tensor(dtype, [], data))
    return _value(tag, single(2, value))


def default_edges() -> Tensor:
    """TensorFlow's edges: 0, and numbers from 1e-12 to 1e20 by factors of 1.1, of both signs."""
    positive, v = [], 1e-12
    while v < 1e20:
        positive.append(v)
        v *= 1.1
    return strata.tensor([-v for v in reversed(positive)] + [0.0] + positive, dtype=strata.float64)


def histogram(tag: str, values: Any, bins: Any) -> bytes:
    """bins: "tensorflow", a number of equal bins over the values' range, or their edges. ValueError where there are no values."""
    x = tensor_of(values).reshape(-1).double()
    if x.numel() == 0:
        raise ValueError("add_histogram: expected values, got none")
    low, high = x.min().item(), x.max().item()
    if isinstance(bins, str):
        if bins != "tensorflow":
            raise ValueError(f"add_histogram: expected bins='tensorflow', a number of bins or edges, got {bins!r}; give a number")
        edges = default_edges()
    elif isinstance(bins, int):
        edges = strata.linspace(low if low < high else low - 0.5, high if low < high else high + 0.5, bins + 1, dtype=strata.float64)
    else:
        edges = tensor_of(bins).double()
    inside = x[(x >= edges[0]) & (x <= edges[-1])]
    places = (strata.bucketize(inside, edges, right=True) - 1).clamp(max=edges.numel() - 2)  # the last bin has its right edge
    counts = strata.bincount(places, minlength=edges.numel() - 1)
    filled = counts.nonzero().reshape(-1)
    first, last = (int(filled[0]), int(filled[-1])) if filled.numel() else (0, 0)
    # The first bucket ends where the values begin, so that its width is known, and holds nothing.
    return _histogram(
        tag, low, high, x.numel(), x.sum().item(), (x * x).sum().item(), edges[first : last + 2].tolist(), [0, *counts[first : last + 1].tolist()]
    )


def _histogram(tag: str, low: float, high: float, num: float, total: float, squares: float, limits: list, counts: list) -> bytes:
    numbers = b"".join(double(i, v) for i, v in enumerate((low, high, num, total, squares), 1))
    return _value(tag, message(5, numbers + doubles(6, limits) + doubles(7, counts)))


histogram_raw = _histogram


def png(pixels: Tensor) -> bytes:
    """A uint8 tensor [height, width, 1, 3 or 4 channels] as a PNG file."""
    height, width, channels = pixels.shape
    rows = bytes(strata.cat([strata.zeros(height, 1, dtype=strata.uint8), pixels.reshape(height, -1)], 1).contiguous().numpy().tobytes())

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    head = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pixels_of(image: Any, dataformats: str, what: str) -> Tensor:
    """An image as uint8 [height, width, channels]; several (N in dataformats) as a grid of up to eight a row.

    Numbers with a fraction are from 0 to 1, integers from 0 to 255. ValueError for dims that do not fit dataformats.
    """
    x, order = tensor_of(image), dataformats.upper()
    if x.dim() != len(order) or sorted(set(order) - {"N"}) not in (["H", "W"], ["C", "H", "W"]):
        raise ValueError(f"{what}: size of input tensor and input format are different. tensor shape: {tuple(x.shape)}, input_format: {dataformats}")
    if x.is_floating_point():
        x = (x * 255).clamp(0, 255)
    x = x.to(strata.uint8)
    if "C" not in order:
        x, order = x.unsqueeze(-1), order + "C"
    x = x.permute([order.index(d) for d in ("NHWC" if "N" in order else "HWC")])
    if x.dim() == 4:
        count, height, width, channels = x.shape
        columns = min(count, 8)
        missing = -count % columns
        x = strata.cat([x, strata.zeros(missing, height, width, channels, dtype=strata.uint8)]) if missing else x
        x = x.reshape(-1, columns, height, width, channels).permute(0, 2, 1, 3, 4).reshape(-1, columns * width, channels)
    if x.shape[-1] == 1:
        x = x.expand(*x.shape[:-1], 3)
    return x.contiguous()


def image(tag: str, pixels: Tensor) -> bytes:
    height, width, channels = pixels.shape
    return _value(tag, message(4, integer(1, height) + integer(2, width) + integer(3, channels) + message(4, png(pixels))))


def text(tag: str, value: str) -> bytes:
    return _value(f"{tag}/text_summary", _metadata("text"), _tensor(_STRING, [1], message(8, value)))


def pr_curve(tag: str, labels: Any, predictions: Any, thresholds: int, weights: Any) -> bytes:
    """Counts, precision and recall at equal steps of the threshold."""
    truth, guess = tensor_of(labels).reshape(-1).double(), tensor_of(predictions).reshape(-1).double()
    w = strata.ones_like(truth) if weights is None else tensor_of(weights).reshape(-1).double()
    places = (guess * (thresholds - 1)).floor().long().clamp(0, thresholds - 1)

    def above(counted: Tensor) -> Tensor:  # what lies at each threshold or above
        return strata.zeros(thresholds, dtype=strata.float64).index_add(0, places, counted).flip(0).cumsum(0).flip(0)

    tp, fp = above(truth * w), above((1 - truth) * w)
    tn, fn = fp[0] - fp, tp[0] - tp
    rows = strata.stack([tp, fp, tn, fn, tp / (tp + fp).clamp(min=1e-7), tp / (tp + fn).clamp(min=1e-7)])
    content = integer(2, thresholds)
    return _value(tag, _metadata("pr_curves", content), _tensor(_FLOAT, [6, thresholds], singles(5, rows.reshape(-1).tolist())))


def _plain(value: Any) -> tuple[bytes, int]:
    """(google.protobuf.Value, the dtype of hyperparameters)."""
    if isinstance(value, bool):
        return integer(4, value), 2
    if isinstance(value, (int, float)):
        return double(2, value), 3
    if isinstance(value, str):
        return message(3, value), 1
    raise ValueError(f"add_hparams: expected int, float, bool, str or a tensor of one element as value, got {type(value).__name__}")


def hparams(given: dict[str, Any], metrics: dict[str, Any], domains: dict[str, list]) -> list[bytes]:
    """The three summaries of a run: the experiment, its start, its end."""
    infos, start = b"", b""
    for name, value in given.items():
        value = value.item() if isinstance(value, Tensor) and value.numel() == 1 else value
        data, kind = _plain(value)
        domain = b"".join(message(1, _plain(v)[0]) for v in domains.get(name, ()))
        infos += message(4, message(1, name) + integer(4, kind) + (message(5, domain) if domain else b""))
        start += message(1, message(1, name) + message(2, data))
    measured = b"".join(message(5, message(1, message(2, name))) for name in metrics)
    parts = {"experiment": message(2, infos + measured), "session_start_info": message(3, start), "session_end_info": message(4, integer(1, 1))}
    return [_value(f"_hparams_/{name}", _metadata("hparams", data)) for name, data in parts.items()]


def graph(nodes: Any) -> bytes:
    """A GraphDef of fx nodes: names, operators, inputs, the shapes that are known."""
    out = b""
    for node in nodes:
        value = node.meta.get("val")
        shape = b""
        if isinstance(value, Tensor):
            dims = b"".join(message(2, integer(1, int(size))) for size in value.shape)
            shape = message(5, message(1, "_output_shapes") + message(2, message(1, message(7, dims))))
        name = node.op if node.op in ("placeholder", "output", "get_attr") else str(node.target)
        inputs = b"".join(message(3, source.name) for source in node.all_input_nodes)
        out += message(1, message(1, node.name) + message(2, name) + inputs + shape)
    return out + message(4, integer(1, 22))  # the version of GraphDef
