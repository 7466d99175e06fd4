"""Branches and loops that hang on values: plain Python eagerly, blocks of the graph where operators are recorded."""

from __future__ import annotations

import strata
from strata import _C, Tensor
from strata.utils._pytree import tree_flatten, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["HigherOrderOperator", "cond", "while_loop"]


def _leaves(nest: Any, what: str) -> tuple[list, Any]:
    leaves, spec = tree_flatten(nest)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{what}: expected tensors in tuples, lists and dicts, got {type(leaf).__name__}: {leaf!r:.80}")
    return leaves, spec


def _block(f: Callable, given: Any, what: str) -> tuple[Any, Any, list]:
    """A function as a block of the recording: the block, the form of what it gives, its tensors."""
    _C._block_begin()
    try:
        leaves, spec = _leaves(f(*given), what)
        return _C._block_end(leaves), spec, leaves
    except BaseException:
        _C._block_drop()
        raise


class _Branch(strata.autograd.Function):
    """The recorded `if`, whose derivative is another one."""

    @staticmethod
    def forward(ctx: Any, record: Callable, pred: Tensor, fns: tuple, operands: Any, count: int, *wanted: Tensor) -> tuple:
        ctx.fns, ctx.operands, ctx.count, ctx.wanted = fns, operands, count, wanted
        ctx.save_for_backward(pred)
        return tuple(record())

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        (pred,) = ctx.saved_tensors

        def derivative(f: Callable) -> Callable:
            def gradients() -> list:
                with strata.enable_grad():
                    made, _ = tree_flatten(f(*ctx.operands))
                ends = [(y, g) for y, g in zip(made, grads, strict=True) if y.requires_grad and g is not None]
                found = [None] * len(ctx.wanted)
                if ends:
                    found = strata.autograd.grad([y for y, _ in ends], ctx.wanted, [g for _, g in ends], allow_unused=True)
                return [strata.zeros_like(w) if g is None else g for g, w in zip(found, ctx.wanted, strict=True)]

            return gradients

        found = cond(pred, derivative(ctx.fns[0]), derivative(ctx.fns[1]), ())
        return (None, None, None, None, None, *found)


def _recorded_cond(pred: Tensor, fns: tuple[Callable, Callable], operands: Any, whole: bool, shapes: bool) -> Any:
    blocks, specs, results, wanted = [], [], [], {}
    for f, name in zip(fns, ("true_fn", "false_fn"), strict=True):
        block, spec, made = _block(f, operands, f"cond: the result of {name}")
        blocks.append(block)
        specs.append(spec)
        results.append(made)
        wanted.update({id(t): t for t in _C._block_reads(block) if t.requires_grad})
    if specs[0] != specs[1]:
        raise RuntimeError(f"cond: expected results of one form, got {specs[0]} of true_fn and {specs[1]} of false_fn")
    values: list = []
    if not shapes:  # the graph's example values
        with strata.no_grad():
            chosen = fns[0] if _C._recording_aside(pred.item) else fns[1]
            values = tree_flatten(_C._recording_aside(lambda: chosen(*operands)))[0]

    def record() -> list:
        return _C._block_if(pred, *blocks, values)

    learned = not whole and strata.is_grad_enabled() and any(t.requires_grad for made in results for t in made)
    if learned and wanted:
        given = list(_Branch.apply(record, pred, fns, operands, len(wanted), *wanted.values()))
    else:
        given = record()
    return tree_unflatten(given, specs[0])


def _check_cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any) -> None:
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got one of shape {list(pred.shape)}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError(f"Expect both branches to be callable, got {true_fn} and {false_fn}.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            f"Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got {type(operands).__name__}."
        )
    _leaves(operands, "cond: operands")


def cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()) -> Any:
    """true_fn(*operands) where `pred` holds, else false_fn(*operands).

    pred: a bool, or a tensor of one element. operands: tensors in tuples, lists and dicts. Eagerly this is Python's `if`. Where
    operators are recorded (strata.graph, strata.export, strata.compile) both functions become blocks of the graph, and each
    run takes one of them: they must give tensors in one form, of the same shapes and dtypes, and must write nothing that they
    did not make. Gradients flow through the branch that was taken.

    RuntimeError for other arguments, ValueError where the results differ in shape or dtype.
    """
    _check_cond(pred, true_fn, false_fn, operands)
    if not isinstance(pred, Tensor):
        return (true_fn if pred else false_fn)(*operands)
    recording = _C._recording()
    if recording is None:
        return (true_fn if pred.item() else false_fn)(*operands)
    shapes, whole = recording
    pred = _plain(pred if pred.dtype == strata.bool else pred.ne(0))
    return _recorded_cond(pred, (true_fn, false_fn), operands, whole, shapes)


def _plain(condition: Tensor) -> Tensor:
    """As a graph's condition has to be: without dims, on the CPU."""
    condition = condition if condition.device.type == "cpu" else condition.cpu()
    return condition if condition.dim() == 0 else condition.reshape(())


def _condition(value: Any) -> Any:
    if isinstance(value, bool) or (isinstance(value, Tensor) and value.numel() == 1 and value.dtype == strata.bool):
        return value
    shown = f"{value.dtype}{list(value.shape)}" if isinstance(value, Tensor) else repr(value)
    raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {shown}")


def _turned(body_fn: Callable, carried: tuple) -> tuple:
    made = body_fn(*carried)
    if not isinstance(made, (tuple, list)) or len(made) != len(carried):
        raise RuntimeError(f"while_loop: expected body_fn to give a tuple of {len(carried)}, what it is given, got {made!r:.200}")
    return tuple(made)


def _python_loop(cond_fn: Callable, body_fn: Callable, carried: tuple) -> tuple:
    while _condition(cond_fn(*carried)):
        carried = _turned(body_fn, carried)
    return carried


def _recorded_loop(cond_fn: Callable, body_fn: Callable, inputs: tuple, whole: bool, shapes: bool) -> Any:
    leaves, spec = _leaves(inputs, "while_loop: carried_inputs")

    def going(values: tuple) -> Tensor:
        held = _condition(cond_fn(*values))
        if not isinstance(held, Tensor):
            raise RuntimeError(f"while_loop: cond_fn gave {held}, whatever the tensors are, so that the loop would {'never end' if held else 'not turn'}")
        return _plain(held)

    if not whole and strata.is_grad_enabled() and any(t.requires_grad for t in leaves):
        raise NotImplementedError(
            "while_loop: the gradient of a loop in a graph is not there yet; capture it under strata.no_grad(), or call it eagerly"
        )
    first = going(inputs)
    params = _C._block_begin(leaves)
    try:
        turned = _turned(body_fn, tree_unflatten(params, spec))
        made, form = _leaves(turned, "while_loop: the result of body_fn")
        if form != spec:
            raise RuntimeError(f"while_loop: expected body_fn to give what it is given, {spec}, got {form}")
        for i, (a, b) in enumerate(zip(made, params, strict=True)):
            if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
                raise ValueError(
                    f"while_loop: expected body_fn to give what it is given, {_C._type_text(b)}, got {_C._type_text(a)} as result {i}"
                )
        if not whole and strata.is_grad_enabled() and any(t.requires_grad for t in made):
            raise NotImplementedError(
                "while_loop: the gradient of a loop in a graph is not there yet; capture it under strata.no_grad(), or call it eagerly"
            )
        block = _C._block_end([going(turned), *made])
    except BaseException:
        _C._block_drop()
        raise
    values: list = []
    if not shapes:  # the graph's example values
        with strata.no_grad():
            values = tree_flatten(_C._recording_aside(lambda: _python_loop(cond_fn, body_fn, inputs)))[0]
    return tree_unflatten(_C._block_loop(first, leaves, block, values), spec)


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list, additional_inputs: tuple = ()) -> Any:
    """While cond_fn(*carried) holds, carried = body_fn(*carried); gives what was carried last.

    cond_fn: gives a bool or a tensor of one bool. body_fn: gives a tuple of what it is given; where operators are recorded, of
    the same shapes and dtypes. Eagerly this is Python's `while`, with its gradients; where operators are recorded it is a `loop`
    of the graph. additional_inputs: what both functions get after the carried tensors at each turn.

    RuntimeError for other arguments and results, NotImplementedError for the gradient of a recorded loop.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple or list of tensors, but got {type(carried_inputs).__name__}.")
    carried, more = tuple(carried_inputs), tuple(additional_inputs)
    if more:
        once, turn = cond_fn, body_fn
        return while_loop(lambda *v: once(*v, *more), lambda *v: turn(*v, *more), carried)
    recording = _C._recording()
    if recording is None:
        return _python_loop(cond_fn, body_fn, carried)
    shapes, whole = recording
    return _recorded_loop(cond_fn, body_fn, carried, whole, shapes)


class HigherOrderOperator:
    """An operator that is given functions: `strata.ops.higher_order.cond`."""

    def __init__(self, name: str, function: Callable) -> None:
        self.__name__ = self._name = name
        self.__module__ = "strata.ops.higher_order"
        self.__doc__ = function.__doc__
        self._function = function

    def name(self) -> str:
        return self._name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return self._name

    def __reduce__(self) -> tuple:
        return getattr, (_Namespace, self._name)


class _Namespace:
    """strata.ops.higher_order"""

    cond = HigherOrderOperator("cond", cond)
    while_loop = HigherOrderOperator("while_loop", while_loop)
