"""Containers of parameters: ParameterList and ParameterDict. Plain tensors put into them become parameters."""

from __future__ import annotations

from collections import OrderedDict

import strata

from ..parameter import Parameter
from .container import checked_index, update_from_pairs
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, NoReturn, Self


def _as_parameter(value: Any) -> Any:
    if isinstance(value, strata.Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _line(key: Any, value: Any, type_text: Any) -> str:
    if not isinstance(value, strata.Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(n) for n in value.size())
    device = "" if value.device.type in ("cpu", "meta") else f" ({value.device})"
    return f"  ({key}): {kind} containing: [{type_text} of size {size}{device}]"


class ParameterList(Module):
    """A list whose parameters are registered; other values are kept as they are."""

    __module__ = "strata.nn.modules.container"  # where PyTorch's files have it

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)([self[i] for i in range(*idx.indices(len(self)))])
        return getattr(self, str(checked_index(idx, len(self))))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, str(checked_index(idx, len(self))), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def append(self, value: Any) -> Self:
        """Adds `value` at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds every value of an iterable at the end. TypeError where it is none, or one tensor."""
        if isinstance(values, strata.Tensor) or not hasattr(values, "__iter__"):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_line(i, value, getattr(value, "dtype", None)) for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary whose parameters are registered under their keys; it keeps insertion order."""

    __module__ = "strata.nn.modules.container"  # where PyTorch's files have it

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _checked(key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._checked(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[self._checked(key)] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._checked(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary with the same values."""
        return ParameterDict(list(self.items()))

    def setdefault(self, key: str, default: Any | None = None) -> Any:
        """The value of `key`, put there first as `default` where missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Removes everything."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Removes a key and returns its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes the last key and returns it with its value."""
        if not self._keys:
            raise KeyError("popitem(): ParameterDict is empty")
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any | None = None) -> Any:
        """The value of `key`, or `default`."""
        return self[key] if key in self else default  # noqa: SIM401 (this is get itself)

    def fromkeys(self, keys: Iterable[str], default: Any | None = None) -> ParameterDict:
        """A new dictionary with `default` under each key."""
        return ParameterDict([(key, default) for key in keys])

    def keys(self) -> Iterable[str]:
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds the entries of a mapping (a plain one by sorted key), or of an iterable of (key, value) pairs."""
        if not hasattr(parameters, "__iter__"):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                + type(parameters).__name__
            )
        pairs: Iterable = parameters.items() if hasattr(parameters, "items") else parameters
        if hasattr(parameters, "items") and not isinstance(parameters, (OrderedDict, ParameterDict)):
            pairs = sorted(pairs)  # PyTorch's order for a plain mapping, which saved optimiser states rely on
        update_from_pairs(self, pairs, "ParameterDict")

    def extra_repr(self) -> str:
        return "\n".join(_line(key, value, strata.typename(value)) for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self
