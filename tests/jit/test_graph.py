"""strata.graph: capture, compiled calls with eager's bits, gradients, and what it refuses."""

from __future__ import annotations

import gc

import pytest
import strata

F = strata.nn.functional


def same(a, b) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and strata.equal(a, b)


def trig(x):
    return x.sin() ** 2 + x.cos() ** 2


def kernels(text: str) -> int:
    return text.count("kernel over")


def test_sin2_cos2_is_one_kernel_each_way_and_its_gradient_is_zero():
    x = strata.randn(1000, requires_grad=True)
    cf = strata.graph(trig, x).compile()
    y = cf(x)
    (slope,) = strata.autograd.grad(y.sum(), x)
    assert same(y, trig(x)) and (y - 1).abs().max() <= 1.2e-7
    assert slope.abs().max() == 0.0
    forward, backward = cf.explain().split("# backward")
    assert kernels(forward) == kernels(backward) == 1
    assert "by itself" not in cf.explain()
    assert cf.source().count("#pragma omp parallel for") == 2 and "vf32" in cf.source()


def test_norm_written_by_hand_is_one_kernel():
    def norm(x, w, b):
        m = x.mean(-1, keepdim=True)
        v = ((x - m) ** 2).mean(-1, keepdim=True)
        return ((x - m) * (v + 1e-5).rsqrt() * w + b).relu()

    args = strata.randn(64, 300), strata.randn(300), strata.randn(300)
    cf = strata.graph(norm, *args).compile()
    again = strata.randn(64, 300), strata.randn(300), strata.randn(300)
    assert same(cf(*again), norm(*again))
    assert kernels(cf.explain()) == 1 and "by itself" not in cf.explain()


def test_module_with_its_parameters_as_they_are():
    model = strata.nn.Sequential(strata.nn.Linear(20, 30), strata.nn.GELU(), strata.nn.LayerNorm(30), strata.nn.Linear(30, 5))
    x = strata.randn(8, 20)
    cf = strata.graph(model, x).compile()
    optimiser = strata.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        y = cf(x)
        y.square().sum().backward()
        got = [p.grad.clone() for p in model.parameters()]
        optimiser.zero_grad()
        e = model(x)
        e.square().sum().backward()
        assert same(y, e) and all(same(a, p.grad) for a, p in zip(got, model.parameters(), strict=True))
        optimiser.step()
        optimiser.zero_grad()


def test_random_numbers_are_drawn_anew_as_eager_draws_them():
    def f(x):
        return F.dropout(x, 0.5) * 2 + strata.rand_like(x)

    x = strata.randn(100)
    cf = strata.graph(f, x).compile()
    for seed in (1, 2):
        strata.manual_seed(seed)
        a, state = cf(x), strata.default_generator.get_state().tolist()
        strata.manual_seed(seed)
        assert same(a, f(x)) and strata.default_generator.get_state().tolist() == state


def test_written_arguments_and_views():
    def f(x, y):
        x.add_(1)
        y[1:].mul_(x[0])
        return x[1:], x, y.t()

    def given():
        return strata.arange(6.0).reshape(3, 2), strata.ones(3, 2)

    cf = strata.graph(f, *given()).compile()
    a, b = given(), given()
    for got, want in zip(cf(*a), f(*b), strict=True):
        assert same(got, want)
    assert all(same(p, q) for p, q in zip(a, b, strict=True))
    x, y = given()
    part, whole, _ = cf(x, y)
    assert whole is x and part.data_ptr() == x[1:].data_ptr(), "results that are views stay views"
    x = strata.arange(6.0).reshape(3, 2)
    z = x.clone()
    got, want = cf(x, x), f(z, z)
    assert same(x, z) and all(same(p, q) for p, q in zip(got, want, strict=True)), "arguments that share memory"


def test_nested_arguments_and_results():
    def f(pair, options):
        return {"sum": pair[0] + pair[1] * options["scale"], "same": options["scale"]}

    a, b = strata.randn(3), strata.randn(3)
    cf = strata.graph(f, (a, b), {"scale": 2}).compile()
    assert same(cf((a, b), {"scale": 2})["sum"], a + b * 2) and cf((a, b), {"scale": 2})["same"] == 2
    with pytest.raises(ValueError, match="expected 2, as it was captured, got 3"):
        cf((a, b), {"scale": 3})
    with pytest.raises(ValueError, match="expected arguments of the form"):
        cf((a, b, a), {"scale": 2})


def test_other_tensors_and_modes_are_refused():
    model = strata.nn.Sequential(strata.nn.Linear(4, 4), strata.nn.Dropout(0.5))
    x = strata.randn(2, 4)
    cf = strata.graph(model, x).compile()
    for bad in (strata.randn(3, 4), strata.randn(4, 2).t(), strata.randn(2, 4).double()):
        with pytest.raises(ValueError, match="input 0, input: expected f32"):
            cf(bad)
    model.eval()
    with pytest.raises(RuntimeError, match="training was True when the graph was captured"):
        cf(x)
    g = strata.graph(lambda x: x * strata.ones(3), strata.randn(3)).compile()
    strata.set_default_dtype(strata.float64)
    try:
        with pytest.raises(RuntimeError, match="default dtype was strata.float32"):
            g(strata.randn(3, dtype=strata.float32))
    finally:
        strata.set_default_dtype(strata.float32)


def test_gradients_that_were_not_captured_are_refused():
    x = strata.randn(4)
    cf = strata.graph(trig, x).compile()
    with pytest.raises(RuntimeError, match="input 0 requires a gradient, and did not when"):
        cf(x.clone().requires_grad_())
    with strata.no_grad():
        assert same(cf(x.clone().requires_grad_()), trig(x))


def test_values_that_python_reads_are_refused_at_their_line():
    def branches(x):
        if x.sum() > 0:
            return x
        return -x

    for f in (branches, lambda x: x * x.max().item(), lambda x: x[: int(x[0])]):
        with pytest.raises(RuntimeError, match="while operators are recorded"):
            strata.graph(f, strata.ones(3))
    assert strata.graph(trig, strata.ones(3)), "a capture that failed has ended"


OPTIMISERS = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "Adam": {"amsgrad": True},
    "AdamW": {},
    "RMSprop": {"momentum": 0.5},
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_whole_training_steps(name):
    """Twenty steps with a schedule, clipping and dropout: parameters, gradients, state and generator have eager's bits."""

    def made():
        strata.manual_seed(3)
        model = strata.nn.Sequential(strata.nn.Linear(12, 16), strata.nn.ReLU(), strata.nn.Dropout(0.2), strata.nn.LayerNorm(16), strata.nn.Linear(16, 4))
        optimiser = getattr(strata.optim, name)(model.parameters(), lr=0.05, **OPTIMISERS[name])
        schedule = strata.optim.lr_scheduler.StepLR(optimiser, step_size=3, gamma=0.7)

        def step(x, y):
            optimiser.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            strata.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimiser.step()
            return loss

        return model, optimiser, schedule, step

    batches = [(strata.randn(8, 12), strata.randint(0, 4, (8,))) for _ in range(21)]
    found = []
    for compiled in (False, True):
        model, optimiser, schedule, step = made()
        strata.manual_seed(5)
        losses = [step(*batches[0])]
        if compiled:
            step = strata.graph(step, *batches[1]).compile()
        for x, y in batches[1:]:
            losses.append(step(x, y).detach().clone())
            schedule.step()
        state = [v for t in optimiser.state.values() for v in t.values() if v is not None]
        found.append([*losses, *model.parameters(), *(p.grad for p in model.parameters()), *state, strata.default_generator.get_state()])
    assert len(found[0]) == len(found[1])
    assert [strata.equal(a, b) for a, b in zip(*found, strict=True)] == [True] * len(found[0])


def test_a_capture_changes_nothing():
    strata.manual_seed(3)
    model = strata.nn.Sequential(strata.nn.Linear(12, 16), strata.nn.BatchNorm1d(16), strata.nn.Dropout(0.2), strata.nn.Linear(16, 4))
    optimiser = strata.optim.AdamW(model.parameters(), lr=0.05)
    optimiser.init_state()
    x, y = strata.randn(8, 12), strata.randint(0, 4, (8,))

    def step(x, y):
        optimiser.zero_grad()
        loss = F.cross_entropy(model(x.mul_(2)), y)
        loss.backward()
        optimiser.step()
        return loss

    held = [x, *model.parameters(), *model.buffers(), *(v for s in optimiser.state.values() for v in s.values())]
    before, versions = [t.detach().clone() for t in held], [t._version for t in held]
    generator = strata.default_generator.get_state()
    cf = strata.graph(step, x, y).compile()
    assert all(same(a, b) for a, b in zip(held, before, strict=True)) and versions == [t._version for t in held]
    assert all(p.grad is None for p in model.parameters()) and strata.equal(strata.default_generator.get_state(), generator)
    loss = cf(x, y).detach().clone()
    after = [t.detach().clone() for t in held]
    with strata.no_grad():
        for t, b in zip(held, before, strict=True):
            t.copy_(b)
    strata.default_generator.set_state(generator)
    assert same(loss, step(x, y)) and all(same(a, b) for a, b in zip(held, after, strict=True))


def test_backwards_that_leave_what_is_captured_are_refused():
    a, w = strata.ones(3, requires_grad=True), strata.ones(3, requires_grad=True)
    x = a * 2

    def step(x):
        (x * w).sum().backward()

    for f, given in ((step, x), (lambda _: step(x), strata.ones(3))):
        with pytest.raises(RuntimeError, match="goes on outside of what is captured"):
            strata.graph(f, given)
    assert a.grad is None and w.grad is None
    strata.graph(lambda x: step(x.detach()), x).compile()(x)
    assert a.grad is None and w.grad.tolist() == [2, 2, 2]
    x.sum().backward()
    assert a.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("f", [strata.prod, lambda x: x.prod(1).sum(), strata.linalg.det])
def test_derivatives_that_values_choose_are_refused(f):
    with pytest.raises(RuntimeError, match="reads the values of a tensor while operators are recorded"):
        strata.graph(f, strata.ones(3, 3, requires_grad=True))


def test_gradients_that_add_up():
    w = strata.randn(3, requires_grad=True)

    def f(x):
        (x * w).sum().backward()
        return x

    cf = strata.graph(f, strata.ones(3)).compile()
    cf(strata.ones(3))
    assert w.grad.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="reset gradients in what is captured"):
        cf(strata.ones(3))
    adding = strata.graph(f, strata.ones(3)).compile()
    assert w.grad.tolist() == [1, 1, 1]
    adding(strata.ones(3) * 3)
    assert w.grad.tolist() == [4, 4, 4]


def test_optimisers_without_state_and_with_other_numbers_are_refused():
    w = strata.randn(3, requires_grad=True)
    optimiser = strata.optim.AdamW([w], lr=0.1)

    def step(x):
        optimiser.zero_grad()
        (x * w).sum().backward()
        optimiser.step()

    with pytest.raises(RuntimeError, match="AdamW makes its state in what is captured"):
        strata.graph(step, strata.ones(3))
    assert not optimiser.state, "what it made has no values"
    optimiser.init_state()
    cf = strata.graph(step, strata.ones(3)).compile()
    cf(strata.ones(3))
    optimiser.param_groups[0]["amsgrad"] = True
    with pytest.raises(RuntimeError, match="AdamW's amsgrad was False when the graph was captured, and is True"):
        cf(strata.ones(3))


def test_saved_tensors_that_are_written_before_the_backward():
    x = strata.randn(5, requires_grad=True)
    y = x * 1
    cf = strata.graph(trig, y).compile()
    z = cf(y)
    with strata.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_memory_goes_back():
    x = strata.randn(1000, requires_grad=True)
    cf = strata.graph(trig, x).compile()
    cf(x).sum().backward()
    gc.collect()

    class Marked(strata.Tensor):
        pass

    y = cf(x)
    node = y.grad_fn
    del y
    assert node is not None
    del node


def test_compiled_graphs_inside_of_a_capture():
    w = strata.randn(8, requires_grad=True)
    x = strata.randn(8)
    inner = strata.graph(lambda x: (x * w).sin(), x).compile()
    g = strata.graph(lambda x: inner(x) * 2, x)
    assert "aten::sin" in str(g)
    outer = g.compile()
    y = strata.randn(8)
    (got,), (want,) = strata.autograd.grad(outer(y).sum(), w), strata.autograd.grad(((y * w).sin() * 2).sum(), w)
    assert same(got, want)


def test_errors_of_values_are_eagers():
    table, ids = strata.randn(4, 3), strata.tensor([0, 1])
    cf = strata.graph(lambda t, i: F.embedding(i, t) * 2, table, ids).compile()
    with pytest.raises(IndexError, match="embedding got index 9 for a table of 4 rows"):
        cf(table, strata.tensor([0, 9]))
    assert same(cf(table, ids), F.embedding(ids, table) * 2)
    divide = strata.graph(lambda a, b: (a + 1) // b * 2, strata.arange(8), strata.ones(8, dtype=strata.int64)).compile()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        divide(strata.arange(8), strata.zeros(8, dtype=strata.int64))


def test_operators_that_give_none():
    model = strata.nn.Sequential(strata.nn.Conv2d(1, 4, 3), strata.nn.BatchNorm2d(4), strata.nn.ReLU())
    x = strata.randn(2, 1, 8, 8)  # which needs no gradient: convolution_backward gives None for it
    cf = strata.graph(model, x).compile()
    running = [b.clone() for b in model.buffers()]
    got = strata.autograd.grad(cf(x).sum(), list(model.parameters()))
    after = [b.clone() for b in model.buffers()]
    with strata.no_grad():
        for b, r in zip(model.buffers(), running, strict=True):
            b.copy_(r)
    want = strata.autograd.grad(model(x).sum(), list(model.parameters()))
    assert all(same(a, b) for a, b in zip([*got, *after], [*want, *model.buffers()], strict=True))


def test_autocast_is_a_mode():
    x = strata.randn(4, 4)
    cf = strata.graph(lambda x: x @ x, x).compile()
    with strata.autocast("cpu", dtype=strata.bfloat16):
        with pytest.raises(RuntimeError, match="autocast was off when the graph was captured"):
            cf(x)
        lower = strata.graph(lambda x: x @ x, x).compile()
        assert lower(x).dtype == strata.bfloat16 and same(lower(x), x @ x)


def test_long_and_wide_functions():
    def chain(x):
        for _ in range(150):
            x = x * 1.0001 + 0.1
        return x

    def wide(*xs):
        total = xs[0]
        for x in xs[1:]:
            total = total + x
        return total

    x, xs = strata.randn(100), [strata.randn(50) for _ in range(40)]
    assert same(strata.graph(chain, x).compile()(x), chain(x))
    assert same(strata.graph(wide, *xs).compile()(*xs), wide(*xs))


@pytest.mark.parametrize("shape", [(0, 3), (), (1,), (2, 1, 2, 3, 1, 2, 2)])
def test_shapes_of_no_and_many_dims(shape):
    def f(x):
        return (x * 2 + 1).sum() if not shape else (x * 2 + 1).sum(0) + x.sin().sum()

    x = strata.ones(shape)
    assert same(strata.graph(f, x).compile()(x), f(x))


def test_without_a_compiler(monkeypatch, recwarn):
    monkeypatch.setenv("STRATA_COMPILER", "none")
    cf = strata.graph(lambda x: (x * 2.125).exp() - x, strata.ones(3)).compile()
    assert same(cf(strata.ones(3)), (strata.ones(3) * 2.125).exp() - strata.ones(3))


def test_texts():
    x = strata.randn(6, 4)
    g = strata.graph(trig, x)
    assert "aten::sin(%0)" in str(g) and "test_graph.py" in str(g)
    cf = g.compile()
    assert "pointwise sin" in cf.ir("launches") and "arena of" in cf.memory_plan()
    with pytest.raises(ValueError, match="expected the stage"):
        cf.ir("nothing")
    assert same(g.run(x), trig(x))


def test_drawing(tmp_path):
    strata.graph(trig, strata.randn(3)).draw(str(tmp_path / "graph.svg"))
    assert "aten::sin" in (tmp_path / "graph.svg").read_text()


def test_copies_that_nobody_could_tell_are_left_out():
    def f(x):
        y = (x @ x.t()).clone()
        y.add_(1)
        return y, x.repeat(2, 1), x.clone()

    x = strata.randn(3, 4)
    cf = strata.graph(f, x).compile()
    assert all(same(a, b) for a, b in zip(cf(x), f(x), strict=True))
    assert "aten::clone" not in cf.ir("launches") and cf.ir("launches").count(" = copy ") == 1


def test_products_between_leave_their_memory_to_the_next():
    w = strata.randn(256, 256)

    def chain(x):
        for _ in range(20):
            x = x @ w
        return x

    x = strata.randn(256, 256)
    cf = strata.graph(chain, x).compile()
    assert same(cf(x), chain(x))
    strata._C._reset_peak_memory()
    before = strata._C._memory_stats()["live_bytes"]
    cf(x)
    assert strata._C._memory_stats()["peak_bytes"] - before <= 4 * x.nbytes
