"""Fills tensors with initial values, in place and outside of autograd. Every function returns its tensor.

Sources: Xavier, Glorot and Bengio 2010; Kaiming, arXiv:1502.01852; orthogonal, arXiv:1312.6120; sparse, Martens 2010.
fan_in is the number of inputs that one output sums: for a weight (out, in, kernel...) in times the kernel's size.
"""

from __future__ import annotations

import math
import warnings

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
_LINEAR = (
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "sigmoid",
)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """What a layer before this nonlinearity is scaled by; param is leaky_relu's slope (0.01 unless given).

    ValueError for another name, or a slope that is no number.
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity == "leaky_relu":
        if isinstance(param, bool) or not (param is None or isinstance(param, (int, float))):
            raise ValueError(f"negative_slope {param} not a valid number")
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: strata.Generator | None = None) -> Tensor:
    """Uniform in [a, b)."""
    with strata.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: strata.Generator | None = None) -> Tensor:
    """Normal with the given mean and standard deviation."""
    with strata.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: strata.Generator | None = None,
) -> Tensor:
    """Normal, limited to [a, b] by inverting the distribution function of a uniform draw between its values there."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )

    def signed(x: float) -> float:  # 2 * normal distribution function - 1
        return math.erf((x - mean) / (std * math.sqrt(2.0)))

    with strata.no_grad():
        tensor.uniform_(signed(a), signed(b), generator=generator)
        return tensor.erfinv_().mul_(std * math.sqrt(2.0)).add_(mean).clamp_(min=a, max=b)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Every element is val."""
    with strata.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Every element is 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Every element is 0."""
    with strata.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix. ValueError for a tensor that is not 2-d."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with strata.no_grad():
        return tensor.copy_(strata.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution's weight that passes the first channels of each group through.

    ValueError for other than 3 to 5 dimensions, or groups that do not divide the first.
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    rows = tensor.size(0)
    if rows % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    rows //= groups
    centre = tuple(n // 2 for n in tensor.shape[2:])
    with strata.no_grad():
        tensor.zero_()
        for group in range(groups):
            for i in range(min(rows, tensor.size(1))):
                tensor[(group * rows + i, i, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out). ValueError for fewer than 2 dimensions."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: strata.Generator | None = None) -> Tensor:
    """Uniform in +-gain * sqrt(6 / (fan_in + fan_out))."""
    bound = gain * math.sqrt(6.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: strata.Generator | None = None) -> Tensor:
    """Normal with standard deviation gain * sqrt(2 / (fan_in + fan_out))."""
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """Standard deviation, or None (with a warning) where the tensor has no element."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: strata.Generator | None = None,
) -> Tensor:
    """Uniform in +-gain * sqrt(3 / fan); `a` is leaky_relu's slope, mode "fan_in" or "fan_out"."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: strata.Generator | None = None,
) -> Tensor:
    """Normal with standard deviation gain / sqrt(fan); `a` is leaky_relu's slope, mode "fan_in" or "fan_out"."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: strata.Generator | None = None) -> Tensor:
    """gain times a matrix (rows by all other dimensions) whose rows or columns are orthonormal.

    ValueError for fewer than 2 dimensions.
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.size(0), tensor.numel() // tensor.size(0)
    with strata.no_grad():
        flat = strata.empty((rows, columns), dtype=tensor.dtype, device=tensor.device)
        flat.normal_(0, 1, generator=generator)
        q, r = strata.linalg.qr(flat.t() if rows < columns else flat)
        q = q * r.diagonal().sign()  # makes the draw uniform over orthogonal matrices
        return tensor.copy_((q.t() if rows < columns else q).reshape(tensor.shape)).mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: strata.Generator | None = None) -> Tensor:
    """Normal, with a share `sparsity` of each column zero. ValueError for a tensor that is not 2-d."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with strata.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            chosen = strata.randperm(rows, generator=generator, device=tensor.device)[:zeros]
            tensor[chosen, column] = 0
    return tensor


def _retired(function: Callable) -> Callable:
    """The name without the underscore, which warns and calls the one with it."""
    name = function.__name__

    def call(*args: object, **kwargs: object) -> Tensor:
        warnings.warn(
            f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`.", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    call.__name__ = name[:-1]
    call.__doc__ = f"Retired: use {name}."
    return call


uniform = _retired(uniform_)
normal = _retired(normal_)
constant = _retired(constant_)
eye = _retired(eye_)
dirac = _retired(dirac_)
xavier_uniform = _retired(xavier_uniform_)
xavier_normal = _retired(xavier_normal_)
kaiming_uniform = _retired(kaiming_uniform_)
kaiming_normal = _retired(kaiming_normal_)
orthogonal = _retired(orthogonal_)
sparse = _retired(sparse_)

# What the functions above call in PyTorch, and programs with them.
_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_ = uniform_, normal_, trunc_normal_
_no_grad_fill_, _no_grad_zero_ = constant_, zeros_
