"""Starts the fuzzer; with --sanitize in a Python that has the sanitizer's runtime, which must be there before strata is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)
if "--sanitize" in sys.argv[:-1] and "clang_rt" not in os.environ.get("LD_PRELOAD", ""):
    import sanitizer

    settings = sanitizer.for_python(sys.argv[sys.argv.index("--sanitize") + 1])
    settings["ASAN_OPTIONS"] += ":quarantine_size_mb=64:max_allocation_size_mb=1024:hard_rss_limit_mb=6144"
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], settings)

from fuzz.main import main  # noqa: E402

sys.exit(main())
