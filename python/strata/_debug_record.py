"""What strata.debug.dump writes down of a call: name, line, shapes, numbers of its results, how they differ from the CPU's."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from pathlib import Path

import strata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TextIO

OWN = os.path.dirname(os.path.abspath(strata.__file__)) + os.sep
# float and how many bits its fraction has
FRACTION = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52, "complex64": 23, "complex128": 52}


def user_line() -> str:
    """The innermost line outside of this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "?"


def tensors(value: Any) -> Iterator[strata.Tensor]:
    """The tensors of arguments or results, through lists."""
    if isinstance(value, strata.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors(v)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def away(device: strata.device) -> bool:
    return device.type not in ("cpu", "meta")


def shape_text(t: strata.Tensor) -> str:
    return f"{str(t.dtype).removeprefix('strata.')}{list(t.shape)}"


class Twin:
    """Copies on the CPU of a call's arguments; a tensor that is given twice is copied once."""

    def __init__(self) -> None:
        self.made: dict[int, strata.Tensor] = {}

    def of(self, value: Any) -> Any:
        if isinstance(value, strata.Tensor):
            if id(value) not in self.made:
                copy = value.detach().to("cpu", copy=True)
                if copy.stride() != value.stride() and value.numel() and 0 not in value.stride():
                    copy = strata.empty_strided(value.shape, value.stride(), dtype=value.dtype).copy_(copy)
                self.made[id(value)] = copy
            return self.made[id(value)]
        if isinstance(value, strata.Generator):
            return None
        if isinstance(value, strata.device):
            return strata.device("cpu") if away(value) else value
        if isinstance(value, (list, tuple)):
            return type(value)(self.of(v) for v in value)
        if isinstance(value, dict):
            return {k: self.of(v) for k, v in value.items()}
        return value


class Words:
    """The states of the generators that a call may draw from, as they are before it."""

    def __init__(self, args: tuple, kwargs: dict, device: str) -> None:
        self.before = strata.get_rng_state()
        given = [v for v in [*args, *kwargs.values()] if isinstance(v, strata.Generator)]
        self.generators = given or ([] if device == "cpu" else [strata._C._device_generator(strata.device(device))])
        self.states = [g.get_state() for g in self.generators]

    @contextlib.contextmanager
    def drawn_again(self) -> Iterator[None]:
        """The CPU's generator draws what the call drew: from a generator of its own if that moved, else from the CPU's."""
        after = strata.get_rng_state()
        moved = [s for g, s in zip(self.generators, self.states, strict=True) if not g.get_state().equal(s)]
        strata.set_rng_state(moved[0] if moved else self.before)
        try:
            yield
        finally:
            strata.set_rng_state(after)


def statistics(t: strata.Tensor) -> dict[str, Any]:
    """Least, largest and mean value, and how many are NaN."""
    t = t.detach().to("cpu")
    if t.numel() == 0 or t.is_complex():
        return {}
    wide = t.double()
    finite = wide[wide == wide]
    nan = t.numel() - finite.numel()
    if finite.numel() == 0:
        return {"nan": nan}
    return {"min": finite.min().item(), "max": finite.max().item(), "mean": finite.mean().item(), "nan": nan}


def ordered(t: strata.Tensor) -> strata.Tensor:
    """Floats as integers in the same order, neighbours one apart."""
    bits = t.contiguous().view({2: strata.int16, 4: strata.int32, 8: strata.int64}[t.element_size()]).to(strata.int64)
    least = -(1 << (8 * t.element_size() - 1))
    return strata.where(bits < 0, least - bits, bits)


def difference(got: strata.Tensor, want: strata.Tensor) -> dict[str, Any]:
    """How two results differ; `error` is what ranks."""
    got = got.detach().to("cpu")
    want = want.detach()
    if got.dtype != want.dtype or got.shape != want.shape:
        return {"error": math.inf, "why": f"{shape_text(got)}, on the CPU {shape_text(want)}"}
    name = str(got.dtype).removeprefix("strata.")
    if got.is_complex():
        got, want = strata.view_as_real(got.contiguous()), strata.view_as_real(want.contiguous())
    if got.numel() == 0:
        return {"error": 0.0}
    if not got.is_floating_point():
        differ = got != want
        far = (got.double() - want.double()).abs().max().item()
        return {"error": far if differ.any().item() else 0.0, "abs": far, "differ": int(differ.sum().item())}
    nan, other = got.isnan(), want.isnan()
    both = ~(nan | other)
    said: dict[str, Any] = {"nan": int(nan.sum().item()), "nan_cpu": int(other.sum().item())}
    a, b = got[both], want[both]
    if not (nan == other).all().item():
        return {"error": math.inf, "why": f"{said['nan']} NaN, on the CPU {said['nan_cpu']}", **said}
    if a.numel() == 0:
        return {"error": 0.0, **said}
    differ = a != b
    far = strata.where(differ, (a.double() - b.double()).abs(), strata.zeros((), dtype=strata.float64))
    ulp = (ordered(a).double() - ordered(b).double()).abs()
    finite = b[b.isfinite()].abs().double()
    largest = finite.max().item() if finite.numel() else 0.0
    unit = 2.0 ** (math.frexp(largest)[1] - 1 - FRACTION[name]) if largest else 2.0**-149
    most = far.max().item()
    return {"error": most / unit, "abs": most, "ulp": ulp.max().item(), "differ": int(differ.sum().item()), **said}


class Recorder:
    """Writes a line for each call."""

    def __init__(self, folder: Any, compare: bool, level: int) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.compare, self.level, self.number = compare, level, 0
        self.stream: TextIO = open(self.folder / "calls.jsonl", "w")

    def close(self) -> None:
        self.stream.close()

    def call(self, func: Any, args: tuple, kwargs: dict) -> Any:
        self.number += 1
        row: dict[str, Any] = {"number": self.number, "op": func.name(), "line": user_line()}
        row["inputs"] = [shape_text(t) for t in tensors([args, kwargs])]
        devices = [*(t.device for t in tensors([args, kwargs])), *(v for v in [*args, *kwargs.values()] if isinstance(v, strata.device))]
        row["device"] = next((str(d) for d in devices if away(d)), "cpu")
        twin = given = None
        if self.compare and row["device"] != "cpu" and not of_memory(func):
            twin = Twin()
            given = twin.of(list(args)), twin.of(kwargs)
        saved = Twin().of([args, kwargs]) if self.level == 2 else None
        words = Words(args, kwargs, row["device"])
        try:
            result = func(*args, **kwargs)
            if twin is not None:
                strata.accelerator.synchronize(row["device"])
        except Exception as error:
            row["raised"] = f"{type(error).__name__}: {error}"
            self.write(row)
            raise
        written = [(a, twin.made[id(a)]) for a in changed(func, args, kwargs)] if twin is not None else []
        row["outputs"] = [shape_text(t) for t in tensors(result)]
        if self.level:
            row["statistics"] = [statistics(t) for t in tensors(result)]
        if given is not None:
            row.update(self.again(func, given, result, written, words))
        if saved is not None:
            self.save(row, saved, result)
        self.write(row)
        return result

    def again(self, func: Any, given: tuple, result: Any, written: list, words: Words) -> dict[str, Any]:
        """Runs the call on the CPU; the largest difference of what it gives and writes."""
        try:
            with words.drawn_again(), strata.no_grad():
                want = func(*given[0], **given[1])
        except Exception as error:
            return {"error": math.inf, "why": f"the CPU raises {type(error).__name__}: {error}"}
        pairs = [*zip(tensors(result), tensors(want), strict=False), *written]
        return max((difference(a, b) for a, b in pairs), key=lambda d: d["error"], default={"error": 0.0})

    def save(self, row: dict, saved: list, result: Any) -> None:
        from strata.safetensors import save_file

        named = {f"input{i}": t.contiguous() for i, t in enumerate(tensors(saved))}
        named |= {f"output{i}": t.detach().to("cpu", copy=True).contiguous() for i, t in enumerate(tensors(result))}
        row["file"] = f"{row['number']}_{row['op'].replace('::', '.')}.safetensors"
        save_file(named, self.folder / row["file"])

    def write(self, row: dict) -> None:
        self.stream.write(json.dumps(row) + "\n")


def of_memory(func: Any) -> bool:
    """Whether the operator's results have no values yet, or it takes no part in them."""
    info = strata.ops.info(func)
    return info is not None and (info.kind == "allocate" or func.name().startswith(("aten::resize", "aten::set_", "aten::record_stream")))


def changed(func: Any, args: tuple, kwargs: dict) -> Iterator[strata.Tensor]:
    """The tensors that the call may have written."""
    for i, a in enumerate(func._schema.arguments):
        if a.alias_info is not None and a.alias_info.is_write:
            yield from tensors(args[i] if i < len(args) else kwargs.get(a.name))
