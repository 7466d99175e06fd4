"""Packed sequences: the way there and back, and recurrent networks over them, which must equal each sequence alone."""

import pytest
import strata
from strata import nn
from strata.nn.utils import rnn
from strata.testing import assert_close

LENGTHS = [2, 5, 3]


def batch():
    return strata.arange(3 * 5 * 4, dtype=strata.float32).mul(0.37).sin().reshape(3, 5, 4)


def test_there_and_back():
    x = batch()
    packed = rnn.pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 3, 2, 1, 1]
    assert packed.sorted_indices.tolist() == [1, 2, 0] and packed.unsorted_indices.tolist() == [2, 0, 1]
    assert_close(packed.data[:3], x[[1, 2, 0], 0])
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1.0, total_length=6)
    assert lengths.tolist() == LENGTHS and padded.shape == (3, 6, 4)
    for row, source, n in zip(padded, x, LENGTHS, strict=True):
        assert_close(row[:n], source[:n])
        assert row[n:].eq(-1).all()
    rows = [x[i, :n] for i, n in enumerate(LENGTHS)]
    for got, row in zip(rnn.unpack_sequence(rnn.pack_sequence(rows, enforce_sorted=False)), rows, strict=True):
        assert_close(got, row)
    assert packed.double().data.dtype == strata.float64 and packed.to("cpu") is packed


def test_what_does_not_fit_is_refused():
    x = batch()
    for lengths, text in (([2, 5, 3], "sorted in decreasing order"), ([5, 3], "len"), ([5, 3, 0], "greater than 0")):
        with pytest.raises(RuntimeError, match=text):
            rnn.pack_padded_sequence(x, lengths, batch_first=True)
    with pytest.raises(RuntimeError, match="at most 5"):
        rnn.pack_padded_sequence(x, [9, 3, 2], batch_first=True)
    with pytest.raises(ValueError, match="total_length=2"):
        rnn.pad_packed_sequence(rnn.pack_sequence([x[0], x[1, :2]]), total_length=2)
    with pytest.raises(RuntimeError, match="Expected 3, got 4"):
        nn.GRU(3, 2)(rnn.pack_sequence([x[0]]))


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("ordered", [True, False])
def test_packed_equals_each_sequence_alone(name, ordered):
    strata.manual_seed(1)
    net = getattr(nn, name)(4, 3, 2, batch_first=True, bidirectional=True)
    lengths = sorted(LENGTHS, reverse=True) if ordered else LENGTHS
    x = batch().requires_grad_()
    h = strata.arange(4 * 3 * 3, dtype=strata.float32).cos().reshape(4, 3, 3)
    start = (h, h * 0.5) if name == "LSTM" else h
    packed, finals = net(rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=ordered), start)
    out, counts = rnn.pad_packed_sequence(packed, batch_first=True)
    assert counts.tolist() == lengths
    finals = finals if name == "LSTM" else (finals,)
    sum(f.square().sum() for f in (out, *finals)).backward()
    grad = x.grad
    y = batch().requires_grad_()
    total = 0
    for i, n in enumerate(lengths):
        at = tuple(s[:, i : i + 1] for s in start) if name == "LSTM" else h[:, i : i + 1]
        alone, last = net(y[i : i + 1, :n], at)
        last = last if name == "LSTM" else (last,)
        assert_close(out[i : i + 1, :n], alone)
        for mine, theirs in zip(finals, last, strict=True):
            assert_close(mine[:, i : i + 1], theirs)
        total = total + sum(f.square().sum() for f in (alone, *last))
    total.backward()
    assert_close(grad, y.grad)


@pytest.mark.parametrize("sizes", [[1, 2], [2, 0, 1], [2, 2], [2, 2, -1], [2], []])
def test_sizes_of_another_batch_are_refused(sizes):
    packed = rnn.PackedSequence(strata.ones(3, 4), strata.tensor(sizes, dtype=strata.int64))
    with pytest.raises(RuntimeError, match=r"GRU: batch_sizes must be .* got batch_sizes \[.*data.size\(0\) 3"):
        nn.GRU(4, 2)(packed)


def test_says_where_it_lies_as_tensors_do():
    packed = rnn.pack_padded_sequence(batch(), LENGTHS, batch_first=True, enforce_sorted=False)
    assert packed.is_cpu and not packed.is_meta
    assert not hasattr(packed, "sum")
