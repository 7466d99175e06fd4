"""What random programs beside PyTorch found at the edges (./run fuzz-beside): the same file passes under PyTorch with `import torch
as strata`."""

from __future__ import annotations

import math

import pytest
import strata
import strata.nn.functional as F

NAN, INF = math.nan, math.inf


def gradients(f, *values, grad=None):
    leaves = [strata.tensor(v, dtype=strata.float64, requires_grad=True) for v in values]
    made = f(*leaves)
    made.backward(strata.ones_like(made) if grad is None else strata.tensor(grad, dtype=strata.float64))
    return [leaf.grad.tolist() for leaf in leaves]


def test_an_angle_at_the_origin_has_no_slope():
    assert gradients(strata.atan2, [0.0, 0.0], [0.0, 2.0]) == [[0.0, 0.5], [0.0, 0.0]]


def test_odds_outside_of_what_is_likely():
    (found,) = gradients(strata.logit, [-1.0, 0.5, 2.0])
    assert math.isnan(found[0]) and found[1] == 4 and math.isnan(found[2])


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_nan_beside_numbers_has_a_slope_on_both_sides(name):
    first, second = gradients(getattr(strata, name), [NAN, 1.0, 2.0], [1.0, NAN, 2.0])
    assert first == [1, 1, 0.5] and second == [1, 1, 0.5]


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_who_loses_gets_nothing_of_an_infinite_gradient(name):
    first, second = gradients(getattr(strata, name), [1.0], [2.0], grad=[INF])
    assert sorted([first[0], second[0]]) == [0, INF]


def test_a_complex_power_of_a_negative_number():
    base, exponent = strata.tensor(-2.0), strata.tensor(2 + 1j, requires_grad=True)
    made = strata.pow(base, exponent)
    made.abs().backward()
    step = 1e-3
    wanted = [(abs(strata.pow(base, exponent.detach() + s * step)) - abs(strata.pow(base, exponent.detach() - s * step))).item() / (2 * step) for s in (1, 1j)]
    assert exponent.grad.real.item() == pytest.approx(wanted[0], rel=1e-2)
    assert exponent.grad.imag.item() == pytest.approx(wanted[1], rel=1e-2)


def test_what_is_joined_is_channels_last_where_all_say_so():
    x = strata.ones(2, 3, 4, 5).contiguous(memory_format=strata.channels_last)
    assert strata.cat([x, x]).is_contiguous(memory_format=strata.channels_last)
    assert strata.stack([x, x], -1).is_contiguous()
    image = strata.ones(4, 5, 3).permute(2, 0, 1).unsqueeze(0)  # one image, whose batch steps by nothing
    assert F.conv2d(image, strata.ones(2, 3, 1, 1)).is_contiguous()


def test_groups_of_no_channels():
    assert F.group_norm(strata.ones(2, 0, 3), 1).shape == (2, 0, 3)


@pytest.mark.filterwarnings("ignore")
def test_transposes_of_numbers():
    z = strata.tensor(1 + 2j)
    assert z.mT.item() == z.T.item() == 1 + 2j
    assert z.mH.item() == z.H.item() == 1 - 2j


def test_views_as_copies_take_every_layout():
    x = strata.arange(6).reshape(2, 3).t()
    assert strata.view_copy(x, (6,)).tolist() == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize("apart", [False, True])
def test_functions_take_arguments_by_name(apart):
    class Times(strata.autograd.Function):
        if apart:

            @staticmethod
            def forward(a, b=3):
                return a * b

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.b = inputs[1]
        else:

            @staticmethod
            def forward(ctx, a, b=3):
                ctx.b = b
                return a * b

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.b, None

    x = strata.ones(2, requires_grad=True)
    for made, b in ((Times.apply(x, b=2), 2), (Times.apply(b=4, a=x), 4), (Times.apply(x), 3), (Times.apply(x, 5), 5)):
        x.grad = None
        made.sum().backward()
        assert x.grad.tolist() == [b, b] == made.tolist()
    with pytest.raises(TypeError):
        Times.apply(x, c=1)


def test_one_value_of_any_dtype_fills_a_mask():
    mask = strata.tensor([True, False, True])
    for value in (strata.tensor(2.5), strata.tensor([2.5]), strata.tensor(2), strata.tensor(True)):
        x = strata.zeros(3, dtype=strata.float64)
        x[mask] = value
        assert x.tolist() == [float(value), 0, float(value)]
    x = strata.zeros(3, 2, dtype=strata.float64)
    x[mask, 1] = strata.tensor(1.5)
    x[1, strata.tensor([True, False])] = strata.tensor(4.0)
    assert x.tolist() == [[0, 1.5], [4, 0], [0, 1.5]]
    whole = strata.zeros(3, dtype=strata.int64)
    whole[mask] = strata.tensor(2.75)
    assert whole.tolist() == [2, 0, 2]
    value = strata.tensor(2.5, requires_grad=True)
    x = strata.zeros(3, dtype=strata.float64)
    x[mask] = value
    x.sum().backward()
    assert value.grad.item() == 2 and value.grad.dtype == strata.float32
    for index, value in ((mask, strata.ones(2)), (strata.tensor([0]), strata.tensor(1.0)), (mask, strata.tensor(1j))):
        with pytest.raises(RuntimeError, match="dtypes match|cannot be converted"):
            strata.zeros(3, dtype=strata.float64)[index] = value


def test_windows_of_zeros_have_no_slope():
    x = strata.tensor([[0.0, 0.0, 3.0, 4.0]], dtype=strata.float64, requires_grad=True)
    made = F.lp_pool1d(x, 2.0, 2)
    assert made.tolist() == [[0, 5]]
    made.sum().backward()
    assert x.grad.tolist() == [[0, 0, pytest.approx(0.6), pytest.approx(0.8)]]


def test_scans_in_half_round_their_elements_first():
    x = strata.tensor([257, 1])
    assert strata.cumsum(x, 0, dtype=strata.bfloat16).tolist() == [256, 256]
    assert strata.cumsum(x, 0, out=strata.empty(2, dtype=strata.bfloat16)).tolist() == [256, 256]
    assert strata.cumprod(strata.tensor([257.0, 3.0]), 0, dtype=strata.bfloat16).tolist() == [256, 768]


def test_a_functions_forward_may_be_any_callable():
    class Product:
        def __call__(self, a, b):
            return a * b

    class Times(strata.autograd.Function):
        forward = Product()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.b = inputs[1]

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.b, None

    x = strata.ones(2, requires_grad=True)
    Times.apply(x, 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_nan_passes_on_its_gradient():
    assert gradients(F.relu, [NAN, -1.0, 0.0, 2.0]) == [[1, 0, 0, 1]]


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_the_larger_of_two_is_infinite(name):
    first, second = gradients(getattr(strata, name), [INF, 1.0, -INF], [1.0, INF, 0.0])
    assert first == [1, 0, 0] and second == [0, 1, 1]


def test_what_chooses_is_true_or_false():
    for condition in (strata.tensor([1, 0]), strata.tensor([1.0, 0.0])):
        with pytest.raises(RuntimeError, match="expected condition to be a boolean tensor"):
            strata.where(condition, 1.0, strata.ones(2))
    assert strata.where(strata.tensor([True, False]), 1.0, strata.zeros(2)).tolist() == [1, 0]


def test_points_of_an_integral_with_more_or_fewer_dims_than_it():
    one, two = strata.tensor([1.0, 2.0, 4.0]), strata.arange(6.0).reshape(3, 2)
    assert strata.cumulative_trapezoid(one, two).tolist() == [[3, 6], [6, 12]]
    assert strata.trapezoid(two, two[:1]).tolist() == [0.5, 2.5, 4.5]
    assert strata.trapezoid(two.reshape(3, 1, 2), two[:2]).tolist() == [[0.5, 0.5], [2.5, 2.5], [4.5, 4.5]]
    with pytest.raises(RuntimeError):
        strata.trapezoid(one, two.T)


def test_what_a_transform_inside_followed_is_followed_no_longer():
    def f(x, y):
        return (x.sin() * y).sum()

    x, y = strata.ones(2), strata.ones(2, requires_grad=True)
    jacobian = strata.func.jacrev(strata.func.grad(f), argnums=1)
    assert not jacobian(x, y.detach()).requires_grad
    assert strata.func.jacrev(strata.func.grad(f))(x, y).requires_grad


def test_distances_of_many_rows_are_those_of_few():
    x = strata.arange(120.0, dtype=strata.float64).reshape(30, 4).sin()
    y = strata.arange(200.0, dtype=strata.float64).reshape(2, 1, 25, 4).cos()
    many = strata.cdist(x, y)
    assert many.shape == (2, 1, 30, 25)
    assert strata.allclose(many, strata.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"))
    assert strata.allclose(strata.cdist(x[:3], y, compute_mode="use_mm_for_euclid_dist"), many[..., :3, :])
    leaf = x.clone().requires_grad_()
    strata.cdist(leaf, leaf.detach()).sum().backward()
    assert leaf.grad.isfinite().all() and strata.autograd.gradcheck(strata.cdist, (leaf, y[1, 0].requires_grad_()))


def test_expanded_tensors_are_repeated():
    assert strata.full((1,), 0.5).expand(1024).repeat(2).sum() == 1024
    assert strata.arange(40.0)[:, None].expand(40, 33).repeat(1, 2)[3].unique().tolist() == [3.0]
    assert strata.tensor([True]).expand(32, 64).repeat(2, 1).sum() == 4096 and strata.tensor([2]).expand(40, 40).tile(3, 1).unique().tolist() == [2]


@pytest.mark.parametrize(
    "make",
    [
        lambda: strata.empty(0, 3, 2**62, 2),
        lambda: strata.empty(0, 3, 2**62, 2, device="meta"),
        lambda: strata.empty(0, 3, 2**62, 2, memory_format=strata.channels_last),
        lambda: strata.empty(0, 3, 1, 1).expand(0, 3, 2**62, 2) + 1,
        lambda: strata.nn.functional.pad(strata.empty(0, 3, 0, 0, dtype=strata.complex64), (0, 2, 0, 2**62)),
        lambda: strata.fft.hfft2(strata.empty(0, 3, 0, 0, dtype=strata.complex128), s=[2**62, 2]),
    ],
)
def test_steps_of_empty_tensors_fit_or_raise(make):
    """Else what reads them (view_as_real, slices) would overflow."""
    with pytest.raises(RuntimeError, match="Stride calculation overflowed"):
        make()
    assert strata.empty(2**62, 2, 0).stride() == (2, 1, 1)
