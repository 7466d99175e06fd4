"""The recorded graph: its nodes and edges, hooks over several gradients, and hooks that pack what backward keeps."""

from __future__ import annotations

import contextlib
import threading
from collections import namedtuple

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from strata import Tensor

__all__ = [
    "GradientEdge",
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

# A node of the graph: name(), next_functions, metadata, register_hook(), register_prehook().
Node = _C.Node

GradientEdge = namedtuple("GradientEdge", ["node", "output_nr", "ownership_token"], defaults=[None])
GradientEdge.__doc__ = "A node and which output of its call: where a gradient arrives. Accepted wherever tensors are."


def _leaves_of(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    """The leaves whose gradients a backward of the tensors would give, these among them."""
    seen, waiting = set(), []
    for tensor in tensors:
        if tensor.grad_fn is not None:
            waiting.append(tensor.grad_fn)
        elif tensor.requires_grad:
            yield tensor
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            yield variable
        waiting += [after for after, _ in node.next_functions if after is not None]


def get_gradient_edge(tensor: Tensor | GradientEdge) -> GradientEdge:
    """The edge to which the gradient of a tensor flows. RuntimeError where it needs none."""
    if isinstance(tensor, GradientEdge):
        return tensor
    node, output_nr = _C._gradient_edge(tensor)
    return GradientEdge(node, output_nr)


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Counts a write to a tensor, or to each of several, that was made behind autograd's back."""
    for t in (tensor,) if isinstance(tensor, _C.TensorBase) else tensor:
        _C._increment_version(t)


class saved_tensors_hooks:
    """Inside the block, what operators keep for backward goes through `pack_hook(tensor)`, and comes back through
    `unpack_hook(packed)`, which must return a tensor of the same values. The innermost block counts.

    RuntimeError where hooks are disabled.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception: object) -> None:
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Inside the block, what operators keep for backward waits in the memory of the CPU. pin_memory is accepted and
    changes nothing where the tensors are on the CPU already."""

    def __init__(self, pin_memory: bool = False, device_type: str | None = None) -> None:
        def pack(tensor: Tensor) -> tuple:
            return tensor.device, tensor if tensor.device.type == "cpu" else tensor.to("cpu")

        def unpack(packed: tuple) -> Tensor:
            device, tensor = packed
            return tensor if tensor.device == device else tensor.to(device)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside the block, entering saved_tensors_hooks raises RuntimeError with this text."""
    before = _C._set_saved_tensors_hooks_error(error_message)
    try:
        yield
    finally:
        _C._set_saved_tensors_hooks_error(before)


class _Handles:
    """Several hook handles as one."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor],
    fn: Callable[[Sequence[Tensor | None]], None] | Callable[[Tensor], None],
    *,
    mode: str = "all",
) -> _Handles:
    """Calls `fn` once per backward run for several tensors together.

    mode "all": fn(grads) when the gradients of all of them that the run reaches are there, None for the others. mode
    "any": fn(grad) for the first. Returns a handle with `remove()`. ValueError for another mode.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        return _Handles([t.register_hook(hook) for hook in [_first_of(fn, lock)] for t in tensors])

    nodes = [get_gradient_edge(t).node for t in tensors]
    runs: dict[int, list] = {}  # per run: how many gradients are due, how many came, the gradients

    def make(index: int) -> Callable:
        def hook(grad: Tensor) -> None:
            run = _C._current_graph_task_id()
            with lock:
                if run not in runs:
                    runs[run] = [sum(map(_C._will_engine_execute_node, nodes)), 0, [None] * len(nodes)]
                    _C._queue_backward_callback(lambda: runs.pop(run, None))
                state = runs[run]
                state[1] += 1
                state[2][index] = grad
                complete = state[1] == state[0]
            if complete:
                fn(state[2])

        return hook

    return _Handles([t.register_hook(make(i)) for i, t in enumerate(tensors)])


def _first_of(fn: Callable, lock: threading.Lock) -> Callable:
    done: set[int] = set()

    def hook(grad: Tensor) -> None:
        run = _C._current_graph_task_id()
        with lock:
            if run in done:
                return
            done.add(run)
        _C._queue_backward_callback(lambda: done.discard(run))
        fn(grad)

    return hook
