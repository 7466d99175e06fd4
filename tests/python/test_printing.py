"""repr(tensor) against texts recorded from PyTorch, and what the recorded cases cannot hold."""

import json
import math
import re
from pathlib import Path

import pytest
import strata
from strata._tensor_str import PRINT_OPTS, tensor_repr

GOLDEN = Path(__file__).parent.parent / "data" / "printing.json"
CASES = json.loads(GOLDEN.read_text())["cases"]
DTYPE_PREFIX = str(strata.float32).split(".")[0] + "."


@pytest.fixture(autouse=True)
def default_options():
    strata.set_printoptions(profile="default")
    yield
    strata.set_printoptions(profile="default")
    strata.set_default_dtype(strata.float32)


def decode(value):
    if isinstance(value, list):
        return complex(decode(value[0]), decode(value[1]))
    return float(value) if isinstance(value, str) else value


def build(case):
    shape = case["shape"]
    if "line" in case:
        offset, step = case["line"]
        values = [offset + step * i for i in range(math.prod(shape))]
    else:
        values = [decode(v) for v in case["values"]]
    t = strata.tensor(values, dtype=getattr(strata, case["dtype"])).reshape(shape)
    if "grad" in case:
        t.requires_grad_()
        if case["grad"] == "add":
            t = t + 0
    return t


def joined(text):
    """The text with what follows the values on their last line: PyTorch's dtypes have a shorter name, which decides where
    a line of 80 columns ends."""
    return re.sub(r",\n? +(dtype|requires_grad|grad_fn|size)=", r", \1=", text)


def test_recorded_texts():
    wrong = []
    for case in CASES:
        t = build(case)
        strata.set_default_dtype(getattr(strata, case.get("default", "float32")))
        strata.set_printoptions(profile="default")
        strata.set_printoptions(**case["options"])
        expected = case["text"].replace("torch.", DTYPE_PREFIX)
        same = joined(tensor_repr(t)) == joined(expected) if "torch." in case["text"] else tensor_repr(t) == expected
        if not same:
            wrong.append((case, tensor_repr(t)))
        strata.set_default_dtype(strata.float32)
    assert len(CASES) > 400
    assert not wrong, f"{len(wrong)} of {len(CASES)} differ, the first: {wrong[0][0]['text']}\n{wrong[0][1]}"


def test_repr_is_tensor_repr():
    for case in CASES[:100]:
        t = build(case)
        assert repr(t) == str(t) == tensor_repr(t)


def test_parameter_and_subclass():
    class Named(strata.Tensor):
        pass

    p = strata.nn.Parameter(strata.ones(2))
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert repr(strata.ones(2).as_subclass(Named)) == "Named([1., 1.])"


def test_meta_has_no_values():
    t = strata.empty(2, 3, device="meta")
    assert tensor_repr(t) == "tensor(..., device='meta', size=(2, 3))"


def test_tensor_contents_replaces_the_values():
    assert tensor_repr(strata.ones(2), tensor_contents="<2 ones>") == "tensor(<2 ones>)"


def test_full_profile_prints_every_element():
    strata.set_printoptions(profile="full")
    assert "..." not in tensor_repr(strata.arange(1500))


def test_printoptions_restores():
    with strata.printoptions(precision=2, sci_mode=True):
        assert tensor_repr(strata.tensor([1.12345])) == "tensor([1.12e+00])"
    assert PRINT_OPTS.precision == 4 and PRINT_OPTS.sci_mode is None
    assert strata.get_printoptions()["threshold"] == 1000


def test_unknown_profile_is_refused():
    with pytest.raises(ValueError, match="profile must be one of"):
        strata.set_printoptions(profile="tiny")
