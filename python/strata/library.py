"""Operators and kernels from Python: new operators, kernels of existing ones for a dispatch key, whole-key fallbacks.

    with strata.library.override("aten::add.Tensor", my_add, "CPU"):
        ...

Dispatch keys by name: a device type ("CPU") for its kernels, "CompositeImplicitAutograd" for kernels made of recorded
operators, "CompositeExplicitAutograd" for kernels of every device below autograd, "Autograd", "Autocast", "Meta",
"User0" to "User3", and others that an unknown name's error lists.
"""

from __future__ import annotations

import contextlib
import inspect
import weakref

from strata import _C, _device_words, _lazy
from strata._infer_schema import infer_schema
from strata.ops import FunctionSchema, OpOverload, _forget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from strata._custom_op import CustomOpDef

__all__ = [
    "Library",
    "active_keys",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "impl",
    "inactive_keys",
    "infer_schema",
    "override",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_fallback",
    "register_kernel",
]


def fallthrough_kernel(*args: Any, **kwargs: Any) -> None:
    """Registered as a kernel: the key is passed as if it were not there."""
    raise NotImplementedError("fallthrough_kernel() is a mark for Library.impl and is never called.")


def _check_fits(fn: Callable, schema: FunctionSchema, full: str) -> None:
    """The function must take the arguments that have no default; the others come only where they differ from it."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return  # a function of C that does not tell
    needed = [a for a in schema.arguments if not a.has_default_value()]
    positional = [None for a in needed if not a.kwarg_only]
    named = {a.name: None for a in needed if a.kwarg_only}
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        raise TypeError(
            f"library: the kernel {getattr(fn, '__name__', fn)}{signature} does not fit {full}: {error}; the operator's "
            f"schema is {schema}"
        ) from None


def _qualified(ns: str, name: str | OpOverload) -> str:
    if isinstance(name, OpOverload):
        name = name.name()
    if "::" not in name:
        return f"{ns}::{name}"
    if name.split("::")[0] != ns:
        raise ValueError(f"Library of the namespace {ns}: got {name}, which is of another; use a Library of that one")
    return name


def _undo(tokens: list, defined: list, keys: Iterable[str] = ()) -> None:
    for key in keys:
        _C._dispatch_fallback(key, None)
    for token in reversed(tokens):
        _C._dispatch_restore(token)
    for op in defined:
        _C._dispatch_undefine(op)
        _forget(op)
    tokens.clear()
    defined.clear()


class Library:
    """Definitions and kernels of one namespace, which last as long as this object.

    kind: "DEF" or "FRAGMENT" to define operators and give kernels, "IMPL" to give kernels only. dispatch_key: the key
    of kernels that name none. ValueError for another kind.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}; expected 'DEF', 'FRAGMENT' or 'IMPL'")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._tokens: list = []
        self._defined: list = []
        self._fallbacks: list[str] = []  # their keys
        self._end = weakref.finalize(self, _undo, self._tokens, self._defined, self._fallbacks)
        self._end.atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Defines `name(Tensor x, *, float y=1.0) -> Tensor`; written arguments are marked `Tensor(a!) x`.

        Returns the name. ValueError with the column where the schema does not parse; RuntimeError where it exists.
        """
        if self.kind == "IMPL":
            raise ValueError("Library: define needs the kind 'DEF' or 'FRAGMENT', this one is of kind 'IMPL'")
        op = _C._dispatch_define(f"{self.ns}::{schema}")
        self._defined.append(op)
        return op.name().split("::", 1)[1]

    def expression(self, schema: str, text: str, *, grad: dict[str, str] | None = None, dtypes: Any = None, promote: str = "common") -> OpOverload:
        """Defines an operator by an expression of its arguments, as strata.library.expression does, for as long as this lasts."""
        from strata._expression import define

        if self.kind == "IMPL":
            raise ValueError("Library: expression needs the kind 'DEF' or 'FRAGMENT', this one is of kind 'IMPL'")
        return define(self, schema, text, grad or {}, dtypes, promote)

    def impl(
        self,
        op_name: str | OpOverload,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Makes `fn` the kernel of an operator for a key. A kernel that is there already is replaced with a warning that
        names both. Arguments that equal their default are not passed.

        TypeError where the function cannot take the operator's arguments; RuntimeError for an unknown operator.
        """
        if with_keyset:
            raise NotImplementedError("Library.impl: with_keyset=True: use OpOverload.redispatch(key, ...) in the kernel")
        key = dispatch_key or self.dispatch_key
        if not key:
            raise ValueError("Library.impl: expected a dispatch key, here or in the Library")
        if key.lower() in _device_words.device_names():
            _C.device(key.lower())  # which may not be here, or not yet: its name is known from now on
        op = _C._op_get(_qualified(self.ns, op_name))
        if fn is fallthrough_kernel:
            self._tokens.append(_C._dispatch_fallthrough(op, key))
            return
        _check_fits(fn, op._schema, op.name())
        self._tokens.append(_C._dispatch_impl(op, key, fn))

    def fallback(self, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Makes `fn(op, *args, **kwargs)` the kernel of every operator that has none for the key (namespace "_").

        Of a device's key ("CPU", or the name of a plugin's device): of every operator that is not composed of others and
        has no kernel for that device. It comes before what the plugin does for all operators, which `op(*args, **kwargs)`
        inside of it goes to. `fallthrough_kernel` takes it back.
        """
        if self.ns != "_":
            raise RuntimeError(f"Fallback can only be registered using library fragment on the global namespace \"_\" but it is {self.ns}")
        if with_keyset:
            raise NotImplementedError("Library.fallback: with_keyset=True: use OpOverload.redispatch(key, ...)")
        key = dispatch_key or self.dispatch_key
        if not key:
            raise ValueError("Library.fallback: expected a dispatch key, here or in the Library")
        if key.lower() in _device_words.device_names():
            _C.device(key.lower())  # as in impl
        _C._dispatch_fallback(key, None if fn is fallthrough_kernel else fn)
        self._fallbacks.append(key)

    def _register_fake(self, op_name: str | OpOverload, fn: Callable, _stacklevel: int = 1) -> None:
        self.impl(op_name, fn, "Meta")

    def _destroy(self) -> None:
        """Takes all of it back at once."""
        self._end()


# Registrations without a Library of their own last as long as the process.
_libraries: dict[str, Library] = {}


def _library(ns: str, lib: Library | None) -> Library:
    return lib if lib is not None else _libraries.setdefault(ns, Library(ns, "FRAGMENT"))


def _name_of(op: str | OpOverload | CustomOpDef) -> str:
    name = op if isinstance(op, str) else op.name() if isinstance(op, OpOverload) else op._qualname
    if "::" not in name:
        raise ValueError(f"library: expected a name such as 'mylib::op', got '{name}'")
    return name


def define(qualname: str, schema: Any = None, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """`define("mylib::op", "(Tensor x) -> Tensor")` defines an operator; see Library.define."""
    ns, name = _name_of(qualname).split("::", 1)
    if schema is None:

        def decorate(fn: Callable) -> Callable:
            define(qualname, infer_schema(fn, mutates_args="unknown"), lib=lib)
            return fn

        return decorate
    if not isinstance(schema, str):
        raise TypeError(f"library.define: schema: expected str, got {type(schema).__name__}")
    _library(ns, lib).define(name + schema)
    return None


# What `types` of impl may say beside keys.
_TYPES = {"default": "CompositeExplicitAutograd"}


def impl(qualname: str, types: str | Sequence[str], func: Callable | None = None, *, lib: Library | None = None) -> Any:
    """Registers a kernel: types is a device type or several ("cpu"), "default" for all devices, or a dispatch key.

    Without `func` it is a decorator.
    """
    name = _name_of(qualname)

    def register(fn: Callable) -> Callable:
        for kind in (types,) if isinstance(types, str) else types:
            _library(name.split("::")[0], lib).impl(name, fn, _TYPES.get(kind, kind))
        return fn

    return register if func is None else register(func) and None


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Library | None = None) -> Any:
    """Registers a kernel for device types; None means all of them. Without `func` it is a decorator."""
    return impl(_name_of(op), "default" if device_types is None else device_types, func, lib=lib)


def register_fake(
    op: Any, func: Callable | None = None, /, *, lib: Library | None = None, _stacklevel: int = 1, allow_override: bool = False
) -> Any:
    """Registers what the operator does with tensors that have a shape and no data. Without `func` it is a decorator."""
    return impl(_name_of(op), "Meta", func, lib=lib)


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Library | None = None
) -> None:
    """Gives an operator a derivative: `backward(ctx, *grads)` returns a gradient or None per argument.

    setup_context(ctx, inputs, output) notes what backward needs; where the schema has keyword-only arguments it is
    called as setup_context(ctx, inputs, keyword_only_inputs, output). RuntimeError for operators that write arguments.
    """
    from strata._custom_autograd import autograd_kernel

    name = _name_of(op)
    _library(name.split("::")[0], lib).impl(name, autograd_kernel(_C._op_get(name), backward, setup_context), "Autograd")


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Casts floating-point arguments to `cast_inputs` where autocast is on for the device type."""
    import strata
    from strata.utils._pytree import tree_map

    name = _name_of(op)
    overload = _C._op_get(name)

    def cast(value: Any) -> Any:
        plain = isinstance(value, strata.Tensor) and value.is_floating_point() and value.dtype != strata.float64
        return value.to(cast_inputs) if plain and value.device.type == device_type else value

    def kernel(*args: Any, **kwargs: Any) -> Any:
        if _C.is_autocast_enabled(device_type):
            args, kwargs = tree_map(cast, (args, kwargs))
        return overload(*args, **kwargs)

    _library(name.split("::")[0], lib).impl(name, kernel, "Autocast")


class _Fallback:
    """A registered fallback: `remove()` takes it back, as does leaving a `with` block."""

    def __init__(self, key: str, tokens: list) -> None:
        self.key, self._tokens = key, tokens

    def remove(self) -> None:
        _C._dispatch_fallback(self.key, None)
        _undo(self._tokens, [])

    def __enter__(self) -> _Fallback:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register_fallback(key: str, fn: Callable | None = None, fallthrough: Iterable[str | OpOverload] = ()) -> _Fallback:
    """Serves a whole key: operators in `fallthrough` pass it, all others that have no kernel for it get
    `fn(op, *args, **kwargs)`. Without fn they raise NotImplementedError, which names the operator and the key.

    Inside of fn the key is off, so `op(*args, **kwargs)` goes on. The key is on inside `active_keys(key)`. Returns an
    object whose `remove()` takes the fallback back.
    """

    def refuse(op: OpOverload, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"{op.name()}: no kernel for the key {key}, whose fallback refuses operators that are not listed; register one "
            f"with strata.library.impl, or list it in fallthrough"
        )

    tokens = [_C._dispatch_fallthrough(_C._op_get(o) if isinstance(o, str) else o, key) for o in fallthrough]
    _C._dispatch_fallback(key, fn or refuse)
    return _Fallback(key, tokens)


class _Keys:
    def __init__(self, *keys: str) -> None:
        self.bits = 0
        for key in keys:
            self.bits |= _C._dispatch_key_bit(key)

    def __exit__(self, *exception: object) -> None:
        _C._dispatch_keys_on_thread(*self.before)


class active_keys(_Keys):
    """Inside the block every call on this thread passes these dispatch keys."""

    def __enter__(self) -> None:
        include, exclude = _C._dispatch_thread_keys()
        self.before = _C._dispatch_keys_on_thread(include | self.bits, exclude & ~self.bits)


class inactive_keys(_Keys):
    """Inside the block no call on this thread passes these dispatch keys."""

    def __enter__(self) -> None:
        include, exclude = _C._dispatch_thread_keys()
        self.before = _C._dispatch_keys_on_thread(include, exclude | self.bits)


@contextlib.contextmanager
def override(op: str | OpOverload, fn: Callable, key: str = "CPU") -> Iterator[None]:
    """Inside the block `fn` is the kernel of an operator for a key, on all threads; blocks nest.

    op: 'aten::add.Tensor', or 'aten::add' for all overloads that write nothing. A warning names the kernel that was
    there and the new one. Calls to the operator from inside `fn` go to the kernel that was there.
    TypeError where fn cannot take the operator's arguments; RuntimeError for an unknown operator.
    """
    from strata.ops import _named

    found, _ = _named(op)
    chosen = [o for o in found if not o._schema.is_mutable] or found if len(found) > 1 else found
    for o in chosen:
        _check_fits(fn, o._schema, o.name())
    tokens: list = []
    try:
        for o in chosen:
            tokens.append(_C._dispatch_impl(o, key, fn, True))
        yield
    finally:
        _undo(tokens, [])


def expression(
    schema: str, text: str, /, *, grad: dict[str, str] | None = None, dtypes: Any = None, promote: str = "common"
) -> OpOverload:
    """Defines an operator that computes each element by an expression, as an entry of the operator table does: it broadcasts,
    is compiled when it is first called, becomes a part of fused kernels, and runs on every device, with the same bits.

    schema: "mylib::swish(Tensor self, float beta=1.0) -> Tensor", of tensors and numbers. text: of their names, in the
    table's language (docs/add-an-operator.md): "self * sigmoid(beta * self)"; several lines are `name = expression`, the
    last one `result = ...`. grad: by argument the expression of its gradient, in which `grad` is the result's. dtypes: of the
    computation, the floating-point ones by default. promote: "common", or "float" where integers become the default dtype.

    ValueError where schema, text or a derivative make no sense, RuntimeError where the operator exists.
    """
    return _library(_name_of(schema.split("(")[0]).split("::")[0], None).expression(
        schema.split("::", 1)[1], text, grad=grad, dtypes=dtypes, promote=promote
    )


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Decorator that makes a function an operator `namespace::name`, opaque to autograd until register_autograd.

    mutates_args: names of arguments that it writes, or "unknown" for all tensors. device_types: where it works; None
    for everywhere. schema: "(Tensor x) -> Tensor"; inferred from annotations otherwise. Returns a CustomOpDef.
    """
    from strata._custom_op import make

    def decorate(function: Callable) -> CustomOpDef:
        return make(name, function, mutates_args, device_types, schema)

    return decorate if fn is None else decorate(fn)


# Seldom wanted, so loaded when named.
__getattr__, __dir__ = _lazy.of(globals(), {"._custom_op": "CustomOpDef", "._opcheck": "opcheck"})
