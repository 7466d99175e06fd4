"""Loaded traces take other batches, and other heights, widths and lengths, than those that were traced."""

from __future__ import annotations

import copy

import pytest
import strata
from strata import nn


class Sequences(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 6, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]


class Nests(nn.Module):
    def forward(self, x):
        return {"twice": x * 2, "flat": [x.flatten(1), x.shape[0] * x.sum(0)]}


def image():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))


CASES = {
    "images": (image, (2, 3, 8, 8), [(5, 3, 8, 8), (1, 3, 12, 9), (2, 3, 20, 30)]),
    "one image": (image, (1, 3, 8, 8), [(5, 3, 8, 8), (2, 3, 12, 9)]),
    "attention": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 5, 8), [(3, 5, 8), (1, 7, 8), (4, 9, 8)]),
    "recurrent": (Sequences, (2, 4, 8), [(5, 4, 8), (1, 4, 8)]),
    "nests": (Nests, (2, 3, 4), [(6, 3, 4)]),
}


def flat(result):
    return strata.utils._pytree.tree_leaves(result)


@pytest.mark.parametrize("name", CASES)
def test_other_sizes(name, tmp_path):
    make, size, others = CASES[name]
    module = make().eval()
    loaded = strata.jit.trace(module, strata.randn(size))
    for _ in range(2):  # what is loaded is saved in its turn
        loaded.save(tmp_path / "module")
        loaded = strata.jit.load(tmp_path / "module")
        for other in others:
            x = strata.randn(other).requires_grad_()
            y = x.detach().clone().requires_grad_()
            got, want = flat(loaded(x)), flat(module(y))
            assert all(strata.equal(a, b) for a, b in zip(got, want, strict=True))
            one, two = (strata.autograd.grad(sum(t.sin().sum() for t in r), s)[0] for r, s in ((got, x), (want, y)))
            assert strata.equal(one, two)


def test_integers_and_pairs(tmp_path):
    table = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 3))
    strata.jit.trace(table, strata.randint(0, 20, (2, 6))).save(tmp_path / "a")
    index = strata.randint(0, 20, (4, 9))
    assert strata.equal(strata.jit.load(tmp_path / "a")(index), table(index))
    strata.jit.trace(lambda a, b: a @ b, (strata.randn(3, 4), strata.randn(4, 5))).save(tmp_path / "b")
    a, b = strata.randn(7, 4), strata.randn(4, 5)
    assert strata.equal(strata.jit.load(tmp_path / "b")(a, b), a @ b)


def test_one_set_of_tensors(tmp_path):
    module = image().eval()
    strata.jit.trace(module, strata.randn(2, 3, 8, 8)).save(tmp_path / "module")
    loaded = strata.jit.load(tmp_path / "module")
    x = strata.randn(5, 3, 8, 8)
    loaded(x)
    with strata.no_grad():
        for p in [*loaded.parameters(), *module.parameters()]:
            p.mul_(1.5)
    assert strata.equal(loaded(x), module(x))
    other = image().state_dict()
    loaded.load_state_dict(other), module.load_state_dict(other)
    assert strata.equal(loaded(x), module(x))


def test_training_mode(tmp_path):
    module = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5))
    strata.jit.trace(module, strata.randn(4, 4), check_trace=False).save(tmp_path / "module")
    loaded, again, x = strata.jit.load(tmp_path / "module"), copy.deepcopy(module), strata.randn(7, 4)
    strata.manual_seed(1)
    got = loaded(x)
    strata.manual_seed(1)
    assert strata.equal(got, again(x))
    assert strata.equal(dict(loaded.named_buffers())["0.running_mean"], again[0].running_mean)


def test_what_values_decide_has_no_program(tmp_path):
    with pytest.warns(strata.jit.TracerWarning):
        strata.jit.trace(lambda x: x * 2 if x.sum() > 0 else -x, strata.ones(2, 3)).save(tmp_path / "f")
    with pytest.raises(ValueError, match="save keeps the graph of each form"):
        strata.jit.load(tmp_path / "f")(strata.ones(5, 3))


def test_python_that_is_another_by_now(tmp_path):
    """What runs for other sizes is what was traced, or nothing."""
    factor = [2.0]
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    for change, made in (
        (lambda: factor.__setitem__(0, 5.0), strata.jit.trace(lambda x: x * factor[0], strata.ones(2, 4))),
        (lambda: module.__setitem__(1, nn.Identity()), strata.jit.trace(module, strata.ones(2, 4))),
    ):
        change()
        made.save(tmp_path / "f")
        with pytest.raises(ValueError, match="save keeps the graph of each form"):
            strata.jit.load(tmp_path / "f")(strata.ones(3, 4))


def test_modes_of_the_first_call(tmp_path):
    module = nn.Linear(4, 4)
    strata.jit.trace(module, strata.randn(2, 4)).save(tmp_path / "a")
    for first in (strata.no_grad, strata.inference_mode, lambda: strata.autocast("cpu")):
        loaded, x = strata.jit.load(tmp_path / "a"), strata.randn(3, 4)
        with first():
            try:
                loaded(x)
            except RuntimeError as error:
                assert "autocast was off when the graph was captured" in str(error)
        result = loaded(x)
        assert result.requires_grad and strata.equal(result, module(x))
        (got,) = strata.autograd.grad(result.sum(), loaded.weight)
        (want,) = strata.autograd.grad(module(x).sum(), module.weight)
        assert strata.equal(got, want)
    with strata.inference_mode():
        assert strata.equal(strata.jit.load(tmp_path / "a")(strata.ones(5, 4)), module(strata.ones(5, 4)))
    with strata.no_grad():
        traced = strata.jit.trace(module, strata.randn(2, 4))
    assert traced(strata.randn(2, 4)).requires_grad


def test_tensors_of_a_loaded_trace_stay(tmp_path):
    strata.jit.trace(nn.BatchNorm1d(4), strata.randn(3, 4)).save(tmp_path / "a")
    loaded = strata.jit.load(tmp_path / "a")
    for name, value in (("weight", nn.Parameter(strata.zeros(4))), ("running_mean", strata.zeros(4))):
        with pytest.raises(RuntimeError, match=f"BatchNorm1d.{name}: a loaded trace runs with the tensors that it has"):
            setattr(loaded, name, value)
    loaded.weight = loaded.weight
    loaded.note = "others are free"
