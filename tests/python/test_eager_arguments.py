"""Arguments and names of eager operators that PyTorch takes or refuses; the expectations are those of 2.13."""

import pytest
import strata
from strata import nn


def test_tensor_split_by_one_index():
    x = strata.arange(5)
    assert [t.tolist() for t in x.tensor_split(strata.tensor([2]))] == [[0, 1], [2, 3, 4]]
    assert [t.tolist() for t in x.tensor_split(strata.tensor(2))] == [[0, 1, 2], [3, 4]]
    assert [t.tolist() for t in x.tensor_split(2)] == [[0, 1, 2], [3, 4]]
    assert [t.tolist() for t in x.tensor_split([2])] == [[0, 1], [2, 3, 4]]
    assert [t.shape for t in strata.ones(2, 3).tensor_split(strata.tensor([1]))] == [(1, 3), (1, 3)]


def test_sequences_that_are_unpadded_are_copies():
    padded = strata.ones(2, 3)
    first, _ = nn.utils.rnn.unpad_sequence(padded, strata.tensor([3, 1]), batch_first=True)
    first.zero_()
    assert padded.equal(strata.ones(2, 3))


def test_layouts_that_are_not_there():
    with pytest.raises((TypeError, RuntimeError), match="layout"):
        strata.ones(2, layout=strata.sparse_coo)
    assert strata.zeros(2, layout=strata.strided, pin_memory=False).tolist() == [0, 0]
    assert strata.zeros(2, layout=None).tolist() == [0, 0]


def test_data_under_a_device():
    with strata.device("meta"):
        assert strata.as_tensor([1]).is_meta and strata.asarray([1]).is_meta and strata.tensor([1]).is_meta
        assert strata.as_tensor([1], device="cpu").device.type == "cpu"
    assert strata.as_tensor([1]).device.type == "cpu"


@pytest.mark.parametrize("dtype", [strata.int32, strata.int64])
def test_limited_rows_of_embeddings(dtype):
    e = nn.Embedding(4, 2, max_norm=1.0)
    with strata.no_grad():
        e.weight.fill_(3)
    found = e(strata.tensor([0, 3], dtype=dtype))
    assert found.norm(dim=1).allclose(strata.ones(2)) and e.weight[1].tolist() == [3, 3]


def test_refused_arguments():
    with pytest.raises(ValueError, match="probs"):
        strata.distributions.Geometric(0.0)
    with pytest.raises(ValueError, match="chunk_size"):
        strata.vmap(strata.sin, chunk_size=0)


def test_packed_sequences_of_small_integers():
    p = nn.utils.rnn.pack_sequence([strata.tensor([1.0, 2.0]), strata.tensor([3.0])])
    assert [p.char().data.dtype, p.byte().data.dtype, p.short().data.dtype] == [strata.int8, strata.uint8, strata.int16]


def test_inference_tensors_beside_gradients_compiled():
    with strata.inference_mode():
        a = strata.ones(3)
    p = strata.full((3,), 2.0, requires_grad=True)
    for f in (lambda a, p: (a + p).sum(), lambda a, p: (a, p * 5), lambda a, p: (a * 2, p * 5)):
        found, wanted = strata.compile(f)(a, p), f(a, p)
        for x, y in zip(*[t if isinstance(t, tuple) else (t,) for t in (found, wanted)], strict=True):
            assert x.equal(y) and x.requires_grad == y.requires_grad and x.is_inference() == y.is_inference()
        (slope,) = strata.autograd.grad(found[-1].sum() if isinstance(found, tuple) else found, p)
        assert slope.equal(strata.full((3,), 5.0 if isinstance(found, tuple) else 1.0))
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        strata.compile(lambda a, p: a * p)(a, p)


def test_devices_that_are_not_there():
    for name in ("cuda", "xpu"):
        assert strata.is_autocast_enabled(name) is False
    assert strata.get_autocast_dtype("cuda") is strata.float16
    with pytest.raises(RuntimeError):
        strata.is_autocast_enabled("coda")


def test_names_that_packages_import():
    assert strata.futures.Future[int] is not None and strata.Future is not None
    assert strata.torch.Tensor is strata.Tensor
    assert strata.jit._overload(len) is len
    strata._assert_async(strata.tensor(True), "text")
    with pytest.raises(RuntimeError, match="text"):
        strata._assert_async(strata.tensor(0), "text")


def test_sizes_that_are_refused_change_nothing():
    for resize in (lambda t, sizes: t.resize_(sizes), lambda t, sizes: strata.empty(sizes, out=t)):
        t = strata.arange(6.0)
        with pytest.raises(RuntimeError, match="overflow"):
            resize(t, [0, 2**63 - 1, 3])
        assert t.shape == (6,) and t.tolist() == [0, 1, 2, 3, 4, 5]


def test_numbers_that_are_no_unsigned_ones():
    with pytest.raises(OverflowError):
        strata.tensor([-1, 2], dtype=strata.uint64)
    with pytest.raises(TypeError):
        strata.tensor([-1.5], dtype=strata.uint64)
    assert strata.tensor([2**64 - 1, 0], dtype=strata.uint64).tolist() == [2**64 - 1, 0]
    assert strata.tensor(-1, dtype=strata.uint32).item() == 2**32 - 1  # smaller types wrap


def test_a_tensor_of_a_tensor_is_that():
    x = strata.tensor([1, 2])
    y = strata.Tensor(x)
    y[0] = 5
    assert y.dtype == strata.int64 and x.tolist() == [5, 2]


def test_divergence_of_half_cauchy():
    p, q = (strata.distributions.HalfCauchy(strata.tensor(s, dtype=strata.float64)) for s in (1.0, 2.0))
    x = strata.linspace(0, 20000, 4_000_001, dtype=strata.float64)
    y = p.log_prob(x).exp() * (p.log_prob(x) - q.log_prob(x))
    assert abs(strata.distributions.kl_divergence(p, q) - strata.trapezoid(y, x)) < 1e-3


def test_padding_of_pools_is_half_of_a_kernel():
    for n, pool in ((1, nn.functional.max_pool1d), (2, nn.functional.max_pool2d), (3, nn.functional.max_pool3d)):
        x = strata.ones(1, 1, *[12] * n)
        assert pool(x, 3, 1, padding=1, dilation=2).shape == (1, 1, *[10] * n)
        for kernel, padding, dilation in ((3, 2, 2), (3, 2, 1), (2, 2, 3)):
            with pytest.raises(RuntimeError, match="pad"):
                pool(x, kernel, 1, padding=padding, dilation=dilation)


def test_channels_last_of_one_channel():
    last, x = strata.channels_last, strata.ones(2, 1, 4, 4)
    y = x.to(memory_format=last)
    assert y.stride() == (16, 1, 4, 1) and y.to(memory_format=last) is y and x.contiguous(memory_format=last) is x
    assert strata.ones(2, 3, 1, 1).to(memory_format=last).stride() == (3, 1, 3, 3)
    conv = nn.Conv2d(1, 2, 3, padding=1)
    assert conv(y).stride() == (32, 1, 8, 2) and conv(x).stride() == (32, 16, 4, 1)
    assert conv.to(memory_format=last)(x).stride() == (32, 1, 8, 2)


def test_numpys_numbers_in_tensors():
    numpy = pytest.importorskip("numpy")
    x = strata.tensor([1.0, 2.0])
    assert numpy.int64(2) in x and numpy.float32(3) not in x and numpy.int8(1) in x
    with pytest.raises(RuntimeError):
        numpy.array(2) in x  # noqa: B015


def test_bilinear_under_autocast_keeps_its_dtype():
    x = strata.randn(3, 3)
    with strata.autocast("cpu"):
        assert nn.functional.bilinear(x, x, strata.ones(2, 3, 3)).dtype == strata.float32
        assert strata.einsum("ij,jk->ik", x, x).dtype == strata.bfloat16


def test_distributions_that_are_expanded_check_their_values():
    d, half, one = strata.distributions, strata.tensor([0.3, 0.5]), strata.ones(2)
    for made, value in ((d.Pareto(one, 1.0), half), (d.Binomial(3, half), half), (d.Beta(one, one), 2 * one), (d.Weibull(one, one), -one), (d.Normal(one, one), one / 0 - one / 0)):
        for wide in (made, made.expand((2, 2))):
            with pytest.raises(ValueError, match="support"):
                wide.log_prob(value)
    assert d.Pareto(one, 1.0, validate_args=False).expand((2, 2)).log_prob(half).shape == (2, 2)
    wide = d.LogNormal(half, 1.0).expand((3, 2))
    assert wide.cdf(strata.tensor([0.0, 2.0]))[0, 0] == 0
    with pytest.raises(ValueError, match="support"):
        wide.cdf(strata.tensor([-1.0, 2.0]))


def test_channels_are_shuffled_of_images_alone():
    with pytest.raises(RuntimeError, match="2 dims"):
        nn.functional.channel_shuffle(strata.ones(3, 4), 2)


def test_the_type_of_tensors_is_the_default_one():
    assert (strata.ones(2, dtype=strata.float64) < 0).type(strata.Tensor).dtype == strata.float32


def test_what_optimisers_of_packages_ask():
    from strata.utils import _foreach_utils as asked

    a, b, c = strata.ones(2), strata.ones(3, dtype=strata.float64), strata.zeros(1)
    groups = asked._group_tensors_by_device_and_dtype([[a, b, c], [c, None, a]], with_indices=True)
    (lists, places), (others, place) = groups[a.device, a.dtype], groups[b.device, b.dtype]
    assert [t is u for t, u in zip(lists[0] + lists[1], [a, c, c, a], strict=True)] == [True] * 4 and places == [0, 2]
    assert others[0][0] is b and others[1] == [None] and place == [1] and len(groups) == 2
    assert asked._has_foreach_support([a, None], a.device)
    strata.optim.SGD([a.requires_grad_()], lr=0.1)._patch_step_function()


def test_rows_as_numbers_and_as_places():
    rows = strata.tensor([0, 0, 2, 3, 3])
    begins = strata._convert_indices_from_coo_to_csr(rows, 5)
    assert begins.tolist() == [0, 2, 2, 3, 5, 5] and begins.dtype == strata.int64
    assert strata._convert_indices_from_coo_to_csr(rows[:0], 3, out_int32=True).tolist() == [0, 0, 0, 0]
    columns = strata.tensor([1, 2, 0, 4, 3])
    assert strata._convert_indices_from_csr_to_coo(begins, columns).tolist() == [rows.tolist(), columns.tolist()]
    assert strata._convert_indices_from_csr_to_coo(begins, columns, transpose=True, out_int32=True).dtype == strata.int32
    with pytest.raises(RuntimeError, match="vector"):
        strata._convert_indices_from_coo_to_csr(strata.ones(2, 2, dtype=strata.int64), 3)
