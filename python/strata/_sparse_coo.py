"""Sparse tensors in coordinate format: a tensor of which only `values` at `indices` are held, all else is 0.

A Python subclass over dense operators. What it does not define raises NotImplementedError: nothing computes with the
object as if it were dense. Gradients reach the values, and dense operands.
"""

from __future__ import annotations

import math

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["SparseTensor", "from_dense", "sparse_coo_tensor"]


class SparseTensor(Tensor):
    """Shape and dtype are its own; values (nnz, dense dims) stand at the columns of indices (sparse dims, nnz), int64."""

    layout = property(lambda self: strata.sparse_coo)
    is_sparse = True
    is_sparse_csr = False

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{cls.__name__}: it has no constructor; use sparse_coo_tensor, sparse_csr_tensor, to_sparse() or to_sparse_csr()")

    @staticmethod
    def make(indices: Tensor, values: Tensor, size: Sequence[int], coalesced: bool = False, kind: type | None = None) -> SparseTensor:
        """The tensor of parts that fit each other."""
        # The carrier has the shape and no memory of its own. It is NaN, should anything read it.
        fill = math.nan if values.dtype.is_floating_point or values.dtype.is_complex else 1
        blank = strata.full((), fill, dtype=values.dtype, device=values.device).expand(tuple(size))
        made = Tensor._make_subclass(kind or SparseTensor, blank, False)
        made._sparse_indices, made._sparse_values = indices, values
        made._sparse_size = strata.Size(size)
        made._sparse_coalesced = coalesced
        return made

    def _like(self, values: Tensor, indices: Tensor | None = None, size: Any = None, coalesced: bool | None = None) -> SparseTensor:
        return SparseTensor.make(
            self._sparse_indices if indices is None else indices, values, self._sparse_size if size is None else size,
            self._sparse_coalesced if coalesced is None else coalesced,
        )  # fmt: skip

    @classmethod
    def __torch_function__(cls, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        from strata import _sparse_functions

        name = func.__self__.__name__ if getattr(func, "__name__", "") == "__get__" else getattr(func, "__name__", str(func))
        handler = _sparse_functions.HANDLED.get(name)
        if handler is None:
            raise NotImplementedError(f"{name}: not provided for sparse tensors; call it on .to_dense()")
        return handler(*args, **(kwargs or {}))

    def tolist(self) -> Any:
        raise NotImplementedError("tolist: not provided for sparse tensors; call it on .to_dense()")

    def as_subclass(self, cls: type) -> Any:
        raise NotImplementedError("as_subclass: not provided for sparse tensors; call it on .to_dense()")

    def _of_no_memory(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("a sparse tensor has no memory of its own: take that of its indices and values, or of to_dense()")

    data_ptr = storage = untyped_storage = _of_no_memory

    # ---- what it is
    shape = property(lambda self: self._sparse_size)
    dtype = property(lambda self: self._sparse_values.dtype)
    device = property(lambda self: self._sparse_values.device)
    ndim = property(lambda self: len(self._sparse_size))
    requires_grad = property(lambda self: self._sparse_values.requires_grad)
    grad_fn = property(lambda self: self._sparse_values.grad_fn)
    is_leaf = property(lambda self: self._sparse_values.is_leaf)
    T = property(lambda self: self.t())
    data = property(lambda self: self.detach())

    @property
    def grad(self) -> Any:
        """The gradient of the values, at their indices."""
        grad = self._sparse_values.grad
        if grad is None or self._sparse_coalesced:
            return None if grad is None else self._like(grad)
        # Values of one place have one gradient, which is that of the place.
        places, inverse = strata.unique(_flat(self._sparse_indices, self._sparse_size[: self.sparse_dim()]), return_inverse=True)
        values = grad.new_zeros((places.shape[0], *grad.shape[1:])).index_copy_(0, inverse, grad)
        return self._like(values, _unflat(places, self._sparse_size[: self.sparse_dim()]), coalesced=True)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._sparse_values.grad = None if value is None else value._sparse_values

    def size(self, dim: int | None = None) -> Any:
        return self._sparse_size if dim is None else self._sparse_size[dim]

    def dim(self) -> int:
        return len(self._sparse_size)

    def numel(self) -> int:
        return self._sparse_size.numel()

    def __len__(self) -> int:
        return self._sparse_size[0]

    def sparse_dim(self) -> int:
        """How many dims have indices."""
        return self._sparse_indices.shape[0]

    def dense_dim(self) -> int:
        """How many dims each value has."""
        return self._sparse_values.dim() - 1

    def is_coalesced(self) -> bool:
        """Whether indices are in order, each once."""
        return self._sparse_coalesced

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def _nnz(self) -> int:
        return self._sparse_values.shape[0]

    def _indices(self) -> Tensor:
        return self._sparse_indices

    def _values(self) -> Tensor:
        return self._sparse_values

    def indices(self) -> Tensor:
        """Where the values stand, (sparse dims, nnz). RuntimeError where a place may occur twice."""
        return self._of_coalesced("indices", self._sparse_indices)

    def values(self) -> Tensor:
        """The values, (nnz, dense dims). RuntimeError where a place may occur twice."""
        return self._of_coalesced("values", self._sparse_values)

    def _of_coalesced(self, what: str, part: Tensor) -> Tensor:
        if not self._sparse_coalesced:
            raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")
        return part

    # ---- other forms
    def coalesce(self) -> SparseTensor:
        """Indices in order, each once, with the sums of their values."""
        if self._sparse_coalesced:
            return self
        sizes = self._sparse_size[: self.sparse_dim()]
        places, inverse = strata.unique(_flat(self._sparse_indices, sizes), sorted=True, return_inverse=True)
        shape = (places.shape[0], *self._sparse_values.shape[1:])
        values = self._sparse_values.new_zeros(shape).index_add_(0, inverse, self._sparse_values)
        return self._like(values, _unflat(places, sizes), coalesced=True)

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        """Says whether indices are in order, each once, which is not looked at."""
        self._sparse_coalesced = bool(coalesced)
        return self

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense tensor; values of one place add."""
        sizes = self._sparse_size[: self.sparse_dim()]
        total = sizes.numel() if sizes else 1
        rest = self._sparse_values.shape[1:]
        flat = self._sparse_values.new_zeros((total, *rest))
        found = flat.index_add_(0, _flat(self._sparse_indices, sizes), self._sparse_values).reshape(self._sparse_size)
        return found if dtype is None else found.to(dtype)

    def to_sparse(self, sparse_dim: int | None = None, *, layout: Any = None, **_: Any) -> Tensor:
        """Itself, or the tensor in another layout."""
        if layout is strata.sparse_csr:
            return self.to_sparse_csr()
        return self if sparse_dim in (None, self.sparse_dim()) else from_dense(self.to_dense(), sparse_dim)

    def to_sparse_coo(self) -> SparseTensor:
        return self

    def to_sparse_csr(self, dense_dim: int | None = None) -> Tensor:
        """A matrix by rows."""
        from strata._sparse_csr import from_coo

        return from_coo(self)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """With values of another dtype, or on another device."""
        values = self._sparse_values.to(*args, **kwargs)
        return self if values is self._sparse_values else self._like(values, self._sparse_indices.to(values.device))

    def type(self, dtype: Any = None) -> Any:
        if dtype is None:
            return self._sparse_values.type().replace(".", ".sparse.", 1)
        return self._like(self._sparse_values.type(dtype))

    def float(self) -> SparseTensor:
        return self.to(strata.float32)

    def double(self) -> SparseTensor:
        return self.to(strata.float64)

    def long(self) -> SparseTensor:
        return self.to(strata.int64)

    def cpu(self) -> SparseTensor:
        return self.to("cpu")

    def clone(self, **_: Any) -> SparseTensor:
        return self._like(self._sparse_values.clone(), self._sparse_indices.clone())

    def detach(self) -> SparseTensor:
        return self._like(self._sparse_values.detach())

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        self._sparse_values.requires_grad_(requires_grad)
        return self

    def backward(self, gradient: Any = None, **kwargs: Any) -> None:
        """Backward from the values; gradient: a dense or sparse tensor of this shape."""
        if gradient is not None:
            gradient = at(gradient, self._sparse_indices)
        self._sparse_values.backward(gradient, **kwargs)

    # ---- computing
    def t(self) -> SparseTensor:
        """The matrix transposed."""
        return self.transpose(0, 1) if self.dim() > 1 else self

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two sparse dims exchanged."""
        a, b = dim0 % self.dim(), dim1 % self.dim()
        if max(a, b) >= self.sparse_dim():
            raise NotImplementedError("transpose: of dense dims of a sparse tensor; call it on .to_dense()")
        order, size = list(range(self.sparse_dim())), list(self._sparse_size)
        order[a], order[b] = b, a
        size[a], size[b] = size[b], size[a]
        return self._like(self._sparse_values, self._sparse_indices[order], size, False)

    def zero_(self) -> SparseTensor:
        with strata.no_grad():
            self._sparse_indices = self._sparse_indices[:, :0]
            self._sparse_values = self._sparse_values[:0]
        return self

    def __getitem__(self, index: Any) -> Any:
        from strata._sparse_places import select

        found: Any = self
        for at in index if isinstance(index, tuple) else (index,):
            if not isinstance(at, int) or isinstance(at, bool):
                raise NotImplementedError("a sparse tensor takes ints as its indices; call .to_dense() for others")
            if found.dim() == 0:
                raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
            found = select(found, 0, at) if isinstance(found, SparseTensor) else found[at]
        return found

    def sparse_resize_(self, size: Any, sparse_dim: int, dense_dim: int) -> SparseTensor:
        """At least as large, with the elements that it has."""
        if (sparse_dim, dense_dim) != (self.sparse_dim(), self.dense_dim()) or any(
            n < m for n, m in zip(size, self._sparse_size, strict=True)
        ):
            raise RuntimeError(f"sparse_resize_: expected a size of at least {list(self._sparse_size)} and as many dims of each kind")
        if list(size[sparse_dim:]) != list(self._sparse_values.shape[1:]):
            raise NotImplementedError("sparse_resize_: of dense dims; call .to_dense()")
        self._sparse_size = strata.Size(size)
        return self

    def __deepcopy__(self, memo: dict) -> SparseTensor:
        if id(self) not in memo:
            values = self._sparse_values.detach().clone().requires_grad_(self.requires_grad)
            memo[id(self)] = self._like(values, self._sparse_indices.clone())
        return memo[id(self)]

    def __reduce_ex__(self, protocol: int) -> tuple:
        from strata._utils import _rebuild_sparse_tensor

        parts = (self._sparse_indices, self._sparse_values, self._sparse_size, self._sparse_coalesced)
        return _rebuild_sparse_tensor, (strata.sparse_coo, parts)

    def __repr__(self, **_: Any) -> str:
        return _text(self, {"indices": self._sparse_indices})

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __hash__(self) -> int:
        return id(self)


def _text(x: Any, places: dict[str, Tensor]) -> str:
    """As PyTorch prints sparse tensors."""
    from strata._tensor_str import _contents

    parts = {**places, "values": x._sparse_values.detach()}
    shown = []
    for name, part in parts.items():
        size = "" if part.numel() else f", size={tuple(part.shape)}"
        text = f"tensor({'[]' if size else _contents(part, len('tensor('))}{size})"
        shown.append(f"{name}={text}".replace("\n", "\n" + " " * (8 + len(name))))
    dtype = "" if x.dtype in (strata.float32, strata.int64, strata.bool) else f", dtype={x.dtype}"
    grad = ", requires_grad=True" if x.requires_grad and x.is_leaf else ""
    grad = f", grad_fn=<{type(x.grad_fn).__name__}>" if x.grad_fn is not None else grad
    tail = f"size={tuple(x.shape)}, nnz={x._nnz()}"
    if x.layout is strata.sparse_csr:
        return f"tensor({(',' + chr(10) + ' ' * 7).join(shown)}, {tail}{dtype},\n       layout={x.layout}{grad})"
    return f"tensor({(',' + chr(10) + ' ' * 7).join(shown)},\n       {tail}{dtype}, layout={x.layout}{grad})"


def _flat(indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """Indices of several dims as places in row-major order."""
    places = strata.zeros(indices.shape[1], dtype=strata.int64, device=indices.device)
    for row, size in zip(indices, sizes, strict=True):
        places = places * size + row
    return places


def _unflat(places: Tensor, sizes: Sequence[int]) -> Tensor:
    rows = []
    for size in reversed(sizes):
        rows.append(places % size)
        places = places.div(size, rounding_mode="floor")
    return strata.stack(rows[::-1]) if rows else places.new_empty((0, places.shape[0]))


def at(dense: Any, indices: Tensor) -> Tensor:
    """The elements of a tensor at indices of its first dims, (nnz, other dims)."""
    dense = dense.to_dense() if isinstance(dense, SparseTensor) else dense
    sizes = dense.shape[: indices.shape[0]]
    return dense.reshape(sizes.numel() if sizes else 1, *dense.shape[indices.shape[0] :]).index_select(0, _flat(indices, sizes))


def from_dense(dense: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """The elements of a dense tensor that are not 0; sparse_dim: how many dims, from the left, get indices."""
    sparse_dim = dense.dim() if sparse_dim is None else sparse_dim
    if not 0 <= sparse_dim <= dense.dim() or (dense.dim() and not sparse_dim):
        raise RuntimeError(f"to_sparse: expected 0 < sparse_dim <= {dense.dim()}, got {sparse_dim}")
    found = dense.detach() != 0
    if sparse_dim < dense.dim():
        found = found.flatten(sparse_dim).any(-1)
    indices = found.nonzero().t().contiguous()
    return SparseTensor.make(indices, at(dense, indices), dense.shape, True)


def _as_values(values: Any, dtype: Any, device: Any) -> Tensor:
    if isinstance(values, Tensor):
        return values.to(device=device or values.device, dtype=dtype or values.dtype)
    return strata.tensor(values, dtype=dtype, device=device)


def check_indices(indices: Tensor, size: Sequence[int]) -> None:
    """RuntimeError for indices outside of the size."""
    for d, row in enumerate(indices):
        if not row.numel():
            continue
        if int(row.min()) < 0:
            raise RuntimeError(f"found negative index {int(row.min())} for dim {d}")
        if int(row.max()) >= size[d]:
            raise RuntimeError(f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {int(row.max())}")


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
    pin_memory: bool = False,
) -> SparseTensor:
    """A sparse tensor with `values` (nnz, dense dims) at the columns of `indices` (sparse dims, nnz); what occurs twice adds.

    size: by default just large enough. With sizes alone, sparse_coo_tensor((2, 3)), an empty one. Gradients reach `values`;
    requires_grad makes the result a leaf with a sparse gradient. RuntimeError where the parts do not fit.
    """
    if values is None and (size is not None or not isinstance(indices, Tensor)):
        size = indices if size is None else size
        if not isinstance(size, (tuple, list)):
            raise TypeError(f"sparse_coo_tensor(): argument 'size' must be tuple of ints, not {type(size).__name__}")
        indices = strata.empty((len(size), 0), dtype=strata.int64, device=device)
        values = strata.empty(0, dtype=dtype, device=device)
    values = _as_values(values, dtype, device)
    indices = strata.as_tensor(indices, device=values.device).long()
    if indices.dim() == 1 and not indices.numel():
        indices = indices.reshape(0, 0)
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    values = values if values.dim() else values.expand(indices.shape[1])
    if values.shape[0] != indices.shape[1]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: {values.shape[0]}"
        )
    if size is None:
        size = [int(row.max()) + 1 if row.numel() else 0 for row in indices] + list(values.shape[1:])
    size = [int(n) for n in size]
    if len(size) != indices.shape[0] + values.dim() - 1:
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({indices.shape[0]}) + dense_dim ({values.dim() - 1}), but got {len(size)}"
        )
    check_indices(indices, size)
    if requires_grad:
        values = values.detach().clone().requires_grad_()
    return SparseTensor.make(indices, values, size, bool(is_coalesced))


