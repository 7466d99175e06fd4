"""The operators of the table: `strata.ops.aten.add.Tensor(x, y)`, their schemas, and why a call ends where it does."""

from __future__ import annotations

from collections import namedtuple

from strata import _C, _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "OpInfo",
    "OpOverload",
    "OpOverloadPacket",
    "coverage",
    "dump",
    "explain_dispatch",
    "get",
    "info",
    "kernel_source",
    "load_library",
    "names",
    "schema",
]

OpOverload = _C.OpOverload


class Text(str):
    """A text that a Python prompt shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class AliasInfo(namedtuple("AliasInfo", ["before_set", "is_write"])):
    """Which letters an argument shares memory under, and whether the operator writes it."""


class Argument:
    """One argument or result of an operator."""

    def __init__(self, parsed: tuple) -> None:
        self.name, self.type, self._has_default, self.default_value, self.kwarg_only, alias, written = parsed
        self.alias_info = AliasInfo({alias}, written) if alias else None

    @property
    def is_out(self) -> bool:
        return self.kwarg_only and self.alias_info is not None and self.alias_info.is_write

    def has_default_value(self) -> bool:
        return self._has_default

    def __repr__(self) -> str:
        return f"{self.type} {self.name}".strip() + (f"={self.default_value}" if self._has_default else "")


class FunctionSchema:
    """A parsed schema: name, overload_name, arguments, returns; its text parses back to it."""

    def __init__(self, text: str) -> None:
        self.namespace, name, self.overload_name, arguments, returns, self._text = _C._parse_schema(text)
        self.name = f"{self.namespace}::{name}"
        self.arguments = [Argument(a) for a in arguments]
        self.returns = [Argument(r) for r in returns]

    @property
    def is_mutable(self) -> bool:
        return any(a.alias_info is not None and a.alias_info.is_write for a in self.arguments)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


class OpOverloadPacket:
    """All overloads of one name; called, it takes the first whose schema the arguments fit."""

    def __init__(self, namespace: str, name: str) -> None:
        self._qualified_op_name = f"{namespace}::{name}"
        self.__name__ = name
        self._namespace = namespace
        self._known: list[str] = []

    def overloads(self) -> list[str]:
        """Names of the overloads, 'default' for the one without a name."""
        return [_overload(full) for full in _C._op_names(self._qualified_op_name)]

    def _candidates(self) -> list[OpOverload]:
        full = _C._op_names(self._qualified_op_name)
        if full != self._known:
            # An overload with an out= argument is the caller's wish only where that argument is named.
            found = [_C._op_get(name) for name in full]
            found.sort(key=lambda op: (op._schema.is_mutable and not self.__name__.endswith("_"), _rank(op)))
            self._known, self._sorted = full, found
        return self._sorted

    def _fitting(self, args: tuple, kwargs: dict) -> Callable:
        """The overload whose schema the arguments fit, or what the class of an argument answers instead."""
        candidates = self._candidates()
        for op in candidates:
            if _C._op_fits(op, args, kwargs):
                return op
        given = [*args, *kwargs.values()]
        given += [v for nest in given if isinstance(nest, (list, tuple)) for v in nest]
        others = tuple(v for v in given if hasattr(type(v), "__torch_function__") and not isinstance(v, _C.TensorBase))
        if others:  # of a class that is no tensor's, as a tracer's stand-ins
            return lambda *args, **kwargs: _C._handle_torch_function(self, others, args, kwargs)
        if len(candidates) == 1:
            return candidates[0]
        shown = "\n".join(f"  {op._schema_text}" for op in candidates)
        kinds = ", ".join([type(a).__name__ for a in args] + [f"{k}={type(v).__name__}" for k, v in kwargs.items()])
        raise TypeError(f"{self._qualified_op_name}: no overload takes ({kinds}); they are\n{shown}")

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._fitting(args, kwargs)(*args, **kwargs)

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        full = self._qualified_op_name + ("" if overload == "default" else f".{overload}")
        if full not in _C._op_names(self._qualified_op_name):
            raise AttributeError(
                f"The underlying op of '{self}' has no overload name '{overload}'; it has {', '.join(self.overloads())}"
            )
        found = self.__dict__[overload] = _C._op_get(full)
        return found

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.overloads()]

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"


class _Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, op: str) -> OpOverloadPacket:
        if op.startswith("__"):
            raise AttributeError(op)
        if not _C._op_names(f"{self.name}::{op}") and not (self.name == "aten" and _lazy.load("strata._aten_names").define(op)):
            raise AttributeError(f"'strata.ops.{self.name}' has no operator '{op}'; strata.ops.names() lists them all")
        found = self.__dict__[op] = OpOverloadPacket(self.name, op)
        return found

    def __dir__(self) -> list[str]:
        start = self.name + "::"
        return sorted({full[len(start) :].split(".")[0] for full in _C._op_names() if full.startswith(start)})

    def __repr__(self) -> str:
        return f"<strata.ops.{self.name}: {len(dir(self))} operators>"


_namespaces: dict[str, _Namespace] = {}


def _packet(namespace: str, name: str) -> OpOverloadPacket:
    return getattr(_namespace(namespace), name)


def _forget(op: OpOverload) -> None:
    """After an operator has been taken out of the table: its name is looked up anew."""
    namespace, _, name = op.name().partition("::")
    if namespace in _namespaces:
        _namespaces[namespace].__dict__.pop(name.partition(".")[0], None)


def _overload(full: str) -> str:
    return full.partition(".")[2] or "default"


def _rank(op: OpOverload) -> int:
    # Tensors before numbers, as the functions of the face do.
    return sum(a.type.startswith("Scalar") and not a.kwarg_only for a in op._schema.arguments)


def _packet_of(op: OpOverload) -> OpOverloadPacket:
    return _packet(op.namespace, op.name().partition("::")[2].partition(".")[0])


def _schema_of(op: OpOverload) -> FunctionSchema:
    return FunctionSchema(op._schema_text)


def _named(op: str | Callable | OpOverload | OpOverloadPacket) -> tuple[list[OpOverload], str]:
    """The operators that a name, a function or method, an operator or a packet stands for."""
    if isinstance(op, OpOverload):
        return [op], op.name()
    if isinstance(op, OpOverloadPacket):
        return op._candidates(), op._qualified_op_name
    if callable(op):
        name = getattr(op, "__name__", "")
        if not _C._op_names(f"aten::{name}"):
            raise TypeError(f"{name or op!r} is no operator of the table: name one of those that it calls, such as 'aten::add'")
        op = name
    if not isinstance(op, str):
        raise TypeError(f"expected an operator, its name or its function, got {type(op).__name__}")
    full = op if "::" in op else f"aten::{op}"
    found = _C._op_names(full)
    if full in found and ("." in full or len(found) == 1):
        return [_C._op_get(full)], full
    if not found:
        return [_C._op_get(full)], full  # raises with near names
    return _packet(*full.split("::", 1))._candidates(), full


def get(name: str) -> OpOverload:
    """The operator of a full name such as 'aten::add.Tensor'. RuntimeError with near names where there is none."""
    return _C._op_get(name)


def names() -> list[str]:
    """Full names of all operators, in the order of their definition."""
    return _C._op_names()


def schema(op: str | OpOverload | OpOverloadPacket) -> Text:
    """The schemas of an operator, or of all overloads of a name ('dot' is 'aten::dot'), one a line."""
    return Text("\n".join(o._schema_text for o in _named(op)[0]))


def dump(op: str | OpOverload | OpOverloadPacket) -> Text:
    """Kernels of an operator, or of all overloads of a name, by dispatch key, with their sources."""
    return Text("\n".join(_C._dispatch_dump(o) for o in _named(op)[0]))


class OpInfo:
    """What the table says of an operator. A field is '' where the table says nothing of the kind; printed, it shows the others.

    name, schema: of the operator. source: where its entry stands. kind: pointwise, rows, space, allocate, plan, header, cpu, view or
    composite. text: what it computes. calls: the
    kernels and operators that have some which a text over tensors calls. by_hand: C++ that the CPU runs beside the text. promotion, dtypes, inputs, numbers, outputs: of
    its kernel. shape, strides: the rule that prepares its results. order: in which contributions meet. reads, size: what is a matter of
    values. acts: what it does beside its results: raises by values, draws, untold where C++ alone says it. inverse: puts a changed view back. gradient: formulas, parts, view, unwritten or none. derivatives: the formulas, by argument.
    autocast: lower, fp32 or promote. reason: why it is C++. twin: the operator that computes the same and writes nothing, or None.
    """

    name: str
    schema: str
    source: str
    kind: str
    text: str
    calls: str
    by_hand: str
    promotion: str
    dtypes: str
    inputs: str
    numbers: str
    outputs: str
    shape: str
    strides: str
    order: str
    reads: str
    size: str
    acts: str
    inverse: str
    functional: str
    gradient: str
    autocast: str
    reason: str
    derivatives: dict[str, str]
    twin: str | None

    def __init__(self, fields: dict[str, Any], text: str) -> None:
        self.__dict__.update(fields)
        self._text = text

    def __repr__(self) -> str:
        return self._text


def info(op: str | Callable | OpOverload | OpOverloadPacket, /) -> OpInfo:
    """What the table says of an operator: its kind, text, operands, rules, order and derivatives.

    op: an operator, or a name such as 'aten::add.Tensor'. RuntimeError with near names for a name that no operator has, ValueError for
    one that several have and none alone, and for operators that were defined outside of the table.
    """
    found, full = _named(op)
    found = [o for o in found if o.name() == full] or found
    if len(found) > 1:
        raise ValueError(f"info: expected one operator, but {full} has the overloads {', '.join(o.name() for o in found)}; name one")
    made = _C._op_info(found[0])
    if made is None:
        raise ValueError(f"info: expected an operator of the table, got {full}, which was defined outside of it; see strata.ops.dump")
    return OpInfo(*made)


def coverage(device: str | _C.device, /) -> Any:
    """How each operator of the table runs on a plugin's device: by printed kernels, as parts, as a view, or on the CPU and back,
    and why. Printed: counts and what falls back; `rows()` has a row (op, runs, why) of every operator."""
    return _lazy.load("strata._coverage").of(device)


def explain_dispatch(op: str | Callable | OpOverload | OpOverloadPacket, /, *args: Any, **kwargs: Any) -> Text:
    """What a call with these arguments would pass, outermost key first, and which kernel serves each; nothing runs.

    op: an operator, a packet, a function such as strata.add, or a name such as 'aten::add.Tensor' or 'add'. TypeError
    where no overload fits.
    """
    found, full = _named(op)
    chosen = found[0] if len(found) == 1 else _packet(*full.split("::", 1))._fitting(args, kwargs)
    return Text(_C._explain_dispatch(chosen, args, kwargs))


def kernel_source(op: str | OpOverload | OpOverloadPacket, /, dtype: _C.dtype = _C.float32, dialect: str = "c99") -> Text:
    """The text of an operator's printed kernel: one function with the whole loop nest and no header but the language's own.

    op: an operator, a name such as 'aten::add.Tensor', or a kernel of the table such as 'softmax_rows'. Of an operator that is a
    text over others: a function for each kernel that it may launch. dtype: that of its operands; where elements are only moved, the
    text is that of their width, and a part that has no kernel for dtype (of indices, say) is in the first that it has. dialect: 'c99'. Sizes and strides of the function are in elements, offsets in bytes; compiled without
    contraction (`gcc -std=c99 -O2 -ffp-contract=off`) it gives eager's bits. ValueError where no kernel is printed.
    """
    name = op if isinstance(op, str) else _named(op)[0][0]._schema_text.split("(")[0]
    return Text(_C._kernel_source(_kernels_of(name), dtype, dialect)[0])


def _kernels_of(name: str) -> tuple[str, ...]:
    """The name, or the kernels that an operator of the table reaches whose text calls others."""
    try:
        found, full = _named(name)
    except (RuntimeError, AttributeError):  # a kernel's name
        return (name,)
    seen: dict[str, None] = {}
    todo, kernels = [o.name() for o in found if o.name() == full] or [o.name() for o in found[:1]], []
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen[at] = None
        said = _C._op_info(_C._op_get(at))[0] if "::" in at else {"kind": "rows"}
        if said["kind"] in ("pointwise", "rows", "space"):
            kernels.append(at)
        todo += reversed(said.get("calls", "").split())
    return tuple(kernels) or (name,)


def load_library(path: str) -> None:
    """Loads a shared library, whose operators (strata/library.h) are there then. OSError where it can't be loaded,
    RuntimeError for what it raises."""
    import ctypes

    ctypes.CDLL(str(path))
    if failed := _C._library_failures():
        raise RuntimeError(f"load_library: {path}: " + "; ".join(failed))


def _namespace(name: str) -> _Namespace:
    if name.startswith("__"):
        raise KeyError(name)
    if name == "higher_order":
        return _lazy.load("strata._control_flow")._Namespace
    if name not in _namespaces:
        _namespaces[name] = _Namespace(name)
    return _namespaces[name]


__getattr__ = _lazy.of(globals(), otherwise=_namespace)[0]


def __dir__() -> list[str]:
    return sorted({*__all__, *(full.split("::")[0] for full in _C._op_names())})
