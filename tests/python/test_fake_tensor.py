"""FakeTensorMode: shapes, dtypes and devices without memory."""

import copy
import gc
import weakref

import pytest
import strata
from strata import nn
from strata._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)


@pytest.fixture
def mode():
    return FakeTensorMode()


def fake(mode, *sizes, **options):
    with mode:
        return strata.empty(*sizes, **options)


def test_factories(mode):
    with mode:
        made = [
            strata.empty(2, 3), strata.ones(4, dtype=strata.int64), strata.randn(5), strata.arange(3), strata.tensor([1.0, 2.0]), strata.eye(2), strata.full((2,), 3.0),
            strata.randperm(4), strata.zeros_like(strata.ones(2, 2)),
        ]  # fmt: skip
    assert all(type(t) is FakeTensor and t.fake_mode is mode and t.device.type == "cpu" and not t.is_meta for t in made)
    assert [tuple(t.shape) for t in made] == [(2, 3), (4,), (5,), (3,), (2,), (2, 2), (2,), (4,), (2, 2)]
    assert [t.dtype for t in made[:4]] == [strata.float32, strata.int64, strata.float32, strata.int64]
    assert type(strata.tensor([1.0])) is strata.Tensor


def test_no_memory_is_taken(mode):
    with mode:
        x = strata.empty(1 << 20, 1 << 20)
        y = (x @ x).sum(dim=0)
    assert y.shape == (1 << 20,) and y.data_ptr() == 0


def test_texts(mode):
    x = fake(mode, 2, 3, requires_grad=True)
    assert repr(x) == "FakeTensor(..., size=(2, 3), requires_grad=True)"
    assert repr((x * 2).exp()) == "FakeTensor(..., size=(2, 3), grad_fn=<ExpBackward0>)"
    assert repr(fake(mode, 2, dtype=strata.int64)) == "FakeTensor(..., size=(2,), dtype=strata.int64)"


def test_a_training_step(mode):
    with mode:
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(288, 10), nn.Dropout(0.5))
        optimizer = strata.optim.AdamW(model.parameters())
        loss = nn.functional.cross_entropy(model(strata.randn(2, 3, 8, 8)), strata.tensor([1, 2]))
        loss.backward()
        optimizer.step()
    weight = model[0].weight
    assert isinstance(weight, nn.Parameter) and type(weight) is FakeTensor and type(weight.grad) is FakeTensor
    assert weight.grad.shape == weight.shape == (8, 3, 3, 3)
    assert repr(model[4].bias) == "Parameter(FakeTensor(..., size=(10,), requires_grad=True))"
    again = copy.deepcopy(model)
    assert again[0].weight is not weight and isinstance(again[0].weight, nn.Parameter)


def test_what_exists_becomes_fake(mode):
    t = strata.ones(2, 3).t()
    made = mode.from_tensor(t)
    assert made.shape == (3, 2) and made.stride() == (1, 3) and mode.from_tensor(made) is made
    model = nn.Linear(3, 4)
    parameters = {name: mode.from_tensor(p) for name, p in model.named_parameters()}
    y = strata.func.functional_call(model, parameters, (mode.from_tensor(strata.ones(2, 3)),))
    assert type(y) is FakeTensor and y.shape == (2, 4) and y.requires_grad
    assert isinstance(parameters["weight"], nn.Parameter)
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        FakeTensorMode().from_tensor(made)
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        FakeTensorMode(allow_non_fake_inputs=True).from_tensor(t) + made
    with FakeTensorMode(), pytest.raises(AssertionError, match="Mixing fake modes"):
        made + 1


def test_tensors_with_memory(mode):
    x, real = fake(mode, 2), strata.ones(2)
    for call in (lambda: x + real, lambda: real.add(x)):
        with pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors first.*aten.add.Tensor"):
            call()
    with mode, pytest.raises(AssertionError, match=r"tensor\(\[...\], size=\(2,\)\)"):
        real.exp()
    lenient = FakeTensorMode(allow_non_fake_inputs=True)
    y = fake(lenient, 2)
    assert type(y + real) is FakeTensor
    with pytest.raises(RuntimeError, match="a tensor with memory would be written"):
        real.add_(y)
    assert real.tolist() == [1.0, 1.0]


def test_values_are_not_there(mode):
    x = fake(mode, 2, 2)
    for read in (lambda: x.sum().item(), lambda: bool(x.sum() > 0), lambda: x.tolist(), lambda: float(x.sum()), lambda: int(x.sum())):
        with pytest.raises(DataDependentOutputException, match="a FakeTensor has no values"):
            read()
    for read in (lambda: strata.equal(x, x), lambda: strata.allclose(x, x), lambda: strata.empty(x.sum().long())):
        with pytest.raises(DataDependentOutputException, match="a FakeTensor has no values"):
            read()
    for size in (lambda: strata.nonzero(x), lambda: x[x > 0], lambda: x.masked_select(x > 0), lambda: strata.unique(x)):
        with pytest.raises(DynamicOutputShapeException, match="depends on values"):
            size()
    with pytest.raises(RuntimeError, match="numpy"):
        x.numpy()


def test_in_place(mode):
    x = fake(mode, 2, 3)
    y = x.add_(1).mul_(2)
    assert y is x and x.clone().relu_().shape == (2, 3)


GEOMETRIES = {
    "resize_": (lambda x: x.resize_(7, 2), (7, 2), (2, 1)),
    "resize_ smaller": (lambda x: x.resize_(2), (2,), (1,)),
    "resize_as_": (lambda x: x.resize_as_(x.new_empty(4, 5)), (4, 5), (5, 1)),
    "t_": (lambda x: x.t_(), (3, 2), (1, 3)),
    "transpose_": (lambda x: x.transpose_(0, 1), (3, 2), (1, 3)),
    "unsqueeze_": (lambda x: x.unsqueeze_(0), (1, 2, 3), (6, 3, 1)),
    "as_strided_": (lambda x: x.as_strided_((2,), (2,), 1), (2,), (2,)),
    "set_": (lambda x: x.set_(x.new_empty(4)), (4,), (1,)),
}


@pytest.mark.parametrize("name", GEOMETRIES)
def test_in_place_geometry(mode, name):
    change, shape, stride = GEOMETRIES[name]
    x, real = fake(mode, 2, 3), strata.ones(2, 3)
    assert change(x) is x and change(real) is real
    assert x.shape == real.shape == shape and x.stride() == real.stride() == stride and x.storage_offset() == real.storage_offset()
    assert type(x) is FakeTensor and (x + 1).shape == shape


@pytest.mark.filterwarnings("ignore:An output with")
def test_out(mode):
    x = fake(mode, 3, 4)
    for sizes in ((0,), (5,), (3, 4)):
        out = fake(mode, *sizes)
        assert strata.add(x, x, out=out) is out and out.shape == (3, 4) and (out + x).shape == (3, 4)
    values, places = fake(mode, 0), fake(mode, 0, dtype=strata.int64)
    found = strata.max(x, 0, out=(values, places))
    assert found[0] is values and found[1] is places and values.shape == places.shape == (4,)
    with pytest.raises(RuntimeError, match="can't be cast"):
        strata.add(x, x, out=fake(mode, 3, 4, dtype=strata.int64))


def test_tensors_with_memory_are_not_written_as_out():
    lenient = FakeTensorMode(allow_non_fake_inputs=True)
    x, out, places = fake(lenient, 3, 4), strata.full((4,), 7.0), strata.zeros(4, dtype=strata.int64)
    for call in (lambda: strata.sum(x, 0, out=out), lambda: strata.max(x, 0, out=(out, places)), lambda: strata._foreach_add_([out], [x[0]])):
        with pytest.raises(RuntimeError, match="a tensor with memory would be written"):
            call()
    assert out.tolist() == [7.0] * 4


def test_from_tensor_remembers(mode):
    x = strata.arange(12.0).reshape(3, 4)
    view = x[1:, 2:]
    made, part = mode.from_tensor(x), mode.from_tensor(view)
    assert mode.from_tensor(x) is made and mode.from_tensor(view) is part is not made
    assert (part.shape, part.stride(), part.storage_offset()) == (view.shape, view.stride(), view.storage_offset())
    assert FakeTensorMode().from_tensor(x) is not made
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None and mode.from_tensor(x).shape == (3, 4)
    parameter = nn.Parameter(x)
    parameter.grad = strata.ones(3, 4)
    assert type(mode.from_tensor(parameter).grad) is FakeTensor
    with pytest.raises(UnsupportedFakeTensorException, match="layout"):
        mode.from_tensor(x.to_sparse())


def test_what_a_tensor_that_died_left_is_not_given_to_another(mode):
    for n in range(1, 200):
        assert mode.from_tensor(strata.ones(n)).shape == (n,)
    assert len(mode._made) <= 1


def test_data_and_copies(mode):
    with mode:
        x = nn.Parameter(strata.ones(3))
        y = x * x
        x.data.add_(1)  # no write that the graph knows of
        y.sum().backward()
        for t in (copy.copy(x), copy.deepcopy(x)):
            assert isinstance(t, nn.Parameter) and type(t) is FakeTensor and t.requires_grad and t is not x
        assert copy.deepcopy(x).grad.shape == (3,)
        net = copy.deepcopy(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)))
        x.data = strata.empty(5)
    assert type(x.data) is FakeTensor and not x.data.requires_grad and x.shape == x.data.shape == (5,)
    assert all(type(t) is FakeTensor for t in net.state_dict().values())
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(y)


def test_views_share_a_storage_and_its_version(mode):
    with mode:
        x, w = strata.ones(4, 6), strata.ones(4, 6, requires_grad=True)
        v = x[1:, ::2]
        assert v._base is x and v.storage_offset() == 6 and v.untyped_storage()._cdata == x.untyped_storage()._cdata
        y = x * w
        v.add_(1)
        assert x._version == v._version == 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
        z = (w * 1).exp()
        z.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_makers_of_data(mode):
    real = strata.ones(2)
    with mode:
        x = strata.ones(2, dtype=strata.float64)
        made = [strata.tensor([1, 2]), x.new_tensor([1, 2]), x.new([1.0]), strata.as_tensor([1.0]), strata.tensor(real)]
        assert all(type(t) is FakeTensor for t in made) and made[1].dtype == strata.float64
        assert strata.tensor([1.0], device="meta").is_meta and strata.as_tensor(x) is x and strata.as_tensor(real) is real
        with strata.device("meta"):
            assert strata.tensor(3).device.type == "meta"


def test_single_numbers_of_data_are_known(mode):
    with mode:
        k, x = strata.tensor(3), strata.ones(5)
        assert k.item() == 3 and (k * strata.tensor(2) + 1).item() == 7 and bool(k == 3) and strata.tensor([2.25]).sqrt().item() == 1.5
        assert strata.empty(k).shape == x[:k].shape == (3,) and x[k].shape == () and list(range(k)) == [0, 1, 2]
        assert nn.functional.one_hot(strata.tensor([1])).shape == (1, 2) and x.view(strata.tensor(1), 5).shape == (1, 5)
        unknown = [strata.zeros(()), k + x.sum(), strata.tensor([1, 2]), strata.empty_like(k), strata.bernoulli(strata.tensor(0.5)), strata.tensor(3, device="meta")]
        for t in unknown:
            with pytest.raises(DataDependentOutputException):
                t.tolist()


WRITES = {
    "itself": lambda t: t.fill_(5),
    "a view": lambda t: t.view(1).fill_(5),
    "its base": lambda t: t.expand(2)[0].copy_(strata.tensor(5)),
    "a draw": lambda t: t.random_(9),
    "out": lambda t: strata.add(strata.tensor(2), 3, out=t),
    "data": lambda t: t.data.fill_(5),
    "other data": lambda t: setattr(t, "data", strata.zeros((), dtype=strata.int64)),
}


@pytest.mark.parametrize("name", WRITES)
def test_numbers_that_are_written_are_no_longer_known(mode, name):
    with mode:
        t = strata.tensor(3)
        WRITES[name](t)
        with pytest.raises(DataDependentOutputException):
            t.item()


def test_operators_from_elsewhere_keep_their_errors(mode):
    @strata.library.custom_op("fake_tests::half", mutates_args=())
    def half(x: strata.Tensor) -> strata.Tensor:
        return x / 2

    @half.register_fake
    def _(x):
        if x.dim() != 1:
            raise RuntimeError("half takes one dim")
        return strata.empty_like(x)

    with mode:
        assert half(strata.ones(3)).shape == (3,)
        with pytest.raises(RuntimeError, match="half takes one dim"):
            half(strata.ones(3, 3))


def test_numbers_in_the_place_of_tensors(mode):
    with mode:
        half = strata.ones((), dtype=strata.float16)
        assert strata.add(2.5, half).dtype == strata.float16 and strata.sub(1, strata.ones(3)).shape == (3,)
        for kind in (strata.optim.SGD, strata.optim.Adam, strata.optim.RMSprop, strata.optim.Adagrad, strata.optim.NAdam):
            net = nn.Linear(2, 2)
            optimizer = kind(net.parameters(), lr=0.1)
            net(strata.ones(1, 2)).sum().backward()
            optimizer.step()
        with pytest.raises(AssertionError, match="Please convert all Tensors"):
            strata.add(_REAL, half)


_REAL = strata.tensor(2.5, dtype=strata.float64)


def test_operators_whose_parts_make_tensors(mode):
    with mode:
        assert strata.quantile(strata.ones(3, 4), 0.5, dim=1).shape == (3,)
        assert strata.combinations(strata.ones(3)).shape == (3, 2)


def test_writes_through_masks(mode):
    with mode:
        x = strata.ones(3, 3)
        x[x > 0] = 2.0
        x[:, x[0] > 0] = strata.zeros(())
        assert x.index_put((x > 0,), strata.ones(())).shape == x.shape == (3, 3)


def test_errors_are_those_of_shapes(mode):
    with mode, pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        strata.empty(2, 3) @ strata.empty(2, 3)
    with pytest.raises(NotImplementedError, match="shape_env"):
        FakeTensorMode(shape_env=object())


def test_the_mode_ends(mode):
    with mode:
        x = strata.empty(2)
    assert type(strata.empty(2)) is strata.Tensor and type(x + x) is FakeTensor
