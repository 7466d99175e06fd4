"""Module: registration, lookup, iteration, conversion, modes, printing, copies."""

import copy
import pickle

import pytest
import strata
from strata import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 3)
        self.block = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
        self.scale = nn.Parameter(strata.ones(1))
        self.register_buffer("count", strata.zeros(2))
        self.register_buffer("hidden", strata.zeros(1), persistent=False)

    def forward(self, x):
        return self.block(self.a(x)) * self.scale


def test_assignment_registers_by_kind():
    net = Net()
    assert list(net._parameters) == ["scale"]
    assert list(net._modules) == ["a", "block"]
    assert list(net._buffers) == ["count", "hidden"]
    assert "scale" not in net.__dict__
    net.plain = 3
    assert net.__dict__["plain"] == 3


def test_reassignment_moves_between_registries():
    net = Net()
    net.count = nn.Parameter(strata.zeros(1))
    assert "count" in net._parameters and "count" not in net._buffers
    net.scale = None
    assert net._parameters["scale"] is None and net.scale is None
    net.a = None
    assert net._modules["a"] is None
    assert [name for name, _ in net.named_children()] == ["block"]
    net.late = nn.Buffer(strata.ones(1), persistent=False)
    assert "late" in net._buffers and "late" not in net.state_dict()


def test_buffer_keeps_its_registration_when_a_tensor_is_assigned():
    net = Net()
    net.hidden = strata.ones(1)
    assert "hidden" in net._buffers and "hidden" not in net.state_dict()


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda m: setattr(m, "scale", strata.ones(1)), TypeError, r"as parameter 'scale' .*nn\.Parameter or None exp"),
        (lambda m: setattr(m, "a", 3), TypeError, r"cannot assign 'int' as child module 'a'"),
        (lambda m: setattr(m, "count", "x"), TypeError, r"cannot assign 'str' as buffer 'count'"),
        (lambda m: m.register_buffer("x.y", None), KeyError, r"buffer name can.*t contain"),
        (lambda m: m.register_buffer("", None), KeyError, r"buffer name can.*t be empty string"),
        (lambda m: m.register_buffer(3, None), TypeError, r"buffer name should be a string. Got int"),
        (lambda m: m.register_buffer("a", None), KeyError, r"attribute 'a' already exists"),
        (lambda m: m.register_buffer("b", 3), TypeError, r"cannot assign 'int' object to buffer 'b'"),
        (lambda m: m.register_parameter("b", strata.ones(1)), TypeError, r"object to parameter 'b'"),
        (lambda m: m.register_parameter("train", None), KeyError, r"attribute 'train' already exists"),
        (lambda m: m.add_module("a.b", nn.ReLU()), KeyError, r"module name can.*t contain"),
        (lambda m: m.add_module("b", 3), TypeError, r"int is not a Module subclass"),
        (lambda m: m.missing, AttributeError, r"'Net' object has no attribute 'missing'"),
        (lambda m: delattr(m, "missing"), AttributeError, r"missing"),
        (lambda m: m.train(1), ValueError, r"training mode is expected to be boolean"),
        (lambda m: m.get_submodule("a.x"), AttributeError, r"Linear has no attribute `x`"),
        (lambda m: m.get_submodule("scale"), AttributeError, r"`scale` is not an nn.Module"),
        (lambda m: m.get_parameter("count"), AttributeError, r"`count` is not an nn.Parameter"),
        (lambda m: m.get_buffer("scale"), AttributeError, r"`scale` is not a buffer"),
        (lambda m: m.set_submodule("", nn.ReLU()), ValueError, r"without a target name"),
        (lambda m: m.to(strata.int32), TypeError, r"only accepts floating point or complex dtypes"),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error, match=text):
        act(Net())


def test_before_init():
    class Early(nn.Module):
        def __init__(self, value):
            self.x = value

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__"):
        Early(nn.Parameter(strata.ones(1)))
    with pytest.raises(AttributeError, match=r"cannot assign module before Module.__init__"):
        Early(nn.ReLU())


def test_init_takes_no_arguments():
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        nn.Module(size=3)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        nn.Module(3)


def test_non_leaf_parameter():
    module = nn.Module()
    parameter = nn.Parameter(strata.ones(2)) * 2
    with pytest.raises(TypeError, match="object to parameter 'p'"):
        module.register_parameter("p", parameter)


def test_forward_missing():
    with pytest.raises(NotImplementedError, match=r'Module \[Empty\] is missing the required "forward" function'):
        type("Empty", (nn.Module,), {})()(1)


def test_names_and_duplicates():
    net = Net()
    net.tied = net.a
    names = [name for name, _ in net.named_parameters()]
    assert names == ["scale", "a.weight", "a.bias", "block.0.weight", "block.0.bias", "block.2.weight", "block.2.bias"]
    twice = [name for name, _ in net.named_parameters(remove_duplicate=False)]
    assert twice[-2:] == ["tied.weight", "tied.bias"]
    assert [name for name, _ in net.named_modules()] == ["", "a", "block", "block.0", "block.1", "block.2"]
    assert [name for name, _ in net.named_parameters(prefix="n", recurse=False)] == ["n.scale"]
    assert [name for name, _ in net.named_buffers()] == ["count", "hidden"]
    assert len(list(net.modules())) == 6 and len(list(net.children())) == 2
    assert net.get_submodule("block.2") is net.block[2]
    assert net.get_parameter("block.0.bias") is net.block[0].bias
    assert net.get_buffer("count") is net.count
    net.set_submodule("block.1", nn.Tanh())
    assert isinstance(net.block[1], nn.Tanh)


def test_modes():
    net = Net()
    assert net.training and net.eval() is net
    assert not net.block[1].training and net.train().block[1].training
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_zero_grad():
    net = Net()
    net(strata.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert float(net.scale.grad) == 0.0
    net.zero_grad()
    assert net.scale.grad is None


def test_conversion_keeps_identity():
    net = Net()
    weight = net.a.weight
    net(strata.ones(1, 2)).sum().backward()
    net.double()
    assert net.a.weight is weight and weight.dtype == strata.float64
    assert weight.grad.dtype == strata.float64 and net.count.dtype == strata.float64
    net.to(strata.float32)
    assert weight.dtype == strata.float32
    net.to(strata.zeros(1, dtype=strata.float64))
    assert weight.dtype == strata.float64
    assert net.to("cpu", strata.bfloat16).a.weight.dtype == strata.bfloat16
    assert net.float().half().a.bias.dtype == strata.float16


def test_apply_visits_children_first():
    seen = []
    Net().apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_repr():
    expected = """Net(
  (a): Linear(in_features=2, out_features=3, bias=True)
  (block): Sequential(
    (0): Linear(in_features=3, out_features=3, bias=True)
    (1): ReLU()
    (2): Linear(in_features=3, out_features=1, bias=True)
  )
)"""
    assert repr(Net()) == expected
    assert repr(nn.Module()) == "Module()"


def test_repr_of_extra_lines():
    class Odd(nn.Module):
        def extra_repr(self):
            return "first\nsecond"

    assert repr(Odd()) == "Odd(\n  first\n  second\n)"


def test_dir_lists_members():
    names = dir(Net())
    assert {"a", "block", "scale", "count", "forward"} <= set(names)
    assert not any(name[0].isdigit() for name in dir(Net().block))


def test_deepcopy_is_independent():
    net = Net()
    other = copy.deepcopy(net)
    with strata.no_grad():
        other.a.weight.add_(1)
    assert not bool((net.a.weight == other.a.weight).any())
    assert type(other.scale) is nn.Parameter and other.scale.requires_grad
    tied = nn.ModuleList([net.a, net.a])
    twin = copy.deepcopy(tied)
    assert twin[0] is twin[1]


def test_pickle_round_trip():
    layer = nn.Linear(2, 3)
    other = pickle.loads(pickle.dumps(layer))
    assert repr(other) == repr(layer) and bool((other.weight == layer.weight).all())
    assert type(other.weight) is nn.Parameter


def test_parameter():
    data = strata.ones(2, 3)
    parameter = nn.Parameter(data)
    assert parameter.requires_grad and parameter.is_leaf
    assert parameter.data_ptr() == data.data_ptr()
    assert isinstance(parameter, strata.Tensor) and type(parameter + 1) is strata.Tensor
    assert repr(parameter).startswith("Parameter containing:\ntensor(")
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    assert nn.Parameter().numel() == 0


def test_call_super_init_goes_on():
    class Other:
        def __init__(self, word):
            self.word = word

    class Both(nn.Module, Other):
        call_super_init = True

    assert Both("x").word == "x"


def test_to_empty_and_cpu():
    layer = nn.Linear(2, 3)
    assert layer.to_empty(device="cpu").weight.shape == (3, 2)
    assert layer.cpu() is layer


def test_type_hints_of_a_module_can_be_read():
    import typing

    class Net(nn.Module):
        size: int

    assert typing.get_type_hints(Net)["size"] is int
