"""Results that are views of arguments: of those of each call, wherever they lie, and of the one that the function looked at."""

import pytest
import strata

FORMS = {
    "view": lambda x: x.view(-1),
    "reshape": lambda x: x.reshape(-1),
    "transpose": lambda x: x.t(),
    "part": lambda x: x[:, 1:],
    "row": lambda x: x[0],
    "chunks": lambda x: x.chunk(2, 1),
    "beside a computed one": lambda x: (x.unsqueeze(0), x.sum()),
    "written": lambda x: x.reshape(-1).add_(1),
}


def values(found):
    return [t.tolist() for t in found] if isinstance(found, tuple) else found.tolist()


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("dynamic", [None, True])
def test_wherever_the_argument_lies(name, recorded, dynamic):
    f = FORMS[name]
    compiled = strata.compile(f, dynamic=dynamic)
    with strata.set_grad_enabled(recorded):
        for begin, rows in ((0, 2), (1, 2), (3, 2), (2, 3), (0, 4), (4, 2)):
            want, got = strata.arange(24.0).view(6, 4), strata.arange(24.0).view(6, 4)
            a, b = f(want[begin : begin + rows]), compiled(got[begin : begin + rows])
            assert values(a) == values(b) and want.tolist() == got.tolist(), (begin, rows)


@pytest.mark.parametrize("name", [name for name in FORMS if name != "view"])
def test_other_strides_at_open_sizes(name):
    f = FORMS[name]
    compiled = strata.compile(f)
    for make in (
        lambda: strata.arange(6.0).view(2, 3),
        lambda: strata.arange(8.0).view(4, 2),
        lambda: strata.arange(8.0).view(2, 4).t(),
        lambda: strata.arange(15.0).view(5, 3),
        lambda: strata.arange(15.0).view(3, 5).t(),
        lambda: strata.arange(30.0).view(5, 6)[:, ::2],
    ):
        a, b = make(), make()
        assert values(f(a)) == values(compiled(b)) and a.tolist() == b.tolist()
        assert a.reshape(-1).stride() == b.reshape(-1).stride()


def test_expanded_arguments():
    compiled = strata.compile(lambda x: x.reshape(-1))
    for x in (strata.ones(2, 3), strata.ones(4, 2), strata.arange(3.0).view(1, 3).expand(5, 3)):
        assert compiled(x).tolist() == x.reshape(-1).tolist()


def test_gradients_reach_the_part():
    compiled = strata.compile(lambda v: v.view(2, 1))
    p = strata.arange(6.0, requires_grad=True)
    compiled(p[:2])
    (compiled(p[2:4]) * strata.tensor([[1.0], [2.0]])).sum().backward()
    assert p.grad.tolist() == [0.0, 0.0, 1.0, 2.0, 0.0, 0.0]


def test_arguments_that_share_memory():
    def f(x, y):
        return x + 1, y.view(2, 2)

    compiled, b = strata.compile(f), strata.arange(8.0)
    for x, y in ((b[:4], b[4:]), (strata.zeros(8)[:4], strata.full((8,), 5.0)[4:]), (b[4:], b[:4]), (strata.zeros(4), strata.ones(4))):
        sums, view = compiled(x, y)
        assert sums.tolist() == (x + 1).tolist() and view.tolist() == y.view(2, 2).tolist() and view.data_ptr() == y.data_ptr()


def test_a_written_argument_and_a_view_of_another():
    def f(x, y):
        x.add_(1)
        return y * 2, y.view(2, 2)

    compiled = strata.compile(f)
    q = strata.ones(4)
    assert values(compiled(q, q[:])) == [[4.0] * 4, [[2.0, 2.0]] * 2]
    x, y = strata.zeros(4), strata.full((4,), 5.0)
    assert values(compiled(x, y)) == [[10.0] * 4, [[5.0, 5.0]] * 2] and x.tolist() == [1.0] * 4


@pytest.mark.parametrize("part", [lambda x: x, lambda x: x * 1, lambda x: x[:4]])
def test_views_made_without_recording(part):
    def f(x):
        with strata.no_grad():
            view = x[1:]
        return view, x[:2], x * 2

    outcomes = []
    for g in (f, strata.compile(f)):
        leaf = strata.arange(6.0, requires_grad=True)
        found = g(part(leaf))
        sum(t.double().sum() for t in found).backward()
        outcomes.append(([(t.tolist(), t.requires_grad, t.is_leaf, t._is_view()) for t in found], leaf.grad.tolist()))
    assert outcomes[0] == outcomes[1]


def test_parts_of_one_tensor_and_a_view_of_one_of_them():
    """As attention gets its queries, keys and values."""

    def attend(q, k, v):
        return (q @ k.transpose(-1, -2)).softmax(-1) @ v, k.transpose(0, 1), v[:, 1:]

    compiled = strata.compile(attend, fullgraph=True)
    for parts in (strata.randn(2, 4, 12).chunk(3, -1), strata.randn(2, 4, 12).chunk(3, -1), [strata.randn(2, 4, 4) for _ in range(3)]):
        want, got = attend(*parts), compiled(*parts)
        assert all(strata.equal(a, b) for a, b in zip(want, got, strict=True))
        assert [t.data_ptr() for t in got[1:]] == [t.data_ptr() for t in want[1:]]


def test_a_part_that_asks_for_a_gradient_of_its_own():
    def f(x):
        y = (x * 2).detach()
        part = y[1:].requires_grad_()
        return y, part

    compiled = strata.compile(f)
    for g in (f, compiled):
        y, part = g(strata.ones(3))
        assert not y.requires_grad and part.requires_grad and part._base is y


def test_writes_to_a_diagonal_of_a_part():
    compiled = strata.compile(lambda a: a.fill_diagonal_(1))
    for take in (lambda b: b[8:].view(8, 4), lambda b: b[:30].view(5, 3, 2)[..., 1], lambda b: b.view(4, 10)[2:, :4], lambda b: b[:16].view(4, 4)):
        want, got = strata.zeros(40), strata.zeros(40)
        take(want).fill_diagonal_(1)
        compiled(take(got))
        assert want.tolist() == got.tolist()


def test_whether_an_argument_is_a_view_is_asked_each_time():
    f = strata.compile(lambda x: (x._is_view(), x * 2))
    assert [f(x)[0] for x in (strata.ones(3)[1:], strata.ones(2), strata.ones(3)[1:])] == [True, False, True]
