"""What a device's plugin does, beside the CPU: `python bench/on_device.py PLUGIN [--dtypes float32 bfloat16] [--every N]`.

Bits: every operator's samples, forward and gradient, by the comparison of tests/device/test_operators.py; which of them went to
the CPU and back. A small network trained for 20 steps with library calls off: losses and weights. GB/s and launches of a few
operators, eager and compiled, and PyTorch's on the same machine where STRATA_TORCH names an interpreter that has it.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
for folder in ("tests/device", "tests/ops", "python", ""):
    sys.path.insert(0, str(ROOT / folder))

TIMED = {
    "sin(x)^2 + cos(x)^2, 2^28 float32": ((1 << 28,), "float32", "F.sin(x) ** 2 + F.cos(x) ** 2", 2),
    "gelu, 32768 x 4096 bfloat16": ((32768, 4096), "bfloat16", "F.nn.functional.gelu(x)", 2),
    "softmax, 32768 x 4096 bfloat16": ((32768, 4096), "bfloat16", "F.softmax(x, -1)", 2),
    "layer_norm, 32768 x 4096 bfloat16": ((32768, 4096), "bfloat16", "F.nn.functional.layer_norm(x, (4096,))", 2),
    "sum of rows, 32768 x 4096 bfloat16": ((32768, 4096), "bfloat16", "x.sum(-1)", 1),
    "sum of columns, 32768 x 4096 bfloat16": ((32768, 4096), "bfloat16", "x.sum(0)", 1),
    "sum of all, 2^27 bfloat16": ((1 << 27,), "bfloat16", "x.sum()", 1),
}


def gigabytes(module: str, device: str, sync: str) -> str:
    """A program that prints, for each timed line, GB/s; of strata also those of the compiled graph, and launches of each."""
    return f"""
import time, {module} as F
wait = {sync}
def best_of(run):
    run(); wait()
    best = 1e9
    for _ in range(5):
        start = time.perf_counter(); run(); wait(); best = min(best, time.perf_counter() - start)
    return best
def launched(run):
    before = F.cache.stats({device!r})["launches"]; run()
    return F.cache.stats({device!r})["launches"] - before
for shape, dtype, text, moves in {list(TIMED.values())!r}:
    x = F.rand(shape, dtype=getattr(F, dtype), device={device!r})
    f = eval("lambda x: " + text, {{"F": F}})
    size = moves * x.numel() * x.element_size() / 1e9
    told = [size / best_of(lambda: f(x))]
    if {module!r} == "strata":
        compiled = F.graph(f, x).compile()
        told += [size / best_of(lambda: compiled(x)), launched(lambda: f(x)), launched(lambda: compiled(x))]
    print(*told)
"""


def small_launches(name: str) -> str:
    """A program that prints, of a chain of small kernels and of a training step, both compiled: launches, and microseconds a call."""
    return f"""
import time, strata
wait = lambda: strata.accelerator.synchronize({name!r})
def chain(x):
    for _ in range(12):
        x = (x * 1.25).softmax(-1).t().contiguous()
    return x
x = strata.rand(48, 80, device={name!r})
g = strata.graph(chain, x).compile()
strata.manual_seed(0)
model = strata.nn.Sequential(*[m for n in (32, 64, 96) for m in (strata.nn.Linear(n, n + 32), strata.nn.GELU())]).to({name!r})
optimizer = strata.optim.AdamW(model.parameters())
batch = strata.rand(64, 32, device={name!r})
@strata.compile
def step():
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
for label, run in (("chain of small rows", lambda: g(x)), ("training step of three layers", step)):
    for _ in range(5):
        run()
    wait()
    stats = strata.cache.stats({name!r})
    best = 1e9
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(20):
            run()
        wait()
        best = min(best, time.perf_counter() - start)
    after = strata.cache.stats({name!r})
    each = (after["launches"] - stats["launches"]) / 140, (after["replayed"] - stats["replayed"]) / 140
    print(f"  {{label}}: {{best / 20 * 1e6:.1f}} us a call, {{each[0]:.0f}} launches, {{each[1]:.0f}} of them replayed")
"""


def compare(strata, device, dtypes: list[str], every: int) -> int:
    import test_operators as t

    t.TESTED[:] = dtypes
    entries = t.ENTRIES[::every]
    same, skipped, wrong = 0, 0, []
    started = time.time()
    strata.fallback.reset()
    for number, entry in enumerate(entries):
        try:
            t.test_an_operator_gives_the_cpus_bits(device, entry)
            same += 1
        except t.pytest.skip.Exception:
            skipped += 1
        except Exception as error:  # told below
            wrong.append((entry.schema.full, str(error).strip().splitlines()[0][:300]))
        if number % 100 == 99:
            print(f"  {number + 1} of {len(entries)} operators, {time.time() - started:.0f} s", flush=True)
    print(f"bits in {', '.join(dtypes)}: {same} operators equal the CPU's, {len(wrong)} do not, {skipped} without samples; {time.time() - started:.0f} s")
    for name, why in wrong:
        print(f"  DIFFERS {name}: {why}")
    fell = strata.fallback.rows()
    print(f"  {len({r.op for r in fell})} operators went to the CPU and back: {' '.join(sorted({r.op for r in fell}))}")
    return len(wrong)


def compare_rows(strata, device) -> int:
    """Rows that groups of items share, of lengths from 3 to 200,003."""
    import test_groups as t

    t.DEVICE, cases = device, [(shape, dtype) for shape in (*t.SHAPES, (5000, 300), (300, 70000)) for dtype in t.DTYPES]
    wrong = 0
    for shape, dtype in cases:
        try:
            t.test_rows_of_groups_have_the_bits_of_the_cpu(shape, dtype)
        except AssertionError as error:
            wrong += 1
            print(f"  DIFFERS {shape} {dtype}: {str(error).splitlines()[0][:200]}")
    print(f"rows that groups share: {len(cases) - wrong} cases of {len(t.OPERATORS)} operators equal the CPU's, {wrong} do not")
    return wrong


def compare_replays(strata, device) -> int:
    """A compiled graph of several launches, called again and again: with other inputs, random words, on two streams, and with all
    memory that is free given back in between."""
    F = strata.nn.functional

    def chain(x, w):
        y = F.dropout(x * w, 0.3).softmax(-1)
        z = (y.t().contiguous() + strata.rand_like(y).t()).softmax(-1)
        return (z * z).sum(0).exp() + y.std(1)

    strata.manual_seed(1)
    given = [(strata.randn(40, 70), strata.randn(70)) for _ in range(4)]
    there = [[t.to(device) for t in pair] for pair in given]
    compiled = strata.graph(chain, *there[0]).compile()
    streams = [strata.accelerator.current_stream(device), strata.Stream(device)]
    before, want, got = strata.cache.stats(device), [], []
    strata.manual_seed(2)
    for call in range(24):
        want.append(chain(*given[call % 4]))
    strata.manual_seed(2)
    for call in range(24):
        if call % 5 == 4:
            there[call % 4] = [t.clone() for t in there[call % 4]]
            strata.accelerator.synchronize(device)
            strata.accelerator.empty_cache(device)
        streams[call % 2].wait_stream(streams[1 - call % 2])
        with streams[call % 2]:
            got.append(compiled(*there[call % 4]))
    strata.accelerator.synchronize(device)
    wrong = sum(not a.equal(b.cpu()) for a, b in zip(want, got))
    after = strata.cache.stats(device)
    launched, replayed = (after[n] - before[n] for n in ("launches", "replayed"))
    print(f"replays: {24 - wrong} of 24 calls equal the CPU's, {replayed} of {launched} launches replayed")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plugin")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--every", type=int, default=1, help="every N-th operator")
    parser.add_argument("--times", action="store_true", help="GB/s, which take large tensors")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["STRATA_TEST_DEVICE"] = options.plugin
    import strata
    from strata import _C

    device = strata.device(strata.accelerator.load(options.plugin))
    name, version, _, count = next(p for p in _C._device_plugins() if p[0] == device.type)
    print(f"{datetime.date.today()} {name} {version}, {count} devices; strata {strata.__version__}, Python {platform.python_version()}")
    if not count:
        print("no device is there")
        return 1
    failed = compare_replays(strata, device) + compare(strata, device, options.dtypes, options.every) + compare_rows(strata, device)

    from strata.testing._device.whole import trained

    _C._set_library_enabled(False)
    for optimizer in ("SGD", "AdamW"):
        make = partial(getattr(strata.optim, optimizer), lr=0.01)
        want, weights = trained("cpu", 20, make)
        for how in ("eager", "compiled"):
            got, others = trained(device, 20, make, compiled=how == "compiled")
            bits = got == want and all(a.equal(b) for a, b in zip(weights, others))
            failed += not bits
            print(f"training, {how}, 20 steps of {optimizer}: {'losses and weights equal the CPU bit for bit' if bits else 'DIFFERS'}")
    _C._set_library_enabled(True)

    if options.times:
        load = f"__import__('strata').accelerator.load({options.plugin!r})\n"
        ours = subprocess.run([sys.executable, "-c", load + gigabytes("strata", name, "lambda: F.accelerator.synchronize()")],
                              capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        print(ours.stderr[-600:], end="")
        for replays in ("1", "0"):
            env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "STRATA_REPLAYS": replays}
            small = subprocess.run([sys.executable, "-c", load + small_launches(name)], capture_output=True, text=True, env=env)
            print(f"small launches{', one by one' if replays == '0' else ''}:\n{small.stdout}{small.stderr[-600:]}", end="")
        theirs = None
        if python := os.environ.get("STRATA_TORCH"):
            theirs = subprocess.run([python, "-c", gigabytes("torch", name, "F.cuda.synchronize")], capture_output=True, text=True)
            print(theirs.stderr[-600:], end="")
        peer = [float(n) for n in theirs.stdout.split()] if theirs else []
        for k, (label, line) in enumerate(zip(TIMED, ours.stdout.splitlines())):
            value, compiled, launches, fewer = (float(n) for n in line.split())
            beside = f"; PyTorch eager {peer[k]:.0f}: ratios {value / peer[k]:.2f} and {compiled / peer[k]:.2f}" if k < len(peer) else ""
            print(f"  {label}: {value:.0f} GB/s in {launches:.0f} launches, compiled {compiled:.0f} in {fewer:.0f}{beside}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
