"""What differs from PyTorch on purpose: refusals, state before capture."""

import math

import pytest
import strata
from strata import optim
from strata.optim._line_search import Point, _cubic_minimum


def leaf():
    return strata.tensor([1.0, 2.0], requires_grad=True)


def test_differentiable_is_refused():
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam"):
        with pytest.raises(NotImplementedError, match="differentiable=True is not provided: write the update"):
            getattr(optim, name)([leaf()], differentiable=True)


def test_lbfgs_says_what_it_takes():
    with pytest.raises(ValueError, match="parameter groups"):
        optim.LBFGS([{"params": [leaf()]}, {"params": [leaf()]}])
    with pytest.raises(RuntimeError, match="only 'strong_wolfe'"):
        optim.LBFGS([leaf()], line_search_fn="armijo").step(lambda: leaf().sum())
    with pytest.raises(ValueError, match="only supports 2D parameters"):
        optim.Muon([leaf()])


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


class Counting(optim.Optimizer):
    """An optimiser as users write them: step() and a state of their own."""

    @strata.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                p.sub_(p.grad, alpha=group["lr"])


def test_state_of_an_optimizer_of_ones_own_stays_as_it_is():
    a = leaf()
    a.grad = strata.ones(2)
    first = Counting([a], {"lr": 0.5})
    first.step()
    first.step()
    second = Counting([a], {"lr": 0.1})
    second.load_state_dict(first.state_dict())
    assert second.state[a]["step"] == 2 and isinstance(second.state[a]["step"], int)
    assert second.param_groups[0]["lr"] == 0.5 and a.tolist() == [0.0, 1.0]
    old = optim.Adam([a])
    old.step()
    saved = old.state_dict()
    saved["state"][0]["step"] = 7  # as older checkpoints have it
    old.load_state_dict(saved)
    assert isinstance(old.state[a]["step"], strata.Tensor) and float(old.state[a]["step"]) == 7


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((0.0, 0.0, 1.0), (1.0, 1.0, 1.0)),  # a line: no root, equal slopes
        ((0.0, 1e200, -1e200), (1.0, 2e200, 1e200)),
        ((0.0, 1.0, -1.0), (1.0, math.inf, 3.0)),
        ((0.0, 1.0, -1.0), (1.0, math.inf, math.nan)),
        ((1.0, 1.0, -1.0), (1.0, 1.0, -1.0)),
    ],
)
def test_where_a_cubic_has_no_minimum_the_middle_is_tried(a, b):
    a, b = (Point(at, loss, None, slope) for at, loss, slope in (a, b))
    assert _cubic_minimum(a, b, 0.25, 0.75) == 0.5


@pytest.mark.parametrize("beyond", [math.inf, math.nan])
def test_lbfgs_keeps_out_of_where_there_is_no_loss(beyond):
    x = strata.tensor([2.0], requires_grad=True)
    optimizer = optim.LBFGS([x], lr=8.0, max_iter=20, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (x - x.log()).sum() if float(x) > 0 else (x + beyond).sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    assert float(x) == pytest.approx(1.0, abs=1e-3)


def test_lbfgs_searches_no_longer_than_its_evaluations_last():
    """What PyTorch 2.13 does: a search has the evaluations that max_eval leaves."""
    x, calls = strata.tensor([-3.0, 5.0], requires_grad=True), []
    optimizer = optim.LBFGS([x], lr=100.0, max_iter=4, max_eval=2, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        calls.append(loss)
        return loss

    optimizer.step(closure)
    assert len(calls) == 3 and x.tolist() == [-3.0, 5.0]


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_takes_a_complex_parameter_as_its_two_parts(search):
    def ends(make, value_of):
        leaf, real = make.requires_grad_(), strata.tensor([1.5, -2.0], requires_grad=True)
        optimizer = optim.LBFGS([leaf, real], lr=0.5, max_iter=6, line_search_fn=search)

        def closure():
            optimizer.zero_grad()
            value = value_of(leaf)
            loss = ((value - (3 - 1j)) * real).abs().pow(2).sum() + (value.real * value.imag).sum() + (real * real).sum()
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)
        return value_of(leaf).detach(), real.detach()

    start = strata.tensor([1 + 1j, 2 - 1j])
    for ours, parts in zip(ends(start.clone(), lambda z: z), ends(strata.view_as_real(start.clone()), strata.view_as_complex), strict=True):
        assert strata.equal(ours, parts)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_a_parameter_given_twice_is_updated_twice_in_order(name):
    # Of many pieces, which threads must not take at once.
    seen = set()
    for _ in range(20):
        w = strata.zeros(1 << 17, requires_grad=True)
        w.grad = strata.ones_like(w)
        getattr(optim, name)([w, w], lr=0.5).step()
        seen |= set(w.detach().unique().tolist())
    assert len(seen) == 1, seen
