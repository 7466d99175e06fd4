"""The printed text of kernels stands alone: compiled as C99 in an empty folder, without a header of ours, it gives eager's
bits."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
import strata
from strata import _C

compiler = shutil.which("gcc")
pytestmark = pytest.mark.skipif(compiler is None, reason="needs gcc")


def load(name, dtype, folder):
    text, symbol, parameters = _C._kernel_source((name,), dtype, "c99")
    (folder / "kernel.c").write_text(text)
    subprocess.run([compiler, "-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-o", "kernel.so", "kernel.c", "-lm"],
                   cwd=folder, check=True)
    return getattr(ctypes.CDLL(str(folder / "kernel.so")), symbol), parameters


def run(name, dtype, folder, out, inputs, sizes, scalars=()):
    """Calls a kernel on contiguous arrays. sizes: of its ranges, in order."""
    function, parameters = load(name, dtype, folder)
    operands = [*(out if isinstance(out, list) else [out]), *inputs]
    loops = iter(sizes)
    status = ctypes.c_int32(0)
    args = []
    number = {"float32": ctypes.c_float, "float64": ctypes.c_double}
    for kind, index, part, t, _ in parameters:
        if kind == "memory":
            args.append(operands[index].ctypes.data_as(ctypes.c_void_p))
        elif kind == "extent":
            args.append(ctypes.c_int64(sizes[index]))
        elif kind == "stride":
            a = operands[index]
            args.append(ctypes.c_int64(a.strides[part] // a.itemsize if a.ndim else 0))
        elif kind == "scalar":
            args.append(number.get(t, ctypes.c_int64)(scalars[index]))
        elif kind == "end":
            args.append(ctypes.c_int64(next(loops)))
        elif kind == "status":
            args.append(ctypes.byref(status))
        else:
            args.append(ctypes.c_int64(0))
    function(*args)
    return status.value


def test_pointwise(tmp_path):
    a, b = (strata.randn(1000) for _ in "ab")
    out = np.empty(1000, np.float32)
    assert run("aten::add.Tensor", strata.float32, tmp_path, out, [a.numpy(), b.numpy()], [1000], [0.3]) == 0
    assert np.array_equal(out, strata.add(a, b, alpha=0.3).numpy())


@pytest.mark.parametrize("n", [1, 1000, 65536, 65537, 200000])
def test_sum_is_tree_t(tmp_path, n):
    a = strata.randn(2, n)
    out = np.empty(2, np.float32)
    assert run("aten::sum.dim_IntList", strata.float32, tmp_path, out, [a.numpy()], [2, n]) == 0
    assert np.array_equal(out, a.sum(1).numpy())


def test_an_index_out_of_range_sets_the_status(tmp_path):
    table = np.arange(12, dtype=np.uint32).reshape(3, 4)
    index, out = np.array([[0, 3], [1, 1], [2, -1]]), np.empty((3, 2), np.uint32)
    # Ranges: outer, i, n.
    assert run("aten::gather", strata.uint32, tmp_path, out, [table, index], [3, 2, 4]) == 2
    assert out.tolist() == [[0, 3], [5, 5], [10, 0]]


@pytest.mark.parametrize("count, rows", [(5, 3), (1024, 1), (1025, 1), (5000, 3), (200_000, 7)])
def test_a_scatter_in_chains(tmp_path, count, rows):
    """Two kernels: contributions in chains of 1,024, which begin as the result does, and the sums of each place's chains."""
    values, places = strata.randn(count), strata.randint(0, rows, (count,))
    start = strata.randn(rows)
    out, total, turns = start.numpy().copy(), np.empty(rows, np.float32), np.zeros(rows, np.uint32)
    (tmp_path / "fold").mkdir()
    # Ranges: outer, i, n.
    arrays = [values.numpy()[None], places.numpy()]
    assert run("aten::index_add", strata.float32, tmp_path, [out[None], total, turns], arrays, [1, count, rows], [0.3]) == 0
    assert run("fold_chain_sums", strata.float32, tmp_path / "fold", out, [out, total, turns], [rows]) == 0
    threads = strata.get_num_threads()
    try:
        for n in (1, 2):
            strata.set_num_threads(n)
            assert np.array_equal(out, start.index_add(0, places, values, alpha=0.3).numpy())
    finally:
        strata.set_num_threads(threads)


@pytest.mark.parametrize("size, kernel, stride, pad, dilation", [
    ((1, 1, 1), (1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1)), ((1, 9, 70), (1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1)),
    ((1, 30, 131), (1, 3, 3), (1, 2, 2), (0, 1, 1), (1, 1, 1)), ((5, 6, 40), (2, 3, 2), (2, 1, 3), (1, 0, 1), (1, 2, 3))])
def test_windows_give_the_bits_of_strips(tmp_path, size, kernel, stride, pad, dilation):
    """Eager reduces a strip of windows at a time; the portable text goes window after window."""
    strata.manual_seed(0)
    x = strata.randn(3, 2, *size)
    x[x > 1.5] = float("nan")
    values, places = strata.ops.aten.max_pool3d_with_indices(x, kernel, stride, pad, dilation)
    ranges = [6, *values.shape[2:], *size, *kernel]
    out = [np.empty((6, *values.shape[2:]), t) for t in (np.float32, np.int64)]
    numbers = [*stride, *pad, *dilation]
    source = np.ascontiguousarray(x.numpy().reshape(6, *size))
    assert run("aten::max_pool3d_with_indices", strata.float32, tmp_path, out, [source], ranges, numbers) == 0
    assert np.array_equal(out[0].ravel(), values.numpy().ravel(), equal_nan=True)
    assert np.array_equal(out[1].ravel(), places.numpy().ravel())
    if dilation == (1, 1, 1):
        mean = strata.ops.aten.avg_pool3d(x, kernel, stride, pad, False, True, None)
        out = np.empty((6, *mean.shape[2:]), np.float32)
        numbers = [*stride, *pad, 0, 1]
        (tmp_path / "mean").mkdir()
        assert run("aten::avg_pool3d", strata.float32, tmp_path / "mean", out, [source], ranges, numbers) == 0
        assert np.array_equal(out.ravel(), mean.numpy().ravel(), equal_nan=True)


def test_factories(tmp_path):
    for name, dtype, sizes, numbers, made in [
            ("aten::full", strata.uint32, [5], [7], strata.full((5,), 7, dtype=strata.int32)),
            ("aten::eye.m", strata.uint16, [3, 4], [1], strata.eye(3, 4, dtype=strata.int16)),
            ("aten::arange.start_step", strata.float32, [30], [0.5, 0.1], strata.arange(0.5, 3.5, 0.1)),
            ("aten::arange.start_step", strata.int32, [4], [-3, 7], strata.arange(-3, 20, 7, dtype=strata.int32)),
            ("aten::linspace", strata.float32, [31], [-3.0, 0.0, 4.5, 0.0], strata.linspace(-3, 4.5, 31))]:
        want = made.numpy()
        out = np.empty_like(want)
        folder = tmp_path / f"{name}.{dtype}".replace(":", "")
        folder.mkdir()
        assert run(name, dtype, folder, out, [], sizes, numbers) == 0
        assert np.array_equal(out, want)


@pytest.mark.parametrize("name, dtype, numbers, fill", [
    ("draw_uniform", strata.float32, [-1.0, 3.0], lambda t, g: t.uniform_(-1, 3, generator=g)),
    ("draw_uniform", strata.float64, [0.0, 1.0], lambda t, g: t.uniform_(generator=g)),
    ("draw_uniform", strata.float16, [0.0, 1.0], lambda t, g: t.uniform_(generator=g)),
    ("draw_uniform", strata.bfloat16, [0.0, 1.0], lambda t, g: t.uniform_(generator=g)),
    ("draw_normal", strata.float32, [2.0, 3.0], lambda t, g: t.normal_(2, 3, generator=g)),
    ("draw_normal", strata.float64, [0.0, 1.0], lambda t, g: t.normal_(generator=g)),
    ("draw_exponential", strata.float32, [0.5], lambda t, g: t.exponential_(0.5, generator=g)),
    ("draw_geometric", strata.float64, [0.01], lambda t, g: t.geometric_(0.01, generator=g)),
    ("draw_bernoulli", strata.bool, [0.3], lambda t, g: t.bernoulli_(0.3, generator=g)),
    ("draw_integers", strata.int64, [-5, 11], lambda t, g: t.random_(-5, 6, generator=g)),
    ("draw_integers", strata.int64, [-5, 2**40], lambda t, g: t.random_(-5, 2**40 - 5, generator=g)),
    ("draw_integers", strata.int64, [-2**63, 0], lambda t, g: t.random_(-2**63, None, generator=g))])
def test_random_words_are_those_of_seed_and_offset(tmp_path, name, dtype, numbers, fill):
    """Philox is in the text: nothing is read, and element i has its number from the scalars seed and offset alone."""
    seed, n = 67280421310721, 1003
    generator = strata.Generator().manual_seed(seed)
    strata.rand(7, generator=generator)  # two counters
    want = fill(strata.empty(n, dtype=dtype), generator)
    want = (want.view(strata.int16) if dtype in (strata.float16, strata.bfloat16) else want).numpy()
    out = np.empty_like(want)
    assert run(name, dtype, tmp_path, out, [], [n], [*numbers, seed, 2]) == 0
    assert np.array_equal(out, want)


def test_says_what_it_has_not():
    with pytest.raises(ValueError, match="no printed kernel"):
        strata.kernel_source("aten::linalg_qr")
    with pytest.raises(ValueError, match="it has them for float16"):
        strata.kernel_source("aten::sigmoid", strata.int64)
    with pytest.raises(ValueError, match="expected c99"):
        strata.kernel_source("aten::add.Tensor", dialect="fortran")
    with pytest.raises(TypeError, match="expected an operator, its name or its function, got list"):
        strata.kernel_source(["aten::add.Tensor"])
    assert "for (i64 i" in strata.kernel_source(strata.ops.aten.sigmoid.default)


@pytest.fixture
def no_library():
    with strata.backends.library(False):
        yield


def raw(t):
    """A tensor's elements for NumPy, which has no bfloat16."""
    return (t.view(strata.int16) if t.dtype == strata.bfloat16 else t).numpy()


@pytest.mark.parametrize("k", [0, 1, 3, 1024, 1025, 5000])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64", "uint8", "complex64"])
def test_products_go_in_chains(tmp_path, no_library, dtype, k):
    strata.manual_seed(k)
    t = getattr(strata, dtype)
    make = (lambda *n: strata.randint(0, 100, n, dtype=t)) if "int" in dtype else lambda *n: strata.randn(*n, dtype=t)
    a, b = make(3, k), make(k, 5)
    out = np.empty_like(raw(a @ b))
    # Ranges: i, j, k.
    assert run("aten::mm", t, tmp_path, out, [raw(a), raw(b)], [3, 5, k]) == 0
    want = a @ b
    bits = out.view(f"u{4 if dtype == 'complex64' else out.itemsize}")
    assert np.array_equal(bits, raw(want).view(bits.dtype))
    (tmp_path / "by").mkdir()
    v = b[:, 0].contiguous()
    out = np.empty_like(raw(a @ v))
    assert run("aten::mv", t, tmp_path / "by", out, [raw(a), raw(v)], [3, k]) == 0
    assert np.array_equal(out, raw(a @ v))


@pytest.mark.parametrize("beta, alpha", [(1, 1), (0, 1), (0.3, -1.7), (1, -1)])
def test_what_is_added_to_a_product(tmp_path, no_library, beta, alpha):
    """Also where products fall below the least number, whose zeros keep their signs."""
    a, b = strata.randn(4, 1030), strata.randn(1030, 3)
    a[1], a[2] = -1e-30, 0
    b[:, 1] = 1e-30
    for bias in (strata.randn(3), strata.tensor([-0.0, -0.0, 1.0]), strata.zeros(3)):
        for self in (bias, bias.expand(4, 3)):
            want = strata.addmm(self, a, b, beta=beta, alpha=alpha).numpy()
            out = np.empty((4, 3), np.float32)
            at = np.broadcast_to(bias.numpy(), (4, 3))
            assert run("aten::addmm", strata.float32, tmp_path, out, [at, a.numpy(), b.numpy()], [4, 3, 1030], [beta, alpha]) == 0
            assert np.array_equal(out.view(np.uint32), want.view(np.uint32))


def test_elements_that_only_move_have_the_text_of_their_width():
    assert strata.kernel_source("aten::gather", strata.float32, dialect="c99") == strata.kernel_source("aten::gather", strata.uint32)
    assert "uint16_t" in strata.kernel_source("aten::flip", strata.bfloat16)


@pytest.mark.parametrize("name", ["aten::mse_loss", "aten::gelu", "aten::layer_norm", "aten::cat", "aten::softmax.int", "aten::_fused_adamw_"])
def test_a_text_over_operators_has_a_function_for_each_kernel(tmp_path, name):
    text = strata.kernel_source(name)
    (tmp_path / "kernel.c").write_text(text)
    subprocess.run([compiler, "-std=c99", "-pedantic-errors", "-ffp-contract=off", "-c", "kernel.c"], cwd=tmp_path, check=True)
    reached = strata.ops.info(name).calls.split()
    assert reached and text.count("(") > 0


def test_what_has_no_kernel_says_so():
    for name in ("aten::sort", "aten::no_such_operator"):
        with pytest.raises(ValueError, match="no printed kernel"):
            strata.kernel_source(name)
