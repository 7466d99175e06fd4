"""`./run bench [overhead|cpu] [--quick]`: our times beside PyTorch's, interleaved in one run, as ratios with their goals.

PyTorch runs in a process of its own, since two OpenMP runtimes in one would disturb each other; blocks alternate, and each
figure is the median of its blocks. STRATA_TORCH names the interpreter that has torch; without it only our times are shown.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Peer:
    """A worker process that times named workloads on request."""

    def __init__(self, python: str, library: str):
        env = dict(os.environ, OMP_NUM_THREADS="2", MKL_NUM_THREADS="2", KMP_BLOCKTIME="200")
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


# name: (share of PyTorch's time that is allowed, unit)
GOALS = {
    "overhead": {"add": (1 / 3, "ns"), "add_grad": (1 / 3, "ns"), "view": (1 / 3, "ns"), "linear_4x4": (1 / 3, "ns"), "empty": (1 / 3, "ns"),
                 "chain_1000": (1 / 4, "ms"), "mlp_step": (0.7, "ms")},
    "cpu": {"softmax": (1.0, "ms"), "layernorm": (1.0, "ms"), "sum": (1.0, "ms"), "gelu": (1 / 0.8, "ms"), "matmul_1024": (1 / 0.95, "ms"),
            "matmul_2048": (1 / 0.95, "ms"), "matmul_2048_bf16": (1 / 0.95, "ms"), "conv_3x3": (1 / 0.95, "ms"), "adamw_10m": (1.0, "ms"),
            "gpt_step": (1 / 1.25, "ms")},
}
SCALE = {"ns": 1e9, "ms": 1e3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", nargs="?", choices=list(GOALS))
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--blocks", type=int, default=11)
    args = parser.parse_args()
    ours = Peer(sys.executable, "strata")
    theirs = Peer(os.environ["STRATA_TORCH"], "torch") if os.environ.get("STRATA_TORCH") else None
    print(f"ours: {ours.ask(op='about')}")
    if theirs:
        print(f"peer: {theirs.ask(op='about')}")
    print(f"{'work':<18}{'ours':>12}{'peer':>12}{'ours/peer':>11}{'goal':>8}  result")
    for suite in [args.suite] if args.suite else list(GOALS):
        if suite == "cpu":
            copies = [ours.ask(op="time", name="copy_16m")["seconds"] for _ in range(args.blocks)]
            print(f"best copy of 16 MiB: {2 * 16 * 2**20 / min(copies) / 1e9:.1f} GB/s")
        for name, (goal, unit) in GOALS[suite].items():
            if args.only and name not in args.only:
                continue
            a, b = [], []
            for _ in range(args.blocks):
                a.append(ours.ask(op="time", name=name)["seconds"])
                if theirs:
                    b.append(theirs.ask(op="time", name=name)["seconds"])
            mine = statistics.median(a)
            if not theirs:
                print(f"{name:<18}{mine * SCALE[unit]:>9.2f} {unit}")
                continue
            ratio = statistics.median(x / y for x, y in zip(a, b))
            peer = statistics.median(b)
            print(f"{name:<18}{mine * SCALE[unit]:>9.2f} {unit}{peer * SCALE[unit]:>9.2f} {unit}{ratio:>11.2f}{goal:>8.2f}  "
                  f"{'met' if ratio <= goal else 'MISSED'}", flush=True)


if __name__ == "__main__":
    main()
