"""Activation functions. Each takes a floating-point tensor of any shape and returns one of the same shape."""

from __future__ import annotations

import warnings

import strata
from strata import Tensor

from .. import _ops
from .._ops import has_torch_function_unary, overridden


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x)."""
    if has_torch_function_unary(input):
        return overridden(relu, (input,), locals())
    return _ops.relu_(input) if inplace else _ops.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6)."""
    if has_torch_function_unary(input):
        return overridden(relu6, (input,), locals())
    return _ops.hardtanh_(input, 0, 6) if inplace else _ops.hardtanh(input, 0, 6)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, else value."""
    if has_torch_function_unary(input):
        return overridden(_threshold, (input,), locals())
    return _ops.threshold_(input, threshold, value) if inplace else _ops.threshold(input, threshold, value)


_threshold = threshold  # its second argument hides the function's own name


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else negative_slope * x."""
    if has_torch_function_unary(input):
        return overridden(leaky_relu, (input,), locals())
    return _ops.leaky_relu_(input, negative_slope) if inplace else _ops.leaky_relu(input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha * (exp(x) - 1). Source: arXiv:1511.07289."""
    if has_torch_function_unary(input):
        return overridden(elu, (input,), locals())
    return _ops.elu_(input, alpha) if inplace else _ops.elu(input, alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha * (exp(x / alpha) - 1). Source: arXiv:1704.07483."""
    if has_torch_function_unary(input):
        return overridden(celu, (input,), locals())
    return _ops.celu_(input, alpha) if inplace else _ops.celu(input, alpha)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """x where x > 0, else a * x: a uniform in [lower, upper] for each element in training, else their mean.

    Source: arXiv:1505.00853.
    """
    if has_torch_function_unary(input):
        return overridden(rrelu, (input,), locals())
    if lower > upper:
        raise RuntimeError(f"rrelu: expected lower <= upper, got {lower} and {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    if not input.is_floating_point():
        raise NotImplementedError(f"rrelu is not implemented for {input.dtype}; convert the input to float32 first")
    slopes = strata.empty_like(input, memory_format=strata.contiguous_format).uniform_(lower, upper)
    slopes.masked_fill_(input.detach() > 0, 1.0)
    return input.mul_(slopes) if inplace else slopes * input


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """rrelu in place."""
    if has_torch_function_unary(input):
        return overridden(rrelu_, (input,), locals())
    return rrelu(input, lower, upper, training, inplace=True)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale * elu(x, alpha) with the constants of arXiv:1706.02515."""
    if has_torch_function_unary(input):
        return overridden(selu, (input,), locals())
    return _ops.selu_(input) if inplace else _ops.selu(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """First half along `dim` times the logistic function of the second. RuntimeError for a 0-dim input."""
    if has_torch_function_unary(input):
        return overridden(glu, (input,), locals())
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _ops.glu(input, dim)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to [min_val, max_val]. ValueError where min_val > max_val."""
    if has_torch_function_unary(input):
        return overridden(hardtanh, (input,), locals())
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _ops.hardtanh_(input, min_val, max_val) if inplace else _ops.hardtanh(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""
    if has_torch_function_unary(input):
        return overridden(hardsigmoid, (input,), locals())
    return _ops.hardsigmoid_(input) if inplace else _ops.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x). Source: arXiv:1905.02244."""
    if has_torch_function_unary(input):
        return overridden(hardswish, (input,), locals())
    return _ops.hardswish_(input) if inplace else _ops.hardswish(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x / (1 + exp(-x))."""
    if has_torch_function_unary(input):
        return overridden(silu, (input,), locals())
    return _ops.silu_(input) if inplace else _ops.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x)). Source: arXiv:1908.08681."""
    if has_torch_function_unary(input):
        return overridden(mish, (input,), locals())
    return _ops.mish_(input) if inplace else _ops.mish(input)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    if has_torch_function_unary(input):
        return overridden(tanhshrink, (input,), locals())
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    if has_torch_function_unary(input):
        return overridden(softsign, (input,), locals())
    return input / (input.abs() + 1)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """Logistic function."""
    return input.sigmoid()


def _implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: strata.dtype | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`; dtype casts the input first."""
    if has_torch_function_unary(input):
        return overridden(softmax, (input,), locals())
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return _ops.softmax(input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: strata.dtype | None = None) -> Tensor:
    """softmax(-x) along `dim`."""
    if has_torch_function_unary(input):
        return overridden(softmin, (input,), locals())
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return _ops.softmax(-input, dim, dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: strata.dtype | None = None
) -> Tensor:
    """Logarithm of softmax along `dim`; dtype casts the input first."""
    if has_torch_function_unary(input):
        return overridden(log_softmax, (input,), locals())
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return _ops.log_softmax(input, dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution along `dim`. Source: arXiv:1611.01144.

    hard: one-hot forward, with the gradient of the soft sample. `eps` has no effect.
    """
    if has_torch_function_unary(logits):
        return overridden(gumbel_softmax, (logits,), locals())
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -strata.empty_like(logits).exponential_().log()
    soft = _ops.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    return strata.zeros_like(logits, memory_format=strata.contiguous_format).scatter_(dim, index, 1.0) - soft.detach() + soft
