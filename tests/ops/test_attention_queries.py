"""A query's attention is the same bits whether few queries are computed, as rows, or many, as columns of tiles."""

import pytest
import strata as torch

F = torch.nn.functional


def made(*shape, dtype, turned=False):
    if not turned:
        return torch.randn(*shape, dtype=dtype)
    return torch.randn(*shape[:-2], shape[-1], shape[-2], dtype=dtype).transpose(-1, -2)


def same(a, b):
    assert a.shape == b.shape and a.dtype == b.dtype
    assert torch.equal(torch.nan_to_num(a, 7.0), torch.nan_to_num(b, 7.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("keys", [1, 64, 65, 200])
@pytest.mark.parametrize("width,value_width", [(1, 1), (16, 48), (33, 5), (64, 80)])
def test_few_are_as_many(dtype, keys, width, value_width):
    torch.manual_seed(keys + width)
    for turned in (False, True):
        q = made(2, 4, 70, width, dtype=dtype, turned=turned)
        k, v = made(2, 2, keys, width, dtype=dtype, turned=turned), made(2, 2, keys, value_width, dtype=dtype, turned=turned)
        masks = [None, torch.rand(70, keys) > 0.4, torch.randn(2, 1, 70, keys).to(dtype), torch.rand(keys, 70).t() > 0.4]
        for mask in masks:
            many = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
            for begin, end in ((0, 1), (3, 11), (60, 68), (69, 70)):
                own = None if mask is None else mask[..., begin:end, :]
                same(F.scaled_dot_product_attention(q[:, :, begin:end], k, v, own, enable_gqa=True), many[:, :, begin:end])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_causal_few_are_as_many(dtype):
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, 3, 100, 24, dtype=dtype) for _ in range(3))
    many = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    for n in (1, 2, 7, 8, 9, 63, 64, 65):
        same(F.scaled_dot_product_attention(q[:, :, :n], k[:, :, :n], v[:, :, :n], is_causal=True), many[:, :, :n])


@pytest.mark.parametrize("queries", [3, 70])
def test_not_numbers_stay_with_their_queries(queries):
    torch.manual_seed(2)
    q, k, v = (torch.randn(1, 2, n, 8) for n in (queries, 90, 90))
    clean = F.scaled_dot_product_attention(q, k, v)
    q[0, 1, 2, 3] = float("nan")
    dirty = F.scaled_dot_product_attention(q, k, v)
    assert bool(dirty[0, 1, 2].isnan().all())
    dirty[0, 1, 2] = clean[0, 1, 2]
    assert torch.equal(dirty, clean)


@pytest.mark.parametrize("queries", [2, 8, 20])
def test_without_keys(queries):
    q, k = torch.randn(1, 2, queries, 4), torch.randn(1, 2, 0, 4)
    out = F.scaled_dot_product_attention(q, k, torch.randn(1, 2, 0, 5))
    assert torch.equal(out, torch.zeros(1, 2, queries, 5))
    hidden = torch.zeros(queries, 3, dtype=torch.bool)
    q, k, v = torch.randn(1, 2, queries, 4), torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 5)
    assert torch.equal(F.scaled_dot_product_attention(q, k, v, hidden), torch.zeros(1, 2, queries, 5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 1, 1, 130), (2, 1, 1, 130), (1, 1, 100, 130), (2, 1, 100, 130), (2, 3, 1, 130), (1, 3, 100, 130), (2, 3, 100, 1), (1, 1, 1, 1)])
def test_shared_masks_are_as_own_ones(shape, dtype):
    """A mask that batches, heads or queries share gives the bits of one that each of them has for itself."""
    torch.manual_seed(5)
    q, k, v = (made(2, 3, n, 24, dtype=dtype) for n in (100, 130, 130))
    keep = torch.rand(*shape) > 0.3
    for mask in (keep, torch.randn(*shape).to(dtype), torch.zeros(*shape).masked_fill(~keep, -float("inf")).to(dtype)):
        own = mask.expand(2, 3, 100, 130).clone()
        turned = own.transpose(2, 3).contiguous().transpose(2, 3)
        want = F.scaled_dot_product_attention(q, k, v, own)
        same(F.scaled_dot_product_attention(q, k, v, mask), want)
        same(F.scaled_dot_product_attention(q, k, v, turned), want)
