"""strata.nn.utils: clipping, vectors, padded sequences."""

import pytest
import strata
from strata import nn
from strata.nn import utils


def with_grads(*rows):
    parameters = [nn.Parameter(strata.zeros(len(row))) for row in rows]
    for parameter, row in zip(parameters, rows, strict=True):
        parameter.grad = strata.tensor(row)
    return parameters


def test_clip_norm():
    parameters = with_grads([3.0, 0.0], [4.0])
    total = utils.clip_grad_norm_(parameters, 1.0)
    assert float(total) == pytest.approx(5.0)
    assert parameters[0].grad.tolist() == pytest.approx([0.6, 0.0]) and float(parameters[1].grad) == pytest.approx(0.8)
    assert float(utils.clip_grad_norm_(parameters, 10.0)) == pytest.approx(1.0)
    assert float(parameters[1].grad) == pytest.approx(0.8)
    assert float(utils.clip_grad_norm_(with_grads([3.0, -4.0]), 1.0, float("inf"))) == 4.0
    assert float(utils.clip_grad_norm_(with_grads([3.0, -4.0])[0], 1.0, 1.0)) == 7.0
    assert float(utils.clip_grad_norm_([nn.Parameter(strata.ones(1))], 1.0)) == 0.0


def test_clip_norm_refuses_non_finite():
    parameters = with_grads([float("nan")])
    with pytest.raises(
        RuntimeError, match=r"The total norm of order 2.0 for gradients from `parameters` is non-finite"
    ):
        utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_((p for p in ()), 1.0)


def test_total_norm_then_clip():
    parameters = with_grads([3.0], [4.0])
    total = utils.get_total_norm([p.grad for p in parameters])
    utils.clip_grads_with_norm_(parameters, 2.5, total)
    assert float(parameters[0].grad) == pytest.approx(1.5)


def test_clip_value():
    parameters = with_grads([3.0, -0.2], [-4.0])
    utils.clip_grad_value_(parameters, 0.5)
    assert parameters[0].grad.tolist() == pytest.approx([0.5, -0.2]) and float(parameters[1].grad) == -0.5


def test_vectors():
    layer = nn.Linear(2, 1)
    vector = utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (3,)
    utils.vector_to_parameters(strata.tensor([1.0, 2.0, 3.0]), layer.parameters())
    assert layer.weight.tolist() == [[1.0, 2.0]] and layer.bias.tolist() == [3.0]
    with pytest.raises(TypeError, match="but got: list"):
        utils.vector_to_parameters([1.0], layer.parameters())


def test_pad_sequence():
    rows = [strata.tensor([1.0, 2.0, 3.0], requires_grad=True), strata.tensor([4.0])]
    padded = utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1.0)
    assert padded.tolist() == [[1.0, 2.0, 3.0], [4.0, -1.0, -1.0]]
    padded.sum().backward()
    assert rows[0].grad.tolist() == [1.0, 1.0, 1.0]
    left = utils.rnn.pad_sequence([strata.ones(1, 2), strata.ones(2, 2)], padding_side="left")
    assert left.shape == (2, 2, 2) and left[:, 0].tolist() == [[0.0, 0.0], [1.0, 1.0]]
    back = utils.rnn.unpad_sequence(padded.detach(), strata.tensor([3, 1]), batch_first=True)
    assert [row.tolist() for row in back] == [[1.0, 2.0, 3.0], [4.0]]
    with pytest.raises(RuntimeError, match="Expected padding_side to be one of left or right, but got up"):
        utils.rnn.pad_sequence(rows, padding_side="up")
