"""x[...] and x[...] = v against NumPy, and the errors."""

import itertools

import numpy as np
import pytest
import strata


def pair(*shape, dtype=np.float32):
    array = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    return strata.from_numpy(array.copy()), array


INT = [[0, 1, 1], [1, 0, 1]]
MASK = [[True, False, True], [False, True, True]]
# Each is tried on a tensor of shape (2, 3, 4).
INDICES = {
    "int": 1,
    "negative": -1,
    "slice": slice(None, 1),
    "whole": slice(None),
    "step": (slice(None), slice(None, None, 2)),
    "past the end": (slice(None), slice(1, 99)),
    "empty slice": (slice(None), slice(2, 1)),
    "negative bounds": (slice(None), slice(-2, -1)),
    "ints": (1, 2, 3),
    "int and slice": (0, slice(1, 3), -1),
    "None": None,
    "ellipsis": Ellipsis,
    "ellipsis between": (0, Ellipsis, 1),
    "ellipsis of nothing": (0, 1, 2, Ellipsis),
    "None in the middle": (0, None, slice(1, None), None, 2),
    "True": True,
    "False": False,
    "True and int": (True, 1),
    "int and True": (1, True),
    "slice and False": (slice(None), False),
    "empty tuple": (),
    "list": [0, 1, 1],
    "empty list": [],
    "nested list": INT,
    "list second": (slice(None), [2, 0]),
    "two lists": ([0, 1], [2, 0]),
    "two lists apart": ([0, 1], slice(None), [3, 0]),
    "lists that broadcast": ([[0], [1]], [2, 0]),
    "list and int": ([0, 1], 2),
    "int between lists": ([0, 1], 1, [2, 3]),
    "list and None": ([0, 1], None, slice(1, 3)),
    "list after ellipsis": (Ellipsis, [3, 0, 1]),
    "mask of one dim": [True, False],
    "mask of two dims": MASK,
    "mask and slice": (MASK, slice(1, 3)),
    "mask and int": (MASK, 2),
    "mask and list": (MASK, [0, 1, 2, 3]),
    "slice and mask": (slice(None), [True, False, True]),
    "slice, mask, int": (slice(None), [True, False, True], 1),
    "mask of nothing": [False, False],
    "negative list": [-1, 0],
}


def for_numpy(index):
    if isinstance(index, list):
        return np.array(index, dtype=bool if np.array(index).dtype == bool else np.int64)
    return tuple(map(for_numpy, index)) if isinstance(index, tuple) else index


def for_strata(index, how):
    if isinstance(index, list):
        array = for_numpy(index)
        return {"list": index, "array": array, "tensor": strata.from_numpy(array)}[how]
    return tuple(for_strata(i, how) for i in index) if isinstance(index, tuple) else index


@pytest.mark.parametrize("how", ["list", "array", "tensor"])
@pytest.mark.parametrize("name", INDICES)
def test_get(name, how):
    t, array = pair(2, 3, 4)
    index = INDICES[name]
    if how == "list" and index in (INT, MASK):
        return  # a list that holds lists stands for a tuple
    expected = array[for_numpy(index)]
    got = t[for_strata(index, how)]
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize("how", ["list", "array", "tensor"])
@pytest.mark.parametrize("name", INDICES)
def test_set_a_number(name, how):
    t, array = pair(2, 3, 4)
    index = INDICES[name]
    if how == "list" and index in (INT, MASK):
        return
    array[for_numpy(index)] = -1.0
    t[for_strata(index, how)] = -1
    np.testing.assert_array_equal(t.numpy(), array)


@pytest.mark.parametrize("name", INDICES)
def test_set_a_tensor(name):
    t, array = pair(2, 3, 4)
    index = INDICES[name]
    shape = array[for_numpy(index)].shape
    # One value per element of the selection; where an element is chosen twice all its values are equal.
    values = array[for_numpy(index)] * 10 + 1
    array[for_numpy(index)] = values
    t[for_strata(index, "tensor")] = strata.from_numpy(np.array(values))
    np.testing.assert_array_equal(t.numpy(), array)
    assert t[for_strata(index, "tensor")].shape == shape


def test_every_triple_of_simple_indices():
    kinds = [0, slice(None), slice(1, None), None, [0, 1], Ellipsis]
    for index in itertools.product(kinds, repeat=3):
        if sum(i is Ellipsis for i in index) > 1 or (0 in index and [0, 1] in index):
            continue  # NumPy counts an int beside a list as a list of one
        t, array = pair(2, 3, 4)
        expected = array[for_numpy(index)]
        got = t[for_strata(index, "tensor")]
        assert got.shape == expected.shape, index
        np.testing.assert_array_equal(got.numpy(), expected)


def test_a_list_of_lists_stands_for_a_tuple():
    t, array = pair(2, 3, 4)
    np.testing.assert_array_equal(t[INT].numpy(), array[tuple(INT)])
    assert t[[0, slice(None)]].shape == (3, 4)
    assert t[[None, 0]].shape == (1, 3, 4)


def test_an_int_beside_a_list_is_selected_first():
    t, array = pair(2, 3, 4)
    np.testing.assert_array_equal(t[0, :, [0, 1]].numpy(), array[0][:, [0, 1]])
    np.testing.assert_array_equal(t[[0, 1], :, 0].numpy(), array[:, :, 0][[0, 1]])


def test_a_second_ellipsis_finds_nothing_left():
    t, array = pair(2, 3, 4)
    assert t[..., ...].shape == (2, 3, 4)
    np.testing.assert_array_equal(t[..., 0, ...].numpy(), array[..., 0])
    np.testing.assert_array_equal(t[..., ..., 0].numpy(), array[..., 0])


def test_views_share_memory_and_gathers_do_not():
    t, _ = pair(2, 3, 4)
    for index in (0, slice(1, None), None, Ellipsis, (0, 1), (), (slice(None), 1)):
        assert t[index].untyped_storage() == t.untyped_storage()
        assert t[index]._base is t
    for index in ([0, 1], True, strata.tensor([True, False])):
        assert t[index].untyped_storage() != t.untyped_storage()


def test_0_dim_tensors_are_ints_or_bools():
    t, array = pair(2, 3, 4)
    np.testing.assert_array_equal(t[strata.tensor(1)].numpy(), array[1])
    np.testing.assert_array_equal(t[np.int64(1)].numpy(), array[1])
    assert t[strata.tensor(True)].shape == (1, 2, 3, 4)
    assert t[strata.tensor(False)].shape == (0, 2, 3, 4)


def test_uint8_is_a_mask_and_int32_an_index():
    t, array = pair(2, 3, 4)
    np.testing.assert_array_equal(t[strata.tensor([1, 0], dtype=strata.uint8)].numpy(), array[[True, False]])
    np.testing.assert_array_equal(t[strata.tensor([1, 0], dtype=strata.int32)].numpy(), array[[1, 0]])


def test_set_broadcasts_and_drops_leading_ones():
    t, array = pair(2, 3, 4)
    t[0] = strata.tensor([1.0, 2.0, 3.0, 4.0])
    array[0] = [1, 2, 3, 4]
    t[:, 0] = strata.ones(1, 1, 2, 4) * 7
    array[:, 0] = 7
    t[1, [0, 2]] = strata.zeros(1, 1, 4)
    array[1, [0, 2]] = 0
    np.testing.assert_array_equal(t.numpy(), array)


def test_set_converts_the_dtype():
    t = strata.zeros(3, dtype=strata.int64)
    t[0] = 2.7
    t[1:] = strata.tensor([3.9, 4.1])
    assert t.tolist() == [2, 3, 4]


def test_false_sets_nothing():
    t = strata.zeros(3)
    t[False] = 1
    assert t.tolist() == [0.0, 0.0, 0.0]


def test_gradients_flow_through_reads_and_writes():
    x = strata.ones(3, requires_grad=True)
    y = x * 2
    y[1] = 5
    y[[0, 2]] = x[[2, 0]] * 3
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 0.0, 3.0]


def test_len_and_iteration():
    t, array = pair(2, 3)
    assert len(t) == 2
    assert [row.tolist() for row in t] == array.tolist()
    a, b = t
    assert b.tolist() == [3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ((0, -7), IndexError, "index -7 is out of bounds for dimension 1 with size 3"),
        ((Ellipsis, 9), IndexError, "index 9 is out of bounds for dimension 2 with size 4"),
        ("a", TypeError, "new(): invalid data type 'str'"),
        (
            0.5,
            IndexError,
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)",
        ),
        ({}, IndexError, "valid indices (got dict)"),
        (np.bool_(True), IndexError, "valid indices (got numpy.bool)"),
        (slice(1.0, 2), TypeError, "slice indices must be integers or None or have an __index__ method"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        ([0, 5], IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (
            [True, False, True],
            IndexError,
            "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 3, 4] at index 0",
        ),
    ],
)
def test_errors(index, error, text):
    t, _ = pair(2, 3, 4)
    with pytest.raises(error) as raised:
        t[index]
    assert text in str(raised.value)
    with pytest.raises(error):
        t[index] = 1


def test_float_tensors_are_no_index():
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
        strata.ones(3)[strata.ones(2)]


def test_0_dim_tensors_have_no_items():
    t = strata.tensor(1)
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        t[0]
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(t)
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(t)
    assert t[...].item() == t[()].item() == 1
    assert t[None].shape == (1,)


def test_assignment_errors():
    t, _ = pair(2, 3, 4)
    with pytest.raises(TypeError, match="can't assign a str to a strata.FloatTensor"):
        t[0] = "a"
    with pytest.raises(TypeError, match="can't assign a list to a strata.FloatTensor"):
        t[0] = [1, 2]
    with pytest.raises(RuntimeError, match="expanded size of the tensor"):
        t[0] = strata.ones(3, 5)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        t[0, [0, 1]] = strata.ones(5)
    with pytest.raises(TypeError, match="Tensor does not support deleting items"):
        del t[0]
