"""Functions over tensors that take their operands in more forms than one signature can say."""

from __future__ import annotations

import strata
from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from strata import Tensor

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "einsum",
    "meshgrid",
    "norm",
    "split",
    "tensordot",
    "unique",
    "unique_consecutive",
]


def _table(name: str) -> Any:
    """The table's function of that name."""
    try:
        return getattr(_C._functions, name)
    except AttributeError:
        raise NotImplementedError(
            f"strata.{name}: the operator table does not hold it yet; compose the result from other operators"
        ) from None


def _listed(tensors: tuple) -> list:
    """f(a, b) and f([a, b]) alike."""
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)


def broadcast_shapes(*shapes: Sequence[int] | int) -> strata.Size:
    """The shape that all of them broadcast to. RuntimeError where two sizes differ and neither is 1."""
    sizes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    ndim = max((len(s) for s in sizes), default=0)
    out = [1] * ndim
    for shape in sizes:
        for i, n in enumerate(shape, ndim - len(shape)):
            if n < 0:
                raise RuntimeError(f"Trying to create tensor with negative dimension ({n}): ({n})")
            if n == 1 or n == out[i]:
                continue
            if out[i] != 1:
                raise RuntimeError(
                    "Shape mismatch: objects cannot be broadcast to a single shape: "
                    f"{', '.join(str(list(s)) for s in sizes)} differ at dimension {i}"
                )
            out[i] = n
    return strata.Size(out)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Views of the tensors, all of the shape that they broadcast to."""
    items = _listed(tensors)
    shape = broadcast_shapes(*(t.shape for t in items))
    return tuple(t.expand(shape) for t in items)


def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of the tensor along dim: pieces of one size (the last may be smaller), or of the sizes listed."""
    return tensor.split(split_size_or_sections, dim)


def einsum(equation: str, *operands: Tensor) -> Tensor:
    """Sums of products by Einstein's notation: `einsum("bij,bjk->bik", a, b)`.

    The operands may also come interleaved with lists of dims: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    """
    if isinstance(equation, str):
        return _table("einsum")(equation, _listed(operands))
    items = [equation, *operands]

    def letters(dims: Sequence) -> str:
        return "".join("..." if d is Ellipsis else chr(ord("A") + d if d < 26 else ord("a") + d - 26) for d in dims)

    pairs = len(items) // 2
    text = ",".join(letters(items[2 * i + 1]) for i in range(pairs))
    if len(items) % 2:
        text += "->" + letters(items[-1])
    return _table("einsum")(text, [items[2 * i] for i in range(pairs)])


def meshgrid(*tensors: Tensor, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinates of a grid, one tensor for each 1-d operand; indexing "ij" (the default) or "xy"."""
    items = _listed(tensors)
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            f'strata.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    if any(t.dim() > 1 for t in items):
        raise RuntimeError("strata.meshgrid: expected 0-d or 1-d tensors")
    swap = indexing == "xy" and len(items) > 1
    if swap:
        items[:2] = items[1::-1]
    shape = [t.numel() for t in items]
    grids = [
        t.reshape([-1 if i == k else 1 for i in range(len(items))]).expand(shape) for k, t in enumerate(items)
    ]
    if swap:
        grids = [g.transpose(0, 1) for g in grids]
        grids[:2] = grids[1::-1]
    return tuple(grids)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the elements of 1-d tensors, one a row."""
    items = _listed(tensors)
    if len(items) == 1:
        return items[0]
    return strata.stack([g.reshape(-1) for g in meshgrid(*items)], 1)


def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the operands along its diagonal and zeros elsewhere."""
    items = [t.reshape(1, -1) if t.dim() < 2 else t for t in _listed(tensors)] or [strata.empty(1, 0)]
    if any(t.dim() > 2 for t in items):
        raise RuntimeError("strata.block_diag: expected tensors of 2 or fewer dims")
    width = sum(t.shape[1] for t in items)
    rows, at = [], 0
    for t in items:
        left, right = t.new_zeros(t.shape[0], at), t.new_zeros(t.shape[0], width - at - t.shape[1])
        rows.append(strata.cat([left, t, right], 1))
        at += t.shape[1]
    return strata.cat(rows, 0)


def _at_least(tensors: tuple, widen: Any) -> Any:
    if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
        return widen(tensors[0])
    return tuple(widen(t) for t in _listed(tensors))


def atleast_1d(*tensors: Tensor) -> Any:
    """The tensors with at least one dim."""
    return _at_least(tensors, lambda t: t.reshape(1) if t.dim() == 0 else t)


def atleast_2d(*tensors: Tensor) -> Any:
    """The tensors with at least two dims; new ones come first."""
    return _at_least(tensors, lambda t: t.reshape(1, -1) if t.dim() < 2 else t)


def atleast_3d(*tensors: Tensor) -> Any:
    """The tensors with at least three dims: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1)."""
    return _at_least(
        tensors, lambda t: t.reshape(1, -1, 1) if t.dim() < 2 else t.unsqueeze(-1) if t.dim() == 2 else t
    )


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sums the products over dims of a and b: their number (the last of a with the first of b), or two lists."""
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        dims_a, dims_b = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    dims_a, dims_b = [d % a.dim() for d in dims_a], [d % b.dim() for d in dims_b]
    if [a.shape[d] for d in dims_a] != [b.shape[d] for d in dims_b]:
        raise RuntimeError(
            f"contracted dimensions need to match, but a has sizes {[a.shape[d] for d in dims_a]} at dims {dims_a} and b has "
            f"{[b.shape[d] for d in dims_b]} at dims {dims_b}"
        )
    keep_a = [d for d in range(a.dim()) if d not in dims_a]
    keep_b = [d for d in range(b.dim()) if d not in dims_b]
    inner = 1
    for d in dims_a:
        inner *= a.shape[d]
    left = a.permute(keep_a + dims_a).reshape(-1, inner) if inner else a.new_zeros(_size(a, keep_a), 0)
    right = b.permute(dims_b + keep_b).reshape(inner, -1) if inner else b.new_zeros(0, _size(b, keep_b))
    result = left.mm(right).reshape([a.shape[d] for d in keep_a] + [b.shape[d] for d in keep_b])
    return result if out is None else out.copy_(result)


def _size(t: Tensor, dims: list[int]) -> int:
    n = 1
    for d in dims:
        n *= t.shape[d]
    return n


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out=None, dtype=None) -> Tensor:
    """A vector norm of the elements, or over dims; p is a number, "fro" (2) or "nuc" (nuclear, for matrices)."""
    if p == "nuc":
        return _table("linalg_matrix_norm")(input, "nuc", dim if dim is not None else (-2, -1), keepdim, dtype=dtype)
    order = 2.0 if p == "fro" or p is None else float(p)
    result = _table("linalg_vector_norm")(input, order, dim, keepdim, dtype=dtype)
    return result if out is None else out.copy_(result)


def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The different elements (or slices along dim) in ascending order; with inverse indices and counts if asked for."""
    if dim is None:
        found = _table("_unique2")(input, sorted, return_inverse, return_counts)
    else:
        found = _table("unique_dim")(input, dim, sorted, return_inverse, return_counts)
    return _chosen(found, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along dim) that differ from the one before; with inverse indices and counts if asked for."""
    return _chosen(_table("unique_consecutive")(input, return_inverse, return_counts, dim), return_inverse, return_counts)


def _chosen(found: tuple, inverse: bool, counts: bool) -> Any:
    if not inverse and not counts:
        return found[0]
    return tuple(t for t, wanted in zip(found, (True, inverse, counts), strict=True) if wanted)
