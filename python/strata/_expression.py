"""Operators made of an expression by strata.library.expression."""

from __future__ import annotations

import strata
from strata import _C, library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from strata.library import Library
    from strata.ops import OpOverload

__all__ = ["define"]


def define(lib: Library, schema: str, text: str, grad: dict[str, str], dtypes: Any, promote: str) -> OpOverload:
    if promote not in ("common", "float"):
        raise ValueError(f"library.expression: promote: expected 'common' or 'float', got '{promote}'")
    floats = (strata.float16, strata.bfloat16, strata.float32, strata.float64)
    options = (floats if dtypes is None else tuple(dtypes), promote == "float")
    made = [_C._dispatch_expression(f"{lib.ns}::{schema}", text, *options)]
    try:
        parts = _derivatives(made, schema.partition("(")[2], grad, options)
    except Exception:
        for op in made:
            _C._dispatch_undefine(op)
        raise
    lib._defined.extend(made)
    if parts:
        _derive(made[0], parts)
    return made[0]


def _tensors(op: OpOverload) -> list[str]:
    return [a.name for a in op._schema.arguments if a.type == "Tensor"]


def _derivatives(made: list[OpOverload], rest: str, grad: dict[str, str], options: tuple) -> dict[str, OpOverload]:
    """The operators of the gradients, by argument; they are put to what was made."""
    op, parts = made[0], {}
    arguments = op._schema.arguments
    if grad and any(a.name == "grad" for a in arguments):
        raise ValueError(f"library.expression: {op.name()} has an argument 'grad', which is the result's gradient in derivatives; rename it")
    for of, formula in grad.items():
        if of not in _tensors(op):
            expected = ", ".join(_tensors(op))
            raise ValueError(f"library.expression: grad: expected an argument of {op.name()} that is a Tensor ({expected}), got '{of}'")
        if any(a.kwarg_only for a in arguments if a.name == of):
            raise ValueError(f"library.expression: grad: {op.name()}: '{of}' is a keyword-only Tensor; put it before the '*'")
        name = op.name().replace(".", "_")
        parts[of] = _C._dispatch_expression(f"{name}_grad_{of}(Tensor grad, {rest}", formula, *options)
        made.append(parts[of])
    return parts


def _derive(op: OpOverload, parts: dict[str, OpOverload]) -> None:
    tensors = _tensors(op)
    positional = [a.name for a in op._schema.arguments if not a.kwarg_only]

    def setup_context(ctx: Any, inputs: tuple, keywords: Any = None, output: Any = None) -> None:
        values = dict(zip(positional, inputs, strict=True)) | (keywords if output is not None else {})
        ctx.numbers = {n: v for n, v in values.items() if n not in tensors}
        ctx.save_for_backward(*[values[n] for n in tensors])

    def backward(ctx: Any, grad: Any) -> tuple:
        values = dict(zip(tensors, ctx.saved_tensors, strict=True)) | ctx.numbers
        return tuple(parts[n](grad, **values) if n in parts and values[n].requires_grad else None for n in positional)

    library.register_autograd(op, backward, setup_context=setup_context)
