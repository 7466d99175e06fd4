"""What is known of a node's value, as printed code shows it: "f32[2, 3]"."""

from __future__ import annotations

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_KINDS = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c"}


def dtype_word(dtype: strata.dtype) -> str:
    """float32 is f32, bool is b8."""
    name = str(dtype).rpartition(".")[2]
    if name == "bool":
        return "b8"
    letters = name.rstrip("0123456789")
    return _KINDS.get(letters, letters) + name[len(letters) :]


def sizes_text(sizes: Iterable[Any]) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def _plain(text: str) -> str:
    return text


def _color(*codes: int) -> Callable[[str], str]:
    return lambda text: "".join(f"\x1b[{code}m" for code in codes) + f"{text}\x1b[0m"


class Colors:
    """The colours of printed code; without `on`, none."""

    def __init__(self, on: bool) -> None:
        self.dtype = _color(31) if on else _plain
        self.sizes = _color(34) if on else _plain
        self.strides = _color(2, 34) if on else _plain
        self.device = _color(2, 32) if on else _plain
        self.dim = _color(2) if on else _plain


def annotation(t: strata.Tensor, strides: bool, device: str, colors: Colors | None = None) -> str:
    """A tensor's dtype and sizes, with strides where they are wanted, and a device."""
    colors = colors or Colors(False)
    text = colors.dtype(dtype_word(t.dtype)) + colors.sizes(sizes_text(t.shape))
    return text + colors.strides(sizes_text(t.stride()) if strides else "") + colors.device(device)


def device_of(meta: dict[str, Any], value: strata.Tensor) -> str:
    """Where a node's value lies: as it is noted, where the value in meta has no memory."""
    return str(meta.get("device", value.device))


def of_meta(meta: dict[str, Any], strides: bool, device: bool, colors: Colors) -> str:
    """The annotation of a node with this meta: ': "f32[2, 3]"', or "" where nothing is known."""
    value = meta.get("val", meta.get("tensor_meta", meta.get("example_value")))
    if isinstance(value, strata.Tensor):
        text = annotation(value, strides, device_of(meta, value) if device else "", colors)
        return f': "{text}"' if type(value) is strata.Tensor else f': "{type(value).__name__}({text})"'
    if isinstance(value, tuple) and hasattr(value, "memory_format"):
        return f': "{dtype_word(value.dtype)}{sizes_text(value.shape)}"'
    return ""
