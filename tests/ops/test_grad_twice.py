"""An elementwise derivative is linear in the gradient that it is given, so its own derivative by that gradient is itself,
of another gradient: with the zeros of branches that are not taken whatever that one is, and as exact as its dtype."""

from __future__ import annotations

import warnings

from table import calls, pytest, strata
from test_grad import CASES, differentiable_call, formulas

OUTER = (1.0, float("inf"), -2.5, float("nan"), 0.0, 3.0, -float("inf"))
SPECIAL = (0.0, -1.0, 1.0, 0.5, -0.25, 3.0, -3.0, 7.0)


def cycled(values, like):
    """The values over and over, of the shape and dtype of `like`."""
    numbers = [values[i % len(values)] for i in range(like.numel())]
    return strata.tensor(numbers, dtype=like.dtype).reshape(like.shape)


def others(args):
    """The arguments as they are, and with one tensor behind the first as integers, or as a number of float32."""
    yield args
    for i, a in enumerate(args):
        if i and isinstance(a, strata.Tensor) and a.is_floating_point():
            yield [*args[:i], a.nan_to_num().clamp(1, 7).round().long(), *args[i + 1 :]]
            yield [*args[:i], strata.tensor(0.7, dtype=strata.float32), *args[i + 1 :]]


def cases(entry):
    for args, kwargs in calls(entry, "float64"):
        for given in others(list(args)):
            yield given, kwargs
            yield [cycled(SPECIAL, a) if isinstance(a, strata.Tensor) and a.dtype == strata.float64 else a for a in given], kwargs


def outcome(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs)
        except (RuntimeError, ValueError, TypeError, IndexError):
            return None  # bad input is for other tests


@pytest.mark.parametrize("entry", [e for e in CASES if e.kind == "pointwise"], ids=lambda e: e.schema.full)
def test_derivative_by_the_gradient(entry):
    derive, checked = strata.autograd.grad, 0
    for args, kwargs in cases(entry):
        for name, _ in formulas(entry):
            f, inputs = differentiable_call(entry, args, kwargs, {name})
            result = outcome(f, *inputs) if len(inputs) == 1 else None
            if not isinstance(result, strata.Tensor) or not result.requires_grad or result.shape != inputs[0].shape:
                continue
            if not result.dtype == inputs[0].dtype == strata.float64:
                continue
            outer, own = cycled(OUTER, result), strata.ones_like(result).requires_grad_()
            grads = outcome(derive, result, inputs[0], own, create_graph=True)
            if grads is None or not grads[0].requires_grad:
                continue
            twice = outcome(derive, grads[0], own, outer, allow_unused=True)
            want = derive(f(*inputs), inputs[0], outer)[0]
            got = strata.zeros_like(want) if not twice or twice[0] is None else twice[0]
            assert strata.allclose(got, want, rtol=1e-13, atol=0, equal_nan=True), (name, args, kwargs, got, want)
            checked += 1
    if not checked:
        pytest.skip("no sample has one operand of the result's shape")
