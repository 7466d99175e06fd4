"""Backends of the program's own: what they are handed has eager's gradients; what they raise is raised."""

import pytest
import strata
from strata._dynamo.exc import BackendCompilerFailed
from strata.autograd import Function


class Through(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


@strata.no_grad()
def halved(x):
    return x / 2


def without_gradient(x):
    with strata.no_grad():
        y = x * 3
    return y * x


def gradient_inside(x):
    (g,) = strata.autograd.grad((x**2).sum(), x)
    return g * x


def decorated(x):
    return halved(x), x.exp()


def on_again(x):
    with strata.no_grad():
        a = x.sin()
        with strata.enable_grad():
            b = x.cos()
        a = a + b
    return a * x, b


def graph_as_is(gm, example_inputs):
    return gm.forward


BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager", graph_as_is, "inductor"])


@BACKENDS
@pytest.mark.parametrize("f", [without_gradient, gradient_inside, decorated, on_again, Through.apply, lambda x: Through.apply(x * 2) * x])
@pytest.mark.parametrize("recorded", [True, False])
def test_gradients_are_those_of_eager(backend, f, recorded):
    def outcome(g):
        x = strata.tensor([0.3, 0.7, 2.5], requires_grad=True)
        with strata.set_grad_enabled(recorded or f is gradient_inside):
            found = g(x)
            found = found if isinstance(found, tuple) else (found,)
            assert strata.is_grad_enabled() is (recorded or f is gradient_inside)
        shown = [(t.tolist(), t.requires_grad) for t in found]
        kept = [t.sum() for t in found if t.requires_grad]
        if kept:
            sum(kept).backward()
        return shown, None if x.grad is None else x.grad.tolist()

    assert outcome(f) == outcome(strata.compile(f, backend=backend))


@BACKENDS
@pytest.mark.parametrize("kind", [strata.optim.SGD, strata.optim.AdamW, strata.optim.RMSprop])
def test_steps_of_optimizers(backend, kind):
    def outcome(compile):
        strata.manual_seed(0)
        net = strata.nn.Linear(3, 2)
        optimizer = kind(net.parameters(), lr=0.1)
        step = compile(optimizer.step)
        for _ in range(4):
            optimizer.zero_grad()
            net(strata.ones(2, 3)).square().sum().backward()
            step()
        return [p.tolist() for p in net.parameters()]

    assert outcome(lambda f: f) == outcome(lambda f: strata.compile(f, backend=backend))


@BACKENDS
def test_averages_of_weights(backend):
    @strata.no_grad()
    def update(p, q):
        p.mul_(0.5).add_(q)

    compiled = strata.compile(update, backend=backend)
    p = strata.ones(3, requires_grad=True)
    for _ in range(3):
        compiled(p, strata.ones(3))
    assert p.tolist() == [1.875] * 3 and p.requires_grad and p.is_leaf


def test_marks_are_nodes():
    graphs = []

    def keep(gm, example_inputs):
        graphs.append(gm)
        return gm

    strata.compile(without_gradient, backend=keep)(strata.ones(2, requires_grad=True))
    (gm,) = graphs
    assert [n.target for n in gm.graph.nodes if n.target is strata._C._set_grad_enabled] == [strata._C._set_grad_enabled] * 2
    assert gm.code.count("strata._C._set_grad_enabled(") == 2


@pytest.mark.parametrize("recorded", [True, False])
def test_no_nodes_where_nothing_changes(recorded):
    codes = []

    def keep(gm, example_inputs):
        codes.append(gm.code)
        return gm.forward

    net = strata.nn.Sequential(strata.nn.Linear(3, 3), strata.nn.ReLU())
    with strata.set_grad_enabled(recorded):
        strata.compile(net, backend=keep)(strata.ones(1, 3))
        traced = strata.fx.experimental.proxy_tensor.make_fx(lambda x: without_gradient(net(x)))(strata.ones(1, 3))
        traced(strata.ones(1, 3))
        assert strata.is_grad_enabled() is recorded
    assert len(codes) == 1 and "_set_grad_enabled" not in codes[0] + traced.code


def test_errors_of_backends_may_be_suppressed(monkeypatch):
    monkeypatch.setattr(strata._dynamo.config, "suppress_errors", True)
    compiled = strata.compile(lambda x: x + 1, backend=broken)
    with pytest.warns(UserWarning, match="ZeroDivisionError"):
        assert compiled(strata.ones(1)).item() == 2
    monkeypatch.setattr(strata._dynamo.config, "suppress_errors", False)
    with pytest.raises(BackendCompilerFailed) as found:
        strata.compile(lambda x: x + 1, backend=broken)(strata.ones(1))
    assert found.value.backend_name == "broken" and isinstance(found.value.inner_exception, ZeroDivisionError)


def broken(gm, example_inputs):
    raise ZeroDivisionError("of the backend")


def nothing(gm, example_inputs):
    return None


@pytest.mark.parametrize("backend, text", [(broken, "ZeroDivisionError: of the backend"), (nothing, "must return a function")])
@pytest.mark.parametrize("fullgraph", [True, False])
def test_what_a_backend_raises_is_raised(backend, text, fullgraph):
    compiled = strata.compile(lambda x: x + 1, backend=backend, fullgraph=fullgraph)
    for _ in range(2):
        with pytest.raises(BackendCompilerFailed, match=text):
            compiled(strata.ones(2))


def test_a_whole_step_and_blocks_run_as_they_are():
    net = strata.nn.Linear(2, 1)
    optimizer = strata.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    before = net.weight.tolist()
    strata.compile(step, backend="eager")(strata.ones(3, 2))
    assert net.weight.tolist() != before

    def choice(x):
        return strata.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    assert strata.compile(choice, backend="eager")(strata.ones(2)).tolist() == [2.0, 2.0]


def test_arithmetic_with_numbers_is_named_as_passes_look_for_it():
    """PyTorch's functions have no overload for a number: aten graphs name the tensors' one."""
    graphs = []

    def keep(gm, example_inputs):
        graphs.append(gm)
        return gm

    def f(x):
        return strata.add(x, 1, alpha=2) * 3 - 1, x / 2, x.sin().add_(1)

    x = strata.tensor([1.5, -2.0])
    got = strata.compile(f, backend=keep)(x)
    assert [t.tolist() for t in got] == [t.tolist() for t in f(x)]
    aten = strata.ops.aten
    found = [(n.target, n.args[1:], dict(n.kwargs)) for n in graphs[0].graph.nodes if n.op == "call_function" and n.target is not aten.sin.default]
    assert found == [
        (aten.add.Tensor, (1,), {"alpha": 2}), (aten.mul.Tensor, (3,), {}), (aten.sub.Tensor, (1,), {}),
        (aten.div.Tensor, (2,), {}), (aten.add_.Tensor, (1,), {}),
    ]  # fmt: skip
    traced = strata.fx.experimental.proxy_tensor.make_fx(lambda x: x.sin() + 1)(x)
    assert aten.add.Tensor in [n.target for n in traced.graph.nodes]


@BACKENDS
def test_what_raises_inside_leaves_recording_as_it_was(backend):
    def f(table, index):
        with strata.no_grad():
            rows = strata.index_select(table, 0, index)
        return rows * table.sum()

    compiled, table = strata.compile(f, backend=backend), strata.ones(3, requires_grad=True)
    for index in (strata.tensor([0, 1]), strata.tensor([0, 7])):
        for g in (f, compiled):
            try:
                g(table, index)
            except IndexError:
                assert index[1] == 7
            else:
                assert index[1] == 1
            assert strata.is_grad_enabled()


@BACKENDS
def test_a_whole_step_reads_what_its_optimizer_says_now(backend):
    def outcome(compile):
        w = strata.nn.Parameter(strata.ones(2))
        optimizer, seen = strata.optim.SGD([w], lr=1.0), []

        def step(x):
            w.grad = None
            loss = (w * x).sum()
            loss.backward()
            optimizer.step()
            return loss.item()

        run = compile(step)
        for i in range(6):
            if i >= 3:
                optimizer.param_groups[0]["lr"] = 0.1 ** (i - 2)
            run(strata.ones(1, 2))
            seen.append((w.tolist(), w.grad.requires_grad, w.grad.is_leaf))
        return seen

    assert outcome(lambda f: f) == outcome(lambda f: strata.compile(f, backend=backend))


@BACKENDS
def test_gradients_that_are_results_have_none(backend):
    w = strata.nn.Parameter(strata.ones(2))
    found = strata.compile(lambda x: strata.autograd.grad((w * w * x).sum(), w)[0], backend=backend)(strata.ones(2))
    assert found.tolist() == [2.0, 2.0] and not found.requires_grad and strata.is_grad_enabled()


@BACKENDS
def test_casts_are_those_of_the_capture(backend):
    @strata.compile(backend=backend)
    def f(x):
        with strata.autocast("cpu", enabled=False):
            plain = x @ x
        with strata.autocast("cpu", dtype=strata.float16):
            return plain, x @ x

    with strata.autocast("cpu", dtype=strata.bfloat16):
        assert [t.dtype for t in f(strata.ones(2, 2))] == [strata.float32, strata.float16] and strata.is_autocast_enabled("cpu")


def test_operators_that_are_checked_without_a_result():
    for fn in (strata.linalg.inv, strata.linalg.lu_factor):
        assert strata.equal(strata.compile(lambda x, fn=fn: fn(x), backend="eager")(strata.eye(2))[0], fn(strata.eye(2))[0])
