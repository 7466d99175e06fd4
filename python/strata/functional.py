"""Functions of the table that PyTorch lets take their operands in more forms than one signature can say."""

from __future__ import annotations

import strata
from strata import _C
from strata._into import stored as _stored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from strata import Tensor

# These stand before the table's functions of the same names in the module strata.
__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "einsum",
    "lu",
    "meshgrid",
    "nonzero",
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


def _overrides(operands: Sequence) -> bool:
    """Whether a mode or an operand's class answers the call (strata.overrides)."""
    return _C._has_torch_function(tuple(operands))


def _overridden(function: Any, operands: Sequence, *args: Any, **kwargs: Any) -> Any:
    """What it answers to function(*args, **kwargs)."""
    return _C._handle_torch_function(function, tuple(operands), args, kwargs)


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
    if _overrides(tensors):
        return _overridden(broadcast_tensors, tensors, *tensors)
    return _table("broadcast_tensors")(_listed(tensors))


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the elements of 1-d tensors, one a row."""
    if _overrides(tensors):
        return _overridden(cartesian_prod, tensors, *tensors)
    return _table("cartesian_prod")(_listed(tensors))


_CDIST_MODES = {
    None: 0,
    "use_mm_for_euclid_dist_if_necessary": 0,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """p-norms of the differences of the rows of x1 (..., P, M) and x2 (..., R, M), as (..., P, R).

    compute_mode chooses among PyTorch's ways to the same result; here there is one. ValueError for other words.
    """
    if not isinstance(compute_mode, (str, type(None))) or compute_mode not in _CDIST_MODES:
        raise ValueError(f"cdist: {compute_mode} is not a valid value for compute_mode; expected one of {[*_CDIST_MODES][1:]}")
    return _table("cdist")(x1, x2, p, _CDIST_MODES[compute_mode])


def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the operands along its diagonal and zeros elsewhere."""
    if _overrides(tensors):
        return _overridden(block_diag, tensors, *tensors)
    return _table("block_diag")(_listed(tensors))


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of the matrices, in the order that costs least."""
    if _overrides(matrices):
        return _overridden(chain_matmul, matrices, *matrices, **({} if out is None else {"out": out}))
    return _table("chain_matmul")(_listed(matrices), **({} if out is None else {"out": out}))


def meshgrid(*tensors: Tensor, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinates of a grid, one tensor for each 1-d operand; indexing "ij" (the default) or "xy"."""
    if _overrides(tensors):
        return _overridden(meshgrid, tensors, *tensors, indexing=indexing)
    return _table("meshgrid")(_listed(tensors), indexing="ij" if indexing is None else indexing)


def atleast_1d(*tensors: Tensor) -> Any:
    """The tensors with at least one dim."""
    return _table("atleast_1d")(tensors[0] if len(tensors) == 1 else tensors)


def atleast_2d(*tensors: Tensor) -> Any:
    """The tensors with at least two dims; new ones come first."""
    return _table("atleast_2d")(tensors[0] if len(tensors) == 1 else tensors)


def atleast_3d(*tensors: Tensor) -> Any:
    """The tensors with at least three dims: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1)."""
    return _table("atleast_3d")(tensors[0] if len(tensors) == 1 else tensors)


def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of the tensor along dim: pieces of one size (the last may be smaller), or of the sizes listed."""
    if _overrides((tensor,)):
        return _overridden(split, (tensor,), tensor, split_size_or_sections, dim=dim)
    return strata._as_tensor("split", tensor, "tensor").split(split_size_or_sections, dim)


def einsum(equation: str, *operands: Tensor) -> Tensor:
    """Sums of products by Einstein's notation: `einsum("bij,bjk->bik", a, b)`.

    The operands may also come interleaved with lists of dims: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)) and not isinstance(equation, strata.Tensor):
        operands = tuple(operands[0])  # whoever overrides it gets the operands themselves
    if _overrides(operands):
        return _overridden(einsum, operands, equation, *operands)
    if not operands:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if not isinstance(equation, strata.Tensor):
        return _table("einsum")(equation, operands)
    from itertools import islice
    from operator import index  # which takes half as long to import as the rest of this package

    items = [equation, *operands]

    def letter(d: Any) -> str:
        if d is Ellipsis:
            return "..."
        try:
            index(d)
        except TypeError:
            raise TypeError(f"einsum(): a subscripts list: expected numbers and Ellipsis, got {type(d).__name__}") from None
        if not 0 <= index(d) < 52:
            raise ValueError(f"einsum(): subscript in subscripts list is not within the valid range [0, 52): got {d}")
        return chr(ord("A") + d if d < 26 else ord("a") + d - 26)

    def letters(dims: Sequence) -> str:
        found = list(islice(dims, 65))
        if len(found) > 64:
            raise ValueError("einsum(): a subscripts list names more than 64 dims, which no tensor has")
        return "".join(letter(d) for d in found)

    pairs = len(items) // 2
    text = ",".join(letters(items[2 * i + 1]) for i in range(pairs))
    if len(items) % 2:
        text += "->" + letters(items[-1])
    return _table("einsum")(text, [items[2 * i] for i in range(pairs)])


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sums the products over dims of a and b: their number (the last of a with the first of b), or two lists."""
    if _overrides((a, b)):
        return _overridden(tensordot, (a, b), a, b, dims=dims, out=out)
    if isinstance(dims, strata.Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot expects dims from 0 to {min(a.dim(), b.dim())}, the dims of its operands, but got dims={dims}"
            )
        dims_a, dims_b = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        if not isinstance(dims, (tuple, list)) or len(dims) != 2:
            raise ValueError(f"tensordot: dims: expected a number or two lists of dims, one for each operand, got {dims!r}")
        if not all(isinstance(d, (int, tuple, list)) for d in dims):
            raise TypeError(f"tensordot: dims: expected numbers or lists of dims, got {dims!r}")
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    return _table("tensordot")(a, b, dims_a, dims_b, **({} if out is None else {"out": out}))


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out=None, dtype=None) -> Tensor:
    """A vector norm of the elements, or over dims; p is a number, "fro" (2) or "nuc" (nuclear, for matrices)."""
    if _overrides((input,)):
        return _overridden(norm, (input,), input, p=p, dim=dim, keepdim=keepdim, out=out, dtype=dtype)
    given = {} if out is None else {"out": out}
    if isinstance(p, str) and p == "nuc":
        return _table("linalg_matrix_norm")(input, p, (-2, -1) if dim is None else dim, keepdim, dtype=dtype, **given)
    try:
        if isinstance(p, str) and p != "fro":
            raise ValueError  # noqa: TRY301 - float() reads numbers in words
        order = 2.0 if p is None or isinstance(p, str) else float(p)
    except (TypeError, ValueError):
        raise TypeError(f'norm: p: expected a real number, "fro" or "nuc", got {p!r}') from None
    return _table("linalg_vector_norm")(input, order, dim, keepdim, dtype=dtype, **given)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """linalg.lu_factor as it was called before: (LU, pivots), and with get_infos infos in place of an error."""
    if _overrides((A,)):
        return _overridden(lu, (A,), A, pivot=pivot, get_infos=get_infos, out=out)
    found = _table("linalg_lu_factor_ex" if get_infos else "linalg_lu_factor")(A, pivot=pivot)
    if out is None:
        return tuple(found)
    if len(out) != len(found):
        raise TypeError(f"expected tuple of {len(found)} elements but got {len(out)}")
    return tuple(_stored("lu", made, given) for given, made in zip(out, found))


def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """Coordinates of the elements that are not zero: (count, dims) int64, or with as_tuple one 1-d tensor per dim."""
    if as_tuple:
        if isinstance(out, (tuple, list)):
            raise TypeError("nonzero(): argument 'out' must be Tensor, not tuple")
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return _table("nonzero_numpy")(input)
    return _table("nonzero")(input) if out is None else _table("nonzero")(input, out=out)


def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The different elements (or slices along dim) in ascending order; with inverse indices and counts if asked for."""
    if _overrides((input,)):
        return _overridden(unique, (input,), input, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    if dim is None:
        found = _table("_unique2")(input, sorted, return_inverse, return_counts)
    else:
        found = _table("unique_dim")(input, dim, sorted, return_inverse, return_counts)
    return _chosen(found, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along dim) that differ from the one before; with inverse indices and counts if asked for."""
    if _overrides((input,)):
        return _overridden(unique_consecutive, (input,), input, return_inverse=return_inverse, return_counts=return_counts, dim=dim)
    return _chosen(_table("unique_consecutive")(input, return_inverse, return_counts, dim), return_inverse, return_counts)


def _chosen(found: tuple, inverse: bool, counts: bool) -> Any:
    if not inverse and not counts:
        return found[0]
    return tuple(t for t, wanted in zip(found, (True, inverse, counts), strict=True) if wanted)
