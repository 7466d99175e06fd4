"""Resampling of bytes and with antialiasing, and fractional pooling; expected values are PyTorch's."""

import pytest
import strata
import strata.nn.functional as F
from strata import nn

BYTES = ((strata.arange(30) * 37) % 256).to(strata.uint8).reshape(1, 1, 5, 6)
SQUARES = (strata.arange(12.0) ** 2).reshape(1, 1, 3, 4)


@pytest.mark.parametrize(
    ("size", "settings", "expected"),
    [
        ((3, 4), {"mode": "bilinear"}, [[62, 54, 109, 165], [197, 61, 52, 108], [140, 196, 123, 51]]),
        (
            (3, 4),
            {"mode": "bilinear", "antialias": True},
            [[68, 51, 104, 156], [181, 96, 57, 103], [149, 188, 108, 50]],
        ),
        (
            (7, 4),
            {"mode": "bicubic"},
            [
                [0, 66, 125, 181],
                [99, 35, 106, 162],
                [200, 16, 78, 133],
                [204, 53, 54, 110],
                [177, 202, 0, 88],
                [142, 238, 72, 54],
                [124, 178, 198, 30],
            ],
        ),
    ],
)
def test_bytes(size, settings, expected):
    found = F.interpolate(BYTES, size=size, **settings)
    assert found.dtype == strata.uint8 and found.tolist() == [[expected]]


def test_antialias():
    cubic = F.interpolate(SQUARES, size=(2, 2), mode="bicubic", antialias=True)
    strata.testing.assert_close(
        cubic, strata.tensor([[[[5.73008, 15.735954], [56.383415, 86.559357]]]]), rtol=1e-6, atol=2e-5  # of terms up to 121
    )
    corners = F.interpolate(SQUARES, size=(2, 2), mode="bilinear", antialias=True, align_corners=True)
    strata.testing.assert_close(
        corners, strata.tensor([[[[25.642859, 38.57143], [72.0, 96.666672]]]]), rtol=1e-6, atol=1e-5
    )
    wide = F.interpolate(SQUARES, size=(7, 9), mode="bilinear", antialias=True)
    strata.testing.assert_close(wide, F.interpolate(SQUARES, size=(7, 9), mode="bilinear"), rtol=1e-6, atol=1e-5)
    with pytest.raises(ValueError, match="bilinear and bicubic"):
        F.interpolate(SQUARES, size=(2, 2), antialias=True)


def test_antialias_has_gradients():
    x = strata.randn(1, 2, 4, 5, dtype=strata.float64, requires_grad=True)
    assert strata.autograd.gradcheck(lambda t: F.interpolate(t, size=(2, 3), mode="bicubic", antialias=True), (x,))


def test_fractional_pooling_of_given_samples():
    samples = strata.tensor([[[0.1, 0.6], [0.7, 0.3]]])
    x = strata.arange(70.0).reshape(1, 2, 7, 5) * strata.tensor([1.0, -1.0]).reshape(1, 2, 1, 1)
    values, indices = F.fractional_max_pool2d(x, 2, 3, return_indices=True, _random_samples=samples)
    assert values[0, 0].tolist() == [[6, 7, 9], [21, 22, 24], [31, 32, 34]]
    assert indices[0, 1].tolist() == [[0, 1, 3], [15, 16, 18], [25, 26, 28]]
    layer = nn.FractionalMaxPool2d(2, output_ratio=0.5, _random_samples=samples)
    assert layer(x).shape == (1, 2, 3, 2) and "_random_samples" in layer.state_dict()


@pytest.mark.parametrize("rank", [2, 3])
def test_fractional_pooling_at_random(rank):
    x = strata.randn(2, 3, *[9] * rank)
    layer = getattr(nn, f"FractionalMaxPool{rank}d")(2, output_size=4, return_indices=True)
    values, indices = layer(x)
    assert values.shape == (2, 3, *[4] * rank)
    assert (x.reshape(2, 3, -1).gather(2, indices.reshape(2, 3, -1)) == values.reshape(2, 3, -1)).all()


def test_fractional_pooling_refuses():
    x = strata.ones(1, 1, 4, 4)
    with pytest.raises(ValueError, match="either an output size"):
        nn.FractionalMaxPool2d(2)
    with pytest.raises(ValueError, match="only one"):
        nn.FractionalMaxPool3d(2, output_size=2, output_ratio=0.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.FractionalMaxPool2d(2, output_ratio=(0.5, 1.5))
    with pytest.raises(ValueError, match="requires specifying"):
        F.fractional_max_pool2d(x, 2)
    with pytest.raises(RuntimeError, match="too large relative to input"):
        F.fractional_max_pool2d(x, 2, output_size=4)


def test_fractional_windows_stay_inside():
    x = strata.arange(260, dtype=strata.bfloat16).reshape(1, 1, 1, 260)
    for samples in (0.0, 0.5, 0.99, 1e9):
        u = strata.full((1, 1, 2), samples, dtype=strata.bfloat16)
        _, where = F.fractional_max_pool2d(x, 1, (1, 258), return_indices=True, _random_samples=u)
        assert where.min() >= 0 and where.max() <= 259
    with pytest.raises(RuntimeError, match="too large"):
        F.fractional_max_pool2d(x, (1, 2**63 - 1), (1, 2))


def test_an_axis_that_keeps_its_size_keeps_its_values():
    assert F.interpolate(strata.tensor([[[1.0, 2.0, 4.0]]]), scale_factor=1.3, mode="linear").tolist() == [[[1, 2, 4]]]
    x = strata.arange(12.0).reshape(1, 1, 3, 4)
    assert F.interpolate(x, scale_factor=(1.2, 1.2))[0, 0, 2].tolist() == [8, 9, 10, 11]
    assert F.interpolate(x, scale_factor=(1.2, 1.2), mode="bicubic", antialias=True)[0, 0, 0].tolist() == [0, 1, 2, 3]
    assert F.interpolate(x, scale_factor=(1.2, 2.0), mode="bilinear").shape == (1, 1, 3, 8)
