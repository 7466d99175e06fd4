"""FakeTensorMode: factories and operators give tensors that have shapes, dtypes and devices, and no memory.

A FakeTensor wraps a tensor of the device "meta", with which operators run, and says that it is on the device that was asked for,
so that programs for any device can be run over shapes: how large is a model, which shapes does it make, where does it fail.
"""

from __future__ import annotations

import strata
from strata import _C, Tensor, ops
from strata._patching import Patches
from strata.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from strata.utils._pytree import tree_leaves, tree_map_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
    "is_fake",
]


class UnsupportedFakeTensorException(RuntimeError):
    """An operator has no shape-only form."""


class DynamicOutputShapeException(RuntimeError):
    """The size of what an operator gives depends on values. func: the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(f"{func}: the size of its result depends on values, which a FakeTensor has not")
        self.func = func


class DataDependentOutputException(RuntimeError):
    """A value of a FakeTensor was asked for. func: by what."""

    def __init__(self, func: Any) -> None:
        super().__init__(f"{func}: a FakeTensor has no values")
        self.func = func


def is_fake(value: object) -> bool:
    """Whether it is a FakeTensor."""
    return isinstance(value, FakeTensor)


def _reader(name: str) -> Any:
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise DataDependentOutputException(f"Tensor.{name}")

    read.__name__ = name
    return read


class FakeTensor(Tensor):
    """Made by a FakeTensorMode. fake_mode, fake_device: of which, and where it would be."""

    fake_mode: FakeTensorMode
    fake_device: Any
    _elem: Tensor
    __torch_function__ = _C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls: Any, fake_mode: FakeTensorMode, elem: Tensor, device: Any) -> Any:
        device = _indexed(strata.device(device))
        made = Tensor._make_wrapper_subclass(
            cls, elem.shape, strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype, device=device, requires_grad=elem.requires_grad
        )  # fmt: skip
        made.fake_mode, made.fake_device, made._elem = fake_mode, device, elem.detach()
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        mode = next(leaf.fake_mode for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, FakeTensor))
        return mode.run(func, args, kwargs or {})

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        parts = ["..."]
        if self.fake_device.type != "cpu":
            parts.append(f"device='{self.fake_device}'")
        parts.append(f"size={tuple(self.shape)}")
        if self.dtype not in (strata.get_default_dtype(), strata.bool):
            parts.append(f"dtype={self.dtype}")
        if self.grad_fn is not None:
            parts.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        shown = f"FakeTensor({', '.join(parts)})"
        return f"Parameter({shown})" if getattr(self, "_is_param", False) else shown

    def __deepcopy__(self, memo: dict) -> FakeTensor:
        made: Any = FakeTensor(self.fake_mode, self._elem.clone(), self.fake_device).requires_grad_(self.requires_grad)
        if getattr(self, "_is_param", False):
            made._is_param = True
        memo[id(self)] = made
        return made

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def data_ptr(self) -> int:
        return 0

    @property
    def is_meta(self) -> bool:  # type: ignore[override]
        return self.fake_device.type == "meta"


for _name in "item tolist __bool__ __int__ __float__ __complex__ __index__ is_nonzero equal allclose".split():
    setattr(FakeTensor, _name, _reader(_name))


def _indexed(device: Any) -> Any:
    """A device as its tensors say it: other devices than the CPU have a number."""
    return device if device.type in ("cpu", "meta") or device.index is not None else strata.device(device.type, 0)


# Operators whose second argument may be on any device.
_SECOND_ANYWHERE = frozenset(
    f"aten::{name}" for name in "copy_ copy slice_scatter diagonal_scatter index index_put index_put_ _unsafe_index_put resize_as_".split()
)

# Functions that make tensors of Python's data, and no operators: the tensor that they make is turned into a fake one.
_MAKERS = ("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "scalar_tensor")


def _made_fake(make: Any) -> Any:
    """Such a function, in which the thread's mode is asked."""

    def made(*args: Any, **kwargs: Any) -> Any:
        found = make(*args, **kwargs)
        modes = _C._dispatch_modes()
        new = isinstance(found, Tensor) and not isinstance(found, FakeTensor) and not any(found is a for a in args)
        return modes[-1].from_tensor(found) if new and modes and isinstance(modes[-1], FakeTensorMode) else found

    return made


class FakeTensorMode(TorchDispatchMode):
    """A context in which what is made and computed is a FakeTensor.

    allow_non_fake_inputs: tensors with memory that meet fake ones are taken by their shape; else AssertionError. Writing to such
    a tensor always raises. RuntimeError for what depends on values (DynamicOutputShapeException, DataDependentOutputException).
    shape_env (symbolic sizes) is not there: NotImplementedError.
    """

    def __init__(self, *, allow_fallback_kernels: bool = True, allow_non_fake_inputs: bool = False, shape_env: Any = None, static_shapes: bool | None = None, **_: Any) -> None:
        if shape_env is not None:
            raise NotImplementedError("FakeTensorMode: shape_env is not there: sizes are numbers")
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.static_shapes = True
        self._patches: list[Patches] = []

    def __enter__(self) -> FakeTensorMode:
        self._patches.append(Patches())
        self._patches[-1].__enter__()
        for name in _MAKERS:
            self._patches[-1].put(strata, name, lambda name=name: _made_fake(getattr(strata, name)))
        super().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._patches.pop().__exit__(*exception)

    def from_tensor(self, tensor: Tensor, *, static_shapes: bool | None = None, source: Any = None, **_: Any) -> FakeTensor:
        """A FakeTensor like a tensor; itself where it is one of this mode's. AssertionError for one of another mode."""
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError("Mixing fake modes NYI: the tensor is a FakeTensor of another mode")
            return tensor
        with _aside():
            elem = strata.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
            made = FakeTensor(self, elem, tensor.device).requires_grad_(tensor.requires_grad)
        if isinstance(tensor, strata.nn.Parameter):
            made._is_param = True  # type: ignore[attr-defined]
        return made

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if any(isinstance(leaf, FakeTensor) for leaf in tree_leaves((args, kwargs))):
            return func(*args, **kwargs)  # autograd comes before the class is asked
        return self.run(func, args, kwargs)

    def run(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The operator over shapes."""
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        self._check(func, tensors, args, kwargs)
        device = kwargs.get("device")
        where = _indexed(strata.device(device)) if device is not None else self._device(func, tensors, args)
        given, named = tree_map_only(Tensor, self._elem_of, (args, kwargs))
        if device is not None or not tensors:
            named = {**named, "device": "meta"} if self._takes_device(func) else named
        try:
            found = func(*given, **named)
        except RuntimeError as error:
            raise self._meant(func, error) from None
        made = tree_map_only(Tensor, lambda t: FakeTensor(self, t, where), found)
        self._check_written(func, args, given)
        return return_and_correct_aliasing(func, args, kwargs, made)

    @staticmethod
    def _takes_device(func: Any) -> bool:
        return any(argument.name == "device" for argument in func._schema.arguments)

    def _elem_of(self, t: Tensor) -> Tensor:
        return t._elem if isinstance(t, FakeTensor) else self.from_tensor(t)._elem

    def _check(self, func: Any, tensors: list[Tensor], args: tuple, kwargs: dict[str, Any]) -> None:
        shown = f"{func}({', '.join(repr(a) if isinstance(a, FakeTensor) or not isinstance(a, Tensor) else f'tensor([...], size={tuple(a.shape)})' for a in args)})"
        for t in tensors:
            if isinstance(t, FakeTensor):
                if t.fake_mode is not self:
                    raise AssertionError(f"Mixing fake modes NYI: {shown}")
            elif not self.allow_non_fake_inputs:
                raise AssertionError(
                    "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
                    f"Found in {shown}"
                )
        written = [a for a, argument in zip(args, func._schema.arguments) if argument.alias_info is not None and argument.alias_info.is_write]
        if any(isinstance(t, Tensor) and not isinstance(t, FakeTensor) for t in [*tree_leaves(written), kwargs.get("out")]):
            raise RuntimeError(f"FakeTensorMode: a tensor with memory would be written by one without: {shown}")

    @staticmethod
    def _device(func: Any, tensors: list[Tensor], args: tuple) -> Any:
        """Where the result is: with the arguments, of which those without dims, and a few operators' second one, may be elsewhere."""
        second = args[1:2] if func.name().partition(".")[0] in _SECOND_ANYWHERE else ()
        free = {id(t) for t in tree_leaves(second) if t is not args[0]}
        found = None
        for t in tensors:
            device = _indexed(t.device)
            if id(t) in free:
                continue
            if found is None or (found[1] and found[0].type == "cpu"):
                found = device, t.dim() == 0
            elif device != found[0] and not (t.dim() == 0 and device.type == "cpu"):
                raise RuntimeError(f"{func}: Expected all tensors to be on the same device, but found at least two devices, {found[0]} and {device}!")
        return found[0] if found else _indexed(strata.get_default_device())

    @staticmethod
    def _check_written(func: Any, args: tuple, given: tuple) -> None:
        for a, elem, argument in zip(args, given, func._schema.arguments):
            if isinstance(a, FakeTensor) and argument.alias_info is not None and argument.alias_info.is_write and a.shape != elem.shape:
                a._elem = strata.empty_strided(a.shape, a.stride(), dtype=a.dtype, device="meta")
                raise UnsupportedFakeTensorException(f"{func}: it changes the sizes of a FakeTensor in place; use the form that gives a new one")

    @staticmethod
    def _meant(func: Any, error: Exception) -> Exception:
        """An error of the shape-only run, by what PyTorch raises."""
        known = ops.info(func.name())
        if known.size.startswith("data") and isinstance(error, NotImplementedError):
            return DynamicOutputShapeException(func)
        return DataDependentOutputException(func) if known.reads == "value" else error


class _aside:
    """Modes off inside the block."""

    def __enter__(self) -> None:
        self.functions = [_C._pop_torch_function_mode() for _ in _C._torch_function_modes()]
        self.dispatch = [_C._pop_dispatch_mode() for _ in _C._dispatch_modes()]

    def __exit__(self, *_: object) -> None:
        for mode in reversed(self.dispatch):
            _C._push_dispatch_mode(mode)
        for mode in reversed(self.functions):
            _C._push_torch_function_mode(mode)
