"""vmap: a function of single elements over a batch of them: one call for all (_batched.py), in graphs a call for each."""

from __future__ import annotations

import functools

import strata
from strata import _C, Tensor, _capture
from strata._batched import DRAWN, WRITTEN, BatchedTensor, Learns, Level, Unfit, Written, current_level, lacks_values
from strata._vmap_later import held_of, next_number, share_leaves, with_history
from strata.utils._pytree import tree_flatten, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["vmap"]


def _flat_dims(in_dims: Any, arg: Any, leaves: list, spec: Any) -> list:
    """The mapped dim of each leaf of an argument: in_dims is one for all, or of the argument's form."""
    if in_dims is None or isinstance(in_dims, int):
        return [in_dims] * len(leaves)
    if isinstance(in_dims, dict) and isinstance(arg, dict):
        pairs = [(in_dims[key], value) for key, value in arg.items()]
    elif isinstance(in_dims, (tuple, list)) and isinstance(arg, (tuple, list)) and len(in_dims) == len(arg):
        pairs = list(zip(in_dims, arg, strict=True))
    else:
        raise ValueError(f"vmap: in_dims is not compatible with the structure of inputs: got {in_dims!r} for {type(arg).__name__}")
    found = []
    for dim, value in pairs:
        part, part_spec = tree_flatten(value)
        found += _flat_dims(dim, value, part, part_spec)
    return found


def _mapped(in_dims: Any, args: tuple) -> tuple[list, list, Any, int]:
    """The leaves of the arguments, the mapped dim of each (or None), their spec, and the batch's size."""
    if not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(
            f"vmap: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError("vmap: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no inputs.")
    leaves, spec = tree_flatten(args)
    dims = _flat_dims(in_dims if isinstance(in_dims, int) else tuple(in_dims), args, leaves, spec)
    sizes = []
    for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(leaf, Tensor):
            if isinstance(in_dims, int):
                dims[i] = None  # numbers among tensors are the same for all
                continue
            raise ValueError(f"vmap: Got in_dim={dim} for an input but the input is of type {type(leaf)}, expected a Tensor")
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"vmap: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.dim()} so expected "
                f"in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        sizes.append(leaf.shape[dim])
    if not sizes:
        raise ValueError("vmap: at least one input must be mapped: all in_dims are None")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
        )
    return leaves, dims, spec, sizes[0]


def _without(shape: tuple, dim: int) -> list[int]:
    sizes = list(shape)
    del sizes[dim]
    return sizes


def _shared(func: Any, leaves: list, dims: list, kwargs: dict) -> list[Tensor]:
    """The tensors that each element gets whole: arguments, and what the function holds or names."""
    found = [leaf for leaf, dim in zip(leaves, dims, strict=True) if dim is None] + tree_flatten(kwargs)[0]
    function = getattr(func, "__func__", func)
    held = [func, getattr(func, "__self__", None)]
    for cell in getattr(function, "__closure__", None) or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # it is empty
            continue
    variables = getattr(function, "__globals__", {})
    held += [variables.get(name) for name in getattr(getattr(function, "__code__", None), "co_names", ())]
    for value in held:
        if isinstance(value, strata.nn.Module):
            found += [*value.parameters(), *value.buffers()]
        else:
            found.append(value)
    return [t for t in found if isinstance(t, Tensor) and not t.is_inference()]


UNROLLED = 64  # elements whose calls a compiled graph holds side by side


def vmap_over_many_elements() -> None:
    """Nothing. A captured function cannot call it, and so goes on by elements outside of its graph."""


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable:
    """A function that gives what `func` gives for every element of a batch, side by side.

    in_dims: the dim of each argument that is the batch's, or None; one int for all, or of the arguments' structure.
    out_dims: where results get the batch's dim. Keyword arguments are the same for all elements. randomness: "same" gives
    every element the same random numbers, "different" others; "error" raises RuntimeError where any are drawn. chunk_size: elements
    that are taken at a time, at most.

    func is called once, with tensors that look like one element (_batched.py): each operator runs once for all, or, where it has no
    rule for that, for one element after the other. What cannot be done so (deciding by a value; operators and Functions of the user's;
    random numbers) is called for each element, as captured functions are; so is a backward pass from outside through a derivative that
    is taken inside (_vmap_later.py). ValueError where structures or sizes do not fit.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def batched(*args: Any, **kwargs: Any) -> Any:
        leaves, dims, spec, size = _mapped(in_dims, args)
        if size > UNROLLED:
            vmap_over_many_elements()
        made = None
        # What is captured is called for each element; so is what draws, in the order of elements.
        if randomness == "error" and not strata.compiler.is_compiling() and _capture.current() is None and _plain(leaves):
            made = _at_once(func, leaves, dims, spec, size, kwargs, chunk_size or size)
        columns, out_spec, stack, mapped = made or _by_element(func, leaves, dims, spec, size, kwargs, randomness)
        if isinstance(out_dims, int):
            places = [out_dims] * len(columns)
        else:
            places = tree_flatten(out_dims, is_leaf=lambda v: v is None)[0]
            if len(places) != len(columns):
                raise ValueError(f"vmap: out_dims is not compatible with the structure of outputs: {out_dims!r} for {len(columns)}")
        if any(dim is None and differs for dim, differs in zip(places, mapped, strict=True)):
            raise ValueError("vmap: can not return a BatchedTensor when out_dim is None: give the dim that the batch shall have")
        stacked = [column[0] if dim is None else stack(column, dim) for column, dim in zip(columns, places, strict=True)]
        if size == 0:
            stacked = [t if dim is None else t.narrow(dim, 0, 0) for t, dim in zip(stacked, places, strict=True)]
        return tree_unflatten(stacked, out_spec)

    return batched


def _plain(leaves: list) -> bool:
    """Whether no tensor is of a class that operators go to by itself."""
    return all(not isinstance(t, Tensor) or isinstance(t, BatchedTensor) or not hasattr(type(t), "__torch_dispatch__") for t in leaves)


def _placed(whole: Tensor, dim: int) -> Tensor:
    return whole.movedim(0, dim)


def _checked(func: Any, found: list) -> list:
    for value in found:
        if not isinstance(value, Tensor):
            name = getattr(func, "__name__", repr(func))
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)}. Did you mean to set "
                "out_dims= to None for output?"
            )
    return found


def _at_once(func: Any, leaves: list, dims: list, spec: Any, size: int, kwargs: dict, chunk: int) -> tuple | None:
    """What func gives, all elements along dim 0 of each result; the results' spec; how these get the batch's dim; which of them
    differ from element to element. None where the function is to be called for each element: what it does is Unfit for this or
    raises, and nothing outside of it was written before.
    """
    shared = _shared(func, leaves, dims, kwargs)
    watched = [t for t in (*leaves, *shared) if isinstance(t, Tensor) and not t.is_inference()]
    versions, drawn = [t._version for t in watched], _C._draws()
    untouched = lambda: all(t._version == version for t, version in zip(watched, versions, strict=True))  # noqa: E731
    try:
        try:
            pieces, out_spec, mapped, _ = _pieces(func, leaves, dims, spec, size, kwargs, chunk, False)
        except Learns:
            if current_level() is not None or not untouched():
                raise
            later = _with_later_history(func, leaves, dims, spec, size, kwargs, chunk)
            _raise_for_draws(drawn)
            return later
    except Written:
        raise
    except Exception as error:
        if untouched():
            return None
        if not isinstance(error, Unfit):
            raise
        raise RuntimeError(
            f"vmap: {error} cannot run once for all elements, nor can the function be called for each of them, since it has written "
            "its arguments before: write out of place (add for add_)"
        ) from None
    _raise_for_draws(drawn)
    columns = _columns(pieces)
    if not strata.is_grad_enabled():  # but derivatives inside were recorded
        columns = [t.detach() if t.requires_grad else t for t in columns]
    return columns, out_spec, _placed, mapped


def _columns(pieces: list) -> list:
    return [pieces[0][i] if len(pieces) == 1 else strata.cat([p[i] for p in pieces]) for i in range(len(pieces[0]))]


def _pieces(func: Any, leaves: list, dims: list, spec: Any, size: int, kwargs: dict, chunk: int, silent: bool) -> tuple:
    """The results of some elements after the other's, their spec, which of them differ from element to element, and the tensors
    outside that would learn where the batch itself gets no history."""
    wholes = [leaf if dim is None else leaf.movedim(dim, 0) for leaf, dim in zip(leaves, dims, strict=True)]
    if size == 0:  # an element of zeros says what the results are like
        wholes = [t if dim is None else t.new_zeros(1, *t.shape[1:]) for t, dim in zip(wholes, dims, strict=True)]
    pieces: list = []
    outside: dict[int, Tensor] = {}
    for first in range(0, max(size, 1), max(chunk, 1)):
        count = max(min(chunk, size - first), 1)
        with Level(count, silent=silent) as level:
            part = [
                t if dim is None else level.wrap(t if count == max(size, 1) else t.narrow(0, first, count))
                for t, dim in zip(wholes, dims, strict=True)
            ]
            found, out_spec = tree_flatten(func(*tree_unflatten(part, spec), **kwargs))
            mapped = [level.owns(t) for t in _checked(func, found)]
            pieces.append([level.whole(t) for t in found])
        outside.update(level.outside or {})
    if any(lacks_values(t) for piece in pieces for t in piece) and not any(isinstance(t, Tensor) and lacks_values(t) for t in wholes):
        raise Unfit("a result without values")
    return pieces, out_spec, mapped, outside


def _with_later_history(func: Any, leaves: list, dims: list, spec: Any, size: int, kwargs: dict, chunk: int) -> tuple:
    """_at_once without the batch's own history, which a backward pass makes from calls for each element."""
    learns = lambda t: isinstance(t, Tensor) and t.requires_grad  # noqa: E731
    values, begin = [leaf.detach() if learns(leaf) else leaf for leaf in leaves], next_number()
    pieces, out_spec, mapped, outside = _pieces(func, values, dims, spec, size, kwargs, chunk, True)
    given, held = [leaf for leaf in leaves if learns(leaf)], held_of(outside.values(), begin)
    if held is None or share_leaves(given, held):
        raise Unfit("a derivative of tensors that are made of each other")

    def again() -> tuple[list, list]:
        # A transform around this one has ended when it asks: its leaves learn once more.
        ended = [t for t in (*given, *held) if getattr(t, "_transform_ended", False)]
        for t in ended:
            t._transform_ended = False
        aliases = [leaf.view_as(leaf) if learns(leaf) else leaf for leaf in leaves]
        try:
            columns, *_ = _by_element(func, aliases, dims, spec, size, kwargs, "error")
        finally:
            for t in ended:
                t._transform_ended = True
        return [strata.stack(column) for column in columns], [*filter(learns, aliases), *held]

    columns = [t.detach() for t in _columns(pieces)]
    return with_history(columns, [*given, *held], again), out_spec, _placed, mapped


def _by_element(func: Any, leaves: list, dims: list, spec: Any, size: int, kwargs: dict, randomness: str) -> tuple:
    """The same from calls for one element after the other."""
    if size == 0:
        slices = [leaf if dim is None else [leaf.new_zeros(_without(leaf.shape, dim))] for leaf, dim in zip(leaves, dims, strict=True)]
    else:
        slices = [leaf if dim is None else leaf.unbind(dim) for leaf, dim in zip(leaves, dims, strict=True)]
    # What is captured is not asked whether it draws or writes: that would end its graph.
    asked = not strata.compiler.is_compiling() and _capture.current() is None
    shared = _shared(func, leaves, dims, kwargs) if asked else []
    versions = [t._version for t in shared]
    drawn = _C._draws() if asked and randomness == "error" else None
    state, results = strata.get_rng_state() if randomness == "same" else None, []
    out_spec: Any = None
    for i in range(max(size, 1)):
        if randomness == "same":
            strata.set_rng_state(state)
        element = [part if dim is None else part[i] for part, dim in zip(slices, dims, strict=True)]
        found, out_spec = tree_flatten(func(*tree_unflatten(element, spec), **kwargs))
        results.append(_checked(func, found))
        if any(t._version != version for t, version in zip(shared, versions, strict=True)):
            raise RuntimeError(WRITTEN)
    if drawn is not None:
        _raise_for_draws(drawn)
    return list(zip(*results, strict=True)), out_spec, strata.stack, [False] * len(results[0])


def _raise_for_draws(before: Any) -> None:
    if before != _C._draws():
        raise RuntimeError(DRAWN)
