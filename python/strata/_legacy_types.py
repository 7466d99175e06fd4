"""FloatTensor, LongTensor and their kind, from before `dtype=` was; names of dtypes and layouts that no tensor has."""

from __future__ import annotations

import strata
from strata import _C, Tensor, _lazy
from strata._missing import missing_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DTYPES = {
    "BFloat16Tensor": "bfloat16",
    "BoolTensor": "bool",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "DoubleTensor": "float64",
    "FloatTensor": "float32",
    "HalfTensor": "float16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "ShortTensor": "int16",
}
SYMBOLS = ("SymBool", "SymFloat", "SymInt")
ABSENT_DTYPES = (
    "complex32",
    "float4_e2m1fn_x2",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "qint8",
    "qint32",
    "quint8",
)
LAYOUTS = ("jagged", "sparse_bsc", "sparse_bsr", "sparse_coo", "sparse_csc", "sparse_csr")


class _Absent:
    """A layout or dtype to compare with, which no tensor of this version has."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return _C._shown(f"strata.{self._name}")

    def __reduce__(self) -> str:
        return self._name


class _Legacy(type):
    """isinstance(t, FloatTensor) asks for the dtype; FloatTensor(2, 3) and FloatTensor([1, 2]) make plain tensors."""

    dtype: strata.dtype
    layout = strata.strided
    is_sparse = False

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        sizes = args[0] if len(args) == 1 and isinstance(args[0], strata.Size) else args
        if all(isinstance(n, int) for n in sizes):
            return strata.empty(*sizes, dtype=cls.dtype, device=device) if sizes else strata.empty(0, dtype=cls.dtype)
        if len(args) != 1:
            raise TypeError(
                f"{cls.__name__} takes sizes (ints), or one sequence, array or tensor, but got {len(args)} values"
            )
        (data,) = args
        if isinstance(data, Tensor):
            if data.dtype != cls.dtype:
                raise TypeError(
                    f"{cls.__name__} expected a tensor of {cls.dtype}, got {data.dtype}; convert it with .to()"
                )
            return data.view_as(data).detach()
        if isinstance(data, strata.storage.TypedStorage) and data.dtype == cls.dtype:
            return data._tensor()
        if not hasattr(data, "__len__"):
            raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
        return strata.tensor(data, dtype=cls.dtype, device=device)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype == cls.dtype and instance.device.type == "cpu"

    def __repr__(cls) -> str:
        return f"<class '{_C._shown(f'strata.{cls.__name__}')}'>"


def _no_symbol(name: str) -> type:
    """A class for isinstance: sizes are ints here, so nothing is of it."""
    return missing_class("strata", name, "sizes are Python's ints and bools")


def _make(name: str) -> Any:
    if name in SYMBOLS:
        return _no_symbol(name)
    if name in LAYOUTS or name in ABSENT_DTYPES:
        return _Absent(name)
    dtype = getattr(strata, DTYPES[name])
    return _Legacy(
        name, (), {"__module__": "strata", "dtype": dtype, "__doc__": f"Names {dtype}; use `dtype=` instead."}
    )


__getattr__ = _lazy.of(globals(), otherwise=_make)[0]
