"""Operators that move or gather, as parts of compiled kernels: eager's bits, and eager's errors for indices outside."""

import pytest
import strata
import strata.nn.functional as F

I = strata.tensor([[3, 0, 199], [7, 7, 1]])
MANY = strata.arange(60) % 7
COLUMNS = strata.arange(0, 299, 3)
PLACES = strata.arange(200 * 100).reshape(200, 100) % 300

PROGRAMS = {
    "embedding": lambda x: F.embedding(I, x) + 1,
    "embedding_norm": lambda x: F.layer_norm(F.embedding(I, x) * 2, (x.shape[1],)),
    "flip": lambda x: x.flip(1) * 2 + x,
    "flip_both": lambda x: x.flip(0, 1).softmax(-1),
    "pad": lambda x: F.pad(x, (1, 2, 3, 4), value=0.5).relu() + 1,
    "reflect": lambda x: F.pad(x[None], (5, 2), mode="reflect").exp(),
    "gather": lambda x: x.gather(1, PLACES) * 2,
    "roll": lambda x: x.roll(3, 1).softmax(-1),
    "index_select": lambda x: x.index_select(1, COLUMNS).exp(),
    "rows_selected": lambda x: x.index_select(0, I[0]) - 1,
    "tril": lambda x: (x.tril() + 1).softmax(-1),
    "half": lambda x: x.bfloat16().flip(1).float() + x,
    "one_hot": lambda x: F.one_hot(I, 200).float() * 3,
    "bilinear": lambda x: F.interpolate(x[None, None], scale_factor=2.0, mode="bilinear").relu() * 2,
    "pool": lambda x: F.max_pool2d(x[None, None], 2).tanh(),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided"])
def test_eagers_bits(name, layout):
    f = PROGRAMS[name]
    x = {"contiguous": lambda: strata.randn(200, 300), "transposed": lambda: strata.randn(300, 200).t(),
         "strided": lambda: strata.randn(400, 600)[::2, ::2]}[layout]()  # fmt: skip
    x.requires_grad_()
    compiled = strata.graph(f, x).compile()
    eager, made = f(x), compiled(x)
    assert made.stride() == eager.stride() and made.tolist() == eager.tolist()
    if eager.requires_grad:
        ones = strata.randn(eager.shape)
        assert strata.autograd.grad(made, x, ones)[0].tolist() == strata.autograd.grad(eager, x, ones)[0].tolist()


ONE = {
    "embedding": lambda x: F.embedding(MANY, x) + 1,
    "flip": lambda x: x.flip(1) * 2 + x,
    "gather": lambda x: x.gather(1, PLACES) * 2,
    "index_select": lambda x: x.index_select(1, COLUMNS).exp(),
    "tril": lambda x: x.tril() + 1,
    "pad": lambda x: F.pad(x.reshape(100, 600), (1, 1)).relu(),
}


@pytest.mark.parametrize("name", ONE)
def test_is_one_kernel(name):
    said = strata.graph(ONE[name], strata.randn(200, 300)).compile().explain()
    assert "1 fused kernels, 0 operators by themselves" in said


def outside(f, *xs):
    with pytest.raises(Exception) as error:
        f(*xs)
    return type(error.value), str(error.value)


def test_an_index_outside_raises_eagers_error_and_the_next_call_works():
    def f(x, i):
        return F.embedding(i, x).relu() * 2

    x, good = strata.randn(10, 80), strata.tensor([1, 9, 0])
    compiled = strata.graph(f, x, good).compile()
    for bad in (10, -1, 1 << 40):
        at = strata.tensor([1, bad, 0])
        assert outside(compiled, x, at) == outside(f, x, at)
    assert compiled(x, good).tolist() == f(x, good).tolist()


def test_arguments_are_as_they_were_where_an_index_is_outside():
    def f(x, i, total):
        total.add_(x.index_select(1, i).relu())
        return total * 1

    x, good, total = strata.randn(5, 70), strata.arange(64), strata.zeros(5, 64)
    compiled = strata.graph(f, x, good, total).compile()
    bad = good.clone()
    bad[63] = 70
    total = strata.ones(5, 64)
    outside(compiled, x, bad, total)
    assert total.tolist() == strata.ones(5, 64).tolist()


def test_an_unread_gather_still_raises():
    def f(x, i):
        x.index_select(1, i)
        return x + 1

    x, good = strata.randn(5, 70), strata.arange(64)
    compiled = strata.graph(f, x, good).compile()
    assert outside(compiled, x, good + 10) == outside(strata.graph(f, x, good).run, x, good + 10)


def test_what_is_gathered_may_be_written_afterwards():
    def f(x, i):
        y = x.index_select(1, i) * 2
        x.mul_(3)
        return y + x.index_select(1, i)

    i = strata.arange(63, -1, -1)
    x = strata.randn(9, 64)
    compiled = strata.graph(f, x.clone(), i).compile()
    a, b = x.clone(), x.clone()
    assert f(a, i).tolist() == compiled(b, i).tolist() and a.tolist() == b.tolist()


@pytest.mark.parametrize("width", [64, 4], ids=["fused", "apart"])
def test_the_error_is_found_where_the_index_was_converted(width):
    def f(x, i):
        return F.embedding((i * 2 - i).int(), x).relu() * 2

    x, good = strata.randn(10, width), strata.arange(200) % 10
    compiled = strata.graph(f, x, good).compile()
    assert compiled(x, good).tolist() == f(x, good).tolist()
    assert outside(compiled, x, good + 3) == outside(f, x, good + 3)
