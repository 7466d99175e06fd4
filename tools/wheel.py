"""Builds the wheel and tries it in an empty environment: `./run wheel [--keep]`.

Prints its size, the processor minutes that it took and what it needs of a system; then installs it and the null device's
package beside it, imports both from an empty folder, and trains a network for 20 steps on the CPU and on the null device,
which an entry point finds: the same bits.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRIAL = """
import strata, strata.nn as nn
from strata import _C

def trained(device):
    strata.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)).to(device)
    optimizer = strata.optim.AdamW(net.parameters(), lr=2e-3)
    x, y = strata.randn(32, 1, 8, 8).to(device), strata.randint(0, 10, (32,)).to(device)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.detach().cpu() for p in net.parameters()]

_C._set_library_enabled(False)
losses, weights = trained("cpu")
there, others = trained("null")
assert losses == there and all(a.equal(b) for a, b in zip(weights, others)), "the null device has other bits"
print(f"strata {strata.version.strata} in {strata.__file__}: losses {losses[0]:.4f} to {losses[-1]:.4f} on the CPU and, bit for bit, on the null device")
"""


def run(*words: object, **more: object) -> str:
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def build(source: Path, to: Path) -> Path:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    print(f"building the wheel of {source.name} ...", flush=True)
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", to, source)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    minutes = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 60
    made = max(to.glob("*.whl"), key=lambda p: p.stat().st_mtime)
    print(f"{made.name}: {made.stat().st_size / 1e6:.1f} MB, {minutes:.1f} processor minutes, {(time.time() - start) / 60:.1f} minutes")
    with zipfile.ZipFile(made) as packed:
        for entry in packed.infolist():
            if entry.filename.endswith(".so") or ".so." in entry.filename:
                print(f"  {entry.filename}: {entry.file_size / 1e6:.2f} MB")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="take the wheels that dist/ has")
    args = parser.parse_args()
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    kept = [next(iter(sorted(dist.glob(pattern))), None) if args.keep else None for pattern in ("strata-*.whl", "strata_null-*.whl")]
    wheels = [wheel or build(source, dist) for wheel, source in zip(kept, (ROOT, ROOT / "plugins/null"))]
    with tempfile.TemporaryDirectory() as folder:
        print("an empty environment ...", flush=True)
        venv.create(Path(folder) / "env", with_pip=True)
        python = Path(folder) / "env/bin/python"
        run(python, "-m", "pip", "install", "-q", *wheels)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("STRATA_", "PYTHON", "LD_"))}
        print(run(python, "-c", TRIAL, cwd=folder, env={**env, "STRATA_CACHE_DIR": str(Path(folder) / "cache")}), end="")
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
