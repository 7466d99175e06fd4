"""Samples of optimiser steps and of operators on lists of tensors, which write their arguments."""

from __future__ import annotations

import numpy as np
from kit import T, call, sample


def lists(m, count=2, **how):
    return [m.tensor(3, 4, **how), m.tensor(5, **how)][:count]


def steps(value):
    return [T(np.asarray(value, np.float32), "float32") for _ in range(2)]


def rate(m, value):
    return T(np.asarray(value, np.float32), "float32") if m.op.endswith("tensor_lr") else value


@sample("fused_adam")
def fused_adam(m):
    for amsgrad, maximize in ((False, False), (True, True)):
        yield call(lists(m), lists(m), lists(m), lists(m, low=0.1, high=1), lists(m, low=0.1, high=1) if amsgrad else [],
                   steps(3.0), lr=rate(m, 0.1), beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8, amsgrad=amsgrad,
                   maximize=maximize)


@sample("fused_sgd")
def fused_sgd(m):
    common = {"lr": rate(m, 0.1), "weight_decay": 0.1}
    yield call(lists(m), lists(m), [], momentum=0.0, dampening=0.0, nesterov=False, maximize=False, is_first_step=True, **common)
    yield call(lists(m), lists(m), lists(m), momentum=0.9, dampening=0.0, nesterov=True, maximize=False, is_first_step=False,
               **common)
    yield call(lists(m), lists(m), lists(m), momentum=0.9, dampening=0.2, nesterov=False, maximize=True, is_first_step=False,
               **common)


@sample("fused_rmsprop")
def fused_rmsprop(m):
    for centered, momentum in ((False, 0.0), (True, 0.9)):
        yield call(lists(m), lists(m), lists(m, low=1, high=2), lists(m, low=-0.5, high=0.5) if centered else [],
                   lists(m) if momentum else [], steps(2.0), lr=rate(m, 0.01), alpha=0.9, eps=1e-8, weight_decay=0.1,
                   momentum=momentum, centered=centered, maximize=centered)


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
