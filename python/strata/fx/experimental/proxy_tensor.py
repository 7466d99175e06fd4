"""make_fx: the operators that a function runs on example arguments, as a module of fx."""

from __future__ import annotations

from strata import _C
from strata._graph import Graph
from strata.utils._pytree import tree_flatten

from .._from_graph import _Reader
from ..graph import _PyTreeCodeGen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..graph_module import GraphModule

__all__ = ["get_proxy_mode", "make_fx"]


def get_proxy_mode() -> None:
    """None: what make_fx runs is recorded without a mode that could be asked for."""


class _Ran(Graph):
    """What a function ran, without the gradients of its results: it may have used these up itself."""

    _strict = False  # it ran this once

    def _end(self, tensors: list, recording: Any, capture: Any) -> list:
        self._nodes, captured = _C._recording_seen(recording)
        known = [*tensors, *captured]
        self._results.bind(known)
        self._grads, self._grads_before, _ = self._note_gradients(recording, known)
        self._step = bool(self._grads or self._grads_before)
        self._grad_places, self._tangent_of, self._wanted = [], [], []
        self._count = len(self._results.tensors)
        self._graph = _C._recording_finish(recording, self._results.tensors)
        return captured


class _ArgumentsReader(_Reader):
    """Reads a graph into a function of the captured one's positional arguments, constants too."""

    def placeholders(self, params: list[tuple[int, str, str]]) -> None:
        arguments = self.source._arguments
        names = [*arguments.parameters, *(f"arg{i}" for i in range(len(arguments.parameters), len(arguments.places)))]
        positional, _ = arguments.spec.children_specs
        self.nested = any(not child.is_leaf() for child in positional.children_specs)
        places = iter(arguments.places)
        for name, child in zip(names, positional.children_specs):
            for i in range(child.num_leaves):
                node = self.graph.placeholder(f"{name}_{i + 1}")
                place = next(places)
                if place >= 0:
                    value, _, kind = params[place]
                    self.values.setdefault(f"%{value}", self.note(node, kind))
        if self.nested:
            self.graph.set_codegen(_PyTreeCodeGen(names[: positional.num_children], positional))

    def result(self, made: list, known: list) -> Any:
        given = self.source._results.give(made, known)
        if not self.nested:
            return given
        leaves, self.graph._codegen.out_spec = tree_flatten(given)
        return leaves


def make_fx(
    f: Callable, decomposition_table: dict | None = None, tracing_mode: str = "real", _allow_non_fake_inputs: bool = False, **_: Any
) -> Callable[..., GraphModule]:
    """A function of example arguments that gives f's operators on them as a GraphModule, gradients that f computes among them.

    Operators are the table's, below autograd; branches and sizes are those of the example, and constants among the arguments
    are part of the graph. tracing_mode: "real" or "fake", which are alike: f runs once. NotImplementedError for "symbolic" sizes
    and for a decomposition_table.
    """
    if decomposition_table:
        raise NotImplementedError("make_fx: decomposition_table is not provided; composite operators of the table are decomposed as they are")
    if tracing_mode == "symbolic":
        raise NotImplementedError("make_fx: tracing_mode 'symbolic' is not provided: sizes are those of the example")
    if tracing_mode not in ("real", "fake"):
        raise AssertionError(f"Unexpected tracing type: {tracing_mode}")

    def traced(*args: Any) -> GraphModule:
        reader = _ArgumentsReader(_Ran(f, args, {}))
        return reader.read(reader.result)

    return traced
