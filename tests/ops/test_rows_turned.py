"""Sums of whole tensors have the same bits whichever of their dims lie along memory: large ones, in parts of 65,536 elements."""

from __future__ import annotations

from table import bits, dtype, outputs, pytest, strata

# Rows of 2,048, 768, 1,000, 1,001 and 33 elements, and such as are longer than a part, once and twice; of one turned column only.
SHAPES = [(2048, 100), (768, 301), (1000, 333), (1001, 200), (33, 4100), (65536, 20), (131072, 17), (70000, 19), (200000, 1), (16, 9000)]
# Powers of two, of eight parts and more: a strip of tree T's positions, several, and columns that share one.
SHAPES += [(2048, 300), (1024, 520), (512, 1100), (4096, 140), (64, 9001), (32, 16400), (8192, 70)]
SUMS = [lambda x: x.sum(), lambda x: x.mean(), lambda x: x.norm(), lambda x: x.nansum(), lambda x: (1 + x / 65536).prod()]
ORDERS = [(2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 2, 0), (1, 0, 2)]


@pytest.fixture(params=[("base", 2), ("v3", 2), (None, 1), (None, 2)], ids=lambda p: f"{p[0]}-{p[1]}", autouse=True)
def machine(request):
    """Each instruction set that the machine has, and both numbers of threads."""
    isa, threads = request.param
    have, before = strata._C.cpu_capability(), strata.get_num_threads()
    if isa == "v3" and have == "base":
        pytest.skip("no AVX2 here")
    strata._C.set_cpu_capability(isa or have)
    strata.set_num_threads(threads)
    yield
    strata._C.set_cpu_capability(have)
    strata.set_num_threads(before)


def result(x):
    return [bits(a) for a in outputs(x)]


def values(shape, name: str):
    strata.manual_seed(sum(shape))
    x = strata.randn(*shape) * 100
    return (x > 0 if name == "bool" else x).to(dtype(name))


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "float16", "int64", "int32", "uint8", "bool"])
def test_transposed_matrices(name):
    for shape in SHAPES:
        turned = values(shape, name).t()
        straight = turned.contiguous()
        for number, f in enumerate(SUMS if turned.is_floating_point() else SUMS[:1]):
            assert result(f(turned)) == result(f(straight)), (shape, number)


def test_cubes():
    for shape in ((40, 70, 64), (5, 300, 129)):
        x = values(shape, "float32")
        for order in ORDERS:
            turned = x.permute(order)
            assert result(turned.sum()) == result(turned.contiguous().sum()), (shape, order)
            part = turned[:, 1:]
            assert result(part.sum()) == result(part.contiguous().sum()), (shape, order)


def test_rows_of_turned_matrices():
    x = values((3, 700, 128), "float32").transpose(1, 2)
    assert result(x.sum((1, 2))) == result(x.contiguous().sum((1, 2)))


def test_the_order_is_the_logical_one():
    """A sum of ones that a huge number swallows depends on where that number stands."""
    x = strata.ones(2048, 64)
    x[0, 1], x[0, 2] = 2.0**30, -(2.0**30)  # in the same position of tree T, 2,048 elements from each other
    assert x.t().sum().item() == x.t().contiguous().sum().item() != x.sum().item()


def test_many_parts_and_signs_of_zeros():
    x = values((1024, 4500), "float32")  # 70 parts, whose accumulators do not fit side by side
    assert result(x.t().sum()) == result(x.t().contiguous().sum())
    x = strata.full((2048, 256), -0.0)
    assert result(x.t().sum()) == result(x.t().contiguous().sum())
