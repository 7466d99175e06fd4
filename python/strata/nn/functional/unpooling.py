"""The partial inverse of max pooling: values go back to where they came from, all others are 0."""

from __future__ import annotations

from strata import Tensor

from .. import _ops
from .._ops import has_torch_function_unary, overridden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..modules.utils import Size


def _each(value: Size, rank: int) -> list[int]:
    return list(value) if isinstance(value, (list, tuple)) else [value] * rank


def _output_size(sizes: list[int], kernel, stride, padding, wanted: Sequence[int] | None) -> list[int]:
    rank = len(sizes)
    usual = [(n - 1) * s + k - 2 * p for n, k, s, p in zip(sizes, kernel, stride, padding, strict=True)]
    if wanted is None:
        return usual
    if len(wanted) == rank + 2:
        wanted = wanted[2:]
    if len(wanted) != rank:
        raise ValueError(
            f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a length of "
            f"'{len(wanted)}'"
        )
    for d, (n, given, s) in enumerate(zip(usual, wanted, stride, strict=True)):
        if not n - s < given < n + s:
            raise ValueError(f'invalid output_size "{wanted}" (dim {d} must be between {n - s} and {n + s})')
    return list(wanted)


def _function(rank: int):
    def function(
        input: Tensor,
        indices: Tensor,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        if has_torch_function_unary(input):
            return overridden(function, (input,), locals())
        kernel, pad = _each(kernel_size, rank), _each(padding, rank)
        step = kernel if stride is None or stride == [] else _each(stride, rank)
        if input.dim() <= rank:
            raise RuntimeError(
                f"max_unpool{rank}d: expected input of {rank + 1} or {rank + 2} dims, got shape {list(input.shape)}"
            )
        sizes = _output_size(list(input.shape[-rank:]), kernel, step, pad, output_size)
        if rank == 3:
            return _ops.max_unpool3d(input, indices, sizes, step, pad)
        if rank == 2:
            return _ops.max_unpool2d(input, indices, sizes)
        return _ops.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*sizes, 1]).squeeze(-1)  # columns of one

    function.__name__ = function.__qualname__ = f"max_unpool{rank}d"
    function.__doc__ = (
        f"Zeros with the values of input at the indices that max_pool{rank}d(return_indices=True) gave; output_size "
        "chooses among the sizes that pool to the shape of input."
    )
    return function


max_unpool1d, max_unpool2d, max_unpool3d = (_function(rank) for rank in (1, 2, 3))
