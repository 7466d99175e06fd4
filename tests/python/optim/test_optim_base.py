"""Optimizer: groups, state dictionaries, hooks, closures, errors."""

import copy

import pytest
import strata
from strata import nn, optim
from strata.optim.optimizer import register_optimizer_step_post_hook, required


def leaf(*values):
    return strata.tensor(values or (1.0, 2.0), requires_grad=True)


def with_grad(*values):
    parameter = leaf(*values)
    parameter.grad = strata.ones(len(parameter))
    return parameter


def test_groups_and_defaults():
    a, b = leaf(), leaf()
    optimizer = optim.SGD([{"params": a, "lr": 0.5}, {"params": [b]}], lr=0.1, momentum=0.9)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.1]
    optimizer.add_param_group({"params": [leaf()], "momentum": 0.0})
    assert optimizer.param_groups[2]["momentum"] == 0.0 and len(optimizer.param_groups) == 3


def test_named_parameters():
    optimizer = optim.SGD(nn.Linear(1, 1).named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="cannot add param group without names"):
        optimizer.add_param_group({"params": [leaf()]})


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: optim.SGD([], lr=0.1), ValueError, "optimizer got an empty parameter list"),
        (lambda: optim.SGD(leaf(), lr=0.1), TypeError, "should be an iterable of Tensors or dicts, but got"),
        (lambda: optim.SGD([3], lr=0.1), TypeError, "one of the params is int"),
        (lambda: optim.SGD([leaf() * 2], lr=0.1), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD([{"params": {leaf()}}], lr=0.1), TypeError, "the ordering of tensors in sets"),
        (lambda: optim.SGD([leaf()], lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
        (lambda: optim.SGD([leaf()], momentum=-1.0), ValueError, "Invalid momentum value: -1.0"),
        (lambda: optim.SGD([leaf()], weight_decay=-1.0), ValueError, "Invalid weight_decay value: -1.0"),
        (lambda: optim.SGD([leaf()], nesterov=True), ValueError, "Nesterov momentum requires a momentum"),
        (lambda: optim.SGD([leaf()], lr=strata.ones(2)), ValueError, "Tensor lr must be 1-element"),
        (lambda: optim.Adam([leaf()], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda: optim.Adam([leaf()], eps=-1.0), ValueError, "Invalid epsilon value: -1.0"),
        (lambda: optim.Adam([leaf()], fused=True, foreach=True), RuntimeError, "cannot be `True` together"),
        (lambda: optim.Adadelta([leaf()], rho=2.0), ValueError, "Invalid rho value: 2.0"),
        (lambda: optim.RMSprop([leaf()], alpha=-1.0), ValueError, "Invalid alpha value: -1.0"),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error, match=text):
        act()


def test_a_parameter_in_two_groups():
    a = leaf()
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optim.SGD([{"params": [a]}, {"params": [a]}], lr=0.1)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([a, a], lr=0.1)


def test_repr():
    assert repr(optim.SGD([leaf()], lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n"
        "    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)"
    )


def test_zero_grad():
    a = with_grad()
    optimizer = optim.SGD([a], lr=0.1)
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert a.grad is None


def test_closure():
    a = leaf(3.0)
    optimizer = optim.SGD([a], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (a * a).sum()
        loss.backward()
        return loss

    with strata.no_grad():
        assert float(optimizer.step(closure)) == 9.0
    assert a.tolist() == pytest.approx([2.4])


def test_step_leaves_no_history():
    a = with_grad()
    optim.Adam([a]).step()
    assert a.is_leaf and a.requires_grad and a.grad_fn is None


def test_step_hooks():
    a, log = with_grad(), []
    optimizer = optim.SGD([a], lr=0.1)
    handle = optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append("pre"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("post"))
    everywhere = register_optimizer_step_post_hook(lambda o, args, kwargs: log.append("all"))
    optimizer.step()
    handle.remove()
    everywhere.remove()
    optimizer.step()
    assert log == ["pre", "post", "all", "post"]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        optimizer.step()


def test_state_dict_hooks():
    a, log = with_grad(), []
    optimizer = optim.SGD([a], lr=0.1)
    optimizer.register_state_dict_pre_hook(lambda o: log.append("pre"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "extra": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: log.append(state.pop("extra")))
    optimizer.register_load_state_dict_post_hook(lambda o: log.append("loaded"))
    optimizer.load_state_dict(optimizer.state_dict())
    assert log == ["pre", 1, "loaded"]


def test_state_dict_layout():
    a, b = with_grad(), with_grad()
    optimizer = optim.Adam([{"params": [a]}, {"params": [b]}], lr=0.1, amsgrad=True)
    assert optimizer.state_dict()["state"] == {}
    optimizer.step()
    state = optimizer.state_dict()
    assert [group["params"] for group in state["param_groups"]] == [[0], [1]]
    assert list(state["state"]) == [0, 1]
    assert list(state["state"][0]) == ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
    step = state["state"][0]["step"]
    assert step.dtype == strata.float32 and step.shape == () and float(step) == 1.0
    assert optim.SGD([with_grad()], lr=0.1).state_dict()["state"] == {}


def test_loading_casts_and_checks():
    a = with_grad()
    source = optim.Adam([a], lr=0.3)
    source.step()
    target = optim.Adam([a.detach().double().requires_grad_()], lr=0.1)
    target.load_state_dict(source.state_dict())
    (state,) = target.state.values()
    assert state["exp_avg"].dtype == strata.float64 and state["step"].dtype == strata.float32
    assert target.param_groups[0]["lr"] == 0.3
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optim.Adam([{"params": [leaf()]}, {"params": [leaf()]}]).load_state_dict(source.state_dict())
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optim.Adam([leaf(), leaf()]).load_state_dict(source.state_dict())


def test_deepcopy():
    a = with_grad()
    optimizer = optim.SGD([a], lr=0.1, momentum=0.9)
    optimizer.step()
    other = copy.deepcopy(optimizer)
    assert other.param_groups[0]["params"][0] is not a and len(other.state) == 1
    other.param_groups[0]["params"][0].grad = strata.ones(2)
    other.step()


def test_own_optimizer():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr=required):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            with strata.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p.sub_(p.grad.sign() * group["lr"])

    a = with_grad(1.0)
    Sign([a], lr=0.25).step()
    assert a.tolist() == [0.75]
    with pytest.raises(ValueError, match="didn't specify a value of required optimization parameter lr"):
        Sign([leaf()])


def test_mixed_dtypes_in_one_group():
    a = with_grad(1.0)
    b = strata.tensor([1.0], dtype=strata.float64, requires_grad=True)
    b.grad = strata.ones(1, dtype=strata.float64)
    optim.Adam([a, b], lr=0.1).step()
    assert float(a) == pytest.approx(0.9) and float(b) == pytest.approx(0.9)


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad])
def test_fused_takes_real_floats_alone(kind):
    z = strata.ones(2, dtype=strata.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="`fused=True` requires .* floating point Tensors .* got strata.complex64"):
        kind([z], lr=0.1, fused=True)
    kind([leaf()], lr=0.1, fused=True)
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[0, 1\]\]"):
        optim.SparseAdam([leaf(), z])
    z.grad = strata.ones_like(z)
    kind([z], lr=0.1).step()
    assert (z.detach().real < 1).all()
