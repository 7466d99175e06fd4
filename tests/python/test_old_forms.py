"""Calls in forms that PyTorch has deprecated: numbers among the tensors."""

import pytest
import strata


@pytest.fixture
def m():
    return strata.arange(4.0).reshape(2, 2)


def ones(*sizes):
    return strata.ones(*sizes)


CASES = [
    (lambda x: strata.add(x, 3, ones(2, 2)), lambda x: x + 3),
    (lambda x: x.add(3, ones(2, 2)), lambda x: x + 3),
    (lambda x: x.clone().add_(3, ones(2, 2)), lambda x: x + 3),
    (lambda x: x.clone().sub_(0.5, ones(2, 2)), lambda x: x - 0.5),
    (lambda x: strata.addcmul(x, 2, x, x), lambda x: x + 2 * x * x),
    (lambda x: x.clone().addcmul_(-1, x, x), lambda x: x - x * x),
    (lambda x: x.clone().addcdiv_(2.0, x, ones(2, 2)), lambda x: 3 * x),
    (lambda x: strata.addmm(2, x, 3, x, x), lambda x: 2 * x + 3 * (x @ x)),
    (lambda x: strata.addmm(2, x, x, x), lambda x: 2 * x + x @ x),
    (lambda x: x.addmm(2, 3, x, x), lambda x: 2 * x + 3 * (x @ x)),
    (lambda x: x.addmm(2, x, x), lambda x: 2 * x + x @ x),
    (lambda x: x[0].addmv(2, 3, x, x[1]), lambda x: 2 * x[0] + 3 * (x @ x[1])),
    (lambda x: x.addr(2, 3, x[0], x[1]), lambda x: 2 * x + 3 * strata.outer(x[0], x[1])),
    (lambda x: strata.baddbmm(2, x[None], 3, x[None], x[None]), lambda x: (2 * x + 3 * (x @ x))[None]),
    (lambda x: x.addbmm(2, 3, x[None], x[None]), lambda x: 2 * x + 3 * (x @ x)),
    (lambda x: strata.add(x, 3, ones(2, 2), out=strata.empty(2, 2)), lambda x: x + 3),
]


@pytest.mark.parametrize("old, new", CASES)
def test_numbers_become_keywords(m, old, new):
    with pytest.warns(UserWarning, match="This overload of .* is deprecated"):
        found = old(m)
    assert found.tolist() == new(m).tolist()


def test_a_training_step_as_it_used_to_be_written(m):
    p = m.clone().requires_grad_()
    (p * p).sum().backward()
    with pytest.warns(UserWarning, match=r"add_ is deprecated: numbers come behind the tensors, by name \(alpha=\)"):
        p.data.add_(-0.5, p.grad.data)
    assert p.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_other_numbers_are_refused(m):
    for call in (lambda: strata.add(m, m, 3), lambda: m.mul_(2, m), lambda: m.add_(1, 2, m), lambda: m.addmm(1, 2, 3, m, m)):
        with pytest.raises(TypeError):
            call()
