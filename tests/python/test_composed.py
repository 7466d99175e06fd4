"""Windows, positions in a shape, and small methods of tensors."""

import math

import pytest
import strata as torch


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hann", "kaiser"])
def test_windows(name):
    make = getattr(torch, f"{name}_window")
    assert make(0).tolist() == [] and make(1).tolist() == [1.0]
    symmetric = make(9, periodic=False, dtype=torch.float64)
    torch.testing.assert_close(symmetric, symmetric.flip(0))
    assert symmetric.argmax().item() == 4 and symmetric[4].item() == pytest.approx(1.0)
    torch.testing.assert_close(make(8, dtype=torch.float64), symmetric[:-1])
    with pytest.raises(RuntimeError, match="non-negative"):
        make(-1)
    with pytest.raises(RuntimeError, match="floating point"):
        make(3, dtype=torch.int64)


def test_window_values():
    expected = [0.5 - 0.5 * math.cos(2 * math.pi * i / 5) for i in range(5)]
    torch.testing.assert_close(torch.hann_window(5), torch.tensor(expected))
    kaiser = torch.kaiser_window(6, periodic=False, beta=12.0)
    torch.testing.assert_close(kaiser, torch.tensor([5.2773e-05, 0.10172, 0.79294, 0.79294, 0.10172, 5.2773e-05]), rtol=1e-4, atol=1e-6)


def test_windows_take_options():
    assert torch.hann_window(3, requires_grad=True).requires_grad
    assert torch.kaiser_window(4, dtype=torch.bfloat16).dtype == torch.bfloat16
    assert torch.hamming_window(4, device="meta").shape == (4,)
    assert torch.hamming_window(1, True, 0.5, 0.1).item() == 1.0  # alone it is 1, whatever alpha and beta
    with pytest.raises(NotImplementedError, match="not implemented"):
        torch.blackman_window(3, dtype=torch.complex64)
    with pytest.raises(TypeError, match="beta"):
        torch.kaiser_window(3, beta=5.0)  # which needs to know whether it is periodic


def test_windows_have_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.bartlett_window(3).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_unravel_index():
    rows, columns = torch.unravel_index(torch.arange(12).reshape(2, 6), (3, 4))
    assert (rows * 4 + columns == torch.arange(12).reshape(2, 6)).all()
    with pytest.raises(ValueError, match="between 0 and 11"):
        torch.unravel_index(torch.tensor([12]), (3, 4))
    with pytest.raises(TypeError, match="integer"):
        torch.unravel_index(torch.tensor([1.0]), (3, 4))


def test_cdist_takes_words():
    a, b = torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.tensor([[0.0, 0.0]])
    assert torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").tolist() == [[0.0], [5.0]]
    with pytest.raises(ValueError, match="compute_mode"):
        torch.cdist(a, b, compute_mode="other")


def test_detach_in_place():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    assert y.detach_() is y and y.is_leaf and not y.requires_grad and y.grad_fn is None
    assert not (y + 1).requires_grad
    with pytest.raises(RuntimeError, match="detach views"):
        (x * 2)[:2].detach_()


def test_apply():
    x = torch.tensor([[1, 2], [3, 4]])
    assert x.apply_(lambda v: v * v) is x and x.tolist() == [[1, 4], [9, 16]]
    assert x.resolve_neg() is x and not x.is_conj() and not x.is_neg()


def test_grid_samplers():
    image, grid = torch.randn(1, 2, 4, 5), torch.rand(1, 3, 2, 2) * 2 - 1
    found = torch.grid_sampler_2d(image, grid, 2, 1, True)
    assert torch.equal(found, torch.nn.functional.grid_sample(image, grid, "bicubic", "border", True))
    volume, places = torch.randn(1, 2, 3, 4, 5), torch.rand(1, 2, 2, 2, 3) * 2 - 1
    found = torch.grid_sampler_3d(volume, places, 1, 0, False)
    assert torch.equal(found, torch.nn.functional.grid_sample(volume, places, "nearest", "zeros", False))
    with pytest.raises(ValueError, match="from 0 to 2"):
        torch.grid_sampler(image, grid, 3, 0, False)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, float("inf")])
def test_distances_by_pieces_have_the_same_bits(p):
    """Where nobody keeps the differences of all pairs, they are made some at a time."""
    a, b = torch.randn(2, 900, 8), torch.randn(800, 8)
    exact = "donot_use_mm_for_euclid_dist"
    assert torch.equal(torch.cdist(a, b, p, exact), torch.cdist(a.requires_grad_(), b, p, exact))
    for n, width in ((2, 3), (3, 70_000), (150, 700), (600, 8)):
        c = torch.randn(n, 2 * width)
        for rows in (c, c[:, ::2], c.t().contiguous().t()):
            assert torch.equal(torch.pdist(rows, p), torch.pdist(rows.clone().requires_grad_(), p))


def test_means_of_segments_count_where_they_begin():
    x, lengths = torch.arange(1.0, 7).reshape(6, 1), torch.tensor([2, 0, 4])
    assert torch.segment_reduce(x, "mean", lengths=lengths, initial=2.0).flatten().tolist() == [2.5, 2, 5]
    assert torch.segment_reduce(x, "mean", lengths=torch.tensor([2, 1, 3]), initial=0).flatten().tolist() == [1.5, 3, 5]


def test_empty_permuted():
    x = torch.empty_permuted((2, 3, 4), (1, 2, 0), dtype=torch.float64)
    assert x.shape == (2, 3, 4) and x.stride() == (1, 8, 2) and x.dtype == torch.float64
    assert torch.empty_permuted((2, 0), (1, 0)).stride() == (1, 2)
    for text, size, layout in [
        ("does not match the length", (2, 3), (0,)),
        ("out of range", (2, 3), (0, 2)),
        ("out of range", (2, 3), (0, -1)),
        ("Duplicate", (2, 3), (1, 1)),
    ]:
        with pytest.raises(RuntimeError, match=text):
            torch.empty_permuted(size, layout)


def test_distances_of_fake_tensors_are_asked_once():
    from strata._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.empty(2_000_000, 64)
        assert torch.cdist(x, x, p=1).shape == (2_000_000, 2_000_000)
