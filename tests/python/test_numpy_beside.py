"""NumPy's arrays and numbers beside tensors: the same file passes under PyTorch with `import torch as strata`."""

from __future__ import annotations

import numpy as np
import pytest
import strata


def test_equal_to_an_array_is_asked_of_its_elements():
    t, a = strata.tensor([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
    assert (t == a).tolist() == [True, True, False] and (a == t).tolist() == [True, True, False]
    assert (t == np.ones((2, 3))).shape == (2, 3)
    assert (t.requires_grad_() == a).tolist() == [True, True, False]
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        t == a[:2]  # noqa: B015
    assert (t == np.array(["a", "b", "c"])) is False


def test_numbers_are_no_buffers():
    assert strata.asarray(np.int64(5)).tolist() == 5 and strata.asarray(np.int64(5)).dtype == strata.int64
    assert strata.asarray(np.float32(1.5), dtype=strata.bool).tolist() is True
    assert strata.asarray(np.bool_(True)).dtype == strata.bool


def test_a_copy_of_an_array_lies_as_the_array_does():
    assert strata.tensor(np.ones((2, 3)).T).stride() == (1, 3)
    assert strata.tensor(np.ones((2, 3)).T, dtype=strata.int8).stride() == (1, 3)
    assert strata.tensor(np.ones((4, 6))[:, ::2]).stride() == (3, 1)


def test_a_number_has_no_dim_to_ask_for():
    t = strata.tensor(3)
    for ask in (t.size, t.stride):
        for dim in (0, -1):
            with pytest.raises(IndexError, match="has no dimensions"):
                ask(dim)
    assert t.expand(1).stride() == (0,) and t.expand(2, 1).stride() == (0, 0) and t[None].stride() == (1,)


def test_bools_between_integers():
    t = strata.tensor([True, False])
    assert t.clamp(255).tolist() == [255, 255] and t.clamp(255).dtype == strata.int64
    assert t.clamp(max=255).tolist() == [1, 0] and t.clamp(0, 3).tolist() == [1, 0]
    assert strata.bfloat16.to_complex() == strata.complex64


def test_an_array_of_no_dims_is_an_integer():
    one = np.array(2)
    assert strata.zeros(one, 3).shape == (2, 3) and strata.ones(4).reshape(one, -1).shape == (2, 2)
    for wrong in (np.array([2]), np.array(2.0)):
        with pytest.raises(TypeError):
            strata.zeros(wrong, 3)


@pytest.mark.parametrize("size", [2.0, 1.5, "2", True, np.float32(2), (2.0,), ["2"]])
def test_sizes_are_whole_numbers(size):
    with pytest.raises(TypeError):
        strata.nn.functional.interpolate(strata.ones(1, 1, 4), size)
    assert strata.nn.functional.interpolate(strata.ones(1, 1, 4), [np.int64(2)]).shape == (1, 1, 2)
