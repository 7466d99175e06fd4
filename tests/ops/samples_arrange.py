"""Samples of the same elements in another order: reversals, triangles, diagonals, repeats, blocks."""

from __future__ import annotations

from kit import call, sample


@sample("flip")
def flip(m):
    yield call(m.tensor(2, 3), [0])
    yield call(m.tensor(2, 3, 4), [-1, 0])
    yield call(m.tensor(3, 0), [1])
    yield call(m.tensor(2, 3), [])
    yield call(m.tensor(), [])
    yield call(m.tensor(2, 3), [0, 0])
    yield call(m.tensor(2, 3), [2])


@sample("flip_fixed")
def flip_fixed(m):
    yield call(m.tensor(2, 3))
    yield call(m.tensor(2, 3, 4))
    yield call(m.tensor(3))
    yield call(m.tensor())


@sample("roll")
def roll(m):
    yield call(m.tensor(2, 3), [1], [0])
    yield call(m.tensor(2, 3, 4), [-1, 5], [2, 0])
    yield call(m.tensor(2, 3), [4])
    yield call(m.tensor(0, 3), [1], [0])
    yield call(m.tensor(5), [-7], [-1])
    yield call(m.tensor(2, 3), [1, 2], [0])
    yield call(m.tensor(2, 3), [1], [2])


@sample("rot90")
def rot90(m):
    for k in (1, -1, 2, 4, 0):
        yield call(m.tensor(2, 3), k, [0, 1])
    yield call(m.tensor(2, 3, 4), 1, [2, -3])
    yield call(m.tensor(2, 3), 1, [0, 0])
    yield call(m.tensor(3), 1, [0, 1])


@sample("triangle")
def triangle(m):
    yield call(m.tensor(3, 4))
    yield call(m.tensor(4, 3), 1)
    yield call(m.tensor(2, 3, 3), -1)
    yield call(m.tensor(3, 3), 5)
    yield call(m.tensor(0, 3))
    yield call(m.tensor(3))


@sample("triangle_indices")
def triangle_indices(m):
    yield call(3, 4)
    yield call(4, 3, 1)
    yield call(4, 3, -2)
    yield call(0, 3)
    yield call(-1, 3)


@sample("diagonal")
def diagonal(m):
    yield call(m.tensor(3, 4))
    yield call(m.tensor(3, 4), 1)
    yield call(m.tensor(2, 3, 4), -1, 2, 0)
    yield call(m.tensor(3, 4), 7)
    yield call(m.tensor(3, 4), 0, 0, 0)
    yield call(m.tensor(3))


@sample("diagonal_scatter")
def diagonal_scatter(m):
    yield call(m.tensor(3, 4), m.tensor(3))
    yield call(m.tensor(3, 4), m.tensor(2), -1)
    yield call(m.tensor(2, 3, 4), m.tensor(3, 2), 1, 0, 2)
    yield call(m.tensor(3, 4), m.tensor(4))


@sample("diag_embed")
def diag_embed(m):
    yield call(m.tensor(3))
    yield call(m.tensor(2, 3), 1)
    yield call(m.tensor(2, 3), -1, 0, 2)
    yield call(m.tensor(2, 3), 0, 1, 1)


@sample("diag")
def diag(m):
    yield call(m.tensor(3))
    yield call(m.tensor(3), -1)
    yield call(m.tensor(3, 4), 1)
    yield call(m.tensor(2, 3, 4))
    yield call(m.tensor())


@sample("trace")
def trace(m):
    yield call(m.tensor(3, 4))
    yield call(m.tensor(4, 4))
    yield call(m.tensor(0, 3))
    yield call(m.tensor(3))


@sample("repeat_positions")
def repeat_positions(m):
    yield call(m.integers(4, high=3))
    yield call(m.integers(0))
    yield call(m.integers(2, 2))
    yield call(m.tensor(3, dtype="float32"))


@sample("repeat_interleave")
def repeat_interleave(m):
    if m.op.endswith("int"):
        yield call(m.tensor(2, 3), 2)
        yield call(m.tensor(2, 3), 2, 1)
        yield call(m.tensor(), 3)
        yield call(m.tensor(2, 3), 0, -1)
        yield call(m.tensor(2, 3), -1)
        yield call(m.tensor(2, 3), 2, 2)
    else:
        yield call(m.tensor(2, 3), m.integers(3, high=4), 1)
        yield call(m.tensor(2, 3), m.integers(6, high=3))
        yield call(m.tensor(4, 2), m.integers(1, low=2, high=3), 0)
        yield call(m.tensor(2, 3), m.integers(2), 1)
        yield call(m.tensor(2, 3), m.tensor(3, dtype="float32"), 1)


@sample("one_hot")
def one_hot(m):
    yield call(m.tensor(3, low=0))
    yield call(m.tensor(2, 3, low=0), 5)
    yield call(m.tensor(low=0), 4)
    yield call(m.integers(3, low=3, high=6), 3)
    yield call(m.integers(3, low=-3, high=0))
    yield call(m.integers(0), 3)
    yield call(m.integers(0))


@sample("pixel_shuffle")
def pixel_shuffle(m):
    yield call(m.tensor(4, 1, 2), 2)
    yield call(m.tensor(2, 9, 2, 1), 3)
    yield call(m.tensor(2, 3, 2), 1)
    yield call(m.tensor(3, 2, 2), 2)
    yield call(m.tensor(4, 2), 2)
    yield call(m.tensor(4, 2, 2), 0)


@sample("pixel_unshuffle")
def pixel_unshuffle(m):
    yield call(m.tensor(1, 4, 2), 2)
    yield call(m.tensor(2, 1, 3, 6), 3)
    yield call(m.tensor(1, 3, 4), 2)
    yield call(m.tensor(4, 2), 2)
    yield call(m.tensor(4, 2, 2), 0)


@sample("im2col")
def im2col(m):
    yield call(m.tensor(1, 2, 3, 4), [2, 2], [1, 1], [0, 0], [1, 1])
    yield call(m.tensor(2, 4, 5), [2, 3], [2, 1], [1, 0], [2, 2])
    yield call(m.tensor(0, 2, 3, 4), [2, 2], [1, 1], [0, 0], [1, 1])
    yield call(m.tensor(1, 2, 3, 4), [4, 2], [1, 1], [0, 0], [1, 1])
    yield call(m.tensor(1, 2, 3, 4), [2, 2], [1, 1], [0, 0], [0, 1])
    yield call(m.tensor(3, 4), [2, 2], [1, 1], [0, 0], [1, 1])


@sample("col2im")
def col2im(m):
    yield call(m.tensor(1, 8, 6), [3, 4], [2, 2], [1, 1], [0, 0], [1, 1])
    yield call(m.tensor(6, 4), [4, 5], [2, 3], [2, 1], [1, 0], [2, 2])
    yield call(m.tensor(1, 8, 5), [3, 4], [2, 2], [1, 1], [0, 0], [1, 1])
    yield call(m.tensor(1, 7, 6), [3, 4], [2, 2], [1, 1], [0, 0], [1, 1])
