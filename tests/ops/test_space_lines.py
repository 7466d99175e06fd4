"""Kernels over an index space where channels vary fastest: threads divide what lies outside of a line, and half types are
converted in the order of memory. The bits are those of the contiguous image."""

import pytest
import strata
import strata.nn.functional as F
from table import bits

SHAPES = [(1, 40, 9, 7), (3, 17, 8, 8), (2, 3, 12, 10), (8, 64, 6, 6), (5, 1, 7, 9)]

FUNCTIONS = {
    "bilinear": lambda x, y: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "bilinear_down": lambda x, y: F.interpolate(x, size=(3, 4), mode="bilinear", align_corners=True),
    "bicubic": lambda x, y: F.interpolate(x, scale_factor=1.5, mode="bicubic"),
    "nearest": lambda x, y: F.interpolate(x, size=(13, 5), mode="nearest"),
    "nearest_exact": lambda x, y: F.interpolate(x, scale_factor=2.0, mode="nearest-exact"),
    "avg_pool": lambda x, y: F.avg_pool2d(x, 3, 2, 1),
    "max_pool": lambda x, y: F.max_pool2d(x, 3, 1, 1),
    "adaptive_avg_pool": lambda x, y: F.adaptive_avg_pool2d(x, (3, 4)),
    "adaptive_max_pool": lambda x, y: F.adaptive_max_pool2d(x, (3, 4)),
    "reflect": lambda x, y: F.pad(x, (1, 2, 2, 1), mode="reflect"),
    "replicate": lambda x, y: F.pad(x, (1, 2, 2, 1), mode="replicate"),
    "unfold": lambda x, y: F.unfold(x, 3, padding=1),
}
SAMPLED = {
    "grid": lambda x, y: F.grid_sample(x, y, align_corners=False),
    "grid_border": lambda x, y: F.grid_sample(x, y, padding_mode="border", align_corners=True),
    "grid_cubic": lambda x, y: F.grid_sample(x, y, mode="bicubic", align_corners=False),
}


def results(function, image, grid, seed):
    x, y = image.detach().requires_grad_(), grid.detach().requires_grad_()
    made = function(x, y)
    made.backward(strata.empty_like(made).copy_(seed))
    return [t.double().numpy() for t in (made.detach(), x.grad, y.grad) if t is not None]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("name", [*FUNCTIONS, *SAMPLED])
def test_channels_last_has_the_bits_of_contiguous(name, dtype, threads):
    function = FUNCTIONS.get(name) or SAMPLED[name]
    before = strata.get_num_threads()
    strata.set_num_threads(threads)
    try:
        for shape in SHAPES:
            strata.manual_seed(len(shape) + shape[1])
            image = strata.randn(*shape, dtype=getattr(strata, dtype))
            grid = strata.rand(shape[0], 5, 11, 2, dtype=image.dtype) * 2.2 - 1.1
            seed = strata.randn(*function(image, grid).shape, dtype=image.dtype)
            expected = results(function, image, grid, seed)
            got = results(function, image.to(memory_format=strata.channels_last), grid, seed)
            for one, other in zip(got, expected, strict=True):
                assert one.shape == other.shape and bits(one) == bits(other), (name, shape)
    finally:
        strata.set_num_threads(before)
