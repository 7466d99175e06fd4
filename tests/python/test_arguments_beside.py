"""Arguments that PyTorch 2.13 takes as these tests say, which pass there, too: None for empty lists, numbers without dims of another
dtype, results that are given under autocast, places of a file."""

from __future__ import annotations

import io

import pytest
import strata as torch

F = torch.nn.functional
X = torch.arange(16.0).view(1, 1, 4, 4)


@pytest.mark.parametrize(
    "call",
    [
        lambda **k: F.avg_pool2d(X, 2, **k),
        lambda **k: F.max_pool2d(X, 2, **k),
        lambda **k: torch.max_pool2d(X, 2, **k),
        lambda **k: F.avg_pool1d(X[0], 2, **k),
        lambda **k: F.avg_pool3d(X[None], (1, 2, 2), **k),
    ],
)
def test_stride_none_is_the_kernels_size(call):
    assert torch.equal(call(stride=None), call())


def test_dims_none_are_all():
    assert F.avg_pool2d(X, 2, None).shape == (1, 1, 2, 2)
    assert torch.amax(X, None).item() == 15 and X.amin(None).item() == 0 and torch.amax(X, dim=None).dim() == 0
    assert torch.equal(torch.roll(X, 1, None), torch.roll(X, 1))
    with pytest.raises(TypeError):
        F.conv2d(X, X, None, None)
    with pytest.raises(TypeError):
        torch.flip(X, None)


def test_lerp_by_a_weight_without_dims():
    a, b = torch.zeros(2), torch.ones(2)
    assert torch.lerp(a, b, torch.tensor(0.25, dtype=torch.float64)).tolist() == [0.25, 0.25]
    assert a.double().lerp(b.double(), torch.tensor(0.25)).dtype == torch.float64
    with pytest.raises(RuntimeError):
        torch.lerp(a, b, torch.tensor([0.25], dtype=torch.float64))
    w = torch.tensor(0.25, dtype=torch.float64, requires_grad=True)
    torch.lerp(a, b, w).sum().backward()
    assert w.grad.item() == 2 and w.grad.dtype == torch.float64


def test_topk_of_a_number():
    for k in (0, 1):
        values, indices = torch.topk(torch.tensor(3.0), k)
        assert values.item() == 3 and indices.item() == 0


def test_complex_logarithms_of_zero_and_powers_of_infinity():
    zeros = torch.tensor([0j, complex(0.0, -0.0)])
    for f in (torch.log2, torch.log10, torch.log):
        assert f(zeros).real.tolist() == [-torch.inf] * 2 and f(zeros).imag.tolist() == [0, 0]
    assert torch.exp2(torch.tensor(complex(torch.inf, 0))).real.item() == torch.inf
    x = torch.tensor([1 + 2j, -3 + 0.5j], dtype=torch.complex128)
    assert torch.allclose(2 ** torch.log2(x), x) and torch.allclose(10 ** torch.log10(x), x)


def test_results_that_are_given_keep_their_dtype_under_autocast():
    a, out = torch.ones(2, 2), torch.empty(2, 2)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.mm(a, a, out=out) is out and out.dtype == torch.float32
        assert torch.matmul(a, a, out=torch.empty(2, 2)).dtype == torch.float32
        assert torch.mm(a, a).dtype == torch.bfloat16
        with pytest.raises(RuntimeError):
            torch.mm(a, a, out=torch.empty(2, 2, dtype=torch.int64))
    third = torch.full((2, 2), 1 / 3)
    with torch.autocast("cpu", torch.bfloat16):
        torch.mm(third, third, out=out)
    assert torch.equal(out, torch.mm(third, third))


def test_masked_scans_keep_integers():
    mask, x = torch.tensor([True, False, True]), torch.tensor([1, 2, 3], dtype=torch.int32)
    assert torch.masked.cumsum(x, 0, mask=mask).dtype == torch.int32
    assert torch.masked.cumprod(x, 0, mask=mask).tolist() == [1, 1, 3]
    assert torch.masked.median(x, 0, mask=mask).item() == 1 and torch.masked.median(x, 0, mask=mask).dtype == torch.int32
    assert torch.masked.amax(torch.tensor([True, False]), 0).item() is True


def test_states_of_optimisers_have_float64_where_it_is_the_default():
    torch.set_default_dtype(torch.float64)
    try:
        for name in ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "ASGD", "Adadelta", "Adagrad", "RMSprop", "Rprop"):
            p = torch.nn.Parameter(torch.ones(2))
            p.grad = torch.ones(2)
            optimizer = getattr(torch.optim, name)([p])
            optimizer.step()
            assert optimizer.state[p]["step"].dtype == torch.float64 and optimizer.state[p]["step"].item() == 1, name
            again = getattr(torch.optim, name)([p])
            again.load_state_dict(optimizer.state_dict())
            assert again.state[p]["step"].dtype == torch.float64
            again.step()
            assert again.state[p]["step"].item() == 2
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_place_of_a_file_that_is_meta():
    file = io.BytesIO()
    torch.save({"w": torch.ones(2, 3)}, file)
    for place in ({"cpu": "meta"}, "meta", torch.device("meta")):
        file.seek(0)
        w = torch.load(file, map_location=place)["w"]
        assert w.device.type == "meta" and w.shape == (2, 3)
