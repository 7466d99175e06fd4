"""Long rows that lie across memory, side by side or taking turns, have the bits of rows along memory."""

from __future__ import annotations

import pytest
import strata
from table import bits, dtype, outputs
from test_rows_across import CASES, compare_orders, of_rows

F = strata.nn.functional


@pytest.fixture(params=[1, 2, 3], ids=lambda n: f"{n}-threads", autouse=True)
def threads(request):
    before = strata.get_num_threads()
    strata.set_num_threads(request.param)
    yield
    strata.set_num_threads(before)


def found(result):
    return [bits(a) for a in outputs(result)]


# Whole chunks of tree T and others, whole parts and ones with a short rest; columns in whole blocks, and most of one.
LENGTHS = [(1025, 16), (1500, 24), (2048, 64), (4100, 31), (65536, 17), (65537, 8), (65537, 32), (70001, 20), (131073, 16)]


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "float16", "int64", "bool"])
@pytest.mark.parametrize("length, columns", LENGTHS)
def test_side_by_side(length, columns, name):
    strata.manual_seed(length)
    x = (strata.randn(length, columns) * 3).to(dtype(name)).t()
    if x.is_floating_point():
        x[3, length // 2], x[5, -1], x[7] = float("nan"), float("inf"), -0.0
    apart = strata.zeros(length, columns + 3, dtype=x.dtype).t()[:columns]
    apart.copy_(x)
    for op, f in of_rows(x.dtype, name).items():
        want = found(f(x.contiguous()))
        for y in (x, apart, strata.stack([x.t(), x.t()], 1)[:, 1].t()):
            assert found(f(y)) == want, (op, y.stride())


@pytest.mark.parametrize("entry", CASES, ids=lambda e: e.schema.full)
def test_all_row_operators(entry):
    compare_orders(entry, {2: [(1100, 20), (20, 1100)]}, ("float32", "bfloat16"), graded=(), threads=[strata.get_num_threads()])


# Groups of channels of images whose channels come last; one of a row's dims is short, or none.
IMAGES = [(2, 8, 2, 49), (3, 40, 3, 100), (2, 5, 16, 33), (1, 70, 4, 9), (2, 3, 7, 1000)]
OVER_TWO = {
    "var_mean": lambda x: strata.var_mean(x, [2, 3]), "sum": lambda x: x.sum([2, 3]), "norm": lambda x: strata.linalg.vector_norm(x, 3, [2, 3]),
    "logsumexp": lambda x: x.logsumexp([2, 3]), "amax": lambda x: x.amax([2, 3]), "layer_norm": lambda x: F.layer_norm(x, x.shape[2:]),
}


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", IMAGES, ids=str)
def test_taking_turns(shape, name):
    strata.manual_seed(sum(shape))
    x = strata.randn(*shape).to(dtype(name))
    last = x.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1)
    for op, f in OVER_TWO.items():
        assert found(f(last)) == found(f(x)), op
    n, groups, channels, positions = shape
    image = x.reshape(n, groups * channels, positions, 1)
    weight, bias = strata.randn(2, groups * channels).to(x.dtype)
    for w, b in ((weight, bias), (None, None)):
        turned = F.group_norm(image.contiguous(memory_format=strata.channels_last), groups, w, b)
        assert found(turned) == found(F.group_norm(image, groups, w, b))


def test_a_last_part_of_one_element_leaves_threads_without_work():
    for columns in (8, 9, 17, 32):
        x = strata.randn(65537, columns).half()
        assert strata.equal(x.norm(dim=0), x.t().contiguous().norm(dim=1))
