"""Which operands of a call have a gradient: one letter each, the same in every interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kit import Call, convert, flattened


def pattern(library: Any, tensor: Callable, function: Callable, c: Call) -> list[str] | None:
    """Per floating-point result: g or, where it is none, N for every floating-point operand; "-" for a constant. None
    where the call raises, or its derivative does."""

    def leaf(t):
        made = tensor(t)
        return made.requires_grad_() if made.is_floating_point() else made

    args = convert(c.args, leaf, lambda n: getattr(library, n))
    kwargs = {k: convert(v, leaf, lambda n: getattr(library, n)) for k, v in c.kwargs.items()}
    leaves = [t for t in flattened([list(args), list(kwargs.values())]) if isinstance(t, library.Tensor) and t.requires_grad]
    try:
        results = [r for r in flattened([function(*args, **kwargs)]) if isinstance(r, library.Tensor) and r.is_floating_point()]
        made = []
        for r in results if leaves else []:
            grads = []
            if r.requires_grad:
                grads = library.autograd.grad(r, leaves, library.ones_like(r), allow_unused=True, retain_graph=True)
            made.append("".join("N" if g is None else "g" for g in grads) or "-")
        return made
    except Exception:  # noqa: BLE001 - other tests cover what raises
        return None
