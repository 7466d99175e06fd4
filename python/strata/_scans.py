"""Functions over the slices of tensors: scan, associative_scan, map; and one call per element of lists: foreach_map.

Each is plain Python over the operators, with their gradients; where operators are recorded, every turn is recorded.
"""

from __future__ import annotations

import strata
from strata import Tensor
from strata.utils._pytree import tree_flatten, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["associative_scan", "foreach_map", "map", "scan"]


def _sliced(xs: Any, dim: int, what: str) -> tuple[list[Tensor], Any, int]:
    """(leaves with `dim` first, form, the size there)."""
    leaves, spec = tree_flatten(xs)
    if not leaves:
        raise RuntimeError(f"{what}: expected xs to hold a tensor, got {xs!r}")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{what}: expected tensors as leaves of xs, got {type(leaf).__name__}")
        if leaf.dim() == 0:
            raise RuntimeError(f"{what}: expected every leaf of xs to have a dim, got a tensor of shape []")
    moved = [leaf.movedim(dim, 0) for leaf in leaves]
    sizes = {leaf.shape[0] for leaf in moved}
    if len(sizes) != 1:
        raise RuntimeError(f"{what}: expected the leaves of xs to have one size at dim {dim}, got {sorted(sizes)}")
    return moved, spec, moved[0].shape[0]


def _fits(a: Any, b: Any) -> bool:
    """Whether two forms are equal; asked of their parts, which can be captured."""
    if a.type is not b.type or a.context != b.context or a.num_children != b.num_children:
        return False
    return all(_fits(x, y) for x, y in zip(a.children_specs, b.children_specs, strict=True))


def _stacked(turns: list[Any], what: str, dim: int = 0) -> Any:
    """The nests of all turns as one, stacked at a new dim."""
    flat = [tree_flatten(turn) for turn in turns]
    if not all(_fits(spec, flat[0][1]) for _, spec in flat):
        raise RuntimeError(f"{what}: expected results of one form from every turn, got {flat[0][1]} and another")
    by_leaf = zip(*(leaves for leaves, _ in flat), strict=True)
    return tree_unflatten([strata.stack(list(values)).movedim(0, dim) for values in by_leaf], flat[0][1])


def scan(combine_fn: Callable, init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> tuple[Any, Any]:
    """carry, ys: for each slice of xs along `dim`, in order (`reverse`: from the last), carry, y = combine_fn(carry, slice).

    init: tensors in a nest; what combine_fn gives as carry must have its form, shapes and dtypes. ys: the y of all turns, stacked
    at `dim`, in the order of xs. RuntimeError for other arguments, results that do not fit, and an empty xs.
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    start, form = tree_flatten(init)
    if not start or not all(isinstance(leaf, Tensor) for leaf in start):
        raise RuntimeError(f"scan: expected tensors in a nest as init, got {init!r:.200}")
    leaves, spec, count = _sliced(xs, dim, "scan")
    if count == 0:
        raise RuntimeError("All xs leaves must have a scan dimension > 0")
    carry, made = init, [None] * count
    for i in reversed(range(count)) if reverse else range(count):
        carry, made[i] = combine_fn(carry, tree_unflatten([leaf[i] for leaf in leaves], spec))
        turned, found = tree_flatten(carry)
        if not _fits(found, form):
            raise RuntimeError(f"scan: expected combine_fn to give a carry of init's form {form}, got {found}")
        for a, b in zip(turned, start, strict=True):
            if a.shape != b.shape or a.dtype != b.dtype:
                raise RuntimeError(
                    f"scan: expected combine_fn to give a carry like init, {b.dtype}{list(b.shape)}, got {a.dtype}{list(a.shape)}"
                )
    return carry, _stacked(made, "scan", dim)


def associative_scan(combine_fn: Callable, xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise") -> Any:
    """At each place along `dim`, combine_fn folded over the slices up to it (`reverse`: from it on); the shapes of xs.

    combine_fn(a, b): nests of the form of xs in, one out; it must be associative and work on many slices at once, as pointwise
    functions do ("pointwise") or others, which are called under vmap ("generic"). log2(size) turns. RuntimeError for other arguments.
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, spec, count = _sliced(xs, dim, "associative_scan")
    if reverse:
        leaves = [leaf.flip(0) for leaf in leaves]

    def combined(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        call = combine_fn if combine_mode == "pointwise" else strata.vmap(combine_fn)
        made, found = tree_flatten(call(tree_unflatten(a, spec), tree_unflatten(b, spec)))
        if not _fits(found, spec):
            raise RuntimeError(f"associative_scan: expected combine_fn to give the form of xs, {spec}, got {found}")
        for y, x in zip(made, a, strict=True):
            if y.shape != x.shape:
                raise RuntimeError(
                    f"associative_scan: expected combine_fn to give slices of shape {list(x.shape[1:])}, got {list(y.shape[1:])}"
                )
        return made

    step = 1
    while step < count:  # each place takes in what is `step` before it: after this turn it covers 2 * step slices
        made = combined([leaf[:-step] for leaf in leaves], [leaf[step:] for leaf in leaves])
        leaves = [strata.cat([leaf[:step], y]) for leaf, y in zip(leaves, made, strict=True)]
        step *= 2
    if reverse:
        leaves = [leaf.flip(0) for leaf in leaves]
    return tree_unflatten([leaf.movedim(0, dim) for leaf in leaves], spec)


def map(f: Callable, xs: Any, *args: Any) -> Any:  # noqa: A001
    """The results of f(slice, *args) for each slice of xs along dim 0, stacked at dim 0.

    xs: tensors in a nest, of one size at dim 0. args: tensors, ints and others, the same for every slice. RuntimeError for an empty xs.
    """
    leaves, spec, count = _sliced(xs, 0, "map")
    if count == 0:
        raise RuntimeError("map: expected xs to have slices, got none")
    return _stacked([f(tree_unflatten([leaf[i] for leaf in leaves], spec), *args) for i in range(count)], "map")


def foreach_map(op: Callable, *operands: Any, **kwargs: Any) -> Any:
    """op(element, ..., **kwargs) for the elements of lists, as a list; operands that are no list are the same for all.

    ValueError where the lists differ in length.
    """
    lists = [operand for operand in operands if isinstance(operand, (list, tuple))]
    sizes = {len(operand) for operand in lists}
    if len(sizes) != 1:
        raise ValueError(f"foreach_map: expected lists of one length, got lengths {sorted(sizes)}")
    turns = [[o[i] if isinstance(o, (list, tuple)) else o for o in operands] for i in range(sizes.pop())]
    return [op(*given, **kwargs) for given in turns]

