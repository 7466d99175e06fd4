"""Parametrizations, and the older hooks for weight and spectral norm."""

import copy
import pickle

import pytest
import strata
from strata import nn
from strata.nn.utils import parametrizations, parametrize
from strata.testing import assert_close


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, x):
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x


def test_register_assign_remove():
    layer = nn.Linear(3, 3)
    optimised = layer.weight
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert type(layer).__name__ == "ParametrizedLinear" and parametrize.type_before_parametrizations(layer) is nn.Linear
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert layer.parametrizations.weight.original is optimised
    assert_close(layer.weight, layer.weight.t())
    layer.weight = strata.arange(9.0).reshape(3, 3)
    assert layer.weight.tolist() == [[0, 1, 2], [1, 4, 5], [2, 5, 8]]
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.tolist() == [[0, 2, 4], [2, 8, 10], [4, 10, 16]]
    with pytest.raises(RuntimeError, match="Doubled does not implement right_inverse"):
        layer.weight = strata.zeros(3, 3)
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    assert_close(copy.deepcopy(layer)(strata.ones(1, 3)), layer(strata.ones(1, 3)))
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(layer)
    kept = layer.weight.detach()
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight is optimised and not parametrize.is_parametrized(layer)
    assert_close(layer.weight.detach(), kept)


def test_refusals():
    with pytest.raises(ValueError, match="with name 'nope'"):
        parametrize.register_parametrization(nn.Linear(2, 2), "nope", Doubled())
    layer = nn.Linear(2, 3)
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(layer, "weight", nn.Flatten(0))
    assert type(layer) is nn.Linear and layer.weight.shape == (3, 2)
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(layer, "weight")


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_both_ways(dim):
    old, new = nn.Conv2d(2, 3, 3), nn.Conv2d(2, 3, 3)
    new.load_state_dict(old.state_dict())
    weight = old.weight.detach().clone()
    nn.utils.weight_norm(old, dim=dim)
    parametrizations.weight_norm(new, dim=dim)
    assert list(old.state_dict()) == ["bias", "weight_g", "weight_v"]
    assert list(new.state_dict())[1:] == ["parametrizations.weight.original0", "parametrizations.weight.original1"]
    assert_close(new.weight, weight)
    length = weight.norm() if dim is None else weight.transpose(0, dim).flatten(1).norm(dim=1)
    assert_close(old.weight_g.detach().flatten(), length.flatten())
    x = strata.ones(1, 2, 4, 4)
    with strata.no_grad():
        old.weight_g.mul_(2)
    new.load_state_dict(old.state_dict())  # names of the older form are taken
    assert_close(old(x), new(x))
    old(x).sum().backward()
    assert old.weight_g.grad is not None and old.weight_v.grad is not None
    nn.utils.remove_weight_norm(old)
    assert list(old.state_dict()) == ["bias", "weight"]
    assert_close(old.weight.detach(), 2 * weight)
    with pytest.raises(ValueError, match="not found"):
        nn.utils.remove_weight_norm(old)


def test_weight_norm_twice_is_refused():
    with pytest.raises(RuntimeError, match="two weight_norm hooks"):
        nn.utils.weight_norm(nn.utils.weight_norm(nn.Linear(2, 2)))


@pytest.mark.parametrize("norm", [nn.utils.spectral_norm, parametrizations.spectral_norm])
@pytest.mark.parametrize("layer", [lambda: nn.Linear(4, 3), lambda: nn.ConvTranspose2d(3, 4, 2)])
def test_spectral_norm_leaves_one(norm, layer):
    strata.manual_seed(0)
    module = norm(layer(), n_power_iterations=50)
    x = strata.ones(1, 4) if isinstance(module, nn.Linear) else strata.ones(1, 3, 2, 2)
    module(x).sum().backward()
    assert all(p.grad is not None for p in module.parameters())
    weight = module.weight.detach()
    matrix = weight if weight.dim() == 2 else weight.transpose(0, 1).flatten(1)
    v = strata.ones(matrix.size(1))
    for _ in range(500):  # the largest singular value by power iteration of its own
        v = matrix.t() @ (matrix @ v)
        v = v / v.norm()
    assert float((matrix @ v).norm()) == pytest.approx(1.0, abs=1e-3)
    before = module.eval().weight.detach().clone()
    module(x)
    assert_close(module.weight.detach(), before)


def test_fusion_and_skip_init():
    conv, norm = nn.Conv2d(2, 3, 3).eval(), nn.BatchNorm2d(3)
    x = strata.arange(32.0).sin().reshape(1, 2, 4, 4)
    norm(conv(x))
    norm.eval()
    assert_close(nn.utils.fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)))
    linear, flat = nn.Linear(4, 3).eval(), nn.BatchNorm1d(3).eval()
    assert_close(nn.utils.fuse_linear_bn_eval(linear, flat)(x[0, 0]), flat(linear(x[0, 0])))
    with pytest.raises(AssertionError, match="only for eval"):
        nn.utils.fuse_conv_bn_eval(conv.train(), norm)
    made = nn.utils.skip_init(nn.Linear, 3, 4)
    assert made.weight.shape == (4, 3) and made.weight.device.type == "cpu"
    with pytest.raises(RuntimeError, match="'device' arg"):
        nn.utils.skip_init(nn.ReLU)


def test_prefix_of_a_wrapper_goes():
    state = {"module.weight": 1, "bias": 2}
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert state == {"weight": 1, "bias": 2}


def test_a_copy_has_a_class_of_its_own():
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    twin = copy.deepcopy(layer)
    assert type(twin).__name__ == "ParametrizedLinear" and parametrize.type_before_parametrizations(twin) is nn.Linear
    parametrize.remove_parametrizations(twin, "weight")
    assert_close(layer.weight, twin.weight)
    assert_close(layer.weight, layer.weight.t())
    third = copy.deepcopy(layer)
    parametrize.register_parametrization(third, "bias", Doubled())
    assert not parametrize.is_parametrized(layer, "bias") and layer.bias is layer._parameters["bias"]
    assert_close(copy.deepcopy(third).bias, 2 * layer.bias)


class Plus(nn.Module):
    def __init__(self, inverse):
        super().__init__()
        self.inverse = inverse

    def forward(self, x):
        return x + 1

    def right_inverse(self, x):
        return self.inverse(x)


def refuse(x):
    raise NotImplementedError


@pytest.mark.parametrize("inverse", [lambda x: x * 5, refuse])
def test_a_second_one_leaves_the_originals(inverse):
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    original, weight = layer.parametrizations.weight.original.clone(), layer.weight.clone()
    parametrize.register_parametrization(layer, "weight", Plus(inverse))
    assert_close(layer.parametrizations.weight.original, original)
    assert_close(layer.weight, weight + 1)
    first = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Plus(refuse))
    assert_close(first.weight, first.parametrizations.weight.original + 1)


@pytest.mark.parametrize(
    ("inverse", "text"),
    [(lambda x: [x], "must return a tensor. Got list"), (lambda x: x.double(), "dtype"), (lambda x: x[0], "shape")],
)
def test_a_second_one_with_another_inverse_is_refused(inverse, text):
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    with pytest.raises(ValueError, match=text):
        parametrize.register_parametrization(layer, "weight", Plus(inverse))
    assert len(layer.parametrizations.weight) == 1
    parametrize.register_parametrization(layer, "weight", Plus(inverse), unsafe=True)
    assert len(layer.parametrizations.weight) == 2


def test_modules_that_are_loaded_and_assigned():
    lazy = nn.LazyLinear(3)
    assert str(lazy.load_state_dict(nn.LazyLinear(3).state_dict())) == "<All keys matched successfully>"

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x):
            return x.triu()

    module = nn.Linear(3, 3)
    nn.utils.parametrize.register_parametrization(module, "weight", Symmetric())
    with pytest.raises(ValueError):
        module.weight = strata.eye(3, dtype=strata.float64)
    module.weight = strata.eye(3)
    assert module.weight.dtype == strata.float32
