"""Row operators have the same bits wherever their rows lie: along memory, across it, or short ones brought side by side."""

from __future__ import annotations

import re
from itertools import permutations

import numpy as np
from kit import Call, T
from table import (
    ENTRIES,
    FLOATS,
    ROOT,
    SAMPLES,
    Maker,
    bits,
    convert,
    dtype,
    flattened,
    operator,
    outputs,
    pytest,
    strata,
    tensor,
)

from gen import model

ROWS = [k.name for k in model.load(ROOT / "ops")[1] if k.kind == "rows"]
USED = re.compile(rf"\b({'|'.join(ROWS)})\(")
CASES = [e for e in ENTRIES if e.kind == "rows" or (e.plan and USED.search(e.text))]
# Rows of 40 lie along memory in some orders of the dims and across it in others: either form is taken.
SHAPES = {2: [(40, 36), (36, 40)], 3: [(40, 3, 36), (4, 40, 20), (3, 20, 7)]}
DTYPES = ["float32", "bfloat16", "float64", "float16", "int64", "int32", "bool"]


def grown(e, name: str, shapes: dict = SHAPES):
    """Calls of an operator with tensors of one shape: larger ones in their place, which have the values of other samples."""
    for c in SAMPLES[e.row.samples](Maker(e.schema.full, name)):
        found = [v for v in flattened([list(c.args), list(c.kwargs.values())]) if isinstance(v, T)]
        if not found or len({t.data.shape for t in found}) != 1 or found[0].data.ndim not in shapes:
            continue
        for shape in shapes[found[0].data.ndim]:
            m = Maker(f"{e.schema.full}/{shape}", name)

            def larger(v, m=m, shape=shape):
                if isinstance(v, T):
                    return m.tensor(*shape, dtype=v.dtype) if v.data.size and v.dtype == m.dtype else T(np.resize(v.data, shape), v.dtype)
                return type(v)(larger(w) for w in v) if isinstance(v, (list, tuple)) else v

            yield Call(larger(c.args), {k: larger(v) for k, v in c.kwargs.items()}), shape


def lying(order):
    """Makes tensors whose dims lie in memory in that order."""
    back = [order.index(d) for d in range(len(order))]
    return lambda t: tensor(t).permute(order).contiguous().permute(back)


def results(op, c, make, graded: bool) -> list[bytes]:
    args, kwargs = convert(c.args, make, dtype), {k: convert(v, make, dtype) for k, v in c.kwargs.items()}
    if graded:
        args = tuple(a.requires_grad_() if isinstance(a, strata.Tensor) and a.is_floating_point() else a for a in args)
    made = op(*args, **kwargs)
    found = outputs(made)
    leaves = [a for a in args if isinstance(a, strata.Tensor) and a.requires_grad]
    tops = [r for r in flattened([made]) if isinstance(r, strata.Tensor) and r.requires_grad]
    if leaves and tops:
        weights = [strata.arange(1, r.numel() + 1).to(r.dtype).reshape(r.shape) / r.numel() for r in tops]
        found += outputs([g for g in strata.autograd.grad(tops, leaves, weights, allow_unused=True) if g is not None])
    return [bits(a) for a in found]


def compare_orders(entry, shapes: dict, names, graded, threads) -> None:
    """The operator's bits are the same in all orders of its tensors' dims, with those numbers of threads."""
    op, before, compared = operator(entry.schema), strata.get_num_threads(), 0
    try:
        for name in names:
            for c, shape in grown(entry, name, shapes):
                want = None
                for order in permutations(range(len(shape))):
                    for count in threads:
                        strata.set_num_threads(count)
                        try:
                            got = results(op, c, lying(list(order)), name in graded and not entry.schema.name.endswith("_"))
                        except (RuntimeError, NotImplementedError, ValueError, TypeError, IndexError):
                            assert want is None, f"{name} {shape} {order}: raises in one order alone"
                            break
                        want = want or got
                        assert got == want, f"{name} {shape} {order}, {count} threads"
                        compared += 1
    finally:
        strata.set_num_threads(before)
    if not compared:
        pytest.skip("its samples have tensors of several shapes")


@pytest.mark.parametrize("entry", CASES, ids=lambda e: e.schema.full)
def test_all_row_operators(entry):
    compare_orders(entry, SHAPES, DTYPES, graded=("float32", "bfloat16"), threads=(1, 2))


def of_rows(dtype, name: str) -> dict:
    """The functions of OPERATORS that take such elements."""
    return {
        op: f for op, f in OPERATORS.items()
        if (dtype.is_floating_point or op in INTEGRAL) and not (name == "bool" and op.startswith("arg")) and "weight" not in op
    }


OPERATORS = {
    "softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(-1), "logsumexp": lambda x: x.logsumexp(-1),
    "std_mean": lambda x: strata.std_mean(x, -1), "var": lambda x: x.var(-1), "norm": lambda x: x.norm(dim=-1),
    "norm3": lambda x: x.norm(3, dim=-1), "mean": lambda x: x.mean(-1), "sum": lambda x: x.sum(-1), "prod": lambda x: x.prod(-1),
    "amax": lambda x: x.amax(-1), "max": lambda x: x.max(-1), "min": lambda x: x.min(-1), "argmax": lambda x: x.argmax(-1),
    "argmin": lambda x: x.argmin(-1), "aminmax": lambda x: strata.aminmax(x, dim=-1), "any": lambda x: x.any(-1),
    "all": lambda x: x.all(-1), "layer_norm": lambda x: strata.nn.functional.layer_norm(x, x.shape[-1:]),
    "layer_norm_weight": lambda x: strata.nn.functional.layer_norm(x, x.shape[-1:], x.flatten()[: x.shape[-1]], x.flatten()[: x.shape[-1]]),
}
INTEGRAL = ("sum", "prod", "amax", "max", "min", "argmax", "argmin", "aminmax", "any", "all")


def listed(result):
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", [*FLOATS, "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 64, 130, 1023, 1024, 1025])
def test_many_rows_are_each_row_alone(name, length):
    strata.manual_seed(length)
    for rows in (5, 20):
        x = (strata.randn(4, rows, length) * 3).to(dtype(name))
        if x.is_floating_point() and length > 2:
            x[1, 3, length // 2], x[2, 4, -1] = float("nan"), float("inf")
            x[0, 1], x[0, 1, 1] = 0.0, -0.0
        forms = [x, x.transpose(1, 2).contiguous().transpose(1, 2), x.permute(2, 0, 1).contiguous().permute(1, 2, 0),
                 x.permute(2, 1, 0).contiguous().permute(2, 1, 0), strata.stack([x, x], -1)[..., 0], x.transpose(0, 1).contiguous().transpose(0, 1)]
        for op, f in of_rows(x.dtype, name).items():
            alone = [[listed(f(x[i, j : j + 1].clone())) for j in range(rows)] for i in range(4)]
            for k in range(len(alone[0][0])):
                want = bits(outputs(strata.stack([strata.cat([r[k] for r in line]) for line in alone]))[0])
                for number, y in enumerate(forms):
                    assert bits(outputs(listed(f(y))[k])[0]) == want, (op, rows, number)


def test_weights_lie_across_the_columns():
    strata.manual_seed(0)
    x = strata.randn(6, 24, 40)
    f = OPERATORS["layer_norm_weight"]
    want = bits(outputs(f(x))[0])
    weight = x.flatten()[:40]
    y = x.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    assert bits(outputs(strata.nn.functional.layer_norm(y, (40,), weight, weight))[0]) == want


def test_results_in_the_place_of_operands():
    strata.manual_seed(0)
    for shape, dim in (((6, 5, 40), 1), ((70, 20), 0), ((200, 3), 1)):
        x = strata.randn(*shape)
        want = x.softmax(dim)
        strata.softmax(x, dim, out=x)
        assert strata.equal(x, want)


@pytest.mark.parametrize("threads", [1, 2])
def test_all_of_tensors_in_another_order(threads):
    strata.manual_seed(0)
    before = strata.get_num_threads()
    strata.set_num_threads(threads)
    try:
        for shape in ((600, 500), (70, 64, 50), (3, 70000), (9, 10, 11, 100), (2, 66000, 3)):
            x = strata.randn(*shape)
            for order in permutations(range(len(shape))):
                y = x.permute(order)
                for f in (strata.sum, strata.var, strata.argmax, strata.max, lambda t: t.logsumexp(tuple(range(t.dim())))):
                    assert bits(outputs(f(y))[0]) == bits(outputs(f(y.contiguous()))[0]), (shape, order)
    finally:
        strata.set_num_threads(before)
