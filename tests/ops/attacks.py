"""Wrong arguments for an operator, made from its schema: (what is wrong, args, kwargs, whether it must raise)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from table import SAMPLES, calls, operator, strata

HUGE = [0, -1, 2**31, 2**62, 2**63, -(2**63)]


def plain(schema) -> tuple[list, dict]:
    """Arguments of a common kind, where there is no sample."""
    args, kwargs = [], {}
    for a in schema.args:
        if a.default is not None:
            continue
        value = {
            "Tensor": lambda: strata.ones(2, 3), "Tensor?": lambda: None, "Tensor[]": lambda: [strata.ones(2, 3)],
            "Tensor?[]": lambda: [strata.zeros(2, dtype=strata.int64)], "int": lambda: 0, "int?": lambda: None,
            "int[]": lambda: [1, 1], "int[]?": lambda: None, "float": lambda: 0.5, "float?": lambda: None,
            "bool": lambda: False, "bool?": lambda: None, "Scalar": lambda: 1, "Scalar?": lambda: None, "str": lambda: "none",
            "str?": lambda: None, "ScalarType": lambda: strata.float32, "ScalarType?": lambda: None,
            "Device": lambda: strata.device("cpu"), "Device?": lambda: None,
            "MemoryFormat": lambda: strata.contiguous_format, "MemoryFormat?": lambda: None, "Generator?": lambda: None,
            "bool[]": lambda: [True, True, True],
        }[a.key]()
        if a.kwonly:
            kwargs[a.name] = value
        else:
            args.append(value)
    return args, kwargs


def base(entry) -> tuple[list, dict]:
    """A good call: the first sample that is accepted, else plain arguments; positional as far as the schema has them so."""
    if entry.row.samples in SAMPLES:
        for dtype in ("float32", "int64", "bool"):
            for args, kwargs in calls(entry, dtype):
                try:
                    operator(entry.schema)(*args, **kwargs)
                except (RuntimeError, ValueError, TypeError, IndexError):
                    continue
                args, kwargs = next((a, k) for a, k in calls(entry, dtype))
                return list(args), dict(kwargs)
    return plain(entry.schema)


def deep(rank: int, t=None):
    return strata.ones([1] * rank, dtype=strata.float32 if t is None else t.dtype)


def wrong_values(a, good) -> Iterator[tuple[str, object, bool]]:
    """Values that do not fit an argument: name, value, must it raise."""
    if a.type == "Tensor":
        yield "None", None, True
        yield "a string", "x", True
        yield "a list", [1.0, 2.0], True
        for dtype in ("bool", "uint8", "int64", "float16", "float64", "complex64"):
            if isinstance(good, strata.Tensor):
                yield f"dtype {dtype}", good.to(getattr(strata, dtype)), False
            else:
                yield f"dtype {dtype}", strata.ones(2, 3, dtype=getattr(strata, dtype)), False
        t = good if isinstance(good, strata.Tensor) else None
        for rank in (0, 1, 5, 9, 14):
            yield f"rank {rank}", deep(rank, t), False
        for shape in ((0,), (0, 3), (2, 0, 4)):
            yield f"shape {shape}", strata.ones(shape, dtype=strata.float32 if t is None else t.dtype), False
        yield "NaN and infinities", strata.tensor([math.nan, math.inf, -math.inf]), False
    elif a.key in ("Tensor[]", "Tensor?[]"):
        yield "None", None, True
        yield "a string", "x", True
        yield "an empty list", [], False
        yield "a list with a string", ["x"], True
        yield "two dtypes", [strata.ones(2, 3), strata.ones(2, 3, dtype=strata.int64)], False
        yield "two shapes", [strata.ones(2, 3), strata.ones(5)], False
        yield "rank 9", [deep(9), deep(9)], False
    elif a.key in ("int", "int?"):
        for n in (*HUGE, 7, -7, 100):
            yield f"{n}", n, abs(n) >= 2**63 and n > 0
        for value in (math.nan, math.inf, 0.5, "x", [1, 2]):
            yield f"{value!r}", value, True
    elif a.key in ("int[]", "int[]?"):
        for n in HUGE:
            yield f"[{n}]", [n], n == 2**63
            yield f"[{n}, {n}]", [n, n], n == 2**63
        yield "[0, 0]", [0, 0], False
        yield "[]", [], False
        yield "nine", [1] * 9, False
        yield "twice the same", [1, 1, 1], False
        for value in (math.nan, math.inf, 0.5):
            yield f"[{value}]", [value], True
        for value in ("x", ["x"]):
            yield f"{value!r}", value, True
    elif a.key in ("float", "float?", "Scalar", "Scalar?"):
        for value in (math.nan, math.inf, -math.inf, -1, 0, 2**62, 1e300):
            yield f"{value}", value, False
        yield "2^80", 2**80, False
        yield "a string", "x", True
        yield "a list", [1.0], True
        yield "complex", 1j, False
    elif a.key in ("bool", "bool?"):
        yield "a string", "x", True
        yield "a list", [True], True
    elif a.key in ("str", "str?"):
        yield "an unknown word", "no such mode", False
        yield "a number", 5, True
    elif a.key in ("ScalarType", "ScalarType?"):
        yield "a string", "float32", True
        for dtype in ("bool", "uint8", "int64", "float16", "complex64"):
            yield dtype, getattr(strata, dtype), False
    elif a.key.startswith(("Device", "MemoryFormat", "Generator")):
        yield "a list", [3], True
        if a.key.startswith("Device"):
            yield "an unknown device", "no_such_device", True


def with_value(schema, args: list, kwargs: dict, index: int, value) -> tuple[list, dict]:
    a = schema.args[index]
    if not a.kwonly and index < len(args):
        return [*args[:index], value, *args[index + 1:]], kwargs
    return args, {**kwargs, a.name: value}


def attacks(entry) -> Iterator[tuple[str, object, list, dict, bool]]:
    """All wrong calls of an entry: what, the operator, args, kwargs, must it raise."""
    schema, op = entry.schema, operator(entry.schema)

    def fresh():
        return base(entry)

    args, kwargs = fresh()
    for i, a in enumerate(schema.args):
        good = args[i] if i < len(args) else kwargs.get(a.name)
        for what, value, must in wrong_values(a, good):
            if must and a.type == "Tensor" and what in ("None",) and a.default is not None:
                must = False
            x, k = with_value(schema, *fresh(), i, value)
            yield f"{a.name}: {what}", op, x, k, must
    required = [a for a in schema.args if a.default is None]
    if required:
        given, named = fresh()
        if required[0].kwonly:
            yield "no keyword", op, given, {}, True
        else:
            yield "nothing", op, [], named, True
            count = sum(1 for a in required if not a.kwonly)
            yield "one argument too few", op, given[: count - 1], {}, True
    given, named = fresh()
    yield "surplus arguments", op, [*given, *[object()] * (len(schema.args) + 1)], named, True
    yield "an unknown keyword", op, given, {**named, "no_such_argument": 1}, True
    if entry.inplace:
        given, named = fresh()
        if given and isinstance(given[0], strata.Tensor) and given[0].dim() > 0:
            one = given[0].reshape(-1)[:1]
            yield ("an expanded tensor written", operator(entry.inplace_schema()), [one.expand(4), *given[1:]], named, True)
    if entry.out:
        outs = [a.name for a in entry.out_schema().args if a.written]
        wide = {n: strata.ones(1).expand(2, 3) for n in outs}
        op_out = operator(entry.out_schema())
        for what, values in (("expanded", wide), ("of bool", {n: strata.empty(0, dtype=strata.bool) for n in outs}),
                             ("a string", {n: "x" for n in outs}), ("None", {n: None for n in outs})):
            given, named = fresh()
            yield f"out= {what}", op_out, given, {**named, **values}, what in ("a string", "None")
        given, named = fresh()
        if given and isinstance(given[0], strata.Tensor):
            yield "out= an argument", op_out, given, {**named, **{n: given[0] for n in outs}}, False
