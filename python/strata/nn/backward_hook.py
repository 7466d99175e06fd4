"""Full backward hooks of a module: an identity function around its inputs and one around its outputs.

The identity's node receives exactly the module's gradients, whatever happens inside, so hooks on that node are hooks
on the module. Imported on the first call of a module that has such hooks.
"""

from __future__ import annotations

import warnings

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .modules.module import Module


class BackwardHookFunction(strata.autograd.Function):
    """Identity on any number of tensors."""

    @staticmethod
    def forward(ctx: Any, *tensors: strata.Tensor) -> tuple[strata.Tensor, ...]:
        ctx.mark_non_differentiable(*[tensor for tensor in tensors if not tensor.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: strata.Tensor) -> tuple[strata.Tensor, ...]:
        return grads


def _spread(indices: list[int] | None, values: tuple, size: int) -> tuple:
    """`values` at `indices` of a tuple of `size`, None elsewhere."""
    spread: list = [None] * size
    for index, value in zip(indices or (), values, strict=True):
        spread[index] = value
    return tuple(spread)


class BackwardHook:
    """The hooks of one call. Use `setup_input_hook(args)` before forward and `setup_output_hook(result)` after."""

    def __init__(self, module: Module, hooks: list[Callable], pre_hooks: list[Callable]) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: tuple | None = None
        self.input_indices: list[int] | None = None
        self.output_indices: list[int] | None = None
        self.input_count = -1
        self.output_count = -1

    def _through_identity(self, attach: Callable, values: tuple) -> tuple[tuple, list[int] | None]:
        """`values` with their tensors passed through the identity, and where they stand; unchanged where no grad."""
        indices = [i for i, value in enumerate(values) if isinstance(value, strata.Tensor)]
        if not (strata.is_grad_enabled() and any(values[i].requires_grad for i in indices)):
            return values, None
        tensors = BackwardHookFunction.apply(*[values[i] for i in indices])
        node = next(tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None)
        attach(node)
        replaced = list(values)
        for index, tensor in zip(indices, tensors, strict=True):
            replaced[index] = tensor
        # A named tuple is rebuilt from its fields, a plain one from the list.
        return (tuple(replaced) if type(values) is tuple else type(values)(*replaced)), indices

    def setup_input_hook(self, args: tuple) -> tuple:
        result, self.input_indices = self._through_identity(lambda node: node.register_hook(self._after_backward), args)
        self.input_count = len(args)
        return result

    def setup_output_hook(self, result: Any) -> Any:
        is_tuple = isinstance(result, tuple)
        values = result if is_tuple else (result,)
        self.output_count = len(values)
        values, self.output_indices = self._through_identity(
            lambda node: node.register_hook(self._before_backward), values
        )
        return values if is_tuple else values[0]

    def _before_backward(self, _: tuple, grad_outputs: tuple) -> tuple | None:
        grads = _spread(self.output_indices, grad_outputs, self.output_count)
        for hook in self.pre_hooks:
            replaced = hook(self.module, grads)
            if replaced is None:
                continue
            replaced = replaced if isinstance(replaced, tuple) else (replaced,)
            if len(replaced) != len(grads):
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(replaced)}, but expected {len(grads)}"
                )
            grads = replaced
        self.grad_outputs = grads
        if self.input_indices is None:
            self._without_input_grads(grads)
        return tuple(grads[i] for i in self.output_indices or ())

    def _without_input_grads(self, grads: tuple) -> None:
        """No input needs a gradient, so the hooks run now, with None for each of them."""
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
            "require gradients. Give the module an input that requires grad if its gradient is what you want to see.",
            stacklevel=5,
        )
        for hook in self.hooks:
            result = hook(self.module, (None,) * self.input_count, grads)
            if result is not None and not (isinstance(result, tuple) and all(part is None for part in result)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or "
                    "None for all gradients."
                )
        self.grad_outputs = None

    def _after_backward(self, grad_inputs: tuple, _: tuple) -> tuple | None:
        if self.grad_outputs is None:  # the backward pass did not go through this module's outputs
            return None
        grads = _spread(self.input_indices, grad_inputs, self.input_count)
        for hook in self.hooks:
            replaced = hook(self.module, grads, self.grad_outputs)
            if replaced is None:
                continue
            replaced = replaced if isinstance(replaced, tuple) else (replaced,)
            if len(replaced) != len(grads):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(replaced)}, but expected {len(grads)}"
                )
            grads = replaced
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_indices or ())
