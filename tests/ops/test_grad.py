"""gradcheck and gradgradcheck in float64 of every operator with a derivative."""

from __future__ import annotations

import re

from table import ENTRIES, calls, operator, pytest, skip_reason, strata

NONE = re.compile(r"^raise \w+\(")  # a formula that says that there is none, and raises


def formulas(entry):
    """(argument, its formula) of the derivatives in the table."""
    return [(a.strip(), formula) for key, formula in entry.grad.items() for a in key.split(",")]


def derived(entry) -> set[str]:
    return {a for a, formula in formulas(entry) if not NONE.search(formula)}


def differentiable_call(entry, args, kwargs, wanted):
    """A function of the floating arguments among those wanted, and these arguments."""
    inputs, places = [], []
    for i, a in enumerate(entry.schema.args):
        value = args[i] if i < len(args) else kwargs.get(a.name)
        if a.name not in wanted:
            continue
        if isinstance(value, strata.Tensor) and (value.is_floating_point() or value.is_complex()):
            places.append((i, None))
            inputs.append(value.clone().requires_grad_(True))
        elif isinstance(value, (list, tuple)) and value and all(isinstance(v, strata.Tensor) for v in value):
            for j, v in enumerate(value):
                if not (v.is_floating_point() or v.is_complex()):
                    continue
                places.append((i, j))
                inputs.append(v.clone().requires_grad_(True))
    if not inputs:
        return None, []
    op = operator(entry.schema)
    written = entry.schema.args[0].written

    def f(*xs):
        full = list(args)
        for (i, j), x in zip(places, xs, strict=True):
            if j is None:
                full[i] = x.clone() if written and i == 0 else x
            else:
                full[i] = [*full[i][:j], x, *full[i][j + 1:]]
        return op(*full, **kwargs)

    return f, inputs


CASES = [e for e in ENTRIES if derived(e) and not skip_reason(e, "grad")]


def accepted(f, inputs) -> bool:
    """Whether the sample is one of good input, in double precision throughout."""
    wide = (strata.float64, strata.complex128)
    try:
        result = f(*inputs)
    except (RuntimeError, ValueError, TypeError, IndexError):
        return False
    results = [result] if isinstance(result, strata.Tensor) else [r for r in result if isinstance(r, strata.Tensor)]
    results = [r for r in results if r.is_floating_point() or r.is_complex()]
    return bool(results) and all(t.dtype in wide and ordinary([t.detach()]) for t in [*inputs, *results])


def ordinary(inputs) -> bool:
    return all(strata.isfinite(x).all().item() for x in inputs)


def double_calls(entry):
    yield from calls(entry, "float64")
    yield from calls(entry, "complex128")


MOST = 400  # numbers in the inputs of a sample; larger ones are for lengths at which kernels change


def check_samples(entry, checker) -> None:
    checked = 0
    for args, kwargs in double_calls(entry):
        f, inputs = differentiable_call(entry, args, kwargs, derived(entry))
        if 0 < sum(x.numel() for x in inputs) <= MOST and ordinary(inputs) and accepted(f, inputs):
            assert checker(f, inputs)
            checked += 1
    assert checked, "no sample of this operator has a derivative to check"


@pytest.mark.parametrize("entry", CASES, ids=lambda e: e.schema.full)
def test_gradcheck(entry):
    check_samples(entry, strata.autograd.gradcheck)


@pytest.mark.parametrize("entry", [e for e in CASES if not skip_reason(e, "gradgrad")], ids=lambda e: e.schema.full)
def test_gradgradcheck(entry):
    check_samples(entry, strata.autograd.gradgradcheck)


def refusals():
    """(entry, argument) of the derivatives that the table says nobody has."""
    return [(e, a) for e in ENTRIES for a, formula in formulas(e) if NONE.search(formula)]


@pytest.mark.parametrize(("entry", "argument"), refusals(), ids=lambda v: v if isinstance(v, str) else v.schema.full)
def test_a_missing_derivative_raises(entry, argument):
    raised = 0
    for args, kwargs in double_calls(entry):
        f, inputs = differentiable_call(entry, args, kwargs, {argument})
        if inputs and accepted(f, inputs):
            results = f(*inputs)
            results = [results] if isinstance(results, strata.Tensor) else results
            value = next(r for r in results if r.requires_grad)
            with pytest.raises(NotImplementedError):
                value.backward(strata.ones_like(value))
            raised += 1
    assert raised, "no sample of this operator shows it"
