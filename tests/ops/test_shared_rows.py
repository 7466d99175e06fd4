"""Interpolation and adaptive pooling compute rows that several elements share once, and windows side by side: the bits are
those of the channels-last form, which does neither."""

from __future__ import annotations

from table import pytest, strata

F = strata.nn.functional
DTYPES = [strata.float32, strata.float64, strata.bfloat16, strata.float16]


def picture(height, width, dtype):
    strata.manual_seed(height * 100 + width)
    return strata.randn(2, 5, height, width).to(dtype)


def same(f, x):
    last = x.contiguous(memory_format=strata.channels_last)
    assert not last.is_contiguous()
    for ours, theirs in zip(*(y if isinstance(y, tuple) else (y,) for y in (f(x), f(last))), strict=True):
        assert ours.contiguous().view(strata.uint8).equal(theirs.contiguous().view(strata.uint8))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_interpolation(mode, dtype):
    for height, width in ((7, 9), (20, 70), (1, 3)):
        for size in ((14, 18), (5, 200), (23, 4), (height, width), (3, 131)):
            for corners in (None,) if mode == "nearest" else (False, True):
                same(lambda x, s=size, c=corners: F.interpolate(x, size=s, mode=mode, align_corners=c), picture(height, width, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_adaptive_pools(dtype):
    for height, width in ((7, 9), (20, 70), (4, 3)):
        x = picture(height, width, dtype)
        x[0, 1, 2, 1], x[1, 2, 0, 0] = float("nan"), float("-inf")
        for size in ((1, 1), (2, 2), (7, 3), (3, 5), (4, 6), (5, 17), (30, 80)):
            same(lambda y, s=size: F.adaptive_max_pool2d(y, s, return_indices=True), x)
            same(lambda y, s=size: F.adaptive_avg_pool2d(y, s), x.nan_to_num(0.5, neginf=-2.0))


def test_adaptive_means_add_in_order():
    """Row after row, in float32."""
    x = picture(11, 13, strata.float32)[0, 0]
    got = F.adaptive_avg_pool2d(x[None, None], (3, 5))[0, 0]
    for i in range(3):
        for j in range(5):
            window = x[i * 11 // 3 : -(-(i + 1) * 11 // 3), j * 13 // 5 : -(-(j + 1) * 13 // 5)].reshape(-1)
            total = strata.zeros(())
            for v in window:
                total = total + v
            assert (total / window.numel()).item() == got[i, j].item()
