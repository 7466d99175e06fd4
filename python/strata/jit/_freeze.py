"""Traces whose parameters are constants."""

from __future__ import annotations

import io

import strata
from strata import nn

from ._files import load, save
from ._module import RecursiveScriptModule, ScriptModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["freeze", "optimize_for_inference"]


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> RecursiveScriptModule:
    """A traced module in evaluation mode with its parameters and buffers as they are now: later changes do not reach it.

    preserved_attrs: methods to keep besides forward. Its kernels have eager's bits, so optimize_numerics changes nothing.

    RuntimeError for what is no trace, and in training mode.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use strata.jit.trace to trace your 'nn.Module'; strata.jit.script is not provided."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
        )
    file = io.BytesIO()
    save(mod, file)
    file.seek(0)
    made = load(file)
    state = {name: t.requires_grad_(False) for name, t in [*made.named_parameters(), *made.named_buffers()]}
    for name, trace in list(made._traces.items()):
        if name != "forward" and name not in (preserved_attrs or ()):
            del made._traces[name]
            object.__delattr__(made, name)
            continue
        trace.f = _with_state(mod._traces[name].f, state)
    made._modules, made._parameters, made._buffers = {}, {}, {}
    return made


def _with_state(function: Any, state: dict[str, strata.Tensor]) -> Any:
    """A module's call with other parameters and buffers, for inputs of forms that were not traced; None where there is no program."""
    if not isinstance(function, nn.Module):
        return None

    def call(*args: Any, **kwargs: Any) -> Any:
        return strata.func.functional_call(function, state, args, kwargs)

    return call


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> RecursiveScriptModule:
    """The module frozen, if it is not yet. Kernels of a trace are compiled and fused as they are."""
    return mod if isinstance(mod, RecursiveScriptModule) and not list(mod.parameters()) else freeze(mod, other_methods)
