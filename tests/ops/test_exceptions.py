"""The words of errors that users match on, and which of two wrong things is named. test_forward.py compares the types of
errors with PyTorch's."""

from __future__ import annotations

import re

import kit
from table import ENTRIES, operator, pytest, skip_reason, strata


def unused_input():
    x, y = strata.ones(2, requires_grad=True), strata.ones(2, requires_grad=True)
    return strata.autograd.grad((x * 2).sum(), [x, y])


def leaf():
    return strata.ones(3, requires_grad=True).add_(strata.ones(5))


NUMBER = "argument 'input' (position 1) must be Tensor, not int"
BOOL, LONG, COMPLEX = strata.tensor([True]), strata.ones(3, dtype=strata.int64), strata.ones(2, dtype=strata.complex64)
WORDS = {
    "negative mask": (lambda: strata.neg(BOOL), RuntimeError, "use the `~` or `logical_not()` operator instead"),
    "minus mask": (lambda: -BOOL, RuntimeError, "use the `~` or `logical_not()` operator instead"),
    "is_complex": (lambda: strata.is_complex(3), TypeError, f"is_complex(): {NUMBER}"),
    "numel": (lambda: strata.numel(3), TypeError, f"numel(): {NUMBER}"),
    "is_signed": (lambda: strata.is_signed(3), TypeError, f"is_signed(): {NUMBER}"),
    "is_same_size": (lambda: strata.is_same_size(BOOL, 3), TypeError, "argument 'other' (position 2) must be Tensor, not int"),
    "mean": (lambda: LONG.mean(), RuntimeError, "mean(): could not infer output dtype"),
    "unused": (unused_input, RuntimeError, "The differentiated Tensor at index 1 appears to not have been used in the graph."),
    "missing file": (lambda: strata.load("/no/such/file"), FileNotFoundError, "[Errno 2] No such file or directory: '/no/such/file'"),
    "a folder": (lambda: strata.load("/"), IsADirectoryError, "[Errno 21] Is a directory: '/'"),
    "leaf before shape": (leaf, RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation"),
    "shape before result": (lambda: LONG.add_(strata.ones(2, 3)), RuntimeError, "doesn't match the broadcast shape"),
    "shape before dtype": (lambda: COMPLEX < strata.ones(3), RuntimeError, "The size of tensor a (2) must match the size of tensor b (3)"),
    "the last dim first": (lambda: strata.ones(1, 16, 32) + strata.ones(1, 17, 16), RuntimeError, "a (32) must match the size of tensor b (16) at non-singleton dimension 2"),
    "the last dim first, expanded": (lambda: strata.ones(2, 3).expand(4, 5), RuntimeError, "expanded size of the tensor (5) must match the existing size (3) at non-singleton dimension 1"),
    "the last dim first, expanded for a product": (lambda: strata.addmm(strata.ones(2, 3), strata.ones(4, 2), strata.ones(2, 5)), RuntimeError, "expanded size of the tensor (5) must match the existing size (3) at non-singleton dimension 1"),
    "the last dim first, written": (lambda: strata.ones(2, 3).copy_(strata.ones(3, 2)), RuntimeError, "a (3) must match the size of tensor b (2) at non-singleton dimension 1"),
    "dim before dtype": (lambda: strata.softmax(LONG, 5), IndexError, "Dimension out of range"),
    "beyond 64 bits": (lambda: strata.zeros([1, 2**63]), TypeError, "zeros(): argument 'size' failed to unpack the object at pos 2"),
    "text among numbers": (lambda: strata.tensor([True, "x"]), TypeError, "new(): invalid data type 'str'"),
}


@pytest.mark.parametrize("name", WORDS)
def test_words(name):
    work, kind, words = WORDS[name]
    with pytest.raises(kind, match=re.escape(words)) as caught:
        work()
    assert type(caught.value) is kind and "aten::" not in str(caught.value)


def test_a_missing_file_has_its_number_and_name():
    with pytest.raises(OSError) as caught:
        strata.load("/no/such/file")
    assert (caught.value.errno, caught.value.filename) == (2, "/no/such/file")


def test_equal_compares_values_of_two_dtypes():
    ones = strata.ones(2)
    assert strata.equal(ones, ones.long()) and strata.equal(ones.to(strata.complex64), ones)
    assert not strata.equal(ones, ones.long() + 1) and not strata.equal(ones, strata.ones(3, dtype=strata.int64))


def with_wrong_shapes():
    for e in ENTRIES:
        if e.kind == "pointwise" and len(e.kernel_inputs()) == 2 and not skip_reason(e, "exceptions"):
            yield e


@pytest.mark.parametrize("entry", with_wrong_shapes(), ids=lambda e: e.schema.full)
def test_shapes_come_before_dtypes(entry):
    """Of a wrong shape and a dtype that an operator lacks, the shape is named, whatever the dtype."""
    two = [a for a in entry.schema.args if a.is_tensor]
    if len(two) != 2 or entry.schema.args[0].type != "Tensor" or entry.schema.args[1].type != "Tensor":
        pytest.skip("not of two tensors")
    for dtype in kit.DTYPES:
        a, b = (strata.ones(n, dtype=getattr(strata, dtype)) for n in (2, 3))
        rest = {x.name: {"int": 1, "bool": True}.get(x.type, 0.5) for x in entry.schema.args[2:] if x.default is None}
        with pytest.raises(RuntimeError) as caught:
            operator(entry.schema)(a, b, **rest)
        assert type(caught.value) is RuntimeError, f"{dtype}: {caught.value}"
