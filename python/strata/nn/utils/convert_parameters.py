"""Parameters as one vector and back."""

from __future__ import annotations

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def _on_one_device(parameters: Iterable[Tensor]) -> list[Tensor]:
    parameters = list(parameters)
    if any(p.device != parameters[0].device for p in parameters):
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return parameters


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters in a row. TypeError where they are on different devices."""
    return strata.cat([parameter.view(-1) for parameter in _on_one_device(parameters)])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes the parameters views of `vec`, in the order of parameters_to_vector.

    TypeError where vec is no Tensor, or the parameters are on different devices.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected strata.Tensor, but got: {strata.typename(vec)}")
    start, parts = 0, []
    for parameter in _on_one_device(parameters):
        end = start + parameter.numel()
        parts.append((parameter, vec[start:end].view_as(parameter).data))
        start = end
    for parameter, part in parts:
        parameter.data = part
