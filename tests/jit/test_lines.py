"""Lines of the program in compiled kernels: in their text, in what is compiled of it, in a debugger, for a profiler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import strata
from graph_models import GPT
from test_source import FLAGS, MARCH

PROGRAM = """import strata

def layer(x, w):
    h = x * w
    return h.tanh() + 1

def model(x, w):
    y = layer(x, w)
    y = y * y
    return y.sum(-1)
"""
LINES = {4: "h = x * w", 5: "return h.tanh() + 1", 9: "y = y * y", 10: "return y.sum(-1)"}


@pytest.fixture
def program(tmp_path):
    file = tmp_path / 'a "model".py'
    file.write_text(PROGRAM)
    spec = spec_from_file_location("lines_program", file)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return file, module.model


def inputs(grad=False):
    return strata.randn(64, 256, requires_grad=grad), strata.randn(256, requires_grad=grad)


def directives(text):
    return [(int(n), eval(name)) for n, name in re.findall(r'^#line (\d+) (".*")$', text, re.M)]


def without_directives(text):
    return "".join(line for line in text.splitlines(True) if not line.startswith("#line "))


def test_text(program):
    file, model = program
    cf = strata.graph(model, *inputs()).compile()
    text = cf.source(lines=True)
    assert "#line" not in cf.source() and without_directives(text) == cf.source()
    of_model = {n for n, name in directives(text) if name == str(file)}
    assert of_model == set(LINES)
    # Each statement is where its operator was called; what is no operator's is at its own place in the text.
    lines = text.removeprefix("// forward\n").splitlines()
    for n, line in enumerate(lines):
        if line.startswith("#line ") and '"kernel.c"' in line:
            assert directives(line)[0][0] == n + 2
    tanh = next(n for n, line in enumerate(lines) if "0.55f" in line)
    assert directives(lines[tanh - 1]) == [(5, str(file))]


def test_text_of_a_model():
    model, x = GPT(), strata.randint(0, 100, (2, 32))
    cf = strata.graph(lambda x: model(x).logsumexp(-1).sum(), x).compile()
    text = cf.source(lines=True)
    # Kernels share a function only where its lines are equal, too.
    assert set(cf.source().splitlines()) - set(text.splitlines()) <= {s for s in cf.source().splitlines() if s.startswith("#define ")}
    assert {Path(name).name for _, name in directives(text)} > {"kernel.c", "graph_models.py", Path(__file__).name}


def test_rare_parts_and_several_results():
    x = strata.randn(300) * 1e6

    def f(x):
        return x.sin() + 1, x.argmax(), (x.exp() > 2).float().cumsum(0), x.max()

    cf = strata.graph(f, x).compile()
    assert without_directives(cf.source(lines=True)) == cf.source()


def test_long_operators_have_lines_too():
    """They run while others may use the interpreter."""
    x = strata.randn(1 << 20)
    nodes = strata.graph(lambda x: (x * x + x).sum(), x).nodes
    assert all(__file__ in n.span for n in nodes if n.op != "input")


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_compiled_by_hand(program, compiler, tmp_path):
    file, model = program
    if not shutil.which(compiler) or not shutil.which("objdump"):
        pytest.skip(f"needs {compiler} and objdump")
    source = strata.graph(model, *inputs()).compile().source(lines=True)
    (tmp_path / "kernel.c").write_text(source)
    isa = next(i for i in MARCH if f"// {i}_" in source)
    flags = [f for f in FLAGS if f != "-shared"]
    command = [compiler, *flags, *MARCH[isa], "-g", "-c", str(tmp_path / "kernel.c"), "-o", str(tmp_path / "kernel.o")]
    subprocess.run(command, check=True, capture_output=True)
    table = subprocess.run(["objdump", "-WL", str(tmp_path / "kernel.o")], check=True, capture_output=True, text=True).stdout
    of_model = [line.rsplit("model\".py", 1)[1].split() for line in table.splitlines() if 'model".py' in line and "0x" in line]
    assert {int(words[0]) for words in of_model} - {0} == set(LINES)  # 0: between statements


def test_bits_and_cache(program):
    _, model = program
    x, w = inputs(grad=True)
    g = strata.graph(model, x, w)
    plain, lined = g.compile(), g.compile(lines=True)
    assert strata.equal(lined(x, w), plain(x, w)) and strata.equal(lined(x, w), model(x, w))
    grads = [strata.autograd.grad(f(x, w).sum(), [x, w]) for f in (plain, lined)]
    assert all(strata.equal(a, b) for a, b in zip(*grads, strict=True))
    # They are kept apart: what was compiled with lines serves nobody else.
    again = strata.graph(model, x, w).compile()
    assert "from memory" in again.explain() and "#line" not in again.source()


def run(script, folder, command=(), **environment):
    (folder / "main.py").write_text(script)
    known = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(strata.__file__).parents[1]), str(folder)]), **environment}
    return subprocess.run([*command, sys.executable, str(folder / "main.py")], env=known, capture_output=True, text=True, timeout=120)


SCRIPT = """import strata
from lines_model import model
x, w = strata.randn(64, 256), strata.randn(256)
cf = strata.graph(model, x, w).compile(lines={lines})
for _ in range(3):
    cf(x, w)
"""


@pytest.mark.parametrize("compiler", ["clang", "system"])
def test_debugger(tmp_path, compiler):
    """It stops at a line of the model, inside of the kernel that does it among others."""
    gdb = shutil.which("gdb")
    if not gdb:
        pytest.skip("needs gdb")
    (tmp_path / "lines_model.py").write_text(PROGRAM)
    commands = ["set breakpoint pending on", "set debuginfod enabled off", "break lines_model.py:5", "run", "info symbol $pc", "frame"]
    commands += ["backtrace 2", "info line lines_model.py:10"]
    command = [gdb, "--batch", "-nx", *[part for c in commands for part in ("-ex", c)], "--args"]
    settings = {"OMP_NUM_THREADS": "1", "STRATA_COMPILER": compiler, "STRATA_CACHE_BYTES": "0"}
    done = run(SCRIPT.format(lines=True), tmp_path, command, **settings)
    told = done.stdout + done.stderr
    if "ptrace" in told or "Cannot create process" in told or "there is no compiler" in told:
        pytest.skip("debuggers may not trace here" if "ptrace" in told else "needs this compiler")
    assert re.search(r"fused_\w+", told) and "5\t    return h.tanh() + 1" in told, told
    assert re.search(r'Line 10 of "[^"]*lines_model.py" starts at address \w+ <\w+fused', told), told
    assert re.search(r"strata::|\n#1 .* at \S+/src/run/", told), told  # who called it: frames are known, too


@pytest.mark.parametrize("lines", [True, False])
def test_profiler(tmp_path, lines):
    (tmp_path / "lines_model.py").write_text(PROGRAM)
    script = SCRIPT.format(lines=lines) + "import os; print(os.getpid())"
    done = run(script, tmp_path, STRATA_PERF_MAP="1")
    file = Path(f"/tmp/perf-{done.stdout.strip()}.map")
    try:
        entries = [line.split(" ", 2) for line in file.read_text().splitlines()]
    finally:
        file.unlink(missing_ok=True)
    kernel = [e for e in entries if "aten::tanh" in e[2]]
    assert kernel and all(int(at, 16) and 0 < int(size, 16) < 1 << 20 for at, size, _ in kernel)
    assert any(re.match(r"\w+_fused_f32_p0 of aten::mul.Tensor, aten::tanh, aten::add.Scalar", e[2]) for e in kernel)


def test_profiler_is_told_only_where_it_asks(tmp_path):
    (tmp_path / "lines_model.py").write_text(PROGRAM)
    done = run(SCRIPT.format(lines=True) + "import os; print(os.getpid())", tmp_path, STRATA_PERF_MAP="")
    assert done.returncode == 0 and not Path(f"/tmp/perf-{done.stdout.strip()}.map").exists()
    done = run(SCRIPT.format(lines=True), tmp_path, STRATA_PERF_MAP="yes")
    assert "STRATA_PERF_MAP: expected 0 or 1, got yes" in done.stderr
