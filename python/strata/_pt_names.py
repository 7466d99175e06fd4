"""Names in PyTorch's files. What is there called torch.x is here strata.x, and back; a few live elsewhere."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Where PyTorch's pickles find what has another place here.
_HERE = {
    ("torch._C._nn", None): "strata.nn.functional",
    ("torch._C", "_VariableFunctionsClass"): ("strata", "_C", "_functions"),
    ("torch._C._VariableFunctions", None): "strata",
}
# Where things of ours are in PyTorch.
_THERE = {
    "strata._C": "torch",
    "strata._C._functions": "torch",
    "strata.nn.functional.": "torch.nn.functional",
    "strata.optim.adafactor": "torch.optim",
    "strata.optim.lr_scheduler.": "torch.optim.lr_scheduler",
    "strata.optim.muon": "torch.optim",
}


def here(module: str) -> str:
    """strata.x for torch.x, and any other module's name as it is."""
    return "strata" + module[5:] if module == "torch" or module.startswith("torch.") else module


def there(module: str, name: str = "") -> str:
    """torch.x for strata.x, and any other module's name as it is."""
    if module == "strata._C" and name.startswith("TensorBase"):
        return "torch._C"
    if name == "UntypedStorage":  # PyTorch's reader of files that are not trusted takes it from there alone
        return "torch.storage"
    if module in _THERE:
        return _THERE[module]
    for prefix, name in _THERE.items():
        if prefix.endswith(".") and module.startswith(prefix):
            return name
    return "torch" + module[6:] if module == "strata" or module.startswith("strata.") else module


def find(module: str, name: str) -> Any:
    """The object that a file calls module.name. AttributeError or ImportError where there is none.

    Importing runs code of the module: for files that are trusted only. Memory formats have no module, and PyTorch writes them
    as "torch.channels_last" in whichever module it met first that imports torch.
    """
    if name.startswith("torch."):
        module, name = "torch", name[6:]
    place: Any = _HERE.get((module, name)) or _HERE.get((module, None)) or here(module)
    if isinstance(place, tuple):
        found = sys.modules[place[0]]
        for part in place[1:]:
            found = getattr(found, part)
        return found
    __import__(place)
    found = sys.modules[place]
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise AttributeError(f"Can't get attribute {name!r} on {sys.modules[place]!r}") from None
    return found
