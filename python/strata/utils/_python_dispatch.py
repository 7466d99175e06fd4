"""__torch_dispatch__: modes that get every operator call, and helpers for tensor subclasses."""

from __future__ import annotations

import contextlib

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = [
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
]


class TorchDispatchMode:
    """A context whose `__torch_dispatch__(func, types, args, kwargs)` gets every operator call inside, `func` being an
    OpOverload such as `strata.ops.aten.add.Tensor`.

    It is asked before autograd and sees operators as they were called. While it handles one, the mode is off and the
    next outer one is asked; `func(*args, **kwargs)` goes on with the call, recording it where gradients are needed.
    """

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: a TorchDispatchMode must define __torch_dispatch__")

    def __enter__(self) -> TorchDispatchMode:
        _C._push_dispatch_mode(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _C._pop_dispatch_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """PyTorch's old spelling of the constructor."""
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that does nothing."""

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    stack = _C._dispatch_modes()
    return stack[-1] if stack else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    return _C._dispatch_modes()


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """All modes off inside the block."""
    modes = [_C._pop_dispatch_mode() for _ in _C._dispatch_modes()]
    try:
        yield modes[::-1]
    finally:
        for mode in reversed(modes):
            _C._push_dispatch_mode(mode)


def is_traceable_wrapper_subclass(value: object) -> bool:
    """Whether the object is a tensor subclass with __tensor_flatten__ and __tensor_unflatten__."""
    from strata import Tensor

    return (
        isinstance(value, Tensor)
        and type(value) is not Tensor
        and hasattr(value, "__tensor_flatten__")
        and hasattr(value, "__tensor_unflatten__")
    )


def return_and_correct_aliasing(func: Any, args: tuple, kwargs: dict | None, out: Any) -> Any:
    """What a handler of __torch_dispatch__ should return for `func`: for operators that write an argument, that very
    argument; else `out`."""
    schema = func._schema
    written = {}
    for i, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[i] if i < len(args) else (kwargs or {}).get(argument.name)
            written[frozenset(argument.alias_info.before_set)] = value
    if not written:
        return out
    returned = []
    results = out if isinstance(out, (tuple, list)) else (out,)
    for spec, value in zip(schema.returns, results, strict=False):
        key = frozenset(spec.alias_info.before_set) if spec.alias_info is not None else None
        returned.append(written.get(key, value))
    if not schema.returns:
        return None
    return type(out)(returned) if isinstance(out, (tuple, list)) else returned[0]
