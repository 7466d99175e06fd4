"""Rows that lie in pieces: what is laid out row after row first has the bits of the same elements in order."""

import itertools
import random

import pytest
import strata

REDUCE = ("sum", "mean", "amax", "var", "norm", "logsumexp", "all")  # over several dims, as operators of tensors
ALONG = ("softmax", "log_softmax", "prod", "argmax", "max")  # over one
# Short and long rows, one element, few columns, several reduced dims; the sizes that the layouts are chosen by.
SHAPES = [(40, 1, 37), (2, 299, 305), (3, 70, 2, 9), (5, 11, 401), (70, 4, 9, 3), (1, 13, 2200), (9, 3, 700), (6, 2, 3, 5, 41),
          (2, 33000, 3), (700, 2)]


def same(a, b):
    a, b = a.double().numpy(), b.double().numpy()
    return a.shape == b.shape and (a.view("uint64") == b.view("uint64"))[~(a != a)].all() and ((a != a) == (b != b)).all()


def results(name, x, dim):
    """What the operator gives, as one tensor."""
    if name == "all":
        return (x > 0).all(dim)
    if name == "aminmax":
        return strata.stack(x.aminmax(dim=dim))
    got = getattr(x, name)(dim=dim)
    return strata.cat([got.values.double(), got.indices.double()]) if name == "max" else got


def layouts(shape, dtype, seed):
    """The same elements in every order of their dims; in a part of a larger tensor; backwards."""
    values = (strata.randn(*shape) * 30).to(dtype)
    orders = list(itertools.permutations(range(len(shape))))
    for order in random.Random(seed).sample(orders, min(len(orders), 5)):
        back = [order.index(d) for d in range(len(shape))]
        yield values, values.permute(*order).contiguous().permute(*back)
        room = strata.zeros(*[shape[d] + 1 for d in order], dtype=dtype)[tuple(slice(0, shape[d]) for d in order)]
        room.copy_(values.permute(*order))
        yield values, room.permute(*back)
    yield values, values.flip(0).contiguous().flip(0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bits_of_the_same_elements_in_order(shape, dtype):
    rnd = random.Random(str(shape) + dtype)
    for values, x in layouts(shape, getattr(strata, dtype), len(shape)):
        for name in REDUCE:
            if dtype == "int64" and name not in ("sum", "amax", "all"):
                continue
            dims = tuple(sorted(rnd.sample(range(len(shape)), rnd.randint(1, len(shape)))))
            assert same(results(name, x, dims), results(name, values, dims)), (name, dims, x.stride())
        for name in ALONG:
            if dtype == "int64" and "softmax" in name:
                continue
            d = rnd.randrange(len(shape))
            assert same(results(name, x, d), results(name, values, d)), (name, d, x.stride())


@pytest.mark.parametrize("shape", SHAPES[:6], ids=str)
def test_results_where_they_are_asked_for(shape):
    for values, x in layouts(shape, strata.float32, 3):
        for d in range(len(shape)):
            small = list(shape)
            small[d] = 1
            out = strata.full([n + 2 for n in reversed(small)], 7.0)[tuple(slice(1, -1) for _ in small)]
            out = out.permute(*reversed(range(len(shape))))
            strata.sum(x, d, keepdim=True, out=out)
            assert same(out, values.sum(d, keepdim=True))
            whole = strata.full([n + 2 for n in reversed(shape)], 7.0)
            inner = whole[tuple(slice(1, -1) for _ in shape)].permute(*reversed(range(len(shape))))
            strata.softmax(x, d, out=inner)
            assert same(inner, values.softmax(d))
            assert float(whole.sum() - inner.sum()) == pytest.approx(7.0 * (whole.numel() - inner.numel()), rel=1e-4)


def test_gradients_over_pieces():
    x = strata.randn(33, 2, 9, 17)
    for order in itertools.permutations(range(4)):
        back = [order.index(d) for d in range(4)]
        a = x.clone().requires_grad_()
        b = x.permute(*order).contiguous().permute(*back).requires_grad_()
        for leaf in (a, b):
            (leaf.softmax(1) * leaf.log_softmax(3)).sum((0, 2)).norm().backward()
        assert same(a.grad, b.grad)


@pytest.mark.parametrize("columns", [1, 2, 3, 8, 15, 16])
@pytest.mark.parametrize("rows", [1024, 1025, 70_001])
def test_few_columns_with_gaps_between_their_lines(rows, columns):
    for room in (columns, columns + 1, 2 * columns):
        x = strata.randn(rows, room)[:, :columns]
        for name in ("sum", "mean", "amax", "norm", "var"):
            assert same(results(name, x, (0,)), results(name, x.contiguous(), (0,))), (name, room)


@pytest.mark.parametrize("shape", [(14, 9000), (11, 571, 15), (70_000, 3), (64, 16, 65)], ids=str)
def test_whole_tensors_in_several_passes(shape):
    x = strata.randn(*reversed(shape)).permute(*reversed(range(len(shape))))
    for name in ("var", "logsumexp", "mean"):
        dims = tuple(range(len(shape)))
        assert same(results(name, x, dims), results(name, x.contiguous(), dims)), name


@pytest.mark.parametrize("dtype", [strata.float32, strata.bfloat16, strata.float64])
@pytest.mark.parametrize("name", ["amax", "amin", "aminmax"])
def test_extrema_of_zeros(name, dtype):
    """Extrema go through memory as it lies, but for the sign of a zero: of several the first in order counts."""
    for shape in SHAPES:
        strata.manual_seed(len(shape))
        for share in (0.0, 0.5):
            values = strata.where(strata.rand(*shape) < 0.5, strata.tensor(-0.0), strata.tensor(0.0))
            values = strata.where(strata.rand(*shape) < share, strata.tensor(-1.0 if name == "amax" else 1.0), values).to(dtype)
            for order in itertools.permutations(range(len(shape))):
                x = values.permute(*order).contiguous().permute(*[order.index(d) for d in range(len(shape))])
                for dim in [None, 0] if name == "aminmax" else [(), (0,), (0, -1)]:
                    assert same(results(name, x, dim), results(name, values, dim)), (shape, order, dim)
