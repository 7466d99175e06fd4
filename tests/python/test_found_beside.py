"""What differed from PyTorch where programs were run in both; holds in PyTorch 2.13, too, but for messages."""

import copy
import math
import pickle

import pytest
import strata
from strata import nn
from strata.nn.utils import prune
from strata.testing import assert_close

F = nn.functional
T = strata.tensor


def test_expanded_tensors_are_repeated():
    assert strata.full((1,), 0.5).expand(1024).repeat(2).sum() == 1024
    assert strata.arange(40.0)[:, None].expand(40, 33).repeat(1, 2)[3].unique().tolist() == [3.0]
    assert T([True]).expand(32, 64).repeat(2, 1).sum() == 4096 and T([2]).expand(40, 40).tile(3, 1).unique().tolist() == [2]


def test_ranges_keep_the_shape_of_an_out_of_their_size():
    out = strata.zeros(3, 6)
    strata.linspace(1, 9, 9, out=out[:, ::2])
    assert out.tolist() == [[1, 0, 2, 0, 3, 0], [4, 0, 5, 0, 6, 0], [7, 0, 8, 0, 9, 0]]
    out = strata.zeros(3, 3)
    assert strata.arange(9.0, out=out) is out and out.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    out = strata.zeros(2, 8)
    strata.arange(4.0, out=out[:, :2])
    assert out[:, :3].tolist() == [[0, 1, 0], [2, 3, 0]]
    out = strata.zeros(2, 2)
    strata.logspace(0, 3, 4, out=out.t())
    assert_close(out, T([[1.0, 100.0], [10.0, 1000.0]]))
    out = strata.zeros(0)
    assert strata.arange(3.0, out=out).shape == (3,)


def test_asarray_and_the_old_constructor_keep_the_history():
    x = strata.ones(3, requires_grad=True)
    assert strata.asarray(x) is x and strata.asarray(x, copy=False) is x
    for made in (strata.asarray(x * 2), strata.asarray(x * 2, copy=True), strata.asarray(x * 2, dtype=strata.float64), strata.Tensor(x * 2)):
        x.grad = None
        made.sum().backward()
        assert x.grad.tolist() == [2, 2, 2]
    assert not strata.asarray(x, requires_grad=False).requires_grad
    parameter = nn.Parameter(strata.ones(1))
    assert strata.asarray(parameter) is parameter
    assert strata.Size((T(1), 2)) == (1, 2) and [type(n) for n in strata.Size([T(1), True])] == [int, int]


def test_copies_share_what_the_originals_share():
    x = strata.arange(4.0)
    a, b = copy.deepcopy([x, x[1:]])
    a.zero_()
    assert b.tolist() == [0, 0, 0] and x.tolist() == [0, 1, 2, 3]
    module = nn.Module()
    module.register_buffer("a", strata.zeros(3))
    module.register_buffer("v", module.a[1:])
    module.weight = nn.Parameter(strata.ones(2, 3))
    copied = copy.deepcopy(module)
    copied.a.fill_(1)
    assert copied.v.tolist() == [1, 1] and module.v.tolist() == [0, 0] and type(copied.weight) is nn.Parameter
    y = copy.deepcopy(strata.arange(12.0).reshape(3, 4)[:, 1:3])
    assert y.stride() == (4, 1) and y.storage_offset() == 1 and y[2].tolist() == [9, 10]
    assert copy.deepcopy(strata.ones(1).expand(5)).stride() == (0,)


def test_tensors_with_history_are_pickled():
    made = pickle.loads(pickle.dumps(strata.ones(2, requires_grad=True) * 2))
    assert made.tolist() == [2, 2] and made.is_leaf and made.requires_grad
    module = nn.Linear(2, 2)
    prune.l1_unstructured(module, "weight", 1)
    assert pickle.loads(pickle.dumps(module)).weight.shape == (2, 2)


def dense(grad):
    return (grad.to_dense() if grad.is_sparse else grad).tolist()


def test_sparse_gradients_beside_others():
    def lookup(w):
        return F.embedding(T([1]), w, sparse=True).sum()

    assert dense(strata.func.grad(lookup)(strata.ones(2, 2))) == [[0, 0], [1, 1]]
    w, seen = strata.ones(2, 2, requires_grad=True), []
    assert dense(strata.autograd.grad(lookup(w), w)[0]) == [[0, 0], [1, 1]] and w.grad is None
    w.register_hook(lambda g: g * 10)
    w.register_post_accumulate_grad_hook(lambda p: seen.append(1))
    lookup(w).backward()
    assert dense(w.grad) == [[0, 0], [10, 10]] and seen == [1]
    w = strata.ones(2, 2, requires_grad=True)
    w.grad = before = strata.ones(2, 2)
    lookup(w).backward()
    assert w.grad is before and before.tolist() == [[1, 1], [2, 2]]
    module = nn.Embedding(3, 2, sparse=True)
    with strata.no_grad():
        module.weight.fill_(1)
    (module(T([0])) @ module.weight.t()).sum().backward()
    assert dense(module.weight.grad) == [[4, 4], [1, 1], [1, 1]]
    module.weight.grad = None
    for _ in range(2):
        module(T([1])).sum().backward()
    assert module.weight.grad.is_sparse and dense(module.weight.grad) == [[0, 0], [2, 2], [0, 0]]
    (module.weight**2).sum().backward()
    assert dense(module.weight.grad) == [[2, 2], [4, 4], [2, 2]]
    w = strata.ones(3, 2, requires_grad=True)
    F.embedding(T([0]), w * 2, sparse=True).sum().backward()
    assert dense(w.grad) == [[2, 2], [0, 0], [0, 0]]


def test_a_sparse_gradient_of_a_function():
    class Sum(strata.autograd.Function):
        @staticmethod
        def forward(ctx, w):
            return w.sum()

        @staticmethod
        def backward(ctx, grad):
            return strata.sparse_coo_tensor([[1], [0]], [5.0], (3, 2))

    w = strata.ones(3, 2, requires_grad=True)
    Sum.apply(w).backward()
    assert dense(w.grad) == [[0, 0], [5, 0], [0, 0]]
    w.grad = None
    (w * 1).backward(strata.sparse_coo_tensor([[1], [0]], [5.0], (3, 2)))
    assert dense(w.grad) == [[0, 0], [5, 0], [0, 0]]


def test_an_axis_that_keeps_its_size_keeps_its_values():
    assert F.interpolate(T([[[1.0, 2.0, 4.0]]]), scale_factor=1.3, mode="linear").tolist() == [[[1, 2, 4]]]
    x = strata.arange(12.0).reshape(1, 1, 3, 4)
    assert F.interpolate(x, scale_factor=(1.2, 1.2))[0, 0, 2].tolist() == [8, 9, 10, 11]
    assert F.interpolate(x, scale_factor=(1.2, 1.2), mode="bicubic", antialias=True)[0, 0, 0].tolist() == [0, 1, 2, 3]
    assert F.interpolate(x, scale_factor=(1.2, 2.0), mode="bilinear").shape == (1, 1, 3, 8)


def test_losses_and_sequences():
    padded = nn.utils.rnn.pad_sequence([T([1, 2]), T([0.5, 1.5, 2.5])])
    assert padded.dtype == strata.int64 and padded.tolist() == [[1, 0], [2, 1], [0, 2]]
    assert_close(F.multilabel_soft_margin_loss(strata.zeros(2, 1), strata.ones(3)), T(3 * math.log(2)))
    assert F.cross_entropy(strata.zeros(3), T([1]), reduction="none").shape == ()
    for ord in (1, "fro", -1, math.inf, -math.inf):
        assert strata.linalg.cond(strata.zeros(2, 2), ord) == math.inf


def test_modules_that_are_loaded_and_assigned():
    lazy = nn.LazyLinear(3)
    assert str(lazy.load_state_dict(nn.LazyLinear(3).state_dict())) == "<All keys matched successfully>"

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, x):
            return x.triu()

    module = nn.Linear(3, 3)
    nn.utils.parametrize.register_parametrization(module, "weight", Symmetric())
    with pytest.raises(ValueError):
        module.weight = strata.eye(3, dtype=strata.float64)
    module.weight = strata.eye(3)
    assert module.weight.dtype == strata.float32


def test_transposed_convolutions_of_any_output_padding():
    cases = ((2, 2, 8, 4, 17, 5, {"padding": 2, "output_padding": 1, "dilation": 2}, 329026), (3, 3, 4, 4, 9, 3, {"padding": 1, "output_padding": 1, "dilation": 2}, 818759))
    for rank, n, i, o, size, k, options, total in cases:
        x = ((strata.arange(n * i * size**rank) * 7 % 13) - 6).float().reshape([n, i] + [size] * rank)
        w = ((strata.arange(i * o * k**rank) * 5 % 11) - 5).float().reshape([i, o] + [k] * rank)
        assert getattr(F, f"conv_transpose{rank}d")(x, w, **options).abs().sum() == total


def test_the_length_of_a_signal_may_be_any_number():
    frames, window = strata.ones(1, 5, 4, dtype=strata.complex64), strata.hann_window(8)
    for length in (2**63 - 1, -5):
        with pytest.raises(RuntimeError):
            frames.istft(8, 3, window=window, length=length)
