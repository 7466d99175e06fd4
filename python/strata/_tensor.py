"""The class Tensor: what of it is Python's own. Attributes, operators and indexing come from C++ (`_C.TensorBase`)."""

from __future__ import annotations

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _rebuild_tensor(storage, dtype, offset, size, stride, requires_grad) -> Tensor:
    """A tensor from the parts that `Tensor.__reduce_ex__` gives."""
    t = _C._tensor_over_storage(storage, dtype, offset, size, stride)
    return t.requires_grad_() if requires_grad else t


def _rebuild_from_type_v2(function: Callable, cls: type, args: tuple, state: Any) -> Tensor:
    """What function(*args) gives, as a tensor of the class with the attributes of `state`."""
    t = function(*args)
    if isinstance(state, dict) and state.get("_is_buffer") is True and cls is Tensor:
        from strata import nn

        cls, state = nn.Buffer, {name: value for name, value in state.items() if name != "_is_buffer"}
    if type(t) is not cls:
        t = t.as_subclass(cls)
    if state:
        setstate = getattr(t, "__setstate__", None)
        if setstate:
            setstate(state)
        else:
            from strata import _utils

            _utils._set_state(t, state)
    return t


def _as_class(result: Any, cls: type) -> Any:
    """Results of operators on a subclass are of that subclass."""
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        items = [_as_class(item, cls) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result


class Tensor(_C.TensorBase):
    """A strided array of numbers of one dtype, which autograd can follow.

    Make one with `strata.tensor(data)`, `strata.zeros(2, 3)` and their kind; `strata.Tensor(2, 3)` and
    `strata.Tensor([1.0, 2.0])` are PyTorch's legacy forms.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A class that says what operators do to it, and nothing of functions, gets what its operators return, as it is.
        if any("__torch_dispatch__" in kind.__dict__ for kind in cls.__mro__ if kind not in Tensor.__mro__) and getattr(cls.__torch_function__, "__func__", None) is Tensor.__torch_function__.__func__:
            cls.__torch_function__ = _C._disabled_torch_function_impl

    @classmethod
    def __torch_function__(cls, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        with _C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return result if func in _keeps_type() else _as_class(result, cls)

    # ---- text
    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        from strata._tensor_str import tensor_repr

        return tensor_repr(self, tensor_contents=tensor_contents)

    def __format__(self, spec: str) -> str:
        if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *self.__dict__})

    # ---- Python's protocols
    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (Tensor, bool, int, float, complex)):
            return bool((element == self).any().item())
        if type(element).__module__ == "numpy" and hasattr(element, "item") and not hasattr(element, "__len__"):
            return self.__contains__(element.item())
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
        )

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
        return _C.from_numpy(array) if getattr(array, "ndim", 0) else _C.tensor(array)

    def __reversed__(self) -> Tensor:
        return self if self.dim() == 0 else self.flip(0)

    def __copy__(self) -> Tensor:
        function, args = self.__reduce_ex__(2)
        return function(*args)

    def __deepcopy__(self, memo: dict) -> Tensor:
        """A leaf with the same values, class, attributes, and a copy of .grad; tensors that share memory share that of the copies.
        RuntimeError for tensors with history."""
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment: "
                "call .detach() or .clone() first"
            )
        from copy import deepcopy

        with _grad_off():
            copied = _copied(self, memo)
            if type(self) is not Tensor:
                copied = copied.as_subclass(type(self))
            copied.requires_grad_(self.requires_grad)
            memo[id(self)] = copied
            if self.grad is not None:
                copied.grad = deepcopy(self.grad, memo)
            if self.__dict__:
                copied.__dict__ = deepcopy(self.__dict__, memo)
        return copied

    def __reduce_ex__(self, protocol: int) -> tuple:
        source = self if self.device.type == "cpu" else self.cpu()
        args = (
            source.untyped_storage(),
            source.dtype,
            source.storage_offset(),
            tuple(source.shape),
            source.stride(),
            self.requires_grad,
        )
        if type(self) is Tensor and not self.__dict__:
            return _rebuild_tensor, args
        return _rebuild_from_type_v2, (_rebuild_tensor, type(self), args, dict(self.__dict__))

    # ---- autograd
    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | list[Tensor] | None = None,
    ) -> None:
        """Adds the gradients of this tensor into `.grad` of the leaves it came from.

        gradient: of this tensor's size; may be left out for a single element. retain_graph: keeps what backward would
        free. create_graph: records backward itself. inputs: only these get gradients. RuntimeError where the tensor has
        no history or a second backward finds freed buffers.
        """
        from strata import autograd

        autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook: Callable) -> Any:
        """Calls `hook(grad)` when this tensor's gradient is ready; a returned tensor takes its place.

        Returns a handle whose `remove()` takes the hook away. RuntimeError where no gradient is required.
        """
        return _noted(self, hook, _C._register_hook(self, hook))

    def register_post_accumulate_grad_hook(self, hook: Callable) -> Any:
        """Calls `hook(tensor)` after `.grad` of this leaf was added to. Returns a handle with `remove()`."""
        return _noted(self, hook, _C._register_post_accumulate_grad_hook(self, hook))

    def retain_grad(self) -> None:
        """Makes backward fill `.grad` of this tensor though it is no leaf."""
        _C._retain_grad(self)

    # ---- conveniences
    def new_tensor(self, data: Any, *, dtype=None, device=None, requires_grad: bool = False, **_: Any) -> Tensor:
        """A new tensor of the data, of this tensor's dtype and device unless they are given."""
        return _C.tensor(
            data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
        )

    def new(self, *args: Any, device: Any = None) -> Tensor:
        """A tensor of this one's dtype: of the sizes given, without values, or of the sequence, array or tensor given.

        new_empty and new_tensor say which of the two is meant.
        """
        sizes = args[0] if len(args) == 1 and isinstance(args[0], _C.Size) else args
        if all(isinstance(n, int) for n in sizes):
            return self.new_empty(sizes if sizes else 0, device=device)
        (data,) = args
        if isinstance(data, Tensor):
            return data.detach().to(device or self.device, self.dtype, copy=True)
        return self.new_tensor(data, device=device)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of dtype and device, such as strata.FloatTensor; given a dtype, such a name or such a class, a copy of
        that dtype (the tensor itself where it has it)."""
        if dtype is None:
            return super().type()
        if dtype is Tensor:
            return super().type(_C.get_default_dtype())
        return super().type(getattr(dtype, "dtype", dtype))

    def lu(self, pivot: bool = True, get_infos: bool = False) -> Any:
        """strata.lu of this tensor."""
        from strata import functional

        return functional.lu(self, pivot, get_infos)

    def norm(self, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype=None) -> Tensor:
        """strata.norm of this tensor."""
        from strata import functional

        return functional.norm(self, p, dim, keepdim, dtype=dtype)

    def nonzero(self, *, as_tuple: bool = False) -> Any:
        """strata.nonzero of this tensor."""
        from strata import functional

        return functional.nonzero(self, as_tuple=as_tuple)

    def histogram(self, bins: Any, *, range=None, weight=None, density: bool = False) -> Any:  # noqa: A002
        """strata.histogram of this tensor."""
        from strata import histogram

        return histogram(self, bins, range=range, weight=weight, density=density)

    def unique(self, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim=None) -> Any:
        """strata.unique of this tensor."""
        from strata import functional

        return functional.unique(self, sorted, return_inverse, return_counts, dim)

    def unique_consecutive(self, return_inverse: bool = False, return_counts: bool = False, dim=None) -> Any:
        """strata.unique_consecutive of this tensor."""
        from strata import functional

        return functional.unique_consecutive(self, return_inverse, return_counts, dim)

    def is_shared(self) -> bool:
        """Whether processes that get the tensor see its memory: after share_memory_, or when it came from another process."""
        from strata import _shared_memory

        return _shared_memory.is_shared(self)

    def share_memory_(self) -> Tensor:
        """Moves the tensor into memory that processes which get it see, too; forked ones get what there is.

        Other tensors that were views of the same memory stay where they were; so does a tensor of another device.
        """
        from strata import _shared_memory

        return _shared_memory.share(self)

    def storage(self) -> Any:
        """The memory under the tensor, as a TypedStorage of its dtype."""
        from strata.storage import TypedStorage

        return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)

    _typed_storage = storage

    def pin_memory(self, device: Any = None) -> Tensor:
        """A copy in memory of the host that a device's copies reach by themselves: `to(device, non_blocking=True)` of it
        goes on without waiting. The tensor itself where it lies there, or where the device offers no such memory.

        device: by default the accelerator. RuntimeError where there is none, and for a tensor that is not on the CPU.
        """
        from strata import accelerator

        there = accelerator.current_accelerator() if device is None else _C.device(device)
        if there is None or there.type == "cpu":
            raise RuntimeError(
                "pin_memory: no accelerator is available, so there is nothing to pin memory for; leave the call out, or test "
                "strata.accelerator.is_available() first"
            )
        if self.device.type != "cpu":
            raise RuntimeError(f"pin_memory: cannot pin '{self.type()}', only dense CPU tensors can be pinned; its device is {self.device}")
        if self.is_pinned():
            return self
        made = _C._pinned_like(self, there)
        return self if made is None else made.copy_(self)

    def record_stream(self, stream: Any) -> None:
        """The stream uses the tensor's memory, too: freed, it is given again when the stream has done what it had been given."""
        if stream.device != self.device:
            raise RuntimeError(f"record_stream: expected a stream of {self.device}, the tensor's device, got one of {stream.device}")
        _C._record_stream(self, stream.stream_id)

    def is_set_to(self, tensor: Tensor) -> bool:
        """Whether both are the same memory with the same offset, sizes and strides."""
        same = self.untyped_storage() == tensor.untyped_storage() and self.storage_offset() == tensor.storage_offset()
        return same and self.shape == tensor.shape and self.stride() == tensor.stride()

    def is_same_size(self, other: Tensor) -> bool:
        """Whether both have the same shape."""
        return self.shape == other.shape

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The tensor, of dtype where that is given: every tensor is dense."""
        return self if dtype is None else self.to(dtype)

    def to_sparse(self, sparse_dim: int | None = None, *, layout: Any = None, **_: Any) -> Tensor:
        """The elements that are not 0 with their indices. sparse_dim: how many dims, from the left, get indices; layout:
        strata.sparse_coo or strata.sparse_csr."""
        from strata import _sparse_coo, sparse_csr

        found = _sparse_coo.from_dense(self, sparse_dim)
        return found.to_sparse_csr() if layout is sparse_csr else found

    def to_sparse_coo(self) -> Tensor:
        """to_sparse()."""
        return self.to_sparse()

    def to_sparse_csr(self, dense_dim: int | None = None) -> Tensor:
        """The elements of a matrix that are not 0, by rows."""
        return self.to_sparse().to_sparse_csr()

    def sparse_mask(self, mask: Tensor) -> Tensor:
        """The elements where the sparse mask holds one."""
        from strata import _sparse_functions

        return _sparse_functions.sparse_mask(self, mask)

    def where(self, condition: Tensor, other: Any) -> Tensor:
        """self where condition is true, else other."""
        from strata import where

        return where(condition, self, other)

    def is_conj(self) -> bool:
        """False: conj() computes its result at once."""
        return False

    def is_neg(self) -> bool:
        """False: neg() computes its result at once."""
        return False

    def resolve_neg(self) -> Tensor:
        """The tensor itself: nothing is left to compute."""
        return self

    def apply_(self, callable: Callable) -> Tensor:
        """Puts callable(element) in place of every element, one by one in Python; for small CPU tensors that require no gradient."""
        _refuse_grad(self, "apply_")
        with _grad_off():
            values = [callable(v) for v in self.flatten().tolist()]
            return self.copy_(self.new_tensor(values).reshape(self.shape))

    def map_(self, tensor: Tensor, callable: Callable) -> Tensor:
        """Puts callable(element, other element) in place of every element, one by one in Python; for small CPU tensors that require
        no gradient."""
        _refuse_grad(self, "map_")
        with _grad_off():
            others = tensor.expand(self.shape).flatten().tolist()
            values = [callable(a, b) for a, b in zip(self.flatten().tolist(), others, strict=True)]
            return self.copy_(self.new_tensor(values).reshape(self.shape))

    def set_(self, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
        """Makes this tensor one over the memory of another tensor or storage; without a source, one of no elements.

        RuntimeError for a leaf that requires a gradient, but under no_grad().
        """
        if self.requires_grad and self.is_leaf and _C.is_grad_enabled():
            raise RuntimeError("set_: a leaf Variable that requires grad is being used in an in-place operation.")
        if self.is_inference() and not _C.is_inference_mode_enabled():
            raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed: set_")
        whole = not isinstance(source, Tensor) or size is None
        dtype = getattr(source, "dtype", self.dtype)
        if whole and dtype != self.dtype:
            raise RuntimeError(f"set_: expected a source of {self.dtype}, or an untyped storage, got one of {dtype}")
        if source is None:
            self.data = self.new_empty(0)
        elif isinstance(source, Tensor) and size is None:
            self.data = source.detach()
        else:
            untyped = source.untyped_storage() if isinstance(source, Tensor) else getattr(source, "_untyped_storage", source)
            size = (untyped.nbytes() // self.element_size() - storage_offset,) if size is None else tuple(size)
            if stride is None:
                stride, step = [], 1
                for n in reversed(size):
                    stride.append(step)
                    step *= max(n, 1)
                stride = tuple(stride[::-1])
            self.data = _C._tensor_over_storage(untyped, self.dtype, storage_offset, size, tuple(stride))
        if not self.is_inference():
            _C._increment_version(self)
        return self

    def dim_order(self) -> tuple[int, ...]:
        """The dims from the outermost in memory to the innermost."""
        return tuple(sorted(range(self.dim()), key=lambda d: (-self.stride(d), d)))


def _refuse_grad(t: Tensor, name: str) -> None:
    if t.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


def _grad_off():
    from strata.autograd.grad_mode import no_grad

    return no_grad()


def _keeps_type() -> set:
    """Functions whose results stay plain tensors on subclasses."""
    global _plain
    if _plain is None:
        _plain = {Tensor.__dict__.get(name) or getattr(_C.TensorBase, name) for name in ("as_subclass",)}
    return _plain


_plain: set | None = None
_C._set_tensor_class(Tensor)
Tensor.__module__ = "strata"


def _copied(t: Tensor, memo: dict) -> Tensor:
    """A tensor that lies in a copy of its memory as it does in its own; each memory is copied once. Parameters and the like get memory
    of their own, as in PyTorch."""
    if t.device.type != "cpu" or type(t) is not Tensor:
        return t.detach().clone(memory_format=_C.preserve_format)
    storage, copies = t.untyped_storage(), memo.setdefault("strata", {})
    if storage._cdata not in copies:
        whole = _C._tensor_over_storage(storage, _C.uint8, 0, (storage.nbytes(),), (1,))
        copies[storage._cdata] = whole.clone().untyped_storage(), storage
    return _C._tensor_over_storage(copies[storage._cdata][0], t.dtype, t.storage_offset(), tuple(t.shape), t.stride())


def _noted(t: Tensor, hook: Callable, handle: Any) -> Any:
    """The handle, after a note in `_backward_hooks`, which captures of graphs ask."""
    if t._backward_hooks is None:
        t._backward_hooks = {}
    t._backward_hooks[handle.id] = hook
    return handle
