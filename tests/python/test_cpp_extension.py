"""Operators in C++ that a program builds and loads: eager, differentiated, compiled, on a device; PyTorch's way of writing them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap

import pytest
import strata
from strata.utils import cpp_extension

if not any(shutil.which(c) for c in ("c++", "g++", "clang++", "clang++-19")):
    pytest.skip("needs a C++ compiler", allow_module_level=True)

OWN = """
#include <strata/function.h>
#include <strata/library.h>
using strata::Tensor;
Tensor scaled(const Tensor& x, double by) { return x * by; }
Tensor cube_cpu(const Tensor& x) {
  strata::Tensor y = strata::empty_like(x);
  for (int64_t k = 0; k < x.numel(); ++k) y.data<float>()[k] = x.data<float>()[k] * x.data<float>()[k] * x.data<float>()[k];
  return y;
}
Tensor cube_meta(const Tensor& x) { return strata::empty_like(x); }
Tensor cube(const Tensor& x);
struct Cube : strata::Function<Cube> {
  static Tensor forward(strata::FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    const strata::ExcludeGuard below{strata::KeySet(strata::Key::Autograd)};
    return cube(x);
  }
  static std::vector<Tensor> backward(strata::FunctionContext& ctx, const std::vector<Tensor>& grads) {
    const Tensor x = ctx.saved_tensor(0);
    return {grads[0] * 3 * x * x};
  }
};
Tensor cube(const Tensor& x) {
  strata::Stack stack = {x};
  strata::call_boxed(strata::OperatorTable::instance().get("own_test::cube"), stack);
  return stack[0].get<Tensor>();
}
Tensor cube_grad(const Tensor& x) { return Cube::apply(x); }
std::tuple<Tensor, Tensor> both(const Tensor& a, std::optional<double> by, std::vector<int64_t> dims) {
  return {a.sum(dims), a * by.value_or(1.0)};
}
void zero_it(const Tensor& x) { x.zero_(); }
STRATA_LIBRARY(own_test, m) {
  m.def("scaled(Tensor x, float by=2.0) -> Tensor", &scaled);
  m.def("cube(Tensor x) -> Tensor");
  m.def("no_gradient(Tensor x) -> Tensor");
  m.def("both", &both);
  m.def("zero_it(Tensor(a!) x) -> ()", &zero_it);
}
STRATA_LIBRARY_IMPL(own_test, CPU, m) {
  m.impl("cube", &cube_cpu);
  m.impl("no_gradient", &cube_cpu);
}
STRATA_LIBRARY_IMPL(own_test, Meta, m) { m.impl("cube", &cube_meta); }
STRATA_LIBRARY_IMPL(own_test, Autograd, m) { m.impl("cube", &cube_grad); }
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.cpp").write_text(OWN)
    return cpp_extension.load("own_test", [folder / "own.cpp"], build_directory=str(folder / "build"))


def test_an_operator_of_operators(own):
    x = strata.randn(3, 4, requires_grad=True)
    assert own.scaled(x).equal(x * 2) and strata.ops.own_test.scaled(x, by=0.5).equal(x * 0.5)
    (g,) = strata.autograd.grad(own.scaled(x, 3.0).sum(), x)
    assert g.equal(strata.full((3, 4), 3.0))
    first, second = own.both(x, None, [1])
    assert first.equal(x.sum(1)) and second.equal(x)
    assert str(strata.ops.own_test.scaled.default._schema).endswith("scaled(Tensor x, float by=2.0) -> Tensor")


def test_kernels_and_a_derivative_of_its_own(own):
    x = strata.randn(5, requires_grad=True)
    y = own.cube(x)
    assert y.equal(x * x * x) and y.grad_fn.name() == "CubeBackward"
    assert strata.autograd.grad(y.sum(), x)[0].equal(3 * x * x)
    assert own.cube(strata.empty(2, 3, device="meta")).shape == (2, 3)
    z = own.no_gradient(x)
    with pytest.raises(RuntimeError, match="own_test::no_gradient but no autograd formula"):
        z.sum().backward()
    counted = strata.ones(3)
    before = counted._version
    own.zero_it(counted)
    assert counted.equal(strata.zeros(3)) and counted._version > before


def test_recorded_and_compiled(own):
    x = strata.randn(8)
    graph = strata.graph(lambda t: own.cube(own.scaled(t, 3.0)).exp(), x)
    assert "own_test::cube(" in str(graph)
    assert graph.compile()(x).equal(own.cube(x * 3.0).exp())


def test_what_cannot_be_built(tmp_path):
    (tmp_path / "bad.cpp").write_text("#include <strata/library.h>\nint f( {\n")
    with pytest.raises(RuntimeError, match="Error building extension(.|\n)*bad.cpp:2"):
        cpp_extension.load("bad_test", [tmp_path / "bad.cpp"], build_directory=str(tmp_path))
    with pytest.raises(FileNotFoundError, match="there is no source"):
        cpp_extension.load("bad_test", [tmp_path / "absent.cpp"])
    with pytest.raises(ValueError, match="expected a name that is an identifier"):
        cpp_extension.load("bad-test", [tmp_path / "bad.cpp"])
    with pytest.raises(NotImplementedError, match="expected C\\+\\+ sources"):
        cpp_extension.load("bad_test", [tmp_path / "bad.cu"])


def test_what_a_library_raises(own, tmp_path):
    (tmp_path / "twice.cpp").write_text('#include <strata/library.h>\nSTRATA_LIBRARY(own_test, m) { m.def("scaled(Tensor x) -> Tensor"); }\n')
    with pytest.raises(RuntimeError, match="twice.cpp: the library of the namespace own_test: .*own_test::scaled exists already"):
        cpp_extension.load("twice_test", [tmp_path / "twice.cpp"], build_directory=str(tmp_path))


def test_as_pytorchs_extensions_are_written(tmp_path):
    source = """
    torch::Tensor sigmoid_add(torch::Tensor x, torch::Tensor y) {
      TORCH_CHECK(x.sizes() == y.sizes(), "x and y must have one shape");
      auto a = x.contiguous(), out = torch::zeros_like(a);
      return x.sigmoid() + y.sigmoid() + out;
    }
    std::vector<at::Tensor> parts(const at::Tensor& x, int64_t n) { return x.chunk(n); }
    """
    built = cpp_extension.load_inline("torch_test", source, ["sigmoid_add", "parts"], build_directory=str(tmp_path))
    x = strata.randn(4, 6)
    assert built.sigmoid_add(x, x).equal(x.sigmoid() + x.sigmoid())
    assert [tuple(p.shape) for p in built.parts(x, 2)] == [(2, 6), (2, 6)]
    with pytest.raises(RuntimeError, match="x and y must have one shape"):
        built.sigmoid_add(x, x[0])


def test_a_module_by_setuptools(tmp_path):
    pytest.importorskip("setuptools")
    (tmp_path / "made.cpp").write_text(
        "#include <torch/extension.h>\ntorch::Tensor twice(torch::Tensor x) { return x + x; }\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", &twice, "x + x"); }\n'
    )
    (tmp_path / "setup.py").write_text(
        textwrap.dedent("""
        from setuptools import setup
        from strata.utils.cpp_extension import BuildExtension, CppExtension
        setup(name="made_test", ext_modules=[CppExtension("made_test", ["made.cpp"])], cmdclass={"build_ext": BuildExtension})
        """)
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, "setup.py", "build_ext", "--inplace"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    if "Python.h" in done.stderr:
        pytest.skip("needs Python's headers")
    assert done.returncode == 0, done.stderr[-2000:]
    program = "import strata, made_test; print(made_test.twice(strata.ones(2)).tolist())"
    assert subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout.strip() == "[2.0, 2.0]"
