"""Calls of the table's operators with random arguments, by their schemas: made of numbers alone, so that both interpreters make the same."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Their results are memory that nobody filled, or random; or they say nothing of values.
LEFT_OUT = re.compile(
    r"_|(new_)?empty|rand|bernoulli|normal|multinomial|dropout|poisson|cauchy|exponential|geometric|resize|set_|uniform|rrelu|stft|record_stream|"
    r"as_strided|binomial|native_batch|pin_memory|from_file|refine|svd_lowrank|pca_lowrank|is_pinned|item|equal_|cudnn|mkldnn|miopen|conv_tbc"
)
ARGUMENT = re.compile(r"(?P<type>[\w.]+(?:\([a-z]!?(?:\s*->\s*\*)?\))?(?:\[\d*\])?\??)\s+(?P<name>\w+)(?:=(?P<default>.+))?")


def schemas() -> list[tuple[str, list[dict]]]:
    found = []
    for file in sorted((ROOT / "ops").glob("*.yaml")):
        for name, inner in re.findall(r"^- op: \"?(\w+(?:\.\w+)?)\((.*)\) -> ", file.read_text(), re.M):
            if LEFT_OUT.match(name) or re.search(r"_(dropout|backward|jvp|forward)\b", name) or name.endswith("_") or "out" in name:
                continue
            args, keyword = [], False
            for part in re.split(r", (?![^\[]*\])", inner) if inner else []:
                if part == "*":
                    keyword = True
                    continue
                match = ARGUMENT.fullmatch(part)
                if not match:
                    break
                args.append({**match.groupdict(), "keyword": keyword})
            else:
                if args and not any("!" in a["type"] for a in args):
                    found.append((name, args))
    return found


def target(T: Any, name: str) -> Any:
    """The operator of an overload, or of all overloads where the library has no such one."""
    base, _, overload = name.partition(".")
    packet = getattr(T.ops.aten, base)
    return getattr(packet, overload or "default") if (overload or "default") in packet.overloads() else packet


def bare(type_: str) -> str:
    """A type without marks of aliases."""
    return re.sub(r"\(.*?\)", "", type_)


NUMBERS = [0, 1, -1, 2, 3, 0.5, -2.5, 1e-3, 10]
WORDS = {
    "reduction": [0, 1, 2], "mode": ["bilinear", "nearest", "constant", "reflect", "linear"], "ord": ["fro", "nuc"], "norm": ["ortho", "forward"],
    "rounding_mode": ["floor", "trunc"], "approximate": ["tanh", "none"], "indexing": ["ij", "xy"], "interpolation": ["lower", "linear", "nearest"],
    "reduce": ["sum", "prod", "amax", "amin", "mean"], "side": ["left", "right"], "equation": ["ij,jk->ik", "ij->ji", "...i,...i->..."],
    "padding": ["same", "valid"], "UPLO": ["L", "U"], "driver": [None, "gelsd"],
}  # fmt: skip


def whole(r: random.Random, name: str) -> int:
    if name.startswith(("dim", "axis")):
        return r.choice([0, -1, 1, -2, 2, 0, -1])
    if name in ("k", "n", "num_classes", "groups", "num_groups", "diagonal", "offset", "N", "bins", "chunks", "sections", "output_size"):
        return r.choice([1, 2, 1, 0, 3, -1, 4])
    return r.choice([1, 2, 0, -1, 3])


def argument(T: Any, r: random.Random, a: dict, tensors: list, operand: Any) -> Any:
    """One value, or LookupError where nothing random is of use."""
    kind, name, default = bare(a["type"]), a["name"], a["default"]
    if kind.endswith("?") and r.random() < 0.4:
        return None
    kind = kind.rstrip("?").replace("SymInt", "int")
    if kind == "Tensor":
        tensors.append(operand(r, name, tensors))
        return tensors[-1]
    if kind == "Tensor[]":
        made = [operand(r, name, tensors) for _ in range(r.choice([1, 2, 3, 2, 0]))]
        tensors += made
        return made
    if kind == "int":
        return whole(r, name)
    if re.fullmatch(r"int\[\d*\]", kind):
        count = int(kind[4:-1] or 0)
        sizes = tensors[0].shape if tensors else (2, 3)
        if name in ("size", "sizes", "shape", "split_sizes", "repeats", "dims") and r.random() < 0.4:
            return list(sizes)
        if count and r.random() < 0.4:
            return whole(r, name)
        return [whole(r, name) for _ in range(count or r.choice([1, 2, len(sizes)]))]
    if kind in ("float", "Scalar"):
        return r.choice(NUMBERS) if kind == "Scalar" else float(r.choice(NUMBERS))
    if kind == "bool":
        return r.random() < 0.5
    if kind == "bool[]":
        return [r.random() < 0.5 for _ in range(3)]
    if kind == "str":
        return r.choice(WORDS.get(name, ["none"]))
    if kind == "ScalarType":
        return r.choice([T.float64, T.float32, T.int64, T.bfloat16, T.bool, T.complex64])
    if kind == "float[]":
        return [float(r.choice(NUMBERS)) for _ in range(2)]
    if default is not None:
        raise LookupError
    return None


def call(T: Any, r: random.Random, operand: Any, table: list) -> tuple[str, Any, list]:
    """The call in words, the call, and its tensors."""
    name, args = r.choice(table)
    tensors: list = []
    given, named = [], {}
    for a in args:
        if a["default"] is not None and r.random() < 0.55:
            continue
        try:
            value = argument(T, r, a, tensors, operand)
        except LookupError:
            continue
        if a["keyword"] or named or len(given) < args.index(a):
            named[a["name"]] = value
        else:
            given.append(value)
    operator = target(T, name)

    def text(v: Any) -> str:
        if isinstance(v, T.Tensor):
            return f"t{next(i for i, t in enumerate(tensors) if t is v)}"
        return "[" + ", ".join(map(text, v)) + "]" if isinstance(v, list) else repr(v).split(".")[-1] if isinstance(v, T.dtype) else repr(v)

    words = ", ".join([*map(text, given), *(f"{k}={text(v)}" for k, v in named.items())])
    return f"{name}({words})", lambda: operator(*given, **named), tensors
