"""An operator's float16 or bfloat16 result is the float64 result of the same numbers, rounded once: everything between is
float32. So every operator is compared with its own float64 run, and may miss by one rounding and what float32 loses; one
made of others by as much as PyTorch's recorded result does, since both round in each of them."""

from __future__ import annotations

import numpy as np
from kit import Maker, convert, flattened
from layout_cases import functional
from table import ENTRIES, SAMPLES, SKIPS, dtype, operator, pytest, recorded, strata, tensor, unpack

FORMATS = {"bfloat16": (8, -126), "float16": (11, -14)}  # bits of the significand, the least exponent
FLOAT32 = 2.0**-20  # what float32 intermediates may lose, relative to the largest number in the result
CASES = [(e, d) for e in ENTRIES for d in FORMATS]


def skip_reason(entry) -> str | None:
    table = SKIPS["halves"]
    return table.get(entry.schema.full) or table.get(f"family:{entry.family}")


def ulps(values: np.ndarray, name: str) -> np.ndarray:
    """The distance of neighbours in the format at each value."""
    bits, least = FORMATS[name]
    exponent = np.frexp(np.where(np.isfinite(values), np.abs(values), 1.0))[1] - 1
    return np.ldexp(1.0, np.maximum(exponent, least) - (bits - 1))


def results(entry, c, change) -> list | None:
    """Floating-point results, also of operators that write their arguments; None where the operator refuses."""
    args = convert(c.args, lambda t: change(tensor(t)), dtype)
    kwargs = {k: convert(v, lambda t: change(tensor(t)), dtype) for k, v in c.kwargs.items()}
    try:
        made = operator(entry.schema)(*args, **kwargs)
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError):
        return None
    made = flattened([list(args) if made is None else made])
    return [r.detach() for r in made if isinstance(r, strata.Tensor) and r.is_floating_point()]


def theirs(entry, name: str, i: int, k: int):
    """PyTorch's result k of sample i, float64, or None where there is none."""
    index, blob = recorded(entry.family)
    found = index.get(f"{entry.schema.full}/{name}")
    if found is None or isinstance(found[i], str):
        return None
    floats = [a for a in unpack(found[i], blob) if a.dtype.kind == "f"]
    return floats[k].astype(np.float64) if k < len(floats) else None


def misses(entry, name: str):
    """(sample, result, error, PyTorch's error) in units of the allowed one, for every sample."""
    half = getattr(strata, name)

    def widened(t):
        # Tensors without dims take the dtype of the others before the operator computes.
        if t.is_floating_point() and t.dim() == 0:
            t = t.to(half)
        return t.double() if t.dtype == half else t

    for i, c in enumerate(SAMPLES[entry.row.samples](Maker(entry.schema.full, name))):
        got, want = results(entry, c, lambda t: t), results(entry, c, widened)
        if got is None or want is None:
            continue
        assert len(got) == len(want), f"sample {i}: {len(got)} results, {len(want)} in float64"
        for k, (g, w) in enumerate(zip(got, want, strict=True)):
            if g.dtype != half or w.dtype != strata.float64 or g.shape != w.shape or g.numel() == 0:
                continue
            g, w = g.double().numpy(), w.numpy()
            greatest = {"bfloat16": 3.3895313892515355e38, "float16": 65504.0}[name]
            with np.errstate(all="ignore"):
                near = np.abs(w) < greatest
                allowed = 0.5 * ulps(w, name) + FLOAT32 * np.max(np.where(near, np.abs(w), 0), initial=0.0)
                other = theirs(entry, name, i, k)
                errors = [np.where(near & ~np.isnan(w), np.abs(x - w) / allowed, 0.0).max()
                          for x in (g, w if other is None or other.shape != w.shape else other)]
            yield i, k, float(errors[0]), float(errors[1])


@pytest.mark.parametrize("entry, name", CASES, ids=[f"{e.schema.full}-{d}" for e, d in CASES])
def test_one_rounding(entry, name):
    reason = skip_reason(entry)
    if reason:
        pytest.skip(reason)
    for i, k, error, other in misses(entry, name):
        allowed = np.fmax(1.0, 1.1 * other) if entry.kind in ("composite", "cpu") else 1.0
        assert not error > allowed, f"{entry.schema.full} {name} sample {i} result {k}: {error:.3g} times the allowed error"


def miss(function, *operands, **kwargs) -> float:
    """The error of a function of bfloat16 operands, in units of the allowed one."""
    got = function(*(t.bfloat16() if isinstance(t, strata.Tensor) else t for t in operands), **kwargs)
    want = function(*(t.bfloat16().double() if isinstance(t, strata.Tensor) else t for t in operands), **kwargs)
    got, want = got.double().numpy(), want.numpy()
    return float(np.max(np.abs(got - want) / (0.5 * ulps(want, "bfloat16") + FLOAT32 * np.abs(want).max())))


# What PyTorch rounds more often, or in bfloat16 altogether.
FUNCTIONS = [name for name in functional(Maker("halves", "float32")) if name.split()[0] in (
    "interpolate", "grid_sample", "instance_norm", "group_norm", "layer_norm", "batch_norm", "adaptive_avg_pool2d",
    "adaptive_avg_pool3d", "avg_pool2d", "conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d", "softmax", "log_softmax")]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_round_once(name):
    c = functional(Maker("halves", "float32"))[name]
    args, kwargs = (convert(v, tensor, dtype) for v in (list(c.args), list(c.kwargs.values())))
    made = dict(zip(c.kwargs, kwargs, strict=True))
    assert miss(getattr(strata.nn.functional, name.split()[0]), *args, **made) <= 1.0


def rand(*shape: int):
    return strata.from_numpy(np.random.default_rng(len(shape)).standard_normal(shape, np.float32))


# Beyond the sizes at which a library takes over, whose accumulation is its own.
LARGE = {
    "addmm by a bias": lambda f: f(strata.addmm, rand(96), rand(80, 70), rand(70, 96)),
    "addmm": lambda f: f(strata.addmm, rand(80, 96), rand(80, 70), rand(70, 96)),
    "addmm scaled": lambda f: f(strata.addmm, rand(80, 96), rand(80, 70), rand(70, 96), beta=0.3, alpha=1.7),
    "addmm without self": lambda f: f(strata.addmm, rand(80, 96), rand(80, 70), rand(70, 96), beta=0, alpha=1.7),
    "baddbmm": lambda f: f(strata.baddbmm, rand(4, 80, 96), rand(4, 80, 70), rand(4, 70, 96)),
    "addbmm": lambda f: f(strata.addbmm, rand(80, 96), rand(4, 80, 70), rand(4, 70, 96)),
    "addmv": lambda f: f(strata.addmv, rand(700), rand(700, 600), rand(600)),
    "addr": lambda f: f(strata.addr, rand(80, 96), rand(80), rand(96), beta=0.3, alpha=1.7),
    "addr without self": lambda f: f(strata.addr, rand(80, 96), rand(80), rand(96), beta=0, alpha=1.7),
    "linear": lambda f: f(strata.nn.functional.linear, rand(5, 80, 70), rand(96, 70), rand(96)),
    "linear of a vector": lambda f: f(strata.nn.functional.linear, rand(700), rand(600, 700), rand(600)),
    "conv2d": lambda f: f(strata.nn.functional.conv2d, rand(2, 16, 20, 20), rand(24, 16, 3, 3), rand(24)),
    "conv2d of single places": lambda f: f(strata.nn.functional.conv2d, rand(2, 16, 40, 40), rand(24, 16, 1, 1), rand(24)),
    "conv_transpose2d": lambda f: f(strata.nn.functional.conv_transpose2d, rand(2, 16, 20, 20), rand(16, 24, 3, 3), rand(24)),
    "conv_transpose3d": lambda f: f(strata.nn.functional.conv_transpose3d, rand(1, 8, 9, 9, 9), rand(8, 12, 3, 3, 3), rand(12)),
}


@pytest.mark.parametrize("name", list(LARGE))
@pytest.mark.parametrize("library", [True, False])
def test_products_round_once(name, library):
    with strata.backends.library(library):
        assert LARGE[name](miss) <= 1.0


CHOOSING = {
    "relu": strata.relu,
    "neg": strata.neg,
    "abs": strata.abs,
    "clamp": lambda x: x.clamp(-1, 2),
    "clamp to what is none": lambda x: x.clamp(-0.1, 0.3),
    "floor": strata.floor,
    "trunc": strata.trunc,
    "round": strata.round,
    "maximum": lambda x: strata.maximum(x, x.flip(0)),
    "where": lambda x: strata.where(x > 1, x, x.flip(0)),
    "copysign": lambda x: strata.copysign(x, x.flip(0)),
    "masked_fill": lambda x: x.masked_fill(x > 1, 0.3),
    "hardshrink": strata.nn.functional.hardshrink,
    "threshold": lambda x: strata.nn.functional.threshold(x, 0.5, 0.3),
}


@pytest.mark.parametrize("name", CHOOSING)
def test_every_bfloat16_through_what_chooses(name):
    """Where a result is known to be a bfloat16 it is not rounded; what is not, a bound or a fill, still is."""
    f = CHOOSING[name]
    x = strata.arange(1 << 16, dtype=strata.int32).to(strata.int16).view(strata.bfloat16)
    wanted = f(x.float()).bfloat16()
    for found in (f(x), strata.graph(f, x).compile()(x), strata.graph(lambda x: f(x.float().bfloat16()), x).compile()(x)):
        assert found.isnan().equal(wanted.isnan())
        assert found.view(strata.int16)[~wanted.isnan()].equal(wanted.view(strata.int16)[~wanted.isnan()])
