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
    x.tag = {"x"}
    held = weakref.ref(x.tag)
    box = [(x * 2).sum()]
    del x
    gc.collect()
    assert held() is not None, "the graph keeps its leaf's object"

    def drop():
        box.pop()

    t = threading.Thread(target=drop)
    t.start()
    t.join()
    gc.collect()
    assert held() is None


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
    back = pickle.loads(pickle.dumps(x * 2))  # its history stays behind
    assert back.is_leaf and back.requires_grad and back.tolist() == (x * 2).tolist()


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
