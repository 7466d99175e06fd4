"""ModuleTracker: in which modules a program is, forward and backward."""

from __future__ import annotations

import weakref

import strata
from strata import _C
from strata.autograd.graph import register_multi_grad_hook
from strata.nn.hooks import register_module_forward_hook, register_module_forward_pre_hook
from strata.utils._pytree import tree_flatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """In its block, `parents` holds the names of the modules whose forward, or whose part of a backward, runs, and "Global".

    A name is that of the outermost module's class, then the names below it: "Net.layers.0". A module's part of a backward begins when
    the gradients of what it gave are there, and ends when those of its arguments are, or the backward does.
    """

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self._seen: weakref.WeakSet = weakref.WeakSet()  # modules whose children have names

    @property
    def is_bw(self) -> bool:
        """Whether a backward runs on this thread."""
        return _C._current_graph_task_id() != -1

    def __enter__(self) -> Self:
        self._gradients: list[Any] = []
        self._handles = [register_module_forward_pre_hook(self._begin), register_module_forward_hook(self._end, always_call=True)]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in (*self._handles, *self._gradients):
            handle.remove()

    def _name(self, module: Any) -> str:
        name = self._names.setdefault(module, type(module).__name__)
        if module not in self._seen:
            self._seen.add(module)
            for below, child in module.named_children():
                self._names[child] = f"{name}.{below}"
        return name

    def _begin(self, module: Any, args: tuple) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._when_there(args, lambda: self.parents.discard(name))

    def _end(self, module: Any, args: tuple, output: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        self._when_there(output, lambda: self._begin_backward(name))

    def _begin_backward(self, name: str) -> None:
        self.parents.add(name)
        _C._queue_backward_callback(lambda: self.parents.discard(name))

    def _when_there(self, values: Any, call: Callable[[], None]) -> None:
        """Calls when the gradients of all tensors among the values are there."""
        tensors = [t for t in tree_flatten(values)[0] if isinstance(t, strata.Tensor) and t.requires_grad]
        if tensors and strata.is_grad_enabled():
            self._gradients.append(register_multi_grad_hook(tensors, lambda grads: call()))
