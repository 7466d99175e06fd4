"""strata._check and its siblings."""

from __future__ import annotations

import pytest
import strata


@pytest.mark.parametrize("check, error", [
    (strata._check, RuntimeError), (strata._check_index, IndexError), (strata._check_value, ValueError), (strata._check_type, TypeError),
    (strata._check_not_implemented, NotImplementedError),
])  # fmt: skip
def test_a_condition_that_does_not_hold(check, error):
    assert check(True) is None
    with pytest.raises(error, match="^why$"):
        check(False, lambda: "why")
    with pytest.raises(error, match="Expected cond to be True, but got False"):
        check(False)
    with pytest.raises(TypeError, match="message must be a callable"):
        check(False, "why")


def test_conditions_are_bools():
    with pytest.raises(TypeError, match="cond must be a bool, but got <class 'int'>"):
        strata._check(1)
    with pytest.raises(TypeError, match="_check_tensor_all"):
        strata._check(strata.tensor(True))


def test_conditions_of_tensors_and_sizes():
    strata._check_tensor_all(strata.tensor([True, True]))
    with pytest.raises(RuntimeError, match="^some$"):
        strata._check_tensor_all(strata.tensor([True, False]), lambda: "some")
    for wrong in (True, strata.tensor([1])):
        with pytest.raises(TypeError, match="cond"):
            strata._check_tensor_all(wrong)
    strata._check_is_size(3)
    for i in (-1, 4):
        with pytest.raises(RuntimeError):
            strata._check_is_size(i, max=3)
