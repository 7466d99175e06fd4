"""Samples of matrix products."""

from __future__ import annotations

from kit import call, sample

DIFFERENT = {"float32": "float64"}  # a second dtype, where mixing two is to be refused


def other(m) -> str:
    return DIFFERENT.get(m.dtype, "float32")


@sample("mm")
def mm(m):
    yield call(m.tensor(3, 4), m.tensor(4, 2))
    yield call(m.tensor(1, 5), m.tensor(5, 1))
    yield call(m.tensor(3, 0), m.tensor(0, 2))
    yield call(m.tensor(0, 3), m.tensor(3, 2))
    yield call(m.tensor(3, 4), m.tensor(3, 2))
    yield call(m.tensor(3, 4), m.tensor(4))
    yield call(m.tensor(3, 4), m.tensor(4, 2, dtype=other(m)))


@sample("bmm")
def bmm(m):
    yield call(m.tensor(2, 3, 4), m.tensor(2, 4, 2))
    yield call(m.tensor(2, 3, 0), m.tensor(2, 0, 2))
    yield call(m.tensor(0, 3, 4), m.tensor(0, 4, 2))
    yield call(m.tensor(2, 3, 4), m.tensor(3, 4, 2))
    yield call(m.tensor(3, 4), m.tensor(4, 2))


def factors(m) -> dict:
    return {"beta": m.number(), "alpha": m.number()}


@sample("addmm")
def addmm(m):
    yield call(m.tensor(3, 2), m.tensor(3, 4), m.tensor(4, 2))
    yield call(m.tensor(2), m.tensor(3, 4), m.tensor(4, 2))
    yield call(m.tensor(2), m.tensor(3, 0), m.tensor(0, 2))
    yield call(m.tensor(3, 1), m.tensor(3, 4), m.tensor(4, 2), **factors(m))
    yield call(m.tensor(3, 2), m.tensor(3, 4), m.tensor(4, 2), beta=0)
    yield call(m.tensor(4, 2), m.tensor(3, 4), m.tensor(4, 2))
    yield call(m.tensor(3, 2), m.tensor(3, 4), m.tensor(3, 2))


@sample("baddbmm")
def baddbmm(m):
    yield call(m.tensor(2, 3, 2), m.tensor(2, 3, 4), m.tensor(2, 4, 2))
    yield call(m.tensor(2), m.tensor(2, 3, 4), m.tensor(2, 4, 2), **factors(m))
    yield call(m.tensor(2, 3, 2), m.tensor(2, 3, 4), m.tensor(2, 4, 2), beta=0)
    yield call(m.tensor(3, 2), m.tensor(3, 4), m.tensor(4, 2))
    yield call(m.tensor(2, 3, 2), m.tensor(2, 3, 4), m.tensor(1, 4, 2))


@sample("addbmm")
def addbmm(m):
    if m.dtype in ("bfloat16", "float16"):
        return  # PyTorch rounds after every product of the batch
    yield call(m.tensor(3, 2), m.tensor(2, 3, 4), m.tensor(2, 4, 2))
    yield call(m.tensor(2), m.tensor(2, 3, 4), m.tensor(2, 4, 2), **factors(m))
    yield call(m.tensor(3, 2), m.tensor(3, 4), m.tensor(4, 2))


@sample("mv")
def mv(m):
    yield call(m.tensor(3, 4), m.tensor(4))
    yield call(m.tensor(3, 0), m.tensor(0))
    yield call(m.tensor(3, 4), m.tensor(3))
    yield call(m.tensor(3), m.tensor(3))


@sample("addmv")
def addmv(m):
    yield call(m.tensor(3), m.tensor(3, 4), m.tensor(4))
    yield call(m.tensor(1), m.tensor(3, 4), m.tensor(4), **factors(m))
    yield call(m.tensor(), m.tensor(3, 4), m.tensor(4))
    yield call(m.tensor(4), m.tensor(3, 4), m.tensor(4))


@sample("dot")
def dot(m):
    yield call(m.tensor(5), m.tensor(5))
    yield call(m.tensor(0), m.tensor(0))
    yield call(m.tensor(5), m.tensor(4))
    yield call(m.tensor(5, 1), m.tensor(5))
    yield call(m.tensor(5), m.tensor(5, dtype=other(m)))


@sample("outer")
def outer(m):
    yield call(m.tensor(3), m.tensor(4))
    yield call(m.tensor(0), m.tensor(4))
    yield call(m.tensor(3, 1), m.tensor(4))


@sample("addr")
def addr(m):
    yield call(m.tensor(3, 4), m.tensor(3), m.tensor(4))
    yield call(m.tensor(4), m.tensor(3), m.tensor(4), **factors(m))
    yield call(m.tensor(3, 4), m.tensor(3), m.tensor(4), beta=0)
    yield call(m.tensor(3, 4), m.tensor(4), m.tensor(3))
    yield call(m.tensor(3, 4), m.tensor(3, 1), m.tensor(4))


@sample("matmul")
def matmul(m):
    shapes = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 2, 3), (3,)),
              ((3,), (2, 3, 2)), ((2, 3), (2, 3, 2)), ((2, 1, 2, 3), (2, 3, 2)), ((0, 2, 3), (3, 2)), ((2, 0), (0, 2)),
              ((2, 3), (2, 2)), ((), (3,)), ((2, 2, 3), (3, 3, 2))]  # fmt: skip
    for a, b in shapes:
        yield call(m.tensor(*a), m.tensor(*b))


@sample("inner")
def inner(m):
    yield call(m.tensor(2, 3), m.tensor(4, 3))
    yield call(m.tensor(3), m.tensor(2, 2, 3))
    yield call(m.tensor(), m.tensor(3))
    yield call(m.tensor(2, 3), m.tensor(2))


@sample("linear")
def linear(m):
    yield call(m.tensor(2, 3), m.tensor(4, 3))
    yield call(m.tensor(2, 3), m.tensor(4, 3), m.tensor(4))
    yield call(m.tensor(2, 2, 3), m.tensor(4, 3), m.tensor(4))
    yield call(m.tensor(3), m.tensor(4, 3), m.tensor(4))
    yield call(m.tensor(2, 3), m.tensor(3))
    yield call(m.tensor(0, 3), m.tensor(4, 3), m.tensor(4))
    yield call(m.tensor(2, 3), m.tensor(4, 2))


@sample("bilinear")
def bilinear(m):
    if m.dtype in ("bfloat16", "float16"):
        return  # two products, between which PyTorch rounds otherwise
    yield call(m.tensor(2, 3), m.tensor(2, 2), m.tensor(4, 3, 2), m.tensor(4))
    yield call(m.tensor(3), m.tensor(2), m.tensor(1, 3, 2))
    yield call(m.tensor(2, 3), m.tensor(3, 2), m.tensor(4, 3, 2))


@sample("einsum")
def einsum(m):
    for equation, *shapes in [
        ("ij,jk->ik", (2, 3), (3, 2)), ("ij->ji", (2, 3)), ("ii->i", (3, 3)), ("ij->", (2, 3)), ("i,j", (2,), (3,)),
        ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)), ("...ij,...jk", (2, 2, 3), (3, 2)), ("ij,ik,il->jkl", (2, 2), (2, 2), (2, 2)),
        ("ij,jk->ik", (2, 3), (2, 2)), ("ij->kk", (2, 2)), ("ijk->ij", (2, 3)),
    ]:  # fmt: skip
        if m.dtype in ("bfloat16", "float16") and len(shapes) > 2:
            continue  # rounded between the products
        yield call(equation, [m.tensor(*s) for s in shapes])


@sample("tensordot")
def tensordot(m):
    yield call(m.tensor(2, 3, 4), m.tensor(3, 4, 2), [1, 2], [0, 1])
    yield call(m.tensor(2, 3), m.tensor(4, 2), [0], [1])
    yield call(m.tensor(2, 3), m.tensor(4), [], [])
    yield call(m.tensor(2, 3), m.tensor(4, 2), [1], [1])
    yield call(m.tensor(2, 3), m.tensor(4, 2), [0], [1, 0])


@sample("kron")
def kron(m):
    yield call(m.tensor(2, 3), m.tensor(2, 2))
    yield call(m.tensor(2), m.tensor(2, 2))
    yield call(m.tensor(), m.tensor(2, 2))


@sample("chain_matmul")
def chain_matmul(m):
    if m.dtype in ("bfloat16", "float16"):
        return  # rounded between the products, in an order of their own
    yield call([m.tensor(2, 3), m.tensor(3, 4), m.tensor(4, 1)])
    yield call([m.tensor(2, 3), m.tensor(3, 4)])
    yield call([m.tensor(2, 3), m.tensor(4, 4)])
