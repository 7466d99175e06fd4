"""Numbers and sizes that are values of tensors: captured by cuts between graphs, with conditions that calls check, or broken."""

import warnings

import pytest
import strata
import strata.nn.functional as F
from strata import nn
from strata._dynamo import config


@pytest.fixture(autouse=True)
def _captured():
    with config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield


def parts(compiled):
    c = compiled._strata_compiled
    return [e for table in (c.start, *c.tables.values()) for e in table.entries]


def reasons(compiled):
    return [b.reason for b in compiled._strata_compiled.breaks]


def misfits(compiled):
    return sum(e.misfits for e in parts(compiled))


def same(a, b):
    if isinstance(a, strata.Tensor):
        return isinstance(b, strata.Tensor) and (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad) and strata.equal(a, b)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


ROWS = [[1.0, -2, 3], [-1.0, -2, 3], [1.0, 2, 3, 4], [-1.0, -2, -3], [1.0, -2, 3], [5.0, 6], [0.5, 0.5, -1, 2]]


def agrees(f, entries=2, rows=ROWS, **options):
    """Results, written arguments and the next random number are eager's; no call breaks."""
    compiled = strata.compile(f, **options)
    for row in rows:
        found = []
        for g in (f, compiled):
            strata.manual_seed(1)
            x = strata.tensor(row)
            found.append((g(x), x, strata.rand(1)))
        assert same(*found), (row, found)
    assert reasons(compiled) == [] and len(parts(compiled)) == entries
    return compiled


def size_of_item(x):
    n = (x > 0).sum().item()
    return strata.zeros(n) + x.sum(), n, x[:n] * 2, strata.arange(n).view(n, 1)


def two_cuts(x):
    y = x * 3
    k = y.argmax().item()
    z = y + 1
    m = z[z > 0]
    return m, m.shape, m.shape[0] * 2 + x.shape[0], k, z


def chain(x):
    a = x[x > 0]
    b = a[a > 1.5]
    return a.sum() + b.sum() + x.sum(), a.numel(), b.numel()


def within_no_grad(x):
    y = x.sin()
    with strata.no_grad():
        n = (y > 0).sum().item()
        z = y[y > 0] * 2
    return y[:1] * n + z.sum(), z


def drawn(x):
    y = F.dropout(x, 0.5)
    return y[y != 0] + strata.rand(1), strata.rand(2)


def listed(x):
    n, m = strata.stack([(x > 0).sum(), (x > 1).sum()]).tolist()
    return x.new_zeros(n, m + 1), n * m


def written_between(x):
    y = x * 2
    z = y[y > 0]
    z.mul_(3)
    y.add_(1)
    return z, y


def of_results(x):
    return x[x > 0] * 2


@pytest.mark.parametrize(
    "f",
    [
        size_of_item, two_cuts, chain, within_no_grad, drawn, listed, written_between, of_results,
        lambda x: (x > 0).nonzero()[:, 0] + 1,
        lambda x: strata.unique(x) * 2,
        lambda x: x.masked_select(x > 0).exp(),
        lambda x: (x > 0).nonzero(as_tuple=True)[0],
        lambda x: strata.repeat_interleave(x, (x > 0).long() + 1) * 2,
        lambda x: x * int(x.sum()) + float(x.max()),
        lambda x: (x + 1, {"n": [x.sum().item()], "m": int((x > 0).sum()) * 2 + 1}["m"]),
        lambda x: (lambda h: h[h > 0])(x.view(-1)),
    ],
)  # fmt: skip
def test_one_entry_for_all_values(f):
    agrees(f)
    agrees(f, rows=[[1.0, 2, -1], [1.0, 2, 3], [-1.0, -2, -1]], entries=1, fullgraph=True)


def test_a_number_that_is_only_handed_on_leaves_one_graph():
    compiled = agrees(lambda x: (x * 2, x.sum().item() * 2 + 1))
    assert all(len(e.regions) == 1 and not e.reads_data for e in parts(compiled))
    kept, total = [], nn.Module()
    total.sum = 0.0

    def f(x):
        kept.append(x.max().item())
        total.sum += x.sum().item()
        return x * 2

    compiled = strata.compile(f)
    for row in ROWS:
        compiled(strata.tensor(row))
    assert kept == [max(row) for row in ROWS] and total.sum == sum(map(sum, ROWS))
    assert reasons(compiled) == []


def test_a_number_that_is_handed_on_is_what_it_was():
    def f(x, y):
        n, k, y0 = x[0].item(), y.sum(), y[:1]
        m = k.item()
        x.add_(1)
        k.mul_(0)
        last = y0.item()
        y.view(-1).zero_()
        return n, m, last, x + k

    compiled = strata.compile(f)
    for row in ROWS:
        x, y = strata.tensor(row), strata.tensor(row[::-1])
        assert compiled(x, y)[:3] == (row[0], sum(row), row[-1])
        assert strata.equal(x, strata.tensor(row) + 1) and not y.any()


def test_branches_are_conditions():
    def f(x):
        n = (x > 0).sum().item()
        if n > 1:
            return x[:n] * n
        return x + n

    compiled = agrees(f, entries=3)
    assert misfits(compiled) > 0
    (reason,) = [r for r in compiled._strata_compiled.recompiles if "u0" in r]
    assert "u0 > 1" in reason and "test_values_read.py" in reason
    assert "u0 > 1" in compiled.guards() and "u0 <= 1" in compiled.guards()


def test_random_numbers_of_a_graph_that_was_run_in_vain():
    def f(x):
        y = F.dropout(x, 0.5)
        return y + 1 if y[y != 0].shape[0] > 2 else y - strata.rand(1)

    compiled = strata.compile(f)
    for seed in range(30):
        found = []
        for g in (f, compiled):
            strata.manual_seed(seed)
            found.append((g(strata.ones(5)), strata.rand(1)))
        assert same(*found)
    assert misfits(compiled) > 0


def test_values_that_differ_too_often_break():
    def f(x):
        n = x.sum().item()
        for k in range(10):
            if n > k:
                x = x + k
        return x

    compiled = strata.compile(f)
    for n in (*range(12), 3, 7):
        x = strata.tensor([float(n)])
        assert strata.equal(compiled(x), f(x))
    assert reasons(compiled)[0] == "item() reads a tensor's value" and not any(e.reads_data for e in parts(compiled))
    with pytest.warns(UserWarning, match="reads a number of a tensor that is new at almost every call"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).* gets a number that is new")
        scaled = strata.compile(lambda x: x * x.sum().item())
        for n in range(80):
            assert scaled(strata.tensor([n + 2.0])).item() == (n + 2.0) ** 2
    assert not any(e.reads_data for e in parts(scaled))


def test_checks_raise_what_the_program_says():
    def f(x):
        n = x.sum().item()
        strata._check(n > 0, lambda: f"expected a positive sum, got {n}")
        strata._check_is_size(int(n))
        return x * 2

    compiled = strata.compile(f, fullgraph=True)
    with pytest.raises(RuntimeError, match="expected a positive sum, got -3.0"):
        compiled(-strata.ones(3))
    for n in (3, 4, 5):
        assert strata.equal(compiled(strata.ones(n)), strata.ones(n) * 2)
        with pytest.raises(RuntimeError, match=f"expected a positive sum, got -{n}.0"):
            compiled(-strata.ones(n))
    assert len(parts(compiled)) == 2


def test_what_must_be_known_breaks():
    compiled = strata.compile(lambda x: sum([x] * int((x > 0).sum())) + x)
    for row in ROWS:
        x = strata.tensor(row)
        assert same(compiled(x), sum([x] * int((x > 0).sum())) + x)
    (first, *_) = compiled._strata_compiled.breaks
    assert first.reason == "int() reads a tensor's value" and "must be known, here" in first.hint and "test_values_read.py" in first.hint
    with pytest.raises(RuntimeError, match=r"(?s)int\(\) reads a tensor's value.*must be known"):
        strata.compile(lambda x: [x] * int(x.sum()), fullgraph=True)(strata.ones(2))


def test_what_was_written_before_breaks():
    def f(x):
        x.add_(1)
        return x[x > 0] * 2

    compiled = strata.compile(f)
    for row in ROWS:
        x, y = strata.tensor(row), strata.tensor(row)
        assert same(compiled(x), f(y)) and strata.equal(x, y)
    assert set(reasons(compiled)) == {"getitem() reads a tensor's value after others were written"}


def test_gradients_go_through_cuts():
    def f(x):
        y = x * 3
        z = y[y > 0]
        return z.exp().sum() + (y * z.shape[0]).sum(), y

    compiled = strata.compile(f, fullgraph=True)
    for n in (3, 4, 5, 6):
        grads = []
        for g in (f, compiled):
            strata.manual_seed(n)
            x = strata.randn(n, 4, requires_grad=True)
            a, b = g(x)
            (a + b.sum()).backward()
            grads.append(x.grad)
        assert strata.allclose(*grads, rtol=1e-6, atol=1e-6)
    assert len(parts(compiled)) == 2


def test_a_training_step_that_gives_its_loss_as_a_number():
    def make():
        strata.manual_seed(0)
        model = nn.Linear(3, 1)
        optimizer = strata.optim.SGD(model.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            kept = loss.item()
            loss.backward()
            optimizer.step()
            return kept, loss.item()

        return model, step

    (plain, eager), (model, step) = make(), make()
    compiled = strata.compile(step, fullgraph=True)
    for n in (4, 5, 6, 7):
        x, y = strata.randn(n, 3), strata.randn(n, 1)
        assert eager(x, y) == compiled(x, y)
    assert strata.equal(plain.weight, model.weight)
    assert len(parts(compiled)) == 2 and all(len(e.regions) == 1 for e in parts(compiled))


def test_what_the_settings_say():
    def f(x):
        return x[x > 0] * 2, x.sum().item()

    x = strata.tensor([1.0, -1])
    with config.patch(capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False):
        compiled = strata.compile(f)
        assert same(compiled(x), f(x))
        first, second = compiled._strata_compiled.breaks
        assert "capture_dynamic_output_shape_ops = True" in first.hint and "capture_scalar_outputs = True" in second.hint
        whole = strata.compile(f, fullgraph=True)
        assert same(whole(x), f(x)) and reasons(whole) == []
    given = []
    compiled = strata.compile(f, backend=lambda gm, inputs: given.append(inputs) or gm.forward)
    assert same(compiled(x), f(x)) and len(reasons(compiled)) == 2  # a backend's graphs are without


def test_views_of_what_was_made_before_a_cut_are_not_results():
    def f(x):
        h = x.view(-1)
        return h[h > 0], h

    compiled = strata.compile(f)
    for row in ROWS:
        x = strata.tensor(row)
        kept, h = compiled(x)
        h.add_(1)
        assert strata.equal(x, strata.tensor(row) + 1)
    assert "views" in compiled._strata_compiled.breaks[0].hint


def test_tensors_are_let_go():
    import gc
    import weakref

    compiled = strata.compile(two_cuts)
    seen = []
    for row in ROWS:
        x = strata.tensor(row)
        seen.append(weakref.ref(x))
        compiled(x)
        del x
    gc.collect()
    assert not any(r() is not None for r in seen)


def test_stances_hold_for_values_that_do_not_fit():
    def f(x):
        return x + 1 if (x > 0).sum().item() > 1 else x - 1

    compiled, few, many = strata.compile(f), strata.tensor([1.0, -1]), strata.tensor([1.0, 2])
    compiled(few)
    with strata.compiler.set_stance("fail_on_recompile"):
        assert same(compiled(few), f(few))
        with pytest.raises(RuntimeError, match="a recompile is needed"):
            compiled(many)
    with strata.compiler.set_stance("eager_on_recompile"):
        assert same(compiled(many), f(many)) and len(parts(compiled)) == 1
    assert same(compiled(many), f(many)) and len(parts(compiled)) == 2
    assert reasons(compiled) == []


def test_what_does_not_fit_prints_nothing(capsys):
    def f(x):
        print("begins")
        n = (x > 0).sum().item()
        print("has read")
        return x + 1 if n > 1 else x - 1

    compiled = strata.compile(f)
    for x in (strata.tensor([1.0, -1]), strata.tensor([1.0, 2])) * 2:
        assert same(compiled(x), f(x))
        assert capsys.readouterr().out == "begins\nhas read\n" * 2
    assert misfits(compiled) >= 2 and reasons(compiled) == []
