"""as_torch(): `import torch` means this package, for libraries that were written for PyTorch."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from importlib.machinery import ModuleSpec

import strata
from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType
    from typing import Any

__all__ = ["as_torch"]


def as_torch() -> None:
    """Makes `import torch` give this package in this process: call it before the first library that imports torch.

    `torch.nn` and `strata.nn` are one module then, its version is found as that of a package "torch", and dtypes, layouts
    and sizes are shown as PyTorch shows them ("torch.float32"). Processes that begin anew (multiprocessing's "spawn") call it themselves.
    RuntimeError where PyTorch itself has been imported.
    """
    there = sys.modules.get("torch")
    if there is strata:
        return
    if there is not None:
        raise RuntimeError("as_torch(): PyTorch has been imported in this process; call strata.as_torch() before anything imports torch")
    sys.modules["torch"] = strata
    sys.meta_path.insert(0, _Finder)
    _C._set_shown_package("torch")


class _Same:
    """Gives the module of the same name of this package."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # which the import has replaced


class _Finder:
    """Finds torch.x where there is strata.x, and the distribution "torch"."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not name.startswith("torch."):
            return None
        own = f"strata{name[5:]}"
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name is not None and own.startswith(error.name):
                return None
            raise
        return ModuleSpec(name, _Same(module), is_package=hasattr(module, "__path__"))

    @classmethod
    def find_distributions(cls, context: Any = None) -> Iterable[importlib.metadata.Distribution]:
        name = getattr(context, "name", None)
        return [_Distribution()] if name is None or name.lower() == "torch" else []


class _Distribution(importlib.metadata.Distribution):
    """What installed PyTorch says of itself: its name and version."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {strata.__version__}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        from pathlib import Path

        return Path(strata.__file__).parent / path
