"""Optimisers and schedules with their settings, free of any framework; see tests/python/nn/nn_cases.py."""

from __future__ import annotations

import math

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True, "weight_decay": 0.01}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "betas": (0.8, 0.9), "eps": 1e-3, "maximize": True, "lr": 0.1}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"centered": True, "alpha": 0.8, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5, "eps": 1e-3}),
    ("Adadelta", {}),
    ("Adadelta", {"rho": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"betas": (0.5, 0.6), "weight_decay": 0.1}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.1}),
    ("RAdam", {"lr": 0.1}),
    ("RAdam", {"lr": 0.1, "betas": (0.5, 0.6), "weight_decay": 0.1}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.01, "t0": 2, "weight_decay": 0.1}),
    ("Rprop", {"lr": 0.1}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 2.0), "step_sizes": (0.05, 0.15), "maximize": True}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.1, "weight_decay": 0.1, "d": 1.5, "eps": (1e-4, 1e-2), "beta2_decay": -0.5}),
]


# Losses over the steps of a curved valley; LBFGS evaluates more often than it steps.
LBFGS = [
    {"lr": 0.5, "max_iter": 4},
    {"max_iter": 10, "history_size": 3, "line_search_fn": "strong_wolfe"},
    {"max_iter": 20, "max_eval": 7, "line_search_fn": "strong_wolfe"},
]


def wave(t, *shape, phase=0.0):
    return (t.arange(math.prod(shape), dtype=t.float32) * 0.7 + phase).sin().reshape(shape)


def parameters(t):
    return [wave(t, 3).requires_grad_(), wave(t, 2, 2, phase=1.0).requires_grad_()]


def train(t, optimizer, params, steps, first=0):
    """Steps with gradients that depend on the parameters; the second has none at the first two steps."""
    for i in range(first, first + steps):
        for j, parameter in enumerate(params):
            late = i < 2 and j == 1
            gradient = parameter.detach() * 0.5 + wave(t, *parameter.shape, phase=i + 2.0 * j)
            parameter.grad = None if late else gradient
        optimizer.step()
        yield [value for parameter in params for value in parameter.detach().reshape(-1).tolist()]


def run_optimizer(t, optim, name, options, make=lambda optimizer: None):
    """(parameters after 5 steps each, text) with two groups; `make` may prepare the optimiser."""
    params = parameters(t)
    groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.05}]
    optimizer = getattr(optim, name)(groups, **options)
    make(optimizer)
    values = list(train(t, optimizer, params, 5))
    return {"values": [[float(f"{v:.7g}") for v in row] for row in values], "repr": repr(optimizer)}


def run_lbfgs(t, optim, options):
    """(losses of 6 steps, calls of the closure) on Rosenbrock's function."""
    x, y = (t.tensor([value], dtype=t.float64, requires_grad=True) for value in (-1.2, 1.0))
    optimizer = optim.LBFGS([x, y], **options)
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = ((1 - x) ** 2 + 100 * (y - x**2) ** 2).sum()
        loss.backward()
        return loss

    for _ in range(6):
        losses.append(float(f"{float(optimizer.step(closure).detach()):.9g}"))
    return {"values": losses, "calls": optimizer.state[x]["func_evals"]}


def run_muon(t, optim, options):
    """A matrix after 3 steps: its Newton-Schulz steps round to bfloat16, so two digits count."""
    p = wave(t, 3, 5).requires_grad_()
    optimizer = optim.Muon([p], lr=0.1, **options)
    for i in range(3):
        p.grad = wave(t, 3, 5, phase=i)
        optimizer.step()
    return [float(f"{v:.4g}") for v in p.detach().reshape(-1).tolist()]


SCHEDULES = {
    "lambda": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]),
    "multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.95),
    "step": lambda s, o: s.StepLR(o, 4, 0.5),
    "multistep": lambda s, o: s.MultiStepLR(o, [3, 3, 8], 0.5),
    "constant": lambda s, o: s.ConstantLR(o, 0.3, 6),
    "linear": lambda s, o: s.LinearLR(o, 0.2, 0.9, 7),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.9),
    "polynomial": lambda s, o: s.PolynomialLR(o, 10, 1.7),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 7, 0.01),
    "warm_restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "one_cycle": lambda s, o: s.OneCycleLR(o, 1.0, total_steps=40),
    "one_cycle_3": lambda s, o: s.OneCycleLR(
        o, [1.0, 0.5], epochs=4, steps_per_epoch=10, three_phase=True, anneal_strategy="linear"
    ),
    "cyclic": lambda s, o: s.CyclicLR(o, 0.1, 1.0, 5, 3),
    "cyclic_halving": lambda s, o: s.CyclicLR(o, 0.1, 1.0, 5, mode="triangular2"),
    "cyclic_exp": lambda s, o: s.CyclicLR(o, 0.1, 1.0, 5, mode="exp_range", gamma=0.97, cycle_momentum=False),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9), s.StepLR(o, 2, 0.5)], [5, 12]
    ),
    "warm_up": lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 5), s.CosineAnnealingLR(o, 20)], [5]),
    "chained": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]),
}


def plain_optimizer(t, optim):
    params = [t.zeros(2, requires_grad=True), t.zeros(1, requires_grad=True)]
    return optim.SGD([{"params": [params[0]]}, {"params": [params[1]], "lr": 0.3}], lr=0.5, momentum=0.9)


def run_schedule(t, optim, name):
    """30 rows of the two groups' rates and momenta."""
    optimizer = plain_optimizer(t, optim)
    schedule = SCHEDULES[name](optim.lr_scheduler, optimizer)
    rows = []
    for _ in range(30):
        rows.append([float(f"{group[key]:.12g}") for group in optimizer.param_groups for key in ("lr", "momentum")])
        optimizer.step()
        schedule.step()
    return rows


PLATEAUS = [
    {},
    {"mode": "max", "patience": 1, "factor": 0.5},
    {"patience": 2, "cooldown": 2, "threshold_mode": "abs", "threshold": 0.1, "min_lr": [0.01, 0.02]},
    {"mode": "max", "threshold_mode": "abs", "patience": 0},
]


def run_plateau(t, optim, options):
    """30 rates of the first group while the metric swings."""
    optimizer = plain_optimizer(t, optim)
    schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    rates = []
    for epoch in range(30):
        schedule.step(math.sin(epoch * 0.7) + 1 / (epoch + 1))
        rates.append(float(f"{optimizer.param_groups[0]['lr']:.12g}"))
    return rates
