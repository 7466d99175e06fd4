"""Memory that a graph did not make: inputs at offsets, empty ones, what is written with a history."""

import pytest
import strata


def compiled(f, *xs):
    return strata.graph(f, *xs).compile(), strata.compile(f)


@pytest.mark.parametrize("shape", [(3, 4, 0), (0, 4, 3), (0, 4, 0)], ids=str)
@pytest.mark.parametrize("write", ["index_fill_", "index_add_", "index_copy_", "index_put_", "setitem", "masked_fill_", "scatter_"])
def test_writes_into_what_is_empty(shape, write):
    index = strata.tensor([0, 2])

    def f(x):
        y = x + 1
        part = x[:, :2] * 2
        if write == "index_fill_":
            return y.index_fill_(1, index, 1.0)
        if write in ("index_add_", "index_copy_"):
            return getattr(y, write)(1, index, part)
        if write == "index_put_":
            return y.index_put_((strata.arange(shape[0])[:, None], index), strata.ones(()), accumulate=True)
        if write == "setitem":
            y[:, index] = 5.0
            return y
        if write == "masked_fill_":
            return y.masked_fill_(y > 0, 2.0)
        return y.scatter_(1, strata.zeros(part.shape, dtype=strata.int64), part)

    x = strata.zeros(shape)
    for g in compiled(f, x):
        got, wanted = g(x), f(x)
        assert got.shape == wanted.shape and got.stride() == wanted.stride() and got.dtype == wanted.dtype


def test_a_last_batch_that_is_empty():
    def f(x):
        y = x * 2
        y[:, strata.tensor([0])] = 5.0
        return y.sum(0)

    g = strata.compile(f)
    for n in (4, 5, 0, 4):
        x = strata.ones(n, 3)
        assert g(x).equal(f(x))


@pytest.mark.parametrize("where", [lambda x: x.storage_offset(), lambda x: 5], ids=["its own", "a number"])
def test_places_of_as_strided_count_from_the_storage(where):
    def reads(x):
        return x.as_strided((3,), (1,), where(x)) * 1

    def gives(x):
        return x.as_strided((3,), (1,), where(x))

    def writes(x):
        x.as_strided((3,), (1,), where(x)).zero_()
        return x.clone()

    for f in (reads, gives, writes):
        for g in (*compiled(f, strata.arange(100.0)[5:15]), f):
            x = strata.arange(100.0)[5:15]
            got = g(x)
            wanted = f(strata.arange(100.0)[5:15])
            assert got.equal(wanted) and got.storage_offset() == wanted.storage_offset()


def test_an_input_that_gets_a_history_is_refused():
    w = strata.full((3,), 2.0, requires_grad=True)

    def f(x, w):
        x.mul_(w)
        return x.sum()

    with pytest.raises(NotImplementedError, match="written in place with what requires a gradient"):
        strata.graph(f, strata.ones(3), w)
    with strata.no_grad():
        g = strata.graph(f, strata.ones(3), w).compile()
        assert g(strata.ones(3), w).item() == 6
    x, g = strata.ones(3), strata.compile(f)
    g(x, w)
    (x * 3).sum().backward()
    assert w.grad.tolist() == [3, 3, 3]


def test_a_bool_is_true_whatever_its_byte():
    bytes_ = strata.tensor([0, 1, 2, 5, 255], dtype=strata.uint8)

    def f(x):
        b = x.view(strata.bool)
        return b.sum(), b.float() * 1, b.int(), b.cumsum(0), strata.where(b, 2, 3), b.any(), b.all(), b.bfloat16(), b.double()

    wanted = f((bytes_ != 0).to(strata.uint8))
    for g in (f, *compiled(f, bytes_)):
        for a, b in zip(g(bytes_), wanted, strict=True):
            assert a.equal(b) and a.dtype == b.dtype
