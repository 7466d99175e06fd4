"""swap_tensors: two tensors change places behind their Python objects."""

from __future__ import annotations

import copyreg
import weakref

from strata import _C, Tensor

__all__ = ["swap_tensors"]

_ABSENT = object()


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """What each of the two objects is, the other is from now on: values, class, attributes, gradient.

    Whoever holds one of the objects sees it. RuntimeError where a tensor has weak references, or is held by something else than its
    object: a graph that saved it, a view.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if not isinstance(t, Tensor):
            raise TypeError(f"swap_tensors: expected {name} to be a tensor, got {type(t).__name__}")
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    if t1 is t2:
        return
    slots = [tuple(copyreg._slotnames(type(t))) for t in (t1, t2)]  # type: ignore[attr-defined]
    if slots[0] != slots[1]:
        raise RuntimeError(f"Cannot swap t1 and t2 if they have different slots: {slots[0]} and {slots[1]}")
    _C._swap_tensor_impl(t1, t2)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for name in slots[0]:
        values = [getattr(t, name, _ABSENT) for t in (t1, t2)]
        for t, value in zip((t2, t1), values, strict=True):
            if value is not _ABSENT:
                setattr(t, name, value)
            elif hasattr(t, name):
                delattr(t, name)
