"""Slopes and counts of sampled data."""

import numpy as np
import pytest
import strata as torch


def test_slopes_of_a_parabola_are_exact_inside():
    x = torch.arange(6, dtype=torch.float64) * 0.5
    (central,) = torch.gradient(x * x, spacing=0.5)
    torch.testing.assert_close(central[1:-1], 2 * x[1:-1])
    torch.testing.assert_close(central[[0, -1]], torch.tensor([0.5, 4.5], dtype=torch.float64))
    (both_ends,) = torch.gradient(x * x, spacing=0.5, edge_order=2)
    torch.testing.assert_close(both_ends, 2 * x)


@pytest.mark.parametrize("order", [1, 2])
def test_slopes_agree_with_numpy(order):
    values = np.random.default_rng(0).standard_normal((5, 6))
    rows, columns = np.array([0.0, 0.4, 1.0, 1.1, 2.0]), np.array([0.0, 1.0, 3.0, 3.5, 4.0, 7.0])
    at = torch.from_numpy(values)
    expected = np.gradient(values, rows, columns, edge_order=order)
    found = torch.gradient(at, spacing=[torch.from_numpy(rows), torch.from_numpy(columns)], edge_order=order)
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f.numpy(), e)
    expected = np.gradient(values, 2.0, axis=1, edge_order=order)
    np.testing.assert_allclose(torch.gradient(at, spacing=2.0, dim=-1, edge_order=order)[0].numpy(), expected)


def test_slopes_have_gradients():
    x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: torch.gradient(t, dim=(0, 1), edge_order=2), (x,))


@pytest.mark.parametrize(
    ("error", "text", "kwargs"),
    [
        (RuntimeError, "edge_order", {"edge_order": 3}),
        (RuntimeError, "list of length equal", {"spacing": [1.0]}),
        (RuntimeError, "at least edge_order", {"dim": 0, "edge_order": 2}),
        (RuntimeError, "multiple times", {"dim": (1, -1)}),
        (IndexError, "out of range", {"dim": 2}),
        (TypeError, "spacing", {"spacing": "wide"}),
    ],
)
def test_gradient_refuses(error, text, kwargs):
    with pytest.raises(error, match=text):
        torch.gradient(torch.ones(2, 5), **kwargs)


@pytest.mark.parametrize("density", [False, True])
def test_histograms_agree_with_numpy(density):
    random = np.random.default_rng(1)
    values, weights = np.round(random.standard_normal(200) * 4) / 4, random.random(200)
    edges = np.sort(random.standard_normal(9))
    cases = [
        (np.histogram(values, 7, density=density), {"bins": 7}),
        (np.histogram(values, 16, (-2, 2), density=density), {"bins": 16, "range": (-2.0, 2.0)}),
        (np.histogram(values, edges, density=density), {"bins": torch.from_numpy(edges)}),
        (
            np.histogram(values, 5, weights=weights, density=density),
            {"bins": 5, "weight": torch.from_numpy(weights).reshape(4, 50)},
        ),
    ]
    for (counts, ends), kwargs in cases:
        found = torch.histogram(torch.from_numpy(values).reshape(4, 50), density=density, **kwargs)
        np.testing.assert_allclose(found.hist.numpy(), counts)
        np.testing.assert_allclose(found.bin_edges.numpy(), ends)


def test_histogram_of_points():
    points = np.random.default_rng(2).random((40, 2))
    counts, _ = np.histogramdd(points, [3, 4], range=[(0, 1), (0, 1)])
    found = torch.histogramdd(torch.from_numpy(points), [3, 4], range=[0.0, 1.0, 0.0, 1.0])
    np.testing.assert_array_equal(found.hist.numpy(), counts)
    assert [e.numel() for e in found.bin_edges] == [4, 5]


def test_histogram_writes_and_refuses():
    x = torch.tensor([1.0, 2.0, 4.0])
    out = (torch.empty(0), torch.empty(0))
    assert torch.histogram(x, 3, out=out).hist is out[0] and out[0].tolist() == [1.0, 1.0, 1.0]
    assert x.histogram(3).bin_edges.tolist() == [1.0, 2.0, 3.0, 4.0]
    for text, call in {
        "bins must be > 0": lambda: torch.histogram(x, 0),
        "should not exceed": lambda: torch.histogram(x, 3, range=(2.0, 1.0)),
        "should have 2 elements": lambda: torch.histogram(x, 3, range=(2.0,)),
        "same shape": lambda: torch.histogram(x, 3, weight=x[:2]),
        "same dtype": lambda: torch.histogram(x, torch.tensor([1, 2])),
        "not finite": lambda: torch.histogram(x / 0, 3),
        "one dimension": lambda: torch.histogram(x, x.reshape(1, 3)),
        "innermost dimension": lambda: torch.histogramdd(x.reshape(3, 1), [2, 2]),
    }.items():
        with pytest.raises(RuntimeError, match=text):
            call()
    with pytest.raises(NotImplementedError, match="histogramdd"):
        torch.histogram(x.long(), 3)


def test_combinations_of_more_than_there_are():
    for r in (4, 2**40):
        assert torch.combinations(torch.arange(3), r).shape == (0, r)


def test_histograms_have_no_derivative():
    x = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    found = torch.histogram(x, 3)
    assert found.hist.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises((RuntimeError, NotImplementedError), match="derivative"):
        found.hist.sum().backward()


def test_histogramdd_wants_bins_of_one_kind():
    with pytest.raises(TypeError, match="dimension 1"):
        torch.histogramdd(torch.ones(3, 2), [torch.tensor([0.0, 2.0]), 3])
