"""Operators of a device's own library, on the null device: a product of matrices whose sums go in order, which no printed kernel
does, so that bits say who computed it."""

from __future__ import annotations

import contextlib
import ctypes
import warnings

import devices
import pytest
import strata

DEVICE = devices.null()
PLUGIN = ctypes.CDLL(str(devices.plugin("null")))
PLUGIN.strata_null_products.restype = ctypes.c_int64


@contextlib.contextmanager
def asked(what: str, value: str):
    assert PLUGIN.strata_null_control(what.encode(), value.encode()) == 0
    try:
        yield
    finally:
        PLUGIN.strata_null_control(what.encode(), b"")


@contextlib.contextmanager
def counted(n: int):
    before = PLUGIN.strata_null_products()
    yield
    assert PLUGIN.strata_null_products() - before == n


def in_order(a, b):
    """The library's product: one rounding a step."""
    out = strata.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for k in range(a.shape[1]):
        out = out + a[:, k : k + 1] * b[k : k + 1]
    return out


def pair(*shape, dtype=strata.float32):
    strata.manual_seed(0)
    m, k, n = shape
    a, b = strata.randn(m, k, dtype=dtype), strata.randn(k, n, dtype=dtype)
    return a, b, a.to(DEVICE), b.to(DEVICE)


def printed(a, b):
    with strata.backends.library(False):
        return a @ b


@pytest.mark.parametrize("dtype", [strata.float32, strata.float64])
def test_a_product_goes_to_the_library(dtype):
    a, b, x, y = pair(7, 90, 5, dtype=dtype)
    with asked("library", "aten::mm"), counted(3):
        assert (x @ y).cpu().equal(in_order(a, b)) and not in_order(a, b).equal(printed(a, b))
        assert (y.t() @ x.t()).cpu().equal(in_order(b.t(), a.t()))
        made = strata.mm(x[::2, 10:], y[10:])
        assert made.cpu().equal(in_order(a[::2, 10:], b[10:])) and made.is_contiguous()


def test_what_it_declines_has_the_bits_of_printed_kernels():
    for dtype in (strata.bfloat16, strata.int64):
        a, b = (t.to(dtype) for t in pair(6, 40, 5)[:2])
        with asked("library", "aten::mm"), counted(0):
            assert (a.to(DEVICE) @ b.to(DEVICE)).cpu().equal(printed(a, b))
    a, b, x, y = pair(6, 40, 5)
    with counted(0):  # it declines all that nobody asked for
        assert (x @ y).cpu().equal(printed(a, b))


def test_operators_that_it_lacks_are_printed_ones():
    a, b, x, y = pair(6, 40, 5)
    with asked("library", "aten::mm aten::bmm"), counted(0):
        assert (x.unsqueeze(0) @ y.unsqueeze(0)).cpu().equal(printed(a.unsqueeze(0), b.unsqueeze(0)))
        assert strata.addmm(strata.zeros(5, device=DEVICE), x, y).cpu().equal(printed(a, b))


def test_switched_off_bits_are_promised():
    a, b, x, y = pair(7, 90, 5)
    with asked("library", "aten::mm"), counted(1):
        with strata.backends.library(False):
            assert (x @ y).cpu().equal(a @ b)
        assert (x @ y).cpu().equal(in_order(a, b))


def test_a_hidden_operator_runs_by_the_library_or_on_the_cpu():
    a, b, x, y = pair(7, 30, 5)
    strata.fallback.reset()
    with asked("hide", "aten::mm"):
        with asked("library", "aten::mm"), counted(1):
            assert (x @ y).cpu().equal(in_order(a, b))
        assert not strata.fallback.rows()
        with counted(0), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (x @ y).cpu()
        assert [r.op for r in strata.fallback.rows()] == ["aten::mm"]


def test_an_error_names_the_operator_and_leaves_the_device_usable():
    a, b, x, y = pair(7, 30, 5)
    with asked("library", "aten::mm"):
        with asked("fail_library", "1"), pytest.raises(RuntimeError, match="library's aten::mm: a product failed"):
            x @ y
        assert (x @ y).cpu().equal(in_order(a, b))
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            x @ x


def test_gradients_and_operands_of_no_elements():
    a, b, x, y = pair(7, 30, 5)
    with asked("library", "aten::mm"), counted(4):
        leaf = x.clone().requires_grad_()
        (leaf @ y).sum().backward()
        assert leaf.grad.cpu().equal(in_order(strata.ones(7, 5), b.t()))
        assert (x[:, :0] @ y[:0]).cpu().equal(strata.zeros(7, 5)) and (x[:0] @ y).shape == (0, 5)


def test_under_a_compiled_graph():
    a, b, x, y = pair(7, 90, 5)

    def f(x, y):
        return ((x * 2) @ y).relu() + 1

    with asked("library", "aten::mm"), counted(1):
        compiled = strata.graph(f, x, y).compile()
        assert compiled(x, y).cpu().equal(in_order(a * 2, b).relu() + 1)
        with strata.backends.library(False):
            assert compiled(x, y).cpu().equal(f(a, b))
    assert compiled(x, y).cpu().equal(printed(a * 2, b).relu() + 1)  # declined at a run: printed kernels
    with strata.backends.library(False):
        other = strata.graph(f, x, y).compile()
        assert other(x, y).cpu().equal(f(a, b))


def test_other_streams():
    a, b, x, y = pair(7, 30, 5)
    strata.accelerator.synchronize(DEVICE)
    stream = strata.Stream(DEVICE)
    with asked("library", "aten::mm"), counted(1):
        with stream:
            made = x @ y
        stream.synchronize()
        assert made.cpu().equal(in_order(a, b))
