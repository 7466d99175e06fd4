"""Samples of optimiser steps and of operators on lists of tensors, which write their arguments."""

from __future__ import annotations

import numpy as np
from kit import T, call, sample


def lists(m, count=2, **how):
    return [m.tensor(3, 4, **how), m.tensor(5, **how)][:count]


def single(value):
    """Of 0 dims; test_halves.py takes those in half precision, too."""
    return T(np.asarray(value, np.float32), "float32")


def steps(value):
    return [single(value) for _ in range(2)]


def rate(m, value):
    return single(value) if m.op.endswith("tensor_lr") else value


@sample("fused_adam")
def fused_adam(m):
    for amsgrad, maximize in ((False, False), (True, True)):
        yield call(lists(m), lists(m), lists(m), lists(m, low=0.1, high=1), lists(m, low=0.1, high=1) if amsgrad else [],
                   steps(3.0), lr=rate(m, 0.125), beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8, amsgrad=amsgrad,
                   maximize=maximize)


@sample("fused_sgd")
def fused_sgd(m):
    common = {"lr": rate(m, 0.125), "weight_decay": 0.1}
    yield call(lists(m), lists(m), [], momentum=0.0, dampening=0.0, nesterov=False, maximize=False, is_first_step=True, **common)
    yield call(lists(m), lists(m), lists(m), momentum=0.9, dampening=0.0, nesterov=True, maximize=False, is_first_step=False,
               **common)
    yield call(lists(m), lists(m), lists(m), momentum=0.9, dampening=0.2, nesterov=False, maximize=True, is_first_step=False,
               **common)


@sample("fused_rmsprop")
def fused_rmsprop(m):
    for centered, momentum in ((False, 0.0), (True, 0.9)):
        yield call(lists(m), lists(m), lists(m, low=1, high=2), lists(m, low=-0.5, high=0.5) if centered else [],
                   lists(m) if momentum else [], steps(2.0), lr=single(0.01), alpha=0.9, eps=1e-8, weight_decay=0.1,
                   momentum=momentum, centered=centered, maximize=centered)


@sample("fused_adagrad")
def fused_adagrad(m):
    for maximize in (False, True):
        yield call(lists(m), lists(m), lists(m, low=0.1, high=1), steps(3.0), lr=rate(m, 0.125), lr_decay=0.2, weight_decay=0.1,
                   eps=1e-8, maximize=maximize)


@sample("fused_adadelta")
def fused_adadelta(m):
    for maximize in (False, True):
        yield call(lists(m), lists(m), lists(m, low=0.1, high=1), lists(m, low=0.1, high=1), steps(3.0), lr=single(0.5), rho=0.9,
                   eps=1e-6, weight_decay=0.1, maximize=maximize)


@sample("fused_adamax")
def fused_adamax(m):
    for maximize in (False, True):
        yield call(lists(m), lists(m), lists(m), lists(m, low=0.1, high=1), steps(3.0), lr=single(0.125), beta1=0.9, beta2=0.99,
                   weight_decay=0.1, eps=1e-8, maximize=maximize)


@sample("fused_nadam")
def fused_nadam(m):
    for decoupled in (False, True):
        yield call(lists(m), lists(m), steps(0.5), lists(m), lists(m, low=0.1, high=1), steps(3.0), lr=single(0.125), beta1=0.9,
                   beta2=0.99, weight_decay=0.1, eps=1e-8, momentum_decay=0.004, decoupled_weight_decay=decoupled,
                   maximize=decoupled)


@sample("fused_radam")
def fused_radam(m):
    # The rectification begins at step 6.
    for step in (3.0, 8.0):
        yield call(lists(m), lists(m), lists(m), lists(m, low=0.1, high=1), steps(step), lr=single(0.125), beta1=0.9, beta2=0.99,
                   weight_decay=0.1, eps=1e-8, decoupled_weight_decay=step > 5, maximize=step > 5)


@sample("fused_asgd")
def fused_asgd(m):
    for step, mu in ((3.0, 1.0), (12.0, 0.5)):
        yield call(lists(m), lists(m), lists(m), steps(0.125), steps(mu), steps(step), lr=single(0.125), lambd=0.01, alpha=0.75, t0=10.0,
                   weight_decay=0.1, maximize=mu < 1)


@sample("fused_rprop")
def fused_rprop(m):
    for maximize in (False, True):
        yield call(lists(m), lists(m), lists(m), lists(m, low=0.01, high=0.1), steps(3.0), shrink=0.5, grow=1.25, least=0.02,
                   largest=0.1, maximize=maximize)


@sample("fused_adafactor")
def fused_adafactor(m):
    common = {"lr": single(0.125), "beta2_decay": -0.8, "eps1": 1e-3, "eps2": 1e-3, "weight_decay": 0.1}
    yield call(lists(m), lists(m), lists(m, low=0.1, high=1), [], steps(3.0), threshold=1.0, maximize=False, **common)
    yield call([m.tensor(3, 4)], [m.tensor(3, 4)], [m.tensor(3, 1, low=0.1, high=1)], [m.tensor(1, 4, low=0.1, high=1)], steps(3.0)[:1],
               threshold=1.5, maximize=True, **common)


@sample("fused_muon")
def fused_muon(m):
    for nesterov in (False, True):
        yield call([m.tensor(3, 4)], [m.tensor(3, 4)], [m.tensor(3, 4)], lr=single(0.125), weight_decay=0.1, momentum=0.9,
                   nesterov=nesterov, ns_coefficients=[3.4445, -4.775, 2.0315], eps=1e-7, ns_steps=5, match_rms=nesterov)


@sample("foreach_scalar")
def foreach_scalar(m):
    yield call(lists(m), m.number())
    yield call(lists(m), 2)
    yield call(lists(m), 1.5)


@sample("foreach_list")
def foreach_list(m):
    yield call(lists(m), lists(m))
    yield call(lists(m), lists(m), alpha=2)
    yield call(lists(m), lists(m, 1))


@sample("foreach_tensor")
def foreach_tensor(m):
    yield call(lists(m), m.tensor())


@sample("amp_unscale")
def amp_unscale(m):
    scale = T(np.asarray(0.5, np.float32), "float32")
    found = T(np.asarray([0.0], np.float32), "float32")
    yield call(lists(m), found, scale)
    if m.is_float:
        yield call([*lists(m), T(np.array([1.0, np.inf], np.float32), m.dtype)], found, scale)
        yield call([T(np.array([1.0, np.nan], np.float32), m.dtype)], found, scale)


@sample("amp_update_scale")
def amp_update_scale(m):
    for tracker, found in ((0, 0.0), (2, 0.0), (1, 1.0)):
        yield call(T(np.asarray([4.0], np.float32), "float32"), T(np.asarray([tracker], np.int32), "int32"),
                   T(np.asarray([found], np.float32), "float32"), 2.0, 0.5, 3)
