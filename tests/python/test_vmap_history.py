"""The history of vmap's results outside of it: the gradients of calls for each element, whichever way the batch was computed."""

from __future__ import annotations

import pytest
import strata
import strata.nn.functional as F
from strata import _vmap
from strata.func import functional_call, grad, hessian, jacfwd, jacrev, vjp, vmap
from strata.testing import assert_close

PLACES = strata.randn(5, 4, generator=strata.Generator().manual_seed(3), dtype=strata.float64)


def made():
    strata.manual_seed(1)
    module = strata.nn.Sequential(strata.nn.Linear(4, 6), strata.nn.Tanh(), strata.nn.Linear(6, 3)).double()
    weight = strata.randn(4, 4, dtype=strata.float64, requires_grad=True)
    return module, weight


def inner_grad(weight, x):
    x = x.detach().requires_grad_()
    return strata.autograd.grad((weight @ x).sigmoid().sum(), x, create_graph=True)[0]


def inner_backward(weight, x):
    x = x.detach().requires_grad_()
    (weight @ x).exp().sum().backward()
    return x.grad


def by_outside(weight, x):
    return strata.autograd.grad((weight @ x).tanh().prod(), weight, create_graph=True)[0] * 2


CASES = {
    "forward": lambda m, w: lambda x: m(x),
    "saved results": lambda m, w: lambda x: (w @ x).exp().softmax(0) * (w @ x).sigmoid().prod(),
    "non-leaf": lambda m, w: (lambda v: lambda x: (v @ x).tanh())(w * 2),
    "non-leaf, grad": lambda m, w: (lambda v: grad(lambda x: (v @ x).tanh().sum()))(w * 2),
    "grad": lambda m, w: grad(lambda x: m(x).sum()),
    "grad by all": lambda m, w: lambda x: grad(lambda p: functional_call(m, p, (x,)).square().sum())(dict(m.named_parameters())),
    "jacrev": lambda m, w: jacrev(m),
    "jacfwd": lambda m, w: jacfwd(m),
    "hessian": lambda m, w: hessian(lambda x: m(x).sum()),
    "vjp": lambda m, w: lambda x: vjp(m, x)[1](strata.ones(3, dtype=x.dtype))[0],
    "grad of grad": lambda m, w: grad(lambda x: grad(lambda y: (w @ y).sin().sum())(x).square().sum()),
    "autograd.grad": lambda m, w: lambda x: inner_grad(w, x),
    "backward": lambda m, w: lambda x: inner_backward(w, x),
    "by outside": lambda m, w: lambda x: by_outside(w, x),
    "vmap inside": lambda m, w: lambda x: vmap(grad(lambda row: (row * x).tanh().sum()))(w),
    "two results": lambda m, w: lambda x: (grad(lambda y: (w @ y).exp().sum())(x), m(x), x.argmax()),
    "cross entropy": lambda m, w: grad(lambda x: F.cross_entropy(m(x).unsqueeze(0), strata.tensor([1]))),
    "detached": lambda m, w: lambda x: grad(lambda y: (w.detach() @ y).exp().sum())(x) * w.sum(),
    "view of outside": lambda m, w: lambda x: grad(lambda y: (w.t().reshape(-1)[:4] * y).tanh().sum())(x),
}


def gradients(name, again: bool):
    module, weight = made()
    inputs = PLACES.clone().requires_grad_()
    results, _ = strata.utils._pytree.tree_flatten(vmap(CASES[name](module, weight))(inputs))
    learned = [r for r in results if r.requires_grad]
    if not learned:  # as what a backward pass inside has left in .grad
        return results, []
    score = sum((r * strata.arange(1.0, 1 + r.numel(), dtype=r.dtype).reshape(r.shape)).sin().sum() for r in learned)
    wanted = [inputs, weight, *module.parameters()]
    found = strata.autograd.grad(score, wanted, allow_unused=True, create_graph=again)
    if again:
        total = sum(g.square().sum() for g in found if g is not None and g.requires_grad)
        found = strata.autograd.grad(total, wanted, allow_unused=True) if isinstance(total, strata.Tensor) else []
    return results, [g for g in found if g is not None and bool(g.any())]


@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_a_loop(name, again, monkeypatch):
    results, found = gradients(name, again)
    monkeypatch.setattr(_vmap, "_at_once", lambda *_: None)
    expected, wanted = gradients(name, again)
    for ours, theirs in zip((*results, *found), (*expected, *wanted), strict=True):
        assert_close(ours.detach(), theirs.detach())


@pytest.mark.parametrize("name", ["forward", "saved results", "grad", "grad by all", "cross entropy", "two results", "jacrev"])
def test_one_call(name, monkeypatch):
    """And these values, at least, do not come from a loop."""
    module, weight = made()
    monkeypatch.setattr(_vmap, "_by_element", lambda *_: pytest.fail("a loop"))
    vmap(CASES[name](module, weight))(PLACES)


def test_what_is_written_before_backward_is_noticed():
    _, weight = made()
    result = vmap(grad(lambda x: (weight @ x).tanh().sum()))(PLACES)
    with strata.no_grad():
        weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_arguments_of_which_one_makes_another():
    x = PLACES.clone().requires_grad_()

    def score(p, a):
        return (p * a).sin().sum()

    for given, held in ((x[0], x), (x, x[0]), (x[0], x.detach()), (x[0].detach(), x)):
        for f in (lambda a: grad(score)(given, a), lambda a: grad(lambda p: score(p, a) * given.sum())(given)):  # noqa: B023
            (found,) = strata.autograd.grad(vmap(f)(held).cos().sum(), x, retain_graph=True) if given.dim() == 1 else (None,)
            if found is None:
                continue
            (wanted,) = strata.autograd.grad(strata.stack([f(row) for row in held]).cos().sum(), x, retain_graph=True)
            assert_close(found, wanted)
        both = vmap(grad(score), (None, 0))(given, held) if given.dim() == 1 else vmap(grad(score), (0, None))(given, held)
        pairs = [(given, row) for row in held] if given.dim() == 1 else [(row, held) for row in given]
        by_hand = strata.stack([grad(score)(p, a) for p, a in pairs])
        for ours, theirs in zip(*(strata.autograd.grad(r.cos().sum(), x, retain_graph=True) for r in (both, by_hand)), strict=True):
            assert_close(ours, theirs)


def test_draws_and_writes_are_noticed():
    _, weight = made()
    slope = grad(lambda x: (weight @ x).tanh().sum())
    with pytest.raises(RuntimeError, match="random"):
        vmap(lambda x: slope(x) + strata.rand(4))(PLACES)
    count = strata.zeros(1)

    def writes(x):
        slope(x)
        count.add_(1)
        raise ValueError("behind what it wrote")

    with pytest.raises(ValueError, match="behind"):
        vmap(writes)(PLACES)
    assert count.item() == 1


def test_chunks():
    _, weight = made()
    whole = vmap(grad(lambda x: (weight @ x).tanh().sum()))(PLACES)
    parts = vmap(grad(lambda x: (weight @ x).tanh().sum()), chunk_size=2)(PLACES)
    assert_close(parts, whole)
    for result in (whole, parts):
        weight.grad = None
        result.square().sum().backward()
        assert weight.grad is not None
