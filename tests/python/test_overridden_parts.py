"""Parts of PyTorch's classes that programs override or reach by name; each test passes under PyTorch with the import changed."""

import pytest
import strata
from strata import nn
from strata.distributions import Distribution, Normal, constraints, kl
from strata.utils._pytree import tree_map
from strata.utils.data import DataLoader


class Seen(nn.TransformerEncoderLayer):
    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        out, self.weights = self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=True)
        return self.dropout1(out)

    def _ff_block(self, x):
        return super()._ff_block(x) * 0


def test_blocks_of_transformer_layers():
    layer = Seen(8, 2, 16, 0.0, batch_first=True)
    x = strata.randn(2, 3, 8)
    out = layer(x)
    assert layer.weights.shape == (2, 3, 3)
    assert strata.allclose(out, layer.norm2(layer.norm1(x + layer.self_attn(x, x, x)[0])), atol=1e-6)

    class Decoder(nn.TransformerDecoderLayer):
        called = []

        def _sa_block(self, *args, **kwargs):
            self.called.append("self")
            return super()._sa_block(*args, **kwargs)

        def _mha_block(self, *args, **kwargs):
            self.called.append("memory")
            return super()._mha_block(*args, **kwargs)

        def _ff_block(self, x):
            self.called.append("forward")
            return super()._ff_block(x)

    for norm_first in (False, True):
        Decoder(8, 2, 16, 0.0, norm_first=norm_first)(x, x)
    assert Decoder.called == ["self", "memory", "forward"] * 2

    class Quiet(nn.Transformer):
        def _reset_parameters(self):
            for p in self.parameters():
                nn.init.zeros_(p)

    assert all(bool((p == 0).all()) for p in Quiet(8, 2, 1, 1, 16).parameters())


def test_samples_are_checked_by_the_class():
    class Positive(Distribution):
        arg_constraints = {}
        support = constraints.positive

        def log_prob(self, value):
            if self._validate_args:
                self._validate_sample(value)
            return -value

    assert Positive(validate_args=True).log_prob(strata.tensor(1.0)) == -1
    with pytest.raises(ValueError, match="support"):
        Positive(validate_args=True).log_prob(strata.tensor(-1.0))

    class Watched(Normal):
        seen = 0

        def _validate_sample(self, value):
            self.seen += 1
            return super()._validate_sample(value)

    watched = Watched(0.0, 1.0, validate_args=True)
    watched.log_prob(strata.tensor(0.5))
    assert watched.seen == 1 and (Normal, Normal) in kl._KL_REGISTRY
    with pytest.warns(FutureWarning, match="sample_n"):
        assert watched.sample_n(3).shape == (3,)


def test_loaders_whose_batches_are_replaced():
    class Kept(DataLoader):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self._DataLoader__initialized = False
            self.batch_sampler = [[1], [0]]
            self._DataLoader__initialized = True
            self.iterator = super().__iter__()

        def __iter__(self):
            for _ in range(2):
                yield next(self.iterator)

    assert [b.tolist() for b in Kept([1, 2])] == [[2], [1]]
    loader = DataLoader([1, 2])
    with pytest.raises(ValueError, match="batch_sampler"):
        loader.batch_sampler = []
    from strata.utils.data.dataloader import _BaseDataLoaderIter, _SingleProcessDataLoaderIter

    passing = iter(loader)
    assert isinstance(passing, _BaseDataLoaderIter) and isinstance(passing, _SingleProcessDataLoaderIter)
    assert list(passing._index_sampler) == [[0], [1]]


class Dispatching:
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def plain(t):
            return t.q.float() * t.scale if isinstance(t, cls) else t

        return func(*tree_map(plain, args), **tree_map(plain, kwargs or {}))


class Quantized(strata.Tensor):
    @staticmethod
    def __new__(cls, q, scale):
        return strata.Tensor._make_wrapper_subclass(cls, q.shape, dtype=strata.float32)

    def __init__(self, q, scale):
        self.q, self.scale = q, scale


class Mixed(Dispatching, Quantized):
    pass


class Own(Quantized):
    __torch_dispatch__ = Dispatching.__dict__["__torch_dispatch__"]


@pytest.mark.parametrize("kind", [Mixed, Own])
def test_classes_with_a_dispatch_alone_get_what_operators_return(kind):
    q = kind(strata.ones(2, 2, dtype=strata.int8), 0.5)
    assert type(q + 1) is strata.Tensor and ((q + 1) * 2).tolist() == [[3.0, 3.0]] * 2


def test_operators_that_a_dispatch_is_asked_for():
    from strata.utils._python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append((str(func), len(args), kwargs or {}))
            return func(*args, **(kwargs or {}))

    x, y = strata.ones(2), strata.ones(2)
    with Names() as mode:
        found = [x + 1, 2 - x, x * 3, x / 2, strata.add(x, 1, alpha=2), strata.div(x, 2, rounding_mode="floor"), y.add_(1), x == 1]
    assert mode.seen == [
        ("aten.add.Tensor", 2, {}), ("aten.rsub.Scalar", 2, {}), ("aten.mul.Tensor", 2, {}), ("aten.div.Tensor", 2, {}),
        ("aten.add.Tensor", 2, {"alpha": 2}), ("aten.div.Tensor_mode", 2, {"rounding_mode": "floor"}), ("aten.add_.Tensor", 2, {}), ("aten.eq.Scalar", 2, {}),
    ]  # fmt: skip
    assert [t.tolist()[0] for t in found] == [2, 1, 3, 0.5, 3, 0, 2, True]


def test_weights_of_recurrent_layers():
    layer = nn.LSTM(2, 3, bias=True)
    assert layer._flat_weights_names == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    assert all(a is b for a, b in zip(layer._flat_weights, layer.parameters(), strict=True))
    layer._flat_weights = [w.detach() * 0 for w in layer._flat_weights]
    assert layer(strata.ones(1, 2))[0].tolist() == [[0.0, 0.0, 0.0]]


def test_names_of_helpers():
    from strata._dynamo import OptimizedModule
    from strata._dynamo.eval_frame import OptimizedModule as same
    from strata._utils import _flatten_dense_tensors, _unflatten_dense_tensors
    from strata.autograd.function import Function, InplaceFunction
    from strata.autograd.grad_mode import _DecoratorContextManager
    from strata.nn.modules.transformer import _get_activation_fn, _get_clones
    from strata.optim.lr_scheduler import EPOCH_DEPRECATION_WARNING
    from strata.optim.optimizer import ParamsT
    from strata.serialization import default_restore_location, location_tag
    from strata.utils.data._utils.collate import collate_tensor_fn

    assert OptimizedModule is same and isinstance(strata.compile(nn.Linear(1, 1)), OptimizedModule)
    parts = [strata.ones(2, 2), strata.zeros(3)]
    flat = _flatten_dense_tensors(parts)
    assert flat.shape == (7,) and [t.shape for t in _unflatten_dense_tensors(flat, parts)] == [(2, 2), (3,)]
    assert issubclass(InplaceFunction, Function) and isinstance(strata.no_grad(), _DecoratorContextManager)
    assert len(_get_clones(nn.ReLU(), 2)) == 2 and _get_activation_fn("relu") is nn.functional.relu
    assert "epoch" in EPOCH_DEPRECATION_WARNING and ParamsT is not None
    storage = parts[0].untyped_storage()
    assert default_restore_location(storage, "cpu").data_ptr() == storage.data_ptr() and location_tag(storage) == "cpu"
    assert collate_tensor_fn(parts[:1]).shape == (1, 2, 2)


def test_vmap_draws_where_it_is_told_to():
    x = strata.ones(3)
    for f in (lambda a: a + strata.rand(1), lambda a: nn.functional.dropout(a), strata.rand_like):
        with pytest.raises(RuntimeError, match="randomness error mode"):
            strata.vmap(f)(x)
    different = strata.vmap(lambda a: a + strata.rand(1), randomness="different")(x)
    same = strata.vmap(lambda a: a + strata.rand(1), randomness="same")(x)
    assert len(set(different.flatten().tolist())) == 3 and len(set(same.flatten().tolist())) == 1


def test_vmap_writes_what_is_mapped_alone():
    def write(a, b):
        return a.add_(b)

    x, batch = strata.zeros(3), strata.ones(4, 3)
    with pytest.raises(RuntimeError, match="vmap|output with shape"):
        strata.vmap(write, in_dims=(None, 0))(x, batch)
    assert strata.vmap(write)(strata.zeros(4, 3), batch).tolist() == batch.tolist()
    with strata.inference_mode():
        assert strata.vmap(lambda a, b: a + b, in_dims=(0, None))(batch, strata.ones(3)).tolist() == (batch + 1).tolist()


def test_vmap_under_tracers_and_modes():
    from strata._subclasses.fake_tensor import FakeTensorMode
    from strata.fx.experimental.proxy_tensor import make_fx

    f, x = strata.vmap(lambda a: a * 2 + 1), strata.ones(2, 3)
    assert make_fx(f)(x)(x).tolist() == f(x).tolist() == strata.jit.trace(f, x)(x).tolist()
    with FakeTensorMode():
        assert f(strata.ones(2, 3)).shape == (2, 3)


def test_jacobians_by_either_strategy():
    from strata.autograd.functional import hessian, jacobian

    x = strata.tensor([0.5, 2.0])
    options = {"vectorize": True, "strategy": "forward-mode"}
    assert strata.allclose(jacobian(lambda x: x**3, x, **options), (3 * x**2).diag())
    found = hessian(lambda x: (x**3).sum(), x, vectorize=True, outer_jacobian_strategy="forward-mode")
    assert strata.allclose(found, (6 * x).diag())
    with pytest.raises(NotImplementedError, match="vectorize=True"):
        jacobian(lambda x: x**3, x, strategy="forward-mode")
