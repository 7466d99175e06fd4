"""Kernels of devices: compiled once in a process, kept on disk for the next one, compiled ahead by strata.warm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import devices
import pytest
import strata

DEVICE = devices.null()
NAMES = [n for n in ("null", "opencl") if devices.plugin(n).exists()]

# What a process does with kernels of a few names, and where they came from.
PROGRAM = """
import json, strata
device = strata.device(strata.accelerator.load({plugin!r}))
if not strata.accelerator.device_count():
    raise SystemExit(7)
x = strata.arange(6.0).reshape(2, 3)
there = x.to(device)
got = [(-there).tolist(), (-there.t()[::2]).contiguous().tolist(), there.sqrt().tolist()]
want = [(-x).tolist(), (-x.t()[::2]).tolist(), x.sqrt().tolist()]
print(json.dumps([got == want, strata.cache.stats(device), strata.cache.stats()["misses"]]))
"""


def run(folder, name: str, *command: str, program: str = PROGRAM, **environment: str) -> str:
    env = {**os.environ, "STRATA_CACHE_DIR": str(folder), "POCL_CACHE_DIR": str(folder / "pocl"), "PYTHONPATH": str(devices.ROOT / "python"), **environment}
    command = command or ("-c", program.format(plugin=str(devices.plugin(name))))
    done = subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, check=False)
    if done.returncode == 7:
        pytest.skip(f"no device of {name}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def used(folder, name: str, **environment: str):
    right, kernels, misses = json.loads(run(folder, name, **environment))
    assert right
    return kernels, misses


@pytest.mark.parametrize("name", NAMES)
def test_a_second_process_compiles_nothing(tmp_path, name):
    first, _ = used(tmp_path, name)
    assert first["compiled"] == first["modules"] >= 4 and first["loaded"] == 0
    second, misses = used(tmp_path, name)
    # The null device has the host's compiler, which keeps its programs itself.
    assert misses == 0 and (name == "null" or (second["compiled"] == 0 and second["loaded"] == first["compiled"]))


@pytest.mark.parametrize("name", NAMES)
def test_warm_compiles_ahead_many_kernels_in_a_module(tmp_path, name):
    if name != "null":
        used(tmp_path / "other", name)  # skips where there is none
    command = ("-m", "strata.warm", str(devices.plugin(name)), "--only", "neg,sqrt,clone", "--jobs", "2")
    assert "6 kernels, 6 compiled now" in run(tmp_path, name, *command)
    assert "6 kernels, 0 compiled now" in run(tmp_path, name, *command)
    kernels, misses = used(tmp_path, name)
    assert kernels["compiled"] == 0 and kernels["loaded"] >= 4 and misses == 0


def test_damaged_files_are_compiled_anew(tmp_path):
    run(tmp_path, "null", "-m", "strata.warm", str(devices.plugin("null")), "--only", "neg,sqrt,clone")
    for turn, at in enumerate((0, 9, 40, -1)):
        files = sorted(tmp_path.glob("*.kernel"))
        assert files
        for f in files:
            data = bytearray(f.read_bytes())
            data[min(at, len(data) - 1)] ^= 1 << turn
            f.write_bytes(data)
        kernels, misses = used(tmp_path, "null")
        assert kernels["loaded"] == 0 and misses == kernels["compiled"] >= 4


def test_warm_says_what_it_lacks():
    program = "import strata, strata.warm; strata.warm.warm(strata.accelerator.load({plugin!r}))"
    with pytest.raises(AssertionError, match="expected a device whose kernels are kept on disk"):
        run(devices.ROOT / "build", "null", program=program, STRATA_CACHE_BYTES="0")
    with pytest.raises(AssertionError, match="expected names like float32, got 'float31'"):
        run(devices.ROOT / "build", "null", "-m", "strata.warm", str(devices.plugin("null")), "--dtypes", "float31")


def compiled() -> int:
    stats = strata.cache.stats(DEVICE)
    return stats["compiled"] + stats["loaded"]


def of_rare_layout():
    """Whose kernels no other test of the process has compiled."""
    return strata.ones(2, 3, 4, 3, 6, device=DEVICE)[..., ::2].permute(3, 0, 4, 2, 1)[:, :, 1:]


def test_a_launch_compiles_the_kernel_that_it_runs_alone():
    there = of_rare_layout()
    before = compiled()
    strata.special.i0e(there)
    assert compiled() == before + 1


def test_threads_that_ask_for_a_kernel_compile_it_once():
    there = of_rare_layout()
    before = compiled()
    start = threading.Barrier(8)
    got = []

    def work(_):
        start.wait()
        got.append(strata.special.erfcx(there))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))  # raises what one of them does
    assert len(got) == 8 and compiled() == before + 1


# Complex numbers next to each other are what a compiler likes to make vectors of, with a sum and a difference in one.
BITS = """
import strata
device = strata.device(strata.accelerator.load({plugin!r}))
generator = strata.Generator().manual_seed(5)
for dtype in (strata.complex64, strata.complex128):
    a, b = (strata.randn(257, dtype=dtype, generator=generator) for _ in range(2))
    for f in (strata.mul, strata.div, strata.add, lambda a, b: strata.addcmul(a, a, b), lambda a, b: a.exp(), lambda a, b: strata.dot(a, b), lambda a, b: (a * b).sum(), lambda a, b: a.reciprocal(), lambda a, b: a.cumprod(0)):
        assert f(a.to(device), b.to(device)).cpu().equal(f(a, b)), (dtype, f)
    g = strata.compile(lambda a, b: a * b + a / b)
    assert g(a, b).equal(a * b + a / b) and g(a.to(device), b.to(device)).cpu().equal(a * b + a / b), dtype
x, y = (strata.randn(2, 300, generator=generator) for _ in range(2))
for f in (lambda x, y: strata.stack([x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]], -1), lambda x, y: strata.complex(x[0], x[1]) * strata.complex(y[0], y[1])):
    want = f(x, y)
    assert f(x.to(device), y.to(device)).cpu().equal(want) and strata.compile(f)(x.to(device), y.to(device)).cpu().equal(want)
"""


@pytest.mark.parametrize("compiler", ["system", "clang"])
def test_the_compiler_of_kernels_does_not_matter(tmp_path, compiler):
    program = BITS.format(plugin=str(devices.plugin("null")))
    run(tmp_path, "null", "-c", "import warnings; warnings.simplefilter('ignore')" + program, STRATA_COMPILER=compiler)
