"""Findings: one of each kind and subject is looked at again alone, made small and printed as a program."""

from __future__ import annotations

import re
import signal
import sys
from collections import Counter

from fuzz import agree
from fuzz.child import Finding, alone, kind_of, scope
from fuzz.values import HELPERS

EXPLAINED = {
    "crash": "ends the process", "hang": "does not end in time", "report": "the sanitizer reports", "operands": "changes an operand and raises",
    "error": "raises what no caller expects", "result": "gives a tensor that is none", "layout": "depends on the memory layout of its inputs",
    "threads": "depends on the number of threads", "device": "is not what it is on the CPU", "words": "raises an error that does not name it", "fuzzer": "the fuzzer itself failed",
}


def program(lines: list[str]) -> list[str]:
    """Lines with the imports that they use, at most ten where definitions can share a line."""
    text = "\n".join(lines)
    head = ["import strata"]
    if "np." in text:
        head[0] += ", numpy as np"
    names = [n for n in ("inf", "nan") if re.search(rf"(?<![.'\w]){n}\b", text)]
    if names:
        head.append(f"from math import {', '.join(names)}")
    out = [*head, *lines]
    at = len(head)
    while len(out) > 10 and at + 1 < len(out) - 1:
        if any(out[i].startswith(("class ", "with ", "try:", "for ", "def ", " ", "except")) for i in (at, at + 1)) or len(out[at]) > 400:
            at += 1
            continue
        out[at:at + 2] = [f"{out[at]}; {out[at + 1]}"]
    return out


def used(call) -> list[str]:
    """The definitions that the statement needs."""
    kept: list[str] = []
    text = call.statement
    for line in reversed(call.lines):
        name = re.match(r"(?:class |import functools; |with .*: )?(\w+)", line).group(1)
        if re.search(rf"\b{name}\b", text):
            kept.insert(0, line)
            text += "\n" + line
    return kept


def statements(lines: list[str], seconds: float) -> None:
    """Runs statements as a program does; one that raises is passed over."""
    names = scope()
    for line in lines:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            exec(line, names)
        except Exception:  # noqa: BLE001
            continue


class Reporter:
    def __init__(self, calls, programs):
        self.calls, self.programs = calls, programs
        self.first: dict[tuple[str, str], tuple[Finding, int]] = {}
        self.seen: Counter = Counter()

    def add(self, finding: Finding, batch: int) -> None:
        self.seen[finding.key] += 1
        if finding.key not in self.first:
            self.first[finding.key] = (finding, batch)
            print(f"found: {finding.subject}: {EXPLAINED[finding.kind]} (number {finding.number})", file=sys.stderr, flush=True)

    def summary(self) -> str:
        return f"{len(self.first)} findings"

    def count(self) -> int:
        return sum(self.seen.values())

    def same(self, numbers: list[int], kind: str, subject: str) -> bool:
        """Whether the calls of these numbers, in one child, end in the finding."""
        found, ending, board = alone(self.calls.work(numbers), self.calls.limits)
        if ending and kind_of(ending) == kind:
            return board.read()[0] == numbers[-1] or kind in ("crash", "report")
        return any(f.key == (kind, subject) for f in found)

    def smallest(self, finding: Finding, batch: int) -> list[int] | None:
        """Numbers of calls that together show the finding; mostly one."""
        if self.same([finding.number], *finding.key):
            return [finding.number]
        numbers = list(range(batch, finding.number + 1))
        if not self.same(numbers, *finding.key):
            return None
        size = len(numbers) // 2
        while size and len(numbers) > 1:
            at = 0
            while at < len(numbers) - 1:
                fewer = numbers[:at] + numbers[min(at + size, len(numbers) - 1):]
                if len(fewer) < len(numbers) and self.same(fewer, *finding.key):
                    numbers = fewer
                else:
                    at += size
            size //= 2
        return numbers

    def shortened(self, finding: Finding) -> list[str]:
        """The statements of a program that ended its child which are needed for that."""
        if finding.kind not in ("crash", "report", "hang"):
            return finding.program

        def ends(lines: list[str]) -> bool:
            _, ending, _ = alone(lambda *_: statements(lines, self.programs.limits.seconds), self.programs.limits)
            return bool(ending) and kind_of(ending) == finding.kind

        lines = finding.program
        if not ends(lines):
            return lines
        for line in reversed(finding.program[:-1]):
            fewer = [other for other in lines if other != line]
            if ends(fewer):
                lines = fewer
        return lines

    def source(self, numbers: list[int], finding: Finding) -> list[str]:
        lines: list[str] = agree.head(self.calls.device)
        if finding.kind in ("layout", "threads", "device"):
            call = self.calls.call(numbers[-1])
            return program(agree.program(call, finding.kind, used(call), self.calls.device))
        for n in numbers:
            call = self.calls.call(n)
            last = n == numbers[-1]
            lines += [line for line in used(call) if line not in lines or line not in HELPERS.values()]
            if finding.kind == "operands" and last:
                name = finding.text.split(" ")[0]
                lines += [f"before = {name}.detach().clone()", f"try: {call.statement}", "except Exception as error: print(error)", f"print(before, {name})"]
            elif last:
                lines += [call.statement]
                if call.after and finding.text.startswith("afterwards"):
                    lines += call.after.splitlines()
            else:
                lines += [f"try: {call.statement}", "except Exception: pass"]
        return program(lines)

    def print_one(self, finding: Finding, batch: int) -> None:
        print(f"\n== {finding.subject}: {EXPLAINED[finding.kind]} ({self.seen[finding.key]} times)")
        if finding.program:
            print("\n".join(program(self.shortened(finding))))
            print(f"-- {finding.text[:3000]}")
            print(f"-- ./run fuzz --replay {self.programs.seed}:p{finding.number}", flush=True)
            return
        numbers = self.smallest(finding, batch)
        if numbers is None:
            print(f"it does not come again in calls {batch} to {finding.number} of seed {self.calls.seed}; the call was")
        print("\n".join(self.source(numbers or [finding.number], finding)))
        print(f"-- {finding.text[:3000]}")
        print(f"-- ./run fuzz --replay {self.calls.seed}:{','.join(map(str, numbers or [finding.number]))}", flush=True)

    def print_all(self) -> None:
        for finding, batch in self.first.values():
            self.print_one(finding, batch)

    def replay(self, which: str) -> int:
        if which.startswith("p"):
            found, ending, board = alone(self.programs.work([int(which[1:])]), self.programs.limits)
            if ending:
                found.append(self.programs.found(board, ending))
        else:
            numbers = [int(n) for n in which.split(",")]
            found, ending, board = alone(self.calls.work(numbers), self.calls.limits)
            if ending:
                found.append(self.calls.found(board, ending))
            if not found:
                print("\n".join(self.source(numbers, Finding("", "", numbers[-1], ""))))
        for f in found:
            self.add(f, f.number)
        self.print_all()
        print(f"{0 if found else 1} passed, {len(found)} failed")
        return 1 if found else 0
