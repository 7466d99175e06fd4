"""Rules that hold across operators: what numbers do to dtypes, in-place forms of composites, out=, other names."""

import itertools
import math

import pytest
import strata
from strata import nn
from strata.autograd import gradcheck, gradgradcheck

F = nn.functional


def test_alpha_takes_no_part_in_promotion():
    yes = strata.tensor([True, False])
    assert strata.add(yes, yes, alpha=True).dtype == strata.bool
    one = strata.ones(2, dtype=strata.int32)
    assert strata.addcmul(one, one, one, value=2).dtype == strata.int32
    with pytest.raises(RuntimeError, match="alpha must not be a floating point"):
        strata.add(one, one, alpha=0.5)
    with pytest.raises(RuntimeError, match="Boolean alpha"):
        strata.add(one, one, alpha=True)
    with pytest.raises(RuntimeError, match="complex"):
        strata.ones(2).add(1, alpha=1j)


def test_bools_have_no_difference():
    yes = strata.tensor([True, False])
    with pytest.raises(RuntimeError, match="two bool tensors"):
        strata.sub(yes, yes)
    with pytest.raises(RuntimeError, match="a bool tensor"):
        yes - strata.ones(2)


@pytest.mark.parametrize(
    "function",
    [lambda x: F.celu_(x, 2.0), lambda x: F.selu_(x), lambda x: x.true_divide_(2.0), lambda x: x.square_(),
     lambda x: x.clamp_(strata.tensor(-0.5), strata.tensor(0.5)), lambda x: x.div_(0.3, rounding_mode="floor"),
     lambda x: F.rrelu(x, inplace=True)],
    ids=["celu_", "selu_", "true_divide_", "square_", "clamp_", "div_", "rrelu"],
)
def test_composites_in_place_keep_the_gradient(function):
    strata.manual_seed(0)
    x = strata.randn(5, dtype=strata.float64, requires_grad=True)
    assert gradcheck(lambda x: function(x.clone()), (x,))
    with pytest.raises(RuntimeError, match="leaf"):
        function(x)


@pytest.mark.parametrize("name", ["sqrt", "exp", "log", "sin", "tan", "tanh", "asin", "acosh", "atanh", "sigmoid", "sinc"])
def test_complex_second_derivatives(name):
    strata.manual_seed(1)
    z = strata.randn(3, dtype=strata.complex128) * 0.6 + (0.3 + 0.4j)
    assert gradgradcheck(getattr(strata, name), (z.requires_grad_(),))


def test_clamp_by_tensors_gives_the_gradient_to_one():
    x, bound = strata.ones(3, requires_grad=True), strata.ones(3, requires_grad=True)
    x.clamp_max(bound).sum().backward()
    assert x.grad.tolist() == [1, 1, 1] and bound.grad.tolist() == [0, 0, 0]


def test_out_of_another_dtype():
    x = strata.tensor([1.5, -2.5])
    wide = strata.empty(2, dtype=strata.float64)
    assert strata.exp(x, out=wide) is wide
    for name in ("abs", "floor", "sign", "neg", "round"):
        with pytest.raises(RuntimeError, match=r"expected dtype strata\.float32"):
            getattr(strata, name)(x, out=wide)
    with pytest.raises(RuntimeError, match="can't be cast"):
        strata.add(x, 1, out=strata.empty(2, dtype=strata.int64))
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        strata.true_divide(x.requires_grad_(), 2, out=strata.empty(2))


def test_other_names():
    x = strata.tensor([0.25, -0.5])
    for name, alias in (("asin", "arcsin"), ("neg", "negative"), ("abs", "absolute"), ("trunc", "fix")):
        assert strata.equal(getattr(strata, alias)(x), getattr(strata, name)(x))
        assert strata.equal(getattr(x.clone(), alias + "_")(), getattr(x, name)())
    assert strata.multiply(x, 2).tolist() == [0.5, -1] and x.greater(0).tolist() == [True, False]
    assert x.where(strata.tensor([True, False]), 7.0).tolist() == [0.25, 7]


def margin_by_loops(x, target):
    total = 0.0
    for row, wanted in zip(x.tolist(), target.tolist(), strict=True):
        wanted = wanted[: wanted.index(-1)] if -1 in wanted else wanted
        others = [v for c, v in enumerate(row) if c not in wanted]
        total += sum(max(0.0, 1 - row[t] + v) for t in wanted for v in others) / len(row)
    return total / len(x)


def test_multilabel_margin_loss():
    strata.manual_seed(2)
    x = strata.randn(4, 5, dtype=strata.float64)
    target = strata.tensor([[1, 3, -1, 0, 2], [0, -1, -1, -1, -1], [4, 2, 1, 0, 3], [-1, 1, 2, 3, 4]])
    assert F.multilabel_margin_loss(x, target).item() == pytest.approx(margin_by_loops(x, target))
    assert nn.MultiLabelMarginLoss(reduction="none")(x, target).shape == (4,)
    assert F.multilabel_margin_loss(x[0], target[0]).dim() == 0
    assert gradcheck(lambda x: F.multilabel_margin_loss(x, target), (x.requires_grad_(),))
    with pytest.raises(RuntimeError, match="inconsistent target size"):
        F.multilabel_margin_loss(x, target[:2])


def test_multi_margin_loss_of_one_sample():
    x = strata.tensor([0.1, 0.2, 0.4, 0.8])
    loss = F.multi_margin_loss(x, strata.tensor([3]), reduction="none")
    assert loss.shape == (1,) and loss.item() == pytest.approx((0.3 + 0.4 + 0.6) / 4)
    assert F.multi_margin_loss(x, strata.tensor(3)).item() == pytest.approx((0.3 + 0.4 + 0.6) / 4)
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        F.multi_margin_loss(x, strata.tensor(3), reduction="abc")


def test_rrelu():
    strata.manual_seed(3)
    x = strata.randn(1000)
    y = nn.RReLU(0.1, 0.3)(x)
    slope = (y / x)[x < 0]
    assert strata.equal(y[x > 0], x[x > 0]) and slope.min() >= 0.1 and slope.max() <= 0.3 and slope.std() > 0.03
    assert strata.allclose(F.rrelu(x, 0.1, 0.3), F.leaky_relu(x, 0.2))


def ctc_by_paths(probabilities, target, blank=0):
    """The sum over all label paths that collapse to the target."""
    time, classes = probabilities.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=time):
        kept = [c for i, c in enumerate(path) if i == 0 or c != path[i - 1]]
        if [c for c in kept if c != blank] == target:
            total += math.prod(probabilities[t, c].item() for t, c in enumerate(path))
    return -math.log(total)


@pytest.mark.parametrize("target", [[1, 2], [1, 1], [2], [1, 2, 1]])
def test_ctc_loss_sums_over_alignments(target):
    strata.manual_seed(4)
    logits = strata.randn(5, 1, 3, dtype=strata.float64)
    loss = F.ctc_loss(logits.log_softmax(2), strata.tensor([target]), [5], [len(target)], reduction="sum")
    assert loss.item() == pytest.approx(ctc_by_paths(logits.softmax(2)[:, 0], target))
    assert gradcheck(
        lambda x: F.ctc_loss(x.log_softmax(2), strata.tensor([target]), [5], [len(target)]), (logits.requires_grad_(),)
    )


def test_ctc_loss_of_batches():
    strata.manual_seed(5)
    logs = strata.randn(6, 2, 4).log_softmax(2)
    rows, lengths = strata.tensor([[1, 2, 3], [2, 0, 0]]), strata.tensor([3, 1])
    loss = nn.CTCLoss(reduction="none")(logs, rows, strata.tensor([6, 4]), lengths)
    assert loss[1].item() == pytest.approx(F.ctc_loss(logs[:4, 1], rows[1, :1], (4,), (1,), reduction="sum").item())
    joined = F.ctc_loss(logs, strata.tensor([1, 2, 3, 2]), (6, 4), (3, 1))
    assert joined.item() == pytest.approx((loss / lengths).mean().item())
    short = F.ctc_loss(logs, rows, (2, 4), (3, 1), reduction="none")
    assert short[0] == float("inf") and F.ctc_loss(logs, rows, (2, 4), (3, 1), reduction="none", zero_infinity=True)[0] == 0
    with pytest.raises(RuntimeError, match="input_lengths"):
        F.ctc_loss(logs, rows, (7, 4), (3, 1))
