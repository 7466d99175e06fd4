"""What autocast does to operators: lower precision, float32, the widest dtype, and kept casts of weights."""

import pytest
import strata as torch

BF16, F32, F64 = torch.bfloat16, torch.float32, torch.float64


def on(**options):
    return torch.autocast("cpu", dtype=BF16, **options)


def test_products_run_in_the_lower_precision():
    a, b = torch.ones(2, 3), torch.ones(3, 2)
    with on():
        assert a.mm(b).dtype == BF16 and (a @ b).dtype == BF16
        assert a.to(F64).mm(b.to(F64)).dtype == F64
        assert (a + a).dtype == F32
    assert a.mm(b).dtype == F32


def test_sensitive_operators_run_in_float32():
    x = torch.ones(4, dtype=BF16)
    assert x.prod().dtype == BF16
    with on():
        assert x.prod().dtype == F32 and x.to(F64).prod().dtype == F64


def test_mixed_dtypes_are_widened():
    low, high = torch.ones(2, dtype=BF16), torch.ones(2)
    with on():
        assert torch.cat([low, high]).dtype == F32 and torch.cat([low, low]).dtype == BF16


def test_gradients_reach_the_leaf_in_its_dtype():
    w = torch.ones(3, 2, requires_grad=True)
    x = torch.ones(2, 3)
    with on():
        y = x.mm(w)
        assert y.dtype == BF16 and y.requires_grad
    y.float().sum().backward()
    assert w.grad.dtype == F32 and w.grad.tolist() == [[2.0, 2.0]] * 3


def casts(work):
    torch._C._profiler_start()
    work()
    return sum(e[0] == "aten::_to_copy" for e in torch._C._profiler_stop())


def test_casts_of_weights_are_kept_while_the_outermost_scope_lasts():
    w, x = torch.ones(3, 3, requires_grad=True), torch.ones(3, 3, dtype=BF16)

    def twice():
        x.mm(w)
        x.mm(w)

    with on():
        assert casts(twice) == 1
        with on():
            assert casts(twice) == 0
        with torch.no_grad():
            w.add_(1)
        assert casts(twice) == 1  # the copy was of the old values
        assert x.mm(w)[0, 0].item() == 6.0
    with on():
        assert casts(twice) == 1
    with on(cache_enabled=False):
        assert casts(twice) == 2


def test_a_cast_made_without_gradients_is_not_kept():
    w, x = torch.ones(3, 3, requires_grad=True), torch.ones(3, 3)
    with on():
        with torch.no_grad():
            x.mm(w)
        assert x.mm(w).requires_grad


def test_state_is_of_the_thread():
    import threading

    seen = []
    with on():
        thread = threading.Thread(target=lambda: seen.append(torch.ones(2, 2).mm(torch.ones(2, 2)).dtype))
        thread.start()
        thread.join()
    assert seen == [F32]


def test_backward_is_not_cast():
    w = torch.ones(2, 2, requires_grad=True)
    y = w.mm(w).sum()
    with on():
        y.backward()
    assert w.grad.dtype == F32


def test_wrong_dtype():
    with pytest.raises(ValueError, match="expected dtype"):
        torch._C._autocast_enter("cpu", torch.float32, True, True)


def test_a_scope_inside_backward_works():
    seen = []

    class Recompute(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            seen.append(grad.mm(grad).dtype)
            with on():
                seen.append(grad.mm(grad).dtype)
            seen.append(grad.mm(grad).dtype)
            return grad

    Recompute.apply(torch.ones(2, 2, requires_grad=True)).backward(torch.ones(2, 2))
    assert seen == [F32, BF16, F32]


def test_losses_over_several_classes_are_computed_in_float32():
    x, labels = torch.randn(4, 5).bfloat16(), torch.tensor([0, 1, 2, 3])
    with on():
        assert torch.nn.functional.multi_margin_loss(x, labels).dtype == F32
        assert torch.nn.functional.multilabel_margin_loss(x, torch.zeros(4, 5, dtype=torch.int64)).dtype == F32
    with pytest.raises(NotImplementedError):
        torch.nn.functional.multi_margin_loss(x, labels)


@pytest.mark.parametrize(
    "kind, options, packed, dtype",
    [
        ("LSTM", {}, False, BF16),
        ("LSTM", {"num_layers": 2, "bidirectional": True}, False, BF16),
        ("LSTM", {"proj_size": 3}, False, F32),
        ("LSTM", {}, True, F32),
        ("GRU", {}, False, F32),
        ("RNN", {}, False, BF16),
    ],
)
def test_recurrent_layers_have_the_dtypes_of_pytorchs(kind, options, packed, dtype):
    """PyTorch's LSTM without projection is one operator of its library there, which autocast casts for: its cell too."""
    layer, x = getattr(torch.nn, kind)(4, 5, **options), torch.randn(3, 2, 4, requires_grad=True)
    with on():
        output, state = layer(torch.nn.utils.rnn.pack_padded_sequence(x, [3, 2]) if packed else x)
    assert (state[1] if kind == "LSTM" else state).dtype == dtype
    output = output.data if packed else output
    output.float().sum().backward()
    assert x.grad.dtype == layer.weight_ih_l0.grad.dtype == F32
