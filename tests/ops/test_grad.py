"""gradcheck and gradgradcheck in float64 of every operator with a derivative."""

from __future__ import annotations

from table import ENTRIES, SAMPLES, calls, operator, pytest, sampled, skip_reason, strata


def differentiable_call(entry, args, kwargs):
    """A function of the floating arguments that have a derivative, and these arguments."""
    wanted = {a for key in entry.grad for a in (p.strip() for p in key.split(","))}
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


CASES = [e for e in ENTRIES if e.grad and e.raw.get("samples") in SAMPLES and not skip_reason(e, "grad")]


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


@pytest.mark.parametrize("entry", sampled(CASES, 400), ids=lambda e: e.schema.full)
def test_gradcheck(entry):
    checked = 0
    for least, most in ((1, 64), (65, 400)):  # large ones only where there is no other
        for args, kwargs in double_calls(entry) if not checked else ():
            f, inputs = differentiable_call(entry, args, kwargs)
            size = sum(x.numel() for x in inputs)
            if not inputs or not ordinary(inputs) or not least <= size <= most or not accepted(f, inputs):
                continue
            assert strata.autograd.gradcheck(f, inputs)
            checked += 1
    assert checked, "no sample of this operator has a gradient to check"


@pytest.mark.parametrize("entry", sampled([e for e in CASES if not skip_reason(e, "gradgrad")], 250), ids=lambda e: e.schema.full)
def test_gradgradcheck(entry):
    for args, kwargs in double_calls(entry):
        f, inputs = differentiable_call(entry, args, kwargs)
        if not inputs or not ordinary(inputs) or not 0 < sum(x.numel() for x in inputs) <= 40 or not accepted(f, inputs):
            continue
        assert strata.autograd.gradgradcheck(f, inputs)
        return
