"""What optimisers outside of this package ask before they update tensors in lists."""

from __future__ import annotations

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from strata import Tensor


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Types of devices whose tensors lists of operators take: any here; this one is always there."""
    return ["cpu"]


_get_fused_kernels_supported_devices = _get_foreach_kernels_supported_devices


def _device_has_foreach_support(device: strata.device) -> bool:
    return device.type != "meta"


def _has_foreach_support(tensors: list[Tensor | None], device: strata.device) -> bool:
    return _device_has_foreach_support(device) and all(t is None or type(t) in (strata.Tensor, strata.nn.Parameter) for t in tensors)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Tensor | None]], with_indices: bool = False
) -> dict[tuple[strata.device, strata.dtype], tuple[list[list[Tensor | None]], list[int]]]:
    """The lists in parts, by device and dtype of the first list's tensors; with the places that they had there."""
    groups: dict = {}
    for i, first in enumerate(tensorlistlist[0]):
        if first is None:
            raise RuntimeError(f"_group_tensors_by_device_and_dtype: expected tensors in the first list, got None at {i}")
        lists, places = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for part, whole in zip(lists, tensorlistlist, strict=True):
            part.append(whole[i])
        if with_indices:
            places.append(i)
    return groups
