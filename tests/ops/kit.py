"""What operator samples are made of, the same in every interpreter: the recorder turns them into PyTorch's tensors, the
tests into ours. A sample function takes a Maker and yields `call(*args, **kwargs)`; inputs come from a seed alone."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

DTYPES = ["float32", "float64", "bfloat16", "int64", "bool", "float16", "int32", "uint8", "complex64"]
FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclass
class T:
    """A tensor: values as NumPy has them (bfloat16 as float32 values that are rounded on conversion) and its dtype."""

    data: np.ndarray
    dtype: str


@dataclass
class D:
    """A dtype as an argument."""

    name: str


@dataclass
class Call:
    args: tuple
    kwargs: dict[str, Any] = field(default_factory=dict)


def call(*args: Any, **kwargs: Any) -> Call:
    return Call(args, kwargs)


class Maker:
    """Makes the inputs of one operator for one dtype."""

    def __init__(self, op: str, dtype: str):
        self.op = op
        self.dtype = dtype
        self.random = np.random.default_rng(zlib.crc32(f"{op}/{dtype}".encode()))

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def is_complex(self) -> bool:
        return self.dtype.startswith("complex")

    @property
    def is_int(self) -> bool:
        return not self.is_float and not self.is_complex and self.dtype != "bool"

    def tensor(self, *shape: int, low: float = -4, high: float = 4, dtype: str | None = None, away: float = 0.0) -> T:
        """Uniform values in [low, high); with `away`, none nearer to 0 than that."""
        d = dtype or self.dtype
        if d == "bool":
            return T(self.random.random(shape) < 0.5, d)
        if d.startswith("complex"):
            v = self.random.uniform(low, high, shape) + 1j * self.random.uniform(low, high, shape)
            return T(np.asarray(v, np.complex64 if d == "complex64" else np.complex128), d)
        if d in FLOATS:
            v = self.random.uniform(low, high, shape)
            if away:
                v = np.where(np.abs(v) < away, np.where(v < 0, -away, away) + v, v)
            return T(np.asarray(v, np.float64 if d == "float64" else np.float32), d)
        lo, hi = int(np.ceil(low)), max(int(high), int(np.ceil(low)) + 1)
        if d.startswith("uint"):
            lo, hi = max(lo, 0), max(hi, 1 + max(lo, 0))
        v = self.random.integers(lo, hi, shape)
        if away:
            v = np.where(v == 0, 1, v)
        return T(np.asarray(v, d), d)

    def distinct(self, *shape: int, dtype: str | None = None) -> T:
        """Values that all differ, so that the order of equals does not matter."""
        d = dtype or self.dtype
        n = int(np.prod(shape, dtype=int))
        v = self.random.permutation(n).reshape(shape)
        if d == "bool":
            return T(v % 2 == 0, d)
        if d in FLOATS:
            return T(np.asarray(v - n / 2 + 0.25, np.float64 if d == "float64" else np.float32), d)
        if d.startswith("complex"):
            return T(np.asarray(v + 1j, np.complex64 if d == "complex64" else np.complex128), d)
        return T(np.asarray(v, d), d)

    def integers(self, *shape: int, low: int = 0, high: int = 3, dtype: str = "int64") -> T:
        return T(np.asarray(self.random.integers(low, high, shape), dtype), dtype)

    def mask(self, *shape: int) -> T:
        return T(self.random.random(shape) < 0.5, "bool")

    def number(self, low: float = -3, high: float = 3) -> Any:
        """A Python number of the dtype's kind."""
        if self.dtype == "bool":
            return bool(self.random.random() < 0.5)
        if self.is_int:
            return int(self.random.integers(max(int(low), 0) if self.dtype.startswith("uint") else int(low), int(high)))
        value = float(np.float32(self.random.uniform(low, high)))
        return complex(value, float(np.float32(self.random.uniform(low, high)))) if self.is_complex else value


SAMPLES: dict[str, Callable[[Maker], Iterator[Call]]] = {}


def sample(*names: str):
    """Registers a sample function under the names that `samples:` of the table uses."""

    def register(f):
        for name in names:
            if name in SAMPLES:
                raise ValueError(f"the sample {name} exists twice")
            SAMPLES[name] = f
        return f

    return register


def load_samples() -> None:
    """Imports every samples_*.py of this folder once."""
    import importlib
    import sys
    from pathlib import Path

    folder = Path(__file__).resolve().parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    for path in sorted(folder.glob("samples_*.py")):
        importlib.import_module(path.stem)


def flattened(value: Any) -> Iterator[Any]:
    """The items of nested lists."""
    if isinstance(value, (list, tuple)):
        for v in value:
            yield from flattened(v)
    else:
        yield value


def convert(value: Any, tensor: Callable[[T], Any], dtype: Callable[[str], Any]) -> Any:
    """A sample's argument in an interpreter's own types."""
    if isinstance(value, T):
        return tensor(value)
    if isinstance(value, D):
        return dtype(value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(convert(v, tensor, dtype) for v in value)
    return value


def pack(results: list[Any]) -> tuple[list, bytes]:
    """Index and bytes of a list of records; a record is a list of arrays or the name of an error."""
    index: list = []
    blob = bytearray()
    for record in results:
        if isinstance(record, str):
            index.append(record)
            continue
        entry = []
        for a in record:
            a = np.asarray(a, order="C")
            entry.append([a.dtype.str, list(a.shape), len(blob)])
            blob += a.tobytes()
        index.append(entry)
    return index, bytes(blob)


def unpack(entry: Any, blob: bytes) -> Any:
    if isinstance(entry, str):
        return entry
    arrays = []
    for dtype, shape, at in entry:
        n = int(np.prod(shape, dtype=int))
        arrays.append(np.frombuffer(blob, np.dtype(dtype), n, at).reshape(shape))
    return arrays
