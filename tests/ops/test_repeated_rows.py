"""Short rows beside dense operands: a row that comes again is laid out once for as many elements as it stays the same."""

from __future__ import annotations

import itertools

import pytest
import strata

SHAPES = ((2, 300, 48), (3000, 3, 3), (900, 4, 4, 4), (3000, 2, 5), (70, 33, 9), (3, 700, 12), (5, 130, 64), (2, 3, 280, 32), (3, 2, 2, 5000, 2), (40, 3, 100), (2, 4096, 16))


@pytest.fixture(params=(1, 2))
def threads(request):
    before = strata.get_num_threads()
    strata.set_num_threads(request.param)
    yield
    strata.set_num_threads(before)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", (strata.float32, strata.float64, strata.bfloat16, strata.int32))
def test_rows_that_stay_for_a_while(shape, dtype, threads):
    strata.manual_seed(len(shape))

    def made(*sizes):
        return strata.randint(-9, 9, sizes).to(dtype)

    dense = made(*shape)
    kinds = [[n if keep else 1 for n, keep in zip(shape, keeps, strict=True)] for keeps in itertools.product((0, 1), repeat=len(shape))]
    rows = [made(*kind) for kind in kinds]
    for a, b in itertools.pairwise([*rows, rows[0]]):
        want = dense.clone().mul(a.expand(shape).contiguous()).add(b.expand(shape).contiguous())
        assert strata.equal(dense * a + b, want)
        assert strata.equal(strata.addcmul(a, dense, b), a.expand(shape).contiguous() + dense * b.expand(shape).contiguous())
        wide = strata.where(a > 0, dense.to(strata.float64), b)
        assert strata.equal(wide, strata.where(a.expand(shape).contiguous() > 0, dense.to(strata.float64), b.expand(shape).contiguous()))


@pytest.mark.parametrize("columns", (15, 16, 17, 20, 31, 32, 33, 47, 95, 97, 127, 129))
@pytest.mark.parametrize("dtype", (strata.float32, strata.float64, strata.bfloat16, strata.int32, strata.bool))
def test_rows_that_lie_in_a_wider_tensor(columns, dtype, threads):
    """Their last elements may be computed twice, but not where a result lies on what is read."""
    strata.manual_seed(columns)
    wide = strata.randint(-9, 9, (900, columns + 1)).to(dtype)
    a, b, first = wide[:, 1:], wide[:, :-1], wide[:, :1]
    dense = [t.expand(900, columns).clone() for t in (a, b, first)]
    assert strata.equal(strata.add(a, b), strata.add(dense[0], dense[1]))
    assert strata.equal(strata.add(a, first), strata.add(dense[0], dense[2]))
    assert strata.equal(a.to(strata.float64), dense[0].to(strata.float64))
    assert strata.equal(strata.where(a > b, a, first), strata.where(dense[0] > dense[1], dense[0], dense[2]))
    assert strata.equal(a.flatten()[: 900 * columns - 3].mul(3), dense[0].flatten()[: 900 * columns - 3].mul(3))
    into = wide.clone()
    inside = into[:, 1:]
    if dtype != strata.bool:
        inside.mul_(3).add_(inside)
        assert strata.equal(inside, dense[0] * 3 + dense[0] * 3)
        inside.add_(into[:, :1])
        assert strata.equal(inside, dense[0] * 6 + dense[2])
    strata.add(b, first, out=inside)
    assert strata.equal(inside, strata.add(dense[1], dense[2]))
    assert strata.equal(into[:, :1], wide[:, :1])
    strata.bitwise_not(into.flatten()[: 900 * columns].to(strata.int64), out=(found := strata.empty(900 * columns, dtype=strata.int64)))
    assert strata.equal(found, -into.flatten()[: 900 * columns].to(strata.int64) - 1)


@pytest.mark.parametrize("dtype", (strata.float32, strata.float64, strata.bfloat16))
@pytest.mark.parametrize("groups", (1, 8, 32))
def test_group_norm_gives_the_same_in_every_layout(dtype, groups, threads):
    strata.manual_seed(groups)
    x, norm = strata.randn(3, 64, 19, 23).to(dtype), strata.nn.GroupNorm(groups, 64).to(dtype)
    with strata.no_grad():
        norm.weight.copy_(strata.randn(64))
        norm.bias.copy_(strata.randn(64))
        want = norm(x)
        for layout in (x.to(memory_format=strata.channels_last), x.transpose(2, 3).contiguous().transpose(2, 3), strata.stack([x, x], 4)[..., 0]):
            got = norm(layout)
            assert strata.equal(got, want)
            last = layout.is_contiguous(memory_format=strata.channels_last)
            assert got.is_contiguous(memory_format=strata.channels_last if last else strata.contiguous_format)
        one = strata.cat([norm(image.unsqueeze(0)) for image in x])
        assert strata.equal(one, want)
