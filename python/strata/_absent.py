"""Parts of PyTorch that this version has not, as modules: an import of one succeeds, and what is taken from it raises
NotImplementedError with the reason when it is used. A program that only mentions such a part still runs. And files of PyTorch's
whose names are found elsewhere here.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any
else:  # without the modules that name them, which take longer to import than all of this
    ModuleSpec, ModuleType = type(sys.__spec__), type(sys)

_QUANTISED = "this version has no quantised tensors"
_PROCESSES = "this version trains in one process; test strata.distributed.is_available() first"
_MOBILE = "this version has no programs for phones; strata.export.export makes programs that run without Python"

# Part: the reason. The modules inside of a part are absent for the same reason.
PARTS = {
    "ao": _QUANTISED,
    "quantization": _QUANTISED,
    **dict.fromkeys(("nn.quantized", "nn.intrinsic", "nn.qat"), _QUANTISED),
    "utils.data.datapipes": "this version has no data pipes; chain iterators in an IterableDataset",
    "nested": "this version has no nested tensors; pad to one length with strata.nn.utils.rnn.pad_sequence, or loop",
    "package": "this version has no such packages; strata.save keeps models, strata.export programs",
    **{f"onnx.symbolic_opset{version}": "this version exports no ONNX" for version in range(7, 21)},
    "numa": "this version binds no processes to parts of the machine",
    "monitor": "this version has no counters of its own; strata.profiler records what runs",
    "utils.mobile_optimizer": _MOBILE,
    "utils.bundled_inputs": _MOBILE,
    "utils.throughput_benchmark": "strata.utils.benchmark.Timer measures",
    **{
        f"distributed.{name}": _PROCESSES
        for name in (
            "_composable _functional_collectives _shard _symmetric_memory _tensor _tools algorithms autograd c10d_logger checkpoint constants "
            "device_mesh distributed_c10d elastic fsdp launch launcher nn optim pipeline pipelining rpc run tensor utils"
        ).split()
    },
}


# Of a part: names that decorate, whose functions raise when they are called.
DECORATORS = {"distributed.rpc.api": ("_require_initialized",)}

# PyTorch's file: where its names are.
PLACES = {
    "nn.parallel.distributed": "nn.parallel",
    "nn.parallel.data_parallel": "nn.parallel",
    "profiler.profiler": "profiler",
    "autograd.profiler_legacy": "autograd.profiler",
    "autograd.profiler_util": "_profiler_events",
    "jit.annotations": "_jit_internal",
    "_functorch.apis": "func",
    "_functorch.eager_transforms": "func",
    "_functorch.vmap": "func",
}


def _reason(name: str) -> str | None:
    """Why strata.<name> is absent; None for other names."""
    while name:
        if name in PARTS:
            return PARTS[name]
        name = name.rpartition(".")[0]
    return None


class Absent(ModuleType):
    """Such a module."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        from strata._missing import missing_class, missing_decorator

        place = self.__name__.removeprefix("strata.")
        make = missing_decorator if name in DECORATORS.get(place, ()) else missing_class
        value = make(self.__name__, name, _reason(place) or "")
        setattr(self, name, value)
        return value


class _Elsewhere(ModuleType):
    """Such a file."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        from strata import _lazy

        return getattr(_lazy.load(f"strata.{PLACES[self.__name__.removeprefix('strata.')]}"), name)


class _Finder:
    """Finds them when they are imported."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.startswith("strata.") and name in sys.modules:  # made by _lazy.made, which find_spec of importlib asks for
            return sys.modules[name].__spec__
        if name.startswith("strata.") and (name[7:] in PLACES or _reason(name[7:]) is not None):
            return ModuleSpec(name, _Finder, is_package=name[7:] not in PLACES)
        home, _, part = name.rpartition(".")
        if type(sys.modules.get(home)).__name__ == "DeviceModule" and isinstance(made := getattr(sys.modules[home], part, None), ModuleType):
            return made.__spec__
        return None

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        if spec.name[7:] in PLACES:
            return _Elsewhere(spec.name, f"What strata.{PLACES[spec.name[7:]]} has.")
        return Absent(spec.name, f"Not provided: {_reason(spec.name[7:])}.")

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        pass


def install() -> None:
    """From now on imports find them."""
    sys.meta_path.append(_Finder)
