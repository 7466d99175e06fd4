"""swap_tensors: each object is what the other was."""

import sys
import weakref

import pytest
import strata
from strata import nn
from strata.utils import swap_tensors


class Named(strata.Tensor):
    pass


def test_values_classes_and_attributes():
    a, b = strata.ones(2), nn.Parameter(strata.zeros(3))
    a.note = "a"
    (b * 2).sum().backward()
    swap_tensors(a, b)
    assert type(a) is nn.Parameter and a.tolist() == [0.0, 0.0, 0.0] and a.requires_grad and a.grad.tolist() == [2.0, 2.0, 2.0] and not vars(a)
    assert type(b) is strata.Tensor and b.tolist() == [1.0, 1.0] and not b.requires_grad and b.note == "a"
    swap_tensors(a, a)
    assert a.tolist() == [0.0, 0.0, 0.0]


def test_who_holds_an_object_sees_it():
    model = nn.Linear(2, 2)
    weight, held = model.weight, [model.weight]
    swap_tensors(weight, nn.Parameter(strata.full((2, 2), 7.0)))
    assert held[0] is model.weight is weight
    model(strata.ones(1, 2)).sum().backward()
    assert weight.tolist() == [[7.0, 7.0], [7.0, 7.0]] and weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_other_classes():
    a, b = strata.ones(2).as_subclass(Named), strata.zeros(2)
    swap_tensors(a, b)
    assert type(a) is strata.Tensor and type(b) is Named and type(b + 1) is Named


def test_what_others_hold_is_refused():
    a, b = strata.ones(2, requires_grad=True), strata.ones(2)
    y = a * a
    with pytest.raises(RuntimeError, match="Expected use_count of at most 1"):
        swap_tensors(a, b)
    del y
    swap_tensors(a, b)
    reference = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref"):
        swap_tensors(b, a)
    assert reference() is a
    with pytest.raises(TypeError, match="expected t1 to be a tensor"):
        swap_tensors(3, b)


def test_none_is_given_not_lent():
    a, b = strata.ones(2), strata.zeros(3)
    before = sys.getrefcount(None)
    for _ in range(1000):
        swap_tensors(a, b)
    assert sys.getrefcount(None) > before - 500
