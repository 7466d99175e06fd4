"""Runs the levels on a plugin's first device."""

from __future__ import annotations

import random
import sys
import time
import warnings

import strata
from strata.testing._device import memory, whole
from strata.testing._device.cases import Cases, clone
from strata.testing._device.report import Report, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NO_CLONE = "levels 1 to 4 need the samples of a clone of Strata: name it by --clone or STRATA_CLONE"


class Progress:
    """A line that changes on a terminal, four lines a level elsewhere."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.shown = 0

    def tell(self, level: int, done: int, of: int, failed: int) -> None:
        text = f"level {level}: {done} of {of}, {failed} failed, {time.monotonic() - self.started:.0f} s"
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="\n" if done == of else "", file=sys.stderr, flush=True)
        elif done == of or done * 4 // of > self.shown:
            print(text, file=sys.stderr, flush=True)
        self.shown = 0 if done == of else done * 4 // of


def _fell() -> list[str]:
    return sorted({row.op for row in strata.fallback.rows()})


def _checked(level: int, check: Callable, device: strata.device) -> Row:
    strata.fallback.reset()
    subject = check.__name__.replace("_", " ")
    try:
        check(device)
        strata.accelerator.synchronize(device)
    except Exception as error:  # told in the report
        why = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        return Row(level, subject, "", "", "failed", why, _fell())
    return Row(level, subject, "", "", "passed", "", _fell())


def _case(level: int, cases: Cases, case: Any, device: strata.device) -> Row:
    strata.fallback.reset()
    row = Row(level, case.entry.schema.full, case.dtype, case.form, "passed")
    try:
        compared, why = cases.run(case, device)
    except Exception as error:  # told in the report
        compared, why = 1, f"{type(error).__name__}: {error}".splitlines()[0][:300]
    row.status = "failed" if why else "passed" if compared else "skipped"
    row.why = why or ""
    row.fell = _fell()
    return row


def grade(
    plugin: str,
    level: int = 5,
    sample: int | None = None,
    seed: int = 0,
    dtypes: list[str] | None = None,
    only: str = "",
    named_clone: str | None = None,
    first: int = 0,
    part: tuple[int, int] = (1, 1),
) -> Report:
    """All rows of levels `first` to `level`. sample: so many operators a level, chosen by the seed. part: which of how many equal
    parts of each level's rows."""
    started = time.monotonic()
    device = strata.device(strata.accelerator.load(plugin), 0)
    _, version, path, count = next(p for p in strata._C._device_plugins() if p[0] == device.type)
    said = f"{sample} operators a level of seed {seed}" if sample else "all operators"
    report = Report(path, device.type, version, level, said, 0, [])
    progress = Progress()
    before = strata.fallback.on()

    def chosen(entries: list) -> list:
        if sample is None or sample >= len(entries):
            return entries
        picked = random.Random(seed).sample(range(len(entries)), sample)
        return [entries[i] for i in sorted(picked)]

    def all_of(number: int, work: list[Callable[[], Row]]) -> None:
        work = work[len(work) * (part[0] - 1) // part[1] : len(work) * part[0] // part[1]]
        failed = 0
        for done, one in enumerate(work, 1):
            report.rows.append(one())
            failed += report.rows[-1].status == "failed"
            progress.tell(number, done, len(work), failed)

    def checks(number: int, found: list[Callable]) -> list[Callable[[], Row]]:
        return [lambda c=c: _checked(number, c, device) for c in found]

    try:
        if first == 0:
            all_of(0, checks(0, memory.CHECKS[: None if count else 1]))
        root = clone(named_clone)
        if level > 0 and root is None:
            report.note = NO_CLONE
        cases = Cases(root, dtypes, only) if level > 0 and root is not None and count else None
        for number in range(max(first, 1), level + 1 if cases else 1):
            work = [lambda c=c, n=number: _case(n, cases, c, device) for c in (cases.of(number, chosen) if number < 5 else [])]
            work += checks(number, {4: whole.TRAINING, 5: whole.CHECKS}.get(number, []))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                all_of(number, work)
    finally:
        if not before:
            strata.fallback.off()
    report.seconds = time.monotonic() - started
    return report
