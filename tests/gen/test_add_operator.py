"""The patches of docs/add-an-operator.md, applied to a copy of the table: one entry in one file makes everything else. One
adds a pointwise operator, the others a reduction, a view, and one that reads elements where an index says;
tools/check_rebuild.sh builds and calls all of them."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
NAME = "bent_identity"
GATHER = "take_squares"


def patch_text(number: int = 0) -> str:
    return re.findall(r"```diff\n(.*?)```", (ROOT / "docs/add-an-operator.md").read_text(), re.S)[number]


def patched(folder: Path, number: int) -> Path:
    """A folder with the patched table and what gen makes of it."""
    shutil.copytree(ROOT / "ops", folder / "ops")
    # git and not patch, which a fresh Debian lacks; the ceiling keeps it from taking a repository around for the target.
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    subprocess.run(["git", "apply", "-"], cwd=folder, input=patch_text(number), text=True, check=True, env=env)
    subprocess.run([sys.executable, "-m", "gen", str(folder / "out"), str(folder / "ops")], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return patched(tmp_path_factory.mktemp("table"), 0)


@pytest.fixture(scope="module")
def made_gather(tmp_path_factory):
    return patched(tmp_path_factory.mktemp("gather"), 3)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What gen makes of the table as it is."""
    folder = tmp_path_factory.mktemp("plain")
    subprocess.run([sys.executable, "-m", "gen", str(folder)], cwd=ROOT, check=True)
    return folder


def changed(made: Path, plain: Path) -> set[str]:
    new = {str(p.relative_to(made / "out")): p for p in (made / "out").rglob("*") if p.is_file()}
    old = {str(p.relative_to(plain)): p for p in plain.rglob("*") if p.is_file()}
    assert set(new) == set(old), "a new operator in a family adds no file"
    return {n for n in new if new[n].read_bytes() != old[n].read_bytes()}


@pytest.mark.parametrize("number, file", enumerate(["ops/activation.yaml", "ops/reduce.yaml", "ops/view.yaml", "ops/index.yaml"]))
def test_the_patch_touches_one_file(number, file):
    assert re.findall(r"^\+\+\+ b/(.*)$", patch_text(number), re.M) == [file]
    assert sum(line.startswith("- op:") for line in re.findall(r"^\+(- op:.*)$", patch_text(number), re.M)) == 1


def test_only_its_family_is_built_anew(made, plain):
    assert changed(made, plain) == {
        "autograd_activation.cpp", "kernels_activation.cpp", "ops_activation.cpp", "table_kernels.cpp",
        "python/py_activation.cpp", "strata/generated/handles/activation.h", "strata/generated/ops/activation.h",
        "strata/generated/tensor_methods.h", "strata/generated/tensor_methods.inc",
        "stubs/strata/_C.pyi", "stubs/strata/__init__.pyi", "docs/ops/activation.md", "docs/ops/index.md"}


@pytest.mark.parametrize("file, texts", {
    "strata/generated/ops/activation.h": [f"Tensor {NAME}(const Tensor& self);", f"Tensor {NAME}_(const Tensor& self);",
                                          f"Tensor {NAME}_out(const Tensor& self, const Tensor& out);"],
    "strata/generated/tensor_methods.inc": [f"Tensor {NAME}() const;", f"Tensor {NAME}_() const;"],
    "ops_activation.cpp": ["ops/activation.yaml:", f'"aten::{NAME}(Tensor self) -> Tensor"', f'"aten::{NAME}_(Tensor(a!) self) -> Tensor(a!)"',
                           f'"aten::{NAME}.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"'],
    "python/py_activation.cpp": [f'{{"{NAME}", f_{NAME}, m_{NAME},', f'{{"{NAME}_", f_{NAME}_, m_{NAME}_,'],
    "autograd_activation.cpp": ['"BentIdentityBackward0"', f"{NAME}_grad_self"],
    "kernels_activation.cpp": [f"k_{NAME}(Dispatch, const Tensor& self)", f"table_kernel(op::{NAME}, TableSlot::Backend"],
    "table_kernels.cpp": [f'{{"{NAME}", "activation"', f'{{"strata_{NAME}_grad_self"', "(sqrt(self * self + 1) - 1) / 2 + self"],
    "docs/ops/activation.md": [f"## aten::{NAME}\n", "BentIdentityBackward0", "elementwise."],
}.items(), ids=lambda x: x if isinstance(x, str) else "")
def test_everything_is_generated(made, file, texts):
    generated = (made / "out" / file).read_text()
    for text in texts:
        assert text in generated, f"{file} lacks {text}"


def test_the_stub_has_its_forms(made):
    tree = ast.parse((made / "out/stubs/strata/__init__.pyi").read_text())
    free = {n.name: ast.unparse(n.args) for n in tree.body if isinstance(n, ast.FunctionDef)}
    assert free[NAME] == "input: Tensor, *, out: Tensor | None=None"
    module = ast.parse((made / "out/stubs/strata/_C.pyi").read_text())
    base = next(n for n in module.body if isinstance(n, ast.ClassDef) and n.name == "TensorBase")
    methods = {n.name for n in base.body if isinstance(n, ast.FunctionDef)}
    assert {NAME, f"{NAME}_"} <= methods


def test_a_gather_is_one_entry(made_gather, plain):
    assert changed(made_gather, plain) == {
        "autograd_index.cpp", "kernels_index.cpp", "ops_index.cpp", "table_kernels.cpp", "python/py_index.cpp",
        "strata/generated/handles/index.h", "strata/generated/ops/index.h", "strata/generated/tensor_methods.h",
        "strata/generated/tensor_methods.inc", "stubs/strata/_C.pyi", "stubs/strata/__init__.pyi", "docs/ops/index.md",
        "docs/ops/formulas.md"}
    kernels = (made_gather / "out/kernels_index.cpp").read_text()
    assert f"k_{GATHER}(Dispatch, const Tensor& self, const Tensor& index)" in kernels
    assert "shape::take<int64_t>(geometry(self), geometry(index))" in kernels
    assert "at = self[wrapped(index)]\\nresult = at * at" in (made_gather / "out/table_kernels.cpp").read_text()


@pytest.mark.parametrize("number, family, name", [(1, "reduce", "mean_square"), (2, "view", "swap_last")])
def test_a_reduction_and_a_view_are_one_entry(tmp_path, plain, number, family, name):
    made = patched(tmp_path, number)
    files = changed(made, plain)
    assert {f"kernels_{family}.cpp", f"ops_{family}.cpp", f"autograd_{family}.cpp", f"python/py_{family}.cpp"} <= files
    assert not [f for f in files if re.match(r"(kernels|ops|autograd)_", f) and family not in f]
    assert f"k_{name}(" in (made / f"out/kernels_{family}.cpp").read_text()


@pytest.mark.parametrize("old, new, said", [
    ("shape: take(self, index)", "shape: take(self, places)", "places"),
    ("wrapped(index)", "wrapped(places)", "name of an input"),
    ('outputs: "result[p..]"', 'strides: preserve', "outputs"),
])
def test_a_broken_space_entry_is_named(tmp_path, made_gather, old, new, said):
    shutil.copytree(made_gather / "ops", tmp_path / "ops")
    path = tmp_path / "ops/index.yaml"
    head, tail = path.read_text().split(f"- op: {GATHER}", 1)
    path.write_text(head + f"- op: {GATHER}" + tail.replace(old, new, 1))
    run = subprocess.run([sys.executable, "-m", "gen", str(tmp_path / "out"), str(tmp_path / "ops")], cwd=ROOT,
                         capture_output=True, text=True)
    assert run.returncode != 0 and GATHER in run.stderr and said in run.stderr and "index.yaml" in run.stderr, run.stderr


def test_its_tests_exist(made):
    """The lists of the operator tests, collected with the patched table, name it."""
    run = subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/ops"],
                         cwd=ROOT, capture_output=True, text=True,
                         env={**os.environ, "STRATA_TABLE": str(made / "ops"), "STRATA_TEST_ALL": "1"})
    tests = {line.split("[")[0].split("::")[-1] for line in run.stdout.splitlines() if f"aten::{NAME}" in line}
    assert tests >= {"test_recorded", "test_layouts_give_the_same_bits", "test_instruction_sets_and_threads_give_the_same_bits",
                     "test_inplace_equals_the_function", "test_out_equals_the_function", "test_gradcheck",
                     "test_gradgradcheck", "test_meta", "test_errors"}, run.stdout[-2000:]


def test_a_broken_entry_is_named(made, tmp_path):
    """A mistake in the table stops the build with file, line and operator."""
    shutil.copytree(made / "ops", tmp_path / "ops")
    path = tmp_path / "ops/activation.yaml"
    path.write_text(path.read_text().replace("(sqrt(self * self + 1) - 1) / 2 + self", "sqrt(selff)", 1))
    run = subprocess.run([sys.executable, "-m", "gen", str(tmp_path / "out"), str(tmp_path / "ops")], cwd=ROOT,
                         capture_output=True, text=True)
    assert run.returncode != 0
    assert NAME in run.stderr and "selff" in run.stderr and "activation.yaml" in run.stderr, run.stderr
