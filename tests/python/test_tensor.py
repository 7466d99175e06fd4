"""The tensor object: attributes, identity, subclasses, copies, and the small types."""

import copy
import gc
import pickle
import sys
import threading
import warnings
import weakref

import pytest
import strata

# ---- attributes


def test_geometry():
    x = strata.zeros(2, 3, 4)
    assert x.shape == strata.Size([2, 3, 4]) == x.size()
    assert x.size(1) == x.size(-2) == x.size(dim=1) == 3
    assert x.stride() == (12, 4, 1)
    assert x.stride(0) == 12
    assert x.dim() == x.ndim == x.ndimension() == 3
    assert x.numel() == x.nelement() == strata.numel(x) == 24
    assert (x.itemsize, x.element_size(), x.nbytes) == (4, 4, 96)
    assert x.T.shape == (4, 3, 2)
    assert x.mT.shape == (2, 4, 3)
    assert x[1].storage_offset() == 12
    assert x.is_contiguous()
    assert not x.mT.is_contiguous()
    assert x.get_device() == -1
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-3, 2\], but got 3\)"):
        x.size(3)
    with pytest.raises(RuntimeError, match="only supported on matrices"):
        strata.ones(2).mT


def test_flags():
    x = strata.zeros(1)
    assert x.is_cpu
    assert x.is_leaf
    assert not (x.is_meta or x.is_sparse or x.is_quantized or x.is_complex() or x.retains_grad)
    assert x.is_floating_point()
    assert x.layout is strata.strided
    assert x.device == strata.device("cpu")
    assert x.grad_fn is None
    assert x.output_nr == 0


def test_parts_of_complex_tensors():
    z = strata.tensor([1 + 2j, 3 - 4j])
    assert z.real.tolist() == [1.0, 3.0]
    assert z.imag.tolist() == [2.0, -4.0]
    z.imag = strata.tensor([0.0, 1.0])
    assert z.tolist() == [1 + 0j, 3 + 1j]
    with pytest.raises(RuntimeError, match="imag is not implemented"):
        strata.ones(1).imag


def test_requires_grad_and_grad():
    x = strata.ones(2)
    assert x.requires_grad_() is x
    assert x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    x.grad = strata.ones(2)
    assert x.grad.tolist() == [1.0, 1.0]
    x.grad = None
    assert x.grad is None
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None but got grad of type int"):
        x.grad = 1
    with pytest.raises(RuntimeError, match="different size"):
        x.grad = strata.ones(3)
    with pytest.raises(RuntimeError, match="can require gradients"):
        strata.tensor([1]).requires_grad_()
    y = x.requires_grad_() * 2
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf variables"):
        y.requires_grad = False


def test_grad_of_a_non_leaf_warns():
    y = strata.ones(2, requires_grad=True) * 2
    with pytest.warns(UserWarning, match=r"not a leaf Tensor is being accessed.*MulBackward0.*retain_grad"):
        assert y.grad is None
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]


def test_data_is_the_memory_without_history():
    x = strata.ones(3, requires_grad=True)
    version = x._version
    x.data[0] = 5
    assert x.tolist() == [5.0, 1.0, 1.0]
    assert x._version == version
    assert not x.data.requires_grad
    x.data = strata.zeros(2)
    assert x.shape == (2,)
    assert x.requires_grad
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_versions_count_writes():
    x = strata.zeros(3)
    before = x._version
    x += 1
    x[0] = 2
    assert x._version == before + 2
    assert x[1:]._version == x._version


# ---- identity


def test_one_object_per_tensor():
    x = strata.ones(3)
    v = x.view(3)
    assert v._base is x
    assert v._base is v._base


def test_attributes_survive_while_cpp_holds_the_tensor():
    x = strata.ones(3)
    x.note = ["kept"]
    v = x.view(3)
    address = id(x)
    del x
    gc.collect()
    assert v._base.note == ["kept"]
    assert id(v._base) == address
    again = v._base
    again.other = 1
    del again
    gc.collect()
    assert v._base.other == 1


def test_weak_references_live_as_long_as_the_tensor():
    x = strata.ones(3)
    seen = weakref.ref(x)
    v = x.view(3)
    del x
    gc.collect()
    assert seen() is v._base
    del v
    gc.collect()
    assert seen() is None


def test_subclass_objects_come_back():
    class Mine(strata.Tensor):
        pass

    x = strata.Tensor._make_subclass(Mine, strata.ones(3))
    v = x.as_subclass(strata.Tensor)
    assert type(v) is strata.Tensor
    del x
    gc.collect()
    assert type(v._base) is Mine


def test_cycles_are_collected():
    class Note:
        pass

    x = strata.ones(1)
    x.note = Note()
    x.note.tensor = x
    seen = weakref.ref(x.note)
    del x
    gc.collect()
    assert seen() is None


def test_objects_are_made_and_dropped_without_leaks():
    def live():
        gc.collect()
        return sys.getallocatedblocks()

    def work():
        for _ in range(2000):
            x = strata.ones(4)
            y = x.view(2, 2)
            x.tag = [y.shape]
            del x, y
            strata.ones(4).grad

    work()
    before = live()
    work()
    assert abs(live() - before) < 200


def test_a_tensor_may_die_on_another_thread():
    x = strata.ones(3, requires_grad=True)
    x.tag = object()
    box = [(x * 2).sum()]
    del x

    def drop():
        box.pop()

    t = threading.Thread(target=drop)
    t.start()
    t.join()
    gc.collect()


def test_hash_is_identity_and_equality_is_elementwise():
    x, y = strata.ones(2), strata.ones(2)
    assert hash(x) == hash(x)
    assert len({x, y}) == 2
    assert (x == y).tolist() == [True, True]


# ---- subclasses


def test_subclass_with_slots_and_new():
    class Mine(strata.Tensor):
        __slots__ = ("unit",)

        def __new__(cls, data, unit):
            made = strata.Tensor._make_subclass(cls, strata.as_tensor(data))
            made.unit = unit
            return made

        def __init__(self, data, unit):
            super().__init__()

    m = Mine([1.0, 2.0], "kg")
    assert m.unit == "kg"
    assert isinstance(m, strata.Tensor)
    assert type(m + 1) is Mine
    m.extra = 1
    assert m.__dict__ == {"extra": 1}


def test_make_subclass_has_no_history():
    x = strata.ones(2, requires_grad=True) * 2
    made = strata.Tensor._make_subclass(strata.Tensor, x, True)
    assert made.is_leaf
    assert made.requires_grad
    assert made.data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="derives from strata.Tensor"):
        strata.Tensor._make_subclass(int, x)


def test_as_subclass_stays_in_the_graph():
    class Mine(strata.Tensor):
        pass

    x = strata.ones(2, requires_grad=True)
    m = x.as_subclass(Mine)
    assert type(m) is Mine
    (m * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_del_of_a_subclass_is_called_once():
    calls = []

    class Mine(strata.Tensor):
        def __del__(self):
            calls.append(1)

    m = strata.ones(1).as_subclass(Mine)
    del m
    gc.collect()
    assert calls == [1]


# ---- copies


def test_pickle():
    x = strata.arange(12.0).reshape(3, 4)
    for t in (x, x.T, x[1:, ::2], strata.tensor(True), strata.zeros(0, 2), x.to(strata.bfloat16)):
        back = pickle.loads(pickle.dumps(t))
        assert back.tolist() == t.tolist()
        assert (back.dtype, back.stride(), back.requires_grad) == (t.dtype, t.stride(), t.requires_grad)
    x.requires_grad_()
    x.note = "n"
    back = pickle.loads(pickle.dumps(x))
    assert back.requires_grad
    assert back.note == "n"
    with pytest.raises(RuntimeError, match="detach"):
        pickle.dumps(x * 2)


def test_deepcopy():
    x = strata.ones(2, requires_grad=True)
    x.grad = strata.ones(2)
    x.note = [1]
    both = copy.deepcopy([x, x])
    assert both[0] is both[1]
    y = both[0]
    assert y.requires_grad
    assert y.is_leaf
    assert y.note == [1]
    assert y.note is not x.note
    assert y.grad.data_ptr() != x.grad.data_ptr()
    assert y.data_ptr() != x.data_ptr()
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)
    assert copy.copy(x).data_ptr() == x.data_ptr()


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
    with pytest.raises(NotImplementedError, match="not there yet"):
        strata.compile(lambda x: x)


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
