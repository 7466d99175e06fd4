"""One call on the CPU and on a device: results, what it wrote, gradients, errors, bit for bit."""

from __future__ import annotations

import warnings

import numpy as np

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)
# Why the bits of results are not compared.
UNDEFINED = {
    "aten::empty.memory_format": "memory without values",
    "aten::empty_like": "memory without values",
    "aten::empty_permuted": "memory without values",
    "aten::empty_strided": "memory without values",
    "aten::new_empty": "memory without values",
    "aten::new_empty_strided": "memory without values",
    "aten::resize_": "memory that it adds has no values",
    "aten::resize_as_": "memory that it adds has no values",
}
# Results lie where the `device` argument says; or the operator takes a tensor on the CPU.
ELSEWHERE = ("aten::to.device", "aten::linspace.Tensor_Tensor", "aten::logspace.Tensor_Tensor")
TAKES_CPU = ("aten::tensor_split.tensor_indices_or_sections", "strata::_set_generator_state")


def bits(a: np.ndarray) -> bytes:
    """The bits of an array, with every NaN alike."""
    if a.dtype.kind == "c":
        a = np.ascontiguousarray(a).view(a.real.dtype)
    if a.dtype.kind == "f":
        a = np.where(np.isnan(a), np.array(np.nan, a.dtype), a)
    return np.ascontiguousarray(a).tobytes()


def tensors_of(value: Any) -> Iterator[strata.Tensor]:
    """The tensors in nested lists."""
    if isinstance(value, strata.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors_of(v)


def shown(value: Any, defined: bool = True) -> Any:
    """What a call gave, for comparison: tensors by dtype, sizes, strides and bits."""
    if isinstance(value, strata.Tensor):
        host = value.detach().cpu().contiguous()
        host = host.float() if host.dtype == strata.bfloat16 else host
        return str(value.dtype), tuple(value.shape), value.stride(), bits(host.numpy()) if defined else None
    if isinstance(value, (list, tuple)):
        return [shown(v, defined) for v in value]
    return repr(value)


def difference(got: Any, want: Any) -> str:
    """The first place where two shown results differ, in words."""
    if isinstance(got, list) and isinstance(want, list):
        if len(got) != len(want):
            return f"{len(got)} results, expected {len(want)}"
        return next((difference(a, b) for a, b in zip(got, want) if a != b), "no difference")
    if isinstance(got, tuple) and isinstance(want, tuple):
        for a, b, what in zip(got, want, ("dtype", "sizes", "strides")):
            if a != b:
                return f"{what} {a}, expected {b}"
        a, b = (np.frombuffer(v[3], np.uint8).reshape(max(int(np.prod(v[1])), 1), -1) for v in (got, want))
        wrong = np.flatnonzero((a != b).any(1))
        return f"{len(wrong)} of {len(a)} elements of {got[0]} have other bits, the first is number {wrong[0]}"
    return f"gave {got if isinstance(got, str) else 'a result'}, expected {want if isinstance(want, str) else 'a result'}"


def wait(device: strata.device | None) -> None:
    if device is not None:
        strata.accelerator.synchronize(device)


def ran(device: strata.device | None, op: Callable, args: list, kwargs: dict, defined: bool, differentiate: bool) -> tuple:
    """Results, arguments afterwards and gradients, or the error; and what the call gave. Device None: the CPU."""
    strata.manual_seed(5)
    inputs = list(tensors_of([*args, *kwargs.values()]))
    if differentiate:
        inputs = [t for t in inputs if t.is_floating_point() or t.is_complex()]
        for t in inputs:
            t.requires_grad_()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = op(*args, **kwargs)
            wait(device)
            if not differentiate:
                return shown([result, list(tensors_of([*args, *kwargs.values()]))], defined), result
            made = [t for t in tensors_of(result) if t.requires_grad]
            if not made:
                return None, result
            grads = strata.autograd.grad(made, inputs, [strata.ones_like(t) for t in made], allow_unused=True)
            wait(device)
            return shown(list(grads), defined), result
    except ERRORS as error:
        return type(error).__name__, None


def verdict(name: str, device: strata.device, got: Any, want: Any, args: Any, result: Any) -> str | None:
    """Why a call on the device is not the CPU's; None where it is."""
    if name in TAKES_CPU and got in ("RuntimeError", "TypeError"):
        return None
    if got != want:
        return difference(got, want)
    if isinstance(want, str) or name in ELSEWHERE or not any(True for _ in tensors_of(args)):
        return None
    away = [str(t.device) for t in tensors_of(result) if t.device.type != device.type]
    return f"a result is on {away[0]}, expected {device.type}" if away else None
