"""Layers and losses under vmap, with their derivatives: once for the whole batch, and what the loop over its elements gives."""

from __future__ import annotations

import pytest
import strata
import strata.nn.functional as F
from strata import func
from strata.testing import assert_close

B = 5
strata.manual_seed(11)
R = strata.randn
IMAGES, MANY = R(B, 2, 4, 8, 8), R(B, 2, 4, 6, 6, 6)
LINES, ROWS = R(B, 2, 4, 9), R(B, 6, 7)
CLASSES = strata.randint(0, 7, (B, 6))
CLASSES[1, 2] = CLASSES[4, 0] = -100
MAP = strata.randint(0, 4, (B, 2, 8, 8))
TARGETS = R(B, 6, 7).sigmoid()
CHANNELS, FEATURES = R(B, 4), R(B, 7)
PLACES = strata.randint(0, 6, (B, 3))
IDS = strata.randint(0, 7, (B, 6))
HEADS = R(B, 2, 3, 5, 4)
OF_FOUR, OF_SEVEN, OF_ROWS = R(4), R(7), R(6, 7).abs()  # no derivative is wanted of them
SQUARE = R(B, 4, 4) + 3 * strata.eye(4)

# name: (function, the columns that vmap goes over, what is the same for all); the first of all floating ones get a derivative.
CASES = {
    "max_pool": (lambda x: F.max_pool2d(x, 2), (IMAGES,), ()),
    "max_pool of one": (lambda x: F.max_pool2d(x[0], 2), (IMAGES,), ()),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), (MANY,), ()),
    "avg_pool": (lambda x: F.avg_pool2d(x, 3, 2, 1), (IMAGES,), ()),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), (MANY,), ()),
    "adaptive_avg": (lambda x: F.adaptive_avg_pool2d(x, 3), (IMAGES,), ()),
    "adaptive_max": (lambda x: F.adaptive_max_pool2d(x, 3), (IMAGES,), ()),
    "reflected": (lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"), (IMAGES,), ()),
    "replicated": (lambda x: F.pad(x, (1, 2), mode="replicate"), (LINES,), ()),
    "bilinear": (lambda x: F.interpolate(x, size=(11, 5), mode="bilinear"), (IMAGES,), ()),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic"), (IMAGES,), ()),
    "antialiased": (lambda x: F.interpolate(x, size=5, mode="bilinear", antialias=True), (IMAGES,), ()),
    "nearest": (lambda x: F.interpolate(x, size=13), (LINES,), ()),
    "trilinear": (lambda x: F.interpolate(x, size=4, mode="trilinear"), (MANY,), ()),
    "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), (IMAGES, R(B, 2, 3, 3, 2).tanh()), ()),
    "grid_sample of one grid": (lambda x, g: F.grid_sample(x, g, align_corners=True), (IMAGES,), (R(2, 3, 3, 2).tanh(),)),
    "attention": (lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True), (HEADS, R(B, 2, 3, 5, 4)), ()),
    "attention beside one key": (F.scaled_dot_product_attention, (HEADS,), (R(2, 3, 6, 4), R(2, 3, 6, 4))),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (IMAGES,), ()),
    "batch_norm by weights": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (IMAGES, CHANNELS), (R(4),)),
    "batch_norm by one weight": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (LINES,), (R(4), R(4))),
    "batch_norm at rest": (lambda x: F.batch_norm(x, OF_FOUR, OF_FOUR.square() + 1), (IMAGES,), ()),
    "batch_norm at rest by its weights": (lambda x, w: F.batch_norm(x, OF_FOUR, OF_FOUR.square() + 1, w), (IMAGES, CHANNELS), ()),
    "instance_norm": (F.instance_norm, (IMAGES,), ()),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (IMAGES,), (R(4), R(4))),
    "group_norm by weights": (lambda x, w: F.group_norm(x, 2, w), (LINES, CHANNELS), ()),
    "group_norm of weights alone": (lambda w, x: F.group_norm(x, 2, w), (CHANNELS,), (R(2, 4, 5),)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (7,), w, b), (ROWS,), (R(7), R(7))),
    "layer_norm of two dims": (lambda x: F.layer_norm(x, (6, 7)), (ROWS,), ()),
    "layer_norm of one line": (lambda x, w: F.layer_norm(x, (7,), w), (FEATURES,), (R(7),)),
    "mse": (F.mse_loss, (ROWS, TARGETS), ()),
    "mse to one": (F.mse_loss, (ROWS,), (R(6, 7),)),
    "mse, broadcast": (lambda x, y: F.mse_loss(x, y, reduction="sum"), (ROWS, R(B, 6, 7)), ()),
    "smooth_l1": (lambda x, y: F.smooth_l1_loss(x, y, reduction="sum", beta=0.3), (ROWS, TARGETS), ()),
    "huber": (lambda x, y: F.huber_loss(x, y, reduction="none"), (ROWS, TARGETS), ()),
    "bce": (lambda x, y: F.binary_cross_entropy(x.sigmoid(), y), (ROWS, TARGETS), ()),
    "bce by weights": (lambda x, y: F.binary_cross_entropy(x.sigmoid(), y, OF_ROWS), (ROWS, TARGETS), ()),
    "bce with logits": (lambda x, y: F.binary_cross_entropy_with_logits(x, y, pos_weight=OF_SEVEN.abs()), (ROWS, TARGETS), ()),
    "bce of numbers": (lambda x, y: F.binary_cross_entropy_with_logits(x[0], y[0]), (FEATURES, FEATURES.sigmoid()), ()),
    "soft margin": (lambda x, y: F.soft_margin_loss(x, y.sign()), (ROWS, R(B, 6, 7)), ()),
    "cross entropy": (F.cross_entropy, (ROWS, CLASSES), ()),
    "cross entropy by weights": (lambda x, t: F.cross_entropy(x, t, OF_SEVEN.abs()), (ROWS, CLASSES), ()),
    "cross entropy, summed": (lambda x, t: F.cross_entropy(x, t, reduction="sum", ignore_index=2), (ROWS, CLASSES.clamp(0)), ()),
    "cross entropy of each": (lambda x, t: F.cross_entropy(x, t, reduction="none", label_smoothing=0.1), (ROWS, CLASSES), ()),
    "cross entropy of one": (lambda x, t: F.cross_entropy(x[0], t[0].clamp(0)), (ROWS, CLASSES), ()),
    "cross entropy to one target": (F.cross_entropy, (ROWS,), (CLASSES[0],)),
    "cross entropy of one to targets": (lambda t, x: F.cross_entropy(x, t), (CLASSES,), (R(6, 7),)),
    "cross entropy of maps": (F.cross_entropy, (IMAGES, MAP), ()),
    "embedding": (lambda i, w: F.embedding(i, w, padding_idx=2), (IDS,), (R(7, 3),)),
    "embedding by counts": (lambda i, w: F.embedding(i, w, scale_grad_by_freq=True), (IDS,), (R(7, 3),)),
    "one_hot": (lambda i, w: F.one_hot(i, 7).float() @ w, (IDS,), (R(7, 3),)),
    "index_add": (lambda x, s, i: x.index_add(0, i, s, alpha=2), (ROWS, R(B, 3, 7)), (PLACES[0],)),
    "index_copy": (lambda x, s, i: x.index_copy(0, i, s), (ROWS, R(B, 3, 7)), (strata.tensor([4, 0, 2]),)),
    "index_fill": (lambda x, i: x.index_fill(-1, i, 2.0), (ROWS,), (PLACES[0],)),
    "scatter_reduce": (lambda x, i: x.scatter_reduce(0, i[:, None].expand(3, 7), x[:3], "amax"), (ROWS, PLACES), ()),
    "buckets": (lambda x, b: strata.bucketize(x, b.sort()[0]) * x, (ROWS,), (R(4),)),
    "searched": (lambda x: strata.searchsorted(x.sort(1)[0].detach(), x) * x, (ROWS,), ()),
    "trace": (strata.trace, (SQUARE,), ()),
    "solved": (strata.linalg.solve, (SQUARE, R(B, 4, 3)), ()),
    "solved for one": (strata.linalg.solve, (SQUARE,), (R(4, 3),)),
    "distances": (lambda x, y: strata.cdist(x, y, p=1.0), (ROWS, R(B, 5, 7)), ()),
    "distances to one": (lambda x, y: strata.cdist(x, y, p=3.0), (ROWS,), (R(5, 7),)),
    "zeros": (lambda x: x.new_zeros(3, 7).add_(x[:3]), (ROWS,), ()),
    "full": (lambda x: x.new_full((6, 7), 2.0).mul_(x), (ROWS,), ()),
}


def derived(f):
    """Of the sum of what f gives, times a fixed wave, the derivatives by all floating arguments, and the value."""

    def call(*args):
        places = tuple(i for i, a in enumerate(args) if a.is_floating_point())

        def total(*values):
            full = list(args)
            for i, v in zip(places, values, strict=True):
                full[i] = v
            made = f(*full)
            return (made * strata.arange(made.numel()).reshape(made.shape).cos()).sum()

        grads, value = func.grad_and_value(total, argnums=tuple(range(len(places))))(*(args[i] for i in places))
        return *grads, value

    return call


def loop(f, columns, same):
    found = [f(*(c[i] for c in columns), *same) for i in range(B)]
    if isinstance(found[0], tuple):
        return tuple(strata.stack(list(column)) for column in zip(*found, strict=True))
    return strata.stack(found)


@pytest.mark.parametrize("name", CASES)
def test_is_the_loop_at_once(name, monkeypatch):
    from strata import _batched

    f, columns, same = CASES[name]
    dims = (*[0] * len(columns), *[None] * len(same))
    wanted, wanted_grads = loop(f, columns, same), loop(derived(f), columns, same)
    alone = []
    whole = _batched.Level.one_by_one
    monkeypatch.setattr(_batched.Level, "one_by_one", lambda self, op, *rest: (alone.append(str(op)), whole(self, op, *rest))[1])
    assert_close(func.vmap(f, in_dims=dims)(*columns, *same), wanted, rtol=1e-4, atol=1e-5)
    assert_close(func.vmap(derived(f), in_dims=dims)(*columns, *same), wanted_grads, rtol=1e-4, atol=1e-5)
    assert not alone
    turned = [c.movedim(0, -1).contiguous() for c in columns]
    last = (*[-1] * len(columns), *[None] * len(same))
    assert_close(func.vmap(f, in_dims=last, chunk_size=3)(*turned, *same), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_levels(name):
    f, columns, same = CASES[name]
    dims = (*[0] * len(columns), *[None] * len(same))
    wanted = loop(derived(f), columns, same)
    twice = func.vmap(func.vmap(derived(f), in_dims=dims), in_dims=dims)
    found = twice(*(strata.stack([c, c.flip(0)]) for c in columns), *same)
    for a, b in zip(found, wanted, strict=True):
        assert_close(a[0], b, rtol=1e-4, atol=1e-5)
        assert_close(a[1], b.flip(0), rtol=1e-4, atol=1e-5)


def test_what_an_element_refuses_all_refuse():
    with pytest.raises(IndexError, match="out of bounds|out of range"):
        func.vmap(F.cross_entropy)(ROWS, CLASSES.clamp(0) + 3)
    with pytest.raises(ValueError, match="batch_size"):
        func.vmap(F.cross_entropy)(ROWS, CLASSES[:, :4])
    with pytest.raises(RuntimeError, match="in place|vmap"):
        func.vmap(lambda x: F.batch_norm(x, strata.zeros(4), strata.ones(4), training=True))(IMAGES)


def test_running_statistics_of_an_ensemble():
    mean, spread = strata.zeros(B, 4), strata.ones(B, 4)
    call = lambda x, m, v: F.batch_norm(x, m, v, training=True, momentum=0.3)  # noqa: E731
    alone = [(m.clone(), v.clone()) for m, v in zip(mean, spread, strict=True)]
    wanted = strata.stack([call(x, m, v) for x, (m, v) in zip(IMAGES, alone, strict=True)])
    assert_close(func.vmap(call)(IMAGES, mean, spread), wanted)
    assert_close(mean, strata.stack([m for m, _ in alone]))
    assert_close(spread, strata.stack([v for _, v in alone]))
    turned = strata.zeros(4, B).t()
    assert_close(func.vmap(call)(IMAGES, turned, strata.ones(B, 4)), wanted)
    assert_close(turned, mean)
