"""Wrong arguments of every kind, for every operator: an error of PyTorch's type that names the operator, or a result; never
the end of the process, never an allocation beyond reason. Each operator runs in a child process with limits."""

from __future__ import annotations

import os
import pickle
import resource
import signal

from attacks import attacks
from table import ENTRIES, pytest, sampled, skip_reason

KINDS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, OverflowError)
CASES = [e for e in ENTRIES if not skip_reason(e, "errors")]
MEMORY = 4 << 30
SECONDS = 40


def judged(entry) -> list[str]:
    """What is wrong with the answers of one operator."""
    bad = []
    name = entry.schema.name.strip("_")
    for what, op, args, kwargs, must in attacks(entry):
        report({"at": what})
        try:
            op(*args, **kwargs)
        except KINDS as error:
            text = str(error)
            # Numbers beyond 64 bits fail before an operator is known, in Python's and PyTorch's words.
            if name not in text and not isinstance(error, OverflowError) and "Overflow when unpacking" not in text:
                bad.append(f"{what}: the text does not name the operator: {type(error).__name__}: {text}")
        except BaseException as error:  # noqa: BLE001 - the kind is what is tested
            bad.append(f"{what}: {type(error).__name__}: {error}")
        else:
            if must:
                bad.append(f"{what}: accepted")
    return bad


def report(message: dict) -> None:
    global last
    last = message
    os.write(pipe, pickle.dumps(message).ljust(4096)[:4096])


pipe = -1
last: dict = {}


def in_child(entry) -> tuple[list[str], int, str]:
    """Runs `judged` in a forked child: what is wrong, the exit status, and the last attack begun."""
    global pipe
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 9
        try:
            os.close(read)
            pipe = write
            used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            if "clang_rt" not in os.environ.get("LD_PRELOAD", ""):  # a sanitizer maps much and has a limit of its own
                resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
                for s in (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS):
                    signal.signal(s, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.alarm(SECONDS)
            bad = judged(entry)
            for text in bad:
                report({"bad": text[:1000]})
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    bad, at, data = [], "the start", b""
    with os.fdopen(read, "rb") as stream:
        while data := stream.read(4096):
            message = pickle.loads(data)
            at = message.get("at", at)
            if "bad" in message:
                bad.append(message["bad"])
    _, status = os.waitpid(child, 0)
    return bad, status, at


@pytest.mark.parametrize("entry", sampled(CASES, 250), ids=lambda e: e.schema.full)
def test_errors(entry):
    bad, status, at = in_child(entry)
    if os.WIFSIGNALED(status):
        word = "took too long" if os.WTERMSIG(status) == signal.SIGALRM else f"ended the process ({signal.Signals(os.WTERMSIG(status)).name})"
        raise AssertionError(f"{entry.schema.full} {word} at: {at}")
    assert status == 0, f"{entry.schema.full}: the child failed at: {at}"
    assert not bad, f"{entry.schema.full}: " + "; ".join(bad[:8])
