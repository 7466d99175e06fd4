"""Backends that count what they are given, for tests of what compile captures."""

from __future__ import annotations

from strata._bytecode import backends

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["CompileCounter", "CompileCounterWithBackend"]


class CompileCounter:
    """A backend that runs graphs as they are. frame_count: graphs that it got. op_count: the calls in them."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Counts from 0 again."""
        self.frame_count = self.op_count = 0

    def _count(self, gm: Any) -> None:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)

    def __call__(self, gm: Any, example_inputs: list) -> Callable:
        self._count(gm)
        return gm.forward


class CompileCounterWithBackend(CompileCounter):
    """A backend that counts and gives the graphs to another, by its name (the default one: it runs their operators). graphs: what it got."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        super().__init__()

    def clear(self) -> None:
        super().clear()
        self.graphs: list = []

    def __call__(self, gm: Any, example_inputs: list) -> Callable:
        self._count(gm)
        self.graphs.append(gm)
        return (backends.find(self.backend) or backends.eager)(gm, example_inputs)
