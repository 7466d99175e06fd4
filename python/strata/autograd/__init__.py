"""Automatic differentiation: backward and grad over the recorded graph, custom functions, hooks, and their modes."""

from __future__ import annotations

import sys
from _thread import _local  # threading.local, without the module's import

import strata
from strata import _C, _lazy

from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

    from strata import Tensor

    from .anomaly_mode import detect_anomaly, set_detect_anomaly
    from .function import Function
    from .graph import GradientEdge

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]

_warned_of_cycle = False
_profiler_enabled = _C._profiler_enabled


def _is_edge(value: Any) -> bool:
    """Whether it is a GradientEdge, which is a tuple itself."""
    return isinstance(value, tuple) and len(value) > 1 and isinstance(value[0], _C.Node)


def _tuple(value: Any) -> tuple:
    return (value,) if isinstance(value, _C.TensorBase) or _is_edge(value) else tuple(value)


def _ones_for(output: Tensor | GradientEdge, index: int) -> Tensor | None:
    """The gradient of an output that was given none."""
    if _is_edge(output):
        shape, dtype, device = output.node._input_metadata[output.output_nr]
        if shape.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return strata.ones(shape, dtype=dtype, device=device)
    if not output.requires_grad:
        raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
    if output.numel() != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if not output.dtype.is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {output.dtype}")
    return strata.ones_like(output.detach(), memory_format=strata.preserve_format)


def _make_grads(outputs: tuple, grads: Sequence[Tensor | None]) -> tuple:
    made = []
    for i, (output, grad) in enumerate(zip(outputs, grads, strict=True)):
        if grad is None:
            made.append(_ones_for(output, i))
            continue
        if not isinstance(grad, strata.Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
        if _is_edge(output):
            shape, dtype, _ = output.node._input_metadata[output.output_nr]
        else:
            shape, dtype = output.shape, output.dtype
        if grad.shape != shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {grad.shape} and output[{i}] has a shape of {shape}."
            )
        if grad.dtype.is_complex != dtype.is_complex:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                f"dtype: grad_output[{i}] has a dtype of {grad.dtype} and output[{i}] has a dtype of {dtype}."
            )
        kind = type(grad)
        sparse = kind is not strata.Tensor and True in (getattr(kind, "is_sparse", False), getattr(kind, "is_sparse_csr", False))
        made.append(grad.to_dense() if sparse else grad)
    return tuple(made)


def _grads_as_tuple(grads: Any, count: int) -> Sequence[Tensor | None]:
    if grads is None:
        return (None,) * count
    given = (grads,) if isinstance(grads, strata.Tensor) else tuple(grads)
    if len(given) != count:
        raise RuntimeError(f"got {count} tensors and {len(given)} gradients")
    return given


def backward(
    tensors: Tensor | Sequence[Tensor | GradientEdge] | GradientEdge,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor | Sequence[Tensor] | GradientEdge | None = None,
) -> None:
    """Adds the gradients of `tensors` into `.grad` of the leaves they came from.

    tensors: tensors or GradientEdges that backward begins from. grad_tensors: one gradient of the same shape each, or
    None for a single real element. retain_graph: keep what backward would free; by default as create_graph.
    create_graph: record backward itself, for higher derivatives. inputs: only these get gradients, leaves or not.
    RuntimeError where a tensor has no history, shapes differ, or the graph's buffers are gone.
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("grad_tensors and grad_variables (deprecated) arguments both passed: use grad_tensors only")
        grad_tensors = grad_variables
    wanted = None if inputs is None else _tuple(inputs)
    if wanted is not None and not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = _tuple(tensors)
    grads = _make_grads(roots, _grads_as_tuple(grad_tensors, len(roots)))
    if create_graph:
        _warn_of_cycle()
    keep = create_graph if retain_graph is None else retain_graph
    _tell_levels(roots)
    _C._run_backward(roots, grads, keep, create_graph, wanted, True, True)


def _tell_levels(roots: tuple) -> None:
    """vmap's levels, where there are any, that derivatives are taken inside of them; of roots they go to the leaves' .grad."""
    batched = sys.modules.get("strata._batched")
    if batched is not None and batched.current_level() is not None:
        batched.derivatives_begin([t for t in roots if isinstance(t, _C.TensorBase)])


def _warn_of_cycle() -> None:
    global _warned_of_cycle
    if _warned_of_cycle:
        return
    _warned_of_cycle = True
    import warnings

    warnings.warn(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
        "which can cause a memory leak. Prefer autograd.grad, or set .grad to None after use.",
        stacklevel=3,
    )


def grad(
    outputs: Tensor | Sequence[Tensor | GradientEdge] | GradientEdge,
    inputs: Tensor | Sequence[Tensor | GradientEdge] | GradientEdge,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of the sum of `outputs` with respect to `inputs`, as a tuple; no `.grad` changes.

    grad_outputs: one gradient per output, or None for a single real element. allow_unused: give None instead of an
    error for an input that no output came from. materialize_grads: zeros instead of None. is_grads_batched: grad_outputs
    have one more dim in front, and so have the gradients; row after row.
    ValueError where allow_unused=False meets materialize_grads=True.
    """
    if is_grads_batched:
        options = (create_graph, only_inputs, allow_unused, materialize_grads)
        return _grad_of_rows(outputs, inputs, grad_outputs, retain_graph, *options)
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: False.")
    if not only_inputs:
        raise NotImplementedError("autograd.grad: only_inputs=False is gone; use autograd.backward to fill .grad")
    roots = _tuple(outputs)
    wanted = _tuple(inputs)
    if not wanted:
        raise ValueError("autograd.grad: inputs is empty; expected at least one tensor")
    grads = _make_grads(roots, _grads_as_tuple(grad_outputs, len(roots)))
    keep = create_graph if retain_graph is None else retain_graph
    unused = bool(materialize_grads if allow_unused is None else allow_unused)
    found = _collected(roots, grads, keep, create_graph, wanted, unused)
    if not materialize_grads:
        return found
    return tuple(_zeros_for(x, create_graph) if g is None else g for g, x in zip(found, wanted, strict=True))


def _collected(
    roots: tuple, grads: tuple, keep: bool, create_graph: bool, wanted: tuple, unused: bool, input_hooks: bool = True
) -> tuple:
    """The gradients of `wanted`, which go nowhere else. input_hooks: changed by hooks of these."""
    _of_thread.collecting = getattr(_of_thread, "collecting", 0) + 1
    try:
        _tell_levels(())
        return _C._run_backward(roots, grads, keep, create_graph, wanted, unused, False, input_hooks)
    finally:
        _of_thread.collecting -= 1


_of_thread = _local()  # collecting: calls of grad() that run


def _collects() -> bool:
    """Whether gradients are collected, not put into `.grad`."""
    return getattr(_of_thread, "collecting", 0) > 0


def _grad_of_rows(
    outputs: Any, inputs: Any, grad_outputs: Any, retain_graph: bool | None, create_graph: bool, only_inputs: bool,
    allow_unused: bool | None, materialize_grads: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """`grad` for every row of grad_outputs, stacked."""
    many = isinstance(grad_outputs, (tuple, list))
    given = list(grad_outputs) if many else [grad_outputs]
    count = next((len(g) for g in given if g is not None), 0)
    if not count:
        raise ValueError("autograd.grad: is_grads_batched=True needs grad_outputs of at least one row")
    rows = []
    for i in range(count):
        row = [None if g is None else g[i] for g in given]
        keep = True if i + 1 < count else retain_graph
        rows.append(
            grad(outputs, inputs, row if many else row[0], keep, create_graph, only_inputs, allow_unused, False, materialize_grads)
        )
    return tuple(None if column[0] is None else strata.stack(column) for column in zip(*rows, strict=True))


def _zeros_for(x: Tensor | GradientEdge, grad: bool) -> Tensor:
    if _is_edge(x):
        shape, dtype, device = x.node._input_metadata[x.output_nr]
        return strata.zeros(shape, dtype=dtype, device=device, requires_grad=grad)
    return strata.zeros_like(x, requires_grad=grad)


def _is_checkpoint_valid() -> bool:
    """False while a backward run fills only some inputs: a reentrant checkpoint would fill others."""
    return not _C._backward_is_selective()


class _Engine:
    """The names of PyTorch's `Variable._execution_engine`."""

    @staticmethod
    def queue_callback(callback: Any) -> None:
        _C._queue_backward_callback(callback)

    @staticmethod
    def is_checkpoint_valid() -> bool:
        return _is_checkpoint_valid()


class _VariableMeta(type):
    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, strata.Tensor)


class Variable(metaclass=_VariableMeta):
    """PyTorch's old name: `Variable(x)` is x with `requires_grad` set; isinstance means Tensor."""

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Tensor:
        return data.detach().requires_grad_(requires_grad)


class set_multithreading_enabled:
    """Accepted for PyTorch's programs: backward runs on the thread that calls it, whatever is set here."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


class _Package(type(sys)):
    """`gradcheck` is a module here and the function that users mean; importing the module must not hide the function."""

    @property
    def gradcheck(self) -> Callable:
        return _lazy.load("strata.autograd.gradcheck").gradcheck

    @gradcheck.setter
    def gradcheck(self, module: ModuleType) -> None:
        pass


__getattr__, __dir__ = _lazy.of(
    globals(),
    {
        ".profiler": "ProfilerActivity _disable_profiler",
        "anomaly_mode": "detect_anomaly set_detect_anomaly",
        "function": "Function",
        "graph": "GradientEdge",
        "gradcheck": "gradgradcheck GradcheckError",
    },
    "anomaly_mode forward_ad function functional graph profiler profiler_legacy variable",
)
sys.modules[__name__].__class__ = _Package
