"""A block that copies make up part by part and that another copy then lays out anew is written as it shall lie at last; where
that is seen, or would cost more, it is not."""

import graph_models
import pytest
import strata as torch

DTYPES = [torch.float32, torch.bfloat16, torch.int64, torch.bool]


def made(function, *args):
    compiled = torch.graph(function, *args).compile()
    for _ in range(2):
        ours, eager = (f(*[a.clone() for a in args]) for f in (compiled, function))
        pairs = zip(ours, eager, strict=True) if isinstance(eager, tuple) else [(ours, eager)]
        assert all(graph_models.same(a, b) for a, b in pairs)
    return str(compiled.explain())


def data(*shape, dtype=torch.float32):
    return (torch.randn(shape) * 10).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_parts_go_to_their_last_places(dtype):
    q, k, v = (data(2, 3, 5, 16, dtype=dtype) for _ in range(3))
    assert "clone" not in made(lambda q, k, v: torch.stack([q, k, v]).permute(1, 3, 0, 2, 4).reshape(2, 5, 144), q, k, v)
    assert "clone" not in made(lambda q, k, v: torch.stack([q, k, v], 2).permute(3, 2, 0, 1, 4).contiguous(), q, k, v)
    assert "clone" not in made(lambda q, k: torch.cat([q, k], 1).transpose(1, 2).contiguous(), q, k)
    assert "clone" not in made(lambda q, k: torch.cat([q, k[:, :1]], 1).permute(2, 0, 1, 3).contiguous() == 1, q, k)
    # A dim of one element, and parts whose dims were transposed.
    made(lambda q, k: torch.cat([q[:1], k[:1]], 1).transpose(1, 2).contiguous(), q, k)
    made(lambda q, k: torch.cat([q.transpose(1, 2), k.transpose(1, 2)], 1).transpose(0, 1).contiguous(), q, k)


def test_what_is_laid_out_elsewhere_stays():
    q, k = data(2, 3, 5, 16), data(2, 3, 5, 16)

    def both(q, k):
        whole = torch.cat([q, k], 1)
        return whole, whole.transpose(1, 2).contiguous()

    def read_twice(q, k):
        whole = torch.cat([q, k], 1)
        return whole.transpose(1, 2).contiguous(), whole.sum()

    def changed(q, k):
        whole = torch.cat([q, k], 1)
        whole[:, 1].mul_(2)
        return whole.transpose(1, 2).contiguous()

    def changed_after(q, k):
        turned = torch.cat([q, k], 1).transpose(1, 2).contiguous()
        turned[:, 1].mul_(2)
        return turned

    def twice(q, k):
        first = torch.cat([q, k], 1).transpose(1, 2).contiguous()
        return torch.cat([first, first + 1], 0).transpose(0, 1).contiguous()

    def overlapping(q, k):
        whole = torch.zeros(2, 6, 5, 16)
        whole[:, :4].copy_(torch.cat([q, q[:, :1]], 1))
        whole[:, 2:].copy_(torch.cat([k, k[:, :1]], 1))
        return whole.transpose(1, 2).contiguous()

    for f in (both, read_twice, changed, changed_after, twice, overlapping):
        made(f, q, k)


@pytest.mark.parametrize("last", [1, 3, 15, 16, 17])
def test_runs_of_any_length(last):
    x, y = data(4, 6, last), data(4, 6, last)
    explained = made(lambda x, y: torch.cat([x, y], 1).transpose(0, 1).contiguous(), x, y)
    assert ("clone" in explained) == (last < 16)
    made(lambda x, y: torch.cat([x, y], 2).transpose(0, 1).contiguous(), x, y)
    made(lambda x, y: torch.cat([x, y], 1).transpose(1, 2).contiguous(), x, y)
    made(lambda x, y: torch.cat([x, y], 1).transpose(0, 1).to(torch.float64).contiguous(), x, y)


def test_gradient_of_heads():
    """Stacked gradients of what one product gave: each is written where the product's gradient has it."""
    x = data(2, 9, 96)

    def step(x):
        x = x.detach().requires_grad_()
        q, k, v = x.view(2, 9, 3, 2, 16).permute(2, 0, 3, 1, 4).unbind(0)
        torch.nn.functional.scaled_dot_product_attention(q, k, v).square().sum().backward()
        return x.grad

    made(step, x)
