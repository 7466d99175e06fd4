"""Runs hostile calls in a forked child with limits: a call that ends the process fails its test and nothing else."""

from __future__ import annotations

import os
import pickle
import resource
import signal
from collections.abc import Callable

MEMORY = 4 << 30
SECONDS = 40

_pipe = -1


def report(message: dict) -> None:
    """Called by the child: {"at": what it begins}, or {"bad": what went wrong}."""
    os.write(_pipe, pickle.dumps(message).ljust(4096)[:4096])


def in_child(judged: Callable[[], list[str]], name: str, seconds: int = SECONDS) -> None:
    """Runs `judged` in a child and raises AssertionError for what it found wrong, or when it did not end by itself."""
    global _pipe
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 9
        try:
            os.close(read)
            _pipe = write
            used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            if "clang_rt" not in os.environ.get("LD_PRELOAD", ""):  # a sanitizer maps much and has a limit of its own
                resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
                for s in (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS):
                    signal.signal(s, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            signal.alarm(seconds)
            for text in judged():
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
    if os.WIFSIGNALED(status):
        word = "took too long" if os.WTERMSIG(status) == signal.SIGALRM else f"ended the process ({signal.Signals(os.WTERMSIG(status)).name})"
        raise AssertionError(f"{name} {word} at: {at}")
    assert status == 0, f"{name}: the child failed at: {at}"
    assert not bad, f"{name}: " + "; ".join(bad[:8])
