"""Tensors from Python data and foreign memory, and back."""

import array
import warnings

import numpy as np
import pytest
import strata

NUMPY = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32"]
NUMPY += ["float64", "complex64", "complex128"]


# ---- tensor()


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1, strata.int64),
        (True, strata.bool),
        (1.5, strata.float32),
        (1j, strata.complex64),
        ([1, 2], strata.int64),
        ([1, 2.5, True], strata.float32),
        ([True, 1], strata.int64),
        ([1j, 2], strata.complex64),
        ([], strata.float32),
        ([[], []], strata.float32),
        (range(3), strata.int64),
        (((1.0, 2.0), (3.0, 4.0)), strata.float32),
        (np.float64(1), strata.float64),
        (np.int32(1), strata.int32),
        ([np.float32(1), np.float32(2)], strata.float32),
        ([np.ones(2), np.ones(2)], strata.float64),
        (np.zeros((2, 0, 3), np.int8), strata.int8),
    ],
)
def test_dtype_is_found_from_the_data(data, dtype):
    t = strata.tensor(data)
    assert t.dtype == dtype
    expected = np.array(data if not isinstance(data, range) else list(data))
    assert t.shape == expected.shape
    np.testing.assert_array_equal(t.numpy(), expected)


def test_default_dtype_is_used():
    strata.set_default_dtype(strata.float64)
    try:
        assert strata.tensor([1.0]).dtype == strata.float64
        assert strata.tensor([1j]).dtype == strata.complex128
    finally:
        strata.set_default_dtype(strata.float32)


@pytest.mark.parametrize("name", [*NUMPY, "bfloat16"])
def test_every_dtype_takes_numbers(name):
    dtype = getattr(strata, name)
    t = strata.tensor([[0, 1], [1, 0]], dtype=dtype)
    assert t.dtype == dtype
    assert t.tolist() == [[0, 1], [1, 0]]


def test_values_are_converted_to_the_dtype():
    assert strata.tensor([1.9, -1.9], dtype=strata.int64).tolist() == [1, -1]
    assert strata.tensor([-1], dtype=strata.uint8).tolist() == [255]
    assert strata.tensor(2, dtype=strata.bool).item() is True
    assert strata.tensor(1e300).item() == float("inf")
    assert strata.tensor(2**64 - 1, dtype=strata.uint64).item() == 2**64 - 1
    assert strata.tensor([strata.tensor(1), 2.0]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("data", "dtype", "error", "text"),
    [
        ([[1, 2], [3]], None, ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
        ([[1], 2], None, TypeError, "not a sequence"),
        ([1, [2]], None, TypeError, "'list' object cannot be interpreted as an integer"),
        ("a", None, TypeError, "new(): invalid data type 'str'"),
        (["a"], None, ValueError, "too many dimensions 'str'"),
        (b"ab", None, TypeError, "new(): invalid data type 'bytes'"),
        (None, None, RuntimeError, "Could not infer dtype of NoneType"),
        ([None], None, RuntimeError, "Could not infer dtype of NoneType"),
        ({}, None, RuntimeError, "Could not infer dtype of dict"),
        (2**63, None, ValueError, "Overflow when unpacking long long"),
        (300, strata.uint8, RuntimeError, "value cannot be converted to type uint8 without overflow"),
        (1j, strata.float32, TypeError, "must be real number, not complex"),
    ],
)
def test_data_that_does_not_fit(data, dtype, error, text):
    with pytest.raises(error) as raised:
        strata.tensor(data, dtype=dtype)
    assert str(raised.value) == text


def test_arguments_of_tensor():
    assert strata.tensor(data=[1.0], requires_grad=True).requires_grad
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        strata.tensor([1], strata.int32)
    with pytest.raises(TypeError, match='missing 1 required positional arguments: "data"'):
        strata.tensor()
    with pytest.raises(RuntimeError, match="floating point and complex dtype can require gradients"):
        strata.tensor(1, requires_grad=True)


def test_tensor_copies():
    source = np.ones(3)
    t = strata.tensor(source)
    source[0] = 5
    assert t.tolist() == [1.0, 1.0, 1.0]
    with pytest.warns(UserWarning, match="clone"):
        copied = strata.tensor(t)
    assert copied.data_ptr() != t.data_ptr()


def test_legacy_constructor():
    assert strata.Tensor(2, 3).shape == (2, 3)
    assert strata.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert strata.Tensor().shape == (0,)
    assert strata.Tensor(strata.Size([2, 2])).shape == (2, 2)
    x = strata.ones(2)
    assert strata.Tensor(x).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="data must be a sequence"):
        strata.Tensor(2.5)


# ---- as_tensor, asarray


def test_as_tensor_shares_where_it_can():
    x = strata.ones(2)
    assert strata.as_tensor(x) is x
    source = np.ones(3)
    assert strata.as_tensor(source).data_ptr() == source.ctypes.data
    assert strata.as_tensor(source, dtype=strata.float32).data_ptr() != source.ctypes.data
    assert strata.as_tensor([1.5], dtype=int).tolist() == [1]


def test_asarray():
    source = np.arange(4.0)
    assert strata.asarray(source).data_ptr() == source.ctypes.data
    assert strata.asarray(source, copy=True).data_ptr() != source.ctypes.data
    assert strata.asarray([1, 2]).dtype == strata.int64
    assert strata.asarray(array.array("f", [1, 2])).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="can't alias"):
        strata.asarray([1, 2], copy=False)
    with pytest.raises(ValueError, match="can't alias"):
        strata.asarray(source, dtype=strata.float32, copy=False)


# ---- NumPy


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_shares_memory_both_ways(name):
    source = np.zeros((2, 3), dtype=name)
    t = strata.from_numpy(source)
    assert t.dtype == getattr(strata, name)
    assert t.data_ptr() == source.ctypes.data
    back = t.numpy()
    assert back.dtype == source.dtype
    assert back.ctypes.data == source.ctypes.data
    source[1, 2] = 1
    assert t[1, 2].item() == 1
    back[0, 0] = 1
    assert source[0, 0] == 1


def test_numpy_keeps_strides():
    source = np.arange(24.0).reshape(2, 3, 4)
    for view in (source.T, source[:, ::2], source[1, :, 1:3], np.broadcast_to(source[0, 0], (5, 4))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            t = strata.from_numpy(view)
        np.testing.assert_array_equal(t.numpy(), view)
        assert t.numpy().strides == view.strides
    assert strata.from_numpy(np.array(3.0)).item() == 3.0
    assert strata.ones(0, 3).numpy().shape == (0, 3)


def test_memory_outlives_its_owner():
    t = strata.from_numpy(np.full(1000, 7.0))
    assert t.sum().item() == 7000.0
    back = strata.ones(1000).numpy()
    assert back.sum() == 1000.0


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: [1], TypeError, "expected np.ndarray (got list)"),
        (lambda: np.array(["a"]), TypeError, "can't convert np.ndarray of type numpy.str_"),
        (lambda: np.array([None]), TypeError, "can't convert np.ndarray of type numpy.object_"),
        (lambda: np.ones(3)[::-1], ValueError, "At least one stride in the given numpy array is negative"),
        (lambda: np.ones(3, ">f4"), ValueError, "byte order different from the native byte order"),
    ],
)
def test_arrays_that_do_not_fit(make, error, text):
    with pytest.raises(error) as raised:
        strata.from_numpy(make())
    assert text in str(raised.value)


def test_read_only_arrays_warn():
    source = np.ones(3)
    source.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        strata.from_numpy(source)


@pytest.mark.parametrize("mode", [strata.no_grad, strata.inference_mode])
def test_numpy_of_a_parameter_where_nothing_is_recorded(mode):
    """As PyTorch, which asks for detach() only where gradients are recorded."""
    w = strata.ones(2, requires_grad=True)
    with mode():
        for array in (w.numpy(), np.asarray(w), (w * 1).numpy(), w.__array__(), np.array([w[0], w[1]])):
            np.testing.assert_array_equal(array, [1.0, 1.0])
        np.testing.assert_array_equal(np.sin(w), np.sin(np.ones(2, np.float32)))
    with pytest.raises(RuntimeError, match="Use tensor.detach"):
        w.numpy()

    class Sine(strata.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return strata.from_numpy(np.sin(x.numpy()))

        @staticmethod
        def backward(ctx, grad):
            return strata.from_numpy(grad.numpy() * np.cos(ctx.saved_tensors[0].numpy()))

    Sine.apply(w).sum().backward()
    assert strata.allclose(w.grad, strata.cos(w.detach()))


def test_tensors_that_numpy_cannot_hold():
    with pytest.raises(RuntimeError, match="Use tensor.detach\\(\\).numpy\\(\\) instead"):
        strata.ones(2, requires_grad=True).numpy()
    assert strata.ones(2, requires_grad=True).numpy(force=True).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="Got unsupported ScalarType BFloat16"):
        strata.ones(2, dtype=strata.bfloat16).numpy()


def test_numpy_functions_take_tensors():
    t = strata.tensor([1.0, 4.0])
    np.testing.assert_array_equal(np.sqrt(t), [1.0, 2.0])
    np.testing.assert_array_equal(np.asarray(t, dtype=np.int32), [1, 4])
    assert isinstance(t + np.ones(2), strata.Tensor)
    assert (np.float64(2) * t).tolist() == (t * np.float64(2)).tolist() == [2.0, 8.0]


# ---- buffers, DLPack


def test_frombuffer():
    data = bytearray(b"abcdefgh")
    t = strata.frombuffer(data, dtype=strata.uint8)
    data[0] = 0
    assert t.tolist() == [0, 98, 99, 100, 101, 102, 103, 104]
    assert strata.frombuffer(data, dtype=strata.uint8, count=2, offset=1).tolist() == [98, 99]
    assert strata.frombuffer(memoryview(data), dtype=strata.int64).shape == (1,)
    with pytest.warns(UserWarning, match="not writable"):
        strata.frombuffer(b"abcd", dtype=strata.uint8)


@pytest.mark.parametrize(
    ("data", "options", "text"),
    [
        (b"", {}, "both buffer length (0) and count (-1) must not be 0"),
        (
            b"abcde",
            {},
            "buffer length (5 bytes) after offset (0 bytes) must be a multiple of element size (4)",
        ),
        (
            b"abcd",
            {"count": 3},
            "requested buffer length (3 * 4 bytes) after offset (0 bytes) must not be greater than actual buffer length "
            "(4 bytes)",
        ),
        (
            b"abcd",
            {"offset": 8},
            "offset (8 bytes) must be non-negative and no greater than buffer length (4 bytes) minus 1",
        ),
    ],
)
def test_buffers_that_do_not_fit(data, options, text):
    with pytest.raises(ValueError, match=".*") as raised:
        strata.frombuffer(bytearray(data), dtype=strata.int32, **options)
    assert str(raised.value) == text


@pytest.mark.parametrize("name", NUMPY)
def test_dlpack_both_ways(name):
    source = np.zeros((2, 3), dtype=name).T
    t = strata.from_dlpack(source)
    assert t.data_ptr() == source.ctypes.data
    assert t.shape == (3, 2)
    back = np.from_dlpack(t)
    assert back.dtype == source.dtype
    assert back.ctypes.data == source.ctypes.data
    assert back.strides == source.strides
    assert t.__dlpack_device__() == (1, 0)


def test_dlpack_capsules():
    t = strata.arange(6.0).reshape(2, 3)
    capsule = strata.to_dlpack(t)
    assert strata.from_dlpack(capsule).data_ptr() == t.data_ptr()
    with pytest.raises(RuntimeError, match="consumed"):
        strata.from_dlpack(capsule)
    assert "versioned" in repr(t.__dlpack__(max_version=(1, 0)))
    assert strata.from_dlpack(t.__dlpack__(max_version=(1, 0))).tolist() == t.tolist()
    del capsule
    t.__dlpack__()  # a capsule that nobody takes frees itself
    with pytest.raises(BufferError, match="require gradient"):
        strata.ones(1, requires_grad=True).__dlpack__()


# ---- to Python


def test_tolist_and_item():
    assert strata.tensor([[1, 2], [3, 4]]).T.tolist() == [[1, 3], [2, 4]]
    assert strata.tensor(True).item() is True
    assert strata.tensor(1j).item() == 1j
    assert strata.tensor(1.5, dtype=strata.bfloat16).item() == 1.5
    assert strata.ones(2, 0).tolist() == [[], []]
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        strata.ones(2).item()


def test_numbers_of_python():
    assert int(strata.tensor(1.7)) == 1
    assert float(strata.tensor([2])) == 2.0
    assert complex(strata.tensor(2j)) == 2j
    assert [10, 20][strata.tensor(1)] == 20
    assert bool(strata.tensor([0.5]))
    with pytest.raises(ValueError, match="only one element tensors"):
        int(strata.ones(2))
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        bool(strata.ones(2))
    with pytest.raises(RuntimeError, match="no values is ambiguous"):
        bool(strata.ones(0))
    with pytest.raises(TypeError, match="only integer tensors"):
        [1][strata.tensor(0.0)]


def test_asarray_and_the_old_constructor_keep_the_history():
    x = strata.ones(3, requires_grad=True)
    assert strata.asarray(x) is x and strata.asarray(x, copy=False) is x
    for made in (strata.asarray(x * 2), strata.asarray(x * 2, copy=True), strata.asarray(x * 2, dtype=strata.float64), strata.Tensor(x * 2)):
        x.grad = None
        made.sum().backward()
        assert x.grad.tolist() == [2, 2, 2]
    assert not strata.asarray(x, requires_grad=False).requires_grad
    parameter = strata.nn.Parameter(strata.ones(1))
    assert strata.asarray(parameter) is parameter
    assert strata.Size((strata.tensor(1), 2)) == (1, 2) and [type(n) for n in strata.Size([strata.tensor(1), True])] == [int, int]


def test_what_is_no_number_is_no_bool():
    class Thing:
        def __bool__(self):
            return True

    for value in (None, Thing(), {}, Thing, len):
        for make in (strata.tensor, strata.as_tensor, strata.zeros(1, dtype=strata.bool).new_tensor):
            for data in (value, [value], [[True, value]], [strata.tensor(True), value]):
                with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
                    make(data, dtype=strata.bool)
    with pytest.raises(TypeError):
        strata.BoolTensor([None])

    class Zero:
        def __index__(self):
            return 0

    numbers = [True, 2**70, 0.5, float("nan"), 1j, np.bool_(True), np.int64(3), np.float64(0.5), strata.tensor(1.5), 0, 0.0, 0j, Zero()]
    assert strata.tensor(numbers, dtype=strata.bool).tolist() == [True] * 9 + [False] * 4
