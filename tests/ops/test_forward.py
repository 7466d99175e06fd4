"""Every operator against PyTorch's recorded results, over dtypes; the same over layouts, forms and instruction sets."""

from __future__ import annotations

import numpy as np
from references import reference
from strata.utils._pytree import tree_map
from table import (
    ENTRIES,
    FLOATS,
    TESTED,
    assert_same,
    bits,
    calls,
    operator,
    outputs,
    pytest,
    recorded,
    run,
    sampled,
    skip_reason,
    strata,
    unpack,
)

# What stands for each other where skips.json says why the types differ.
REFUSALS = ("RuntimeError", "NotImplementedError", "IndexError", "LinAlgError")
# What writes a result of its own dtype alone, though it could be converted.
EXACT_IN_PLACE = ("abs", "cumprod", "cumsum", "float_power")
# PyTorch rounds after each of the operators that these are made of; here the result is float32's, rounded (contract 1).
ROUNDED_ONCE = ("cosine_similarity", "cross", "linalg_cross", "triplet_margin_loss")
CASES = [(e, d) for e in ENTRIES for d in TESTED]
IDS = [f"{e.schema.full}-{d}" for e, d in CASES]


def chosen(keep: int):
    return sampled(list(zip(CASES, IDS, strict=True)), keep)


def parametrize(keep: int, fits=lambda e, d: True):
    picked = [(c, i) for c, i in chosen(keep) if fits(*c)]
    return pytest.mark.parametrize("entry, dtype", [c for c, _ in picked], ids=[i for _, i in picked])


def expected(entry, dtype: str) -> list:
    """What every sample must give: PyTorch's recorded results, or those of the reference; a text is an error's type."""
    index, blob = recorded(entry.family)
    found = index.get(f"{entry.schema.full}/{dtype}")
    if entry.row.reference:
        return [reference(entry, args, kwargs) for args, kwargs in calls(entry, dtype)]
    assert found is not None, (f"{entry.schema.full} {dtype} is compared with nothing: record it with tools/record_ops.py, "
                               "give the entry a `reference:`, or write into tests/ops/skips.json why there can be none")
    return [unpack(r, blob) for r in found]


def rounded_once(op, dtype: str, args, kwargs) -> list:
    narrow = getattr(strata, dtype)
    args, kwargs = tree_map(lambda t: t.float() if isinstance(t, strata.Tensor) and t.dtype == narrow else t, (args, kwargs))
    return outputs(op(*args, **kwargs).to(narrow))


def error_of(op, args, kwargs) -> str:
    try:
        op(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - its type is what is compared
        return type(error).__name__
    return "no error"


@parametrize(len(CASES), lambda e, d: not skip_reason(e, "forward"))
def test_recorded(entry, dtype):
    op = operator(entry.schema)
    for i, ((args, kwargs), want) in enumerate(zip(calls(entry, dtype), expected(entry, dtype), strict=True)):
        where = f"{entry.schema.full} {dtype} sample {i}"
        if isinstance(want, str):
            allowed = (want.lstrip("_"), *(REFUSALS if skip_reason(entry, "exceptions") else ()))
            assert (error := error_of(op, args, kwargs)) in allowed, f"{where}: {error}, expected {want}"
        else:
            if entry.schema.name in ROUNDED_ONCE and dtype in ("float16", "bfloat16"):
                want = rounded_once(op, dtype, args, kwargs)
            assert_same(run(op, args, kwargs), want, dtype, where)


def test_every_entry_has_a_result_to_compare():
    lacking = [e.schema.full for e in ENTRIES if not skip_reason(e, "forward")
               and not any(isinstance(r, list) for d in TESTED for r in expected(e, d))]
    assert not lacking, f"no sample of {lacking} has a recorded result"


def test_reasons_are_needed():
    """Who is excused from PyTorch's types of errors differs from one."""
    idle = [e.schema.full for e in ENTRIES if skip_reason(e, "exceptions") and all(
        error_of(operator(e.schema), *c) == want.lstrip("_") for d in TESTED
        for c, want in zip(calls(e, d), expected(e, d), strict=True) if isinstance(want, str))]
    assert not idle, f"tests/ops/skips.json excuses {idle} for nothing"


def restrided(t, how: str):
    """The same values under other strides."""
    if not isinstance(t, strata.Tensor) or t.dim() == 0 or t.numel() == 0:
        return t
    if how == "transposed":
        dims = list(range(t.dim()))[::-1]
        return t.permute(dims).contiguous().permute(dims)
    wide = strata.stack([t, t], -1)
    return wide.select(-1, 0)


def mapped(value, f):
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(v, f) for v in value)
    return f(value)


def ours(entry, args, kwargs):
    try:
        return run(operator(entry.schema), args, kwargs)
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
        return None


@parametrize(900)
def test_layouts_give_the_same_bits(entry, dtype):
    if entry.schema.name.startswith(("empty", "as_strided", "view", "_unsafe_view", "resize", "_become")):
        pytest.skip("its result depends on memory")
    for i, (args, kwargs) in enumerate(calls(entry, dtype)):
        want = ours(entry, args, kwargs)
        if want is None:
            continue
        for how in ("transposed", "sliced"):
            fresh, _ = list(calls(entry, dtype))[i]
            moved = mapped(fresh, lambda t, how=how: restrided(t, how))
            got = ours(entry, moved, kwargs)
            assert got is not None, f"sample {i} fails when {how}"
            for a, b in zip(got, want, strict=True):
                assert bits(a) == bits(b), f"{entry.schema.full} {dtype} sample {i}: other bits when {how}: {a} and {b}"


@parametrize(700, lambda e, d: e.kind in ("pointwise", "rows", "space") and d in ("float32", "float64", "bfloat16", "int64", "bool"))
def test_instruction_sets_and_threads_give_the_same_bits(entry, dtype):
    have = strata._C.cpu_capability()
    threads = strata.get_num_threads()
    try:
        for i, (_, kwargs) in enumerate(calls(entry, dtype)):
            results = []
            for isa, n in (("v4", 2), ("v4", 1), ("v3", 2), ("base", 1)):
                if ["base", "v3", "v4"].index(isa) > ["base", "v3", "v4"].index(have):
                    continue
                strata._C.set_cpu_capability(isa)
                strata.set_num_threads(n)
                fresh, _ = list(calls(entry, dtype))[i]
                results.append(ours(entry, fresh, kwargs))
            for r in results[1:]:
                assert (r is None) == (results[0] is None)
                for a, b in zip(r or [], results[0] or [], strict=True):
                    assert bits(a) == bits(b), f"{entry.schema.full} {dtype} sample {i}: {a} and {b}"
    finally:
        strata._C.set_cpu_capability(have)
        strata.set_num_threads(threads)


@parametrize(500, lambda e, d: e.inplace and d in (*FLOATS, "int64"))
def test_inplace_equals_the_function(entry, dtype):
    op = operator(entry.inplace_schema())
    for i, (args, kwargs) in enumerate(calls(entry, dtype)):
        want = ours(entry, args, kwargs)
        if want is None or want[0].shape != tuple(args[0].shape) or args[0].numel() == 0:
            continue
        fresh, _ = list(calls(entry, dtype))[i]
        target = fresh[0]
        try:
            result = op(*fresh, **kwargs)
        except RuntimeError as error:
            made = operator(entry.schema)(*args, **kwargs).dtype
            exact = entry.schema.name in EXACT_IN_PLACE and made != target.dtype
            assert exact or not strata.can_cast(made, target.dtype), f"sample {i}: {error!r}"
            continue
        assert result is target
        got = outputs(target)[0]
        rounded = outputs(strata.from_numpy(want[0]).to(target.dtype))[0]
        np.testing.assert_array_equal(got, rounded, err_msg=f"sample {i}")


@parametrize(500, lambda e, d: e.out is not None and d in (*FLOATS, "int64", "bool"))
def test_out_equals_the_function(entry, dtype):
    schema = entry.out_schema()
    names = [a.name for a in schema.args if a.written]
    op = operator(schema)
    for i, (args, kwargs) in enumerate(calls(entry, dtype)):
        result = None
        try:
            result = operator(entry.schema)(*args, **kwargs)
        except (RuntimeError, ValueError, TypeError, IndexError):
            continue
        results = [result] if isinstance(result, strata.Tensor) else list(result)
        outs = [strata.empty(0, dtype=r.dtype) for r in results]
        given = {"out": outs} if schema.args[-1].is_tensors else dict(zip(names, outs, strict=True))
        op(*args, **kwargs, **given)
        for o, r in zip(outs, results, strict=True):
            assert bits(outputs(o)[0]) == bits(outputs(r)[0]), f"sample {i}"
