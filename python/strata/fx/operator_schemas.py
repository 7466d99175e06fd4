"""Arguments of calls by the names that functions give them, defaults filled in."""

from __future__ import annotations

import inspect
import types
from typing import Any, NamedTuple, Optional

import strata

from ._names import is_from_strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ArgsKwargsPair", "get_signature_for_torch_op", "normalize_function", "normalize_module"]

_NUMBERS = {"int": int, "SymInt": int, "float": (int, float), "bool": bool, "Scalar": (int, float, complex), "str": str}


class ArgsKwargsPair(NamedTuple):
    """Positional arguments, and those by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _signature(schema: Any) -> inspect.Signature:
    """A schema as a signature, in which `self` is called `input`; annotations are the schema's words."""
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter(
            "input" if a.name == "self" else a.name,
            kinds[a.kwarg_only],
            default=a.default_value if a.has_default_value() else inspect.Parameter.empty,
            annotation=a.type,
        )
        for a in schema.arguments
    ]
    return inspect.Signature(parameters)


def get_signature_for_torch_op(op: Callable) -> list[inspect.Signature] | None:
    """The signatures of a function of the table, or of an operator; None for other functions."""
    if isinstance(op, strata.ops.OpOverload):
        return [_signature(op._schema)]
    name = op.__name__
    packet = op if isinstance(op, strata.ops.OpOverloadPacket) else None
    if packet is None and not (is_from_strata(op) and strata._C._op_names(f"aten::{name}")):
        return None
    packet = packet or getattr(strata.ops.aten, name)
    schemas = [found._schema for found in packet._candidates()]
    return [_signature(s) for s in schemas if not any(a.is_out for a in s.arguments)]


def _fits(word: str, kind: Any) -> bool:
    """Whether a type, as arg_types gives it, is one that a schema's word says."""
    word = word.rstrip("?")
    if kind is type(None):
        return True
    if word.endswith("]"):
        return isinstance(kind, type) and issubclass(kind, (list, tuple)) or getattr(kind, "__origin__", None) in (list, tuple)
    wanted = strata.Tensor if word.startswith("Tensor") else _NUMBERS.get(word, object)
    return isinstance(kind, type) and issubclass(kind, wanted)


def _normalized(signature: inspect.Signature, args: tuple, kwargs: dict[str, Any], only_kwargs: bool) -> Optional[ArgsKwargsPair]:
    if any(p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in signature.parameters.values()):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    values = list(bound.arguments.items())
    count = 0 if only_kwargs else len(args)
    return ArgsKwargsPair(tuple(v for _, v in values[:count]), dict(values[count:]))


def normalize_function(
    target: Callable,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> Optional[ArgsKwargsPair]:
    """The arguments of target(*args, **kwargs) with defaults, those behind the positional ones by name; or all by name.

    arg_types, kwarg_types: choose among overloads. None where the function does not say its arguments; RuntimeError where several
    overloads fit.
    """
    kwargs = kwargs or {}
    builtin = isinstance(target, (types.BuiltinFunctionType, strata.ops.OpOverload, strata.ops.OpOverloadPacket))
    if not builtin:
        return _normalized(inspect.signature(inspect.unwrap(target)), args, kwargs, normalize_to_only_use_kwargs)
    fitting = [s for s in get_signature_for_torch_op(target) or () if _binds(s, args, kwargs)]
    if len(fitting) > 1 and (arg_types is not None or kwarg_types is not None):
        types_of = [(s, _binds(s, arg_types or (), kwarg_types or {})) for s in fitting]
        fitting = [s for s, found in types_of if found and all(_fits(s.parameters[k].annotation, v) for k, v in found.arguments.items())][:1]
    if len(fitting) > 1:
        shown = "\n".join(map(str, fitting))
        raise RuntimeError(
            f"Tried to normalize arguments to {strata.typename(target)} but the schema match was ambiguous! Please provide argument types to the "
            f"normalize_arguments() call. Available schemas:\n{shown}"
        )
    return _normalized(fitting[0], args, kwargs, normalize_to_only_use_kwargs) if fitting else None


def _binds(signature: inspect.Signature, args: tuple, kwargs: dict[str, Any]) -> Optional[inspect.BoundArguments]:
    try:
        return signature.bind(*args, **kwargs)
    except TypeError:
        return None


def normalize_module(
    root: strata.nn.Module, target: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, normalize_to_only_use_kwargs: bool = False
) -> Optional[ArgsKwargsPair]:
    """The same for a call of a submodule of root; None for classes that are not strata.nn's. RuntimeError where root has none."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(f"Tried to normalize node with target {target} but root did not have that target!") from error
    if getattr(strata.nn, type(module).__name__, None) is not type(module):
        return None
    return _normalized(inspect.signature(inspect.unwrap(module.forward)), args, kwargs or {}, normalize_to_only_use_kwargs)
