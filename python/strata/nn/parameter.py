"""Parameter and Buffer: tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

from collections import OrderedDict

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

__all__ = ["Buffer", "Parameter"]


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: OrderedDict) -> Parameter:
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: OrderedDict, state: dict
) -> Parameter:
    parameter = Parameter(data, requires_grad)
    parameter.__dict__.update(state)
    return parameter


class Parameter(Tensor):
    """A tensor that is learned: shares storage with `data`; assigning it to a Module's attribute registers it.

    data: a Tensor, or None for an empty one. requires_grad: True unless said otherwise; RuntimeError from the tensor
    itself where its dtype cannot carry a gradient.
    """

    # Results of operators on parameters are plain tensors.
    __torch_function__ = strata._C._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = strata.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter data must be a Tensor or None, but got {type(data).__name__}")
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(memory_format=strata.preserve_format), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto: int) -> tuple:
        state = dict(self.__dict__)
        if state:
            return _rebuild_parameter_with_state, (self.data, self.requires_grad, OrderedDict(), state)
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())


def _rebuild_buffer(data: Tensor, persistent: bool) -> Buffer:
    return Buffer(data, persistent=persistent)


class Buffer(Tensor):
    """A tensor that belongs to a Module's state and is not learned: shares storage with `data`.

    persistent: False keeps it out of `state_dict`.
    """

    __torch_function__ = strata._C._disabled_torch_function_impl
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        if data is None:
            data = strata.empty(0)
        buffer = Tensor._make_subclass(cls, data.detach(), data.requires_grad)
        buffer.persistent = persistent
        return buffer

    def __deepcopy__(self, memo: dict) -> Buffer:
        if id(self) in memo:
            return memo[id(self)]
        data = self.data.clone(memory_format=strata.preserve_format)
        result = type(self)(data.requires_grad_(self.requires_grad), persistent=self.persistent)
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, proto: int) -> tuple:
        return _rebuild_buffer, (self.data, self.persistent)
