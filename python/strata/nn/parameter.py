"""Parameter and Buffer: tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

from collections import OrderedDict

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Parameters of the program's own tensor classes are of these, and marked."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False) is True


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is learned: shares storage with `data`; assigning it to a Module's attribute registers it.

    data: a Tensor, or None for an empty one; one of a class of its own stays of that class. requires_grad: True unless said
    otherwise; RuntimeError from the tensor itself where its dtype cannot carry a gradient, and where `data.detach()` is of another
    class than data.
    """

    # Results of operators on parameters are plain tensors.
    __torch_function__ = strata._C._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = strata.empty(0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter data must be a Tensor or None, but got {type(data).__name__}")
        if type(data) is Tensor or isinstance(data, (cls, Buffer)) and not getattr(data, "_is_param", False):
            return Tensor._make_subclass(cls, data, requires_grad)
        return _parameter_of_its_class(data, requires_grad)

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(memory_format=strata.preserve_format), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto: int) -> tuple:
        from strata._utils import _rebuild_parameter, _rebuild_parameter_with_state

        state = dict(self.__dict__)
        if state:
            return _rebuild_parameter_with_state, (self.data, self.requires_grad, OrderedDict(), state)
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())


def _parameter_of_its_class(data: Any, requires_grad: bool) -> Any:
    made = data.detach().requires_grad_(requires_grad)
    if type(made) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an instance of the same "
            f"type, but return type {type(made).__name__} was found instead. To use the type as a Parameter, please correct the detach() "
            "semantics defined by its __torch_dispatch__() implementation."
        )
    made._is_param = True
    return made


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


_TOO_EARLY = (
    "Attempted to use an uninitialized parameter: a lazy module learns its sizes from its first input. Run one forward "
    "pass (a dry run) before this, or load a state dictionary that holds the parameter"
)
# What works on memory that is not there yet: moves, casts and bookkeeping.
_ALLOWED = frozenset(
    "to cpu half float double bfloat16 type detach requires_grad_ is_floating_point is_complex __hash__ __get__ __set__".split()
)


class UninitializedTensorMixin:
    """A tensor of a lazy module whose size is not known yet; `materialize` gives it one. RuntimeError for its shape."""

    _becomes: type

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Gives it memory of that shape, without values, and makes it an ordinary parameter or buffer."""
        self.data = strata.empty(shape, device=device or self.device, dtype=dtype or self.dtype)
        self.__class__ = self._becomes

    @property
    def shape(self) -> strata.Size:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` to "
            "initialize the parameters before accessing their attributes."
        )

    def numel(self) -> int:
        raise ValueError(_TOO_EARLY)

    def share_memory_(self) -> Any:
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call `forward` first.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(*self._arguments())
        return memo[id(self)]

    def __reduce_ex__(self, proto: int) -> tuple:
        return type(self), self._arguments()

    def _arguments(self) -> tuple:
        """What __new__ makes another such tensor of."""
        return self.requires_grad, self.device, self.dtype

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if getattr(func, "__name__", "") not in _ALLOWED:
            raise ValueError(_TOO_EARLY)
        with strata._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter of a lazy module before its first input."""

    _becomes = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Self:
        return Tensor._make_subclass(cls, strata.empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer of a lazy module before its first input."""

    _becomes = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Self:
        made = Tensor._make_subclass(cls, strata.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        return made

    def _arguments(self) -> tuple:
        return *super()._arguments(), self.persistent


def is_lazy(value: Any) -> bool:
    """Whether it is a parameter or buffer without a size yet."""
    return isinstance(value, UninitializedTensorMixin)
