"""strata.nn.functional: random functions by their properties, errors, warnings, and names that are missing."""

import inspect
import math
import types

import pytest
import strata
import strata.nn.functional as F
from strata import nn


def test_dropout_keeps_the_mean():
    x = strata.ones(100, 100)
    y = F.dropout(x, 0.25)
    kept = float((y != 0).to(strata.float32).mean())
    assert kept == pytest.approx(0.75, abs=0.02) and float(y.max()) == pytest.approx(1 / 0.75)
    assert F.dropout(x, 0.25, training=False) is x or bool((F.dropout(x, 0.25, training=False) == x).all())
    assert float(F.dropout(x, 1.0).sum()) == 0.0


@pytest.mark.parametrize("name", ["dropout1d", "dropout2d", "dropout3d"])
def test_channel_dropout(name):
    rank = int(name[-2])
    x = strata.ones(*(20, 30, *[3] * rank))
    y = getattr(F, name)(x, 0.5).reshape(20, 30, -1)
    assert bool((y == y[:, :, :1]).all())  # a channel is dropped as a whole
    assert float((y[:, :, 0] == 0).to(strata.float32).mean()) == pytest.approx(0.5, abs=0.07)


def test_alpha_dropout_keeps_moments():
    x = strata.randn(300, 300)
    y = F.alpha_dropout(x, 0.3, training=True)
    assert float(y.mean()) == pytest.approx(0.0, abs=0.02) and float(y.std()) == pytest.approx(1.0, abs=0.02)
    z = F.feature_alpha_dropout(strata.zeros(4, 50, 3), 0.5, training=True)
    assert bool((z == z[:, :, :1]).all())


def test_dropout_in_place():
    x = strata.ones(50)
    assert F.dropout(x, 0.5, inplace=True) is x and float((x == 0).to(strata.float32).sum()) > 0


def test_gumbel_softmax():
    logits = strata.zeros(200, 4, requires_grad=True)
    hard = F.gumbel_softmax(logits, hard=True)
    assert hard.sum(1).tolist() == pytest.approx([1.0] * 200) and float(hard.max()) == pytest.approx(1.0)
    (F.gumbel_softmax(logits, tau=2.0) * strata.arange(4.0)).sum().backward()
    assert float(logits.grad.abs().sum()) > 0


def test_inplace_activations():
    for name in ("relu", "elu", "selu", "celu", "leaky_relu", "hardtanh", "silu", "mish", "hardswish", "hardsigmoid"):
        x = strata.linspace(-4.0, 4.0, 9)
        expected = getattr(F, name)(x).tolist()
        assert getattr(F, name)(x, inplace=True) is x and x.tolist() == expected


def test_functions_of_distance():
    x = strata.tensor([[3.0, 4.0], [0.0, 0.0]], requires_grad=True)
    y = F.normalize(x)
    assert y.tolist() == [pytest.approx([0.6, 0.8]), [0.0, 0.0]]
    y.sum().backward()
    assert float(x.grad[0, 0]) == pytest.approx(0.032, rel=1e-3)
    assert F.one_hot(strata.tensor([0, 2]), 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.pad(strata.ones(1, 2), (1, 0), value=5.0).tolist() == [[5.0, 1.0, 1.0]]


def test_weighted_losses():
    x, y, w = strata.tensor([1.0, 2.0]), strata.tensor([0.0, 0.0]), strata.tensor([1.0, 3.0])
    assert float(F.mse_loss(x, y, weight=w)) == pytest.approx(13 / 4)
    assert float(F.l1_loss(x, y, weight=w)) == pytest.approx(7 / 4)
    assert float(F.huber_loss(x, y, weight=w)) == pytest.approx((0.5 + 3 * 1.5) / 2)


def test_attention_over_heads():
    q = strata.arange(24.0).reshape(1, 2, 3, 4) / 10
    out = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    assert out.shape == q.shape and out[0, 0, 0].tolist() == pytest.approx(q[0, 0, 0].tolist())


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: F.dropout(strata.ones(1), 1.5), ValueError, "dropout probability has to be between 0 and 1"),
        (lambda: F.hardtanh(strata.ones(1), 1, 0), ValueError, "min_val cannot be greater than max_val"),
        (lambda: F.glu(strata.tensor(1.0)), RuntimeError, "halving size must be even"),
        (lambda: F.batch_norm(strata.ones(1, 3), None, None, training=True), ValueError, "more than 1 value per chan"),
        (lambda: F.mse_loss(strata.ones(1), strata.ones(1), reduction="x"), ValueError, "x is not a valid value for"),
        (lambda: F.binary_cross_entropy(strata.ones(2), strata.ones(1)), ValueError, "Please ensure they have the sam"),
        (lambda: F.dropout1d(strata.ones(1)), RuntimeError, "Expected 2D or 3D input, but received a 1D input"),
        (lambda: F.embedding(strata.tensor([0]), strata.ones(2, 2), padding_idx=5), AssertionError, "Padding_idx"),
        (lambda: nn.BatchNorm2d(3)(strata.ones(2, 3)), ValueError, r"expected 4D input \(got 2D input\)"),
        (lambda: nn.Conv2d(3, 4, 1, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(3, 4, 1, padding="full"), ValueError, "Invalid padding string 'full'"),
        (lambda: nn.Conv2d(3, 4, 3, 2, "same"), ValueError, "not supported for strided convolutions"),
        (lambda: nn.Dropout(-1), ValueError, "dropout probability has to be between 0 and 1, but got -1"),
        (lambda: nn.MultiheadAttention(5, 2), AssertionError, "embed_dim must be divisible by num_heads"),
        (lambda: nn.TripletMarginLoss(margin=0), ValueError, "expected margin to be greater than 0, got 0"),
        (lambda: nn.LSTM(2, 0), ValueError, "hidden_size must be greater than zero"),
        (lambda: nn.LSTM(2, 3)(strata.ones(2, 2, 5)), RuntimeError, "Expected 2, got 5"),
        (lambda: nn.GroupNorm(2, 3), ValueError, "must be divisible by num_groups"),
        (lambda: nn.Unflatten(1, 3), TypeError, "but found type int"),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error, match=text):
        act()


def test_warnings():
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprecated"):
        F.softmax(strata.ones(2, 2))
    with pytest.warns(UserWarning, match="Using a target size"):
        F.mse_loss(strata.ones(2), strata.ones(1))
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    with pytest.warns(UserWarning, match="batchmean"):
        F.kl_div(strata.zeros(1), strata.ones(1))


def test_functions_can_be_overridden():
    class Spy:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, kwargs

    func, kwargs = F.relu(Spy())
    assert func is F.relu and kwargs == {"inplace": False}
    assert F.pad(Spy(), [1, 1])[0] is F.pad
    assert F.cross_entropy(strata.ones(1), Spy(), reduction="sum")[1]["reduction"] == "sum"


# Operators of the table ask for themselves; these call functions that ask.
ASK_LATER = {"fractional_max_pool2d", "fractional_max_pool3d", "sigmoid", "tanh", "upsample", "upsample_bilinear", "upsample_nearest"}


@pytest.mark.parametrize("name", [n for n in F.__all__ if isinstance(getattr(F, n), types.FunctionType) and n not in ASK_LATER])
def test_what_an_override_is_given(name):
    """Arguments without a default by position, the others by name."""

    class Spy:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args, kwargs

    function = getattr(F, name)
    parameters = inspect.signature(function).parameters.values()
    given = tuple(Spy() for p in parameters if p.default is p.empty)
    assert function(*given) == (function, given, {p.name: p.default for p in parameters if p.default is not p.empty})


def test_transformer_mask_and_causal_detection():
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    assert mask.tolist() == [[0.0, -float("inf"), -float("inf")], [0.0, 0.0, -float("inf")], [0.0, 0.0, 0.0]]
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0), 2)
    x = strata.linspace(-1.0, 1.0, 24).reshape(3, 2, 4)
    given = encoder(x, mask=mask, is_causal=True)
    assert float((encoder(x, mask=mask) - given).abs().max()) < 1e-6
    assert float((encoder(x) - given).abs().max()) > 1e-4


def test_an_embedding_bag_of_a_table():
    table = strata.arange(12.0).reshape(4, 3)
    bag = nn.EmbeddingBag.from_pretrained(table, mode="sum", padding_idx=0)
    assert not bag.weight.requires_grad and bag.padding_idx == 0
    assert bag(strata.tensor([[1, 2], [0, 3]])).tolist() == [[9.0, 11.0, 13.0], [9.0, 10.0, 11.0]]
    assert nn.EmbeddingBag.from_pretrained(table, freeze=False).weight.requires_grad
    with pytest.raises(AssertionError, match="2-dimensional"):
        nn.EmbeddingBag.from_pretrained(table[0])


def test_losses_and_sequences():
    padded = nn.utils.rnn.pad_sequence([strata.tensor([1, 2]), strata.tensor([0.5, 1.5, 2.5])])
    assert padded.dtype == strata.int64 and padded.tolist() == [[1, 0], [2, 1], [0, 2]]
    strata.testing.assert_close(F.multilabel_soft_margin_loss(strata.zeros(2, 1), strata.ones(3)), strata.tensor(3 * math.log(2)))
    assert F.cross_entropy(strata.zeros(3), strata.tensor([1]), reduction="none").shape == ()
    for ord in (1, "fro", -1, math.inf, -math.inf):
        assert strata.linalg.cond(strata.zeros(2, 2), ord) == math.inf


def test_transposed_convolutions_of_any_output_padding():
    cases = ((2, 2, 8, 4, 17, 5, {"padding": 2, "output_padding": 1, "dilation": 2}, 329026), (3, 3, 4, 4, 9, 3, {"padding": 1, "output_padding": 1, "dilation": 2}, 818759))
    for rank, n, i, o, size, k, options, total in cases:
        x = ((strata.arange(n * i * size**rank) * 7 % 13) - 6).float().reshape([n, i] + [size] * rank)
        w = ((strata.arange(i * o * k**rank) * 5 % 11) - 5).float().reshape([i, o] + [k] * rank)
        assert getattr(F, f"conv_transpose{rank}d")(x, w, **options).abs().sum() == total


@pytest.mark.parametrize("dtype", [strata.float32, strata.float64, strata.bfloat16])
def test_pooling_of_a_line_is_the_same_without_a_gradient(dtype):
    strata.manual_seed(0)
    x = strata.randint(-2, 3, (2, 3, 13)).to(dtype)
    x[x == 0] *= -1
    x[0, 1, 4], x[1, 0, 7], x[1, 2, :3] = math.nan, -math.inf, -math.inf
    learned = x.clone().requires_grad_()
    for size in (1, 2, 3, 5, 9):
        for step, pad, apart, ceil in ((1, 0, 1, False), (2, size // 2, 1, False), (3, 0, 1, True), (2, 1 if size > 1 else 0, 1, True), (1, 0, 2, False)):
            if apart * (size - 1) >= 13:
                continue
            plain, made = F.max_pool1d(x, size, step, pad, apart, ceil), F.max_pool1d(learned, size, step, pad, apart, ceil)
            assert plain.shape == made.shape and plain.stride() == made.stride()
            assert strata.equal(plain.nan_to_num(9), made.nan_to_num(9)) and strata.equal(plain.signbit(), made.signbit())
    with strata.no_grad():
        assert strata.equal(F.max_pool1d(learned, 3).nan_to_num(9), F.max_pool1d(x, 3).nan_to_num(9))
    for wrong in ((0, 1, 0, 1), (2, 0, 0, 1), (2, 1, 2, 1), (2, 1, -1, 1), (20, 1, 0, 1), (2, 1, 0, 0)):
        errors = []
        for t in (x, learned):
            with pytest.raises(RuntimeError) as caught:
                F.max_pool1d(t, *wrong)
            errors.append(str(caught.value))
        assert errors[0] == errors[1]


@pytest.mark.parametrize(("rank", "shape"), [(2, (2,)), (2, ()), (3, (2, 2)), (3, (5,))])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_adaptive_pools_of_too_few_dims(kind, rank, shape):
    for size in (2, [2] * rank, [None] * rank):
        with pytest.raises((RuntimeError, ValueError), match="dimension|expected for input"):
            getattr(F, f"adaptive_{kind}_pool{rank}d")(strata.ones(shape), size)


def test_unpooling_inverts_pooling():
    x = strata.randn(2, 3, 4, 6).contiguous(memory_format=strata.channels_last)
    values, places = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(values, places, 2)
    assert back.is_contiguous(memory_format=strata.channels_last)
    assert bool(((back == x) | (back == 0)).all()) and int((back != 0).sum()) == values.numel()
    assert F.max_unpool1d(values[0, 0], places[0, 0] % 6, 2, output_size=[2, 2, 6]).shape == (2, 6)


def test_unpooling_refuses():
    x, places = strata.ones(1, 2, 2), strata.tensor([[[0, 3], [2, 9]]])
    with pytest.raises(RuntimeError, match="index 9 is out of bounds"):
        F.max_unpool2d(x, places, 1, output_size=[2, 2])
    with pytest.raises(RuntimeError, match="int64"):
        F.max_unpool2d(x, places.int(), 2)
    with pytest.raises(RuntimeError, match="shape of indices"):
        F.max_unpool2d(x, places[:, :1], 2)
    with pytest.raises(ValueError, match="dim 0 must be between 2 and 6"):
        F.max_unpool2d(x, places, 2, output_size=[9, 4])
    with pytest.raises(ValueError, match="2 or 4 elements"):
        F.max_unpool2d(x, places, 2, output_size=[4])
    with pytest.raises(RuntimeError, match="strides"):
        F.max_unpool3d(x[None], places[None], 2, 0)
