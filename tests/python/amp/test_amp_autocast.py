"""autocast as context and decorator; custom_fwd and custom_bwd."""

import pytest
import strata
from strata.amp import autocast, custom_bwd, custom_fwd, is_autocast_available

BF16, F16, F32 = strata.bfloat16, strata.float16, strata.float32


def product_dtype():
    return strata.ones(2, 2).mm(strata.ones(2, 2)).dtype


def test_context_nests_and_restores():
    assert product_dtype() == F32
    with autocast("cpu"):
        assert product_dtype() == BF16 and strata.is_autocast_enabled("cpu")
        with autocast("cpu", enabled=False):
            assert product_dtype() == F32
        with autocast("cpu", dtype=F16):
            assert product_dtype() == F16
        assert product_dtype() == BF16
    assert product_dtype() == F32 and not strata.is_autocast_enabled("cpu")


def test_restores_after_an_error():
    with pytest.raises(ZeroDivisionError), autocast("cpu"):
        raise ZeroDivisionError
    assert product_dtype() == F32


def test_one_instance_may_be_entered_twice():
    cast = autocast("cpu")
    with cast, cast:
        assert product_dtype() == BF16
    assert product_dtype() == F32


def test_decorator():
    @autocast("cpu", dtype=BF16)
    def f(scale, *, shift):
        """Doc."""
        return product_dtype(), scale + shift

    assert f(1, shift=2) == (BF16, 3) and f.__doc__ == "Doc."
    with pytest.raises(TypeError, match="decorates functions"):
        autocast("cpu")(strata.nn)


def test_cache_flag():
    assert strata.is_autocast_cache_enabled()
    with autocast("cpu", cache_enabled=False):
        assert not strata.is_autocast_cache_enabled()
        with autocast("cpu"):
            assert not strata.is_autocast_cache_enabled()
    assert strata.is_autocast_cache_enabled()


def test_refusals():
    with pytest.warns(UserWarning, match="only supports"), autocast("cpu", dtype=F32):
        assert not strata.is_autocast_enabled("cpu")
    with pytest.raises(RuntimeError):
        autocast("no such device")
    with pytest.raises(ValueError, match="must be a string"):
        autocast(3)
    with pytest.raises(ValueError, match="must be a string"):
        custom_fwd(device_type=None)
    assert is_autocast_available("cpu")


def function(cast_inputs):
    seen = {}

    class Custom(strata.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
        def forward(ctx, a, items):
            seen["forward"] = a.dtype, items["b"][0].dtype, strata.is_autocast_enabled("cpu")
            return a * 2

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, g):
            seen["backward"] = strata.is_autocast_enabled("cpu")
            return g * 2, None

    return Custom.apply, seen


@pytest.mark.parametrize(
    ("cast_inputs", "forward", "backward"),
    [(None, (BF16, strata.int64, True), True), (F32, (F32, strata.int64, False), False)],
)
def test_custom_function(cast_inputs, forward, backward):
    apply, seen = function(cast_inputs)
    a = strata.ones(2, dtype=BF16, requires_grad=True)
    with autocast("cpu"):
        out = apply(a, {"b": [strata.ones(2, dtype=strata.int64)], "text": "x"})
    out.sum().backward()
    assert seen == {"forward": forward, "backward": backward}


def test_custom_function_outside_autocast():
    apply, seen = function(F32)
    apply(strata.ones(2, dtype=BF16, requires_grad=True), {"b": [strata.ones(1)]}).sum().backward()
    assert seen == {"forward": (BF16, F32, False), "backward": False}
