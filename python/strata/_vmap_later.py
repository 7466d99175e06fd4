"""Results of vmap whose history is made when it is asked for.

A derivative inside of vmap that is differentiated outside has no history in the batch that runs at once. Its values have no need of
one: they are computed so, and a backward pass calls the function for each element, recorded, and goes on from there.
"""

from __future__ import annotations

import strata
from strata import Tensor
from strata._batched import Unfit, current_level
from strata.autograd.graph import _leaves_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

__all__ = ["held_of", "next_number", "share_leaves", "with_history"]


class _Later(strata.autograd.Function):
    @staticmethod
    def forward(ctx: Any, again: Callable, columns: list, *learning: Tensor) -> tuple:
        ctx.again = again
        ctx.save_for_backward(*learning)  # which notices where they are written before the backward pass
        made = tuple(t.detach() for t in columns)
        ctx.mark_non_differentiable(*(t for t in made if not (t.is_floating_point() or t.is_complex())))
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        if current_level() is not None:
            raise Unfit("a gradient of what vmap gave")
        count = len(ctx.saved_tensors)
        with strata.enable_grad():
            columns, learning = ctx.again()
        recorded = [(t, g) for t, g in zip(columns, grads, strict=True) if t.requires_grad and g is not None]
        wanted = [t for t, needed in zip(learning, ctx.needs_input_grad[2:], strict=True) if needed]
        if not recorded or not wanted:
            return (None, None, *[None] * count)
        found = iter(
            strata.autograd.grad(
                [t for t, _ in recorded], wanted, [g for _, g in recorded],
                retain_graph=True, create_graph=strata.is_grad_enabled(), allow_unused=True,
            )  # fmt: skip
        )
        return (None, None, *[next(found) if needed else None for needed in ctx.needs_input_grad[2:]])


def next_number() -> int:
    """More than the numbers of all nodes that this thread has recorded."""
    with strata.enable_grad():
        leaf = strata.zeros((), requires_grad=True)
        return leaf.view_as(leaf).grad_fn._sequence_nr()


def held_of(outside: Iterable[Tensor], begin: int) -> list[Tensor] | None:
    """What the function found outside and learns. In the place of what it made itself, as a view of a weight, since another call makes
    another one, the leaves that this is made of. None where it is made of a tensor with history that only it holds."""
    found, waiting, seen = {}, [], set()
    for t in outside:
        if t.grad_fn is None or t.grad_fn._sequence_nr() < begin:
            found[id(t)] = t
        else:
            waiting.append(t.grad_fn)
    while waiting:
        node = waiting.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            found[id(variable)] = variable
        elif node._sequence_nr() < begin:
            return None
        elif node not in seen:
            seen.add(node)
            waiting += [after for after, _ in node.next_functions if after is not None]
    return list(found.values())


def share_leaves(given: list[Tensor], held: list[Tensor]) -> bool:
    """Whether what goes to one of the held tensors could go on to another one, or come from a given one."""
    met = {id(t) for t in _leaves_of(given)}
    for t in held:
        mine = {id(leaf) for leaf in _leaves_of([t])}
        if mine & met:
            return True
        met |= mine
    return False


def with_history(columns: list, learning: list[Tensor], again: Callable[[], tuple[list, list]]) -> list:
    """The columns as results of the tensors that learn. again: the same columns from calls that are recorded, and what takes part in
    these in the tensors' places."""
    return list(_Later.apply(again, columns, *learning)) if learning else columns
