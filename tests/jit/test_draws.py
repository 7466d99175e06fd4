"""Draws inside of compiled kernels: eager's numbers, and eager's state of the generator, whatever else draws."""

import pytest
import strata
import strata.nn.functional as F


def both(f, *xs):
    """Results and generator's state of f, eager and compiled, and what is said of the kernels."""
    compiled = strata.graph(f, *xs).compile()
    found = []
    for call in (f, compiled):
        strata.manual_seed(7)
        results = call(*xs)
        results = results if isinstance(results, tuple) else (results,)
        found.append(([r.reshape(-1).view(strata.uint8).tolist() if r.dtype != strata.bool else r.tolist() for r in results],
                      [r.stride() for r in results], strata.get_rng_state().tolist()))  # fmt: skip
    return found[0], found[1], compiled.explain()


def rows(x):
    return F.dropout(F.dropout(x, 0.3).softmax(-1), 0.1)


def transposed(x):
    return F.dropout(x.t().relu(), 0.5) * 2, strata.rand_like(x.t()) + x.t()


def words_of_two(x):
    return x.double() * strata.rand(x.shape, dtype=strata.float64) + strata.randint(-9, 9, x.shape)


def half(x):
    return F.dropout(x.bfloat16(), 0.2) + strata.randn(x.shape, dtype=strata.float16)


def one(x):
    return x.sum() + strata.rand(()), strata.rand((1,)) * 2 + 1


def dead(x):
    strata.rand(37)
    kept = strata.rand_like(x) + x
    strata.randn(5, dtype=strata.float64)
    return kept


def calls_between(x):
    a = x + strata.rand_like(x)
    order = strata.randperm(x.shape[0])
    b = a * strata.rand_like(x) - 1
    return b.relu(), order, strata.rand(3) + 1, strata.multinomial(x.exp()[0], 4, True), strata.rand_like(x) - b


def state_between(x):
    a = x + strata.rand_like(x)
    state = strata.get_rng_state()
    return a, state, strata.rand_like(x) * 2


def in_place(x):
    y = x * 1
    y.t().uniform_(-1, 1)
    z = strata.empty(x.shape, dtype=strata.float64).bernoulli_(0.25)
    return y + 1, z * 3


ALL = [rows, transposed, words_of_two, half, one, dead, calls_between, state_between, in_place]


@pytest.mark.parametrize("shape", [(300, 70), (5, 3), (1, 1), (40, 1), (2, 5000)], ids=str)
@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_eagers_numbers(f, shape):
    eager, compiled, _ = both(f, strata.randn(shape))
    assert compiled == eager


def test_a_generator_of_its_own():
    own = strata.Generator()

    def f(x):
        return x + strata.rand(x.shape, generator=own) * strata.rand(x.shape)

    x, found = strata.randn(33), []
    compiled = strata.graph(f, x).compile()
    for call in (f, compiled):
        strata.manual_seed(1)
        own.manual_seed(2)
        found.append((call(x).tolist(), own.get_state().tolist(), strata.get_rng_state().tolist()))
    assert found[0] == found[1]


def test_draws_are_parts_of_kernels():
    *_, said = both(lambda x, r: r + F.dropout(F.gelu(x), 0.1), strata.randn(64, 64), strata.randn(64, 64))
    assert "1 fused kernels, 0 operators by themselves" in said
    *_, said = both(rows, strata.randn(64, 64))
    assert "1 fused kernels, 0 operators by themselves" in said


def test_gradients_take_the_masks_that_were_drawn():
    x = strata.randn(50, 60, requires_grad=True)
    compiled = strata.graph(rows, x).compile()
    found = []
    for call in (rows, compiled):
        strata.manual_seed(3)
        found.append(strata.autograd.grad(call(x), x, strata.ones(50, 60))[0].tolist())
    assert found[0] == found[1]


def test_runs_at_the_same_time_draw_different_words():
    from concurrent.futures import ThreadPoolExecutor

    compiled = strata.graph(lambda x: strata.rand(x.shape) + x, strata.zeros(1000)).compile()
    strata.manual_seed(11)
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: tuple(compiled(strata.zeros(1000)).tolist()), range(32)))
    strata.manual_seed(11)
    assert sorted(drawn) == sorted(tuple(strata.rand(1000).tolist()) for _ in range(32))
