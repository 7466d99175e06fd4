"""Small names of PyTorch's top level, and settings of autocast and determinism by their older names."""

from __future__ import annotations

import strata
from strata import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class AcceleratorError(RuntimeError):
    """What a device reports."""


def compiled_with_cxx11_abi() -> bool:
    """True."""
    return True


def is_distributed(input: Tensor) -> bool:
    """False."""
    return False


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: as use_deterministic_algorithms was last called."""
    if not strata.are_deterministic_algorithms_enabled():
        return 0
    return 1 if strata.is_deterministic_algorithms_warn_only_enabled() else 2


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms by a number or a word. RuntimeError for others."""
    modes = {"default": 0, "warn": 1, "error": 2, 0: 0, 1: 1, 2: 2}
    if debug_mode not in modes:
        raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error` or 0, 1, 2, but got {debug_mode}")
    strata.use_deterministic_algorithms(modes[debug_mode] > 0, warn_only=modes[debug_mode] == 1)


def get_device_module(device: Any = None) -> Any:
    """The module strata.<device>."""
    name = "cpu" if device is None else strata.device(device).type if not isinstance(device, str) else device.partition(":")[0]
    return getattr(strata, name)


def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The root of the sum of squares over dims."""
    return strata.linalg.vector_norm(input, 2, dim, keepdim)


def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The sum of the singular values of matrices."""
    return strata.linalg.matrix_norm(input, "nuc", dim or (-2, -1), keepdim)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:  # noqa: A002
    """The norm over all dims but one, which are kept as 1; of all for dim=-1."""
    if dim == -1:
        return v.norm(pow)
    others = [d for d in range(v.dim()) if d != dim]
    return strata.linalg.vector_norm(v, pow, others, True)


def detach_(input: Tensor) -> Tensor:
    """input.detach_()."""
    return input.detach_()


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """nn.functional.rrelu."""
    return strata.nn.functional.rrelu(input, lower, upper, training)


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """nn.functional.rrelu in place."""
    return strata.nn.functional.rrelu(input, lower, upper, training, inplace=True)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """nn.functional.alpha_dropout in place."""
    return strata.nn.functional.alpha_dropout(input, p, train, inplace=True)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """nn.functional.feature_alpha_dropout."""
    return strata.nn.functional.feature_alpha_dropout(input, p, train)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """nn.functional.feature_alpha_dropout in place."""
    return strata.nn.functional.feature_alpha_dropout(input, p, train, inplace=True)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """nn.functional.channel_shuffle."""
    return strata.nn.functional.channel_shuffle(input, groups)


def sym_int(a: Any) -> int:
    """int(a): sizes are ints."""
    return int(a)


def sym_float(a: Any) -> float:
    """float(a)."""
    return float(a)


def sym_not(a: Any) -> bool:
    """not a."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger one."""
    return max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller one."""
    return min(a, b)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """t if b else f."""
    return t if b else f


def _assert_async(input: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """RuntimeError with that text where the one element of `input` is zero."""
    if not input.item():
        raise RuntimeError(assert_msg)


def get_autocast_cpu_dtype() -> Any:
    """The dtype of autocast on the CPU."""
    return strata.get_autocast_dtype("cpu")


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for the CPU."""
    return strata.is_autocast_enabled("cpu")


def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None,
    axis: int = 0, unsafe: bool = False, initial: float | None = None,
) -> Tensor:  # fmt: skip
    """sum, mean, max (amax), min (amin) or prod of consecutive pieces of dim 0, of `lengths`, or between `offsets`.

    initial: where a piece begins; by default the neutral value (for means of empty pieces NaN). NotImplementedError for
    indices and other axes.
    """
    if indices is not None or axis != 0 or (lengths is None) == (offsets is None) or (lengths if lengths is not None else offsets).dim() != 1:
        raise NotImplementedError("segment_reduce: axis 0 with lengths or offsets of one dim is provided; use scatter_reduce for others")
    lengths = offsets.diff() if lengths is None else lengths
    if not unsafe and int(lengths.sum()) != data.shape[0]:
        raise RuntimeError(f"segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1), got {int(lengths.sum())} and {data.shape[0]}")
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    starts = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -strata.inf, "min": strata.inf}
    if reduce not in starts:  # the two others are what scatter_reduce calls them
        raise RuntimeError(f"segment_reduce: expected reduce to be one of {sorted(starts)}, got {reduce!r}")
    count = lengths.shape[0]
    piece = strata.arange(count, device=data.device).repeat_interleave(lengths)
    start = starts[reduce] if initial is None else initial
    made = data.new_full((count, *data.shape[1:]), start)
    if reduce in ("sum", "mean"):
        found = made.index_add(0, piece, data)
        if reduce == "sum":
            return found
        shape = (count, *[1] * (data.dim() - 1))
        return found / (lengths if initial is None else lengths.clamp(min=1)).reshape(shape)
    kind = {"prod": "prod", "max": "amax", "min": "amin"}[reduce]
    index = piece.reshape(-1, *[1] * (data.dim() - 1)).expand_as(data)
    return made.scatter_reduce(0, index, data, kind)


_segment_reduce = segment_reduce


def _shape_as_tensor(input: Tensor) -> Tensor:
    """The sizes, int64 [dims], on the CPU."""
    return strata.tensor(input.shape, dtype=strata.int64)


def _reshape_from_tensor(input: Tensor, shape: Tensor) -> Tensor:
    """The tensor in the shape that an integer tensor of one dim tells. RuntimeError where it does not fit."""
    return input.reshape(shape.tolist())


def _sample_dirichlet(input: Tensor, generator: strata.Generator | None = None) -> Tensor:
    """A draw for every row of concentrations (the last dim), of their dtype and shape: each row sums to 1. Gradients follow it.

    NotImplementedError for a generator of its own."""
    if generator is not None:
        raise NotImplementedError("_sample_dirichlet: draws come from the default generator; seed it with strata.manual_seed")
    return strata.distributions.Dirichlet(input, validate_args=False).rsample()


def sym_sum(*args: Any) -> Any:
    """The sum of ints, given one by one or as a list."""
    return sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


has_openmp, has_lapack, has_mkl, has_spectral = True, True, False, True
