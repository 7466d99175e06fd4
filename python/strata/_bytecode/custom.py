"""autograd.Function inside of what is captured: its forward and backward run as they are, where they only compute."""

from __future__ import annotations

import types

import strata
from strata import _C

from . import values
from .decode import decode
from .reasons import Break
from .sizes import settled
from .sources import const

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_EFFECTS = frozenset(
    "STORE_GLOBAL DELETE_GLOBAL STORE_DEREF DELETE_SUBSCR DELETE_ATTR IMPORT_NAME MAKE_FUNCTION YIELD_VALUE "
    "LOAD_CLOSURE BEFORE_WITH".split()
)
_HINT = "let forward and backward use their arguments, ctx, constants and operators alone"


def is_apply(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    return getattr(function, "__name__", "") == "apply" and isinstance(owner, type) and issubclass(owner, _C.FunctionBase)


def apply(tracer: Any, function: Any, args: tuple, kwargs: dict) -> Any:
    """Function.apply: recorded, with its own gradient, after a look at what its methods read and write."""
    kind = function.__self__
    if tracer.plan.options.backend is not None:
        # The nodes of a backend's graph have the gradients of their operators.
        raise Break(f"{kind.__name__}.apply, whose backward a graph for a backend of the program's own cannot hold")
    plain = all(values.is_tensor(v) or values.is_constant(v) for v in values.flat((args, tuple(kwargs.values()))))
    for name in ("forward", "backward", "setup_context"):
        method = tracer.class_attribute(kind, name) if hasattr(kind, name) else None
        if isinstance(method, types.FunctionType) and not values.strata_module_name(method):
            check(tracer, kind, method, plain)
    for name, member in kind.__dict__.items():
        if name in ("forward", "backward", "setup_context") or name.startswith("_"):
            continue
        if not isinstance(member, staticmethod) or not isinstance(member.__func__, types.FunctionType):
            raise Break(f"{kind.__name__}.apply, whose class has {name}", _HINT)
        tracer.class_attribute(kind, name)
        check(tracer, kind, member.__func__, plain)
    return tracer.call_operator(function, args, kwargs)


def check(tracer: Any, kind: type, method: types.FunctionType, plain: bool, within: tuple = ()) -> None:
    """Break where a method, or a function that it calls, reads what cannot be guarded or may have effects. plain: it is given tensors
    and constants alone, so that items are set of these and of what it makes, unless it names its class."""
    code = method.__code__
    what = f"{kind.__name__}.{method.__name__}" if not within else f"{kind.__name__}'s {method.__name__}"
    tracer.guards.add("is", const(method).attr("__code__"), code)
    if method.__closure__ or method.__defaults__ or method.__kwdefaults__:
        raise Break(f"{what}, which has a closure or defaults", _HINT)
    before, instructions = None, decode(code).instructions
    sets = any(i.name == "STORE_SUBSCR" for i in instructions)
    for i in instructions:
        if i.name in _EFFECTS or (i.name == "STORE_SUBSCR" and not plain) or (i.name == "STORE_ATTR" and not (not within and before.name == "LOAD_FAST" and before.arg == 0)):
            raise Break(f"{what}, which may have effects", _HINT)
        if i.name == "LOAD_GLOBAL":
            name = code.co_names[i.arg >> 1]
            own = name in method.__globals__
            value = method.__globals__[name] if own else vars(__import__("builtins")).get(name)
            harmless = value in (len, range, min, max, abs, int, float, bool, tuple, list, isinstance, super, zip, enumerate)
            library = isinstance(value, types.ModuleType) and (value is strata or value.__name__.split(".")[0] in ("strata", "math"))
            helper = own and isinstance(value, types.FunctionType) and not values.strata_module_name(value)
            if not (values.is_constant(value) or library or (harmless and not own) or helper or (own and value is kind and not sets)):
                raise Break(f"{what}, which reads {name}", _HINT)
            if helper and value not in within:
                check(tracer, kind, value, plain, (*within, method, value))
            if own:
                settled(tracer.load(value, const(method.__globals__).item(name)))
        before = i
