"""Operators over lists of tensors are those of each tensor, eager and compiled; conditions that programs state."""

from __future__ import annotations

import pytest
import strata
from strata import _foreach


def lists(seed: int) -> list[strata.Tensor]:
    generator = strata.Generator().manual_seed(seed)
    return [strata.rand(2, k, generator=generator) * 0.8 + 0.1 for k in (1, 3, 0, 4)]


def one_by_one(name: str, rows) -> list[strata.Tensor]:
    return [getattr(strata.Tensor, name)(*row) for row in rows]


def agrees(name: str, args: tuple, want: list[strata.Tensor]) -> None:
    for way in (lambda f: f, lambda f: strata.compile(f, fullgraph=True)):
        for end in ("", "_"):
            function = getattr(strata, f"_foreach_{name}{end}")
            first = [t.clone() for t in args[0]]
            found = way(lambda *a, function=function: function(*a))(first, *args[1:])
            assert all(strata.equal(a, b) for a, b in zip(found, want, strict=True)), (name, end)
            if end:
                assert all(a is b and strata.equal(a, c) for a, b, c in zip(first, found, want, strict=True))


@pytest.mark.parametrize("name", _foreach._UNARY.split())
def test_of_one_list(name: str) -> None:
    agrees(name, (lists(0),), one_by_one(name, [(t,) for t in lists(0)]))


@pytest.mark.parametrize("name", _foreach._BINARY.split())
def test_of_lists_and_numbers(name: str) -> None:
    single = {"maximum": "clamp_min", "minimum": "clamp_max"}
    a, b, numbers = lists(1), lists(2), [0.5, 1.0, 2.0, 3.0]
    agrees(name, (a, b), one_by_one(single.get(name, name), zip(a, b, strict=True)))
    agrees(name, (a, 0.5), one_by_one(single.get(name, name), [(t, 0.5) for t in a]))
    agrees(name, (a, numbers), one_by_one(single.get(name, name), zip(a, numbers, strict=True)))
    with pytest.raises(RuntimeError, match="same number of tensors, got 4 and 2"):
        getattr(strata, f"_foreach_{name}")(a, b[:2])
    with pytest.raises(RuntimeError, match="as scalar list, got 4 and 2"):
        getattr(strata, f"_foreach_{name}")(a, [1.0, 2.0])
    with pytest.raises(RuntimeError, match=f"_foreach_{name}: Tensor list must have at least one tensor"):
        getattr(strata, f"_foreach_{name}")([], 1.0)


def test_of_more_lists() -> None:
    a, b, c, numbers = lists(1), lists(2), lists(3), [0.5, 1.0, 2.0, 3.0]
    for weight in (0.3, numbers, c):
        weights = weight if isinstance(weight, list) else [weight] * 4
        agrees("lerp", (a, b, weight), [x.lerp(y, w) for x, y, w in zip(a, b, weights, strict=True)])
    for name in ("addcmul", "addcdiv"):
        for value in (0.5, numbers):
            values = value if isinstance(value, list) else [value] * 4
            want = [getattr(x, name)(y, z, value=v) for x, y, z, v in zip(a, b, c, values, strict=True)]
            agrees(name, (a, b, c, value), want)
    found = strata._foreach_addcmul(a, b, c, strata.tensor(numbers))
    assert all(strata.equal(x, y) for x, y in zip(found, strata._foreach_addcmul(a, b, c, numbers), strict=True))
    with pytest.raises(RuntimeError, match="dimension 1. Got 2"):
        strata._foreach_addcmul(a, b, c, strata.ones(2, 2))
    for t, x, y in zip(strata._foreach_add(a, b, alpha=2), a, b, strict=True):
        assert strata.equal(t, x.add(y, alpha=2))
    for t, y in zip(strata._foreach_pow(2.0, a), a, strict=True):
        assert strata.equal(t, strata.pow(2.0, y))


def test_of_copies_and_sums() -> None:
    a, b = lists(1), lists(2)
    assert [t.item() for t in strata._foreach_norm(a, 1)] == [strata.linalg.vector_norm(t, 1).item() for t in a]
    assert [t.item() for t in strata._foreach_max([a[0], a[3]])] == [a[0].max().item(), a[3].max().item()]
    copies = strata._foreach_clone(a)
    assert all(x is not y and strata.equal(x, y) for x, y in zip(copies, a, strict=True))
    strata._foreach_copy_(copies, b)
    assert all(strata.equal(x, y) for x, y in zip(copies, b, strict=True))
    strata._foreach_zero_(copies)
    assert not any(t.any() for t in copies)


def test_gradients() -> None:
    leaves = [t.requires_grad_() for t in lists(1)]
    sum(t.sum() for t in strata._foreach_mul(strata._foreach_exp(leaves), 2.0)).backward()
    for t in leaves:
        assert strata.equal(t.grad, (2 * t.exp()).detach())


def test_an_average_of_weights_compiles_to_eagers_bits() -> None:
    def average(of, by, decay):
        strata._foreach_lerp_(of, by, 1 - decay)

    a, b = lists(1), lists(2)
    copies = [t.clone() for t in a]
    average(a, b, 0.9)
    strata.compile(average, fullgraph=True)(copies, b, 0.9)
    assert all(strata.equal(x, y) for x, y in zip(a, copies, strict=True))


CHECKS = [
    (strata._check, RuntimeError), (strata._check_index, IndexError), (strata._check_value, ValueError), (strata._check_type, TypeError),
    (strata._check_not_implemented, NotImplementedError),
]  # fmt: skip


@pytest.mark.parametrize(("check", "kind"), CHECKS)
def test_checks(check, kind) -> None:
    check(True)
    with pytest.raises(kind, match="Expected cond to be True, but got False"):
        check(False)
    with pytest.raises(kind, match="three"):
        check(False, lambda: "three")
    with pytest.raises(TypeError, match="message must be a callable"):
        check(False, "three")
    with pytest.raises(TypeError, match="cond must be a bool, but got <class 'int'>"):
        check(1)
    with pytest.raises(TypeError, match="_check_tensor_all"):
        check(strata.tensor(True))


def test_checks_of_tensors_and_in_compiled_functions() -> None:
    strata._check_tensor_all(strata.tensor([True, True]))
    with pytest.raises(RuntimeError, match="no"):
        strata._check_tensor_all(strata.tensor([True, False]), lambda: "no")
    strata._check_is_size(3)
    with pytest.raises(RuntimeError):
        strata._check_is_size(-1)

    def f(x):
        strata._check(x.shape[0] < 4, lambda: f"at most 3, got {x.shape[0]}")
        return x * 2

    compiled = strata.compile(f)
    for n in (1, 2, 3):
        assert compiled(strata.ones(n)).tolist() == [2.0] * n
    with pytest.raises(RuntimeError, match="at most 3, got 5"):
        compiled(strata.ones(5))


def test_nothing_is_written_where_a_later_one_is_refused():
    for name, rest in (("add_", [[True, 1j]]), ("sqrt_", []), ("div_", [[1, 2]]), ("addcmul_", [[strata.ones(2)] * 2, [strata.ones(2)] * 2]), ("lerp_", [[strata.ones(2)] * 2, 0.5])):
        first, second = strata.ones(2) * 3, strata.ones(2, dtype=strata.int64)
        with pytest.raises(RuntimeError):
            getattr(_foreach, f"_foreach_{name}")([first, second], *rest)
        assert first.tolist() == [3.0, 3.0], name


def test_what_is_refused_names_the_function_and_leaves_all_as_it_was() -> None:
    kept, spread, whole = strata.ones(3, requires_grad=True), strata.tensor([-4.0]).expand(3), strata.ones(3, dtype=strata.int32)
    refused = ((kept, 2), (kept, strata.ones(3)), (spread, 2), (spread, strata.ones(3)), (whole, strata.tensor(0.5)), (strata.ones(3), strata.ones(2)))
    for last, other in refused:
        for name in ("add", "mul", "sub", "maximum")[: 3 if last is whole else 4]:  # maximum's copies convert
            for others in (other, [strata.ones(3), other] if isinstance(other, strata.Tensor) else [1, other]):
                first = strata.zeros(3)
                with pytest.raises(RuntimeError, match=f"foreach_{name}"):
                    getattr(strata, f"_foreach_{name}_")([first, last], others)
                assert not first.any(), (name, last, other)
    with pytest.raises(TypeError, match="_foreach_add_: expected self to be a list or tuple of Tensors, got int at 1"):
        strata._foreach_add_([strata.tensor(2), 1], 2)
