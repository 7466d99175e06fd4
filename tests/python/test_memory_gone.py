"""Memory that is gone, that others look at, or that never was: an ordinary error, never a read beyond it."""

from __future__ import annotations

import numpy as np
import pytest
import strata


def freed(*shape: int) -> strata.Tensor:
    t = strata.ones(*shape)
    t.untyped_storage().resize_(0)
    return t


@pytest.mark.parametrize("call", [
    lambda t: t.expm1(), lambda t: t + 1, lambda t: t.sum(), lambda t: t.add_(1), lambda t: t.clone(), lambda t: t @ t.t(), lambda t: t.tolist(),
    lambda t: t.sort(), lambda t: t.cumsum(0), lambda t: t[0, 0].item(), lambda t: strata.cat([t, t]), lambda t: t.numpy(), lambda t: t.zero_(),
    lambda t: t.nonzero(), lambda t: strata.linalg.inv(t[:, :2]), lambda t: t.to(strata.float64), lambda t: strata.ones(2, 3).copy_(t), repr,
    lambda t: strata._foreach_add_([strata.ones(2, 3), t], 1.0)])
def test_a_tensor_whose_memory_was_freed_raises(call):
    with pytest.raises(RuntimeError, match="not allocated"):
        call(freed(2, 3))


def test_memory_comes_back():
    t = strata.ones(2, 3)
    t.untyped_storage().resize_(0)
    assert t.untyped_storage().nbytes() == 0 and t.shape == (2, 3)
    t.untyped_storage().resize_(24)
    assert t.fill_(2).sum().item() == 12


def test_a_storage_made_shorter_is_not_read_beyond():
    t = strata.arange(6)
    t.untyped_storage().resize_(8)
    assert t.untyped_storage().nbytes() == 8 and t.untyped_storage().tobytes() == bytes(8)
    assert t.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("look", [lambda t: t.numpy(), lambda t: memoryview(t.untyped_storage()), lambda t: t.__dlpack__(), np.asarray])
def test_memory_that_others_look_at_does_not_move(look):
    t = strata.ones(2)
    seen = look(t)
    with pytest.raises(RuntimeError, match="not resizable"):
        t.resize_(100000)
    with pytest.raises(RuntimeError, match="not resizable"):
        t.untyped_storage().resize_(0)
    assert t.tolist() == [1, 1] and t.shape == (2,)
    del seen
    assert t.resize_(1).tolist() == [1]


def test_a_storage_without_memory_has_no_bytes():
    storage = strata.ones(2, device="meta").untyped_storage()
    with pytest.raises(NotImplementedError, match="no memory"):
        storage.tobytes()
    with pytest.raises(BufferError, match="no memory"):
        memoryview(storage)


@pytest.mark.parametrize("name", ["relu", "angle", "neg", "cumsum", "sum", "cat", "cummax"])
def test_out_on_another_device(name):
    t, out = strata.ones(2, 3, device="meta"), strata.ones(2, 3)
    args = {"cumsum": (t, 0), "sum": (t, 0), "cat": ([t, t],), "cummax": (t, 0)}.get(name, (t,))
    given = (out, strata.zeros(2, 3, dtype=strata.int64)) if name == "cummax" else out
    with pytest.raises((RuntimeError, NotImplementedError), match="meta|device"):
        getattr(strata, name)(*args, out=given)
    assert out.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_an_empty_tensor_of_huge_dims_is_copied():
    t = strata.empty([2**40, 1, 2**62, 0])
    assert t.clone().shape == t.shape and (t + 1).shape == t.shape


def test_handles_are_made_by_hooks_only():
    with pytest.raises(TypeError, match="cannot create"):
        strata.HookHandle()


@pytest.mark.parametrize("call", [lambda t, out: strata.neg(t, out=out), lambda t, out: strata.gt(t, t, out=out), lambda t, out: strata.sum(t, 0, out=out),
                                  lambda t, out: strata.cat([t, t], out=out), lambda t, out: strata.amax(t, 0, out=out)])
def test_an_out_tensor_stays_when_an_operand_has_no_memory(call):
    out = strata.empty(0)
    with pytest.raises(RuntimeError, match="not allocated"):
        call(freed(2, 3), out)
    assert out.shape == (0,)


def test_an_out_tensor_stays_when_a_number_does_not_fit():
    out = strata.empty(0, dtype=strata.int64)
    with pytest.raises(RuntimeError, match="overflow"):
        strata.clamp(strata.arange(3), 0, 2**63, out=out)
    assert out.shape == (0,)


def test_an_out_tensor_stays_when_it_would_overlap():
    t = strata.arange(8.0)
    out = t[2:5]
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        strata.add(t[:4], 1, out=out)
    assert out.shape == (3,) and t.tolist() == list(range(8))


def test_an_empty_tensor_of_huge_dims_is_reduced():
    t = strata.empty([3, 0, 2, 3]).permute([1, 3, 0, 2])
    assert strata.tile(t, [2**31 - 1, 2**27]).sum().item() == 0
    with pytest.raises(RuntimeError, match="Stride calculation overflowed"):
        strata.tile(t, [2**31 - 1, 2**31])


@pytest.mark.parametrize("call", [
    lambda: strata.ops.aten._adaptive_avg_pool2d(strata.ones(1, 1, 4, 5), [2**62, 2**62]),
    lambda: strata.nn.functional.pad(strata.ones(1, 1, 3, 1, 3, 3), [2**62, 2**31 - 1])])
def test_a_result_of_huge_dims_is_refused(call):
    with pytest.raises(RuntimeError):
        call()


def test_an_empty_index_of_huge_dims_is_taken():
    index = strata.empty([2**40, 2**62, 0], dtype=strata.int64)
    assert strata.gather(strata.empty(index.shape), 2, index).shape == index.shape
    assert strata.take(strata.ones(3), index).shape == index.shape
