"""Reductions of short rows, of rows that lie across memory, and of what is made as it is read, fused with what is before and
behind them: eager's bits in each form that their kernels have."""

import graph_models
import pytest
import strata as torch

F = torch.nn.functional
LAYOUTS = {
    "short": lambda n: torch.randn(997, n),
    "turned": lambda n: torch.randn(n, 997).t(),
    "across": lambda n: torch.randn(31, n, 33).transpose(1, 2),
    "few": lambda n: torch.randn(5, n),
    "expanded": lambda n: torch.randn(300, n).expand(3, 300, n),
    "overlapping": lambda n: torch.randn(40, 30 + n).unfold(-1, n, 1),
    "apart": lambda n: torch.randn(500, 2 * n)[:, ::2],
}
PROGRAMS = {
    "sum": lambda x: (x * 2 + 1).sum(-1),
    "gelu": lambda x: F.gelu(x.sum(-1)),
    "half": lambda x: (x * x).mean(-1).half().tanh(),
    "norm": lambda x: (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True),
    "softmax": lambda x: F.softmax(x * 2, -1).square(),
    "logsumexp": lambda x: x.exp().add(1).logsumexp(-1).sin(),
    "first": lambda x: (x + 1).sum(0).sigmoid(),
    "first_norm": lambda x: (x - x.mean(0, keepdim=True)) * x.var(0, keepdim=True).rsqrt(),
    "largest": lambda x: (x * x0(x)).amax(-1, keepdim=True) - x,
    "dropped": lambda x: F.layer_norm(F.dropout(x, 0.3), x.shape[-1:]).relu(),
    "drawn": lambda x: (torch.rand_like(x) * x).sum(0),
    "values": lambda x: x.softmax(-1).amax(-1).log().exp().sin().cos(),
}


def x0(x):
    return x[..., :1]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits(name, layout):
    f = PROGRAMS[name]
    for n in (3, 16, 33, 64):
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            torch.manual_seed(n)
            x = LAYOUTS[layout](n)
            x = x if dtype == torch.float32 else x.to(dtype)
            torch.manual_seed(1)
            want = f(x)
            g = torch.graph(f, x).compile()
            torch.manual_seed(1)
            got = g(x)
            assert graph_models.same(got.nan_to_num(7.0), want.nan_to_num(7.0)), (n, dtype)


@pytest.mark.parametrize("n", [5, 64, 3000])
def test_moves_alone_and_with_others(n):
    """Reversals and rotations are the operator's own where they are alone, and elements of a kernel where they are not."""
    x = torch.randn(n, 300)
    for f in (lambda x: x.flip(-1), lambda x: x.roll(7, 0), lambda x: x.flip(0) * 2 + 1, lambda x: x.t().roll(1, -1) + 1, lambda x: torch.cat([x, x], -1) * 2,
              lambda x: torch.cat([x[:, :3] + 1, x[:, :5] * 2], -1).abs(), lambda x: torch.zeros(n, 300).copy_(x.flip(-1)).add_(1)):
        assert graph_models.same(torch.graph(f, x).compile()(x), f(x))


@pytest.mark.parametrize("rows", [600, 1000])
def test_columns_beside_others(rows):
    """Elements that a reduction over long columns has not read are a kernel of their own; those that it has read are not."""
    x, y = torch.randn(rows, 512), torch.randn(rows, 512)
    for f, kernels in ((lambda x, y: x.logsumexp(0) * y, 2), (lambda x, y: x.var(0) - y.exp(), 2), (lambda x, y: x - x.logsumexp(0) * y, 1),
                       (lambda x, y: (x - y).log_softmax(0) + y, 1)):
        g = torch.graph(f, x, y).compile()
        assert graph_models.same(g(x, y), f(x, y))
        said = g.explain()
        assert said.count("kernel over") + said.count("by itself\n") == kernels, said


@pytest.mark.parametrize(("shape", "fused"), [((4, 8, 56, 56), False), ((64, 8, 9, 9), True), ((1, 8, 80, 80), True), ((8, 8, 20, 20), True)])
def test_rows_in_long_pieces(shape, fused):
    """What is computed of a channel's elements goes over long pieces as they lie, with what is behind it, and over others in its rows."""
    x = torch.randn(*shape)
    for f in (lambda x: (x - x.mean((0, 2, 3), keepdim=True)).relu(), lambda x: F.batch_norm(x, None, None, training=True).relu()):
        g = torch.graph(f, x).compile()
        assert graph_models.same(g(x), f(x))
        said = g.explain()
        assert ("its rows lie in long pieces" in said) != fused, said


SPREAD = {
    "dense": lambda n, dtype: torch.randn(9, 70, n, dtype=dtype),
    "sliced": lambda n, dtype: torch.randn(9, 70, n + 3, dtype=dtype)[..., 1 : n + 1],
    "row": lambda n, dtype: torch.randn(9, 1, n, dtype=dtype),
    "last_row": lambda n, dtype: torch.randn(n, dtype=dtype),
    "value": lambda n, dtype: torch.randn(9, 70, 1, dtype=dtype),
    "value_of_some": lambda n, dtype: torch.randn(1, 70, 1, dtype=dtype),
    "number": lambda n, dtype: torch.randn(1, 1, 1, dtype=dtype),
    "turned": lambda n, dtype: torch.randn(n, 70, 9, dtype=dtype).permute(2, 1, 0),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("n", [15, 16, 17, 33, 96, 1001])
def test_elements_beside_values_of_rows(n, dtype):
    """Several inputs, each as it is in every element, in every row, or once for a row; and results that lie in one of them."""

    def f(a, b, c, d):
        return (a * b + c).abs() - d * 0.5, (a - d).square()

    def much(a, b, c, d):
        return ((a - b).clamp(-5, 5) * 0.5).exp() * c + d

    def in_place(a, b, c, d):
        return a.mul_(b).add_(c).sub_(d)

    names = list(SPREAD)
    for k in range(len(names) ** 2):
        chosen = [names[k % 8], names[k // 8], names[(3 * k + 1) % 8], names[(k * k + 5) % 8]]
        inputs = [SPREAD[name](n, dtype) for name in chosen]
        for got, want in zip(torch.graph(f, *inputs).compile()(*inputs), f(*inputs), strict=True):
            assert graph_models.same(got, want), chosen
        assert graph_models.same(torch.graph(much, *inputs).compile()(*inputs), much(*inputs)), chosen
        if chosen[0] in ("dense", "sliced", "turned"):
            graph, others = torch.graph(in_place, *inputs).compile(), inputs[1:]
            a, b = (SPREAD[chosen[0]](n, dtype).copy_(inputs[0]) for _ in range(2))
            graph(a, *others), in_place(b, *others)
            assert graph_models.same(a, b), chosen
