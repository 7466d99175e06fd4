"""The tensor object: the rest of its behaviour; see test_tensor.py."""

import copy
import pickle
import sys

import pytest
import strata

# ---- attributes


def test_to():
    x = strata.ones(2)
    assert x.to(strata.float32) is x.to("cpu") is x.to(strata.device("cpu")) is x.float() is x.cpu() is x
    assert x.to(strata.float32, copy=True) is not x
    assert x.to("cpu", strata.int64).dtype == x.to(dtype=strata.int64).dtype == x.long().dtype == strata.int64
    assert x.to(strata.zeros(1, dtype=strata.float64)).dtype == strata.float64
    assert x.to(device="cpu", dtype=strata.bool, non_blocking=True).tolist() == [True, True]
    assert x.type() == "strata.FloatTensor"
    assert x.type("strata.LongTensor").dtype == x.type(strata.int64).dtype == strata.int64
    images = strata.zeros(1, 2, 3, 3).to(memory_format=strata.channels_last)
    assert images.is_contiguous(memory_format=strata.channels_last)
    with pytest.raises(TypeError, match=r"to\(\): argument 'device' must be"):
        x.to(1.5)
    with pytest.raises(RuntimeError, match="expected one of cpu"):
        x.to("nowhere")


def test_format_and_contains():
    assert format(strata.tensor(1.5), ".2f") == "1.50"
    assert f"{strata.ones(1)}" == "tensor([1.])"
    x = strata.tensor([1.0, 2.0])
    assert 1.0 in x
    assert 3 not in x
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        _ = "a" in x
    with pytest.raises(TypeError):
        format(x, ".2f")
    assert "view" in dir(x)


# ---- the small types


def test_dtypes():
    assert repr(strata.float32) == "strata.float32"
    assert strata.float is strata.float32
    assert strata.long is strata.int64
    assert strata.half is strata.float16
    assert strata.float32.is_floating_point
    assert strata.complex64.is_complex
    assert strata.int8.is_signed
    assert not strata.uint8.is_signed
    assert strata.bfloat16.itemsize == 2
    assert strata.float64.to_complex() is strata.complex128
    assert strata.complex64.to_real() is strata.float32
    assert isinstance(strata.bool, strata.dtype)
    with pytest.raises(TypeError):
        strata.dtype()


def test_devices():
    d = strata.device("cpu")
    assert repr(d) == "device(type='cpu')"
    assert str(strata.device("cpu", 0)) == str(strata.device("cpu:0")) == "cpu:0"
    assert (d.type, d.index) == ("cpu", None)
    assert d == strata.device(d)
    assert d != strata.device("cpu", 0)
    assert len({d, strata.device("cpu"), strata.device("cpu:0")}) == 2
    with pytest.raises(RuntimeError, match="got 'nowhere'"):
        strata.device("nowhere")


def test_sizes():
    s = strata.Size([2, 3])
    assert repr(s) == "strata.Size([2, 3])"
    assert s.numel() == 6
    assert isinstance(s[1:], strata.Size)
    assert s[0] == 2
    assert repr(s + (4,)) == "strata.Size([2, 3, 4])"
    assert repr((1,) + s) == "strata.Size([1, 2, 3])"
    assert repr(s * 2) == "strata.Size([2, 3, 2, 3])"
    assert s == (2, 3)
    assert hash(s) == hash((2, 3))
    with pytest.raises(TypeError, match="takes an iterable of 'int' \\(item 0 is 'float'\\)"):
        strata.Size([1.5])


def test_small_types_are_pickled_by_name():
    values = [strata.float32, strata.bool, strata.channels_last, strata.strided, strata.device("cpu", 0), strata.Size([1])]
    back = pickle.loads(pickle.dumps(values))
    assert back == values
    assert back[0] is strata.float32
    assert copy.deepcopy(values) == values


def test_generators():
    g = strata.Generator()
    assert g.manual_seed(7) is g
    assert g.initial_seed() == 7
    state = g.get_state()
    assert state.dtype == strata.uint8
    first = strata.rand(5, generator=g).tolist()
    g.set_state(state)
    assert strata.rand(5, generator=g).tolist() == first
    again = pickle.loads(pickle.dumps(g))
    assert strata.rand(3, generator=again).tolist() == strata.rand(3, generator=g).tolist()
    assert g.device == strata.device("cpu")
    assert isinstance(g.seed(), int)
    strata.manual_seed(3)
    saved = strata.get_rng_state()
    a = strata.rand(3).tolist()
    strata.set_rng_state(saved)
    assert strata.rand(3).tolist() == a
    assert strata.initial_seed() == 3


def test_limits():
    f = strata.finfo(strata.float32)
    assert (f.bits, f.eps, f.max) == (32, 2.0**-23, 3.4028234663852886e38)
    assert repr(strata.finfo(strata.float32)) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, "
        "tiny=1.17549e-38, dtype=float32)"
    )
    assert strata.finfo().dtype == "float32"
    assert strata.finfo(strata.complex128).eps == 2.0**-52
    i = strata.iinfo(strata.int8)
    assert (i.min, i.max, i.bits) == (-128, 127, 8)
    assert strata.iinfo(strata.uint64).max == 2**64 - 1
    with pytest.raises(TypeError, match="requires a floating point input type"):
        strata.finfo(strata.int8)
    with pytest.raises(TypeError, match="requires an integer input type"):
        strata.iinfo(strata.float32)


def test_storages_are_as_large_as_their_memory():
    x = strata.zeros(1000, dtype=strata.float64)
    for storage in (x.untyped_storage(), x.storage()):
        assert 8000 < sys.getsizeof(storage) < 8200
    assert sys.getsizeof(x.untyped_storage()) - sys.getsizeof(x[:0].clone().untyped_storage()) == 8000


def test_storages():
    x = strata.arange(4.0)
    s = x[1:].untyped_storage()
    assert s == x.untyped_storage()
    assert (s.nbytes(), len(s), s.data_ptr()) == (16, 16, x.data_ptr())
    assert bytes(memoryview(s)) == x.numpy().tobytes()
    back = strata._C._tensor_over_storage(s, strata.float32, 1, (2,), (2,))
    assert back.tolist() == [1.0, 3.0]
    for offset, size, stride in ((3, (2,), (1,)), (-1, (1,), (1,)), (0, (2**62,), (1,)), (0, (2,), (-1,))):
        with pytest.raises((ValueError, RuntimeError)):
            strata._C._tensor_over_storage(s, strata.float32, offset, size, stride)


# ---- settings


def test_types_and_promotion():
    x = strata.ones(2)
    assert strata.is_tensor(x)
    assert not strata.is_tensor([1])
    assert strata.result_type(x, 1) == strata.float32
    assert strata.result_type(strata.tensor([1]), 1.5) == strata.float32
    assert strata.promote_types(strata.int8, strata.uint8) == strata.int16
    assert strata.can_cast(strata.int32, strata.float16)
    assert not strata.can_cast(strata.float32, strata.int32)
    assert strata.typename(x) == "strata.FloatTensor"


def test_default_dtype():
    assert strata.get_default_dtype() == strata.float32
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        strata.set_default_dtype(strata.int32)


def test_threads():
    before = strata.get_num_threads()
    strata.set_num_threads(1)
    assert strata.get_num_threads() == 1
    strata.set_num_threads(before)
    with pytest.raises(RuntimeError, match="positive integer"):
        strata.set_num_threads(0)


def test_absent_devices_say_so():
    x = strata.ones(1)
    words = strata._device_words._load()["devices"]
    assert words
    for word in words:
        assert getattr(strata, word["name"]).is_available() is False
        assert getattr(strata, word["name"]).device_count() == 0
        assert getattr(x, word["flag"]) is False
        if word["method"]:
            with pytest.raises(RuntimeError, match="no plugin"):
                getattr(x, word["name"])()


def test_names_that_do_not_exist():
    with pytest.raises(AttributeError, match="module 'strata' has no attribute 'nothing_like_it'"):
        strata.nothing_like_it
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'nothing_like_it'"):
        strata.ones(1).nothing_like_it


# ---- gradient modes


def test_grad_modes():
    x = strata.ones(1, requires_grad=True)
    with strata.no_grad():
        assert not (x * 2).requires_grad
        with strata.enable_grad():
            assert (x * 2).requires_grad
    assert strata.is_grad_enabled()
    with strata.set_grad_enabled(False):
        assert not strata.is_grad_enabled()
    strata.set_grad_enabled(False)
    assert not strata.is_grad_enabled()
    strata.set_grad_enabled(True)
    with strata.inference_mode():
        y = x * 2
    assert y.is_inference()
    assert not y.requires_grad


def test_grad_modes_decorate():
    x = strata.ones(1, requires_grad=True)

    @strata.no_grad()
    def called(a, *, b=1):
        "text"
        return (a * b).requires_grad

    @strata.no_grad
    def bare(a):
        return (a * 2).requires_grad

    @strata.inference_mode()
    def inferred(a):
        return (a * 2).is_inference()

    @strata.set_grad_enabled(False)
    def off(a):
        return (a * 2).requires_grad

    assert not called(x, b=2)
    assert called.__doc__ == "text"
    assert not bare(x)
    assert inferred(x)
    assert strata.is_grad_enabled()
    assert not off(x)
    assert strata.is_grad_enabled()


def test_grad_modes_hold_inside_generators_only():
    x = strata.ones(1, requires_grad=True)

    @strata.no_grad()
    def steps():
        sent = yield (x * 2).requires_grad
        try:
            yield (sent, (x * 2).requires_grad)
        except ValueError:
            yield (x * 2).requires_grad
        return strata.is_grad_enabled()

    g = steps()
    assert next(g) is False
    assert strata.is_grad_enabled()
    assert g.send(5) == (5, False)
    assert g.throw(ValueError()) is False
    assert strata.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        next(g)
    assert stop.value.value is False


def test_limits_of_dtypes_of_eight_bits():
    f = strata.finfo(strata.float8_e4m3fn)
    assert (f.bits, f.max, f.min, f.eps, f.tiny, f.dtype) == (8, 448.0, -448.0, 0.125, 0.015625, "float8_e4m3fn")
    assert strata.finfo(strata.float8_e5m2).max == 57344.0
    for wrong in ("float8_e5m2", strata.quint8, strata.int8):
        with pytest.raises(TypeError):
            strata.finfo(wrong)


def test_copies_share_what_the_originals_share():
    x = strata.arange(4.0)
    a, b = copy.deepcopy([x, x[1:]])
    a.zero_()
    assert b.tolist() == [0, 0, 0] and x.tolist() == [0, 1, 2, 3]
    module = strata.nn.Module()
    module.register_buffer("a", strata.zeros(3))
    module.register_buffer("v", module.a[1:])
    module.weight = strata.nn.Parameter(strata.ones(2, 3))
    copied = copy.deepcopy(module)
    copied.a.fill_(1)
    assert copied.v.tolist() == [1, 1] and module.v.tolist() == [0, 0] and type(copied.weight) is strata.nn.Parameter
    y = copy.deepcopy(strata.arange(12.0).reshape(3, 4)[:, 1:3])
    assert y.stride() == (4, 1) and y.storage_offset() == 1 and y[2].tolist() == [9, 10]
    assert copy.deepcopy(strata.ones(1).expand(5)).stride() == (0,)


def test_tensors_with_history_are_pickled():
    made = pickle.loads(pickle.dumps(strata.ones(2, requires_grad=True) * 2))
    assert made.tolist() == [2, 2] and made.is_leaf and made.requires_grad
    module = strata.nn.Linear(2, 2)
    strata.nn.utils.prune.l1_unstructured(module, "weight", 1)
    assert pickle.loads(pickle.dumps(module)).weight.shape == (2, 2)
