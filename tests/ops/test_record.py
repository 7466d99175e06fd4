"""Recordings of whole functions: what autograd, views, modules, optimisers and random streams do is seen as operators; what a
recording could not replay raises."""

from __future__ import annotations

import io

import numpy as np
from table import pytest, strata
from test_replay import check

F = strata.nn.functional


def values(seed: int, *shapes):
    random = np.random.default_rng(seed)
    return [strata.tensor(random.standard_normal(s).astype(np.float32)) for s in shapes]


def replayed(f, *shapes, drawn: bool = False) -> None:
    check(getattr(f, "__name__", "function"), f, values(1, *shapes), values(2, *shapes), drawn=drawn)


def slopes(f):
    """f(*inputs) and the gradients of its sum."""

    def both(*xs):
        for x in xs:
            x.requires_grad_()
        y = f(*xs)
        grads = strata.autograd.grad(y.sum(), xs, allow_unused=True)
        for x in xs:
            x.requires_grad_(False)
        return [y.detach(), *grads]

    both.__name__ = f.__name__
    return both


def written_views(x):
    y = x * 2
    v = y[1:3]
    v.mul_(3)
    y.t()[0].add_(v[0, 0])
    return (y * v.sum()).sin()


def refreshed_views(x):
    y = x * 2
    v = y.view(12)
    y.mul_(2)
    z = v * 3
    v[2:5].exp_()
    return y + z.view(4, 3)


def headers(x):
    y = x * 2
    y.transpose_(0, 1)
    y.unsqueeze_(0)
    y[0, 0].mul_(3)
    return y.squeeze_()


def with_hooks(x):
    with strata.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t + 0):
        return x.exp().sin() * x


class Exponential(strata.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y, x)
        return y

    @staticmethod
    def backward(ctx, grad):
        y, x = ctx.saved_tensors
        return grad * y + x


class Same(strata.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


def functions(x):
    return Same.apply(Exponential.apply(x * 2))


@pytest.mark.parametrize("f", [written_views, refreshed_views, headers, with_hooks, functions], ids=lambda f: f.__name__)
def test_autograd(f):
    replayed(slopes(f), (4, 3))


def test_second_derivatives():
    def f(x):
        x.requires_grad_()
        (once,) = strata.autograd.grad((x.sin() * x.exp()).sum(), x, create_graph=True)
        (twice,) = strata.autograd.grad((once ** 2).sum(), x)
        x.requires_grad_(False)
        return [once.detach(), twice]

    replayed(f, (5,))


def test_gradients_add_up_in_grad():
    def f(x):
        x.requires_grad_()
        for _ in range(3):
            (x.exp() * 2).sum().backward()
        grad, x.grad = x.grad, None
        x.requires_grad_(False)
        return [grad]

    replayed(f, (5,))


def test_data():
    def f(x):
        y = x.clone()
        y.data.mul_(2)
        y.detach()[0] = 3
        return [y]

    replayed(f, (5,))


def test_random_streams():
    def f(x):
        y = F.feature_alpha_dropout(F.alpha_dropout(F.dropout(x, 0.3), 0.3)[None], 0.5)[0]
        y = y + strata.randn(3) * strata.bernoulli(strata.full((3,), 0.5)) + strata.randperm(3)
        strata.rand(5)  # which nobody uses
        return y

    replayed(slopes(f), (4, 3), drawn=True)


def test_attention_drops_weights():
    def f(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.4)

    replayed(slopes(f), (2, 3, 8), (2, 5, 8), (2, 5, 4), drawn=True)


def test_checkpoints_draw_the_same_twice():
    from strata.utils.checkpoint import checkpoint

    def f(x):
        return checkpoint(lambda y: F.dropout(y.sin() * y, 0.5), x, use_reentrant=False)

    replayed(slopes(f), (40,), drawn=True)


MODULES = {
    "mlp": (lambda nn: nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(0.1), nn.Linear(8, 2)), (3, 4)),
    "convolution": (lambda nn: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)), (2, 3, 8, 8)),
    "lstm": (lambda nn: nn.LSTM(4, 5, 2, dropout=0.2), (6, 2, 4)),
    "gru": (lambda nn: nn.GRU(4, 5, bidirectional=True), (6, 2, 4)),
    "transformer": (lambda nn: nn.TransformerEncoderLayer(8, 2, 16), (5, 2, 8)),
    "instance norm": (lambda nn: nn.InstanceNorm2d(3, affine=True, track_running_stats=True), (2, 3, 4, 4)),
    "unfold": (lambda nn: nn.Unfold(2), (1, 2, 4, 4)),
    "upsample": (lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), (1, 2, 3, 3)),
    "response norm": (lambda nn: nn.LocalResponseNorm(2), (1, 4, 3, 3)),
    "power pool": (lambda nn: nn.LPPool2d(2, 2), (1, 2, 4, 4)),
    "fractional pool": (lambda nn: nn.FractionalMaxPool2d(2, output_size=2), (1, 2, 7, 7)),
    "rrelu": (lambda nn: nn.RReLU(), (3, 4)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    """Parameters and buffers are inputs, of which the gradients are outputs and the buffers are written."""
    make, shape = MODULES[name]
    module = make(strata.nn)
    params, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    names = [*params, *buffers]

    def f(x, *state):
        wanted = [x, *state[:len(params)]]
        for p in wanted:
            p.requires_grad_()
        y = strata.func.functional_call(module, dict(zip(names, state, strict=True)), (x,))
        y = y[0] if isinstance(y, tuple) else y
        grads = strata.autograd.grad((y * y).sum(), wanted, allow_unused=True)
        for p in wanted:
            p.requires_grad_(False)
        return [y.detach(), *grads]

    state = [t.detach() for t in [*params.values(), *buffers.values()]]
    moved = [t + 0.25 * strata.rand_like(t) if t.is_floating_point() else t + 1 for t in state]
    check(name, f, [*values(1, shape), *state], [*values(2, shape), *moved])


OPTIMISERS = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "Adam": {"amsgrad": True, "weight_decay": 0.1},
    "AdamW": {"betas": (0.8, 0.9)},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "Adagrad": {"lr_decay": 0.1, "initial_accumulator_value": 0.5},
    "Adadelta": {"rho": 0.7, "weight_decay": 0.1},
    "Adamax": {"weight_decay": 0.1, "maximize": True},
    "NAdam": {"decoupled_weight_decay": True, "weight_decay": 0.1, "momentum_decay": 0.1},
    "RAdam": {"weight_decay": 0.1},
    "ASGD": {"lambd": 0.01, "t0": 5},
    "Rprop": {"step_sizes": (0.01, 0.3)},
    "Adafactor": {"weight_decay": 0.1},
    "Muon": {"adjust_lr_fn": "match_rms_adamw"},
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimiser_steps(name):
    """State that is made meanwhile."""
    def f(p, grad):
        optimiser = getattr(strata.optim, name)([p.requires_grad_()], lr=0.1, **OPTIMISERS[name])
        for k in (1, 2):
            p.grad = grad * k
            optimiser.step()
        p.grad = None
        p.requires_grad_(False)
        return [p.detach()]

    replayed(f, (3, 4), (3, 4))


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("dtype", [strata.float32, strata.float64], ids=str)
def test_optimiser_steps_of_other_counts(name, dtype):
    """State, its step count and the learning rate are inputs: a replay reads them anew, and so is the step of its own count.
    RAdam divides from its sixth step on, ASGD averages from step t0."""
    shape = (3, 4)

    def trained(seed: int, steps: int):
        p, *grads = (t.to(dtype) for t in values(seed, shape, *[shape] * (steps + 1)))
        optimiser = getattr(strata.optim, name)([p.requires_grad_()], lr=0.1, **OPTIMISERS[name])
        for p.grad in grads[:steps]:
            optimiser.step()
        p.grad = None
        state = [t for t in optimiser.state[p].values() if isinstance(t, strata.Tensor)]
        return [p.detach(), grads[-1], strata.tensor(0.3 / seed), *state]

    def f(p, grad, lr, *state):
        optimiser = getattr(strata.optim, name)([p.requires_grad_()], lr=0.1, **OPTIMISERS[name])
        optimiser.init_state()
        optimiser.param_groups[0]["lr"] = lr
        optimiser.state[p].update(zip(optimiser.state[p], state, strict=True))
        p.grad = grad
        optimiser.step()
        p.grad = None
        p.requires_grad_(False)
        return [p.detach()]

    check(name, f, trained(1, 3), trained(2, 9))


def test_lbfgs_is_steered_by_values():
    """How often it asks for the loss is decided by losses."""
    def f(p):
        optimiser = strata.optim.LBFGS([p.requires_grad_()])

        def loss():
            p.grad = 2 * p.detach()
            return (p.detach() ** 2).sum()

        optimiser.step(loss)
        return [p.detach()]

    with pytest.raises(RuntimeError, match="while operators are recorded"):
        strata._C._record(f, [strata.ones(3)])


def test_indices_are_inputs():
    def f(ids, table):
        table.requires_grad_()
        loss = F.cross_entropy(F.embedding(ids, table).reshape(4, -1), ids.reshape(-1))
        (grad,) = strata.autograd.grad(loss, table)
        table.requires_grad_(False)
        return [loss.detach(), grad]

    (a,), (b,) = values(1, (5, 6)), values(2, (5, 6))
    check("embedding", f, [strata.tensor([[1, 2], [3, 0]]), a], [strata.tensor([[0, 4], [4, 1]]), b])


@pytest.mark.parametrize("rows", [True, False], ids=["rows", "joined"])
def test_lengths_of_ctc_loss_are_inputs(rows):
    def problem(seed, targets, lengths, counts):
        found = strata.tensor(targets) if rows else strata.tensor([v for r, n in zip(targets, counts) for v in r[:n]])
        return [*values(seed, (6, 2, 5)), found, strata.tensor(lengths), strata.tensor(counts)]

    def f(x, targets, lengths, counts):
        x.requires_grad_()
        loss = F.ctc_loss(x.log_softmax(2), targets, lengths, counts, zero_infinity=True)
        slope = strata.autograd.grad(loss, x)
        x.requires_grad_(False)
        return [loss.detach(), *slope]

    first, second = ([[1, 2, 3], [4, 0, 0]], [6, 4], [3, 1]), ([[1, 1, 2], [3, 3, 4]], [2, 6], [2, 2])
    check("ctc_loss", f, problem(1, *first), problem(2, *second))


def test_casts_of_autocast_are_recorded():
    def f(x, w):
        w.requires_grad_()
        y = x @ w
        w.requires_grad_(False)
        return [y.detach()]

    with strata.autocast("cpu", dtype=strata.bfloat16):
        w = strata.ones(4, 4, requires_grad=True)
        assert (strata.ones(4, 4) @ w).dtype == strata.bfloat16  # whose cast is kept
        replayed(f, (4, 4), (4, 4))
        tape, _ = strata._C._record(lambda x: [(x @ w).detach()], [strata.ones(4, 4)])
        assert [t is w for t in strata._C._graph_captured(tape)] == [True]


def test_verdicts_are_checked_anew():
    tape, _ = strata._C._record(lambda a: [strata.linalg.inv(a)], [strata.eye(3)])
    with pytest.raises(RuntimeError, match="linalg.inv: The diagonal element 1 is zero"):
        strata._C._graph_run(tape, [strata.zeros(3, 3)])
    tape, _ = strata._C._record(lambda a, q: [strata.quantile(a, q)], [strata.ones(3), strata.tensor(0.5)])
    with pytest.raises(RuntimeError, match="q values must be in the range"):
        strata._C._graph_run(tape, [strata.ones(3), strata.tensor(2.0)])


def test_aliased_inputs():
    def f(x, y):
        y.mul_(2)
        return [x + 1]

    tape, _ = strata._C._record(f, [(a := strata.arange(4.0)), a[1:3]])
    b = strata.arange(4.0) * 10
    assert strata._C._graph_run(tape, [b, b[1:3]])[0].tolist() == [1, 21, 41, 31]


READING = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "data_ptr": lambda x: x.data_ptr(),
    "storage": lambda x: x.untyped_storage().data_ptr(),
    "dlpack": lambda x: x.__dlpack__(),
    "bool": lambda x: 1 if x.sum() > 0 else 0,
    "int": lambda x: int(x[0]),
    "float": lambda x: float(x[0]),
    "index": lambda x: [0, 1, 2, 3, 4][x.argmax()],
    "equal": lambda x: strata.equal(x, x),
    "allclose": lambda x: strata.allclose(x, x),
    "is_nonzero": lambda x: x[0].is_nonzero(),
    "repr": repr,
    "save": lambda x: strata.save(x, io.BytesIO()),
    "buffer": lambda x: memoryview(x.untyped_storage()).nbytes,
    "linspace": lambda x: strata.linspace(x[0], x[1], 3),
    "in": lambda x: 3 in x,
}
SIZED = {
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "masked_select": lambda x: strata.masked_select(x, x > 0),
    "unique": lambda x: strata.unique(x),
    "where": lambda x: strata.where(x > 0),
    "one_hot": lambda x: F.one_hot(x.argsort()),
    "repeat_interleave": lambda x: strata.repeat_interleave(x, x.argsort()),
    "bincount": lambda x: strata.bincount(x.argsort()),
}
SEEDING = {"manual_seed": lambda x: strata.manual_seed(3), "seed": lambda x: strata.seed(), "data": lambda x: setattr(x, "data", x)}


@pytest.mark.parametrize("name", [*READING, *SIZED, *SEEDING])
def test_what_cannot_be_replayed_raises(name):
    f = (READING | SIZED | SEEDING)[name]
    x = strata.tensor([0.5, -1.0, 2.0, 1.5])

    def recorded(x):
        f(x)
        return [x]

    message = "the size of its result depends" if name in SIZED else "while operators are recorded"
    with pytest.raises((RuntimeError, BufferError), match=message):
        strata._C._record(recorded, [x])
    f(x)
    assert strata._C._record(lambda x: [x + 1], [x])[1][0].tolist() == (x + 1).tolist(), "recording ends with an error"


def test_sizes_that_are_given_are_recorded():
    def f(x):
        i = x.argsort()
        return [F.one_hot(i, 4), strata.repeat_interleave(x, i, output_size=6), x[i], strata.where(x > 0, x, i)]

    replayed(f, (4,))


def test_recordings_do_not_nest():
    x = strata.ones(2)
    with pytest.raises(RuntimeError, match="are recorded on this thread already"):
        strata._C._record(lambda x: strata._C._record(lambda y: [y], [x])[1], [x])


def test_other_geometry_is_refused():
    tape, _ = strata._C._record(lambda x: [x + 1], [strata.ones(2, 3)])
    for bad in (strata.ones(3, 2), strata.ones(3, 2).t(), strata.ones(2, 3, dtype=strata.float64)):
        with pytest.raises(ValueError, match="graph: input 0: expected f32"):
            strata._C._graph_run(tape, [bad])
    with pytest.raises(ValueError, match="expected 1 inputs, got 2"):
        strata._C._graph_run(tape, [strata.ones(2, 3)] * 2)


def test_text():
    tape, _ = strata._C._record(lambda x: [(x * 2).add_(x[0], alpha=3)], [strata.ones(2, 3)])
    lines = [line.split("  #") for line in strata._C._graph_text(tape).splitlines()]
    assert [line[0] for line in lines] == [
        "graph(%0: f32[2, 3]) {",
        "  %1: f32[2, 3] = aten::mul.Scalar(%0, 2)",
        "  %2: f32[3] = aten::select.int(%0, 0, 0)",
        "  %3: f32[2, 3] = aten::add_.Tensor(%1, %2, alpha=3)",
        "  return %1",
        "}",
    ]
    assert all("test_record.py:" in line[1] and "in <lambda>" in line[1] for line in lines[1:4])
