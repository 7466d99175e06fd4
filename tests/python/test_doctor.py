"""`python -m strata.doctor`: what is there, what is missing and the line that mends it; faults by the exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import strata

BUILD = Path(os.path.realpath(strata._C.__file__)).parent
NULL = BUILD / "plugins/null/libstrata_null.so"


def run(**env: str) -> subprocess.CompletedProcess:
    whole = {**os.environ, "PYTHONPATH": str(Path(strata.__file__).parent.parent), **env}
    return subprocess.run([sys.executable, "-m", "strata.doctor"], env=whole, capture_output=True, text=True, check=False, timeout=120)


def lines(done: subprocess.CompletedProcess, what: str) -> list[str]:
    return [line for line in done.stdout.splitlines() if line[9:].startswith(what)]


def test_what_is_there(tmp_path):
    done = run(STRATA_PLUGINS=str(NULL), STRATA_CACHE_DIR=str(tmp_path), STRATA_CPU="base")
    assert done.returncode == 0, done.stdout + done.stderr
    (first,) = lines(done, "strata ")
    assert first.startswith("ok") and strata.version.strata in first and str(BUILD) in first
    assert "'base'" in lines(done, "processor")[0] and "STRATA_CPU=base" in lines(done, "processor")[0]
    assert str(tmp_path) in lines(done, "cache of kernels")[0]
    assert lines(done, "device null")[0].startswith("ok") and "of STRATA_PLUGINS" in lines(done, "device null")[0]
    assert "; with groups, kernels on disk, events, pinned memory, copies between devices, a library, graphs" in done.stdout
    bare = run(STRATA_PLUGINS=str(NULL), STRATA_CACHE_DIR=str(tmp_path), STRATA_NULL_WITHOUT="groups graphs")
    assert "a library; without groups, graphs" in bare.stdout
    assert all(line[:7].strip() in ("ok", "missing", "fault", "") for line in done.stdout.splitlines())


def test_a_plugin_that_is_not_there_and_one_that_is_none():
    absent = run(STRATA_PLUGINS="/nowhere/libx.so")
    assert absent.returncode == 1 and "fault    device" in absent.stdout and "to mend it: unset STRATA_PLUGINS" in absent.stdout
    wrong = run(STRATA_PLUGINS=str(BUILD / "libstrata.so"))
    assert wrong.returncode == 1 and "expected a plugin" in wrong.stdout and "build the plugin against" in wrong.stdout


def test_a_library_that_a_plugin_needs_is_named():
    done = run(STRATA_PLUGINS="")
    for name in ("opencl", "cuda"):
        for line in lines(done, f"device {name}"):
            at = done.stdout.splitlines().index(line)
            assert line.startswith("ok") or "to mend it: apt-get install" in done.stdout.splitlines()[at + 1]


def test_missing_compiler_and_cache(tmp_path):
    (tmp_path / "file").write_text("")
    done = run(STRATA_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert "export STRATA_CACHE_DIR" in done.stdout or lines(done, "cache of kernels")[0].startswith("ok")


def test_every_state_but_ok_has_a_line_that_mends():
    """In a process of its own: the doctor loads every plugin that it finds."""
    program = (
        "import strata\n"
        "for f in strata.doctor.findings():\n"
        "    assert f.state in ('ok', 'missing', 'fault') and f.text\n"
        "    assert f.state == 'ok' or f.mend, f\n"
    )
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=True)


def test_the_commands_of_the_package():
    def command(*arguments: str) -> subprocess.CompletedProcess:
        env = {**os.environ, "PYTHONPATH": str(Path(strata.__file__).parent.parent), "STRATA_PLUGINS": ""}
        return subprocess.run([sys.executable, "-m", "strata", *arguments], env=env, capture_output=True, text=True, check=False, timeout=120)

    assert "ok       strata" in command("doctor").stdout
    assert "usage: strata warm" in command("warm", "--help").stdout and "--level" in command("backend-test", "--help").stdout
    assert command().returncode == 0 and "doctor" in command("--help").stdout
    wrong = command("heal")
    assert wrong.returncode == 2 and "expected a command, got 'heal'" in wrong.stderr and "doctor" in wrong.stderr
