"""Derivatives of operators from Python: the kernel for the key Autograd that register_autograd registers."""

from __future__ import annotations

from strata import _C
from strata.autograd.function import Function
from strata.utils._pytree import tree_flatten, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from strata.ops import OpOverload

__all__ = ["autograd_kernel"]


def autograd_kernel(op: OpOverload, backward: Callable, setup_context: Callable | None) -> Callable:
    """A kernel that records a node with this backward. RuntimeError for operators that write arguments."""
    schema = op._schema
    if schema.is_mutable:
        raise RuntimeError(
            f"register_autograd: {op.name()} writes an argument ({schema}); only operators that write none can have a "
            "derivative registered"
        )
    has_keywords = any(a.kwarg_only for a in schema.arguments)
    positional = [a for a in schema.arguments if not a.kwarg_only]

    def full(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """All arguments, since kernels are called without those that equal their default."""
        args = (*args, *(a.default_value for a in positional[len(args) :]))
        return args, {a.name: kwargs.get(a.name, a.default_value) for a in schema.arguments if a.kwarg_only}

    class Generated(Function):
        @staticmethod
        def forward(ctx: Any, *leaves: Any) -> Any:
            *leaves, spec = leaves  # last, so that ctx.needs_input_grad is counted as the operator's arguments are
            args, kwargs = tree_unflatten(leaves, spec)
            output = op.redispatch("Autograd", *args, **kwargs)
            if setup_context is not None:
                if has_keywords:
                    setup_context(ctx, args, kwargs, output)
                else:
                    setup_context(ctx, args, output)
            ctx._forms = [tree_flatten(a)[1] for a in args], tree_flatten(kwargs)[1].num_leaves
            ctx._output_form = tree_flatten(output)[1]
            flat = tree_flatten(output)[0]
            return tuple(flat)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple:
            form = ctx._output_form
            values = tree_unflatten(grads, form)
            # A list is one output, a tuple is several.
            result = backward(ctx, *values) if form.type is tuple else backward(ctx, values)
            result = result if isinstance(result, tuple) else (result,)
            forms, keywords = ctx._forms
            if len(result) != len(forms):
                raise RuntimeError(
                    f"{op.name()}: the registered backward returned {len(result)} gradients; expected {len(forms)}, one "
                    "per positional argument (None for those without)"
                )
            leaves: list = []
            for i, (grad, arg) in enumerate(zip(result, forms, strict=True)):
                given = [None] * arg.num_leaves if grad is None else tree_flatten(grad)[0]
                if len(given) != arg.num_leaves:
                    raise RuntimeError(
                        f"{op.name()}: the registered backward returned {len(given)} gradients for the argument "
                        f"'{positional[i].name}', which has {arg.num_leaves} elements"
                    )
                leaves += given
            return *leaves, *[None] * (keywords + 1)

    Generated.__name__ = Generated.__qualname__ = f"GeneratedBackwardFor_{op.namespace}_{op.__name__.replace('.', '_')}"
    Generated._ctx_type = _C._make_ctx_type(Generated.__name__ + "Backward")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = full(args, kwargs)
        leaves, spec = tree_flatten((args, kwargs))
        if not (_C.is_grad_enabled() and any(isinstance(x, _C.TensorBase) and x.requires_grad for x in leaves)):
            return op.redispatch("Autograd", *args, **kwargs)
        flat = Generated.apply(*leaves, spec)
        returns = schema.returns
        if len(returns) == 1:
            return list(flat) if returns[0].type.endswith("[]") else flat[0]
        return _regroup(flat, returns) if returns else None

    return kernel


def _regroup(flat: tuple, returns: list) -> tuple:
    if any(r.type.endswith("[]") for r in returns):
        raise NotImplementedError("register_autograd: several results of which one is a list are not supported yet")
    return flat
