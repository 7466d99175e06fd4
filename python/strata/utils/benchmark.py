"""Timing of statements: Timer(...).timeit() and blocked_autorange() give a Measurement, Compare prints several."""

from __future__ import annotations

import statistics
import timeit

import strata
from strata import _lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_HOMES = {"._fuzzer": "FuzzedParameter FuzzedTensor Fuzzer ParameterAlias"}
__all__ = ["Compare", "Measurement", "Timer", "timer", *_lazy.listed(_HOMES)]
__getattr__, __dir__ = _lazy.of(globals(), _HOMES)

timer = timeit.default_timer


def _shown(seconds: float) -> tuple[float, str]:
    """A time in the unit that suits it."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return seconds / scale, unit
    return seconds / 1e-9, "ns"


class Measurement:
    """times: seconds of each run of one statement, of `number_per_run` calls each in raw_times."""

    def __init__(self, number_per_run: int, raw_times: Sequence[float], task_spec: dict[str, Any], metadata: dict | None = None) -> None:
        self.number_per_run, self.raw_times, self.metadata = number_per_run, list(raw_times), metadata
        self.__dict__.update(task_spec)
        self.task_spec = task_spec

    @property
    def times(self) -> list[float]:
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def has_warnings(self) -> bool:
        return bool(self.times) and self.iqr / self.median > 0.1

    @property
    def title(self) -> str:
        parts = [self.label, self.sub_label]
        return ": ".join(p for p in parts if p) or self.stmt

    def __repr__(self) -> str:
        value, unit = _shown(self.median)
        runs = f"{len(self.raw_times)} measurement{'s' if len(self.raw_times) > 1 else ''}, {self.number_per_run} runs "
        lines = [f"<strata.utils.benchmark.Measurement object at {hex(id(self))}>", self.title]
        if self.description:
            lines.append(self.description)
        if self.setup and self.setup != "pass":
            lines.append(f"setup: {self.setup}")
        lines.append(f"  {'Median: ' if len(self.raw_times) > 1 else ''}{value:.2f} {unit}")
        if len(self.raw_times) > 1:
            spread, spread_unit = _shown(self.iqr)
            lines.append(f"  IQR:    {spread:.2f} {spread_unit}")
        lines.append(f"  {runs}, {self.num_threads} thread{'s' if self.num_threads > 1 else ''}")
        return "\n".join(lines)


class Timer:
    """Times a statement (text, as timeit's) on num_threads threads. RuntimeError from timeit's own errors."""

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: str = "python",
    ) -> None:
        if str(language).lower() not in ("python", "py", "0", "language.python"):
            raise NotImplementedError(f"benchmark.Timer: language={language!r} is not provided; statements are Python's")
        names = dict(globals or {})
        names.setdefault("strata", strata)
        names.setdefault("torch", strata)
        self._timer = timeit.Timer(stmt, setup, timer, names)
        self._spec = {
            "stmt": stmt, "setup": setup, "label": label, "sub_label": sub_label, "description": description, "env": env,
            "num_threads": num_threads,
        }  # fmt: skip

    def _run(self, number: int) -> float:
        before = strata.get_num_threads()
        try:
            strata.set_num_threads(self._spec["num_threads"])
            return self._timer.timeit(max(number, 1))
        finally:
            strata.set_num_threads(before)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One run of so many calls, after a hundredth of it to warm up."""
        self._run(max(number // 100, 2))
        return Measurement(number, [self._run(number)], self._spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        raise NotImplementedError("benchmark.Timer.repeat: use timeit or blocked_autorange")

    def _number(self, min_run_time: float) -> int:
        """How many calls make a block that the clock's overhead does not matter in."""
        number = 1
        while True:
            took = self._run(number)
            if took > min_run_time / 1000 or took > 0.001 or number >= 1 << 24:
                return number
            number *= 10 if took * 10 < min_run_time / 1000 else 2

    def blocked_autorange(self, callback: Callable | None = None, min_run_time: float = 0.2) -> Measurement:
        """Blocks of calls until min_run_time seconds are spent."""
        number, times = self._number(min_run_time), []
        while sum(times) < min_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._spec)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback: Callable | None = None
    ) -> Measurement:
        """Blocks of calls until their spread is below `threshold` of the median, or max_run_time seconds are spent."""
        number, times = self._number(min_run_time), []
        while sum(times) < max_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
            found = Measurement(number, times, self._spec)
            if len(times) >= 4 and sum(times) > min_run_time and found.iqr / found.median < threshold:
                break
        return Measurement(number, times, self._spec)


class Compare:
    """A table of measurements: a row for each sub_label, a column for each description, a block for each thread count."""

    def __init__(self, results: Sequence[Measurement]) -> None:
        self._results = list(results)

    def extend_results(self, results: Sequence[Measurement]) -> None:
        self._results += results

    def trim_significant_figures(self) -> None:
        """Accepted: two digits behind the point are shown."""

    def colorize(self, rowwise: bool = False) -> None:
        """Accepted: there are no colours."""

    def highlight_warnings(self) -> None:
        """Accepted: nothing is marked."""

    def __str__(self) -> str:
        text = []
        for label in dict.fromkeys(m.label for m in self._results):
            group = [m for m in self._results if m.label == label]
            columns = list(dict.fromkeys(m.description or "" for m in group))
            value, unit = _shown(min(m.median for m in group))
            scale = min(m.median for m in group) / value
            width = max(14, *(len(c) + 2 for c in columns))
            rows = max(len(m.sub_label or m.stmt) for m in group) + 6
            text.append(f"[{'-' * 12} {label or ''} {'-' * 12}]")
            text.append(" " * rows + "|" + "|".join(c.center(width) for c in columns))
            for threads in dict.fromkeys(m.num_threads for m in group):
                text.append(f"{threads} threads: " + "-" * (rows + (width + 1) * len(columns) - 11))
                for row in dict.fromkeys(m.sub_label or m.stmt for m in group):
                    cells = []
                    for column in columns:
                        found = [m for m in group if (m.sub_label or m.stmt, m.description or "", m.num_threads) == (row, column, threads)]
                        cells.append((f"{found[-1].median / scale:.2f}" if found else "").center(width))
                    text.append(f"      {row}".ljust(rows) + "|" + "|".join(cells))
            text.append(f"\nTimes are in {unit}.\n")
        return "\n".join(text)

    def print(self) -> None:
        """Prints the table."""
        print(str(self))
