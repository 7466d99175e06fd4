"""Modules that learn the size of their input from the first one; then they become the ordinary module."""

from __future__ import annotations

import strata
from strata import Tensor

from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _NormBase
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, _ConvNd
from .instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .utils import Size


class LazyModuleMixin:
    """A subclass sets UninitializedParameters, and gives them a size in `initialize_parameters(*inputs)`.

    After the first forward the module is of the class `cls_to_become`, where that is set. Until then RuntimeError for
    uses of its parameters' sizes; moves, casts and state dictionaries work. `to` before the first input keeps.
    """

    cls_to_become: type[Module] | None = None

    def __init__(self: Module, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def has_uninitialized_params(self: Module) -> bool:
        """Whether a parameter or buffer has no size yet."""
        return any(is_lazy(t) for t in (*self._parameters.values(), *self._buffers.values()))

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Gives the parameters their sizes from what forward was called with."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def _lazy_load_hook(self: Module, state_dict: dict, prefix: str, *_: Any) -> None:
        for name, mine in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if given is not None and is_lazy(mine) and not is_lazy(given):
                with strata.no_grad():
                    mine.materialize(given.shape)

    def _save_to_state_dict(self: Module, destination: dict, prefix: str, keep_vars: bool) -> None:
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            if value is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = value if is_lazy(value) or keep_vars else value.detach()

    def _infer_parameters(self: Module, module: Module, args: tuple, kwargs: dict | None = None) -> None:
        self.initialize_parameters(*args, **(kwargs or {}))
        if self.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        self._initialize_hook.remove()
        self._load_hook.remove()
        del self._initialize_hook, self._load_hook
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear whose in_features is the last size of its first input."""

    cls_to_become = Linear
    __module__ = Linear.__module__

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if not self.has_uninitialized_params():  # they came from a state dictionary
            self.in_features = self.weight.size(1)
            return
        self.in_features = input.size(-1)
        self.weight.materialize((self.out_features, self.in_features))
        if self.bias is not None:
            self.bias.materialize((self.out_features,))
        self.reset_parameters()


class _LazyConvNd(LazyModuleMixin, _ConvNd):
    """in_channels is the size of the first input's dim of channels."""

    def _learn_channels(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():  # they came from a state dictionary
            self.in_channels = self.weight.size(0 if self._transposed else 1) * (1 if self._transposed else self.groups)
            return
        if input.dim() not in (self._rank + 1, self._rank + 2):
            raise RuntimeError(
                f"Expected {self._rank + 1}D (unbatched) or {self._rank + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-self._rank - 1]
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        shape = (self.in_channels, self.out_channels) if self._transposed else (self.out_channels, self.in_channels)
        self.weight.materialize((shape[0], shape[1] // self.groups, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyForwardConv(_LazyConvNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._learn_channels(out_channels, bias, device, dtype)


class _LazyTransposedConv(_LazyConvNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._learn_channels(out_channels, bias, device, dtype)


class _LazyNorm(LazyModuleMixin, _NormBase):
    """num_features is size 1 of the first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = strata.tensor(0, dtype=strata.int64, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        self.num_features = input.shape[1]
        if not self.has_uninitialized_params():  # they came from a state dictionary
            return
        for name in ("weight", "bias", "running_mean", "running_var"):
            value = getattr(self, name)
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


def _lazy(becomes: type[Module], base: type, sized: str) -> type:
    """The lazy form of a class: its own methods, the base's way to a size."""
    name = f"Lazy{becomes.__name__}"
    doc = f"A {becomes.__name__} whose {sized} is the first input's."
    return type(name, (base, becomes), {"cls_to_become": becomes, "__doc__": doc, "__module__": becomes.__module__})


LazyConv1d = _lazy(Conv1d, _LazyForwardConv, "in_channels")
LazyConv2d = _lazy(Conv2d, _LazyForwardConv, "in_channels")
LazyConv3d = _lazy(Conv3d, _LazyForwardConv, "in_channels")
LazyConvTranspose1d = _lazy(ConvTranspose1d, _LazyTransposedConv, "in_channels")
LazyConvTranspose2d = _lazy(ConvTranspose2d, _LazyTransposedConv, "in_channels")
LazyConvTranspose3d = _lazy(ConvTranspose3d, _LazyTransposedConv, "in_channels")
LazyBatchNorm1d = _lazy(BatchNorm1d, _LazyNorm, "num_features")
LazyBatchNorm2d = _lazy(BatchNorm2d, _LazyNorm, "num_features")
LazyBatchNorm3d = _lazy(BatchNorm3d, _LazyNorm, "num_features")
LazyInstanceNorm1d = _lazy(InstanceNorm1d, _LazyNorm, "num_features")
LazyInstanceNorm2d = _lazy(InstanceNorm2d, _LazyNorm, "num_features")
LazyInstanceNorm3d = _lazy(InstanceNorm3d, _LazyNorm, "num_features")
