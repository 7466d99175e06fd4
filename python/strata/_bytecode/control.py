"""cond and while_loop inside of what is captured: blocks of its graph."""

from __future__ import annotations

from strata import _C, _control_flow

from . import values
from .reasons import Break, Control, Fixed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_HINT = "let the functions compute alone: return what they would write"


def _cond(tracer: Any, args: tuple, kwargs: dict, f: Any) -> Any:
    pred, true_fn, false_fn, operands = _taken(("pred", "true_fn", "false_fn", "operands"), args, kwargs, ((),))
    if not values.is_tensor(pred):
        return tracer.call(true_fn if tracer.truth(pred) else false_fn, tuple(tracer.listed(operands)), {})
    operands = tuple(tracer.listed(operands))
    return _recorded(tracer, _control_flow.cond, (pred, true_fn, false_fn, operands), [(true_fn, operands), (false_fn, operands)])


def _while_loop(tracer: Any, args: tuple, kwargs: dict, f: Any) -> Any:
    names = ("cond_fn", "body_fn", "carried_inputs", "additional_inputs")
    cond_fn, body_fn, carried, more = _taken(names, args, kwargs, ((),))
    carried, more = tuple(tracer.listed(carried)), tuple(tracer.listed(more))
    turns = [(cond_fn, (*carried, *more)), (body_fn, (*carried, *more))]
    return _recorded(tracer, _control_flow.while_loop, (cond_fn, body_fn, carried, more), turns)


def _taken(names: tuple[str, ...], args: tuple, kwargs: dict, defaults: tuple) -> list:
    found = dict(zip(names, args, strict=False)) | kwargs
    found = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)) | found
    if set(found) != set(names) or len(args) > len(names):
        raise Break(f"a call with the arguments {', '.join(found)}, where {', '.join(names)} are expected")
    return [found[name] for name in names]


def _recorded(tracer: Any, function: Callable, args: tuple, turns: list[tuple]) -> Any:
    """The operator as it is, whose functions Python runs. Before, these are executed once here, for what they read; what that records
    has no use and leaves the graph again."""
    name = function.__name__
    if tracer.program is not None:
        raise Fixed(f"{name} of tensors")
    if _written(tracer):
        raise Break(f"{name} after something was written that its functions may read", "call it before, or return what is written")
    before = _effects(tracer)
    results = [_dry(tracer, called, given) for called, given in turns]
    if _effects(tracer) != before or _written(tracer):
        raise Break(f"a function of {name} has effects", _HINT)
    if function is _control_flow.cond and _leaves(results[0]) != _leaves(results[1]):
        raise Break("the functions of cond lead to gradients of different tensors", "let both use the same, or call it under no_grad()")
    for value in args:
        for t in _tensors(value):
            tracer.check_operand(t, name)
    tracer.say_where()
    try:
        found = tracer.library.call(function, args, {})
    except Control:
        raise
    except Exception as error:
        raise Break(f"{name} raised {type(error).__name__}: {error}") from None
    tracer.keep.append(found)
    return found


def _dry(tracer: Any, function: Callable, args: tuple) -> Any:
    """What a function gives, executed in a block that is dropped."""
    _C._block_begin()
    try:
        return tracer.call(function, args, {})
    finally:
        _C._block_drop()


def _leaves(results: Any) -> set[int]:
    """The tensors whose gradients a backward of the results would give."""
    from strata.autograd.graph import _leaves_of

    return {id(leaf) for leaf in _leaves_of(t for t in _tensors(results) if t.requires_grad)}


def _tensors(value: Any) -> Any:
    if values.is_tensor(value):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for v in value.values() if isinstance(value, dict) else value:
            yield from _tensors(v)


def _written(tracer: Any) -> bool:
    pending = tracer.attributes or tracer.global_writes or tracer.cell_writes or tracer.grads_written
    return bool(pending) or any(shadow.changed() for shadow in tracer.shadows)


def _effects(tracer: Any) -> tuple:
    return len(tracer.prints), len(tracer.fresh_inputs), tracer.trained, len(tracer.stepped)


def _of_operator(tracer: Any, args: tuple, kwargs: dict, f: Any) -> Any:
    """strata.ops.higher_order.cond and its kin."""
    return tracer.call(args[0]._function, args[1:], kwargs)


SPECIAL: dict[Any, Callable] = {
    _control_flow.cond: _cond,
    _control_flow.while_loop: _while_loop,
    _control_flow.HigherOrderOperator.__call__: _of_operator,
}
