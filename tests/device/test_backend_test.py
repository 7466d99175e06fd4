"""Grading a plugin: the null device as it is and with faults, a device made by the steps of docs/add-a-device.md, coverage."""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import devices
import pytest
import strata
from strata import backend_test
from strata.testing._device.calls import difference, shown
from strata.testing._device.grade import grade

PLUGIN = devices.plugin("null")
DEVICE = devices.null()
CONTROL = ctypes.CDLL(str(PLUGIN)).strata_null_control


def control(what: str, value: object) -> None:
    assert CONTROL(what.encode(), str(value).encode()) == 0


def test_a_sample_of_all_levels_passes(tmp_path, capsys):
    seed = os.environ.get("STRATA_TEST_SEED", "0")
    page, rows = tmp_path / "page.html", tmp_path / "rows.json"
    status = backend_test.main([str(PLUGIN), "--sample", "4", "--seed", seed, "--dtypes", "float32", "int64", "--html", str(page), "--json", str(rows)])
    told = capsys.readouterr()
    assert status == 0, told.out
    assert "level 5" in told.out and told.out.strip().endswith("reached level 5") and "level 2: " in told.err
    found = json.loads(rows.read_text())
    assert found["reached"] == 5 and {r["level"] for r in found["rows"]} == set(range(6))
    assert {r["form"] for r in found["rows"] if r["level"] == 2} == {"dense", "every second", "turned", "empty", "special"}
    assert "null" in page.read_text() and page.read_text().count("<table>") == 6


def test_a_hidden_operator_is_missing_and_fails_the_last_level(capsys):
    control("hide", "aten::exp")
    try:
        status = backend_test.main([str(PLUGIN), "--only", "aten::exp", "--dtypes", "float32"])
    finally:
        control("hide", "")
    text = capsys.readouterr().out
    assert status == 1 and "reached level 4" in text
    assert "FAILED level 5 nothing is hidden: AssertionError: the plugin does not offer aten::exp" in text
    assert re.search("missing on the device, computed by the CPU: .*aten::exp", text)


def test_a_failing_kernel_is_a_failing_row():
    control("fail_kernel", 1)
    report = grade(str(PLUGIN), level=1, only="aten::sinh", dtypes=["float32"])
    assert report.reached == -1 and any("a fault that was asked for" in r.why for r in report.failed)
    assert grade(str(PLUGIN), level=1, only="aten::sinh", dtypes=["float32"]).reached == 1


def test_differences_in_words():
    a = strata.tensor([1.0, -0.0, float("nan")])
    assert shown(a) == shown(a.clone()) != shown(a.abs())
    assert difference(shown(a), shown(a.abs())) == "1 of 3 elements of strata.float32 have other bits, the first is number 1"
    assert difference([shown(a)], [shown(a.double())]) == "dtype strata.float32, expected strata.float64"
    assert difference("IndexError", [shown(a)]) == "gave IndexError, expected a result"


def test_what_can_not_be_graded(tmp_path, capsys):
    assert backend_test.main([str(tmp_path / "absent.so")]) == 2
    assert "expected a shared object" in capsys.readouterr().err


def test_levels_above_memory_need_a_clone(tmp_path):
    report = grade(str(PLUGIN), level=1, named_clone=str(tmp_path))
    assert report.reached == 0 and "--clone" in report.text()


def commands(document: Path) -> str:
    """What the document's steps type into a shell."""
    steps = document.read_text().split("\n## Steps\n")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"```sh\n(.*?)```", steps, re.S))


def test_the_documents_steps_make_a_device_of_level_1(tmp_path):
    root = devices.ROOT
    shell = "set -e\n" + re.sub(r"^ +", "", commands(root / "docs/add-a-device.md"), flags=re.M)
    assert "cmake --install" in shell and "strata.backend_test" in shell
    # The build of these tests in the place of the release build, a few operators in the place of all.
    shell = shell.replace("$STRATA/build/release", str(PLUGIN.parent.parent.parent))
    shell = shell.replace("--level 1", "--level 1 --sample 8 --dtypes float32 int64")
    env = {**os.environ, "STRATA": str(root), "PYTHONPATH": str(root / "python"), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split("\n")[-2] == "reached level 1"
    assert sum(len(f.read_text().splitlines()) for f in (tmp_path / "tiny_device").iterdir()) < 400


@pytest.mark.skipif("STRATA_TEST_ALL" not in os.environ, reason="compiles for half a minute")
@pytest.mark.parametrize("name", ["null", "opencl", "cuda"])
def test_a_plugin_builds_against_an_installed_prefix_alone(name, tmp_path):
    if not devices.plugin(name).exists():
        pytest.skip("this build lacks it, too")
    build, prefix = PLUGIN.parent.parent.parent, tmp_path / "prefix"
    shutil.copytree(devices.ROOT / "plugins" / name, tmp_path / name)
    for command in (
        ["cmake", "--install", build, "--component", "sdk", "--prefix", prefix],
        ["cmake", "-S", tmp_path / name, "-B", tmp_path / "build", f"-DSTRATA_SDK={prefix / 'include'}"],
        ["cmake", "--build", tmp_path / "build"],
    ):
        done = subprocess.run([str(c) for c in command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    program = f"import strata\nprint(strata.accelerator.load({str(tmp_path / 'build' / PLUGIN.name.replace('null', name))!r}))"
    env = {**os.environ, "PYTHONPATH": str(devices.ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == f"{name}\n", done.stderr


def test_coverage_of_a_device():
    found = strata.ops.coverage("null")
    rows = {r.op: r for r in found.rows()}
    assert rows["aten::neg"].runs == rows["aten::softmax.int"].runs == rows["aten::add_.Tensor"].runs == "kernels"
    assert rows["aten::transpose.int"].runs == "view" and rows["aten::conv2d"].runs == "composite" and rows["aten::item"].runs == "host"
    assert rows["aten::linalg_qr"] == ("aten::linalg_qr", "fallback", "LAPACK computes it, a library")
    assert "sizes of its results depend on values" in rows["aten::nonzero"].why
    assert "aten::linalg_qr: fallback; LAPACK computes it, a library" in repr(found) and "kernels printed in its dialect" in repr(found)
    control("hide", "aten::neg")
    try:
        assert {r.op for r in strata.ops.coverage(DEVICE).rows() if r.runs == "hidden"} == {"aten::neg"}
    finally:
        control("hide", "")
    with pytest.raises(RuntimeError, match="no plugin for the device"):
        strata.ops.coverage("cpu")


def test_a_command_grades_each_level_in_a_process_of_its_own(tmp_path):
    file = tmp_path / "rows.json"
    words = [devices.plugin("null"), "--level", "1", "--sample", "2", "--dtypes", "float32", "--json", str(file)]
    ran = subprocess.run([sys.executable, "-m", "strata.backend_test", *words], capture_output=True, text=True)
    assert ran.returncode == 0 and "reached level 1" in ran.stdout and "2 operators a level" in ran.stdout, ran.stdout + ran.stderr
    assert {row["level"] for row in json.loads(file.read_text())["rows"]} == {0, 1}
    ran = subprocess.run([sys.executable, "-m", "strata.backend_test", str(tmp_path / "absent.so")], capture_output=True, text=True)
    assert ran.returncode == 2 and "expected a shared object" in ran.stderr


def test_parts_of_a_level_are_its_rows_once_each(monkeypatch):
    def rows(part: tuple[int, int]) -> list[tuple]:
        report = grade(str(PLUGIN), level=2, first=2, dtypes=["float32"], only="aten::div", part=part)
        assert not report.failed
        return [(row.subject, row.dtype, row.form) for row in report.rows]

    assert [row for i in (1, 2, 3) for row in rows((i, 3))] == rows((1, 1))

    graded = []
    monkeypatch.setattr(subprocess, "run", lambda words, **_: graded.append(words[words.index("--first") + 1 :]) or subprocess.CompletedProcess(words, 3))
    monkeypatch.setattr(backend_test, "PARTS", {0: 2})
    assert backend_test.apart(0, ["absent"], whole_table=True) is None and len(graded) == 1, "the first part said why it graded nothing"


@pytest.mark.parametrize("part", ["0/3", "4/3", "1", "a/b"])
def test_a_part_is_one_of_so_many(part, capsys):
    with pytest.raises(SystemExit):
        backend_test.main([str(PLUGIN), "--part", part])
    assert "expected I/N" in capsys.readouterr().err
