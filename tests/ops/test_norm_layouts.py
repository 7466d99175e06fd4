"""Normalisation of images whose channels lie side by side: what is one value per channel is read once for many rows, in whole blocks of
channels, and the bits are those of images that lie plane by plane."""

import pytest
import strata
import strata.nn.functional as F

SHAPES = [(2, 16, 3, 5), (3, 64, 9, 7), (1, 48, 20, 20), (2, 24, 6, 6), (2, 128, 5, 5), (1, 512, 4, 3), (1, 2048, 3, 3), (1, 2064, 2, 3), (2, 32, 1, 1),
          (2, 100, 4, 4), (1, 64, 64, 70)]


def image(shape: tuple[int, ...], dtype: strata.dtype, last: bool) -> strata.Tensor:
    x = strata.randn(shape, generator=strata.Generator().manual_seed(sum(shape))).to(dtype)
    return (x.contiguous(memory_format=strata.channels_last) if last else x).requires_grad_(True)


def parameters(channels: int, dtype: strata.dtype) -> list[strata.Tensor]:
    g = strata.Generator().manual_seed(channels)
    return [(strata.rand(channels, generator=g) + 0.5).to(dtype).requires_grad_(k < 2) for k in range(4)]


def batch_norm(x, weight, bias, mean, var):
    return F.batch_norm(x, mean.clone(), var.clone(), weight, bias, training=False)


def batch_norm_in_training(x, weight, bias, mean, var):
    return F.batch_norm(x, mean.clone(), var.clone(), weight, bias, training=True)


def batch_norm_without_weight(x, weight, bias, mean, var):
    return F.batch_norm(x, mean.clone(), var.clone(), None, None, training=False)


def group_norm(x, weight, bias, mean, var):
    return F.group_norm(x, 4, weight, bias)


def group_norm_without_weight(x, weight, bias, mean, var):
    return F.group_norm(x, 2)


@pytest.mark.parametrize("norm", [batch_norm, batch_norm_in_training, batch_norm_without_weight, group_norm, group_norm_without_weight])
@pytest.mark.parametrize("dtype", [strata.float32, strata.float64, strata.bfloat16], ids=lambda d: str(d).partition(".")[2])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_channels_side_by_side_give_the_bits_of_planes(norm, dtype, shape):
    made = []
    for last in (False, True):
        x, given = image(shape, dtype, last), parameters(shape[1], dtype)
        y = norm(x, *given)
        assert y.is_contiguous(memory_format=strata.channels_last if last else strata.contiguous_format)
        (y * image(shape, dtype, last)).sum().backward()
        made.append([t.detach().contiguous() for t in (y, x.grad, given[0].grad, given[1].grad) if t is not None])
    for plane, side in zip(*made, strict=True):
        assert plane.view(strata.uint8).equal(side.view(strata.uint8))


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_begin_within_an_image(threads):
    # Pieces of threads begin within rows of channels, and another image's values come in between.
    before = strata.get_num_threads()
    strata.set_num_threads(threads)
    try:
        x = image((5, 48, 41, 37), strata.float32, True)
        weight, bias, *_ = parameters(48, strata.float32)
        y = F.group_norm(x, 6, weight, bias)
    finally:
        strata.set_num_threads(before)
    assert y.equal(F.group_norm(x.detach().contiguous(), 6, weight, bias))
