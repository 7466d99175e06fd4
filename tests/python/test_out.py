"""out= of operators that are made of others, and of factories."""

import pytest
import strata as torch

A, B = torch.randn(3, 3), torch.randn(3, 3)
CALLS = {
    "matmul": (A, B),
    "inner": (A, B),
    "kron": (A, B),
    "outer": (A[0], B[0]),
    "cross": (A, B, 1),
    "renorm": (A, 2, 0, 1.0),
    "msort": (A,),
    "ldexp": (A, B),
    "quantile": (A, 0.3),
    "tensordot": (A, B, 1),
    "index_reduce": (A, 0, torch.tensor([0, 2, 2]), B, "amax"),
}
CONVERTS = ("kron", "outer", "ldexp")  # products, which may be written in another dtype


@pytest.mark.parametrize("name", sorted(CALLS))
def test_out_is_resized_and_returned(name):
    function = getattr(torch, name)
    expected, out = function(*CALLS[name]), torch.empty(0)
    assert function(*CALLS[name], out=out) is out
    assert torch.equal(out, expected)
    strided = torch.empty(*expected.shape, 2)[..., 0]
    function(*CALLS[name], out=strided)
    assert torch.equal(strided, expected)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_out_of_another_dtype(name):
    function, wide = getattr(torch, name), torch.empty(0, dtype=torch.float64)
    if name in CONVERTS:
        assert torch.equal(function(*CALLS[name], out=wide), function(*CALLS[name]).double())
        with pytest.raises(RuntimeError, match="can't be cast"):
            function(*CALLS[name], out=torch.empty(0, dtype=torch.int64))
    else:
        with pytest.raises(RuntimeError, match="expected dtype strata.float32, got strata.float64"):
            function(*CALLS[name], out=wide)


@pytest.mark.parametrize("name", ["matmul", "kron", "msort", "quantile"])
def test_out_records_nothing(name):
    function, (first, *rest) = getattr(torch, name), CALLS[name]
    with pytest.raises(RuntimeError, match="out=... arguments don't support automatic differentiation"):
        function(first.clone().requires_grad_(), *rest, out=torch.empty(0))
    written = torch.empty(0, requires_grad=True)
    with pytest.raises(RuntimeError, match=rf"{name}\(\): functions with out=... arguments don't support"):
        function(first, *rest, out=written)
    with torch.no_grad():
        assert torch.equal(function(first.clone().requires_grad_(), *rest, out=torch.empty(0)), function(first, *rest))


def test_several_tensors():
    outs = [torch.empty(0), torch.empty(3), torch.empty(3, 2)[:, 0]]
    assert torch.unbind_copy(A, 1, out=outs) is None
    assert all(torch.equal(o, a) for o, a in zip(outs, A.unbind(1), strict=True))
    before = [o._version for o in outs]
    torch.split_with_sizes_copy(A.flatten(), [3, 3, 3], out=outs)
    assert [o._version for o in outs] == [v + 1 for v in before]
    with pytest.raises(RuntimeError, match="out= argument of size 3, got size 2"):
        torch.unbind_copy(A, out=outs[:2])
    with pytest.raises(RuntimeError, match="expected dtype strata.float32"):
        torch.unbind_copy(A, out=[torch.empty(0, dtype=torch.int64)] * 3)


def test_joins_do_not_convert_to_integers():
    for function in (torch.cat, torch.stack, torch.hstack, torch.vstack, torch.dstack, torch.column_stack):
        with pytest.raises(TypeError, match="input types can't be cast to the desired output type Long"):
            function([A, B], out=torch.empty(0, dtype=torch.int64))
        assert torch.equal(function([A, B], out=torch.empty(0)), function([A, B]))


def test_factories_follow_out():
    out = torch.empty(0, dtype=torch.int32)
    assert torch.ones(2, 2, out=out).tolist() == [[1, 1], [1, 1]] and out.dtype == torch.int32
    assert torch.full((3,), 2.5, out=out.resize_(0)).tolist() == [2, 2, 2]
    assert torch.randperm(4, out=torch.empty(0)).dtype == torch.float32
    assert torch.empty(5, out=out.resize_(0)) is out and out.shape == (5,)
    for make in (torch.zeros, torch.eye, torch.randn, torch.empty):
        with pytest.raises(RuntimeError, match="dtype Float does not match dtype of out parameter"):
            make(3, dtype=torch.float32, out=torch.empty(0, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="device type meta does not match"):
        torch.zeros(3, device="meta", out=torch.empty(0))
    generator = torch.Generator().manual_seed(3)
    drawn = torch.rand(4, generator=generator, out=torch.empty(0))
    assert torch.equal(drawn, torch.rand(4, generator=generator.manual_seed(3)))


def test_results_that_are_given_have_names():
    x = torch.rand(3, 4)
    for call, out, names in (
        (lambda out: torch.max(x, 0, out=out), (torch.empty(0), torch.empty(0, dtype=torch.int64)), ("values", "indices")),
        (lambda out: torch.sort(x, out=out), (torch.empty(0), torch.empty(0, dtype=torch.int64)), ("values", "indices")),
        (lambda out: torch.linalg.eigh(x @ x.T, out=out), (torch.empty(0), torch.empty(0)), ("eigenvalues", "eigenvectors")),
    ):
        found = call(out)
        assert type(found).__name__.endswith("_out") and tuple(found) == out
        assert all(getattr(found, name) is o for name, o in zip(names, out))


def test_a_result_whose_elements_lie_together_is_refused():
    for call in (lambda out: torch.logspace(-1, 2, 4, out=out), lambda out: torch.linspace(-1, 2, 4, out=out),
                 lambda out: torch.arange(4.0, out=out), lambda out: torch.cumsum(torch.ones(4), 0, out=out)):  # fmt: skip
        out = torch.tensor([3.0]).expand(4)
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor|single memory location"):
            call(out)
        assert out.tolist() == [3.0] * 4


def test_ranges_keep_the_shape_of_an_out_of_their_size():
    out = torch.zeros(3, 6)
    torch.linspace(1, 9, 9, out=out[:, ::2])
    assert out.tolist() == [[1, 0, 2, 0, 3, 0], [4, 0, 5, 0, 6, 0], [7, 0, 8, 0, 9, 0]]
    out = torch.zeros(3, 3)
    assert torch.arange(9.0, out=out) is out and out.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    out = torch.zeros(2, 8)
    torch.arange(4.0, out=out[:, :2])
    assert out[:, :3].tolist() == [[0, 1, 0], [2, 3, 0]]
    out = torch.zeros(2, 2)
    torch.logspace(0, 3, 4, out=out.t())
    torch.testing.assert_close(out, torch.tensor([[1.0, 100.0], [10.0, 1000.0]]))
    out = torch.zeros(0)
    assert torch.arange(3.0, out=out).shape == (3,)
