"""The argument parser of generated entries: what it accepts and what it says when nothing fits."""

import numpy as np
import pytest
import strata


@pytest.fixture
def x():
    return strata.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])


def message(error):
    return str(error.value)


# ---- positions, keywords, defaults


def test_ints_may_come_one_by_one_or_as_a_list(x):
    for made in (x.view(3, 2), x.view((3, 2)), x.view([3, 2]), x.view(strata.Size([3, 2])), x.view(size=(3, 2))):
        assert made.shape == (3, 2)
    assert strata.zeros(2, 3).shape == strata.zeros((2, 3)).shape == strata.zeros(size=(2, 3)).shape == (2, 3)
    assert strata.zeros(()).shape == strata.zeros([]).shape == ()
    assert strata.zeros(2, dtype=strata.int64).shape == (2,)


def test_ints_of_other_libraries_are_ints(x):
    assert x.view(np.int64(3), np.int32(2)).shape == (3, 2)
    assert x.view(strata.tensor(3), 2).shape == (3, 2)
    assert x.sum(np.int64(0)).shape == (3,)
    assert x.unsqueeze(strata.tensor(0)).shape == (1, 2, 3)
    assert x.sum(strata.tensor(0)).shape == (3,)


def test_one_int_stands_for_a_list(x):
    assert x.sum(0).tolist() == x.sum((0,)).tolist() == x.sum([0]).tolist() == [3.0, 5.0, 7.0]
    assert x.sum(dim=1).tolist() == [3.0, 12.0]


def test_names_of_numpy_are_known(x):
    assert strata.sum(x, axis=0, keepdims=True).shape == (1, 3)
    assert strata.sum(x=x).item() == strata.sum(input=x).item() == 15.0
    assert strata.add(x, x2=x).tolist() == strata.add(input=x, other=x).tolist()


def test_none_asks_for_the_default(x):
    assert strata.add(x, 1, out=None).tolist() == (x + 1).tolist()
    assert strata.zeros(2, dtype=None, device=None).dtype == strata.float32
    assert x.sum(dtype=None).item() == 15.0


def test_out_is_written_and_returned(x):
    out = strata.zeros(2, 3)
    assert strata.add(x, x, out=out) is out
    assert out.tolist() == (x * 2).tolist()


def test_dtypes_of_python(x):
    assert strata.zeros(1, dtype=float).dtype == strata.float64
    assert strata.zeros(1, dtype=int).dtype == strata.int64
    assert strata.zeros(1, dtype=bool).dtype == strata.bool


def test_factories_take_requires_grad_and_ignore_layout():
    t = strata.zeros(2, requires_grad=True, layout=strata.strided, pin_memory=False)
    assert t.requires_grad and t.is_leaf


# ---- numbers


@pytest.mark.parametrize(
    ("number", "dtype"),
    [
        (2, strata.int64),
        (True, strata.int64),
        (2.5, strata.float32),
        (2j, strata.complex64),
        (np.float64(2.5), strata.float32),
        (np.int32(2), strata.int64),
    ],
)
def test_scalars_promote_by_category(number, dtype):
    result = strata.tensor([1, 2]) + number
    assert result.dtype == dtype
    assert result.tolist() == [1 + number, 2 + number]


def test_a_number_may_stand_for_a_tensor():
    x = strata.tensor([1.0, 2.0])
    assert strata.mul(2, x).tolist() == [2.0, 4.0]
    assert strata.sub(2, x).tolist() == [1.0, 0.0]
    assert strata.add(1, 2).item() == 3
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        strata.maximum(x, 1)


def test_a_0_dim_tensor_may_stand_for_a_number(x):
    assert strata.add(x, x, alpha=strata.tensor(2)).tolist() == (x * 3).tolist()
    with pytest.raises(TypeError):
        strata.add(x, x, alpha=strata.tensor(2.0, requires_grad=True))
    with pytest.raises(TypeError):
        strata.add(x, x, alpha=strata.tensor([2.0]))


def test_large_ints():
    i = strata.tensor([0, 1])
    assert (i + (-(2**63))).tolist() == [-(2**63), -(2**63) + 1]
    assert (strata.tensor([0.0]) + 2**63).item() == 2.0**63
    with pytest.raises(OverflowError):
        i + 2**64
    with pytest.raises(TypeError, match="zeros.*'size' failed to unpack.*Overflow when unpacking long long"):
        strata.zeros(2**70)


# ---- what does not fit


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: strata.add(x, "a"), "add(): argument 'other' (position 2) must be Tensor, not str"),
        (lambda x: x.add("a"), "add(): argument 'other' (position 1) must be Tensor, not str"),
        (lambda x: strata.add(x, other="a"), "add(): argument 'other' must be Tensor, not str"),
        (lambda x: strata.neg(1), "neg(): argument 'input' (position 1) must be Tensor, not int"),
        (lambda x: strata.neg(), 'neg() missing 1 required positional arguments: "input"'),
        (lambda x: strata.neg(x, x), "neg() takes 1 positional argument but 2 were given"),
        (lambda x: strata.neg(x, input=x), "neg() got multiple values for argument 'input'"),
        (lambda x: strata.neg(x, foo=1), "neg() got an unexpected keyword argument 'foo'"),
        (lambda x: x.add(1, alpha="a"), "add(): argument 'alpha' must be Number, not str"),
        (lambda x: x.sum(0, 1), "sum(): argument 'keepdim' (position 2) must be bool, not int"),
        (lambda x: x.sum(0, np.bool_(True)), "sum(): argument 'keepdim' (position 2) must be bool, not numpy.bool"),
        (lambda x: strata.zeros("a"), "zeros(): argument 'size' (position 1) must be tuple of ints, not str"),
        (lambda x: strata.zeros(True), "zeros(): argument 'size' (position 1) must be tuple of ints, not bool"),
        (lambda x: strata.zeros(2.0), "zeros(): argument 'size' (position 1) must be tuple of ints, not float"),
        (
            lambda x: strata.zeros((2, "a")),
            "zeros(): argument 'size' (position 1) must be tuple of ints, but found element of type str at pos 1",
        ),
        (lambda x: strata.zeros(2, 3, size=(2,)), "zeros() got multiple values for argument 'size'"),
        (lambda x: strata.zeros(), 'zeros() missing 1 required positional arguments: "size"'),
        (lambda x: strata.zeros(2, dtype="a"), "zeros(): argument 'dtype' must be strata.dtype, not str"),
        (lambda x: x.mul(None), "mul(): argument 'other' (position 1) must be Tensor, not NoneType"),
    ],
)
def test_type_errors_name_the_argument(x, call, text):
    with pytest.raises(TypeError) as error:
        call(x)
    assert message(error) == text


def test_type_errors_list_the_candidates(x):
    with pytest.raises(TypeError) as error:
        strata.sum(x, "a")
    lines = message(error).splitlines()
    assert lines[0] == (
        "sum() received an invalid combination of arguments - got (Tensor, str), but expected one of:"
    )
    assert " * (Tensor input, *, strata.dtype dtype = None)" in lines
    assert "      didn't match because some of the arguments have invalid types: (Tensor, !str!)" in lines


# ---- operators


@pytest.mark.parametrize("other", [None, "a", object(), [1, 2], {}])
def test_foreign_operands_are_refused_by_python(x, other):
    with pytest.raises(TypeError, match=r"unsupported operand|can only concatenate"):
        x + other
    with pytest.raises(TypeError):
        other - x
    assert (x == other) is False
    assert (x != other) is True


def test_reflected_operators():
    x = strata.tensor([1.0, 2.0, 4.0])
    assert (1 + x).tolist() == [2.0, 3.0, 5.0]
    assert (1 - x).tolist() == [0.0, -1.0, -3.0]
    assert (2 * x).tolist() == [2.0, 4.0, 8.0]
    assert (4 / x).tolist() == [4.0, 2.0, 1.0]
    assert (2**x).tolist() == [2.0, 4.0, 16.0]


def test_a_type_that_knows_tensors_is_asked():
    class Knows:
        def __radd__(self, other):
            return "radd"

        def __eq__(self, other):
            return "eq"

    assert strata.ones(1) + Knows() == "radd"
    assert (strata.ones(1) == Knows()) == "eq"


def test_inplace_operators_keep_the_object():
    x = y = strata.tensor([1.0, 2.0])
    x += 1
    x *= strata.tensor([2.0, 3.0])
    x -= 1
    x /= 2
    assert x is y
    assert x.tolist() == [1.5, 4.0]


# ---- objects that change, or have no end


def test_lists_that_change_while_they_are_read():
    class Changing:
        def __init__(self, home):
            self.home = home

        def __index__(self):
            self.home.clear()
            return 1

        def __float__(self):
            return float(self.__index__())

    def holding(*rest):
        home = []
        home += [Changing(home), *rest]
        return home

    for _ in range(50):
        for data in (holding(1.0, 2.0), [[1.0, 2.0], holding(2.0)]):
            with pytest.raises(ValueError, match="expected sequence of length"):
                strata.tensor(data, dtype=strata.float32)
        strata.zeros(2, 2, 2)[holding(0, None, strata.tensor(1))]
        pair = [strata.zeros(0), strata.zeros(0, dtype=strata.int64)]
        with pytest.raises(TypeError, match="out must be a tuple of 2 Tensors, got 0"):
            strata.max(strata.ones(2, 2), dim=Changing(pair), out=pair)


def test_lists_that_hold_themselves():
    one, other = [1], [1]
    one += [other, other]
    other += [one, one]
    for data in (one, [[one]]):
        with pytest.raises((TypeError, ValueError)):
            strata.tensor(data)
        for call in (strata.add, strata.cat, strata.ops.aten.add.Tensor, strata.ops.aten.cat):
            with pytest.raises(TypeError):
                call(data, 1)


def test_keywords_that_are_no_text():
    for call in (strata.zeros, strata.tensor, strata.ops.aten.relu.default):
        with pytest.raises(TypeError, match="udc80"):
            call(1, **{"\udc80": 1})
