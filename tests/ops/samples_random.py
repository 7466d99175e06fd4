"""Samples of random operators whose values are certain: no elements, or a range of one value. test_random.py checks
the distributions, which no recording could."""

from __future__ import annotations

import numpy as np
from kit import D, T, call, sample


def generator(m):
    return {"generator": None} if m.op.endswith("generator") else {}


@sample("random_create")
def random_create(m):
    yield call([0, 3], dtype=D(m.dtype), **generator(m))
    yield call([2, -1], dtype=D(m.dtype), **generator(m))


@sample("random_like")
def random_like(m):
    yield call(m.tensor(0, 3), **generator(m))
    yield call(m.tensor(0, 3), dtype=D("float64"), **generator(m))


@sample("random_integers")
def random_integers(m):
    yield call(1, [2, 3], dtype=D(m.dtype), **generator(m))
    yield call(0, [2, 3], dtype=D(m.dtype), **generator(m))


@sample("random_integers_low")
def random_integers_low(m):
    yield call(1, 2, [2, 3], dtype=D(m.dtype), **generator(m))
    yield call(3, 2, [2], dtype=D(m.dtype), **generator(m))


@sample("random_integers_like")
def random_integers_like(m):
    bounds = (1, 2) if m.op.endswith("low_dtype") else (1,)
    yield call(m.tensor(2, 3), *bounds)
    yield call(m.tensor(0, 3), *bounds, dtype=D("int32"))
    yield call(m.tensor(2), *((2, 2) if len(bounds) == 2 else (0,)))


@sample("random_permutation")
def random_permutation(m):
    yield call(1, dtype=D(m.dtype), **generator(m))
    yield call(0, dtype=D(m.dtype), **generator(m))
    yield call(-1, **generator(m))


@sample("random_in_place")
def random_in_place(m):
    name = m.op.removeprefix("aten::")
    if name == "bernoulli_.Tensor":
        yield call(m.tensor(2, 3), m.tensor(2, 3, low=1, high=2, dtype="int32"))
        yield call(m.tensor(2, 3), m.tensor(3, low=2, high=3, dtype="float32"))
        yield call(m.tensor(2, 3), T(np.asarray([0, 1, 1], np.float32), "float32"))
        return
    certain = {"uniform_": [(), (2.0, 2.0)], "normal_": [(), (1.0, 0.0)], "bernoulli_.float": [(0.0,), (1.0,)],
               "random_.to": [(1,)], "random_.from": [(1, 2)], "geometric_": [(0.5,)]}.get(name, [()])
    for args in certain:
        yield call(m.tensor(0, 3), *args)
    if len(certain) > 1:
        yield call(m.tensor(2, 3), *certain[1])
    if name.startswith("random_."):
        yield call(m.tensor(2, 3), *certain[0])
    wrong = {"uniform_": (2.0, 1.0), "normal_": (0.0, -1.0), "log_normal_": (0.0, -1.0), "exponential_": (-1.0,),
             "cauchy_": (0.0, -1.0), "geometric_": (1.5,), "random_.to": (0,), "random_.from": (2, 1),
             "bernoulli_.float": (1.5,)}.get(name)
    if wrong:
        yield call(m.tensor(2), *wrong)


@sample("random_rates")
def random_rates(m):
    yield call(m.tensor(0, 3))
    yield call(m.tensor(2, 3, low=0, high=0))
    yield call(m.tensor(2, 3, low=-3, high=-2))


@sample("random_trials")
def random_trials(m):
    yield call(m.tensor(0, 3), m.tensor(1, 3))
    yield call(m.tensor(2, 3, low=2, high=9), m.tensor(3, low=0, high=0))
    if m.is_float:
        wide = np.float64 if m.dtype == "float64" else np.float32
        yield call(T(np.array([[0.0], [7.0], [90.0]], wide), m.dtype), m.tensor(2, low=1, high=1))


@sample("random_probabilities")
def random_probabilities(m):
    yield call(m.tensor(0, 3))
    if m.is_float:
        yield call(m.tensor(2, 3, low=0, high=0))
        yield call(m.tensor(2, 3, low=1, high=1))
        yield call(m.tensor(2, 3, low=2, high=3))


@sample("random_probability")
def random_probability(m):
    yield call(m.tensor(2, 3), 0.0)
    yield call(m.tensor(2, 3), 1.0)
    yield call(m.tensor(2, 3), 1.5)


@sample("random_choice")
def random_choice(m):
    yield call(m.tensor(1, low=1, high=2), 1)
    yield call(m.tensor(2, 1, low=1, high=2), 3, True)
    yield call(m.tensor(3, low=1, high=2), 4)
    yield call(m.tensor(2, 2, 2, low=1, high=2), 1)
    yield call(m.tensor(3, low=1, high=2), 0)


@sample("random_normal")
def random_normal(m):
    name = m.op.removeprefix("aten::")
    if name == "normal.float_float":
        yield call(1.5, 0.0, [2, 3], dtype=D(m.dtype))
        yield call(1.5, -1.0, [2, 3], dtype=D(m.dtype))
    elif name == "normal.Tensor_float":
        yield call(m.tensor(2, 3), 0.0)
        yield call(m.tensor(2, 3), -1.0)
    elif name == "normal.float_Tensor":
        yield call(1.5, m.tensor(2, 3, low=0, high=0))
    else:
        yield call(m.tensor(2, 3), m.tensor(3, low=0, high=0))


@sample("generator_state")
def generator_state(m):
    yield call()


@sample("set_generator_state")
def set_generator_state(m):
    yield call(T(np.arange(16, dtype=np.uint8), "uint8"))
    yield call(m.tensor(3))
