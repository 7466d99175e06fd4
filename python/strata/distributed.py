"""Training by several processes: not provided. Programs that ask `is_available()` first run in one process."""

from __future__ import annotations

from strata import _lazy
from strata._absent import PARTS
from strata._missing import missing_class, missing_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WAY_OUT = "this version trains in one process; test strata.distributed.is_available() first"

_FUNCTIONS = (
    "all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier batch_isend_irecv "
    "broadcast broadcast_object_list destroy_process_group gather gather_object get_backend get_global_rank "
    "get_process_group_ranks get_rank get_world_size init_device_mesh init_process_group irecv isend monitored_barrier new_group recv "
    "reduce reduce_scatter reduce_scatter_tensor scatter scatter_object_list send"
).split()
_CLASSES = "Backend DeviceMesh FileStore GroupMember HashStore P2POp PrefixStore ProcessGroup ReduceOp Store TCPStore Work".split()

__all__ = ["is_available", "is_initialized", "is_torchelastic_launched", *_FUNCTIONS, *_CLASSES]


def is_available() -> bool:
    """False: this version has no process groups."""
    return False


def is_initialized() -> bool:
    """False: there is no process group."""
    return False


def is_torchelastic_launched() -> bool:
    """False: no launcher started this process for a group."""
    return False


def _backend_missing() -> bool:
    """False: no backend of that name."""
    return False


def _reduce_op() -> type:
    """ReduceOp: how values of several processes become one, by PyTorch's numbers, for programs that name one before they ask."""
    from enum import IntEnum

    kinds = IntEnum("RedOpType", "SUM AVG PRODUCT MIN MAX BAND BOR BXOR PREMUL_SUM", start=0, module=__name__, qualname="ReduceOp.RedOpType")
    made = missing_class(__name__, "ReduceOp", _WAY_OUT)
    made.RedOpType = kinds
    for kind in kinds:
        setattr(made, kind.name, kind)
    return made


def _backend() -> type:
    made = missing_class(__name__, "Backend", _WAY_OUT)
    made.UNDEFINED, made.GLOO, made.MPI = "undefined", "gloo", "mpi"
    made.backend_list, made.default_device_backend_map, made.backend_capability = ["undefined"], {}, {}
    return made


_CONSTANTS = {
    "Backend": _backend,
    "GroupMember": lambda: type("GroupMember", (), {"WORLD": None, "NON_GROUP_MEMBER": -100, "__module__": __name__}),
    "ReduceOp": _reduce_op,
    "group": lambda: type("group", (), {"WORLD": None}),
}
__path__: list[str] = []  # modules inside are absent (_absent.py)


def _stand_in(name: str) -> Any:
    if f"distributed.{name}" in PARTS:
        return _lazy.load(f"{__name__}.{name}")
    if name in _CONSTANTS:
        return _CONSTANTS[name]()
    if name in _FUNCTIONS:
        return missing_function(__name__, name, _WAY_OUT)
    if name in _CLASSES:
        return missing_class(__name__, name, _WAY_OUT)
    if name.startswith("is_") and name.endswith("_available"):
        return _backend_missing
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {_WAY_OUT}")


__getattr__, __dir__ = _lazy.of(globals(), otherwise=_stand_in)
