"""Corner cases beside PyTorch's recorded outcomes: the same dtype, shape and values to six digits, or an error where it
raises one."""

from __future__ import annotations

import gzip
import json
import re
import warnings

import pytest
from expression_cases import FAMILIES, outcome
from table import ROOT, strata

RECORDED = json.loads(gzip.decompress((ROOT / "tests/data/expressions.json.gz").read_bytes()))
# Where this library means something else, and why.
OTHERWISE = {
    r"torch\.a(max|min)\(.*dim=None": "the schema has a list of dims there, and None is none",
    r"trapezoid\(.*dim=None": "None is the default",
    r"unique_consecutive\(.*complex64": "equality is enough for it, and complex numbers have that",
    r"mode\(.*complex64": "complex numbers have no order, be there any or none",
}


def differs(expression: str, want: str) -> str | None:
    got = outcome(expression, strata)
    if "complex32" in want:  # has no storage here
        want = "raises NotImplementedError"
        return None if got == want else f"{expression}\n    is {got}\n    expected {want}"
    if got == want or (got.startswith("raises ") and want.startswith("raises ")):
        return None
    return None if any(re.search(p, expression) for p in OTHERWISE) else f"{expression}\n    is {got}\n    expected {want}"


@pytest.mark.parametrize("family", list(FAMILIES))
def test_as_recorded(family):
    cases = list(FAMILIES[family]())
    assert len(cases) == len(RECORDED[family]), "the cases changed: record anew by tools/record_expressions.py"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [d for e, want in zip(cases, RECORDED[family], strict=True) if (d := differs(e, want))]
    assert not found, f"{len(found)} of {len(cases)} differ:\n" + "\n".join(found[:20])
