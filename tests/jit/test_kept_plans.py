"""Plans of graphs on disk (jit/compile/kept.h): a new process fuses nothing that another one has fused, and what is
damaged, gone or made otherwise is made anew."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import strata

PROGRAM = """
import hashlib, sys
import strata

strata.manual_seed(3)
x, w = strata.randn(65, 33, requires_grad=True), strata.randn(33)

def f(x, w):
    h = (x * w + 0.5).tanh()
    h = h - h.mean(1, keepdim=True)
    noise = strata.rand_like(h)
    return (h * noise).clamp(-2, 3).bfloat16().float().sum(0), h.softmax(0), x[x.argmax(0)].sin() * 2

def digest(tensors):
    return hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in tensors)).hexdigest()

def once(f, **options):
    strata.manual_seed(5)
    x.grad = None
    out = f(x, w)
    sum(t.sum() for t in out).backward()
    return digest([*out, x.grad])

expected = once(f)
"""
COMPILED = PROGRAM + """
cf = strata.graph(f, x, w).compile()
assert once(cf) == expected
print(strata.cache.stats()["misses"], strata.cache.stats()["refused"])
"""


def run(folder: Path, code: str = COMPILED, **env: str) -> str:
    env = {**os.environ, "STRATA_CACHE_DIR": str(folder), **env}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def plans(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.plan"))


@pytest.fixture(autouse=True)
def compiler():
    if strata.cache.compiler().startswith("none"):
        pytest.skip("needs a compiler")


def test_a_new_process_fuses_nothing(tmp_path):
    tell = COMPILED + """
fusion = [l for l in cf.explain().splitlines() if not l.startswith("compiled in") and "; from " not in l]
print(hashlib.sha256(cf.source().encode()).hexdigest(), hashlib.sha256("".join(fusion).encode()).hexdigest())
"""
    first = run(tmp_path, tell).splitlines()
    made = {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    assert len(plans(tmp_path)) == 2  # forward and backward
    second = run(tmp_path, tell).splitlines()
    assert first[0] != "0 0" and second[0] == "0 0"
    assert first[1] == second[1]  # what people are shown is the same, though its kernels were not printed to run
    assert {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()} == made


def test_what_a_plan_hangs_on(tmp_path):
    """Other numerics, numbers, dtypes, sizes, strides and results have plans of their own."""
    code = """
import strata
def check(f, *xs, **options):
    want, got = f(*xs), strata.graph(f, *xs).compile(**options)(*xs)
    assert options or want.equal(got), (want, got)
x, h = strata.arange(12.).view(3, 4) / 7, (strata.arange(12.).view(3, 4) / 7).bfloat16()
check(lambda x: x.sin() * 2 + 1, x)
check(lambda x: x.sin() * 3 + 1, x)
check(lambda x: x.sin() * 2 + 1, x.t())
check(lambda x: x.sin() * 2 + 1, x[:2])
check(lambda x: x.sin() * 2 + 1, h)
check(lambda x: x.sin() * 2 + 1, h, numerics="fast")
check(lambda x: x.sin() * 2 + 1, x.double())
strata.set_default_dtype(strata.float64)
check(lambda x: x.sin() * 2 + 1, x)
"""
    run(tmp_path, code)
    made = {p.name for p in plans(tmp_path)}
    assert len(made) >= 4  # one at least for each kernel that is new to a process
    for _ in range(2):
        run(tmp_path, code)
        assert made <= {p.name for p in plans(tmp_path)}


def test_a_damaged_plan_is_made_anew(tmp_path):
    run(tmp_path)
    draw = random.Random(11)
    good = {p: p.read_bytes() for p in plans(tmp_path)}
    damage = """
import random
from pathlib import Path
draw, folder = random.Random(7), Path(strata.cache.folder())
good = {p: p.read_bytes() for p in folder.glob("*.plan")}
for k in range(60):
    for p, bytes_ in good.items():
        bad = bytearray(bytes_)
        if k % 3:
            bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
        else:
            del bad[draw.randrange(len(bad)):]
        p.write_bytes(bad)
    assert once(strata.graph(f, x, w).compile()) == expected
    assert all(p.read_bytes() == bytes_ for p, bytes_ in good.items())
print(strata.cache.stats()["refused"])
"""
    assert run(tmp_path, PROGRAM + damage).split() == [str(60 * len(good))]
    for p, bytes_ in good.items():
        p.write_bytes(bytes_[: draw.randrange(len(bytes_))])
    assert run(tmp_path).split() == ["0", str(len(good))]


def test_a_plan_without_its_kernels(tmp_path):
    run(tmp_path)
    kernels = sorted(tmp_path.glob("*.kernel"))
    kernels[0].unlink()
    assert run(tmp_path).split() == ["1", "0"]
    assert sorted(tmp_path.glob("*.kernel")) == kernels
    kernels[0].write_bytes(b"x")
    assert run(tmp_path).split() == ["1", "1"]


def test_kernels_of_another_compiler_serve(tmp_path):
    """A plan does not hang on who compiled its kernels, and these are found where that one's are."""
    if not strata.cache.compiler().startswith("Clang") or not shutil.which("gcc"):
        pytest.skip("needs the Clang plugin and gcc")
    first = run(tmp_path, STRATA_COMPILER="system").split()
    made = {p.name for p in tmp_path.iterdir()}
    assert first != ["0", "0"] and run(tmp_path).split() == ["0", "0"]
    assert {p.name for p in tmp_path.iterdir()} == made


def test_without_a_folder_nothing_is_kept(tmp_path):
    assert run(tmp_path, STRATA_CACHE_BYTES="0").split()[1] == "0"
    assert plans(tmp_path) == []
    run(tmp_path)
    assert run(tmp_path, PROGRAM + "strata.cache.clear(); print(strata.cache.stats()['bytes'])").split() == ["0"]
    assert plans(tmp_path) == []


def test_operators_of_a_programs_own_are_not_kept(tmp_path):
    """Two programs may give different texts to one name."""
    code = """
import strata
op = strata.library.expression("kept::{name}(Tensor self) -> Tensor", "{text}")
x = strata.arange(6.)
assert strata.graph(lambda x: op(x).sin(), x).compile()(x).equal(op(x).sin())
"""
    run(tmp_path, code.format(name="same", text="self * 2"))
    run(tmp_path, code.format(name="same", text="self * 3"))
    assert plans(tmp_path) == []


def test_random_graphs_from_disk(tmp_path):
    """The same graphs again, in a process that finds their plans: eager's bits, and nothing compiled or written."""
    tool = Path(__file__).resolve().parents[2] / "tools/fuzz_graphs.py"
    env = {**os.environ, "STRATA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    told = []
    for _ in range(2):
        done = subprocess.run([sys.executable, tool, "--graphs", "12", "--seed", "20261603"], capture_output=True, text=True, timeout=300, env=env)
        assert done.returncode == 0 and ", 0 failed" in done.stdout, done.stdout + done.stderr
        told.append({p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()})
    assert told[0] == told[1] and plans(tmp_path)
