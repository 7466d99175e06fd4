"""Functions of sparse tensors that move elements: to other places, dims or tensors."""

from __future__ import annotations

import strata
from strata import Tensor
from strata._sparse_coo import SparseTensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["cat", "expanded", "held_at", "index_select", "narrow_copy", "permute", "select", "stack", "unsqueeze"]


def _dim(x: SparseTensor, dim: int, extra: int = 0) -> int:
    rank = x.dim() + extra
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return dim % rank


def _coo(x: SparseTensor, what: str) -> SparseTensor:
    if x.layout is not strata.sparse_coo:
        raise NotImplementedError(f"{what}: of a sparse matrix by rows; call it on .to_sparse_coo() or .to_dense()")
    return x


def _sized(x: SparseTensor, dim: int, size: int) -> list[int]:
    return [size if d == dim else n for d, n in enumerate(x.shape)]


def unsqueeze(x: SparseTensor, dim: int) -> SparseTensor:
    """With a dim of one element at `dim`: a sparse one up to behind the last sparse dim, else a dense one."""
    x, dim = _coo(x, "unsqueeze"), _dim(x, dim, 1)
    size, n = list(x.shape), x.sparse_dim()
    size.insert(dim, 1)
    if dim > n:
        return x._like(x._values().unsqueeze(dim - n + 1), size=size)
    indices = x._indices()
    zeros = indices.new_zeros(1, indices.shape[1])
    return x._like(x._values(), strata.cat([indices[:dim], zeros, indices[dim:]]), size)


def permute(x: SparseTensor, *dims: Any) -> SparseTensor:
    """Sparse dims and dense dims in another order, each among themselves."""
    x, n = _coo(x, "permute"), x.sparse_dim()
    order = [_dim(x, d) for d in (dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims)]
    if sorted(order) != list(range(x.dim())):
        raise RuntimeError(f"permute(sparse_coo): expected each of the {x.dim()} dims once, got {order}")
    if sorted(order[:n]) != list(range(n)):
        raise RuntimeError("permute: a sparse tensor's sparse dims stay before its dense dims; call it on .to_dense()")
    values = x._values().permute(0, *(d - n + 1 for d in order[n:]))
    return x._like(values, x._indices()[order[:n]], [x.shape[d] for d in order], order[:n] == list(range(n)) and x.is_coalesced())


def cat(tensors: Any, dim: int = 0) -> SparseTensor:
    """Sparse tensors one after the other along a dim; of a dense dim, values are filled up with zeros."""
    first = tensors[0]
    dim, n = _dim(first, dim), first.sparse_dim()
    total = sum(x.shape[dim] for x in tensors)
    for x in tensors:
        if _sized(x, dim, 0) != _sized(first, dim, 0) or x.sparse_dim() != n:
            raise RuntimeError(f"cat: expected sparse tensors of one size but along dim {dim}, got {list(first.shape)} and {list(x.shape)}")
    indices, values, offset = [], [], 0
    for x in tensors:
        if dim < n:
            shift = x._indices().new_zeros(n, 1)
            shift[dim] = offset
            indices.append(x._indices() + shift)
            values.append(x._values())
        else:
            around = [list(x._values().shape) for _ in range(2)]
            around[0][dim - n + 1], around[1][dim - n + 1] = offset, total - offset - x.shape[dim]
            indices.append(x._indices())
            values.append(strata.cat([x._values().new_zeros(around[0]), x._values(), x._values().new_zeros(around[1])], dim - n + 1))
        offset += x.shape[dim]
    return SparseTensor.make(strata.cat(indices, 1), strata.cat(values), _sized(first, dim, total))


def stack(tensors: Any, dim: int = 0) -> SparseTensor:
    """Sparse tensors of one size along a new dim."""
    dim = _dim(tensors[0], dim, 1)
    if any(x.shape != tensors[0].shape for x in tensors):
        raise RuntimeError(f"stack expects each tensor to be equal size, got {[list(x.shape) for x in tensors]}")
    return cat([unsqueeze(x, dim) for x in tensors], dim)


def index_select(x: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    """The slices along `dim` that a one-dimensional index names, in its order. IndexError outside of the dim."""
    x, dim = _coo(x, "index_select"), _dim(x, dim)
    if not isinstance(index, Tensor) or index.dim() > 1 or index.dtype not in (strata.int64, strata.int32):
        raise IndexError("index_select(): expected a one-dimensional index of int32 or int64")
    index, size = index.reshape(-1).long(), x.shape[dim]
    if bool(((index < -size) | (index >= size)).any()):
        raise IndexError(f"index_select(): index out of range for dim {dim} of size {size}")
    index = index % size if size else index
    if dim >= x.sparse_dim():
        values = x._values().index_select(dim - x.sparse_dim() + 1, index)
        return x._like(values, size=_sized(x, dim, index.numel()))
    # Elements in the order of the dim: those of each slice follow each other.
    places, order = x._indices()[dim].sort(stable=True)
    first = strata.searchsorted(places, index)
    count = strata.searchsorted(places, index, right=True) - first
    to = strata.repeat_interleave(strata.arange(index.numel(), device=index.device), count)
    before = strata.cumsum(count, 0) - count
    taken = order[first[to] + strata.arange(to.numel(), device=to.device) - before[to]]
    indices = x._indices()[:, taken]
    indices[dim] = to
    return x._like(x._values().index_select(0, taken), indices, _sized(x, dim, index.numel()), False)


def held_at(x: SparseTensor, dim: int, begin: int, end: int) -> Tensor:
    """Which of the elements lie at `begin` to before `end` of a sparse dim."""
    places = x._indices()[dim]
    return ((places >= begin) & (places < end)).nonzero()[:, 0]


def select(x: SparseTensor, dim: int, index: int) -> Tensor:
    """One slice along `dim`; dense where no sparse dim is left."""
    x, dim = x.to_sparse_coo(), _dim(x, dim)
    size, n = list(x.shape), x.sparse_dim()
    if not -size[dim] <= index < size[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {size} at dimension {dim}")
    index = index % size.pop(dim)
    if dim >= n:
        return x._like(x._values().select(dim - n + 1, index), size=size)
    kept = held_at(x, dim, index, index + 1)
    values = x._values().index_select(0, kept)
    if n == 1:
        return values.sum(0)
    return x._like(values, x._indices()[[d for d in range(n) if d != dim]].index_select(1, kept), size)


def narrow_copy(x: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    """`length` slices along `dim` from `start` on."""
    x, dim = _coo(x, "narrow_copy"), _dim(x, dim)
    size, n = x.shape[dim], x.sparse_dim()
    start = start + size if start < 0 else start
    if length < 0 or not 0 <= start <= size - length:
        raise RuntimeError(f"narrow_copy(): start ({start}) + length ({length}) exceeds dimension size ({size}).")
    if dim >= n:
        return x._like(x._values().narrow(dim - n + 1, start, length).clone(), size=_sized(x, dim, length))
    kept = held_at(x, dim, start, start + length)
    indices = x._indices().index_select(1, kept)
    indices[dim] -= start
    return x._like(x._values().index_select(0, kept), indices, _sized(x, dim, length))


def expanded(x: SparseTensor, size: Sequence[int]) -> SparseTensor:
    """Broadcast: the elements again for each place of the dims that x lacks or has one element of."""
    while x.dim() < len(size):
        x = unsqueeze(x, 0)
    for dim, n in enumerate(size):
        if x.shape[dim] == n:
            continue
        if dim < x.sparse_dim():
            x = index_select(x, dim, strata.zeros(n, dtype=strata.int64, device=x.device))
        else:
            shape = list(x._values().shape)
            shape[dim - x.sparse_dim() + 1] = n
            x = x._like(x._values().expand(shape), size=_sized(x, dim, n))
    return x
