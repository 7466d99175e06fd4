"""`./run bench compile`: from a call to its results where all is to be compiled, with an empty cache and in a new process with a
warm one (numerics exact: eager's bits), beside the peer's; and what it takes to have a kernel: the first of a process, further
ones, from disk, by the system.

Every figure of ours is the median over fresh processes; the peer takes seconds and runs once. Texts of kernels are whole
printed files; further ones differ in a comment.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = ("sincos", "silu", "add_Tensor", "softmax_rows", "sum")
GOALS = {"first of a process": 15, "each further one": 6, "from disk, the first": 1, "from disk, each further one": 0.1}


# name: milliseconds allowed with an empty cache, with a warm one
WHOLE = {"sincos": (50, 5), "mlp_step": (150, 30), "gpt_step": (500, 100)}


# The same from bytecode: strata.compile.
CODE = {"code_sincos": (55, 10), "code_mlp_step": (200, 40), "code_gpt_step": (600, 120)}
SHARES = {"code_resnet18": 0.1}  # of the peer's time, where all is to be compiled
CALL = 1.5  # microseconds of a call
# What the peer took where the goals in milliseconds were set: a goal is a share of it, too, whatever the machine.
PEER_THEN = {"sincos": 1460, "mlp_step": 17800, "gpt_step": 10500}
NEW_SIZE = {"code_sizes_mlp_step": 2, "code_sizes_gpt_step": 20}  # milliseconds that a new size takes more than one that was there
CODE_CALLS = {"code_tiny_call": 1.5, "code_sizes_call": 1.5, "code_tensors20": 2.5, "code_guards148": 5, "code_guards_gpt_step": 10}


def whole(python: str, library: str, name: str, folder: str) -> float:
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # modules are compiled once, as when installed
    env |= {"STRATA_CACHE_DIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder, "TRITON_CACHE_DIR": folder, "OMP_NUM_THREADS": "2"}
    run = subprocess.run([python, str(Path(__file__).with_name("cold.py")), library, name], check=True, capture_output=True, text=True, env=env)
    return float(run.stdout.split()[-1])


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def whole_rows(torch: str | None, blocks: int) -> None:
    print("numerics of ours: exact, which is eager's bits")
    print(f"{'from call to result':<22}{'numerics':<9}{'cache':<8}{'ours':>12}{'goal':>10}{'peer':>12}{'ours/peer':>11}{'goal':>7}  result")
    peers: dict[str, list[float | None]] = {}
    for name, goals in {**WHOLE, **CODE, **dict.fromkeys(SHARES, (None, None))}.items():
        ours: tuple[list[float], list[float]] = ([], [])
        for _ in range(blocks):
            with tempfile.TemporaryDirectory() as folder:
                for times in ours:
                    times.append(whole(sys.executable, "strata", name, folder))
        work = name.removeprefix("code_")
        peer = peers.setdefault(work, [None, None])
        if torch and (name in WHOLE or name in SHARES):
            with tempfile.TemporaryDirectory() as folder:
                peer[:] = [whole(torch, "torch", name, folder) for _ in range(2)]
        if name in SHARES and peer[0]:
            goals = (SHARES[name] * peer[0], None)
        for cache, times, goal, theirs in zip(("empty", "warm"), ours, goals, peer, strict=True):
            mine = statistics.median(times)
            beside, share = f"{theirs:>9.0f} ms{mine / theirs:>11.3f}" if theirs else f"{'':>23}", None
            if theirs and cache == "empty":
                share = goal / PEER_THEN[work] if work in PEER_THEN else SHARES[name]
            allowed, word = (f"{goal:>7.0f} ms", verdict(mine <= goal)) if goal else (f"{'':>10}", "")
            word = f"{share:>7.3f}  {word}, as a share {verdict(mine / theirs <= share)}" if share else f"{'':>7}  {word}"
            print(f"{name:<22}{'exact':<9}{cache:<8}{mine:>9.1f} ms{allowed}{beside}{word}", flush=True)
    for name, goal in NEW_SIZE.items():
        with tempfile.TemporaryDirectory() as folder:
            mine = statistics.median(whole(sys.executable, "strata", name, folder) for _ in range(blocks))
        print(f"{name:<22}{'exact':<9}{'':<8}{mine:>9.2f} ms{goal:>7} ms{'':>30}  {verdict(mine <= goal)}", flush=True)
    for name, goal in {"tiny_call": CALL, **CODE_CALLS}.items():
        with tempfile.TemporaryDirectory() as folder:
            mine = 1e3 * statistics.median(whole(sys.executable, "strata", name, folder) for _ in range(3))
            theirs = 1e3 * whole(torch, "torch", name, folder) if torch and not name.startswith(("code_guards", "code_sizes")) else None
        beside = f"{theirs:>9.2f} us{mine / theirs:>11.3f}" if theirs else f"{'':>23}"
        print(f"{name:<22}{'exact':<9}{'':<8}{mine:>9.2f} us{goal:>7} us{beside}{'':>7}  {verdict(mine <= goal)}", flush=True)


def milliseconds(program: Path, kernel: str, count: int, how: str, folder: str, **env: str) -> tuple[list[float], int]:
    env = {**os.environ, "STRATA_CACHE_DIR": folder, "OMP_NUM_THREADS": "1", **env}
    lines = subprocess.run([str(program), kernel, str(count)], check=True, capture_output=True, text=True, env=env).stdout.splitlines()
    rows = [line.split() for line in lines]
    if {row[0] for row in rows} != {how}:
        raise SystemExit(f"{kernel}: expected texts from {how}, got {sorted({row[0] for row in rows})}")
    return [float(row[1]) for row in rows], int(rows[0][2])


def main(program: Path, torch: str | None, blocks: int) -> None:
    whole_rows(torch, blocks)
    print(f"{'kernel':<14}{'what':<30}{'ours':>12}{'goal':>12}  result")
    for kernel in KERNELS:
        found: dict[str, list[float]] = {}
        for _ in range(blocks):
            with tempfile.TemporaryDirectory() as folder:
                cold, size = milliseconds(program, kernel, 15, "clang", folder, STRATA_COMPILER="clang")
                warm, _ = milliseconds(program, kernel, 15, "disk", folder, STRATA_COMPILER="clang")
            found.setdefault("first of a process", []).append(cold[0])
            found.setdefault("each further one", []).append(statistics.median(cold[1:]))
            found.setdefault("from disk, the first", []).append(warm[0])
            found.setdefault("from disk, each further one", []).append(statistics.median(warm[1:]))
        with tempfile.TemporaryDirectory() as folder:
            system, _ = milliseconds(program, kernel, 5, "system", folder, STRATA_COMPILER="system")
        found["by the system's compiler"] = system
        for what, times in found.items():
            mine, goal = statistics.median(times), GOALS.get(what)
            row = f"{kernel:<14}{what:<30}{mine:>9.3f} ms"
            print(row + (f"{goal:>9} ms  {verdict(mine <= goal)}" if goal else ""), flush=True)
        print(f"{kernel:<14}{'bytes of text':<30}{size:>9}", flush=True)
