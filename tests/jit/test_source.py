"""cf.source(): compiled by hand, with the system's compiler, its driver gives eager's bits."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import pytest
import strata

FLAGS = "-std=gnu11 -O2 -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv -fno-strict-aliasing -w -fPIC -shared".split()
MARCH = {"v4": ["-march=x86-64-v4"], "v3": ["-march=x86-64-v3"], "base": []}


@pytest.fixture(params=["gcc", "clang-19"])
def compiler(request):
    if not shutil.which(request.param):
        pytest.skip(f"needs {request.param}")
    return request.param


def by_hand(source, compiler, folder):
    (folder / "kernels.c").write_text(source)
    isa = next(i for i in MARCH if f"// {i}_" in source)
    openmp = [] if compiler == "gcc" else ["-fopenmp=libomp"]
    command = [compiler, *FLAGS, *MARCH[isa], *(openmp or ["-fopenmp"]), str(folder / "kernels.c"), "-o", str(folder / "kernels.so")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and "omp" in done.stderr:
        command = [c for c in command if "openmp" not in c]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "kernels.so"))


def run(library, name, tensors):
    memory = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
    return getattr(library, name)(memory)


def forward(cf):
    return cf.source().split("\n// backward")[0]


def check(f, args, out, compiler, folder, ins=None):
    cf = strata.graph(f, *args).compile()
    source = forward(cf)
    assert "#pragma omp parallel for" in source
    library = by_hand(source, compiler, folder)
    assert run(library, "run_0", [out, *(ins or args)]) == 0
    assert strata.equal(out, f(*args)) and strata.equal(out, cf(*args))


def test_elements(compiler, tmp_path):
    x = strata.randn(1000)
    check(lambda x: x.sin() ** 2 + x.cos() ** 2 * 0.5, [x], strata.empty(1000), compiler, tmp_path)


def test_strides_and_broadcasts(compiler, tmp_path):
    x, y = strata.randn(7, 33).t(), strata.randn(7)
    out = strata.empty(7, 33).t()
    check(lambda x, y: (x * y).exp() + 1, [x, y], out, compiler, tmp_path)


def test_half(compiler, tmp_path):
    x = strata.randn(5, 9, dtype=strata.bfloat16)
    check(lambda x: (x * 2 + 1).tanh(), [x], strata.empty(5, 9, dtype=strata.bfloat16), compiler, tmp_path)


def test_integers(compiler, tmp_path):
    i = strata.arange(50)
    check(lambda i: (i * 3 + 1) * i, [i], strata.empty(50, dtype=strata.int64), compiler, tmp_path)


@pytest.mark.parametrize("length", [1, 17, 300, 5000])
def test_rows(compiler, tmp_path, length):
    x, w = strata.randn(13, length), strata.rand(length)

    def norm(x, w):
        m = x.mean(-1, keepdim=True)
        v = ((x - m) ** 2).mean(-1, keepdim=True)
        return ((x - m) * (v + 1e-5).rsqrt() * w).relu()

    if length == 1:
        x = x.exp()
    cf = strata.graph(norm, x, w).compile()
    if "kernel over" not in cf.explain() or "by itself" in cf.explain():
        pytest.skip("is several kernels")
    check(norm, [x, w], strata.empty(13, length), compiler, tmp_path)


def test_rows_too_long_for_a_driver():
    cf = strata.graph(lambda x: x.exp().sum(-1) * 2, strata.randn(2, 70000)).compile()
    assert "// over rows of 70000 elements: in parts of 65536" in cf.source()


def test_several_kernels_are_one_file(compiler, tmp_path):
    x = strata.randn(20, 30, requires_grad=True)
    cf = strata.graph(lambda x: ((x.sin() + 1).sort(-1)[0].cos() * 2).softmax(-1), x).compile()
    for text in cf.source().split("\n// backward"):
        by_hand(text, compiler, tmp_path)
        assert text.count("typedef struct Place") == 1 and "i32 run_0(" in text


def test_source_of_a_kept_plan_has_its_forms():
    """A second graph's plan comes from the process or the disk; the text is that of the kernel that runs."""
    x, y, z = strata.randn(64, 36)[:, :33], strata.randn(64, 1), strata.randn(64, 40)[:, :33]
    first, second = (strata.graph(lambda x, y, z: (x * y + z).abs(), x, y, z).compile().source() for _ in range(2))
    assert first == second
    assert "flags & 64" in first


def test_layouts_without_forms_share_texts():
    """Which inputs are one value for a row is told only to kernels that make use of it."""
    x, row = strata.randn(40, 33).bfloat16(), strata.randn(40, 1).bfloat16()
    texts = {strata.graph(lambda a, b: (a + b).abs(), *at).compile().source().split("// ---- Whole")[0] for at in ((x, x.clone()), (x, row), (x[:20], row[:20]))}
    assert len(texts) == 1
