"""Operators that read and write at places which a tensor names, where threads divide them: NumPy's values, on one thread and two."""

from __future__ import annotations

import numpy as np
import pytest
import strata

# Few long lines, many short ones, and what lies between; the launches divide each in another way.
SHAPES = [(rows, n) for rows in (2, 4, 8, 15, 64, 700) for n in (60, 1000, 4096, 5000, 8192, 16384, 32768) if 8000 < rows * n < 300_000]
DTYPES = [strata.uint8, strata.int16, strata.float32, strata.int64]


def added(x: np.ndarray, i: np.ndarray) -> np.ndarray:
    out = x.copy()
    np.add.at(out, i, x[::-1])
    return out


OPERATORS = {
    "index_select": (lambda x, i: x.index_select(0, i), lambda x, i: x[i]),
    "index_select of columns": (lambda x, i: x.t().index_select(1, i), lambda x, i: x[i].T),
    "x[i]": (lambda x, i: x[i], lambda x, i: x[i]),
    "embedding": (lambda x, i: strata.nn.functional.embedding(i, x), lambda x, i: x[i]),
    "gather": (lambda x, i: x.gather(0, i[:, None].expand(-1, x.shape[1])), lambda x, i: x[i]),
    "take_along_dim": (lambda x, i: x.take_along_dim(i[:, None], 0), lambda x, i: x[i]),
    "index_copy": (lambda x, i: strata.zeros_like(x).index_copy(0, i, x), lambda x, i: x[np.argsort(i)]),
    "index_add": (lambda x, i: x.index_add(0, i, x.flip(0)), added),
    "x[i] = y": (lambda x, i: strata.zeros_like(x).index_put_((i,), x), lambda x, i: x[np.argsort(i)]),
    "scatter": (lambda x, i: strata.zeros_like(x).scatter(0, i[:, None].expand(-1, x.shape[1]), x), lambda x, i: x[np.argsort(i)]),
}


@pytest.fixture(params=[1, 2])
def threads(request):
    before = strata.get_num_threads()
    strata.set_num_threads(request.param)
    yield request.param
    strata.set_num_threads(before)


@pytest.mark.parametrize("name", OPERATORS)
def test_lines_by_their_places(name, threads):
    ours, theirs = OPERATORS[name]
    rng = np.random.default_rng(0)
    for rows, n in SHAPES:
        order = rng.permutation(rows)
        for dtype in DTYPES:
            x = (strata.arange(rows * n) * 7 % 113 + 1).to(dtype).reshape(rows, n)
            found = ours(x, strata.tensor(order))
            assert np.array_equal(found.numpy(), theirs(x.numpy(), order)), (rows, n, dtype)
