"""Calls of operators for a device beside the CPU: the samples of a clone, in layouts, without elements, with NaN."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

import strata
from strata.testing._device import calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 1e-40, 3e38)


def clone(named: str | None) -> Path | None:
    """The clone whose samples are used: the one that is named, by STRATA_CLONE, or that this package lies in."""
    named = named or os.environ.get("STRATA_CLONE")
    found = Path(named) if named else Path(__file__).resolve().parents[4]
    return found if (found / "tests/ops/table.py").exists() else None


def table(root: Path) -> Any:
    """The clone's module of entries and samples."""
    if str(root / "tests/ops") not in sys.path:
        sys.path.insert(0, str(root / "tests/ops"))
    import table

    return table


# ---- layouts: a dense tensor that holds the values, and the view of it that is the operand
def _spread(t: strata.Tensor) -> strata.Tensor:
    if t.dim() == 0:
        return t
    base = strata.zeros(*t.shape[:-1], 2 * t.shape[-1] + 1, dtype=t.dtype)
    base[..., 1::2] = t
    return base


def _turned(t: strata.Tensor) -> strata.Tensor:
    return t.permute(tuple(reversed(range(t.dim()))))


LAYOUTS: dict[str, tuple[Callable, Callable]] = {
    "dense": (lambda t: t, lambda b: b),
    "every second": (_spread, lambda b: b[..., 1::2] if b.dim() else b),
    "turned": (lambda t: _turned(t).contiguous(), _turned),
}


# ---- values
def _mapped(sample: Any, change: Callable) -> Any:
    def walk(v: Any) -> Any:
        if type(v).__name__ == "T":
            return change(v)
        return type(v)(walk(x) for x in v) if isinstance(v, (list, tuple)) else v

    return type(sample)(walk(sample.args), {k: walk(v) for k, v in sample.kwargs.items()})


def _arrays(value: Any) -> Iterator[Any]:
    if type(value).__name__ == "T":
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _arrays(v)


def with_special(sample: Any) -> Any | None:
    """The sample with NaN, infinities, -0.0 and the smallest and largest numbers among its values."""
    if not any(t.data.dtype.kind in "fc" for t in _arrays([sample.args, list(sample.kwargs.values())])):
        return None

    def change(t: Any) -> Any:
        if t.data.dtype.kind not in "fc":
            return t
        data = np.array(t.data)
        flat = data.reshape(-1)
        with np.errstate(over="ignore"):
            flat[::2] = np.resize(np.array(SPECIAL), flat[::2].shape).astype(data.dtype)
        return type(t)(flat.reshape(data.shape), t.dtype)

    return _mapped(sample, change)


def without_elements(sample: Any) -> Any | None:
    """The sample with its tensors, where they are of one shape, cut to no elements."""
    found = list(_arrays([sample.args, list(sample.kwargs.values())]))
    shapes = {t.data.shape for t in found}
    if len(shapes) != 1 or not min(shapes) or 0 in min(shapes):
        return None
    return _mapped(sample, lambda t: type(t)(t.data[:0], t.dtype))


class Case(NamedTuple):
    """An operator in one dtype and one form of its samples."""

    entry: Any
    dtype: str
    form: str  #: "dense", "every second", "turned", "empty", "special", "gradient", "gradient turned", "compiled"


class Cases:
    """What a clone's table has for levels 1 to 4."""

    def __init__(self, root: Path, dtypes: list[str] | None, only: str) -> None:
        self.table = table(root)
        self.dtypes = dtypes or self.table.TESTED
        self.entries = [e for e in self.table.ENTRIES if only in e.schema.full]

    def of(self, level: int, chosen: Callable[[list], list]) -> list[Case]:
        """The cases of a level, of the operators that are chosen of all."""
        entries = [e for e in self.entries if level > 2 or (level == 1) == (e.kind == "pointwise" or e.family in ("create", "copy"))]
        forms = {3: ["gradient", "gradient turned"], 4: ["compiled"]}.get(level, [*LAYOUTS, "empty", "special"])
        dtypes = self.dtypes
        if level == 3:
            dtypes = [d for d in dtypes if "float" in d or "complex" in d]
        if level == 4:  # a compiler's time for each
            dtypes = [d for d in dtypes if d in ("float32", "bfloat16")] or dtypes[:1]
        return [Case(e, d, f) for e, d, f in itertools.product(chosen(entries), dtypes, forms)]

    def samples(self, case: Case) -> Iterator[Any]:
        made = self.table.SAMPLES[case.entry.row.samples](self.table.Maker(case.entry.schema.full, case.dtype))
        change = {"empty": without_elements, "special": with_special}.get(case.form)
        for sample in made:
            changed = change(sample) if change else sample
            # What lies elsewhere by an argument is not copied there on the CPU, and keeps its strides.
            if changed is not None and (case.form == "dense" or case.entry.schema.full not in calls.ELSEWHERE):
                yield changed

    def arguments(self, sample: Any, form: str, device: strata.device | None) -> tuple[list, dict]:
        """The sample's arguments as tensors on the device; None: the CPU."""
        hold, view = LAYOUTS.get(form.removeprefix("gradient").strip(), LAYOUTS["dense"])
        t = self.table

        def on(value: Any) -> strata.Tensor:
            held = hold(t.tensor(value).clone())  # memory of its own, which may grow
            return view(held if device is None else held.to(device))

        args = t.convert(list(sample.args), on, t.dtype)
        return args, {k: t.convert(v, on, t.dtype) for k, v in sample.kwargs.items()}

    def run(self, case: Case, device: strata.device) -> tuple[int, str | None]:
        """How many calls were compared, and why the first one that differs is not the CPU's."""
        name = case.entry.schema.full
        op, defined = self.table.operator(case.entry.schema), name not in calls.UNDEFINED
        gradient = case.form.startswith("gradient")
        compared = 0
        for sample in self.samples(case):
            want, _ = calls.ran(None, op, *self.arguments(sample, case.form, None), defined, gradient)
            args, kwargs = self.arguments(sample, case.form, device)
            if case.form == "compiled":
                got, result = self.compiled(op, sample, device, defined, want)
                if got is None:
                    continue
            else:
                got, result = calls.ran(device, op, args, kwargs, defined, gradient)
            why = calls.verdict(name, device, got, want, [args, list(kwargs.values())], result)
            compared += want is not None
            if why:
                shapes = ", ".join(str(tuple(t.shape)) for t in calls.tensors_of([args, list(kwargs.values())]))
                return compared, f"{why} (operands of sizes {shapes})"
        return compared, None

    def compiled(self, op: Callable, sample: Any, device: strata.device, defined: bool, want: Any) -> tuple[Any, Any]:
        """What a graph of the call gives on the device; None where the CPU's graph is refused as well."""

        def graph_on(place: strata.device | None) -> tuple[Any, Any]:
            args, kwargs = self.arguments(sample, "dense", place)
            strata.manual_seed(5)
            try:
                run = strata.graph(op, *args, **kwargs).compile()
            except calls.ERRORS as error:
                return type(error).__name__, None
            args, kwargs = self.arguments(sample, "dense", place)
            return calls.ran(place, run, args, kwargs, defined, False)

        if isinstance(want, str):
            return None, None
        got, result = graph_on(device)
        return (None, None) if isinstance(got, str) and graph_on(None)[0] == got else (got, result)
