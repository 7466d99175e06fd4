"""Children: each runs a range of calls under limits and tells by shared memory which one it has begun, so that the end of
a child costs one call and names it."""

from __future__ import annotations

import faulthandler
import gc
import json
import math
import mmap
import os
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Callable

import numpy as np
import strata

# Python functions that fill a tensor by several operators, one after the other.
STEPWISE = ("strata.nn.init.",)
REPORT = re.compile("ERROR: .*Sanitizer|runtime error:")
TEXT = 1 << 16
SLOTS = struct.Struct("<6q")  # number begun, calls that returned, that raised, that could not be set up, begun at (ns), length of the text


@dataclass
class Finding:
    kind: str  # crash, hang, report, operands, error, result, layout, threads
    subject: str
    number: int
    text: str
    program: list[str] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.subject


@dataclass
class Limits:
    seconds: float = 5.0
    memory: int = 2 << 30
    file: int = 64 << 20
    sanitize: bool = False


class Board:
    """Memory that parent and child share: counters and the source of what runs."""

    def __init__(self):
        self.memory = mmap.mmap(-1, SLOTS.size + TEXT)
        self.values = [0] * 6

    def clear(self) -> None:
        self.values = [-1, 0, 0, 0, 0, 0]
        SLOTS.pack_into(self.memory, 0, *self.values)

    def begin(self, number: int, text: str = "") -> None:
        data = text.encode(errors="replace")[:TEXT]
        self.values[0], self.values[4], self.values[5] = number, time.monotonic_ns(), len(data)
        self.memory[SLOTS.size:SLOTS.size + len(data)] = data
        SLOTS.pack_into(self.memory, 0, *self.values)

    def count(self, what: str) -> None:
        self.values[{"returned": 1, "raised": 2, "void": 3}[what]] += 1
        SLOTS.pack_into(self.memory, 0, *self.values)

    def read(self) -> tuple[int, int, int, int, str]:
        number, returned, raised, void, _, length = SLOTS.unpack_from(self.memory, 0)
        return number, returned, raised, void, self.memory[SLOTS.size:SLOTS.size + length].decode(errors="replace")


def scope() -> dict:
    """The names that a program starts with."""
    return {"strata": strata, "np": np, "nan": math.nan, "inf": math.inf, "__name__": "program"}


def state(t) -> tuple:
    """What an operator that raises must leave as it was."""
    with strata.DisableTorchFunction():
        data = None if t.is_meta else t.detach().untyped_storage().tobytes()
        return tuple(t.shape), t.stride(), t.storage_offset(), t.dtype, t.requires_grad, data


def beyond(t) -> bool:
    """Whether a tensor looks beyond its storage."""
    with strata.DisableTorchFunction():
        if t.is_meta or 0 in t.shape:
            return False
        last = t.storage_offset() + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
        return t.storage_offset() < 0 or (last + 1) * t.element_size() > t.untyped_storage().nbytes()


def flaw_of(t) -> str | None:
    if beyond(t):
        return f"a tensor of shape {tuple(t.shape)}, strides {t.stride()}, offset {t.storage_offset()} looks beyond its {t.untyped_storage().nbytes()} bytes"
    with strata.DisableTorchFunction():
        if not t.is_meta and t.numel() <= 1 << 16:  # a sanitizer sees what reading it touches
            t.detach().clone().untyped_storage().tobytes()
    return None


def flaw(result) -> str | None:
    for t in result if isinstance(result, (tuple, list)) and len(result) < 100 else [result]:
        if isinstance(t, strata.Tensor) and (text := flaw_of(t)):
            return text
    return None


def judged(error: BaseException) -> str | None:
    """What is wrong with an error, if anything."""
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 - an error whose text raises is what is looked for
        return f"the text of {type(error).__name__} raises {type(second).__name__}"
    if "internal error of strata" in text:
        return text
    if isinstance(error, (SystemError, UnicodeDecodeError)) or not isinstance(error, Exception):
        return f"{type(error).__name__}: {text}"
    return None


def attempt(call, number: int, board: Board, found: Callable[[Finding], None]) -> None:
    """Runs one call and judges its end."""
    names = scope()

    def tell(kind: str, text: str) -> None:
        found(Finding(kind, call.subject.path, number, text))

    try:
        exec(compile("\n".join(call.lines), "<operands>", "exec"), names)
        code = compile(call.statement, "<call>", "exec")
    except Exception as error:
        board.count("void")
        if text := judged(error):
            tell("error", text)
        return
    operands = {n: names[n] for n in call.operands if isinstance(names.get(n), strata.Tensor)}
    before = {n: state(t) for n, t in operands.items()}
    try:
        exec(code, names)
    except BaseException as error:  # noqa: BLE001 - the kind is what is looked at
        board.count("raised")
        if text := judged(error):
            tell("error", text)
        error.__traceback__ = None
        for n, t in operands.items():
            if state(t) != before[n] and not call.subject.path.startswith(STEPWISE):
                tell("operands", f"{n} was changed by a call that raised {type(error).__name__}: {error}"[:500])
                break
        return
    board.count("returned")
    try:
        if not any(beyond(t) for t in operands.values()) and (text := flaw(names.get("result"))):
            tell("result", text)
    except (RuntimeError, TypeError):  # a parameter without a shape yet, a result too large to be read
        pass
    if call.after:
        board.begin(number, "after")
        try:
            exec(compile(call.after, "<after>", "exec"), names)
        except Exception as error:
            if text := judged(error):
                tell("error", f"afterwards: {text}")


def confined(limits: Limits, folder: Path) -> None:
    """Limits of the child, and nowhere to write but its folder."""
    os.setpgid(0, 0)
    os.chdir(folder)
    for stream, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        where = os.open(os.devnull if stream < 2 else str(folder / f"stderr.{os.getpid()}"), flags | (os.O_CREAT if stream == 2 else 0))
        os.dup2(where, stream)
        os.close(where)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file, limits.file))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    if not limits.sanitize:  # which maps terabytes and has a limit of its own
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + limits.memory, used + limits.memory))
        for s in (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS, signal.SIGILL):
            signal.signal(s, signal.SIG_DFL)
    # A hang ends the child by SIGALRM, after the place in Python has been written down.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.register(signal.SIGALRM, file=sys.__stderr__.fileno(), chain=True)
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda *_: None


class Child:
    """A forked process that runs `work(board, tell)`; what it finds is read from a file when it has ended."""

    def __init__(self, work: Callable, board: Board, limits: Limits, folder: Path):
        self.board, self.folder = board, folder
        board.clear()
        self.pid = os.fork()
        if self.pid == 0:
            status = 9
            try:
                confined(limits, folder)
                gc.freeze()
                work(board, self.tell)
                status = 0
            except BaseException as error:  # noqa: BLE001 - told by the parent
                self.tell(Finding("fuzzer", type(error).__name__, board.values[0], repr(error)))
                raise
            finally:
                os._exit(status)

    def file(self, what: str) -> Path:
        return self.folder / f"{what}.{self.pid or os.getpid()}"

    def tell(self, finding: Finding) -> None:
        """Opened anew each time: a hostile call may have closed any descriptor."""
        with open(self.folder / f"found.{os.getpid()}", "a") as stream:
            stream.write(json.dumps(asdict(finding)) + "\n")

    def ended(self, status: int) -> tuple[list[Finding], str | None]:
        """The findings, and how the child ended when it did not end well."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        found, text = [], ""
        if self.file("found").exists():
            found = [Finding(**json.loads(line)) for line in self.file("found").read_text().splitlines()]
        for path in sorted(self.folder.glob(f"*.{self.pid}")):
            if path.name.startswith(("stderr.", "sanitizer.")):
                text += path.read_text(errors="replace")[:20000]
            path.unlink()
        ending = None
        if os.WIFSIGNALED(status) or os.WEXITSTATUS(status) != 0:
            name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
            ending = f"{name}\n{text}".strip()
        elif REPORT.search(text):
            ending = f"report\n{text}"
        return found, ending


def kind_of(ending: str) -> str:
    if ending.startswith("SIGALRM"):
        return "hang"
    return "report" if REPORT.search(ending) else "crash"


def alone(work: Callable, limits: Limits) -> tuple[list[Finding], str | None, Board]:
    """Runs work in a child of its own."""
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        board = Board()
        child = Child(work, board, limits, Path(folder))
        _, status = os.waitpid(child.pid, 0)
        found, ending = child.ended(status)
    return found, ending, board
