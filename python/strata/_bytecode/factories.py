"""Tensors of Python data that a capture makes."""

from __future__ import annotations

import strata
from strata import _C

from . import polyfills, sizes, values
from .reasons import Break

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _as_it_is(data: Any) -> Any:
    """A copy of nests of numbers."""
    if type(data) in (list, tuple):
        return type(data)(map(_as_it_is, data))
    return data


def _alike(data: Any) -> bool:
    """Whether these are tensors without dims, of one dtype, where a new tensor would be."""
    if type(data) not in (list, tuple) or not all(type(t) is strata.Tensor and t.dim() == 0 for t in data):
        return False
    return len({(t.dtype, t.device) for t in data}) == 1 and data[0].device.type == _C._default_device().type


def _factory(function: Any) -> Callable:
    """A tensor of Python data: each call makes it anew, as an input of the graph."""

    def make(tracer: Any, args: tuple, kwargs: dict, f: Any) -> Any:
        if tracer.has_tensor(args):
            if function is _C.as_tensor and values.is_tensor(args[0]) and len(args) == 1:
                return tracer.call_operator(function, args, kwargs)
            if len(args) == 1 and not kwargs and _alike(args[0]):
                return tracer.call(polyfills.tensor_of_scalars, args, {})
            raise Break(f"{function.__name__} of values of tensors", "strata.stack keeps them in the graph")
        tracer.check_simple((args, kwargs), function.__name__)
        args = _as_it_is(args)  # lists may change behind it
        made = tracer.native(_C._unrecorded, function, sizes.concrete(args), sizes.concrete(kwargs))
        if made.requires_grad:
            raise Break("a tensor that requires a gradient is made")
        tracer.fresh_inputs.append((made, function, args, kwargs))
        tracer.region.input(made, f"{function.__name__}()")
        if tracer.program is not None:
            tracer.program.fresh(made, function, args, kwargs, f"{function.__name__}()")
        tracer.keep.append(made)
        return made

    return make


def _new_tensor(tracer: Any, args: tuple, kwargs: dict, f: Any) -> Any:
    like = args[0]
    given = {**kwargs, "dtype": kwargs.get("dtype") or like.dtype, "device": kwargs.get("device") or like.device}
    return _factory(_C.tensor)(tracer, args[1:], given, f)


SPECIAL: dict[Any, Callable] = {
    strata.Tensor.new_tensor: _new_tensor,
    _C.tensor: _factory(_C.tensor),
    _C.as_tensor: _factory(_C.as_tensor),
}
