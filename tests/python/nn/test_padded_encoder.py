"""TransformerEncoder in evaluation: what its layers give is 0 at padded positions where PyTorch's inference path leaves them out."""

import pytest
import strata
from strata import nn

ENDS = [[0, 0, 1], [0, 1, 1]]


def encoder(mask_check=True, norm=None, **options):
    layer = nn.TransformerEncoderLayer(4, options.pop("heads", 2), 8, dropout=0.0, **{"batch_first": True, **options})
    with strata.no_grad():
        for p in layer.parameters():
            p.copy_(strata.linspace(-1, 1, p.numel()).reshape(p.shape))
    return nn.TransformerEncoder(layer, 2, norm=norm, mask_check=mask_check).eval()


def zeros(enc, padding, batch_first=True, grad=False, **more):
    x = strata.linspace(-1, 2, 24).reshape((2, 3, 4) if batch_first else (3, 2, 4))
    with strata.set_grad_enabled(grad):
        y = enc(x, src_key_padding_mask=strata.tensor(padding).bool() if isinstance(padding, list) else padding, **more)
    return (y == 0).all(-1).int().tolist()


NONE = [[0, 0, 0]] * 2


def test_padded_ends_are_zeros():
    assert zeros(encoder(), ENDS) == ENDS
    assert zeros(encoder(activation="gelu"), strata.zeros(2, 3).masked_fill(strata.tensor(ENDS).bool(), -strata.inf)) == ENDS
    assert zeros(encoder(), [[0, 0, 0], [0, 0, 1]]) == [[0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    "options", [{"activation": nn.functional.silu}, {"norm_first": True}, {"heads": 1}, {"bias": False}, {"batch_first": False}], ids=str
)
def test_layers_that_the_path_does_not_take(options):
    mask = ENDS if options.get("batch_first", True) else [[0, 0, 1], [0, 1, 1]]
    found = zeros(encoder(**options), mask, options.get("batch_first", True))
    assert not any(map(any, found))


def test_where_it_is_not_taken():
    assert zeros(encoder(), [[0, 1, 0], [0, 1, 1]]) == NONE, "a mask with padded positions elsewhere"
    assert zeros(encoder(), ENDS, grad=True) == NONE
    assert zeros(encoder().requires_grad_(False), ENDS, grad=True) == ENDS
    assert zeros(encoder().train(), ENDS) == NONE
    causal = strata.ones(3, 3).triu(1).bool()
    assert zeros(encoder(), ENDS, mask=causal) == NONE
    with strata.autocast("cpu"):
        assert zeros(encoder(), ENDS) == NONE
    strata.backends.mha.set_fastpath_enabled(False)
    try:
        assert not strata.backends.mha.get_fastpath_enabled() and zeros(encoder(), ENDS) == NONE
    finally:
        strata.backends.mha.set_fastpath_enabled(True)


def test_a_norm_behind_sees_the_zeros():
    norm = nn.LayerNorm(4)
    nn.init.constant_(norm.bias, 3.0)
    x, mask = strata.linspace(-1, 2, 24).reshape(2, 3, 4), strata.tensor(ENDS).bool()
    with strata.no_grad():
        y = encoder(norm=norm)(x, src_key_padding_mask=mask)
    assert bool((y[mask] == 3).all())
