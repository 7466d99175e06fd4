"""What differs from PyTorch on purpose: refusals, state before capture."""

import pytest
import strata
from strata import optim


def leaf():
    return strata.tensor([1.0, 2.0], requires_grad=True)


def test_differentiable_is_refused():
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam"):
        with pytest.raises(NotImplementedError, match="differentiable=True is not provided: write the update"):
            getattr(optim, name)([leaf()], differentiable=True)


def test_missing_optimizers_name_the_way_out():
    with pytest.raises(NotImplementedError, match="LBFGS is not provided: use SGD"):
        optim.LBFGS([leaf()])


def test_init_state_makes_all_of_it():
    a, b = leaf(), leaf().detach()
    optimizer = optim.AdamW([a, b])
    optimizer.init_state()
    assert list(optimizer.state) == [a] and float(optimizer.state[a]["step"]) == 0.0
    kept = optimizer.state[a]["exp_avg"]
    a.grad = strata.ones(2)
    optimizer.step()
    assert optimizer.state[a]["exp_avg"] is kept and float(kept[0]) != 0.0


def test_names_are_listed():
    assert {"SGD", "Adam", "lr_scheduler"} <= set(dir(optim))
    for name in optim.__all__:
        assert getattr(optim, name).__name__ == name
