"""vmap of every operator gives what the operator gives for one element after the other: results, what it writes, and errors."""

import numpy as np
import pytest
from kit import flattened
from strata._batched import BatchedTensor, Level, Unfit
from table import ENTRIES, calls, operator, sampled, strata

SIZE = 3
# What vmap refuses: results that cannot lie side by side, values that are asked for, writes to what elements share, other sizes in place.
REFUSED = ("of other sizes", ".item()", "written in-place", "changes the sizes", "random operation", "out=")
# Whose results are memory that nobody wrote or have signs of the library's choice; and ormqr, which raises under vmap.
SKIPPED = {"ormqr", "empty", "_linalg_svd", "linalg_svd", "linalg_eig", "_linalg_eigh", "linalg_eigh", "svd", "linalg_qr", "qr", "geqrf"}
CASES = [
    e for e in ENTRIES
    if e.row.samples and e.kind not in {"allocate"} and e.family not in {"random"} and e.schema.name not in SKIPPED
]  # fmt: skip


def changed(t: strata.Tensor, step: int) -> strata.Tensor:
    """Another element like t: the same values elsewhere; indices and masks stay."""
    if step == 0 or t.dim() == 0 or not (t.is_floating_point() or t.is_complex()):
        return t.clone()
    return t.flatten().roll(step).reshape(t.shape).contiguous()


def elements(args, kwargs, mapped):
    """The arguments of each element: tensors of which the numbers in `mapped` differ."""
    count = iter(range(1000))

    def of(value, step):
        if isinstance(value, strata.Tensor):
            return changed(value, step if next(count) in mapped else 0)
        if isinstance(value, (list, tuple)):
            return type(value)(of(v, step) for v in value)
        return value

    found = []
    for step in range(SIZE):
        count = iter(range(1000))
        found.append((tuple(of(a, step) for a in args), {k: of(v, step) for k, v in kwargs.items()}))
    return found


def joined(level, parts, mapped):
    """The same arguments side by side: those in `mapped` as BatchedTensors."""
    count = iter(range(1000))

    def of(values):
        if isinstance(values[0], strata.Tensor):
            return level.wrap(strata.stack(list(values))) if next(count) in mapped else values[0].clone()
        if isinstance(values[0], (list, tuple)):
            return type(values[0])(of(v) for v in zip(*values, strict=True))
        return values[0]

    args = tuple(of(a) for a in zip(*(p[0] for p in parts), strict=True))
    return args, {k: of([p[1][k] for p in parts]) for k in parts[0][1]}


def results(op, args, kwargs):
    """What a call gives and what it has written, or its error's class."""
    try:
        made = op(*args, **kwargs)
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, Unfit) as e:
        return e, []
    tensors = [t for t in flattened([made]) if isinstance(t, strata.Tensor)]
    written = [t for t in flattened([args]) if isinstance(t, strata.Tensor)] if op._schema.is_mutable else []
    return None, tensors + written


def close(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not (a.is_floating_point() or a.is_complex()):
        return bool((a == b).all())
    a, b = (np.asarray(t.detach().to(strata.complex128 if t.is_complex() else strata.float64).contiguous().numpy()) for t in (a, b))
    largest = np.abs(b[np.isfinite(b)]).max(initial=1)
    return np.allclose(a, b, rtol=2e-5, atol=2e-5 * largest, equal_nan=True)


def check(op, args, kwargs, mapped):
    parts = elements(args, kwargs, mapped)
    with Level(SIZE) as level:
        error, made = results(op, *joined(level, parts, mapped))
    single = [results(op, *p) for p in parts]
    if any(e for e, _ in single):
        assert error is not None, (mapped, f"the elements raise {type(next(e for e, _ in single if e)).__name__}, all of them nothing")
        return
    columns = list(zip(*(found for _, found in single), strict=True))
    if error is not None:
        assert columns == [] or isinstance(error, Unfit) or any(word in str(error) for word in REFUSED), (mapped, error)
        return
    assert len(made) == len(columns)
    for whole, column in zip(made, columns, strict=True):
        if any(t.shape != column[0].shape for t in column):
            continue
        got = level.whole(whole) if isinstance(whole, BatchedTensor) else whole.expand(SIZE, *whole.shape)
        for i, t in enumerate(column):
            assert close(got[i], t), (mapped, i, got[i], t)


@pytest.mark.parametrize("entry", sampled(CASES, 150, "vmap"), ids=lambda e: e.schema.full)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_is_the_loop(entry, dtype):
    op = operator(entry.schema)
    for number, (args, kwargs) in enumerate(calls(entry, dtype)):
        count = len([t for t in flattened([args, list(kwargs.values())]) if isinstance(t, strata.Tensor)])
        if count == 0 or number > 8:
            continue
        for mapped in {(0,), tuple(range(count)), (count - 1,)}:
            check(op, args, kwargs, mapped)


def slopes(op, args, kwargs):
    """Gradients of the sum of squares of what a call gives by its floating tensors, or the error."""
    leaves = []

    def follow(value):
        if isinstance(value, strata.Tensor) and value.is_floating_point():
            leaves.append(value.requires_grad_() if not value.requires_grad else value)
            return leaves[-1]
        if isinstance(value, (list, tuple)):
            return type(value)(follow(v) for v in value)
        return value

    args, kwargs = tuple(follow(a) for a in args), {k: follow(v) for k, v in kwargs.items()}
    try:
        made = [t for t in flattened([op(*args, **kwargs)]) if isinstance(t, strata.Tensor) and t.requires_grad]
        made = [t for t in made if t.is_floating_point()]
        if not made:
            return None, []
        total = sum((t * t).sum() for t in made)
        found = strata.autograd.grad(total, leaves, allow_unused=True)
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, Unfit) as e:
        return e, []
    return None, [strata.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True)]


DERIVED = [e for e in CASES if e.kind not in {"view"} and not e.schema.name.endswith("_") and not any(a.written for a in e.schema.args)]


@pytest.mark.parametrize("entry", sampled(DERIVED, 100, "vmap of gradients"), ids=lambda e: e.schema.full)
def test_gradients_are_the_loops(entry):
    op = operator(entry.schema)
    for number, (args, kwargs) in enumerate(calls(entry, "float32")):
        count = len([t for t in flattened([args, list(kwargs.values())]) if isinstance(t, strata.Tensor)])
        if count == 0 or number > 3:
            continue
        for mapped in {(0,), tuple(range(count))}:
            parts = elements(args, kwargs, mapped)
            single = [slopes(op, *p) for p in elements(args, kwargs, mapped)]
            if any(e for e, _ in single):
                continue
            with Level(SIZE) as level:
                joint, named = joined(level, parts, mapped)
                coats = lambda v: level.wrap(v, False) if isinstance(v, strata.Tensor) and not isinstance(v, BatchedTensor) else type(v)(coats(w) for w in v) if isinstance(v, (list, tuple)) else v  # noqa: E501, E731, B023
                error, made = slopes(op, tuple(coats(a) for a in joint), {k: coats(v) for k, v in named.items()})
            if error is not None:
                assert isinstance(error, Unfit) or any(word in str(error) for word in REFUSED), (mapped, error)
                continue
            for whole, column in zip(made, zip(*(found for _, found in single), strict=True), strict=True):
                got = level.whole(whole)
                for i, t in enumerate(column):
                    assert close(got[i], t), (mapped, i, got[i], t)
