"""Function: differentiable operators written in Python. The node, its ctx and `apply` are C++ (`_C.FunctionBase`)."""

from __future__ import annotations

import sys
from _thread import _local  # threading.local, without the module's import

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Function", "FunctionCtx", "FunctionMeta", "once_differentiable"]

FunctionCtx = _C.FunctionCtx


class FunctionMeta(type):
    """Gives each Function its class of nodes, named after it: `Exp` makes nodes `ExpBackward`."""

    def __init__(cls, name: str, bases: tuple, attributes: dict) -> None:
        super().__init__(name, bases, attributes)
        cls._ctx_type = _C._make_ctx_type(name + "Backward")
        if cls.__module__ != __name__ and cls.jvp is not Function.jvp:
            cls.apply = classmethod(_apply_with_jvp)
            cls._ctx_type.save_for_forward = _save_for_forward
            cls._ctx_type.saved_tensors = property(_saved_tensors)
        elif cls.__module__ != __name__ and _has_defaults(cls):
            cls.apply = classmethod(_apply_with_defaults)


def _has_defaults(cls: Any) -> bool:
    """Whether a setup_context is to see defaults of forward, which may be any callable."""
    return cls.setup_context is not Function.setup_context and bool(getattr(cls.forward, "__defaults__", None))


def _bound(cls: Any, args: tuple, kwargs: dict) -> tuple:
    """The arguments of forward by position, as the names of its parameters say; those of a class with a setup_context, which sees
    them, with their defaults."""
    import inspect

    alone = cls.setup_context is not Function.setup_context
    found = inspect.signature(cls.forward).bind(*(args if alone else (None, *args)), **kwargs)
    if alone:
        found.apply_defaults()
    if found.kwargs:
        raise TypeError(f"{cls.__name__}.apply: forward's {', '.join(found.kwargs)} can't be given: expected parameters that have a position")
    return found.args if alone else found.args[1:]


def _apply_with_defaults(cls: Any, *args: Any, **kwargs: Any) -> Any:
    return _C.FunctionBase.__dict__["apply"].__get__(None, cls)(*_bound(cls, args, kwargs))


_of_thread = _local()  # following: calls of strata.func.jvp around


class following:
    """Inside of it a Function's jvp gives its tangents, as it does where dual tensors live."""

    def __enter__(self) -> None:
        _of_thread.following = getattr(_of_thread, "following", 0) + 1

    def __exit__(self, *_: object) -> None:
        _of_thread.following -= 1


def _follows() -> bool:
    forward_ad = sys.modules.get("strata.autograd.forward_ad")
    return getattr(_of_thread, "following", 0) > 0 or (forward_ad is not None and bool(forward_ad._pairs))


def _save_for_forward(ctx: Any, *tensors: Any) -> None:
    """Keeps tensors (or None) for a jvp that follows, which finds them in ctx.saved_tensors."""
    if _follows():
        ctx._for_forward = tensors


def _saved_tensors(ctx: Any) -> tuple:
    kept = getattr(ctx, "_for_forward", None)
    return _C.FunctionCtx.saved_tensors.__get__(ctx) if kept is None else kept


def _apply_with_jvp(cls: Any, *args: Any, **kwargs: Any) -> Any:
    """apply of a class that has a jvp: where tangents are followed its results lead back by the transposed jvp, so that the
    derivative of a gradient by its cotangent, which is how tangents are computed, is what jvp gives."""
    plain = _C.FunctionBase.__dict__["apply"].__get__(None, cls)
    if kwargs or _has_defaults(cls):
        args, kwargs = _bound(cls, args, kwargs), {}
    results = plain(*args, **kwargs)
    if not _follows():
        return results
    each = results if isinstance(results, tuple) else (results,)
    node = next((r.grad_fn for r in each if isinstance(r, _C.TensorBase) and r.grad_fn is not None), None)
    if node is None:
        return results
    inputs = [a for a in args if isinstance(a, _C.TensorBase) and a.requires_grad]
    led = _ByJvp.apply(each, *_jvp_of(cls, node, args, inputs, each), *inputs)
    return led if isinstance(results, tuple) else led[0]


def _jvp_of(cls: Any, node: Any, args: tuple, inputs: list, results: tuple) -> tuple[list, tuple]:
    """Tangents of the inputs, zeros that learn, and those that jvp gives the results for them."""
    import strata

    with strata.enable_grad():
        tangents = [strata.zeros_like(x, requires_grad=True) for x in inputs]
        given = iter(tangents)
        try:
            found = cls.jvp(node, *(_tangent(node, a, given) for a in args))
        finally:
            node._for_forward = None  # results may be among them
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(results):
        raise RuntimeError(f"{cls.__name__}.jvp returned {len(found)} tangents, forward {len(results)} results: expected one for each")
    if strange := [type(r).__name__ for r, t in zip(results, found, strict=True) if t is not None and not isinstance(r, _C.TensorBase)]:
        raise RuntimeError(f"{cls.__name__}.jvp returned a tangent of a {strange[0]}: expected None for what is no tensor")
    return tangents, found


def _tangent(node: Any, argument: Any, given: Any) -> Any:
    """The tangent of an argument: of one that has none zeros, unless the ctx asks for None."""
    if not isinstance(argument, _C.TensorBase):
        return None
    if argument.requires_grad:
        return next(given)
    import strata

    return strata.zeros_like(argument) if node.materialize_grads and argument.is_floating_point() else None


class Function(_C.FunctionBase, metaclass=FunctionMeta):
    """Base of custom differentiable operators; call one with `apply`.

    Subclasses define static methods: `forward(ctx, *args)`, or `forward(*args)` and `setup_context(ctx, inputs,
    output)`; and `backward(ctx, *grad_outputs)`, which returns one gradient (or None) per argument of forward. `vjp` is
    another name of backward. On the ctx: `save_for_backward(*tensors)` and `saved_tensors`, `mark_dirty`,
    `mark_non_differentiable`, `set_materialize_grads`, `needs_input_grad`, and any attribute of one's own.
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self).__name__} is not to be instantiated: define static forward and backward, and call "
            f"{type(self).__name__}.apply(...)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs; tensors it works on are not recorded."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        """Notes what backward needs, where forward takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Gradients of forward's arguments from those of its outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name of backward; define one of the two."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Tangents of the results from those of the arguments, inside of strata.autograd.forward_ad and strata.func.jvp: None for
        what is no tensor, zeros for tensors that have none, or None, too, after ctx.set_materialize_grads(False).

        A class without it goes by its backward, which must then be differentiable.
        """
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """A batching rule, which nothing asks for here: under strata.func.vmap forward gets tensors that stand for each element."""
        raise NotImplementedError("autograd.Function.vmap: strata.func.vmap calls forward with tensors that stand for each element, so there is no batch to give")


class InplaceFunction(Function):
    """Function, under a name of its older days."""


class _ByJvp(Function):
    """The results of a Function, with the transpose of its jvp for a backward."""

    @staticmethod
    def forward(ctx: Any, results: tuple, tangents: list, found: tuple, *_: Any) -> Any:
        ctx.tangents, ctx.found = tangents, found
        ctx.set_materialize_grads(False)
        return tuple(r.detach() if isinstance(r, _C.TensorBase) and r.requires_grad else r for r in results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        live = [(t, g) for t, g in zip(ctx.found, grads, strict=True) if g is not None and t is not None and t.requires_grad]
        pulled: Any = [None] * len(ctx.tangents)
        if live:
            pulled = _grad([t for t, _ in live], ctx.tangents, [g for _, g in live])
        return (None, None, None, *pulled)


def _grad(outputs: list, inputs: list, seeds: list) -> tuple:
    from strata.autograd import grad

    return grad(outputs, inputs, seeds, retain_graph=True, create_graph=_C.is_grad_enabled(), allow_unused=True)


def once_differentiable(fn: Callable) -> Callable:
    """Marks a backward whose result cannot be differentiated again; doing so raises RuntimeError."""

    import functools

    @functools.wraps(fn)
    def backward(ctx: Any, *grads: Any) -> Any:
        before = _C.is_grad_enabled()
        _C._set_grad_enabled(False)
        try:
            result = fn(ctx, *grads)
        finally:
            _C._set_grad_enabled(before)
        if not before or not any(isinstance(g, _C.TensorBase) and g.requires_grad for g in grads):
            return result
        values = result if isinstance(result, tuple) else (result,)
        marked = _C._delayed_error(
            "trying to differentiate twice a function that was marked with @once_differentiable", values
        )
        return marked if isinstance(result, tuple) else marked[0]

    return backward
