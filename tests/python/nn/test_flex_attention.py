"""flex_attention and causal biases: against scaled_dot_product_attention, and values and texts recorded from PyTorch 2.13."""

from __future__ import annotations

import math

import pytest
import strata
from strata.nn import functional as F
from strata.nn.attention._places import everywhere
from strata.nn.attention.bias import CausalBias, causal_lower_right, causal_upper_left
from strata.nn.attention.flex_attention import (
    AuxRequest,  # fmt: skip
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)

Q = strata.linspace(0, 1, 2 * 4 * 6 * 8).view(2, 4, 6, 8)
K = strata.linspace(-1, 1, 2 * 4 * 6 * 8).view(2, 4, 6, 8).cos()
V = K.sin()


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def close(a, b):
    return strata.allclose(a, b, atol=1e-5)


def test_without_functions_it_is_attention():
    assert close(flex_attention(Q, K, V), F.scaled_dot_product_attention(Q, K, V))
    assert flex_attention(Q, K, V)[0, 0, 0, :3].tolist() == pytest.approx([0.5830, 0.5863, 0.5896], abs=1e-4)
    assert flex_attention(Q.half(), K.half(), V.half()).dtype == strata.float16


def test_scores_that_functions_change():
    slopes, table = strata.exp2(-strata.arange(1, 5) * 2.0), strata.randn(4, 6, 6)
    found = flex_attention(Q, K, V, score_mod=lambda s, b, h, q, kv: s + slopes[h] * (kv - q))
    assert found[1, 3, 0, :3].tolist() == pytest.approx([0.6111, 0.6080, 0.6048], abs=1e-4)
    found = flex_attention(Q, K, V, score_mod=lambda s, b, h, q, kv: s + table[h, q, kv])
    assert close(found, F.scaled_dot_product_attention(Q, K, V, table[None].expand(2, 4, 6, 6)))
    found = flex_attention(Q, K, V, score_mod=lambda s, b, h, q, kv: strata.where(q >= kv, s, -math.inf))
    assert close(found, F.scaled_dot_product_attention(Q, K, V, is_causal=True))


def test_gradients_reach_what_functions_read():
    w, q = strata.ones(4, requires_grad=True), Q.clone().requires_grad_()
    flex_attention(q, K, V, lambda s, b, h, i, j: s * w[h], create_block_mask(causal, None, None, 6, 6)).sin().sum().backward()
    u, p = strata.ones(4, requires_grad=True), Q.clone().requires_grad_()
    scores = p @ K.mT / math.sqrt(8) * u[:, None, None]
    (scores.masked_fill(~strata.ones(6, 6).tril().bool(), -math.inf).softmax(-1) @ V).sin().sum().backward()
    assert close(w.grad, u.grad) and close(q.grad, p.grad)


@pytest.mark.parametrize("compiled", [False, True])
def test_masks(compiled):
    attend = strata.compile(flex_attention) if compiled else flex_attention
    document = strata.tensor([0, 0, 1, 1, 1, 2])

    def same(b, h, q, kv):
        return document[q] == document[kv]

    mask = create_block_mask(and_masks(causal, same), None, None, 6, 6)
    seen = (document[:, None] == document) & strata.ones(6, 6).tril().bool()
    assert close(attend(Q, K, V, block_mask=mask), F.scaled_dot_product_attention(Q, K, V, seen))
    none = create_block_mask(lambda b, h, q, kv: q - kv > 3, 1, 1, 6, 6)
    assert attend(Q, K, V, block_mask=none)[0, 0, :, 0].tolist() == pytest.approx([0, 0, 0, 0, 0.5144, 0.5292], abs=1e-4)
    either = create_mask(or_masks(causal, same), None, None, 6, 6)
    assert either[0, 0].int().tolist()[0] == [1, 1, 0, 0, 0, 0] and either[0, 0, 2].all() == strata.tensor(False)
    assert create_mask(noop_mask, 2, 3, 2, 2).all() and create_mask(causal, 2, 3, 2, 2).shape == (2, 3, 2, 2)


def test_blocks():
    mask = create_block_mask(causal, None, None, 6, 6, BLOCK_SIZE=2)
    assert mask.shape == (1, 1, 6, 6) and mask.numel() == 36 and mask.sparsity() == pytest.approx(100 / 3)
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 1]]] and mask.kv_indices.tolist() == [[[[0, 1, 2], [1, 0, 2], [2, 0, 1]]]]
    assert mask.full_kv_num_blocks.tolist() == [[[0, 1, 2]]] and mask.full_q_num_blocks.tolist() == [[[2, 1, 0]]]
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]
    assert str(mask) == "BlockMask(shape=(1, 1, 6, 6), sparsity=33.33%, \n(0, 0)\n██    \n████  \n██████\n)"
    assert repr(mask).startswith("BlockMask(\n    kv_num_blocks=strata.Size([1, 1, 3]),\n    kv_indices=strata.Size([1, 1, 3, 3]),\n")
    part = mask[:, 0, 1]
    assert part.shape == (1, 1, 2, 6) and part.to_dense().tolist() == [[[[1, 1, 0]]]]
    with pytest.raises(RuntimeError, match="sliced BlockMask"):
        part.mask_mod(*strata.zeros(4))
    blocks = BlockMask.from_kv_blocks(mask.kv_num_blocks, mask.kv_indices, BLOCK_SIZE=2, mask_mod=causal)
    assert blocks.seq_lengths == (6, 6) and blocks.to("cpu").to_dense()[0, 0].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_what_it_gives_beside():
    out, lse = flex_attention(Q, K, V, return_lse=True)
    assert lse[0, 0].tolist() == pytest.approx([1.8084, 1.8461, 1.8838, 1.9215, 1.9592, 1.9969], abs=1e-4)
    again, aux = flex_attention(Q, K, V, return_aux=AuxRequest(lse=True))
    assert strata.equal(out, again) and strata.equal(aux.lse, lse) and aux.max_scores is None
    shared = flex_attention(Q, K[:, :2], V[:, :2], enable_gqa=True)
    assert shared[0, 3, 0, :3].tolist() == pytest.approx([0.7161, 0.7182, 0.7204], abs=1e-4)


@pytest.mark.parametrize("call, error", [
    (lambda: flex_attention(Q, K, V, block_mask=create_block_mask(causal, None, None, 4, 4)), "but got q_len=6 and kv_len=6"),
    (lambda: flex_attention(Q[0], K, V), "must be 4D tensors"),
    (lambda: flex_attention(Q, K[:, :2], V[:, :2]), "Try setting enable_gqa=True"),
    (lambda: flex_attention(Q, K[:1], V[:1]), "to have the same batch size"),
    (lambda: flex_attention(Q, K.double(), V), "expected one dtype"),
    (lambda: and_masks(3), "should be callable"),
])  # fmt: skip
def test_what_does_not_fit(call, error):
    with pytest.raises((ValueError, NotImplementedError, RuntimeError), match=error):
        call()


def test_causal_biases():
    q, upper, lower = Q[:, :, :2], causal_upper_left(2, 6), causal_lower_right(2, 6)
    assert isinstance(upper, strata.Tensor) and type(lower) is CausalBias
    assert repr(upper) == "tensor([[ True, False, False, False, False, False],\n        [ True,  True, False, False, False, False]])"
    assert close(F.scaled_dot_product_attention(q, K, V, upper), F.scaled_dot_product_attention(q, K, V, is_causal=True))
    mask = strata.tensor([[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]]).bool()
    assert close(F.scaled_dot_product_attention(q, K, V, attn_mask=lower), F.scaled_dot_product_attention(q, K, V, mask))
    assert close(strata.compile(lambda q: F.scaled_dot_product_attention(q, K, V, attn_mask=lower))(q), F.scaled_dot_product_attention(q, K, V, mask))
    with pytest.raises(NotImplementedError, match="CausalBias only supports"):
        upper + 1
    with pytest.raises(ValueError, match="should not be used with causal=True"):
        F.scaled_dot_product_attention(q, K, V, upper, is_causal=True)
    with pytest.raises(ValueError, match="expected 2 queries and 6 keys"):
        F.scaled_dot_product_attention(Q, K, V, upper)


TABLE, DOCUMENT, OFFSETS, SLOPES = strata.randn(4, 6, 5), strata.tensor([0, 0, 1, 1, 2, 2]), strata.randn(16), strata.randn(4)
AT_ONCE = {
    "slopes": lambda s, b, h, i, j: s + SLOPES[h] * (j - i),
    "hidden": lambda s, b, h, i, j: strata.where(i >= j, s, -math.inf),
    "capped": lambda s, b, h, i, j: 20 * strata.tanh(s / 20),
    "table": lambda s, b, h, i, j: s + TABLE[h, i, j],
    "offsets": lambda s, b, h, i, j: s + OFFSETS[i - j + 5].to(s.dtype),
    "documents": lambda s, b, h, i, j: strata.where(DOCUMENT[i] == DOCUMENT[j], s, s.new_full((), -9.0)),
    "itself": lambda s, b, h, i, j: s,
    "wide": lambda s, b, h, i, j: s.half() + strata.tensor(0.1, dtype=strata.float64),
    "number": lambda s, b, h, i, j: strata.tensor(2.0),
    "places": lambda s, b, h, i, j: (b * 1000 + h * 100 + i * 10 + j) % 7 + (i // 2).clamp(max=1),
}
PLACE_BY_PLACE = {
    "steps": lambda s, b, h, i, j: s + TABLE[h][i][j],
    "of_its_shape": lambda s, b, h, i, j: s / s.numel() + s.dim(),
    "shape": lambda s, b, h, i, j: s * (len(s.shape) + 1),
    "reduced": lambda s, b, h, i, j: s + s.sum() + s.max(),
    "stacked": lambda s, b, h, i, j: strata.stack([s, s + 1]).sum(),
    "flattened": lambda s, b, h, i, j: s.reshape(-1)[0] * 2,
}


@pytest.mark.parametrize("name", [*AT_ONCE, *PLACE_BY_PLACE])
def test_all_places_at_once_are_places_one_by_one(name):
    calls = 0

    def counted(*args):
        nonlocal calls
        calls += 1
        return (AT_ONCE | PLACE_BY_PLACE)[name](*args)

    score, places = strata.randn(2, 4, 6, 5), [strata.arange(n) for n in (2, 4, 6, 5)]
    found = everywhere(counted, score, places)
    assert (calls == 1) == (name in AT_ONCE)
    one = (AT_ONCE | PLACE_BY_PLACE)[name]
    for place in ((0, 0, 0, 0), (1, 3, 5, 4), (0, 2, 3, 1), (1, 1, 0, 4)):
        assert found.dtype == one(score[place], *(p[n] for p, n in zip(places, place, strict=True))).dtype
        assert found[place] == one(score[place], *(p[n] for p, n in zip(places, place, strict=True)))


def test_errors_of_functions_are_their_own():
    with pytest.raises(ZeroDivisionError):
        flex_attention(Q, K, V, lambda s, b, h, i, j: s + 1 / 0)
    with pytest.raises(IndexError):
        flex_attention(Q, K, V, lambda s, b, h, i, j: s + SLOPES[h + 9])
