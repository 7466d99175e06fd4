"""Runs the C++ tests of a build folder and the Python tests, with progress; ends with `N passed, N failed`.

The operator tests are sampled by seed (`--seed`, by default the day's number); `--all` runs every one. `--sanitize KIND`
runs the C++ tests and the operator tests with the sanitizer's runtime loaded. `graph-library` or `graph-reentry` runs that
part of the tests alone. `--device NAME` runs the tests of devices alone, on that one; `--schedules N` each of its calls N
times, under as many orders of the items of kernels. `--python-only` leaves the C++ tests out. Other arguments go to pytest.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sanitizer

ROOT = Path(__file__).resolve().parent.parent
WORKERS = min(4, len(os.sched_getaffinity(0)))
PARTS = {"graph-library": "tests/jit/test_graph_library.py", "graph-reentry": "tests/jit/test_graph_reentry.py"}


def arguments(program: Path, build: Path, every: bool, seed: str) -> list[str]:
    """What a program of checks takes: where it may write, what others have made there."""
    scratch = build / "tests/scratch"
    scratch.mkdir(exist_ok=True)
    return {
        "conv_generated_check": [str(scratch / "gemm_v3_clang-19.so"), "v3"],
        "fuzz_kernels_test": ["--programs", "400" if every else "40", "--seed", seed],
        "gemm_check": [str(scratch)],
        "lower_test": [] if every else ["--sample", seed],
        "library_check": [str(build / "plugins/onednn/libstrata_onednn.so")],
    }.get(program.name, [])


def nothing_to_build(build: Path) -> tuple[int, int]:
    """The folder was built just now: building again must do nothing."""
    run = subprocess.run(["cmake", "--build", str(build), "--target", "all", "tests"], capture_output=True, text=True)
    good = run.returncode == 0 and "no work to do" in run.stdout
    print("a second build does nothing" if good else f"a second build does something:\n{run.stdout[-3000:]}", flush=True)
    return int(good), int(not good)


def cpp_tests(build: Path, env: dict[str, str], every: bool) -> tuple[int, int]:
    passed = failed = 0
    programs = sorted((build / "tests").glob("*_test"))

    def ran(program: Path) -> tuple[subprocess.CompletedProcess, float]:
        start = time.monotonic()
        words = [str(program), *arguments(program, build, every, env["STRATA_TEST_SEED"])]
        return subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True), time.monotonic() - start

    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(zip(programs, pool.map(ran, programs), strict=True))
    # These take what others of them have left.
    checks = sorted((build / "tests").glob("*_check"), key=lambda p: (p.name != "gemm_check", p.name)) if every else []
    for program, (run, seconds) in [*results, *((check, ran(check)) for check in checks)]:
        good = bad = 0
        if m := re.search(r"\[  PASSED  \] (\d+) test", run.stdout):
            good = int(m.group(1))
        if m := re.search(r"\[  FAILED  \] (\d+) test", run.stdout):
            bad = int(m.group(1))
        if run.returncode != 0:
            bad = max(bad, 1)
            print(run.stdout[-6000:] + run.stderr[-6000:])
        elif good == 0:
            good = 1
        passed, failed = passed + good, failed + bad
        print(f"{program.name}: {good} passed, {bad} failed, {seconds:.1f} s", flush=True)
    return passed, failed


def python_tests(args: argparse.Namespace, env: dict[str, str], rest: list[str]) -> tuple[int, int]:
    chosen = any(not r.startswith("-") for r in rest)
    if chosen or not args.all or args.sanitize:
        where = [] if chosen else ["tests/ops"] if args.sanitize else ["tests"]
        return pytest_run(args, env, [*where, *rest], 1 if chosen or args.sanitize else WORKERS)
    # All operators' kernels of an OpenCL platform that loads a library for each use up what a process may map (vm.max_map_count).
    parts = (["tests", "--ignore=tests/device"], ["tests/device", "-k", "not opencl"], ["tests/device", "-k", "opencl"])
    counts = [pytest_run(args, env, [*part, *rest], WORKERS) for part in parts]
    return sum(good for good, _ in counts), sum(bad for _, bad in counts)


def pytest_run(args: argparse.Namespace, env: dict[str, str], chosen: list[str], workers: int) -> tuple[int, int]:
    """By several processes, which share the files of tests among them."""
    # A sanitizer's report must not end in pytest's own capture.
    words = [*(["--capture=sys"] if args.sanitize else []), *chosen]
    if workers == 1:
        return pytest_worker(env, words)
    with tempfile.TemporaryDirectory() as shares, ThreadPoolExecutor(workers) as pool:
        # Their threads wait asleep: awake they would take the others' cores.
        env = dict(env, STRATA_TEST_SHARES=shares, KMP_BLOCKTIME="0")
        counts = list(pool.map(lambda _: pytest_worker(env, ["-p", "tools.pytest_shares", *words]), range(workers)))
        took = {f.name.replace(",", "/"): float(f.read_text() or 0) for f in Path(shares).iterdir()}
    longest = sorted(took, key=lambda name: -took[name])[:8]
    print(f"{sum(took.values()):.0f} s of processors; most: " + ", ".join(f"{name} {took[name]:.0f}" for name in longest), flush=True)
    return sum(good for good, _ in counts), sum(bad for _, bad in counts)


def pytest_worker(env: dict[str, str], words: list[str]) -> tuple[int, int]:
    run = subprocess.Popen([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words], cwd=ROOT, env=env,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    tail: list[str] = []
    for line in run.stdout:
        print(line, end="", flush=True)
        tail = [*tail[-30:], line]
    run.wait()
    text = "".join(tail)
    good = int(m.group(1)) if (m := re.search(r"(\d+) passed", text)) else 0
    bad = sum(int(m) for m in re.findall(r"(\d+) (?:failed|error)", text))
    if run.returncode not in (0, 5) and bad == 0:  # it died; 5: there is no such test here
        bad = 1
    return good, bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=datetime.date.today().toordinal())
    parser.add_argument("--sanitize", choices=["asan", "tsan"])
    parser.add_argument("--device", help="null, opencl, ...")
    parser.add_argument("--schedules", type=int)
    parser.add_argument("--python-only", action="store_true", help="leave the C++ tests out")
    args, rest = parser.parse_known_args()
    # Kernels that tests compile stay in the build's folder.
    env = dict(os.environ, STRATA_TEST_SEED=str(args.seed), STRATA_CACHE_DIR=str(args.build.resolve() / "tests/kernels"))
    if args.all:
        env["STRATA_TEST_ALL"] = "1"
    if args.schedules:
        env["STRATA_TEST_SCHEDULES"] = str(args.schedules)
    if args.device:
        plugin = args.build.resolve() / f"plugins/{args.device}/libstrata_{args.device}.so"
        if not plugin.exists():
            parser.error(f"--device: expected a device whose plugin is built, got '{args.device}': there is no {plugin}")
        env["STRATA_TEST_DEVICE"] = str(plugin)
    cpp_env = dict(env)
    if args.sanitize:
        env, cpp_env = sanitizer.for_python(args.sanitize, env), sanitizer.for_programs(args.sanitize, env)
    print(f"seed {args.seed}" + (" (all operator tests)" if args.all else ""), flush=True)
    start = time.monotonic()
    passed = failed = 0
    if args.device or args.schedules:
        rest = rest or ["tests/device"]
    elif any(r in PARTS for r in rest):
        rest = [PARTS.get(r, r) for r in rest]
    elif not args.python_only:
        passed, failed = nothing_to_build(args.build)
        good, bad = cpp_tests(args.build, cpp_env, args.all)
        passed, failed = passed + good, failed + bad
    good, bad = python_tests(args, env, rest)
    passed, failed = passed + good, failed + bad
    print(f"tests took {time.monotonic() - start:.0f} s")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
