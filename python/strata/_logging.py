"""What the compiler tells of its work, on stderr: `set_logs`, or STRATA_LOGS=capture,graph_breaks and so on.

capture: each captured graph. passes: what each pass did, nodes before and after, microseconds. fusion: the kernels, what is
fused in each, and why not more. output_code: the kernels' text. cache: of each kernel whether it was there.
Of strata.compile: graph_breaks: where a graph ends, and why. recompiles: what a call did not meet. guards: what each entry asks.
bytecode: the Python text of each entry. sizes: each size that became a symbol, what was asked of it where, and for which sizes
an entry was made.
"""

from __future__ import annotations

from strata import _C

__all__ = ["set_logs"]
_INFO = 20  # of logging


# PyTorch's names for logs: what each shows here, and of the others, which have no counterpart, nothing.
_NAMES = {"dynamo": "bytecode", "graph": "fusion", "graph_code": "bytecode", "aot": "passes", "inductor": "fusion", "all": "fusion"}
_NONE = frozenset(
    "aot_graphs aot_joint_graph autotuning compiled_autograd compiled_autograd_verbose ddp_graphs distributed dtensor dynamic "
    "export graph_sizes hierarchical_compile inductor_metrics ir_post_fusion ir_pre_fusion kernel_code onnx overlap perf_hints "
    "post_grad_graphs recompiles_verbose schedule sym_node torch trace_bytecode trace_call trace_shape_events trace_source verbose_guards".split()
)


def set_logs(**logs: bool | int) -> None:
    """The logs that are on from now on; those that are not named are off. ValueError for names that are none.

    set_logs(fusion=True, cache=True); set_logs() turns all off. PyTorch's names are taken, too: dynamo, graph, aot and inductor
    show what is nearest, logs of what is not here show nothing. A level of `logging` is on where it is INFO or lower.
    """
    shown = {}
    for name, on in logs.items():
        if not isinstance(on, int):
            raise TypeError(f"set_logs: expected {name}=True or False, or a level of logging, got {on!r}")
        if name not in _NONE:
            own = _NAMES.get(name, name)
            shown[own] = shown.get(own, False) or (on if isinstance(on, bool) else 0 < on <= _INFO)
    _C._set_logs(",".join(shown))  # whatever they say, they must be names
    _C._set_logs(",".join(name for name, on in shown.items() if on))
