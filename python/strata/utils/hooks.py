"""The handle of a registered hook, under PyTorch's name, and marks of hooks that pickles leave out."""

from __future__ import annotations

import warnings

from strata.nn.hooks import RemovableHandle as RemovableHandle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Any) -> Any:
    """Marks a hook that cannot be saved, so that warn_if_has_hooks passes over it."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """A warning for each hook of a tensor that a pickle of it would lose."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized. If this is expected, you can decorate the function with @strata.utils.hooks.unserializable_hook to suppress this warning", stacklevel=2)
