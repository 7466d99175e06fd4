"""strata.export.export"""

from __future__ import annotations

import strata
from strata.utils._pytree import tree_flatten

from ._capture import capture
from ._held import Held
from .exported_program import ExportedProgram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _forward_names(mod: strata.nn.Module, args: tuple, kwargs: dict[str, Any]) -> list[str]:
    """Names of the arguments of a call: of the positional ones, then of the keywords."""
    import inspect

    parameters = list(inspect.signature(mod.forward).parameters.values())
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][: len(args)]
    rest = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), "args")
    names += [f"{rest}_{i}" for i in range(len(args) - len(names))]
    return [*names, *kwargs]


def export(
    mod: strata.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The module's computation on inputs like these, as a program.

    The module's forward runs once over shapes: nothing is computed, written or drawn, and what it calls of the table is recorded. So
    Python's branches are those of this run; one that asks for a tensor's value raises, at the user's line: strata.cond and
    strata.while_loop are graphs' branches and loops. args, kwargs: tensors, numbers, strings and None in nests that
    strata.utils._pytree knows (register_dataclass adds classes); what is no tensor is part of the program.

    ValueError for what is no module or other forms of arguments, RuntimeError where values are asked for, NotImplementedError for
    strict=True.
    """
    if not isinstance(mod, strata.nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `strata.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise ValueError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    if strict:
        raise NotImplementedError("export: strict=True (from bytecode) is not there; leave it out: the module is run over shapes")
    if preserve_module_call_signature:
        raise NotImplementedError("export: preserve_module_call_signature is not there; the program is called as the whole module")
    del prefer_deferred_runtime_asserts_over_guards
    kwargs = dict(kwargs or {})
    names = _forward_names(mod, args, kwargs)
    if dynamic_shapes is not None and tree_flatten(dynamic_shapes)[0]:
        from ._dynamic import capture_sizes

        found = capture_sizes(mod, args, kwargs, dynamic_shapes, names)
    else:
        found = capture(mod, args, kwargs)
    held = Held(
        graph=found.graph, count=sum(isinstance(leaf, strata.Tensor) for leaf in found.leaves), leaves=found.leaves, paths=found.paths,
        results=found.results, in_spec=found.in_spec, out_spec=found.out_spec, parameters=found.parameters, buffers=found.buffers,
        persistent=found.persistent, constants=found.constants, same=found.same, forward_names=names,
        positional=len(args), functional=False, example_inputs=(args, kwargs), defaults=found.defaults, training=mod.training,
        entries=getattr(found, "entries", None), ranges=getattr(found, "ranges", {}),
    )  # fmt: skip
    return ExportedProgram(held)
