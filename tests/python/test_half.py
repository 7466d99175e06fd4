"""Conversions from and to half types: every bit pattern, beside NumPy and beside a definition in integers."""

import os
import subprocess
import sys

import numpy as np
import pytest
import strata as torch

HALVES = np.arange(65536, dtype=np.uint16)
EXPECTED = {torch.float16: HALVES.view(np.float16).astype(np.float32),
            torch.bfloat16: (HALVES.astype(np.uint32) << 16).view(np.float32)}


def of_bits(bits, dtype):
    return torch.from_numpy(bits.astype(np.int16)).view(dtype)


def bits_of(t):
    return t.contiguous().view(torch.int16).numpy().view(np.uint16)


def floats():
    """Floats of all kinds, and those around every value of a half type and every tie between two."""
    near = np.concatenate([EXPECTED[torch.float16], EXPECTED[torch.bfloat16]]).view(np.uint32).astype(np.int64)[:, None]
    some = np.random.default_rng(0).integers(0, 2**32, 1 << 16)
    steps = np.array([0, 1, -1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001])
    return np.concatenate([some, (near + steps).ravel() & 0xffffffff]).astype(np.uint32).view(np.float32)


def rounded(x, dtype):
    if dtype is torch.float16:
        with np.errstate(over="ignore", invalid="ignore"):
            return x.astype(np.float16).view(np.uint16)
    b = x.view(np.uint32).astype(np.uint64)
    return ((b + 0x7fff + (b >> 16 & 1)) >> 16).astype(np.uint16)


def same(bits, expected, nan, dtype):
    got_nan = np.isnan(EXPECTED[dtype][bits])
    return bool((got_nan == nan).all() and (bits == expected)[~nan].all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_widening_is_exact(dtype):
    wide = of_bits(HALVES, dtype).to(torch.float32).numpy()
    expected = EXPECTED[dtype]
    nan = np.isnan(expected)
    assert (np.isnan(wide) == nan).all() and (wide.view(np.uint32) == expected.view(np.uint32))[~nan].all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rounding_to_nearest_even(dtype):
    x = floats()
    bits, nan = bits_of(torch.from_numpy(x).to(dtype)), np.isnan(x)
    assert same(bits, rounded(x, dtype), nan, dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 255, 256, 257, 1000])
def test_layouts_and_lengths(dtype, n):
    x = floats()[:6 * n].reshape(2, 3, n)
    t, expected, nan = torch.from_numpy(x), rounded(x, dtype), np.isnan(x)
    out = torch.zeros(2, 3, 2 * n, dtype=dtype)[:, :, ::2]
    out.copy_(t)
    for got, turn in ((t.to(dtype), (0, 1, 2)), (t.permute(2, 0, 1).to(dtype), (2, 0, 1)), (out, (0, 1, 2))):
        assert same(bits_of(got), expected.transpose(turn), nan.transpose(turn), dtype)
    assert same(bits_of(t[:, :, ::2].to(dtype)), expected[:, :, ::2], nan[:, :, ::2], dtype)
    one = t[0, 0, :1].expand(n)
    assert same(bits_of(one.to(dtype)), np.broadcast_to(expected[0, 0, :1], n), np.broadcast_to(nan[0, 0, :1], n), dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("other", [torch.bool, torch.uint8, torch.int16, torch.int64, torch.float64, torch.complex64])
def test_other_dtypes_go_through_float32(dtype, other):
    """Both ways."""
    half = of_bits(HALVES, dtype)
    there, by_float = half.to(other), half.to(torch.float32).to(other)
    assert there.numpy().tobytes() == by_float.numpy().tobytes() or torch.equal(torch.nan_to_num(there), torch.nan_to_num(by_float))
    values = torch.from_numpy(np.linspace(-300, 300, 1001)).to(other)
    assert torch.equal(values.to(dtype), values.to(torch.float32).to(dtype))


def test_float16_rounds_the_operator_of_float32_once():
    torch.manual_seed(0)
    x, y, row = (torch.randn(*s).to(torch.float16) for s in ((37, 129), (37, 129), (129,)))
    out = torch.empty(37, 129, dtype=torch.float16)
    for f in (torch.add, torch.mul, torch.div, torch.atan2, torch.maximum, torch.eq):
        for a, b in ((x, y), (x, row), (x[:, ::2], y[:, ::2]), (x.t(), y.t()), (x, y[0, 0])):
            got, wide = f(a, b), f(a.float(), b.float())
            assert torch.equal(got, wide.to(got.dtype)), f
    for f in (torch.exp, torch.nn.functional.gelu, torch.sigmoid, torch.isnan):
        assert torch.equal(f(x), f(x.float()).to(f(x).dtype))
    assert torch.equal(torch.add(x, y, out=out), (x.float() + y.float()).half())
    for f in (lambda t: t.sum(-1), lambda t: t.sum(0), lambda t: t.softmax(-1), lambda t: t.amax(0), lambda t: t.norm(dim=1)):
        assert torch.equal(f(x), f(x.float()).half())
    assert torch.equal(x.clone().mul_(y), (x.float() * y.float()).half())


def test_float16_with_other_dtypes():
    """Operands become float16 before the operator, results before they go to an out= of another dtype."""
    torch.manual_seed(0)
    x = torch.randn(40, 130).to(torch.float16)
    for other in (torch.tensor(1 / 3), torch.tensor(1 / 3, dtype=torch.float64), torch.randint(-5000, 5000, (40, 130)),
                  torch.randint(0, 255, (130,)).to(torch.uint8), torch.tensor(2049)):
        expected = (x.float() * other.half().float()).half()
        assert torch.equal(x * other, expected) and torch.equal(other * x, expected)
        assert torch.equal(x.clone().mul_(other), expected)
    out = torch.empty(40, 130, dtype=torch.float64)
    assert torch.equal(torch.mul(x, x, out=out), (x.float() * x.float()).half().double())
    wide = torch.randn(40, 130)
    assert torch.equal(wide.sum(1, dtype=torch.float16), wide.half().float().sum(1).half())
    assert torch.equal(wide.softmax(1, dtype=torch.float16), wide.half().float().softmax(1).half())


CHILD = """
import hashlib, numpy as np, strata as torch
x = torch.from_numpy(np.random.default_rng(1).integers(0, 2**32, 1 << 14).astype(np.uint32).view(np.float32))
x = torch.where(x.isnan(), torch.zeros(()), x)
h = hashlib.sha256()
for dtype in (torch.float16, torch.bfloat16):
    y = x.to(dtype)
    for t in (y, y.float(), y + y.flip(0), torch.sigmoid(y), y.view(128, 128).sum(0), x.view(128, 128).nan_to_num().sum(0)):
        t = torch.where(t.isnan(), torch.zeros((), dtype=t.dtype), t)
        h.update(t.contiguous().view(torch.uint8).numpy().tobytes())
print(h.hexdigest())
"""


def test_instruction_sets_agree():
    seen = set()
    for name in ("base", "v3", "v4"):
        run = subprocess.run([sys.executable, "-c", CHILD], env=dict(os.environ, STRATA_CPU=name), capture_output=True, text=True)
        if "does not have the instruction set" not in run.stderr:
            assert run.returncode == 0, run.stderr
            seen.add(run.stdout)
    assert len(seen) == 1
