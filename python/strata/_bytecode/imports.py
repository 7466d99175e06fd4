"""Imports inside of what is captured: modules are loaded as the program would load them there."""

from __future__ import annotations

import sys

from strata import _C

from .reasons import Break
from .sources import const

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .frame import Frame


class Imports:
    def import_name(self, f: Frame, name: str, names: Any, level: int) -> Any:
        if level:
            package = f.globals.get("__package__") or ""
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - level + 1])
            name = f"{base}.{name}" if name else base
            names = names or ("",)
        wanted = name if names else name.partition(".")[0]
        self.import_module(name)
        for part in names or ():
            if part and not hasattr(sys.modules[name], part):
                self.import_module(f"{name}.{part}")
        return self.load(sys.modules[wanted], const(sys.modules).item(wanted))

    @staticmethod
    def import_module(name: str) -> None:
        """Makes sure that it is loaded, as the program would here."""
        if name not in sys.modules:
            try:
                import importlib

                _C._recording_aside(lambda: importlib.import_module(name))
            except Exception as error:
                raise Break(f"an import of {name}, which raised {type(error).__name__}", "import it outside of what is compiled") from None
