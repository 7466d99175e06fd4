"""Inputs that are brought side by side go some rows at a time: eager's bits, whatever they are and wherever they lie."""

import graph_models
import pytest
import strata as torch

SHAPES = [(3000, 5), (300, 1001), (2, 40_000), (7, 33, 129), (1, 9), (0, 4)]


def _parts(x):
    return {
        "twice": [x, x],
        "three": [x, x[..., :1], x[..., 1:]],
        "empty": [x, x[..., :0], x],
        "turned": [x, x.flip(-1).transpose(0, -1).contiguous().transpose(0, -1)],
        "types": [x, x.double(), x.half()],
    }


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_cat(shape, threads):
    torch.manual_seed(0)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for name, parts in _parts(torch.randn(shape)).items():
            for dim in {-1, len(shape) - 1, 0 if all(p.shape == parts[0].shape for p in parts) else -1}:
                def f(*parts, dim=dim):
                    return torch.cat(parts, dim)

                assert graph_models.same(torch.graph(f, *parts).compile()(*parts), f(*parts)), (name, dim)
    finally:
        torch.set_num_threads(before)


def test_several_and_what_is_around_them():
    torch.manual_seed(0)
    x, y = torch.randn(500, 60), torch.randn(500, 60)

    def f(x, y):
        a = torch.cat([x, y], 1)
        b = torch.cat([y, x, a], -1)
        return a, b, torch.stack([x, y], 1), torch.cat([a.sin(), b], 1), torch.hstack([x, x, y])

    for got, want in zip(torch.graph(f, x, y).compile()(x, y), f(x, y), strict=True):
        assert graph_models.same(got, want)


def test_explain_has_them_as_one():
    x = torch.randn(100, 30)
    text = torch.graph(lambda x: torch.cat([x, x, x], 1), x).compile().explain()
    assert text.count("by itself\n") == 1 and text.count("aten::cat") == 3
