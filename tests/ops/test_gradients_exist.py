"""An operand that has a gradient in PyTorch, if only one of zeros, has one here: programs add and clip them."""

from __future__ import annotations

import json
import warnings

from gradient_cases import pattern
from table import ROOT, SKIPS, pytest, recorded_calls, strata, tensor

RECORDED = json.loads((ROOT / "tests/data/gradients.json").read_text())


@pytest.mark.parametrize("name", list(RECORDED))
def test_none_is_missing(name):
    reason = SKIPS["gradients"].get(name)
    if reason:
        pytest.skip(reason)
    op, made = recorded_calls(name)
    assert len(made) == len(RECORDED[name]), "the samples changed: record anew by tools/record_gradients.py"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, (c, want) in enumerate(zip(made, RECORDED[name], strict=True)):
            got = pattern(strata, tensor, op, c) if want else None
            if got is None:
                continue
            for ours, theirs in zip(got, want, strict=True):
                missing = [k for k, letter in enumerate(theirs) if letter == "g" and (ours == "-" or ours[k] == "N")]
                assert not missing, f"{name} sample {i}: operands {missing} have no gradient ({ours}, expected {theirs})"
