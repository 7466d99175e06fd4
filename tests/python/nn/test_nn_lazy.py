"""Lazy modules: sizes from the first input, or from a state dictionary."""

import copy
import pickle

import pytest
import strata
from strata import nn

X = strata.arange(2 * 3 * 8 * 8, dtype=strata.float32).sin().reshape(2, 3, 8, 8)


@pytest.mark.parametrize(
    ("lazy", "plain"),
    [
        (lambda: nn.LazyLinear(4), lambda: nn.Linear(8, 4)),
        (lambda: nn.LazyConv2d(4, 3, padding=1, bias=False), lambda: nn.Conv2d(3, 4, 3, padding=1, bias=False)),
        (lambda: nn.LazyConv2d(4, 3, 2, 1, 1, 1, False), lambda: nn.Conv2d(3, 4, 3, 2, 1, 1, 1, False)),
        (lambda: nn.LazyConvTranspose2d(4, 3, 2, 1, 1), lambda: nn.ConvTranspose2d(3, 4, 3, 2, 1, 1)),
        (lambda: nn.LazyBatchNorm2d(momentum=0.5), lambda: nn.BatchNorm2d(3, momentum=0.5)),
        (
            lambda: nn.LazyInstanceNorm2d(affine=True),
            lambda: nn.InstanceNorm2d(3, affine=True, track_running_stats=True),
        ),
    ],
)
def test_becomes_the_plain_module(lazy, plain):
    module, wanted = lazy(), plain()
    assert type(module).__name__ == "Lazy" + type(wanted).__name__
    assert all(nn.parameter.is_lazy(p) for p in module.parameters())
    assert list(module.state_dict()) == list(wanted.state_dict())
    loaded = copy.deepcopy(module)
    loaded.load_state_dict(wanted.state_dict())
    assert loaded(X).equal(wanted(X)) and type(loaded) is type(wanted)
    module(X)
    assert type(module) is type(wanted) and repr(module) == repr(wanted) == repr(loaded)
    assert [p.shape for p in module.parameters()] == [p.shape for p in wanted.parameters()]
    module(X).sum().backward()
    assert not module._forward_pre_hooks


def test_too_early_says_so():
    module = nn.LazyLinear(3)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        module.weight.shape  # noqa: B018
    for use in (lambda w: w + 1, nn.init.zeros_, lambda w: w.numel()):
        with pytest.raises(ValueError, match="learns its sizes from its first input"):
            use(module.weight)
    assert module.to(strata.float64)(X.double()).dtype == strata.float64
    with pytest.raises(RuntimeError, match=r"Expected 3D \(unbatched\) or 4D"):
        nn.LazyConv2d(2, 3)(X[0, 0])


@pytest.mark.parametrize("again", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_keep_what_was_said(again):
    parameter = nn.UninitializedParameter(requires_grad=False, dtype=strata.float64)
    buffer = nn.UninitializedBuffer(dtype=strata.int64, persistent=False)
    for value in (parameter, buffer):
        other = again(value)
        assert type(other) is type(value) and other is not value
        assert (other.dtype, other.device, other.requires_grad) == (value.dtype, value.device, False)
    assert again(buffer).persistent is False
