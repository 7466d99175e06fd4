"""Random operators: shapes, dtypes, seeds, ranges and moments. Recordings check their errors and what is certain."""

from __future__ import annotations

import math

import pytest
import strata

N = 40_000
FLOATS = (strata.float32, strata.float64, strata.bfloat16, strata.float16)


@pytest.fixture(autouse=True)
def seeded():
    strata.manual_seed(1234)


def moments(t, mean: float, deviation: float, kurtosis: float = 3.0) -> None:
    """The mean and the deviation within five standard errors."""
    t = t.double()
    assert abs(t.mean().item() - mean) < 5 * deviation / math.sqrt(t.numel()) + 2e-3 * abs(mean)
    spread = math.sqrt(max(kurtosis - 1, 0.1) / t.numel()) / 2
    assert abs(t.std().item() / deviation - 1) < 5 * spread + 2e-3


def below(t, bounds: dict[float, float]) -> None:
    """Shares of values under bounds within five standard errors."""
    for bound, share in bounds.items():
        found = (t < bound).double().mean().item()
        assert abs(found - share) < 5 * math.sqrt(share * (1 - share) / t.numel()) + 1e-3, (bound, found, share)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform(dtype):
    t = strata.rand(N, dtype=dtype)
    assert t.dtype == dtype and t.min().item() >= 0 and t.max().item() < 1
    moments(t, 0.5, math.sqrt(1 / 12), 1.8)
    u = strata.empty(N, dtype=dtype).uniform_(-3, 5)
    assert u.min().item() >= -3 and u.max().item() <= 5
    below(u, {-1.0: 0.25, 1.0: 0.5, 3.0: 0.75})


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_normal(dtype):
    moments(strata.randn(N, dtype=dtype), 0, 1)
    t = strata.empty(N, dtype=dtype).normal_(2, 3)
    below(t, {2.0: 0.5, 5.0: 0.8413, -4.0: 0.02275})
    each = strata.normal(strata.arange(4.0).repeat(N // 4), 0.5).reshape(-1, 4)
    for i in range(4):
        moments(each[:, i], i, 0.5)


def test_complex_normal_has_unit_variance():
    t = strata.randn(N, dtype=strata.complex64)
    moments(t.real, 0, math.sqrt(0.5))
    moments(t.imag, 0, math.sqrt(0.5))


@pytest.mark.parametrize("dtype", (strata.float32, strata.float64), ids=str)
def test_other_distributions(dtype):
    def fresh():
        return strata.empty(N, dtype=dtype)

    e = fresh().exponential_(2)
    assert e.min().item() > 0
    moments(e, 0.5, 0.5, 9)
    below(fresh().cauchy_(1, 2), {1.0: 0.5, 3.0: 0.75, -1.0: 0.25})
    moments(fresh().log_normal_(0.5, 0.25).log(), 0.5, 0.25)
    g = fresh().geometric_(0.25)
    assert g.min().item() == 1 and (g == g.round()).all()
    moments(g, 4, math.sqrt(12), 9.1)


def test_bernoulli():
    moments(strata.empty(N).bernoulli_(0.3), 0.3, math.sqrt(0.21), 1.8)
    p = strata.tensor([0.0, 0.2, 0.9, 1.0])
    t = strata.bernoulli(p.expand(N, 4))
    assert t.dtype == p.dtype and set(t.unique().tolist()) == {0.0, 1.0}
    assert t[:, 0].sum() == 0 and t[:, 3].sum() == N
    moments(t[:, 1], 0.2, 0.4, 3.25)
    assert strata.empty(5, dtype=strata.int64).bernoulli_(1.0).sum() == 5


@pytest.mark.parametrize("rate", (0.05, 3.5, 40.0, 2e4, 3e10))
def test_poisson(rate):
    t = strata.poisson(strata.full((N,), rate, dtype=strata.float64))
    assert t.min().item() >= 0 and (t == t.round()).all()
    moments(t, rate, math.sqrt(rate), 3 + 1 / rate)
    if rate < 1:
        assert (t == 0).double().mean().item() == pytest.approx(math.exp(-rate), abs=0.01)
    assert strata.poisson(strata.tensor([0.0, 5.0], dtype=strata.bfloat16)).dtype == strata.bfloat16


@pytest.mark.parametrize(("count", "p"), [(1.0, 0.3), (12.0, 0.9), (500.0, 0.02), (1e6, 0.4), (1e12, 0.5)])
def test_binomial(count, p):
    t = strata.binomial(strata.full((N,), count, dtype=strata.float64), strata.tensor(p, dtype=strata.float64))
    assert t.min().item() >= 0 and t.max().item() <= count and (t == t.round()).all()
    spread = count * p * (1 - p)
    moments(t, count * p, math.sqrt(spread), 3 + (1 - 6 * p * (1 - p)) / spread)


@pytest.mark.parametrize("dtype", (strata.int64, strata.int32, strata.uint8, strata.float32), ids=str)
def test_integers(dtype):
    t = strata.randint(3, 10, (N,), dtype=dtype)
    assert t.dtype == dtype
    values, counts = t.unique(return_counts=True)
    assert values.tolist() == list(range(3, 10))
    assert ((counts.double() / N - 1 / 7).abs() < 5 * math.sqrt(6 / 49 / N)).all()
    like = strata.randint_like(t, 4)
    assert like.shape == t.shape and like.dtype == dtype and like.max().item() == 3
    assert strata.empty(N, dtype=dtype).random_(2, 4).unique().tolist() == [2, 3]


def test_random_covers_the_dtype():
    t = strata.empty(N, dtype=strata.uint8).random_()
    assert t.unique().numel() == 256
    assert strata.empty(N, dtype=strata.bool).random_().double().mean().item() == pytest.approx(0.5, abs=0.02)
    assert strata.empty(1000, dtype=strata.int64).random_().min().item() >= 0


@pytest.mark.parametrize("n", (1, 2, 1000, 5000))
def test_permutations(n):
    t = strata.randperm(n)
    assert t.dtype == strata.int64 and t.sort().values.tolist() == list(range(n))
    if n > 2:
        assert t.tolist() != list(range(n)) and t.tolist() != strata.randperm(n).tolist()


@pytest.mark.parametrize("n", (2, 255, 256, 4097, 300_000))
def test_permutations_are_the_order_of_words(n):
    drawn = strata.Generator().manual_seed(n)
    keys = strata.empty(n, dtype=strata.int64).random_(-(2**63), None, generator=drawn)
    high = keys >> 32
    assert n < 300_000 or high.unique().numel() < n  # some are equal in their upper halves
    by_low = (keys & 0xFFFFFFFF).argsort(stable=True)  # of words without signs: by halves
    order = by_low[(high & 0xFFFFFFFF)[by_low].argsort(stable=True)]
    assert strata.randperm(n, generator=strata.Generator().manual_seed(n)).equal(order)


def test_permutations_are_equally_likely():
    seen = [tuple(strata.randperm(3).tolist()) for _ in range(1200)]
    assert all(abs(seen.count(p) - 200) < 80 for p in set(seen)) and len(set(seen)) == 6


def test_choice():
    weights = strata.tensor([1.0, 0.0, 3.0, 4.0])
    t = strata.multinomial(weights, N, replacement=True)
    shares = [(t == i).double().mean().item() for i in range(4)]
    assert shares[1] == 0 and shares == pytest.approx([1 / 8, 0, 3 / 8, 1 / 2], abs=0.02)
    without = strata.multinomial(weights.expand(500, 4), 3)
    assert without.dtype == strata.int64 and (without.sort(1).values == strata.tensor([0, 2, 3])).all()
    first = without[:, 0]
    assert (first == 3).double().mean().item() == pytest.approx(0.5, abs=0.1)


def test_dropout_keeps_the_mean():
    x = strata.ones(200, 200, requires_grad=True)
    y = strata.dropout(x, 0.25, True)
    kept = y != 0
    assert kept.double().mean().item() == pytest.approx(0.75, abs=0.02)
    assert strata.allclose(y[kept], strata.tensor(4 / 3))
    y.sum().backward()
    assert strata.equal(x.grad, y.detach())
    z = strata.ones(100, 100)
    assert strata.dropout_(z, 0.5, True) is z and set(z.unique().tolist()) == {0.0, 2.0}


def test_channel_dropout_drops_channels():
    y = strata.feature_dropout(strata.ones(40, 50, 6), 0.4, True)
    whole = y.flatten(2)
    assert ((whole == whole[..., :1]).all(-1)).all()
    assert (whole[..., 0] != 0).double().mean().item() == pytest.approx(0.6, abs=0.05)


def test_alpha_dropout_keeps_mean_and_deviation():
    y = strata.alpha_dropout(strata.randn(N), 0.3, True)
    assert y.mean().item() == pytest.approx(0, abs=0.03) and y.std().item() == pytest.approx(1, abs=0.03)


def test_seeds_repeat():
    def draw(generator=None):
        return strata.rand(7, generator=generator).tolist()

    strata.manual_seed(5)
    first, second = draw(), draw()
    strata.manual_seed(5)
    assert [draw(), draw()] == [first, second] and first != second
    g = strata.Generator().manual_seed(5)
    assert draw(g) == first and draw(g) == second


def test_layout_does_not_change_the_numbers():
    strata.manual_seed(3)
    plain = strata.empty(4, 5).normal_()
    strata.manual_seed(3)
    assert strata.equal(strata.empty(5, 4).t().normal_(), plain)


def test_derivatives_are_zero():
    mean = strata.ones(3, requires_grad=True)
    strata.normal(mean, 1.0).sum().backward()
    assert mean.grad.tolist() == [0, 0, 0]
    x = strata.ones(3, requires_grad=True)
    (x * 2).uniform_().sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    p = strata.full((3,), 0.5, requires_grad=True)
    strata.bernoulli(p).sum().backward()
    assert p.grad.tolist() == [0, 0, 0]
