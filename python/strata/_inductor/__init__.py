"""Names by which programs reach PyTorch's generator of kernels: its settings, and packages of exported programs."""

from __future__ import annotations

import os
import tempfile

import strata
from strata import _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["AOTICompiledModel", "aoti_compile_and_package", "aoti_load_package", "config", "list_mode_options"]
__getattr__, __dir__ = _lazy.of(globals(), {".compiler": "cudagraph_mark_step_begin"}, parts="compile_fx config utils")

_MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """The settings that PyTorch gives a mode of compile (of each where None). They change nothing here: there is one way to compile."""
    if mode is None:
        return {name: dict(options) for name, options in _MODES.items()}
    if mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    return dict(_MODES[mode])


def aoti_compile_and_package(exported_program: Any, *, package_path: Any = None, inductor_configs: dict[str, Any] | None = None) -> Any:
    """Writes an exported program for aoti_load_package: its graph and its weights, as strata.export.save does. Gives the path.

    package_path: a path that ends in .pt2, or a file opened for writing; a new file in the temporary folder unless given.
    Kernels are compiled, or read from the cache of kernels, when the package is called first. ValueError for another ending.
    """
    if package_path is None:
        handle, package_path = tempfile.mkstemp(suffix=".pt2")
        os.close(handle)
    if isinstance(package_path, (str, os.PathLike)) and not os.fspath(package_path).endswith(".pt2"):
        raise ValueError(f"aoti_compile_and_package: expected a package_path that ends in .pt2, got {os.fspath(package_path)!r}")
    strata.export.save(exported_program, package_path)
    return package_path


def aoti_load_package(path: Any, model_name: str = "model", run_single_threaded: bool = False, *_: Any) -> Callable:
    """The compiled program of such a file, for inference: a call takes what the exported module takes, and gives what it gives."""
    return AOTICompiledModel(strata.export.load(path).module())


class AOTICompiledModel:
    """What aoti_load_package gives: a compiled function whose weights may be exchanged."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._compiled = strata.compile(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with strata.no_grad():
            return self._compiled(*args, **kwargs)

    def get_constant_fqns(self) -> list[str]:
        """The names of the weights."""
        return list(self._module.state_dict())

    def load_constants(self, constants_map: dict[str, Any], *, check_full_update: bool, user_managed: bool = False) -> None:
        """Other weights by name: copied, or with user_managed the given tensors themselves. ValueError for names that are none,
        and with check_full_update where one is not given."""
        known = set(self.get_constant_fqns())
        if unknown := sorted(set(constants_map) - known):
            raise ValueError(f"load_constants: unknown constants {unknown}; the program has {sorted(known)}")
        if check_full_update and (absent := sorted(known - set(constants_map))):
            raise ValueError(f"load_constants: check_full_update=True, and these constants are not given: {absent}")
        self._module.load_state_dict(constants_map, strict=False, assign=user_managed)
