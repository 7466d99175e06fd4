"""Expressions over `torch`, the same in every interpreter, and what they come to as text: corners that samples of operators
do not reach. Forms of `dim` for every function that takes one, empty and 0-dim tensors, NaN where numbers are ordered,
index expressions."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

TENSORS = {
    "0d": "torch.tensor(2.)", "0d int": "torch.tensor(2)", "line": "torch.tensor([3., 1., 2.])", "int": "torch.tensor([3, 1, 2])",
    "matrix": "torch.arange(6.).reshape(2, 3)", "bool": "torch.ones(2, 3, dtype=torch.bool)",
    "bytes": "torch.arange(6, dtype=torch.uint8).reshape(2, 3)", "complex": "torch.ones(2, 3, dtype=torch.complex64)",
}
EMPTY = [f"torch.zeros({s}, dtype=torch.{d})" for s in ("0", "2, 0", "0, 3", "0, 0")
         for d in ("float32", "int64", "uint8", "bool", "float16", "int32")]
DIMS = ("[]", "()", "[0]", "[0, 0]", "[0, -1]", "[-1, -1]", "(0, 1)", "[1, 0]", "0", "-1", "1", "None")
# Functions with `dim`, and what they take before it. logsumexp of no dims raises in PyTorch; here it takes all.
OVER_DIMS = {
    "sum": "", "mean": "", "nansum": "", "nanmean": "", "prod": "", "amax": "", "amin": "", "aminmax": "", "max": "", "min": "",
    "argmax": "", "argmin": "", "all": "", "any": "", "std": "", "var": "", "std_mean": "", "var_mean": "", "median": "",
    "nanmedian": "", "count_nonzero": "", "cumsum": "", "cumprod": "", "logcumsumexp": "", "softmax": "", "log_softmax": "",
    "sort": "", "argsort": "", "unique": "", "unique_consecutive": "", "squeeze": "", "unsqueeze": "", "diff": "", "trapezoid": "",
    "cumulative_trapezoid": "", "quantile": "0.5, ", "nanquantile": "0.5, ", "norm": "2, ", "linalg.vector_norm": "2, ",
    "linalg.norm": "None, ", "split": "1, ", "chunk": "2, ", "tensor_split": "2, ", "unbind": "", "topk": "1, ", "flip": "",
}
KEEP = ("sum", "all", "any", "amax", "mean", "std_mean", "median", "aminmax", "argmax", "norm", "nansum")

NANS = (
    "torch.tensor([1., nan, 3., nan, 2.])", "torch.tensor([3., 1., nan])", "torch.tensor([nan, nan])", "torch.tensor(nan)",
    "torch.tensor([[1., nan, 0.], [nan, nan, nan], [inf, -inf, nan], [2., 5., 1.]])", "torch.tensor([2., nan, 3.]).half()",
    "torch.tensor([1., nan, 3., nan, 2.]).bfloat16()", "torch.tensor([2., nan, 3., 1.]).double()",
)
OF_ONE = (
    "median nanmedian sort argsort argmax argmin max min amax amin aminmax unique unique_consecutive msort logcumsumexp cumsum "
    "logsumexp nansum nanmean sum mean std var count_nonzero nonzero isnan isposinf sign round nan_to_num logical_not any all "
    "histc relu sgn sinc frac trunc digamma"
).split()
LINES = "cummax cummin median nanmedian sort argsort argmax argmin max min amax amin aminmax logcumsumexp nansum nanmean".split()
OF_TWO = (
    "maximum minimum fmax fmin heaviside nextafter fmod remainder hypot atan2 logaddexp eq ne lt le gt ge isclose dist pow "
    "floor_divide true_divide logical_and logical_xor"
).split()


def forms_of_dim() -> Iterator[str]:
    for name, before in OVER_DIMS.items():
        for x in [*TENSORS.values(), *EMPTY]:
            yield f"torch.{name}({x}{', ' + before[:-2] if before else ''})"
            for dim in DIMS:
                yield f"torch.{name}({x}, {before}dim={dim})"
                if name in KEEP:
                    yield f"torch.{name}({x}, {before}dim={dim}, keepdim=True)"


def orders() -> Iterator[str]:
    for x in NANS:
        for name in OF_ONE:
            yield f"torch.{name}({x})"
        for name, dim in itertools.product(LINES, (0, -1)):
            yield f"torch.{name}({x}, dim={dim})"
        yield f"torch.sort({x}, descending=True)"
        for low, high in itertools.product(("None", "0.", "nan"), ("None", "1.5", "nan")):
            if low != high or low == "nan":
                yield f"torch.clamp({x}, {low}, {high})"
        for name, other in itertools.product(OF_TWO, ("nan", "0.", "1.5", "inf")):
            yield f"torch.{name}({x}, torch.tensor({other}))"
            yield f"torch.{name}(torch.tensor({other}), {x})"
        for line, right in itertools.product(("[1., 2., 3.]", "[1., 2., nan]", "[nan, nan]"), (True, False)):
            yield f"torch.searchsorted(torch.tensor({line}), {x}, right={right})"
            yield f"torch.bucketize({x}, torch.tensor({line}), right={right})"
        for order in ("0", "1", "2", "inf", "-inf", "3"):
            yield f"torch.linalg.vector_norm({x}, {order})"
        yield f"torch.histc({x}, 3, 0, 3)"
        yield f"torch.quantile({x}, 0.5)"
        yield f"torch.nanquantile({x}, 0.5)"
        yield f"torch.unique({x}, return_inverse=True, return_counts=True)"
        yield f"torch.isin({x}, torch.tensor([nan, 1.]))"
        yield f"torch.equal({x}, {x})"
    for x in ("[1., nan, 2., 2.]", "[nan, nan]", "[nan, 1., 1., nan, nan]"):
        yield f"torch.mode(torch.tensor({x}))[0]"


def halves_and_differences() -> Iterator[str]:
    for x in ("torch.ones(2).half()", "torch.ones(2).bfloat16()", "torch.tensor(1.).half()", "torch.ones(2)", "torch.arange(2)"):
        for other in ("2j", "torch.tensor(2j)", "torch.tensor([2j, 1j])"):
            for op in ("+", "*", "/", "==", "!="):
                yield f"({x} {op} {other})"
            yield f"torch.where({x} > 0, {x}, {other})"
        for n, more in itertools.product(range(4), ("", ", dim=5", f", prepend={x}", f", append={x}, dim=0")):
            yield f"torch.diff({x}, n={n}{more})"
        for power in ("torch.tensor([1, 2])", "torch.tensor([1, 2], dtype=torch.uint8)", "torch.tensor([1., 2.])", "torch.tensor(2)"):
            yield f"torch.ldexp({x}, {power})"
    for a, b in itertools.product(("float32", "int64", "bool", "float16", "float64"), repeat=2):
        yield f"torch.linalg.cross(torch.arange(3).to(torch.{a}), torch.arange(3).flip(0).to(torch.{b}))"
    for d in ("float32", "float16", "int64", "int32", "int16", "uint8", "int8", "bool", "complex64"):
        for name in ("median", "nanmedian", "mode", "kthvalue", "sort", "max", "sum", "prod", "any", "unique"):
            k = ", 1" if name == "kthvalue" else ""
            yield f"torch.{name}(torch.zeros(0, dtype=torch.{d}){k})"
            yield f"torch.{name}(torch.zeros(2, 0, dtype=torch.{d}){k}, dim=0)"


def _index(draw: random.Random, size: int, state: dict) -> str:
    """One part of an index for a dim of `size`."""

    def place() -> str:
        return str(draw.randint(-size, size - 1) if size else 0)

    def places(n: int) -> str:
        return "[" + ", ".join(place() for _ in range(n)) + "]"

    kind = draw.choices(
        ("none", "ellipsis", "slice", "number", "truth", "mask", "no", "scalar", "list", "tensor", "grid"),
        (12, 8, 12, 12, 5, 10, 9, 4, 12, 8, 8),
    )[0]
    if kind == "ellipsis" and state.setdefault("ellipsis", False) is False:
        state["ellipsis"] = True
        return "..."
    if kind == "none":
        return "None"
    if kind in ("ellipsis", "slice"):
        a, b = draw.randint(-size - 1, size + 1), draw.randint(-size - 1, size + 1)
        return draw.choice([f"{a}:{b}", f"{a}:", f":{b}", ":", "0:0", f"{a}:{b}:2", "::3"])
    if kind == "number":
        return place()
    if kind == "truth":
        return draw.choice(["True", "False"])
    if kind == "mask":
        return "[" + ", ".join(draw.choice(["True", "False"]) for _ in range(size)) + "]" if size else "torch.zeros(0, dtype=torch.bool)"
    if kind == "no":
        return draw.choice(["[]", "torch.zeros(0, dtype=torch.long)"])
    if kind == "scalar":
        return f"torch.tensor({place()})"
    if kind == "list":
        return places(draw.choice([1, state["k"], state["k"]]))
    return f"torch.tensor({places(state['k'])})" if kind == "tensor" else f"torch.tensor([{places(state['k'])}, {places(state['k'])}])"


def indexing(count: int = 1500) -> Iterator[str]:
    draw = random.Random(1)
    values = ("7", "torch.tensor(7)", "torch.tensor([7])", "torch.zeros(0, dtype=torch.long)", "torch.arange(3)", "torch.arange(2)",
              "torch.ones(2, 1, dtype=torch.long)")
    for _ in range(count):
        shape = draw.choice([(5,), (3, 4), (2, 3, 4), (0, 3), (2, 0, 4), (2, 3, 2, 3), ()])
        state: dict = {"k": draw.choice([1, 2, 3])}
        parts: list[str] = []
        dim, size = 0, 1
        for n in shape:
            size *= n
        for _ in range(draw.randint(1, min(4, len(shape) + 2))):
            parts.append(_index(draw, shape[dim] if dim < len(shape) else 3, state))
            dim += parts[-1] not in ("None", "...", "True", "False")
        start, index = f"x = torch.arange({size}).reshape({shape})", ", ".join(parts)
        yield f"{start}; x[{index}]" if draw.random() < 0.55 else f"{start}; x[{index}] = {draw.choice(values)}; x"
    for index in ("None, 0:0, [5, 1]", "None, 0:0, [3, 1]", "0:0, [5, 1]", "[], [5, 1]", "[], [9]", "0:0, [], [5]"):
        yield f"x = torch.arange(12).reshape(3, 4); x[{index}]"
        yield f"x = torch.arange(12).reshape(3, 4); x[{index}] = 1; x"


FAMILIES = {"dims": forms_of_dim, "orders": orders, "halves": halves_and_differences, "indexing": indexing}


def shown(value: Any, torch: Any) -> str:
    """A result as text: dtype, shape and values to six digits, zeros without a sign."""
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(shown(v, torch) for v in value) + ")"
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, torch.Tensor):
        return str(value)
    value = value.detach()

    def text(v: Any) -> str:
        if isinstance(v, list):
            return "[" + ",".join(text(x) for x in v) + "]"
        if isinstance(v, complex):
            return f"{v.real + 0.0:.6g}{v.imag + 0.0:+.6g}j"
        return f"{v + 0.0:.6g}" if isinstance(v, float) else str(v)

    name = str(value.dtype).rsplit(".", 1)[-1]
    plain = value.float() if name in ("bfloat16", "float16") else value.to(torch.complex64) if name == "complex32" else value
    return f"{name}{list(value.shape)}{text(plain.tolist())}"


def outcome(expression: str, torch: Any) -> str:
    """What an expression comes to, after the statements before its last semicolon; an exception is its type."""
    names = {"torch": torch, "nan": float("nan"), "inf": float("inf")}
    *before, last = expression.split("; ")
    try:
        for statement in before:
            exec(statement, names)
        return shown(eval(last, names), torch)
    except Exception as error:  # noqa: BLE001 - its type is the result
        return f"raises {type(error).__name__}"
