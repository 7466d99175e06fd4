"""Tensors that are made of numbers: hostile sizes, steps and numbers, and values that are known exactly."""

import numpy as np
import pytest
import strata

LEAST, MOST = -2**63, 2**63 - 1
WHOLE = (strata.uint8, strata.int8, strata.int16, strata.uint16, strata.int32, strata.uint32, strata.int64, strata.uint64)


@pytest.mark.parametrize("make", [strata.empty, strata.zeros, strata.ones, lambda s, **k: strata.full(s, 2, **k),
                                  strata.tensor(1.0).new_empty, strata.tensor(1.0).new_zeros])
def test_sizes(make):
    for size in [(-1,), (2, -3), (1 << 62, 4), (1 << 40, 1 << 40), (MOST, MOST)]:
        with pytest.raises((RuntimeError, MemoryError)):
            make(size)
    assert make((1 << 40, 0, 1 << 40)).shape == (1 << 40, 0, 1 << 40)
    assert make(()).shape == () and make((3, 2), device="meta").is_meta


def test_strides_of_empty():
    for size, stride in [((2, 3), (1,)), ((2,), (-1,)), ((-2,), (1,)), ((2, 3), (1 << 62, 1 << 62))]:
        with pytest.raises(RuntimeError):
            strata.empty_strided(size, stride)
    for size, order in [((2, 3), (0,)), ((2, 3), (0, 0)), ((2, 3), (0, 2)), ((2, 3), (-1, 0)), ((1 << 62, 4), (0, 1))]:
        with pytest.raises(RuntimeError):
            strata.empty_permuted(size, order)
    assert strata.empty_permuted((2, 3, 4), (2, 0, 1)).stride() == (3, 1, 6)
    assert strata.empty_like(strata.empty(2, 3, 4).permute(2, 0, 1)).stride() == (1, 12, 4)


def test_full_fits():
    for dtype, number in [(strata.uint8, 256), (strata.int8, 128), (strata.float16, 65520.0), (strata.int64, float("nan")),
                          (strata.float32, 1e39), (strata.int32, 1j), (strata.uint64, 2**64)]:
        with pytest.raises((RuntimeError, OverflowError)):
            strata.full((2,), number, dtype=dtype)
    assert strata.full((2,), 2**63, dtype=strata.uint64).tolist() == [2**63] * 2
    assert strata.full((3,), -0.0).signbit().all() and strata.full((2,), 3).dtype == strata.int64
    assert strata.scalar_tensor(65520.0, dtype=strata.float16).isinf()
    target = strata.zeros(4, 6)[::2, 1::2]
    assert strata.full((2, 3), 5.0, out=target) is target and (target == 5).all()


def test_ranges_of_integers():
    assert strata.arange(MOST - 5, MOST, 2).tolist() == [MOST - 5, MOST - 3, MOST - 1]
    assert strata.arange(LEAST, MOST, 2**62).tolist() == [LEAST + k * 2**62 for k in range(4)]
    assert strata.arange(MOST, LEAST, -2**62).tolist() == [MOST - k * 2**62 for k in range(4)]
    assert strata.arange(LEAST, LEAST + 3).tolist() == [LEAST, LEAST + 1, LEAST + 2]
    assert strata.arange(2**53, 2**53 + 3).tolist() == [2**53 + k for k in range(3)]
    assert strata.arange(250, 260, dtype=strata.uint8).tolist() == [250, 251, 252, 253, 254, 255, 0, 1, 2, 3]
    assert strata.arange(3, 3, -1).shape == (0,)
    for arguments in [(0, 5, 0), (0, 5, -1), (5, 0), (LEAST, MOST), (LEAST, MOST, 2), (-1,)]:
        with pytest.raises(RuntimeError):
            strata.arange(*arguments)


def test_ranges_of_floats():
    for end, step in [(7.3, 0.1), (1000.0, 0.7), (-5.0, -0.3)]:
        at = np.arange(int(np.ceil(end / step)), dtype=np.float64) * step
        for dtype, like in [(strata.float64, np.float64), (strata.float32, np.float32), (strata.float16, np.float16)]:
            with np.errstate(over="ignore"):
                assert np.array_equal(strata.arange(0.0, end, step, dtype=dtype).numpy(), at.astype(np.float32).astype(like) if like is np.float16 else at.astype(like))
    nan, inf = float("nan"), float("inf")
    for arguments in [(nan,), (0, nan), (0, inf), (-inf, 0), (0, 5, nan), (0, 1e300), (0, 1.0, 1e-300), (0.0, 1.0, 0.0)]:
        with pytest.raises(RuntimeError):
            strata.arange(*arguments)
    with pytest.raises(ValueError, match="is 0 as an int64"):
        strata.arange(0, 5, 0.5, dtype=strata.int64)


def test_ranges_into_given_tensors():
    """The target decides the dtype; it may have gaps."""
    gaps = strata.zeros(20, dtype=strata.int16)
    assert strata.arange(0.5, 9.5, out=gaps[::2][:9]).tolist() == list(range(9))
    assert gaps.tolist() == [k // 2 if k % 2 == 0 and k < 18 else 0 for k in range(20)]
    grown = strata.empty(0, dtype=strata.float64)
    assert strata.linspace(0, 1, 3, out=grown).tolist() == [0.0, 0.5, 1.0] and grown.shape == (3,)
    for refused in (lambda t: strata.arange(3, out=t), lambda t: strata.linspace(0, 1, 3, out=t)):
        with pytest.raises(NotImplementedError):
            refused(strata.empty(0, dtype=strata.bool))


def test_equal_distances():
    for dtype in (strata.float64, strata.float32, strata.bfloat16, *WHOLE):
        t = strata.linspace(3, 100, 98, dtype=dtype)
        assert t.tolist() == list(range(3, 101)) or dtype == strata.bfloat16
        assert t[0] == 3 and t[-1] == 100
    both = strata.linspace(0.1, 0.7, 65, dtype=strata.float64)
    assert both[0] == 0.1 and both[-1] == 0.7 and strata.linspace(2, 5, 1).tolist() == [2]
    turn = strata.linspace(1 - 2j, 3 + 5j, 5)
    assert turn.dtype == strata.complex64 and turn.tolist() == [1 - 2j, 1.5 - 0.25j, 2 + 1.5j, 2.5 + 3.25j, 3 + 5j]
    assert strata.linspace(0, float("inf"), 3).isnan().any()
    for arguments in [(0, 1, -1), (0, 1, 1 << 62)]:
        with pytest.raises((RuntimeError, MemoryError)):
            strata.linspace(*arguments)
    with pytest.raises(RuntimeError, match="without overflow"):
        strata.linspace(300, 300, 2, dtype=strata.uint8)
    with pytest.raises(RuntimeError, match="can't be safely cast"):
        strata.linspace(1j, 2, 3, dtype=strata.float32)


def test_fills():
    """In place, of any strides, by numbers and by tensors, one of which may be an element of what is filled."""
    x = strata.arange(24.0).reshape(2, 3, 4)
    x[:, 1:, ::2].fill_(-1)
    assert x[0].tolist() == [[0, 1, 2, 3], [-1, 5, -1, 7], [-1, 9, -1, 11]]
    assert (x.permute(2, 0, 1).fill_(x[1, 2, 3]) == 23).all() and (x[1].zero_() == 0).all() and (x[0] == 23).all()
    assert strata.zeros(5).expand(3, 5).fill_(2).sum() == 30 and strata.ones(0, 3).fill_(7).shape == (0, 3)
    assert strata.zeros(2, dtype=strata.uint8).fill_(strata.tensor(-1)).tolist() == [255, 255]
    for bad in (300, float("nan"), 1j):
        kept = strata.ones(3, dtype=strata.uint8)
        with pytest.raises(RuntimeError):
            kept.fill_(bad)
        assert kept.tolist() == [1, 1, 1]
    for value, target in [(strata.ones(1), strata.ones(2)), (strata.tensor(1.0), strata.ones(1).expand(3))]:
        with pytest.raises(RuntimeError, match="0-dimension|more than one element"):
            target.fill_(value)


@pytest.mark.parametrize("n, m", [(0, 0), (1, 1), (3, 5), (70, 33), (1, 200), (200, 1), (0, 4), (4, 0)])
def test_eye(n, m):
    for dtype in (strata.bool, strata.int8, strata.bfloat16, strata.float32, strata.complex64, strata.complex128):
        assert strata.equal(strata.eye(n, m, dtype=dtype), strata.tensor(np.eye(n, m)).to(dtype))
    target = strata.ones(m, n).t()
    assert strata.equal(strata.eye(n, m, out=target), strata.eye(n, m)) and target.stride() == (1, n) or 0 in (n, m)
    for refused in [(-1, 2), (2, -1), (1 << 40, 1 << 40)]:
        with pytest.raises((RuntimeError, MemoryError)):
            strata.eye(*refused)
