"""Samples of attention and of matrix decompositions."""

from __future__ import annotations

from kit import call, sample


def operands(m, *lead, queries=5, keys=7, width=4, value_width=None, kv=None):
    shared = lead if kv is None else kv
    return [
        m.tensor(*lead, queries, width, low=-1, high=1),
        m.tensor(*shared, keys, width, low=-1, high=1),
        m.tensor(*shared, keys, value_width or width, low=-1, high=1),
    ]


@sample("attention")
def attention(m):
    if not m.is_float:
        yield call(*operands(m, 2, 3))
        return
    yield call(*operands(m, 2, 3))
    yield call(*operands(m, 1, 2), is_causal=True)
    yield call(*operands(m, 1, 2, queries=7, keys=3), is_causal=True)
    yield call(*operands(m, 2, 2), attn_mask=m.mask(5, 7))
    yield call(*operands(m, 2, 2), attn_mask=m.tensor(2, 1, 5, 7, low=-1, high=1))
    yield call(*operands(m, 2, 2), attn_mask=m.tensor(5, 7, low=-1, high=1, dtype="float32"), scale=0.3)
    yield call(*operands(m, 1, 2, queries=70, keys=130, width=3))
    yield call(*operands(m, 1, 1, queries=130, keys=130, width=16), is_causal=True)
    yield call(*operands(m, 1, 4, kv=(1, 2)), enable_gqa=True)
    yield call(*operands(m, value_width=6))
    yield call(*operands(m, 3, value_width=2), attn_mask=m.mask(3, 5, 7))
    yield call(*operands(m, 2, 1, 2))
    yield call(*operands(m, 2, 2, kv=(1, 2)))
    yield call(*operands(m, 1, 2, queries=0))
    yield call(*operands(m, 1, 2, keys=0))
    yield call(*operands(m, 0, 2))
    yield call(*operands(m, 1, 2, queries=4, keys=4), attn_mask=m.mask(4, 4), dropout_p=1.0)
    yield call(m.tensor(4), m.tensor(4), m.tensor(4))
    yield call(m.tensor(2, 3, 4), m.tensor(2, 3, 5), m.tensor(2, 3, 5))
    yield call(*operands(m, 1, 4, kv=(1, 3)), enable_gqa=True)
    yield call(*operands(m, 1, 4, kv=(1, 2)))
    yield call(*operands(m, 1, 2), attn_mask=m.mask(5, 6))
    yield call(*operands(m, 1, 2), attn_mask=m.integers(5, 7))
    yield call(*operands(m, 1, 2), dropout_p=1.5)


@sample("attention_core")
def attention_core(m):
    yield call(*operands(m, 1, 1, queries=3, keys=4, width=2))
    yield call(*operands(m, 2, 3))
    yield call(*operands(m, 1, 2, queries=70, keys=70), 0.0, True)
    yield call(*operands(m, 1, 2), attn_mask=m.tensor(1, 2, 5, 7, low=-1, high=1), scale=0.5)


@sample("attention_backward")
def attention_backward(m):
    if m.dtype in ("float16", "bfloat16"):
        return  # `out` is not read: it was rounded
    q, k, v = operands(m, 1, 2, queries=5, keys=6)
    grad = m.tensor(1, 2, 5, 4, low=-1, high=1)
    sums = m.tensor(1, 2, 5, low=1, high=2, dtype="float64" if m.dtype == "float64" else "float32")
    yield call(grad, q, k, v, m.tensor(1, 2, 5, 4, low=-1, high=1), sums, 0.0, False)
    yield call(grad, q, k, v, m.tensor(1, 2, 5, 4, low=-1, high=1), sums, 0.0, True, scale=0.25)


@sample("attention_math")
def attention_math(m):
    if not m.is_float:
        return  # PyTorch's accepts integers here and rounds the weights to them
    yield call(*operands(m, 2, 3))
    yield call(*operands(m, 2, 3), None, 0.0, True)
    yield call(*operands(m, 2, 3), m.tensor(5, 7))
    yield call(*operands(m, 1, 2), m.tensor(5, 7), 0.0, True)
    yield call(*operands(m, 1, 2), None, 0.5, False, m.mask(1, 2, 5, 7), scale=0.3)
    yield call(*operands(m, 1, 4, kv=(1, 2)), enable_gqa=True)


@sample("safe_softmax")
def safe_softmax(m):
    if m.is_complex:
        return  # softmax of complex numbers raises here
    scores = m.tensor(3, 4)
    if m.is_float:
        scores.data[1] = -float("inf")
        scores.data[2, :2] = -float("inf")
    yield call(scores, -1)
    yield call(scores, 0)
    yield call(m.tensor(3, 0), 1)
