"""A graph module as a Python package: its code, and its parameters in a file."""

from __future__ import annotations

import warnings

import strata
from strata import nn
from strata.nn.modules.module import _addindent

from ._codegen import CUSTOM_BUILTINS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from .graph_module import GraphModule

_BUILT_BY_REPR = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def write(module: GraphModule, folder: Path, class_name: str) -> None:
    """Writes module.py, __init__.py and state_dict.pt to the folder, and a .pt file for each child whose repr does not build it."""
    folder.mkdir(exist_ok=True)
    strata.save(module.state_dict(), folder / "state_dict.pt")
    lines, pickled = [], []
    for name, child in module.named_children():
        text = repr(child)
        if type(child) in _BUILT_BY_REPR:
            lines.append(f"setattr(self, '{name}', {text})")
            continue
        strata.save(child, folder / f"{name}.pt")
        pickled.append(name)
        comment = text.replace("\r", " ").replace("\n", " ")
        lines.append(f"setattr(self, '{name}', strata.load(r'{folder / name}.pt', weights_only=False)) # {comment}")
    for name, t in module._buffers.items():
        if t is not None:
            lines.append(f"self.register_buffer('{name}', strata.empty({list(t.shape)}, dtype={t.dtype}))")
    for name, t in module._parameters.items():
        if t is not None:
            lines.append(f"setattr(self, '{name}', strata.nn.Parameter(strata.empty({list(t.shape)}, dtype={t.dtype})))")
    lines.append(f"self.load_state_dict(strata.load(r'{folder}/state_dict.pt'))")
    imports = "\n".join(["import strata", *(line for line, _ in CUSTOM_BUILTINS.values()), "", "from strata.nn import *"])
    head = f"class {class_name}(strata.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    body = "".join(f"        {line}\n" for line in lines)
    (folder / "module.py").write_text(f"{imports}\n{head}{body}{_addindent(module.code, 4)}\n")
    (folder / "__init__.py").write_text("from .module import *")
    if pickled:
        warnings.warn(f"Was not able to save the following children modules as reprs -saved as pickled files instead: {pickled}")
