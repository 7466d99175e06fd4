"""Modules as graphs with parameters, checked inputs and a file format, which C++ runs without Python: strata.export.export."""

from __future__ import annotations

from strata import _lazy

_HOMES = {
    "_export": "export",
    "exported_program": "ExportedProgram ModuleCallEntry ModuleCallSignature default_decompositions",
    "graph_signature": "ExportBackwardSignature ExportGraphSignature",
    "dynamic_shapes": "Dim dims",
    "_archive": "load save",
    "_dataclass": "register_dataclass",
}
__all__ = _lazy.listed(_HOMES)
__getattr__, __dir__ = _lazy.of(globals(), _HOMES, "dynamic_shapes exported_program graph_signature")
