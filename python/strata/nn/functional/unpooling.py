"""The partial inverse of max pooling: values go back to where they came from, all others are 0."""

from __future__ import annotations

from math import prod

from strata import Tensor

from .._ops import has_torch_function_unary, overridden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..modules.utils import Size


def _each(value: Size, rank: int) -> list[int]:
    return list(value) if isinstance(value, (list, tuple)) else [value] * rank


def _unpool(
    name: str, rank: int, input: Tensor, indices: Tensor, kernel_size: Size, stride: Size, padding: Size, output_size
) -> Tensor:
    if input.dim() not in (rank + 1, rank + 2):
        raise RuntimeError(f"{name}: expected input of {rank + 1} or {rank + 2} dims, got shape {list(input.shape)}")
    if tuple(indices.shape) != tuple(input.shape):
        raise RuntimeError(
            f"{name}: expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got "
            f"indices tensor with shape: {list(indices.shape)}"
        )
    if not input.is_floating_point():
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{input.dtype}'; convert the input with .float() first"
        )
    kernel, padding = _each(kernel_size, rank), _each(padding, rank)
    stride = kernel if stride is None or stride == [] else _each(stride, rank)
    if any(s <= 0 for s in stride):
        raise RuntimeError(f"{name}: strides should be greater than zero, but got stride: {stride}")
    sizes = _output_size(name, list(input.shape[-rank:]), kernel, stride, padding, output_size)
    lead = list(input.shape[:-rank])
    places = indices.reshape([*lead, -1])
    flat = input.new_zeros([*lead, prod(sizes)])
    return flat.scatter(-1, places, input.reshape([*lead, -1])).reshape([*lead, *sizes])


def _output_size(name: str, sizes: list[int], kernel, stride, padding, wanted: Sequence[int] | None) -> list[int]:
    rank = len(sizes)
    usual = [(n - 1) * s + k - 2 * p for n, k, s, p in zip(sizes, kernel, stride, padding, strict=True)]
    if wanted is None:
        return usual
    if len(wanted) == rank + 2:
        wanted = wanted[2:]
    if len(wanted) != rank:
        raise ValueError(
            f"{name}: output_size should be a sequence containing {rank} or {rank + 2} elements, got {list(wanted)}"
        )
    for n, given, s in zip(usual, wanted, stride, strict=True):
        if not n - s < given < n + s:
            raise ValueError(
                f"{name}: invalid output_size {list(wanted)}: every size must lie within a stride of {usual}"
            )
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
        return _unpool(function.__name__, rank, input, indices, kernel_size, stride, padding, output_size)

    function.__name__ = function.__qualname__ = f"max_unpool{rank}d"
    function.__doc__ = (
        f"Zeros with the values of input at the indices that max_pool{rank}d(return_indices=True) gave; output_size "
        "chooses among the sizes that pool to the shape of input."
    )
    return function


max_unpool1d, max_unpool2d, max_unpool3d = (_function(rank) for rank in (1, 2, 3))
