"""Compiles a device's kernels ahead, so that programs find them on disk: `strata warm null --dtypes float32,bfloat16`.

What is compiled is what operators launch over one dim and over two, copies and conversions, many kernels in one module; what
the disk has already is left alone. The files lie among the CPU's kernels (strata.cache says where).
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import strata
from strata import _C

__all__ = ["warm"]

BATCH = 32  # kernels of a module


def warm(device: object, dtypes: object = (strata.float32,), only: object = ("*",), jobs: int = 0, progress: object = None) -> dict[str, int]:
    """Compiles kernels of a device for the dtypes, those whose names fit one of the patterns `only`, with `jobs` threads
    (0: one for each processor). `progress` is called with the kernels done, their number and how many were compiled. Gives
    {"kernels", "compiled"}. RuntimeError where the device's plugin or the folder keeps no kernels."""
    device = strata.device(device)
    if not strata.cache.stats(device)["kept"]:
        raise RuntimeError(
            f"strata.warm: expected a device whose kernels are kept on disk, got {device}: its plugin says nothing of its compiler, "
            "or there is no folder (strata.cache.folder(); STRATA_CACHE_DIR names one)"
        )
    patterns = [only] if isinstance(only, str) else list(only)
    keys = list(dict.fromkeys(k for d in dtypes for k in _C._device_likely(device, d) if any(fnmatch.fnmatchcase(k.split("/")[0], p) for p in patterns)))
    batches = [keys[i : i + BATCH] for i in range(0, len(keys), BATCH)]
    done = compiled = 0
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        for batch, made in zip(batches, pool.map(lambda batch: _C._device_warm(device, batch), batches)):
            done, compiled = done + len(batch), compiled + made
            if progress is not None:
                progress(done, len(keys), compiled)
    return {"kernels": len(keys), "compiled": compiled}


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="strata warm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device", help="the device, or a plugin's file")
    parser.add_argument("--dtypes", default="float32", help="with commas between; all: every dtype")
    parser.add_argument("--only", default="*", help="patterns of kernels' names, with commas between: 'add*,mul*'")
    parser.add_argument("--jobs", type=int, default=0, help="compilers at a time; 0: one for each processor")
    args = parser.parse_args(arguments)
    device = strata.accelerator.load(args.device) if os.path.exists(args.device) else args.device
    names = args.dtypes.split(",")
    if names == ["all"]:
        names = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
    dtypes = [getattr(strata, name, None) for name in names]
    for name, dtype in zip(names, dtypes):
        if not isinstance(dtype, strata.dtype):
            parser.error(f"--dtypes: expected names like float32, got {name!r}")
    start = time.monotonic()

    def say(done: int, total: int, compiled: int) -> None:
        text = f"{done} of {total} kernels, {compiled} compiled, {time.monotonic() - start:.0f} s"
        print(f"\r{text}" if sys.stderr.isatty() else text, end="" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)

    made = warm(device, dtypes, args.only.split(","), args.jobs, say)
    print(f"\r{strata.device(device)}: {made['kernels']} kernels, {made['compiled']} compiled now, in {strata.cache.folder()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
