"""checkpoint: gradients equal to the bit, fewer tensors kept, mismatches told."""

import contextlib
import gc
import weakref

import numpy
import pytest
import strata
from strata.autograd.graph import saved_tensors_hooks
from strata.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    get_device_states,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
    set_device_states,
)


@pytest.fixture
def w():
    strata.manual_seed(0)
    return strata.randn(4, 4, requires_grad=True)


@pytest.fixture
def x():
    strata.manual_seed(1)
    return strata.randn(3, 4, requires_grad=True)


class Counter:
    """Counts the calls of a function."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


def grads_of(run, *leaves):
    for leaf in leaves:
        leaf.grad = None
    strata.manual_seed(5)
    run().sum().backward()
    return [leaf.grad.clone() for leaf in leaves]


def same(a, b):
    return all(strata.equal(p, q) for p, q in zip(a, b, strict=True))


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("early_stop", [False, True])
def test_gradients_are_those_of_the_plain_call(w, x, reentrant, early_stop):
    def block(a):
        return strata.nn.functional.dropout(a.matmul(w).sin().exp(), 0.5) * a

    def run(call):
        return grads_of(lambda: call(block, x * 1).tanh(), w, x)

    def checkpointed(f, a):
        return checkpoint(f, a, use_reentrant=reentrant, early_stop=early_stop)

    assert same(run(lambda f, a: f(a)), run(checkpointed))


def test_the_second_run_leaves_the_random_numbers_alone(x):
    y = checkpoint(strata.nn.functional.dropout, x, 0.5, use_reentrant=False)
    strata.manual_seed(3)
    expected = strata.rand(2)
    strata.manual_seed(3)
    y.sum().backward()
    assert strata.equal(strata.rand(2), expected)


def test_without_preserving_them_it_draws_on(x):
    strata.manual_seed(3)
    y = checkpoint(lambda a: a * strata.rand_like(a), x, use_reentrant=False, preserve_rng_state=False)
    y.sum().backward()
    assert not strata.equal(x.grad, (y / x).detach())


def test_intermediates_are_not_kept(x):
    alive = []

    def block(a):
        b = a.sin()
        c = b.exp()
        alive.extend([weakref.ref(b), weakref.ref(c)])
        return c.cos()

    y = checkpoint(block, x, use_reentrant=False)
    gc.collect()
    assert [r() is not None for r in alive] == [False, False]
    y.sum().backward()
    assert x.grad is not None


def test_one_second_run_per_backward(x):
    block = Counter(lambda a: a.sin().exp().cos())
    y = checkpoint(block, x, use_reentrant=False)
    y.sum().backward(retain_graph=True)
    assert block.calls == 2
    first = x.grad.clone()
    y.sum().backward()
    assert block.calls == 3
    assert strata.equal(x.grad, first * 2)


def test_early_stop_skips_the_tail(x):
    reached = []

    def block(a):
        b = a.sin()
        reached.append("head")
        c = b + 1
        reached.append("tail")
        return c

    checkpoint(block, x, use_reentrant=False).sum().backward()
    assert reached == ["head", "tail"]
    reached.clear()
    with set_checkpoint_early_stop(False):
        y = checkpoint(block, x, use_reentrant=False)
    y.sum().backward()
    assert reached == ["head", "tail", "head", "tail"]


@pytest.mark.parametrize("depth", [2, 3])
def test_nested(x, w, depth):
    def nest(level):
        if level == 0:
            return lambda a: a.matmul(w).sin()
        inner = nest(level - 1)
        return lambda a: checkpoint(inner, a.exp(), use_reentrant=False).cos() * a

    expected = grads_of(lambda: _plain(depth, x, w), w, x)
    assert same(grads_of(lambda: nest(depth)(x), w, x), expected)
    assert same(grads_of(lambda: checkpoint(nest(depth), x, use_reentrant=False), w, x), expected)


def _plain(level, a, w):
    return a.matmul(w).sin() if level == 0 else _plain(level - 1, a.exp(), w).cos() * a


def test_nested_inputs_are_left_to_the_outer_region(x):
    alive = []

    def outer(a):
        b = a.sin()
        alive.append(weakref.ref(b))
        return checkpoint(strata.exp, b, use_reentrant=False)

    y = checkpoint(outer, x, use_reentrant=False)
    gc.collect()
    assert alive[0]() is None
    y.sum().backward()


def test_keywords_grad_and_higher_order(x):
    def block(a, *, scale):
        return (a * scale).sin()

    y = checkpoint(block, x, scale=3.0, use_reentrant=False)
    (g,) = strata.autograd.grad(y.sum(), x, create_graph=True)
    assert strata.equal(g, (x * 3.0).cos() * 3.0)
    (h,) = strata.autograd.grad(g.sum(), x)
    strata.testing.assert_close(h, -9 * (x * 3.0).sin().detach())


def test_nests_of_results_and_plain_arguments(x):
    a, b = checkpoint(lambda t, n, flag: (t.sin() * n, t.cos() if flag else t), x, 2, True, use_reentrant=False)
    (a + b).sum().backward()
    strata.testing.assert_close(x.grad, (2 * x.cos() - x.sin()).detach())


def test_outer_hooks_see_the_inputs(x):
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        y = checkpoint(lambda a: a.sin().exp(), x, use_reentrant=False)
    assert len(packed) == 1
    y.sum().backward()


def test_autocast_holds_in_the_second_run(x, w):
    seen = []

    def block(a):
        out = a.matmul(w)
        seen.append(out.dtype)
        return out.float().sin()

    with strata.autocast("cpu", dtype=strata.bfloat16):
        y = checkpoint(block, x, use_reentrant=False)
    y.sum().backward()
    assert seen == [strata.bfloat16, strata.bfloat16]


def test_no_grad(x):
    with strata.no_grad():
        assert not checkpoint(strata.sin, x, use_reentrant=False).requires_grad


def test_context_fn(x):
    entered = []

    @contextlib.contextmanager
    def note(name):
        entered.append(name)
        yield

    y = checkpoint(strata.sin, x, use_reentrant=False, context_fn=lambda: (note("first"), note("again")))
    y.sum().backward()
    assert entered == ["first", "again"]


def unstable(kind):
    runs = []

    def block(a):
        runs.append(0)
        if kind == "shape":
            return (a[:, : 2 + len(runs)].sin() * 2).sum()
        return a.sin().exp() if (kind == "fewer") == (len(runs) == 1) else a.sin()

    return block


def test_mismatch_of_shapes(x):
    y = checkpoint(unstable("shape"), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata") as info:
        y.backward()
    assert "tensor at position 0:\nsaved metadata: {'shape': (3, 3)" in str(info.value)


def test_mismatch_of_numbers(x):
    with pytest.raises(CheckpointError, match="forward: 2\nNumber of tensors saved during recomputation: 1"):
        checkpoint(unstable("fewer"), x, use_reentrant=False).sum().backward()
    checkpoint(unstable("more"), x, use_reentrant=False).sum().backward()
    with pytest.raises(CheckpointError, match="forward: 1\nNumber of tensors saved during recomputation: 2"):
        checkpoint(unstable("more"), x, use_reentrant=False, early_stop=False).sum().backward()


def test_debug_tells_the_lines(x):
    with pytest.raises(CheckpointError, match=r"(?s)runs part at tensor 1.*test_utils_checkpoint\.py:\d+ in block"):
        y = checkpoint(unstable("fewer"), x, use_reentrant=False, debug=True)
        y.sum().backward()
    with set_checkpoint_debug_enabled(True), pytest.raises(CheckpointError, match="runs part"):
        checkpoint(unstable("fewer"), x, use_reentrant=False).sum().backward()


def test_errors_of_the_region_pass_through(x):
    with pytest.raises(ZeroDivisionError):
        checkpoint(lambda a: 1 / 0, x, use_reentrant=False)


def test_reentrant_limits(x):
    y = checkpoint(strata.sin, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="use_reentrant=True works neither"):
        strata.autograd.grad(y.sum(), x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(strata.sin, x, use_reentrant=True, scale=1)
    with pytest.raises(ValueError, match="only supported with use_reentrant=False"):
        checkpoint(strata.sin, x, use_reentrant=True, debug=True)
    with pytest.warns(UserWarning, match="no input has requires_grad"):
        checkpoint(strata.sin, x.detach(), use_reentrant=True)
    with pytest.warns(UserWarning, match="pass use_reentrant explicitly"):
        checkpoint(strata.sin, x)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(strata.sin, x, use_reentrant=False, determinism_check="some")


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequential(x, segments, reentrant):
    strata.manual_seed(2)
    net = strata.nn.Sequential(*(m for _ in range(3) for m in (strata.nn.Linear(4, 4), strata.nn.Dropout(0.3))))
    leaves = [x, *net.parameters()]
    expected = grads_of(lambda: net(x), *leaves)
    assert same(grads_of(lambda: checkpoint_sequential(net, segments, x, use_reentrant=reentrant), *leaves), expected)
    assert same(grads_of(lambda: checkpoint_sequential(list(net), segments, x, reentrant), *leaves), expected)
    with pytest.raises(ValueError, match=r"segments must lie in \[1, 6\]"):
        checkpoint_sequential(net, 7, x, use_reentrant=reentrant)


def test_without_devices_there_are_no_states(x):
    assert get_device_states(x, [x], {"a": 3}) == ([], [])
    set_device_states([], [])


def test_each_backward_runs_the_region_as_it_is_then(x):
    runs, scale = [], strata.ones(4)

    def block(a):
        runs.append(0)
        return (a * scale).sin(), (a * scale).exp()

    y, z = checkpoint(block, x, use_reentrant=False, early_stop=False)
    (first,) = strata.autograd.grad(y.sum(), x, retain_graph=True)
    with strata.no_grad():
        scale.mul_(2)
    (second,) = strata.autograd.grad(z.sum(), x, retain_graph=True)
    assert len(runs) == 3
    assert strata.equal(first, x.cos().detach()) and strata.equal(second, (2 * (2 * x).exp()).detach())


def test_part_of_a_backward_leaves_nothing_behind(x):
    alive = []

    def block(a):
        values = numpy.full(4, 3, "float32")
        alive[:] = [weakref.ref(values)]
        return a.sin(), a * strata.from_numpy(values)

    y, z = checkpoint(block, x, use_reentrant=False)
    (first,) = strata.autograd.grad(y.sum(), x, retain_graph=True)
    gc.collect()
    assert alive[0]() is None
    z.sum().backward()
    assert strata.equal(first, x.cos().detach()) and strata.equal(x.grad, strata.full((3, 4), 3.0))


def test_an_error_in_backward_leaves_the_region_usable(x):
    runs = []

    def block(a):
        runs.append(0)
        if len(runs) == 2:
            raise KeyError("the second run")
        return a.sin().exp()

    y = checkpoint(block, x, use_reentrant=False)
    with pytest.raises(KeyError):
        y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert strata.equal(x.grad, strata.autograd.grad(x.sin().exp().sum(), x)[0])


def test_saved_tensors_may_be_read_outside_of_a_backward(x):
    block = Counter(lambda a: a.exp().sin())
    y = checkpoint(block, x, use_reentrant=False)
    assert strata.equal(y.grad_fn._saved_self, x.exp()) and strata.equal(y.grad_fn._saved_self, x.exp())
    assert block.calls == 3


def test_a_context_may_not_hide_the_regions_error(x):
    def block(a):
        raise KeyError("hidden")

    with pytest.raises(RuntimeError, match="suppressed an error"):
        checkpoint(block, x, use_reentrant=False, context_fn=lambda: (contextlib.suppress(KeyError), contextlib.nullcontext()))


def test_the_default_device_holds_in_the_second_run(x):
    seen = []

    def block(a):
        seen.append(strata.ones(1).device.type)
        return a.sin() * a

    with strata.device("meta"):
        y = checkpoint(block, x, use_reentrant=False)
    y.sum().backward()
    assert seen == ["meta", "meta"]
