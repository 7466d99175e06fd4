"""Looks for what ends the process, hangs, writes operands before an error, or gives other values by other ways.

Hostile calls (`--calls N`): every operator of the table and every public callable, with wrong, huge, lying and odd
arguments; what computes must give the same from contiguous copies of its operands, on two threads, and on `--device` what it
gives on the CPU, or an error of the same kind that names the operator. Random programs (`--programs N`): chains of operators whose values must not depend on the memory layout of the
inputs or on the number of threads. Everything runs in forked children with limits on memory and time; what is found
prints as a program of a few lines. The same seed gives the same calls.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

import sanitizer
import strata

from fuzz.agree import compared, load
from fuzz.calls import made
from fuzz.child import Board, Child, Finding, Limits, attempt, kind_of
from fuzz.report import Reporter
from fuzz.subjects import Subject, subjects

BATCH = 400


class Calls:
    """Batches of hostile calls."""

    def __init__(self, found: list[Subject], seed: int, device: str, limits: Limits, without: str | None = None):
        self.subjects, self.seed, self.device, self.limits, self.without = found, seed, device, limits, without

    def call(self, number: int):
        return made(self.subjects, self.seed, number)

    def work(self, numbers):
        """What a child does: the calls of these numbers; it ends early after one that changes the process."""

        def run(board: Board, tell) -> None:
            load(self.device)
            for number in numbers:
                strata.set_num_threads(1)
                try:
                    call = self.call(number)
                except MemoryError:  # calls before it keep memory: a child anew goes on here
                    if number == numbers[0]:
                        raise
                    return
                board.begin(number)
                if self.without and re.search(self.without, "\n".join([*call.lines, call.statement])):
                    continue
                seconds = self.limits.seconds * (4 if "arange(" in "".join(call.lines) else 1)  # results may be large
                signal.setitimer(signal.ITIMER_REAL, seconds)
                if self.device == "cpu":
                    attempt(call, number, board, tell)
                    signal.setitimer(signal.ITIMER_REAL, 2 * seconds)
                if not call.lasting:
                    board.begin(number, "another way")
                    compared(call, number, self.device, board, tell)
                signal.setitimer(signal.ITIMER_REAL, 0)
                if call.lasting:
                    return

        return run

    def found(self, board: Board, ending: str) -> Finding:
        number, *_, where = board.read()
        call = self.call(max(number, 0))
        return Finding(kind_of(ending), call.subject.path, number, f"afterwards: {ending}" if where else ending)


class Programs:
    """Batches of random programs."""

    def __init__(self, seed: int, device: str, limits: Limits):
        self.seed, self.device, self.limits = seed, device, limits

    def work(self, numbers):
        from fuzz.programs import examined

        def run(board: Board, tell) -> None:
            load(self.device)
            for number in numbers:
                examined(self.seed, number, self.device, board, tell, self.limits.seconds)

        return run

    def found(self, board: Board, ending: str) -> Finding:
        number, *_, text = board.read()
        lines = text.splitlines()
        return Finding(kind_of(ending), f"program: {lines[-1] if lines else ''}", number, ending, lines)


def sweep(kind, total: int, first: int, jobs: int, word: str, reporter: Reporter, batch: int) -> int:
    """Runs `total` numbers from `first` on in children, `jobs` at a time; the count of those that ran."""
    queue = [(at, min(at + batch, first + total)) for at in range(first, first + total, batch)][::-1]
    running: dict[int, tuple[Child, int, int]] = {}
    boards = [Board() for _ in range(jobs)]
    done = 0
    start = last = time.monotonic()
    counts = {"returned": 0, "raised": 0, "void": 0}
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        while queue or running:
            while queue and len(running) < jobs:
                at, end = queue.pop()
                child = Child(kind.work(range(at, end)), boards.pop(), kind.limits, Path(folder))
                running[child.pid] = (child, at, end)
            pid, status = os.wait()
            if pid not in running:
                continue
            child, at, end = running.pop(pid)
            findings, ending = child.ended(status)
            number, returned, raised, void, _ = child.board.read()
            for name, n in zip(counts, (returned, raised, void)):
                counts[name] += n
            if ending and not ending.startswith("report"):
                findings.append(kind.found(child.board, ending))
            elif ending:
                findings += [kind.found(child.board, ending)]
            boards.append(child.board)
            reached = max(number, at) + 1
            done += reached - at
            if reached < end:
                queue.append((reached, end))
            for f in findings:
                reporter.add(f, at)
            if time.monotonic() - last > 5:
                last = time.monotonic()
                print(f"{done} of {total} {word}, {done / (last - start):.0f}/s, {reporter.summary()}", file=sys.stderr, flush=True)
    seconds = time.monotonic() - start
    detail = ", ".join(f"{n} {name}" for name, n in counts.items())
    print(f"{done} {word} in {seconds:.0f} s ({done / max(seconds, 1e-9):.0f}/s): {detail}", flush=True)
    return done


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, help="number of hostile calls (20,000 when neither this nor --programs is given)")
    parser.add_argument("--programs", type=int, default=0, help="number of random programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number to begin with")
    parser.add_argument("--only", help="subjects whose path contains this text")
    parser.add_argument("--without", help="leave out calls whose source matches this regular expression")
    parser.add_argument("--replay", help="SEED:NUMBER runs one call alone and prints it; SEED:pNUMBER a program")
    parser.add_argument("--device", default="cpu", help="where tensors are made: a plugin of this build, beside the CPU")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=5.0, help="time limit of a call")
    parser.add_argument("--sanitize", choices=sanitizer.RUNTIMES, help="run on the build with this sanitizer, which ./run makes")
    parser.add_argument("--plant", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    sanitized = "clang_rt" in os.environ.get("LD_PRELOAD", "")
    limits = Limits(args.seconds * (4 if sanitized else 1), sanitize=sanitized)
    if args.device != "cpu":  # whose memory may be mapped files
        limits.memory, limits.file = 5 << 30, 1 << 30
    if args.plant:  # callables with known faults, which a test of the fuzzer brings
        exec(compile(args.plant.read_text(), str(args.plant), "exec"), {"strata": strata})
    if args.replay:
        seed, _, number = args.replay.partition(":")
        args.seed = int(seed)
    calls = Calls(subjects(args.only), args.seed, args.device, limits, args.without)
    programs = Programs(args.seed, args.device, limits)
    reporter = Reporter(calls, programs)
    if args.replay:
        return reporter.replay(number)
    total = 0
    wanted = 20000 if args.calls is None and not args.programs else args.calls or 0
    print(f"seed {args.seed}: {wanted} calls of {len(calls.subjects)} subjects, {args.programs} programs", flush=True)
    if wanted:
        total += sweep(calls, wanted, args.first, args.jobs, "calls", reporter, BATCH)
    if args.programs:
        total += sweep(programs, args.programs, args.first, args.jobs, "programs", reporter, 50)
    reporter.print_all()
    failed = reporter.count()
    print(f"{total - failed} passed, {failed} failed")
    return 1 if failed else 0

