"""`./run bench [overhead|cpu|ops|graphs|own|captured|compile|instructions|start|sweep|calls|random|layouts]`: our times beside PyTorch's, interleaved in one run, as ratios with their goals.

PyTorch runs in a process of its own, since two OpenMP runtimes in one would disturb each other; blocks alternate, with a
pause between them in which waiting threads go to sleep, and each figure is the median of its blocks' ratios. STRATA_TORCH
names the interpreter that has torch; without it only our times are shown. `ops` times the operators of ops.py, shows the
worst ratios first and takes `--only` as parts of names; `graphs` times compiled graphs, as `cpu` does after its own, `own` small ones beside our own eager, `captured` those of
strata.compile beside strata.graph (own.py), `random` random programs beside eager, `layouts` reductions of random layouts and images with the channels last beside contiguous() first; these run when they are named alone. `instructions` counts with callgrind instead of
timing and compares with the committed baseline (bench/results/instructions.json; `--save` writes it). `compile` times the
compile service (compiling.py). `sweep` times every operator of the table over dtypes and layouts and shows the worst (sweep.py), `calls`
those of models, with their gradients (common_calls.py).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common_calls
import compiling
import graphs
import instructions
import layouts
import own
import random_programs
import start
import sweep

import ops

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = ROOT / "build/release"
CORE_BYTES = 16_000_000  # with the printed kernels of the table whole
PAUSE = 0.25  # seconds; longer than OpenMP runtimes spin


class Python:
    """A worker process that times named workloads on request."""

    def __init__(self, python: str, library: str):
        env = dict(os.environ, OMP_NUM_THREADS="2", MKL_NUM_THREADS="2")
        env["PYTHONPATH"] = env.get("PYTHONPATH", "") if library == "strata" else ""
        self.process = subprocess.Popen([python, str(HERE / "worker.py"), library], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=env)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a benchmark process ended; its error is above")
        return json.loads(line)

    def seconds(self, name: str) -> float:
        return self.ask(op="time", name=name)["seconds"]


class Cpp:
    """bench/cpp/calls.cpp compiled for one of the libraries."""

    def __init__(self, library: str, torch_python: str | None = None):
        self.program = build_calls(library, torch_python)
        self.process = subprocess.Popen([str(self.program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, name: str) -> float:
        self.process.stdin.write(name.removeprefix("cpp_") + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


class Import:
    """The time that `import LIBRARY` adds to an interpreter's start."""

    def __init__(self, python: str, library: str):
        self.python, self.library = python, library

    def seconds(self, name: str) -> float:
        del name

        def run(code: str) -> float:
            env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
            start = time.perf_counter()
            subprocess.run([self.python, "-c", code], check=True, env=env)
            return time.perf_counter() - start

        run(f"import {self.library}")  # not counted: the machine's waking up, as of other blocks
        return run(f"import {self.library}") - run("pass")


def build_calls(library: str, torch_python: str | None = None, name: str = "calls") -> Path:
    """Compiles a C++ worker when it is older than its source or the library."""
    source, folder = HERE / f"cpp/{name}.cpp", ROOT / "build/bench"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"{name}_{library}"
    command = ["clang++-19", "-std=c++20", "-O2", "-DNDEBUG", str(source), "-o", str(program)]
    if library == "torch":
        home = subprocess.run([torch_python, "-c", "import torch; print(torch.__path__[0])"], check=True, capture_output=True,
                              text=True).stdout.strip()
        command += ["-DPEER_TORCH", f"-I{home}/include", f"-L{home}/lib", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{home}/lib"]
        newest = source.stat().st_mtime
    else:
        command += [f"-I{ROOT}/src", f"-I{BUILD}/gen", f"-L{BUILD}", "-lstrata", f"-Wl,-rpath,{BUILD}",
                    "-Wl,-rpath-link,/usr/lib/llvm-19/lib"]
        newest = max(source.stat().st_mtime, (BUILD / "libstrata.so").stat().st_mtime)
    if not program.exists() or program.stat().st_mtime < newest:
        print(f"compiling {program.name}", file=sys.stderr, flush=True)
        subprocess.run(command, check=True)
    return program


# name: (share of PyTorch's time that is allowed, unit, bytes moved at least or 0)
MATRIX = 2 * 4096 * 1024 * 4
GOALS = {
    "overhead": {"add": (1 / 3, "ns", 0), "add_grad": (1 / 3, "ns", 0), "view": (1 / 3, "ns", 0), "linear_4x4": (1 / 3, "ns", 0),
                 "empty": (1 / 3, "ns", 0), "chain_1000": (1 / 4, "ms", 0), "mlp_step": (0.7, "ms", 0), "cpp_add": (1 / 4, "ns", 0),
                 "cpp_add_grad": (1 / 4, "ns", 0), "cpp_view": (1 / 4, "ns", 0), "cpp_empty": (1 / 4, "ns", 0), "import": (None, "ms", 0)},
    "cpu": {"softmax": (1.0, "ms", MATRIX), "layernorm": (1.0, "ms", MATRIX), "sum": (1.0, "ms", MATRIX // 2),
            "gelu": (1 / 0.8, "ms", MATRIX), "matmul_1024": (1 / 0.95, "ms", 0), "matmul_2048": (1 / 0.95, "ms", 0),
            "matmul_2048_bf16": (1 / 0.95, "ms", 0), "conv_3x3": (1 / 0.95, "ms", 0), "adamw_10m": (1.0, "ms", 28 * 10_000_000),
            "gpt_step": (1 / 1.25, "ms", 0)},
}
IMPORT_SECONDS = 0.020
SCALE = {"ns": 1e9, "ms": 1e3}


def measure(name: str, ours, theirs, blocks: int) -> tuple[list[float], list[float]]:
    a, b = [], []
    for _ in range(blocks):
        time.sleep(PAUSE)
        a.append(ours.seconds(name))
        if theirs:
            time.sleep(PAUSE)
            b.append(theirs.seconds(name))
    return a, b


def operators(ours: Python, theirs: Python | None, only: list[str] | None, blocks: int, hot: bool) -> None:
    """Every operator of ops.py, the worst ratio first."""
    rows, goals = [], ops.HOT_GOALS if hot else ops.GOALS
    if hot and theirs:
        theirs.ask(op="operators", hot=True)
    names = [n for n in ours.ask(op="operators", hot=hot) if not only or any(part in n for part in only)]
    for at, name in enumerate(names, 1):
        print(f"[{at}/{len(names)}] {name}", file=sys.stderr, flush=True)
        a, b = measure(name, ours, theirs, blocks)
        ratio = statistics.median(x / y for x, y in zip(a, b, strict=True)) if b else None
        rows.append((name, statistics.median(a), statistics.median(b) if b else None, ratio, goals.get(name, ops.GOAL)))
    for name, mine, peer, ratio, goal in sorted(rows, key=lambda r: -(r[3] or 0)):
        row = f"{name:<24}{mine * 1e3:>9.3f} ms"
        if ratio is not None:
            row += f"{peer * 1e3:>9.3f} ms{ratio:>11.2f}"
            row += f"{goal:>8.2f}  {'met' if ratio <= goal else 'MISSED'}" if goal else ""
        print(row)
    ratios = [r[3] for r in rows if r[3] is not None]
    if ratios:
        faster = sum(r <= 1 for r in ratios)
        print(f"geometric mean of {len(ratios)}: {statistics.geometric_mean(ratios):.2f}; {faster} are not slower than the peer")


def stripped_size(library: Path) -> int:
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["strip", "-o", out.name, str(library)], check=True)
        return os.stat(out.name).st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", nargs="?", choices=[*GOALS, "ops", "graphs", *own.PAIRS, "compile", "instructions", "start", "sweep", "calls", "random", "layouts"])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--hot", action="store_true", help="of ops: many values that meet in few places, and in many")
    parser.add_argument("--blocks", type=int, help="measurements of each figure; 11, for operators 5, for graphs 7")
    parser.add_argument("--save", action="store_true", help="write the counted instructions as the new baseline")
    parser.add_argument("--seed", type=int, default=1, help="of random, layouts")
    parser.add_argument("--programs", type=int, default=1000, help="of random, layouts")
    args = parser.parse_args()
    torch = os.environ.get("STRATA_TORCH")
    if args.suite == "instructions":
        sys.exit(instructions.main(build_calls("strata"), args.save))
    if args.suite in ("sweep", "calls"):
        return {"sweep": sweep, "calls": common_calls}[args.suite].main(torch, args.only, args.blocks or 1)
    if args.suite == "compile":
        return compiling.main(build_calls("strata", name="compiling"), torch, args.blocks or 11)
    if args.suite == "start":
        sys.exit(start.main(BUILD, args.blocks or 21))
    if args.suite == "random":
        return random_programs.main(args.seed, args.programs)
    if args.suite == "layouts":
        return layouts.main(args.seed, args.programs)
    if args.suite in own.PAIRS:
        return own.main(args.suite, args.only, args.blocks or 7)
    if args.suite in ("ops", "graphs"):
        pair = Python(sys.executable, "strata"), Python(torch, "torch") if torch else None
        for side, library in zip(("ours", "peer"), pair, strict=True):
            if library:
                print(f"{side}: {library.ask(op='about')}")
        if args.suite == "graphs":
            return graphs.main(*pair, measure, args.only, args.blocks or 7)
        print(f"{'operator':<24}{'ours':>12}{'peer':>12}{'ours/peer':>11}{'goal':>8}  result", flush=True)
        return operators(*pair, args.only, args.blocks or 5, args.hot)
    args.blocks = args.blocks or 11
    ours = {"python": Python(sys.executable, "strata"), "cpp": Cpp("strata"), "import": Import(sys.executable, "strata")}
    theirs = {"python": Python(torch, "torch"), "cpp": Cpp("torch", torch), "import": Import(torch, "torch")} if torch else {}
    print(f"ours: {ours['python'].ask(op='about')}")
    if theirs:
        print(f"peer: {theirs['python'].ask(op='about')}")
    print(f"{'work':<18}{'ours':>12}{'peer':>12}{'ours/peer':>11}{'goal':>8}{'of copy':>9}  result")
    for suite in [args.suite] if args.suite else list(GOALS):
        for name, (goal, unit, moved) in GOALS[suite].items():
            if args.only and name not in args.only:
                continue
            kind = "cpp" if name.startswith("cpp_") else "import" if name == "import" else "python"
            a, b, copies = [], [], []
            for _ in range(args.blocks):
                once = measure(name, ours[kind], theirs.get(kind), 1)
                a += once[0]
                b += once[1]
                if moved:
                    copies.append(graphs.copy_seconds(measure, ours[kind], moved))
            mine = statistics.median(a)
            share = graphs.share_of_copy(copies, a)
            row = f"{name:<18}{mine * SCALE[unit]:>9.2f} {unit}"
            if name == "import":
                peer = f"{statistics.median(b) * 1e3:>9.2f} ms" if b else f"{'':>12}"
                print(f"{row}{peer}{'':>11}{IMPORT_SECONDS * 1e3:>5.0f} ms{share}  {'met' if mine <= IMPORT_SECONDS else 'MISSED'}", flush=True)
            elif not b:
                print(f"{row}{'':>12}{'':>11}{'':>8}{share}", flush=True)
            else:
                ratio = statistics.median(x / y for x, y in zip(a, b, strict=True))
                print(f"{row}{statistics.median(b) * SCALE[unit]:>9.2f} {unit}{ratio:>11.2f}{goal:>8.2f}{share}  "
                      f"{'met' if ratio <= goal else 'MISSED'}", flush=True)
        if suite == "cpu" and (not args.only or set(args.only) & set(graphs.ROWS)):
            graphs.main(ours["python"], theirs.get("python"), measure, args.only, min(args.blocks, 7))
        if suite == "overhead" and not args.only:
            size = stripped_size(BUILD / "libstrata.so")
            print(f"core, stripped: {size / 1e6:.1f} MB, goal {CORE_BYTES / 1e6:.0f}: {'met' if size <= CORE_BYTES else 'MISSED'}")


if __name__ == "__main__":
    main()
