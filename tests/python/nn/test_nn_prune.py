"""Pruning by masks: what goes, how often, and for good."""

import copy

import pytest
import strata
from strata import nn
from strata.nn.utils import prune


def layer():
    made = nn.Linear(4, 3)
    with strata.no_grad():
        made.weight.copy_(strata.arange(12.0).reshape(3, 4) - 3.4)
    return made


def test_smallest_go_and_come_back_as_a_parameter():
    module = layer()
    weight = module.weight
    assert prune.l1_unstructured(module, "weight", amount=0.25) is module
    assert [n for n, _ in module.named_parameters()] == ["bias", "weight_orig"]
    assert [n for n, _ in module.named_buffers()] == ["weight_mask"] and module.weight_orig is weight
    assert module.weight_mask.tolist() == [[1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1]]
    module(strata.ones(1, 4)).sum().backward()
    assert weight.grad[0].tolist() == [1, 1, 0, 0] and prune.is_pruned(module)
    prune.l1_unstructured(module, "weight", amount=2)  # of what is left
    assert int(module.weight_mask.sum()) == 7 and len(module._forward_pre_hooks) == 1
    pruned = module.weight.detach().clone()
    prune.remove(module, "weight")
    assert module.weight is weight and weight.equal(pruned) and not prune.is_pruned(module)
    assert list(module.state_dict()) == ["bias", "weight"]


def test_slices_after_elements():
    module = prune.custom_from_mask(layer(), "weight", strata.tensor([[1, 0, 1, 1]] * 3))
    prune.ln_structured(module, "weight", amount=1, n=2, dim=0)
    assert module.weight_mask.sum(1).tolist() == [0, 3, 3]
    prune.ln_structured(module, "weight", amount=0.5, n=2, dim=0)
    assert module.weight_mask.sum(1).tolist() in ([0, 0, 3], [0, 3, 3])
    prune.random_structured(module, "weight", amount=1, dim=1)
    assert int((module.weight_mask.sum(0) == 0).sum()) == 2


def test_together_by_chance_and_by_importance():
    one, two = layer(), layer()
    with strata.no_grad():
        two.weight.mul_(100)
    prune.global_unstructured([(one, "weight"), (two, "weight")], prune.L1Unstructured, amount=12)
    assert int(one.weight_mask.sum()) <= 2 and int(two.weight_mask.sum()) >= 10
    assert int((prune.random_unstructured(layer(), "weight", 5).weight_mask == 0).sum()) == 5
    kept = prune.l1_unstructured(layer(), "weight", 11, importance_scores=strata.arange(12.0).reshape(3, 4))
    assert kept.weight_mask.reshape(-1).tolist() == [0] * 11 + [1]
    assert prune.identity(layer(), "bias").bias_mask.tolist() == [1, 1, 1]
    assert prune.L1Unstructured(0.5).prune(strata.tensor([1.0, -2.0])).tolist() == [0, -2]


def test_a_method_of_ones_own():
    class Every(prune.BasePruningMethod):
        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    module = layer()
    Every.apply(module, "bias")
    assert module.bias_mask.tolist() == [0, 1, 0]
    fresh = copy.deepcopy(nn.Sequential(layer()))
    assert not prune.is_pruned(fresh)


def test_refusals():
    for amount, error, text in ((1.5, ValueError, "range"), (99, ValueError, "smaller"), ("a", TypeError, "int or float")):
        with pytest.raises(error, match=text):
            prune.l1_unstructured(layer(), "weight", amount)
    with pytest.raises(ValueError, match="has to be pruned before"):
        prune.remove(layer(), "weight")
    with pytest.raises(ValueError, match="multidimensional"):
        prune.ln_structured(layer(), "bias", 1, n=1, dim=0)
    with pytest.raises(TypeError, match='Only "unstructured"'):
        prune.global_unstructured([(layer(), "weight")], prune.LnStructured, amount=1, n=1)


class Short(prune.BasePruningMethod):
    def compute_mask(self, t, default_mask):
        return strata.ones(t.numel() - 1)


def test_what_is_refused_changes_nothing():
    module = layer()
    names = list(module.state_dict())
    with pytest.raises(ValueError, match="smaller"):
        prune.l1_unstructured(module, "weight", 99)
    with pytest.raises(ValueError, match="multidimensional"):
        prune.ln_structured(module, "bias", 1, n=1, dim=0)
    with pytest.raises(RuntimeError, match="size of tensor"):
        prune.custom_from_mask(module, "weight", strata.ones(7))
    with pytest.raises(RuntimeError, match="broadcast"):
        Short.apply(module, "weight")
    assert list(module.state_dict()) == names and not prune.is_pruned(module)
    assert module(strata.ones(1, 4)).shape == (1, 3)
    prune.l1_unstructured(module, "weight", 2)
    with pytest.raises(ValueError, match="smaller"):
        prune.l1_unstructured(module, "weight", 11)
    assert prune.is_pruned(module) and len(module._forward_pre_hooks) == 1
    assert prune.remove(module, "weight").weight.eq(0).sum() == 2


def test_a_chain_of_methods_is_a_sequence():
    layer = nn.Linear(4, 4)
    prune.random_unstructured(layer, "weight", 0.3)
    prune.l1_unstructured(layer, "weight", 2)
    (hook,) = layer._forward_pre_hooks.values()
    assert [type(m).__name__ for m in hook] == ["RandomUnstructured", "L1Unstructured"] and len(hook) == 2 and hook[1].amount == 2
