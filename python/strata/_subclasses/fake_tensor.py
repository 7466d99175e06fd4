"""FakeTensorMode: factories and operators give tensors that have shapes, dtypes and devices, and no memory.

A FakeTensor wraps a tensor of the device "meta", with which operators run, and says that it is on the device that was asked for,
so that programs for any device can be run over shapes: how large is a model, which shapes does it make, where does it fail.
"""

from __future__ import annotations

import weakref

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
        value = self.constant
        if value is None or args:
            raise DataDependentOutputException(f"Tensor.{name}")
        with _aside():
            return getattr(value, name)()

    read.__name__ = name
    return read


class FakeTensor(Tensor):
    """Made by a FakeTensorMode. fake_mode, fake_device: of which, and where it would be."""

    fake_mode: FakeTensorMode
    fake_device: Any
    _elem: Tensor
    _constant: tuple = (None, 0)  # a value, and the version that has it
    __torch_function__ = _C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls: Any, fake_mode: FakeTensorMode, elem: Tensor, device: Any, over: FakeTensor | None = None) -> Any:
        """over: a tensor of the mode over whose storage this one is."""
        device = _indexed(strata.device(device))
        if over is not None and device.type != "meta" and elem.numel():
            there = _C._tensor_over_storage(over.untyped_storage(), elem.dtype, elem.storage_offset(), tuple(elem.shape), elem.stride())
            made = Tensor._make_subclass(cls, there, elem.requires_grad)
        else:
            made = Tensor._make_wrapper_subclass(
                cls, elem.shape, strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype, device=device,
                requires_grad=elem.requires_grad,
            )  # fmt: skip
        made.fake_mode, made.fake_device, made._elem = fake_mode, device, elem.data
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

    def __copy__(self) -> FakeTensor:
        return _as_leaf(self.data, self)

    def __deepcopy__(self, memo: dict) -> Any:
        if not self.is_leaf:
            return super().__deepcopy__(memo)  # which raises
        with _aside():
            elem = self._elem.clone()
        memo[id(self)] = made = _as_leaf(FakeTensor(self.fake_mode, elem, self.fake_device), self)
        if self.grad is not None:
            made.grad = self.grad.__deepcopy__(memo)
        return made

    @property
    def constant(self) -> Tensor | None:
        """The value of a tensor of one element that was made of data, or of such tensors, until something writes to its storage."""
        value, version = self._constant
        return value if value is not None and version == self._version else None

    def _is_known(self, value: Tensor) -> FakeTensor:
        if value.numel() == 1 and value.device.type == "cpu" and not self.is_inference():
            self._constant = value, self._version
        return self

    @property
    def data(self) -> FakeTensor:  # type: ignore[override]
        self._constant = None, 0  # writes to the other are not told
        made = Tensor._make_subclass(FakeTensor, Tensor.data.__get__(self))  # type: ignore[attr-defined]
        made.fake_mode, made.fake_device, made._elem = self.fake_mode, self.fake_device, self._elem.data
        return made

    @data.setter
    def data(self, other: Tensor) -> None:
        other = self.fake_mode.from_tensor(other)
        Tensor.data.__set__(self, other)  # type: ignore[attr-defined]
        self._elem, self.fake_device, self._constant = other._elem.data, other.fake_device, (None, 0)

    def _follow(self) -> None:
        """Takes the sizes of its elem, which an operator may have changed."""
        elem = self._elem
        if (self.shape, self.stride(), self.storage_offset()) != (elem.shape, elem.stride(), elem.storage_offset()):
            fits = elem.untyped_storage().nbytes() <= self.untyped_storage().nbytes()
            Tensor.data.__set__(self, FakeTensor(self.fake_mode, elem, self.fake_device, self if fits else None))  # type: ignore[attr-defined]

    def new_tensor(self, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
        with self.fake_mode:
            device = self.device if device is None else device
            return strata.tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def data_ptr(self) -> int:
        return 0

    @property
    def is_meta(self) -> bool:  # type: ignore[override]
        return self.fake_device.type == "meta"


def _as_leaf(made: FakeTensor, like: Tensor) -> FakeTensor:
    """It needs a gradient, and is a parameter, as the other is."""
    made.requires_grad_(like.requires_grad)
    if isinstance(like, strata.nn.Parameter):
        made._is_param = True  # type: ignore[attr-defined]
    return made


for _name in "item tolist __bool__ __int__ __float__ __complex__ __index__ is_nonzero equal allclose".split():
    setattr(FakeTensor, _name, _reader(_name))


def _indexed(device: Any) -> Any:
    """A device as its tensors say it: other devices than the CPU have a number."""
    return device if device.type in ("cpu", "meta") or device.index is not None else strata.device(device.type, 0)


# Operators whose second argument may be on any device.
_SECOND_ANYWHERE = frozenset(
    f"aten::{name}" for name in "copy_ copy slice_scatter diagonal_scatter index index_put index_put_ _unsafe_index_put resize_as_".split()
)
_NEITHER = (lambda: None, lambda: None)


def _told(func: Any) -> Any:
    """What the operator table says of it; None for operators from elsewhere."""
    try:
        return ops.info(func.name())
    except ValueError:
        return None


def _written(func: Any, args: tuple, kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors that an operator writes."""
    places = [(i, a) for i, a in enumerate(func._schema.arguments) if a.alias_info is not None and a.alias_info.is_write]
    nests = [args[i] if i < len(args) else kwargs.get(a.name) for i, a in places]
    return [leaf for leaf in tree_leaves(nests) if isinstance(leaf, Tensor)]


# What numbers of Python's are as tensors, and a dtype that they give way to.
_NUMBERS = {strata.int64: strata.int8, strata.float64: strata.float16, strata.complex128: strata.complex64}


def _is_number(t: Tensor) -> bool:
    """Whether a tensor is a number of Python's that an operator took in its place: promotion treats those as numbers."""
    smaller = _NUMBERS.get(t.dtype) if t.dim() == 0 else None
    return smaller is not None and strata.result_type(t, strata.empty((), dtype=smaller)) != t.dtype


# Functions that make tensors of Python's data, and no operators: the tensor that they make is turned into a fake one.
_MAKERS = ("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "scalar_tensor")


def _made_fake(make: Any) -> Any:
    """Such a function, in which the thread's mode is asked."""

    def made(*args: Any, **kwargs: Any) -> Any:
        mode = next(reversed(_C._dispatch_modes()), None)
        if not isinstance(mode, FakeTensorMode) or any(isinstance(leaf, FakeTensor) for leaf in tree_leaves((args, kwargs))):
            return make(*args, **kwargs)
        with _aside():
            found = make(*args, **kwargs)
            value = found.detach().clone() if found.numel() == 1 else found
        return found if any(found is a for a in args) else mode._like(found)._is_known(value)

    return made


class FakeTensorMode(TorchDispatchMode):
    """A context in which what is made and computed is a FakeTensor.

    allow_non_fake_inputs: tensors with memory that meet fake ones are taken by their shape; else AssertionError. Writing to such
    a tensor always raises. RuntimeError for what depends on values (DynamicOutputShapeException, DataDependentOutputException).
    Single numbers that are made of data on the CPU, such as tensor(3), and what is computed of them alone, have their values until they
    are written. shape_env (symbolic sizes) is not there: NotImplementedError.
    """

    def __init__(self, *, allow_fallback_kernels: bool = True, allow_non_fake_inputs: bool = False, shape_env: Any = None, static_shapes: bool | None = None, **_: Any) -> None:
        if shape_env is not None:
            raise NotImplementedError("FakeTensorMode: shape_env is not there: sizes are numbers")
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.static_shapes = True
        self._patches: list[Patches] = []
        self._made: dict[int, tuple] = {}  # by id: references to a tensor with memory and to the FakeTensor that is like it
        self._inside = 0  # how many operators are at work: what they are made of may have tensors of its own

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
        """A FakeTensor like a tensor, the same one while there is one; itself where it is one of this mode's.

        AssertionError for one of another mode. UnsupportedFakeTensorException for sparse ones.
        """
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError("Mixing fake modes NYI: the tensor is a FakeTensor of another mode")
            return tensor
        if tensor.layout is not strata.strided:
            raise UnsupportedFakeTensorException(f"from_tensor: a FakeTensor is dense, and the tensor is of layout {tensor.layout}")
        known, like = self._made.get(id(tensor), _NEITHER)
        made = like() if known() is tensor else None
        if made is not None:
            return made
        made = self._like(tensor)
        if tensor.is_leaf and tensor.grad is not None:
            made.grad = self.from_tensor(tensor.grad)
        number, table = id(tensor), self._made
        table[number] = weakref.ref(tensor, lambda gone: table.pop(number, None)), weakref.ref(made)
        return made

    def _like(self, tensor: Tensor) -> FakeTensor:
        """A new one, at the tensor's place in a storage like the tensor's."""
        with _aside():
            whole = strata.empty(tensor.untyped_storage().nbytes() // tensor.element_size(), dtype=tensor.dtype, device="meta")
            elem = whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
            return _as_leaf(FakeTensor(self, elem, tensor.device, over=FakeTensor(self, whole, tensor.device)), tensor)

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if not any(isinstance(t, FakeTensor) for t in tensors):
            return self.run(func, args, kwargs)
        self._check(func, tensors, args, kwargs)
        self._inside += 1
        try:
            return func(*args, **kwargs)  # autograd comes before the class is asked
        except RuntimeError as error:
            raise self._meant(func, error) from None
        finally:
            self._inside -= 1

    def run(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The operator over shapes."""
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        self._check(func, tensors, args, kwargs)
        device = kwargs.get("device")
        written = _written(func, args, kwargs)
        where = _indexed(strata.device(device)) if device is not None else self._device(func, tensors, args, written)
        given, named = tree_map_only(Tensor, self._elem_of, (args, kwargs))
        if device is not None or not tensors:
            named = {**named, "device": "meta"} if self._takes_device(func) else named
        try:
            found = self._through_masks(func, given)
            found = func(*given, **named) if found is None else found
        except RuntimeError as error:
            if not self._computes(func, tensors, written):
                raise self._meant(func, error) from None
            return tree_map_only(Tensor, lambda t: self._like(t)._is_known(t), self._computed(func, args, kwargs))
        for t in written:
            t._follow()
        storages = {t._elem.untyped_storage()._cdata: t for t in tensors if isinstance(t, FakeTensor)}
        made = tree_map_only(Tensor, lambda t: FakeTensor(self, t, where, storages.get(t.untyped_storage()._cdata)), found)
        if isinstance(made, FakeTensor) and made.numel() == 1 and where.type == "cpu" and self._computes(func, tensors, written):
            made._is_known(self._computed(func, args, kwargs))
        return return_and_correct_aliasing(func, args, kwargs, made)

    @staticmethod
    def _computes(func: Any, tensors: list[Tensor], written: list[Tensor]) -> bool:
        """Whether the values of all arguments are known, and the operator gives values of them alone."""
        known = any(isinstance(t, FakeTensor) for t in tensors) and all(not isinstance(t, FakeTensor) or t.constant is not None for t in tensors)
        if not known or written:
            return False
        told = _told(func)
        return told is not None and told.kind not in ("composite", "allocate") and "draws" not in told.acts

    @staticmethod
    def _computed(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        given, named = tree_map_only(FakeTensor, lambda t: t.constant, (args, kwargs))
        return func(*given, **named)

    @staticmethod
    def _through_masks(func: Any, given: tuple) -> Tensor | None:
        """What writes through masks give, if it is one: no one knows which places these have, but the sizes stay."""
        if not func.name().startswith("aten::index_put") or not any(t is not None and t.dtype in (strata.bool, strata.uint8) for t in given[1]):
            return None
        return given[0] if func._schema.is_mutable else given[0].clone()

    @staticmethod
    def _takes_device(func: Any) -> bool:
        return any(argument.name == "device" for argument in func._schema.arguments)

    def _elem_of(self, t: Tensor) -> Tensor:
        return t._elem if isinstance(t, FakeTensor) else t if _is_number(t) else self.from_tensor(t)._elem

    def _check(self, func: Any, tensors: list[Tensor], args: tuple, kwargs: dict[str, Any]) -> None:
        def shown() -> str:
            real = (f"tensor([...], size={tuple(a.shape)})" if isinstance(a, Tensor) and not isinstance(a, FakeTensor) else repr(a) for a in args)
            return f"{func}({', '.join(real)})"

        for t in tensors:
            if isinstance(t, FakeTensor):
                if t.fake_mode is not self:
                    raise AssertionError(f"Mixing fake modes NYI: {shown()}")
            elif not (self.allow_non_fake_inputs or self._inside or _is_number(t)):
                raise AssertionError(
                    "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
                    f"Found in {shown()}"
                )
        if not all(isinstance(t, FakeTensor) for t in _written(func, args, kwargs)):
            raise RuntimeError(f"FakeTensorMode: a tensor with memory would be written by one without: {shown()}")

    @staticmethod
    def _device(func: Any, tensors: list[Tensor], args: tuple, written: list[Tensor]) -> Any:
        """Where the result is: with the arguments, of which those without dims, and a few operators' second one, may be elsewhere."""

        def differ(one: Any, other: Any) -> RuntimeError:
            return RuntimeError(f"{func}: Expected all tensors to be on the same device, but found at least two devices, {one} and {other}!")

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
                raise differ(found[0], device)
        for t in written:
            if _indexed(t.device) != found[0]:
                raise differ(found[0], t.device)
        return found[0] if found else _indexed(strata.get_default_device())

    @staticmethod
    def _meant(func: Any, error: Exception) -> Exception:
        """An error of the shape-only run, by what PyTorch raises."""
        if isinstance(error, (DynamicOutputShapeException, DataDependentOutputException)):
            return error
        told = _told(func)
        if told is not None and told.size.startswith("data") and isinstance(error, NotImplementedError):
            return DynamicOutputShapeException(func)
        return DataDependentOutputException(func) if told is not None and told.reads == "value" else error


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
