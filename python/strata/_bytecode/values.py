"""Kinds of values: which are constants, which are copied before they may be changed, which are tensors."""

from __future__ import annotations

import collections
import functools
import operator
import sys
import types

import strata
from strata import _C

from .sizes import Sizes, Sym

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .sources import Source

CONSTANTS: set[type] = {
    int, float, bool, complex, str, bytes, type(None), type(...), type(NotImplemented), range, slice,
    strata.dtype, strata.device, strata.layout, strata.memory_format, strata.Size, Sym, Sizes,
}  # fmt: skip
COPIED = (list, dict, set, collections.OrderedDict, collections.defaultdict, collections.deque)
BUILTIN_FUNCTIONS = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)  # fmt: skip
GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
HEAP_TYPE = 1 << 9  # of Py_TPFLAGS: classes that a program can change
LARGE = 2000  # elements of a container, beyond which reading it whole is not worth it


def is_constant(value: Any) -> bool:
    kind = type(value)
    return kind in CONSTANTS or (_numpy_scalar(kind))


def _numpy_scalar(kind: type) -> bool:
    if kind.__module__ != "numpy":
        return False
    import numpy

    return issubclass(kind, (numpy.number, numpy.bool_))


def is_tensor(value: Any) -> bool:
    return isinstance(value, strata.Tensor)


def is_lazy(t: Any) -> bool:
    """A parameter or buffer of a lazy module, which has no size yet."""
    return type(t).__module__ == "strata.nn.parameter" and hasattr(type(t), "materialize")


def out_tensors(kwargs: dict[str, Any]) -> list:
    """The tensors that a call's out= gives."""
    out = kwargs.get("out") if kwargs else None
    return [out] if is_tensor(out) else list(out) if isinstance(out, (tuple, list)) else []


def is_plain_tensor(value: Any) -> bool:
    """Of no class of the program's own."""
    kind = type(value)
    return kind is strata.Tensor or kind.__module__ == "strata.nn.parameter" or _is_parameter_class(kind)


def has_dispatch(kind: type) -> bool:
    """A class of tensors whose operators are its own affair."""
    for base in kind.__mro__:
        if "__torch_dispatch__" in base.__dict__:
            return base.__dict__["__torch_dispatch__"] not in (None, _C._disabled_torch_dispatch_impl)
    return False


def _is_parameter_class(kind: type) -> bool:
    """A class of parameters of the program's, whose operators are those of tensors."""
    if not issubclass(kind, strata.nn.Parameter):
        return False
    own = kind.__mro__[: kind.__mro__.index(strata.nn.Parameter)]
    return not any(name in base.__dict__ for base in own for name in ("__torch_function__", "__torch_dispatch__", "__getattribute__", "__getattr__"))


def is_known_object(value: Any) -> bool:
    """A class or function: equal to itself alone, and hashed by what it is."""
    return isinstance(value, (type, types.FunctionType)) or (
        isinstance(value, BUILTIN_FUNCTIONS) and isinstance(getattr(value, "__self__", None), (type(None), type, types.ModuleType, *BUILTIN_FUNCTIONS, types.GetSetDescriptorType))
    )


def is_enum(value: Any) -> bool:
    enum = sys.modules.get("enum")
    return enum is not None and isinstance(value, enum.Enum)


def is_itself(value: Any) -> bool:
    """An object that is equal to itself alone, by the rules of `object`; a module, for one."""
    kind = type(value)
    return kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__ and not is_tensor(value)


def as_int(value: Any) -> Any:
    """A member of an IntEnum or IntFlag as the int that it is; others as they are."""
    return int.__int__(value) if isinstance(value, int) and is_enum(value) and type(value).__mro__[1].__name__ in ("IntEnum", "IntFlag") else value


def is_module(value: Any) -> bool:
    return "strata.nn" in sys.modules and isinstance(value, strata.nn.Module)


def is_parameter(value: Any) -> bool:
    return "strata.nn" in sys.modules and isinstance(value, strata.nn.Parameter)


def is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and type(value) is not tuple and hasattr(type(value), "_make")


def is_named_tuple_class(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_make")


def is_bare_tuple_class(kind: type) -> bool:
    """A class that derives from tuple and neither makes nor reads its elements otherwise."""
    own = kind.__mro__[: kind.__mro__.index(tuple)]
    names = ("__new__", "__init__", "__getattribute__", "__getattr__", "__setattr__", "__delattr__", *DUNDERS)
    plain = type(kind) is type and all(b.__flags__ & HEAP_TYPE for b in own) and kind.__mro__[len(own) + 1 :] == (object,)
    return plain and not any(name in b.__dict__ for b in own for name in names)


def is_result_tuple(value: Any) -> bool:
    """What operators with named results give."""
    return isinstance(value, tuple) and hasattr(type(value), "n_sequence_fields")


def is_immutable(kind: type) -> bool:
    """A class of Python's own, or another that is written in C and cannot be changed. (Some of these are heap types from 3.12 on.)"""
    return bool(kind.__flags__ & (1 << 8))  # Py_TPFLAGS_IMMUTABLETYPE


def has_python_method(kind: type, names: tuple[str, ...]) -> str | None:
    """One of those special methods that the class, or one that it derives from, wrote in Python."""
    for base in kind.__mro__:
        for name in names:
            if isinstance(base.__dict__.get(name), types.FunctionType):
                return name
    return None


DUNDERS = (
    "__eq__", "__hash__", "__len__", "__iter__", "__getitem__", "__bool__", "__str__", "__repr__", "__format__", "__index__",
    "__int__", "__float__", "__lt__", "__gt__", "__le__", "__ge__", "__contains__", "__next__", "__abs__", "__neg__", "__pos__",
    "__invert__", "__round__", "__floor__", "__ceil__", "__trunc__", "__complex__", "__bytes__", "__length_hint__", "__reversed__",
    *(f"__{side}{name}__" for name in "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor".split() for side in ("", "r", "i")),
)  # fmt: skip


class Shadow:
    """A copy of a container from outside, which the program reads and writes in its place while it is captured."""

    __slots__ = ("before", "copy", "real", "source")

    def __init__(self, real: Any, copy: Any, source: Source):
        self.real, self.copy, self.source = real, copy, source
        self.before = contents(copy)

    def changed(self) -> bool:
        now = contents(self.copy)
        return len(now) != len(self.before) or any(a is not b for a, b in zip(now, self.before, strict=True))


def contents(container: Any) -> list:
    if isinstance(container, dict):
        return [part for item in container.items() for part in item]
    return list(container)


class Lazy:
    """An argument that nobody has read yet."""

    __slots__ = ("source", "value")

    def __init__(self, value: Any, source: Source):
        self.value, self.source = value, source


class Number:
    """An int from outside that has only been counted with: its value now, and how it is computed from sources.

    parts: a source, or (operator, part, part) where a part is a Number or an int. What asks for more than a sum, a difference or
    a product gets the value, and its sources are guarded.
    """

    __slots__ = ("depth", "parts", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: int, parts: Any, depth: int = 0):
        self.value, self.parts, self.depth = value, parts, depth

    def __eq__(self, other: object) -> bool:
        raise AssertionError("a number that is not settled")


SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
COUNTS = {"add": "+", "sub": "-", "mul": "*", "iadd": "+", "isub": "-", "imul": "*"}


class Generator:
    """A generator whose body is executed as it is asked for values."""

    kind: type = types.GeneratorType  # what the program sees: map and filter are of Python here

    def __init__(self, frame: Any):
        self.frame, self.started = frame, False


def flat(nest: Any) -> Iterator:
    """What lies in tuples of tuples."""
    if isinstance(nest, tuple):
        for part in nest:
            yield from flat(part)
    else:
        yield nest


def is_partial(value: Any) -> bool:
    return type(value) is functools.partial


def strata_module_name_of(kind: type) -> str:
    """The module of strata that a class is written in; empty for others."""
    return kind.__module__ if kind.__module__ == "strata" or kind.__module__.startswith("strata.") else ""


def strata_module_name(function: Any) -> str:
    """The module of strata that a function is written in; empty for others."""
    name = getattr(function, "__globals__", {}).get("__name__", "") if hasattr(function, "__globals__") else ""
    return name if name == "strata" or name.startswith("strata.") else ""


assert _C is not None
