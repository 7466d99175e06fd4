"""The fuzzer finds what is planted, prints it as a short program that shows it, and finds nothing where nothing is."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import strata

ROOT = Path(__file__).resolve().parent.parent.parent
PLANTED = """
import ctypes
def planted_crash(input, n: int = 0):
    ctypes.string_at(0)
def planted_hang(input):
    while True: pass
def planted_write(input, other):
    if isinstance(input, strata.Tensor) and input.dtype == strata.float32 and input.untyped_storage().nbytes() and not input.requires_grad:
        input.view(-1)[0] = 9.0
    raise ValueError("no")
def planted_error(input):
    raise SystemError("no")
strata.planted_crash, strata.planted_hang = planted_crash, planted_hang
strata.planted_write, strata.planted_error = planted_write, planted_error
"""


@pytest.fixture(autouse=True)
def threads_as_before():
    """Calls are compared on several numbers of threads."""
    before = strata.get_num_threads()
    yield
    strata.set_num_threads(before)


def fuzz(*args: str) -> subprocess.CompletedProcess:
    env = dict(os.environ, OMP_NUM_THREADS="1")
    return subprocess.run([sys.executable, "tools/fuzz", "--jobs", "2", *args], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def findings(tmp_path_factory) -> dict[str, str]:
    """The text that was printed for each planted fault."""
    plant = tmp_path_factory.mktemp("plant") / "plant.py"
    plant.write_text(PLANTED)
    run = fuzz("--calls", "96", "--seed", "3", "--only", "strata.planted", "--plant", str(plant), "--seconds", "0.2")
    assert run.returncode == 1, run.stdout + run.stderr
    assert re.search(r"^\d+ passed, \d+ failed$", run.stdout.splitlines()[-1])
    return {name: text for name, text in re.findall(r"^== strata\.(planted_\w+): .*?\n(.*?)^-- \./run fuzz", run.stdout, re.S | re.M)}


def reproducer(text: str) -> list[str]:
    return text.split("\n-- ")[0].splitlines()


@pytest.mark.parametrize("name", ["planted_crash", "planted_hang", "planted_write", "planted_error"])
def test_what_is_planted_is_found(findings, name):
    assert name in findings
    lines = reproducer(findings[name])
    assert 2 <= len(lines) <= 10 and lines[0].startswith("import strata"), lines


def shown(findings, name) -> subprocess.CompletedProcess:
    program = "import strata\n" + PLANTED + "\n".join(reproducer(findings[name]))
    env = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)


def test_reproducers_run_by_themselves(findings):
    assert shown(findings, "planted_crash").returncode == -signal.SIGSEGV
    run = shown(findings, "planted_write")
    assert run.returncode == 0 and "9." in run.stdout, run.stderr
    assert "SystemError" in shown(findings, "planted_error").stderr


def test_a_call_is_replayed_by_its_number(findings):
    run = fuzz("--calls", "0", "--replay", "3:5")
    again = fuzz("--calls", "0", "--replay", "3:5")
    assert run.stdout == again.stdout and "import strata" in run.stdout


def test_a_program_that_depends_on_layout_is_made_small(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import strata
    from fuzz.programs import Program, differs, minimal
    from fuzz.report import program

    monkeypatch.setattr(strata, "planted", lambda t: strata.tensor(float(t.stride()[0])), raising=False)
    grown = Program(["x0 = strata.ones(2, 3).permute([1, 0])", "x1 = strata.ones(2)"],
                    ["v0 = strata.add(x1, 1)", "v1 = strata.planted(x0)", "v2 = strata.add(v1, v0)"])
    assert differs(grown, True, 1) and not differs(grown, False, 2)
    lines = program(minimal(grown, True, 1)[0])
    assert len(lines) <= 10 and not any("x1" in line for line in lines)
    exec("\n".join(lines), {})
    assert capsys.readouterr().out.split() == ["tensor(1.)", "tensor(2.)"]


def test_smoke():
    run = fuzz("--calls", "400", "--programs", "10", "--seed", "1", "--only", "aten.add")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "400 calls" in run.stdout and "10 programs" in run.stdout


OTHERWISE = """
import strata.nn.functional as F
def planted_layout(input):
    return strata.tensor([float(s) for s in input.stride()])
def planted_device(input):
    return input.clone() if input.device.type == "cpu" else input.neg()
def planted_error(input):
    if input.device.type != "cpu":
        raise TypeError("planted_error: no")
    raise ValueError("planted_error: no")
F.planted_layout, F.planted_device, F.planted_error = planted_layout, planted_device, planted_error
"""


@pytest.mark.parametrize(("device", "names", "rest"), [("cpu", {"planted_layout"}, ()), ("null", {"planted_device", "planted_error"}, ("--device", "null"))])
def test_what_differs_another_way_is_found(tmp_path, device, names, rest):
    plant = tmp_path / "plant.py"
    plant.write_text(OTHERWISE)
    run = fuzz("--calls", "120", "--seed", "3", "--only", "strata.nn.functional.planted", "--plant", str(plant), *rest)
    found = dict(re.findall(r"^== strata\.nn\.functional\.(planted_\w+): .*?\n(.*?)^-- \./run fuzz", run.stdout, re.S | re.M))
    assert set(found) == names and run.returncode == 1, run.stdout + run.stderr
    for text in found.values():
        lines = reproducer(text)
        assert lines[0].startswith("import strata") and len(lines) <= 10, lines
        env = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
        shown = subprocess.run([sys.executable, "-c", f"import strata\n{OTHERWISE}\n" + "\n".join(lines)], env=env, capture_output=True, text=True, timeout=60)
        first, second = shown.stdout.splitlines()[0], shown.stdout.splitlines()[-1]
        assert shown.returncode == 0 and first != second, shown


def test_smoke_on_a_device():
    run = fuzz("--calls", "160", "--programs", "5", "--seed", "1", "--only", "aten.s", "--device", "null")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "160 calls" in run.stdout and "5 programs" in run.stdout
