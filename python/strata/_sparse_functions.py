"""What functions and operators do with sparse tensors: by the function's name."""

from __future__ import annotations

import strata
from strata import Tensor
from strata import _sparse_places as _places
from strata._sparse_coo import SparseTensor, _flat, at, from_dense
from strata._sparse_products import _sparse, matmul, mul_held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["HANDLED"]


def addmm(input: Tensor, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * mat1 @ mat2."""
    product = matmul(mat1, mat2)
    return add(product * alpha if alpha != 1 else product, input * beta if beta != 1 else input)


def add(a: Any, b: Any, *, alpha: Any = 1) -> Tensor:
    """a + alpha * b. Both sparse: sparse; one dense tensor: dense. RuntimeError for numbers, which would fill all places."""
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        raise RuntimeError("add: a sparse tensor and a number: the sum would be dense; call .to_dense() first")
    if alpha != 1:
        b = mul(b, alpha) if _sparse(b) else b * alpha
    if not (_sparse(a) and _sparse(b)):
        return (a.to_dense() if _sparse(a) else a) + (b.to_dense() if _sparse(b) else b)
    if a.shape != b.shape or a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(f"add: expected sparse tensors of one size, got {list(a.shape)} and {list(b.shape)}")
    indices = strata.cat([a._indices(), b._indices()], 1)
    found = SparseTensor.make(indices, strata.cat([a._values(), b._values()]), a.shape).coalesce()
    return found.to_sparse_csr() if a.layout is b.layout is strata.sparse_csr else found


def sub(a: Any, b: Any, *, alpha: Any = 1) -> Tensor:
    return add(a, b, alpha=-alpha)


def rsub(a: Any, b: Any, *, alpha: Any = 1) -> Tensor:
    return sub(b, a, alpha=alpha)


def mul(a: Any, b: Any) -> Tensor:
    """Elementwise, with a number or a tensor that broadcasts; sparse: what is not held stays 0."""
    if not _sparse(a):
        a, b = b, a
    if not isinstance(b, Tensor) or not (b.dim() or _sparse(b)):
        return a._like(a._values() * b)
    size = strata.broadcast_shapes(a.shape, b.shape)
    if _sparse(b) and not a.shape == b.shape == size:
        raise NotImplementedError(f"mul: sparse tensors of sizes {list(a.shape)} and {list(b.shape)}; call .to_dense() on one of them")
    if _sparse(b):
        return mul_held(a, b)
    a = a if a.shape == size else _places.expanded(a.to_sparse_coo(), size)
    # A row of indices for each sparse dim that b has; the others broadcast.
    lacks, n = a.dim() - b.dim(), a.sparse_dim()
    rows = [row if b.shape[d - lacks] > 1 else strata.zeros_like(row) for d, row in enumerate(a._indices()) if d >= lacks]
    return a._like(a._values() * (b[tuple(rows)] if n > lacks else b))


def div(a: Any, b: Any, *, rounding_mode: Any = None) -> Tensor:
    """By a number, or a tensor of one element."""
    if not _sparse(a) or (isinstance(b, Tensor) and b.dim()):
        raise NotImplementedError("div: of sparse tensors by numbers alone; call .to_dense()")
    return a._like(a._values().div(b, rounding_mode=rounding_mode))


def _of_values(name: str) -> Callable:
    """A function that leaves zeros zeros, of each element."""

    def function(x: SparseTensor, *args: Any, **kwargs: Any) -> Tensor:
        x = x.coalesce() if x.layout is strata.sparse_coo else x
        return x._like(getattr(x._values(), name)(*args, **kwargs))

    return function


def _wrapped(dim: Any, rank: int) -> list[int]:
    """The dims that an argument names, each from 0, in order."""
    if not isinstance(dim, (int, tuple, list)):
        raise TypeError(f"sum(): argument 'dim' must be tuple of ints, not {type(dim).__name__}")
    found: list[int] = []
    for d in [dim] if isinstance(dim, int) else dim:
        if not -rank <= d < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {d})")
        if d % rank in found:
            raise RuntimeError(f"dim {d % rank} appears multiple times in the list of dims")
        found.append(d % rank)
    return sorted(found)


def sum_(x: SparseTensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The sum of all, dense; over dims: sparse, or dense where no sparse dim is left."""
    if not isinstance(x, SparseTensor):
        raise TypeError(f"sum: argument input: expected a sparse tensor, got {type(x).__name__}; call .to_sparse()")
    x = x if dtype is None else x.to(dtype)
    if dim is None:
        return x._values().sum()
    dims = _wrapped(dim, x.dim())
    if keepdim:
        found = sum_(x, dims)
        for d in dims:
            found = found.unsqueeze(d)
        return found
    n = x.sparse_dim()
    values, size = x._values(), [s for d, s in enumerate(x.shape) if d not in dims]
    inner = [d - n + 1 for d in dims if d >= n]
    values = values.sum(inner) if inner else values
    left = [d for d in range(n) if d not in dims]
    if not left:
        return values.sum(0)
    return SparseTensor.make(x._indices()[left], values, size, x.is_coalesced() and len(left) == n).coalesce()


def softmax(x: SparseTensor, dim: int, dtype: Any = None, log: bool = False) -> SparseTensor:
    """softmax over the elements that are held, along a sparse dim."""
    x = (x if dtype is None else x.to(dtype)).coalesce()
    dim = dim % x.dim()
    if dim >= x.sparse_dim() or x.dense_dim():
        raise NotImplementedError("softmax: of a sparse tensor without dense dims; call .to_dense()")
    others = [d for d in range(x.sparse_dim()) if d != dim]
    groups = _flat(x._indices()[others], [x.shape[d] for d in others])
    _, group = strata.unique(groups, return_inverse=True)
    count = int(group.max()) + 1 if group.numel() else 0
    values = x._values()
    highest = values.detach().new_full((count,), -strata.inf).scatter_reduce(0, group, values.detach(), "amax")
    shifted = values - highest.index_select(0, group)
    total = shifted.new_zeros(count).index_add_(0, group, shifted.exp()).index_select(0, group)
    return x._like(shifted - total.log() if log else shifted.exp() / total)


def norm(x: SparseTensor, p: Any = "fro", dim: Any = None, **_: Any) -> Tensor:
    """Of all elements."""
    if dim is not None:
        raise NotImplementedError("norm: of all elements of a sparse tensor alone; call .to_dense()")
    return strata.norm(x.coalesce()._values() if x.layout is strata.sparse_coo else x._values(), p)


def any_(x: SparseTensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Of all elements."""
    if dim is not None or keepdim:
        raise NotImplementedError("any: of all elements of a sparse tensor alone; call .to_dense()")
    return x._values().any()


def bmm(a: Any, b: Any) -> Tensor:
    """A batch of sparse matrices times one of dense matrices; dense."""
    if not _sparse(a) or _sparse(b) or a.dim() != 3 or b.dim() != 3 or a.sparse_dim() != 3:
        raise RuntimeError("bmm: expected a batch of sparse matrices and one of dense matrices; call .to_dense() on others")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(f"bmm: expected (b, n, m) and (b, m, p), got {list(a.shape)} and {list(b.shape)}")
    one, row, column = a._indices()
    found = b.new_zeros(a.shape[0] * a.shape[1], b.shape[2]).index_add_(0, one * a.shape[1] + row, a._values().unsqueeze(1) * b[one, column])
    return found.reshape(a.shape[0], a.shape[1], b.shape[2])


def hspmm(mat1: SparseTensor, mat2: Tensor) -> SparseTensor:
    """mat1 @ mat2 with the rows that mat1 has elements of as values."""
    rows = strata.unique(mat1._indices()[0])
    product = matmul(mat1, mat2)
    return SparseTensor.make(rows.unsqueeze(0), product.index_select(0, rows), product.shape)


def smm(mat1: SparseTensor, mat2: Tensor) -> SparseTensor:
    """mat1 @ mat2, sparse."""
    return from_dense(matmul(mat1, mat2))


def sspaddmm(input: SparseTensor, mat1: SparseTensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> SparseTensor:
    """beta * input + alpha * mat1 @ mat2, sparse."""
    return add(mul(input, beta), mul(smm(mat1, mat2), alpha))


def _into_dense(x: Tensor, s: SparseTensor, alpha: Any) -> Tensor:
    """x += alpha * s, at the places that s holds."""
    if x.shape != s.shape:
        raise RuntimeError(f"add_: expected a sparse tensor of the dense one's size {list(x.shape)}, got {list(s.shape)}")
    return x.index_put_(tuple(s._indices()), (s._values() * alpha).to(x.dtype), accumulate=True)


def _in_place(name: str) -> Callable:
    """A sparse tensor takes the parts of what the function gives; a dense one its values."""

    def function(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not _sparse(x):
            if name in ("add", "sub"):
                alpha = kwargs.get("alpha", 1)
                return _into_dense(x, args[0], alpha if name == "add" else -alpha)
            return x.copy_(HANDLED[name](x, *args, **kwargs).to_dense())
        found = HANDLED[name](x, *args, **kwargs)
        if not _sparse(found) or found.shape != x.shape or found.layout is not x.layout:
            raise RuntimeError(f"{name}_: the result has another layout or size than the sparse tensor that it should be written to")
        if x.requires_grad and x.is_leaf and strata.is_grad_enabled():
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        return _take_parts(x, found if found.dtype == x.dtype else found.to(x.dtype))

    return function


def _take_parts(x: SparseTensor, other: SparseTensor) -> SparseTensor:
    for part in ("indices", "values", "size", "coalesced", "crow"):
        if hasattr(other, f"_sparse_{part}"):
            setattr(x, f"_sparse_{part}", getattr(other, f"_sparse_{part}"))
    return x


def copy_(x: Any, other: Any, non_blocking: bool = False) -> Any:
    """Of a sparse tensor to a sparse one of its size."""
    if not (_sparse(x) and _sparse(other)) or x.shape != other.shape or x.layout is not other.layout:
        raise RuntimeError("copy_() between dense and sparse tensors, or others than of one size, is not provided; call .to_dense() or .to_sparse()")
    return _take_parts(x, other.to(x.dtype).clone())


def sparse_mask(x: Tensor, mask: SparseTensor) -> SparseTensor:
    """The elements of x where the mask holds one."""
    mask = mask.coalesce()
    return mask._like(at(x, mask._indices()))


def zeros_like(x: SparseTensor, **_: Any) -> SparseTensor:
    return x._like(x._values()[:0].detach(), x._indices()[:, :0], x.shape)


def equal(a: Any, b: Any) -> bool:
    return strata.equal(a.to_dense(), b.to_dense())


HANDLED: dict[str, Callable] = {
    "mm": matmul, "matmul": matmul, "__matmul__": matmul, "spmm": matmul, "mv": matmul, "dot": matmul, "bmm": bmm,
    "hspmm": hspmm, "smm": smm, "sspaddmm": sspaddmm,
    "addmm": addmm, "_sparse_addmm.default": addmm, "add": add, "__add__": add, "__radd__": lambda a, b: add(b, a), "sub": sub, "rsub": rsub, "mul": mul,
    "multiply": mul, "div": div, "true_divide": div, "__truediv__": div, "sum": sum_,
    "floor_divide": lambda a, b: div(a, b, rounding_mode="floor"), "__floordiv__": lambda a, b: div(a, b, rounding_mode="floor"),
    "cat": _places.cat, "concat": _places.cat, "stack": _places.stack, "index_select": _places.index_select,
    "select": _places.select, "narrow_copy": _places.narrow_copy, "permute": _places.permute, "unsqueeze": _places.unsqueeze,
    "hstack": lambda tensors: _places.cat(tensors, 1 if tensors[0].dim() > 1 else 0), "vstack": _places.cat,
    "norm": norm, "sparse_mask": sparse_mask, "zeros_like": zeros_like, "empty_like": zeros_like, "equal": equal, "softmax": softmax,
    "item": lambda x: x.to_dense().item(),
    "any": any_, "copy_": copy_, "conj": lambda x: x._like(x._values().conj()),
    "t": SparseTensor.t, "transpose": SparseTensor.transpose, "to_dense": SparseTensor.to_dense,
    "to_sparse": SparseTensor.to_sparse, "clone": SparseTensor.clone, "detach": SparseTensor.detach,
    "numel": SparseTensor.numel, "is_floating_point": SparseTensor.is_floating_point, "is_complex": SparseTensor.is_complex,
    "is_same_size": lambda a, b: a.shape == b.shape, "is_meta": lambda x: False,
    "log_softmax": lambda x, dim, dtype=None: softmax(x, dim, dtype, log=True),
}  # fmt: skip
HANDLED["neg"] = HANDLED["negative"] = lambda x: mul(x, -1)
# What leaves zeros zeros.
_OF_VALUES = """abs absolute asin asinh atan atanh ceil conj_physical deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf
    log1p nan_to_num positive pow rad2deg relu round sgn sign signbit sin sinh sqrt square tan tanh trunc"""
for _name in _OF_VALUES.split():
    HANDLED[_name] = _of_values(_name)
for _name in "half bfloat16 int bool short char byte cfloat cdouble".split():
    HANDLED[_name] = lambda x, name=_name: x._like(getattr(x._values(), name)())
for _name in [*_OF_VALUES.split(), "add", "sub", "mul", "div", "neg", "floor_divide"]:
    HANDLED[_name + "_"] = _in_place(_name)
for _name in ("add", "sub", "mul"):
    HANDLED[f"__i{_name}__"] = HANDLED[_name + "_"]
HANDLED["__itruediv__"] = HANDLED["div_"]
