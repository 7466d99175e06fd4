"""scaled_dot_product_attention: memory, threads, masks, derivatives, autocast, and the composition that it stands for."""

import math

import pytest
import strata
from strata.autograd.gradcheck import gradcheck, gradgradcheck
from strata.nn.functional import scaled_dot_product_attention as attention


def operands(*sizes, dtype=strata.float64, grad=False, seed=0):
    strata.manual_seed(seed)
    return [strata.randn(*size, dtype=dtype, requires_grad=grad) for size in sizes]


def composed(q, k, v, mask=None, causal=False, scale=None):
    """The definition, with all weights in memory."""
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.size(-1)) if scale is None else scale)
    if causal:
        seen = strata.ones(q.size(-2), k.size(-2), dtype=strata.bool).tril()
        scores = scores.masked_fill(~seen, -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == strata.bool else scores + mask
    return scores.softmax(-1) @ v


@pytest.mark.parametrize("lengths", [(1, 1), (5, 7), (64, 64), (65, 130), (130, 63)])
@pytest.mark.parametrize("causal", [False, True])
def test_blocks_give_the_definition(lengths, causal):
    length, keys = lengths
    a = operands((2, 3, length, 5), (2, 3, keys, 5), (2, 3, keys, 6), grad=True)
    b = [t.detach().requires_grad_() for t in a]
    out, expected = attention(*a, is_causal=causal), composed(*b, causal=causal)
    strata.testing.assert_close(out, expected)
    weight = strata.randn_like(out)
    out.backward(weight)
    expected.backward(weight)
    for x, y in zip(a, b, strict=True):
        strata.testing.assert_close(x.grad, y.grad)


@pytest.fixture
def two_threads():
    before = strata.get_num_threads()
    strata.set_num_threads(2)
    yield
    strata.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")  # each has gradients of keys and values
def test_memory_stays_far_below_all_scores():
    length = 16384
    q, k, v = operands((1, 1, length, 8), (1, 1, length, 8), (1, 1, length, 8), dtype=strata.float32, grad=True)
    scores = 4 * length * length
    strata._C._reset_peak_memory()
    start = strata._C._memory_stats()["live_bytes"]
    out = attention(q, k, v)
    assert strata._C._memory_stats()["peak_bytes"] - start < scores / 100
    out.sum().backward()
    assert strata._C._memory_stats()["peak_bytes"] - start < scores / 100
    rows = slice(0, length, 1000)
    strata.testing.assert_close(out[:, :, rows], composed(q[:, :, rows], k, v), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("dtype", [strata.float32, strata.bfloat16])
def test_threads_do_not_change_bits(heads, dtype):
    before = strata.get_num_threads()
    results = []
    for threads in (1, 2, 3):
        strata.set_num_threads(threads)
        q, k, v = operands((1, heads, 200, 24), (1, heads, 333, 24), (1, heads, 333, 24), dtype=dtype, grad=True)
        out = attention(q, k, v, is_causal=True)
        out.backward(strata.ones_like(out))
        results.append([out, q.grad, k.grad, v.grad])
    strata.set_num_threads(before)
    for other in results[1:]:
        assert all(strata.equal(x, y) for x, y in zip(results[0], other, strict=True))


def test_instruction_sets_give_the_same_bits():
    before = strata._C.cpu_capability()
    results = []
    for isa in ("base", "v3", "v4"):
        try:
            strata._C.set_cpu_capability(isa)
        except RuntimeError:
            continue  # not in this machine
        q, k, v = operands((1, 2, 70, 20), (1, 2, 100, 20), (1, 2, 100, 20), dtype=strata.float32, grad=True)
        out = attention(q, k, v)
        out.sum().backward()
        results.append([out, q.grad, k.grad, v.grad])
    strata._C.set_cpu_capability(before)
    for other in results[1:]:
        assert all(strata.equal(x, y) for x, y in zip(results[0], other, strict=True))


def test_query_without_keys_is_zero():
    q, k, v = operands((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4), grad=True)
    mask = strata.ones(3, 5, dtype=strata.bool)
    mask[1] = False
    for given in (mask, strata.zeros(3, 5, dtype=strata.float64).masked_fill(~mask, -math.inf)):
        q.grad = None
        out = attention(q, k, v, attn_mask=given)
        out.sum().backward()
        assert (out[:, :, 1] == 0).all() and (q.grad[:, :, 1] == 0).all()
        assert not out.isnan().any() and not q.grad.isnan().any() and not k.grad.isnan().any()


def test_layout_of_the_result_follows_the_query():
    q, k, v = (t.transpose(1, 2) for t in operands((2, 7, 3, 4), (2, 7, 3, 4), (2, 7, 3, 4)))
    out = attention(q, k, v)
    assert out.shape == (2, 3, 7, 4) and out.transpose(1, 2).is_contiguous()
    assert strata.equal(out, attention(q.contiguous(), k.contiguous(), v.contiguous()))


def test_shared_heads_equal_repeated_ones():
    a = operands((2, 6, 5, 4), (2, 2, 70, 4), (2, 2, 70, 4), grad=True)
    b = [t.detach().requires_grad_() for t in a]
    out = attention(*a, enable_gqa=True)
    repeated = attention(b[0], *(t.repeat_interleave(3, 1) for t in b[1:]))
    assert strata.equal(out, repeated)
    out.sum().backward()
    repeated.sum().backward()
    for x, y in zip(a, b, strict=True):
        strata.testing.assert_close(x.grad, y.grad)
    with pytest.raises(RuntimeError, match="must divide"):
        attention(a[0], a[1][:, :1].expand(2, 4, 70, 4), a[2][:, :1].expand(2, 4, 70, 4), enable_gqa=True)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": "bool"}, {"attn_mask": "float"}, {"enable_gqa": True}])
def test_derivatives(options):
    heads = 4 if "enable_gqa" in options else 2
    inputs = operands((1, heads, 3, 2), (1, 2, 4, 2), (1, 2, 4, 3), grad=True)
    if kind := options.get("attn_mask"):
        bits = strata.tensor([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1]], dtype=strata.bool)
        options = {"attn_mask": bits if kind == "bool" else strata.linspace(-1, 1, 12, dtype=strata.float64).reshape(3, 4)}
    f = lambda q, k, v: attention(q, k, v, **options)  # noqa: E731
    assert gradcheck(f, inputs)
    assert gradgradcheck(f, inputs)


def test_gradient_of_a_mask():
    q, k, v, mask = operands((1, 2, 3, 2), (1, 2, 4, 2), (1, 2, 4, 2), (3, 4), grad=True)
    f = lambda q, k, v, mask: attention(q, k, v, attn_mask=mask)  # noqa: E731
    assert gradcheck(f, (q, k, v, mask))
    assert gradgradcheck(f, (q, k, v, mask))
    strata.testing.assert_close(f(q, k, v, mask), composed(q, k, v, mask))


def test_node_and_autocast():
    q, k, v = operands((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4), dtype=strata.float32, grad=True)
    assert attention(q, k, v).grad_fn.name() == "ScaledDotProductFlashAttentionForCpuBackward0"
    with strata.autocast("cpu", dtype=strata.bfloat16):
        assert attention(q, k, v).dtype == strata.bfloat16


def test_dropout_keeps_the_mean():
    strata.manual_seed(3)
    q, k, v = operands((1, 1, 400, 4), (1, 1, 50, 4), (1, 1, 50, 4), dtype=strata.float32)
    v = strata.ones_like(v)
    out = attention(q, k, v, dropout_p=0.25)
    assert abs(out.mean().item() - 1) < 0.02 and out.std().item() > 0.01
    assert (attention(q, k, v, dropout_p=1.0) == 0).all()


def test_refusals():
    q, k, v = operands((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4))
    with pytest.raises(RuntimeError, match="same dtype"):
        attention(q, k.float(), v)
    with pytest.raises(RuntimeError, match="at least 2 dimensional"):
        attention(q[0, 0, 0], k, v)
    with pytest.raises(RuntimeError, match="one size in the last dim"):
        attention(q, k[..., :3], v)
    with pytest.raises(RuntimeError, match="attn_mask dtype"):
        attention(q, k, v, attn_mask=strata.ones(3, 5, dtype=strata.int64))
    with pytest.raises(RuntimeError, match="must match the size"):
        attention(q, k, v, attn_mask=strata.ones(3, 6, dtype=strata.bool))
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        attention(q, k, v, dropout_p=1.5)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("one", [True, False])
def test_results_have_gaps_where_those_of_pytorch_have(batch_first, training, gradients, one):
    """PyTorch's inference path makes a result without gaps; the other one turns its own over."""
    layer = strata.nn.MultiheadAttention(16, 4, batch_first=batch_first).train(training)
    x = strata.randn(2, 5, 16)
    with strata.set_grad_enabled(gradients):
        result = layer(x, x if one else x.clone(), x if one else x.clone())[0]
    gaps = batch_first and (training or gradients or not one)
    assert result.stride() == ((16, 32, 1) if gaps else (80, 16, 1))
    strata.backends.mha.set_fastpath_enabled(False)
    try:
        with strata.set_grad_enabled(gradients):
            assert layer(x, x, x)[0].stride() == ((16, 32, 1) if batch_first else (80, 16, 1))
    finally:
        strata.backends.mha.set_fastpath_enabled(True)
