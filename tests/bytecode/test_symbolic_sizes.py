"""Sizes and ints that differ from call to call: one entry for many, with eager's bits, and what splits it."""

import collections
import functools
import math
import operator
from concurrent.futures import ThreadPoolExecutor

import pytest
import strata
import strata.nn.functional as F
from sized_constructs import ANSWER, SYMBOL, VALUE
from strata import nn


def parts(compiled):
    c = compiled._strata_compiled
    return [e for table in (c.start, *c.tables.values()) for e in table.entries]


def agrees(f, calls, entries, **options):
    """Each call gives eager's result, and so many entries are made."""
    compiled = strata.compile(f, **options)
    for args in calls:
        want, got = f(*args), compiled(*args)
        assert _same(want, got), (args, want, got)
    assert len(parts(compiled)) == entries, compiled._strata_compiled.recompiles
    return compiled


def _same(a, b):
    if isinstance(a, strata.Tensor):
        return isinstance(b, strata.Tensor) and a.shape == b.shape and a.stride() == b.stride() and strata.equal(a, b)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def rows(*sizes, columns=4):
    return [(strata.randn(n, columns),) for n in sizes]


def test_one_entry_from_the_second_size_on():
    compiled = agrees(lambda x: strata.sin(x).sum(0) / x.shape[0], rows(3, 4, 5, 9, 3, 100), 2)
    assert compiled._strata_compiled.recompiles[0].count("size mismatch at index 0. expected 3, actual 4") == 1


def test_dynamic_from_the_first_call_and_never():
    agrees(lambda x: x * 2, rows(3, 4, 5), 1, dynamic=True)
    agrees(lambda x: x * 2, rows(3, 4, 5), 3, dynamic=False)


def test_sizes_zero_and_one_have_entries_of_their_own():
    agrees(lambda x: x + x.mean(0), rows(5, 6, 1, 0, 7, 1, 0), 4)


def test_fifty_sizes_forward_and_gradient():
    weight = strata.randn(4, 4, requires_grad=True)

    def f(x):
        return F.softmax(strata.relu(x @ weight), dim=0).square().sum()

    compiled = strata.compile(f)
    for n in range(2, 52):
        x = strata.randn(n, 4, requires_grad=True)
        grads = []
        for g in (f, compiled):
            x.grad = weight.grad = None
            g(x).backward()
            grads.append((x.grad, weight.grad))
        assert strata.equal(grads[0][0], grads[1][0]) and strata.equal(grads[0][1], grads[1][1])
    assert len(parts(compiled)) == 2


def test_a_training_step_of_many_batches():
    def make():
        strata.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        optimizer = strata.optim.Adam(model.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        step(strata.ones(2, 4), strata.zeros(2, dtype=strata.int64))
        return model, optimizer, step

    (plain, _, eager), (model, optimizer, step) = make(), make()
    compiled = strata.compile(step)
    for n in range(2, 30):
        x, y = strata.randn(n, 4), strata.randint(0, 3, (n,))
        optimizer.param_groups[0]["lr"] = 0.1 / n
        eager.__closure__[1 if eager.__code__.co_freevars[1] == "optimizer" else 0].cell_contents.param_groups[0]["lr"] = 0.1 / n
        assert strata.equal(eager(x, y), compiled(x, y))
    for p, q in zip(plain.parameters(), model.parameters(), strict=True):
        assert strata.equal(p, q)
    assert len(parts(compiled)) == 2


def test_a_cache_that_grows():
    def attend(q, keys, values, k, v):
        keys, values = strata.cat([keys, k], 1), strata.cat([values, v], 1)
        return F.scaled_dot_product_attention(q, keys, values), keys, values

    compiled = strata.compile(attend)
    states = [(strata.ones(2, 3, 8), strata.ones(2, 3, 8)) for _ in range(2)]
    for _ in range(12):
        q, k, v = (strata.randn(2, 1, 8) for _ in range(3))
        results = [f(q, *state, k, v) for f, state in zip((attend, compiled), states, strict=True)]
        assert _same(*results)
        states = [r[1:] for r in results]
    assert len(parts(compiled)) == 2


def test_comparisons_split_by_range():
    def f(x):
        return x + 1 if x.shape[0] > 10 else x - 1

    compiled = agrees(f, rows(3, 4, 5, 12, 20, 6, 11, 10), 3)
    (reason,) = [r for r in compiled._strata_compiled.recompiles if "actual 12" in r]
    assert "s0 <= 10" in reason and "test_symbolic_sizes.py" in reason
    assert "arg0.size(0) in [11, inf]" in compiled.guards() and "arg0.size(0) in [2, 10]" in compiled.guards()


Point = collections.namedtuple("Point", "a b")


@pytest.mark.parametrize("text", [*SYMBOL, *ANSWER, *VALUE])
def test_construct_of_sizes(text):
    space = {"strata": strata, "F": F, "math": math, "functools": functools, "operator": operator, "Point": Point}
    f = eval(f"lambda x, n: ({text})", space)
    calls = [(strata.randn(n, 4), n) for n in (9, 13, 5, 7, 9, 5)]
    compiled = strata.compile(f)
    for x, n in calls:
        strata.manual_seed(n)
        want = f(x.clone(), n)
        strata.manual_seed(n)
        assert _same(want, compiled(x.clone(), n))
    assert not compiled._strata_compiled.breaks
    entries = len(parts(compiled))
    assert entries == 2 if text in SYMBOL else entries == 3 if text in ANSWER else entries == 4


def test_ints_of_arguments_and_attributes():
    class Holder:
        def __init__(self):
            self.n = 5

    h = Holder()
    agrees(lambda x, n: (x * n, n + 1, x.sum() / n), [(strata.ones(3), n) for n in (5, 6, 7, -4, 100)], 2)
    compiled = strata.compile(lambda x: x.repeat(h.n) * h.n)
    for n in (5, 6, 7, 9):
        h.n = n
        assert strata.equal(compiled(strata.ones(2)), strata.ones(2).repeat(n) * n)
    assert len(parts(compiled)) == 2


def test_ints_zero_and_one_and_others_by_comparison():
    def f(x, n):
        return x if not n else x * n if n % 2 else x - n

    agrees(f, [(strata.ones(3), n) for n in (4, 6, 8, 3, 5, 7, 0, 1, 10, 0, 1)], 5)


def test_sizes_of_two_inputs_are_not_one():
    def f(x, y):
        return x.sum() + y.sum(), x.shape[0] == y.shape[0]

    calls = [(strata.randn(a, 2), strata.randn(b, 2)) for a, b in ((3, 3), (4, 4), (5, 6), (7, 7), (8, 2))]
    agrees(f, calls, 3)


def test_broadcasting_by_size_one_and_errors_of_sizes():
    compiled = strata.compile(lambda x, y: x * y)
    for a, b in ((3, 3), (4, 4), (5, 1), (1, 6), (7, 7), (1, 1)):
        x, y = strata.randn(a, 2), strata.randn(b, 2)
        assert strata.equal(compiled(x, y), x * y)
    with pytest.raises(RuntimeError, match="must match the size"):
        compiled(strata.randn(4, 2), strata.randn(5, 2))
    before = len(parts(compiled))
    x = strata.randn(11, 2)
    assert strata.equal(compiled(x, x + 1), x * (x + 1)) and len(parts(compiled)) == before


def test_a_size_that_outlives_the_call_is_an_int():
    kept, box = [], {}

    class Holder:
        pass

    h = Holder()

    def f(x):
        kept.append(x.shape[0] * 2)
        box["shape"] = x.shape
        h.n = x.size(0)
        return x * 2

    compiled = strata.compile(f)
    for n in (3, 4, 5, 6):
        compiled(strata.ones(n))
    assert kept == [6, 8, 10, 12] and all(type(n) is int for n in kept)
    assert box["shape"] == (6,) and type(box["shape"]) is strata.Size and type(box["shape"][0]) is int
    assert h.n == 6 and type(h.n) is int


def test_errors_of_arithmetic_are_conditions():
    def f(x):
        try:
            return x / (10 // (x.shape[0] - 4))
        except ZeroDivisionError:
            return x

    agrees(f, rows(3, 4, 5, 6, 4), 3)


def test_views_of_computed_sizes_keep_what_they_share():
    def f(x):
        half = x[: x.shape[0] // 2]
        return half, x.view(-1)

    compiled = strata.compile(f)
    for n in (4, 6, 8, 10):
        x = strata.randn(n, 2)
        half, flat = compiled(x)
        flat.zero_()
        assert not half.any() and not x.any() and half.shape == (n // 2, 2)
    assert len(parts(compiled)) == 2


def test_stretches_after_a_break_have_symbols_too():
    def f(x):
        y = x * x.shape[0]
        if y.sum() > 0:
            y = y + 1
        return y.view(-1), x.shape[0]

    compiled = strata.compile(f)
    for (x,) in rows(3, 4, 5, 6, 7, 8, 9, 10, 11):
        assert _same(f(x), compiled(x))
    assert all(len(t.entries) == 2 for t in (compiled._strata_compiled.start, *compiled._strata_compiled.tables.values()))


def test_marks():
    from strata import _dynamo

    def f(x):
        return x * x.shape[0]

    compiled = strata.compile(f)
    x = strata.ones(3, 2)
    _dynamo.mark_dynamic(x, 0, min=2, max=8)
    compiled(x)
    compiled(strata.ones(5, 2))
    assert len(parts(compiled)) == 1 and "arg0.size(0) in [2, 8]" in compiled.guards()
    large = strata.ones(9, 2)
    compiled(large)
    assert len(parts(compiled)) == 2  # it was not marked
    strata._dynamo.mark_dynamic(large, 0, max=8)
    with pytest.raises(ValueError, match=r"arg0.size\(0\) is marked to be in \[2, 8\], and is 9"):
        strata.compile(f)(large)
    y = strata.ones(4, 2)
    _dynamo.mark_dynamic(y, 0)
    with pytest.raises(ValueError, match=r"(?s)arg0.size\(0\) is marked as dynamic, and was specialised to 4.*test_symbolic_sizes.py:\d+: return sum"):
        strata.compile(_loop)(y)
    _dynamo.mark_dynamic(y, 0, min=2, max=100)
    with pytest.raises(ValueError, match=r"(?s)marked to be in \[2, 100\].* for \[2, 10\] alone.*s0 <= 10"):
        strata.compile(lambda x: x + 1 if x.shape[0] > 10 else x)(y)
    z = strata.ones(4, 2)
    _dynamo.maybe_mark_dynamic(z, 0)
    assert strata.compile(_loop)(z).shape == (2,)
    never = strata.compile(f)
    for n in (3, 4, 5):
        t = strata.ones(n, 2)
        _dynamo.mark_static(t, 0)
        never(t)
    assert len(parts(never)) == 3
    with pytest.raises(IndexError, match=r"expected a dim in \[-2, 1\], got 2"):
        _dynamo.mark_dynamic(y, 2)


def _loop(x):
    return sum(x[i] for i in range(x.shape[0]))


def test_instances_are_bounded_and_made_again():
    compiled = strata.compile(lambda x: x * x.shape[0], dynamic=True)
    for n in [*range(2, 150), *range(2, 20)]:
        assert compiled(strata.ones(n)).sum() == n * n
    assert len(parts(compiled)) == 1


def test_random_numbers_and_dropout_are_eagers():
    def f(x):
        return F.dropout(x + strata.rand(x.shape[0], 4), 0.5)

    compiled = strata.compile(f)
    for n in (3, 4, 5, 6, 4):
        x = strata.randn(n, 4)
        strata.manual_seed(n)
        want, after = f(x), strata.rand(2)
        strata.manual_seed(n)
        assert strata.equal(compiled(x), want) and strata.equal(strata.rand(2), after)
    assert len(parts(compiled)) == 2


def test_what_lies_around_a_tensor_is_not_guarded():
    base = strata.arange(12.0)

    def f(x):
        return x.as_strided((2,), (1,), 4) + 0

    compiled = strata.compile(lambda x: (x.storage_offset(), x[1:].storage_offset(), f(x)))
    for i in (1, 2, 3):
        assert _same((i, i + 1, f(base[i : i + 3])), compiled(base[i : i + 3]))


def test_a_tensor_from_outside_gets_other_sizes():
    def f(x):
        x.t_()
        return x * 2, x.shape

    compiled = strata.compile(f)
    for n in (2, 3, 4):
        x = strata.ones(n, 5)
        assert compiled(x)[1] == (5, n) and x.shape == (5, n)


def test_a_backend_gets_a_graph_for_each_size():
    given = []

    def backend(gm, inputs):
        given.append(inputs[0].shape[0])
        return gm.forward

    def f(x):
        return x.view(-1, x.shape[0]) * 2

    compiled = strata.compile(f, backend=backend)
    for n in (3, 4, 5, 6, 5):
        x = strata.randn(n, 4)
        assert strata.equal(compiled(x), f(x))
    assert given == [3, 4, 5, 6] and len(parts(compiled)) == 2


def test_threads_make_instances():
    def f(x):
        return (x * x.shape[0]).cumsum(0) + len(x)

    compiled, wrong = strata.compile(f), []

    def work(k):
        for i in range(60):
            x = strata.ones(2 + (i * 7 + k) % 40)
            if not strata.equal(compiled(x), f(x)):
                wrong.append((k, i))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))  # raises what one of them does
    assert not wrong and len(parts(compiled)) == 2


def test_compilers_are_asked_for_nothing_at_other_sizes():
    from strata import cache

    def f(x):
        return F.softmax(x.tanh() * x.shape[0], dim=1).sum(0)

    compiled = strata.compile(f)
    compiled(strata.randn(40, 6))
    compiled(strata.randn(50, 6))
    before = cache.stats()
    for n in range(51, 60):
        compiled(strata.randn(n, 6))
    after = cache.stats()
    assert after["misses"] == before["misses"] and after["disk_hits"] == before["disk_hits"]


def test_ints_that_no_operator_gets_need_no_graph(monkeypatch):
    from strata._bytecode import instances

    made, replay = [], instances.Family.replay
    monkeypatch.setattr(instances.Family, "replay", lambda self, *args: made.append(1) or replay(self, *args))

    class Holder:
        def __init__(self):
            self.step, self.tokens = 5, 7

    def f(x, h):
        h.step += 1
        h.tokens += x.numel()
        return (x + 1 if h.step % 4 == 0 else x * 2), h.step, h.tokens

    compiled, h, other = strata.compile(f), Holder(), Holder()
    for i in range(20):
        x = strata.ones(3 + i % 3)
        assert _same(f(x, h), compiled(x, other)) and (h.step, h.tokens) == (other.step, other.tokens)
    assert len(made) <= 6 and len(parts(compiled)) == 3


def test_keys_of_many_numbers():
    def f(a, b, c, d, e):
        return a + b + c + d + e * a.shape[0]

    agrees(f, [tuple(strata.randn(n, 2, n) for _ in range(5)) for n in (3, 4, 5, 3, 6)], 2)


def test_the_sign_of_a_zero_is_a_value():
    calls = [(strata.ones(3), n) for n in (8, 7, 2, 9, 2, 7)]
    compiled = strata.compile(lambda x, n: (x * ((n // 3 - 1) * 0.0), (n // 3 - 1) * 0.0))
    printed = strata.compile(lambda x, n: (x, f"{(n // 3 - 1) * 0.0}"))
    for x, n in calls:
        zero = (n // 3 - 1) * 0.0
        result, number = compiled(x, n)
        assert math.copysign(1, number) == math.copysign(1, zero) == math.copysign(1, result[0].item())
        assert printed(x, n)[1] == str(zero)
