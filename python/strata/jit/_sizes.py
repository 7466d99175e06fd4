"""A trace for inputs of other sizes: beside the graphs of the forms that were seen, its file keeps the function as an exported
program whose sizes vary, where it can be exported so. It shares the tensors of the trace.
"""

from __future__ import annotations

from functools import partial

import strata
from strata import _C, nn
from strata.utils._pytree import tree_flatten, tree_map

from ._trace import _Unchanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from strata.export import ExportedProgram

    from ._trace import Trace


class _Function(nn.Module):
    """A module of a function alone."""

    def __init__(self, f: Callable) -> None:
        super().__init__()
        self.__dict__["f"] = f

    def forward(self, *args: Any) -> Any:
        return self.f(*args)


def _real(leaf: Any, batch: int | None) -> Any:
    """A tensor like an example; with another first size, where one is given."""
    if not isinstance(leaf, strata.Tensor):
        return leaf
    sizes = list(leaf.shape) if batch is None else [batch, *leaf.shape[1:]]
    return strata.zeros(sizes, dtype=leaf.dtype).requires_grad_(leaf.requires_grad)


# What may vary beside the batch, by the number of dims: heights and widths behind channels; lengths of sequences; nothing.
_IMAGES: dict[int, tuple] = {3: (2,), 4: (2, 3), 5: (2, 3, 4)}
_SEQUENCES: dict[int, tuple] = {2: (1,), 3: (1,)}


def _varying(leaf: Any, batch: Any, size: int, beside: dict[int, tuple]) -> Any:
    """What varies of a tensor: its first size where that is the batch's, and others."""
    if not isinstance(leaf, strata.Tensor):
        return None
    dims = {d: strata.export.Dim.DYNAMIC for d in beside.get(leaf.dim(), ())}
    return {0: batch, **dims} if leaf.shape[0] == size else dims


def program(trace: Trace) -> ExportedProgram | None:
    """The traced function for inputs of other batches, and where it lets them of other heights and widths or lengths.
    None where it reads values, or cannot be exported so."""
    if trace.program is not None:
        return trace.program
    if trace.f is None or trace.example is None or trace.example[1] or trace.graph.reads:
        return None
    args = trace.example[0]
    tensors = [leaf for leaf in tree_flatten(args)[0] if isinstance(leaf, strata.Tensor)]
    if not tensors or any(t.dim() == 0 for t in tensors):
        return None
    if not _as_traced(trace, args):
        return None
    alone = all(t.shape[0] == 1 for t in tensors)  # a size of 1 does not vary: it is broadcast
    given = tree_map(lambda leaf: _real(leaf, 2 if alone else None), args)
    module = trace.f if isinstance(trace.f, nn.Module) else _Function(trace.f)
    now = [m.training for m, _ in trace.modes]
    try:
        for m, training in trace.modes:
            m.training = training
        for least, beside in ((1, _IMAGES), (1, _SEQUENCES), (1, {}), (2, {})):
            if beside and not any(t.dim() in beside for t in tensors):
                continue
            batch, size = strata.export.Dim("batch", min=least), 2 if alone else tensors[0].shape[0]
            made = _exported(module, given, tree_map(partial(_varying, batch=batch, size=size, beside=beside), given))
            if made is not None and made._held.ranges:
                return made
    finally:
        for (m, _), training in zip(trace.modes, now, strict=True):
            m.training = training
    return None


def _as_traced(trace: Trace, args: tuple) -> bool:
    """Whether the function still is what was traced: numbers, hooks, parameters and submodules may be others by now."""
    try:
        with _Unchanged(trace.f, trace.name):
            again = trace._captured_like(tree_map(lambda leaf: _real(leaf, None), args), {})
    except Exception:
        return False
    ids = [list(map(id, _C._graph_captured(g._graph))) for g in (trace.graph, again)]
    return ids[0] == ids[1] and _without_lines(trace.graph) == _without_lines(again)


def _without_lines(graph: Any) -> list[str]:
    """A graph's text without the lines of the program, which are those of the call."""
    return [line.partition("  # ")[0] for line in _C._graph_text(graph._graph).splitlines()]


def _exported(module: nn.Module, args: tuple, sizes: tuple) -> ExportedProgram | None:
    try:
        return strata.export.export(module, args, dynamic_shapes=sizes)
    except Exception:  # whatever the reason: the graphs of the forms are there
        return None


def described(program: ExportedProgram, number: Callable[[strata.Tensor], int]) -> dict[str, Any]:
    """A program for a file, whose tensors are numbers there. TypeError where a nest or constant has no text."""
    from strata.export._archive import _model

    held = program._held
    tensors = {**held.parameters, **held.buffers, **held.constants}
    return {
        "model": _model(held),
        "text": _C._graph_text(held.graph),
        "tensors": {path: number(t) for path, t in tensors.items() if path not in held.same},
    }


def restored(held: dict[str, Any], tensors: list[strata.Tensor]) -> ExportedProgram:
    from strata.export import ExportedProgram
    from strata.export._archive import _held

    return ExportedProgram(_held(held["model"], held["text"], {}, {path: tensors[i] for path, i in held["tensors"].items()}))
