"""The environment in which Python loads a build with a sanitizer; the runtime is loaded first, before Python."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

RUNTIMES = {"asan": "libclang_rt.asan-x86_64.so", "tsan": "libclang_rt.tsan-x86_64.so"}
# Python itself does not free everything at its end; a request for too much memory is an ordinary error here.
LIMITS = "allocator_may_return_null=1:max_allocation_size_mb=4096"
# The OpenMP runtime's own locks are unknown to the thread sanitizer; Archer, a part of LLVM's OpenMP, tells it where
# parallel regions begin and end.
ARCHER = "ignore_noninstrumented_modules=1"


def printed(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def for_programs(kind: str, base: dict[str, str]) -> dict[str, str]:
    """The settings of C++ programs, which hold the runtime themselves."""
    env = dict(base, UBSAN_OPTIONS="print_stacktrace=1", ASAN_OPTIONS="allocator_may_return_null=1", TSAN_OPTIONS=ARCHER)
    # The OpenMP runtime keeps what belongs to the threads of a larger team until the process ends.
    env["LSAN_OPTIONS"] = f"suppressions={Path(__file__).with_name('leaks.txt')}:print_suppressions=0"
    if kind == "tsan":
        env["OMP_NUM_THREADS"] = "2"
        env["OMP_TOOL_LIBRARIES"] = printed("clang-19", "-print-file-name=libarcher.so")
    return env


def for_python(kind: str, base: dict[str, str] | None = None) -> dict[str, str]:
    """The settings of Python, with the runtime loaded into it."""
    env = for_programs(kind, dict(os.environ) if base is None else base)
    env["LD_PRELOAD"] = printed("clang-19", f"-print-file-name={RUNTIMES[kind]}")
    env["ASAN_OPTIONS"] = f"detect_leaks=0:{LIMITS}"
    env["TSAN_OPTIONS"] = f"die_after_fork=0:{LIMITS}:{ARCHER}"
    return env
