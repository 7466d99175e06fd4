"""What the census of ./run coverage takes for said."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
import census  # noqa: E402

from gen import model  # noqa: E402


def entry(op: str, **keys: str) -> model.Entry:
    return model.make_entry({"op": op, "doc": "Of a test.", **keys}, "test", 1)


ENTRIES = [
    entry("twice(Tensor self) -> Tensor", compute="self + self"),
    entry("turned(Tensor(a) self) -> Tensor(a)", view="turned"),
    entry("by_hand(Tensor self) -> Tensor", cpu="by_hand", order="none"),
    entry("fresh(Tensor(a) self) -> Tensor(a)", header="fresh"),
    entry("over_fresh(Tensor self) -> Tensor", composite="ops::twice(ops::fresh(self))"),
    entry("mixed(Tensor self) -> Tensor", compute="self"),
    entry("mixed.two(Tensor self, int n) -> Tensor", cpu="mixed", order="none"),
    entry("composed(Tensor self) -> Tensor", composite='ops::twice(ops::turned(self), Scalar(2), "a(b)")'),
    entry("composed_again(Tensor self) -> Tensor", composite="std::get<0>(ops::composed(self))"),
    entry("itself(Tensor self) -> Tensor", composite="self"),
    entry("named(Tensor self) -> Tensor", composite="some_function"),
    entry("by_helper(Tensor self) -> Tensor", composite="helper(ops::twice(self))"),
    entry("over_hand(Tensor self) -> Tensor", composite="ops::twice(ops::by_hand(self))"),
    entry("over_mixed(Tensor self) -> Tensor", composite="ops::mixed(self)"),
    entry("over_named(Tensor self) -> Tensor", composite="ops::named(self)"),
    entry("recurring(Tensor self) -> Tensor", composite="ops::recurring(self)"),
]


@pytest.mark.parametrize("name, kind", {
    "twice": "expression", "fresh": "expression", "over_fresh": "composed", "composed": "composed", "composed_again": "composed", "itself": "composed", "by_hand": "other",
    "named": "other", "by_helper": "other", "over_hand": "other", "over_mixed": "other", "over_named": "other",
    "recurring": "other"}.items())
def test_kinds(name, kind):
    count = census.Census(ENTRIES)
    assert count.kind(count.by_name[f"aten::{name}"]) == kind


def test_it_counts_the_entries_that_there_were():
    names = (ROOT / "tools/census.txt").read_text().split()
    assert len(names) == len(set(names)) == 482
    lines = census.Census([e for e in model.load(ROOT / "ops")[0] if not e.derived]).report()
    numbers = [int(w) for w in lines[0].replace("(", " ").split() if w.isdigit()]
    assert numbers[0] == 482 and numbers[1] == numbers[2] + numbers[3]


def test_a_reason_is_for_cpp():
    with pytest.raises(ValueError, match="reason"):
        entry("twice(Tensor self) -> Tensor", compute="self + self", reason="it is old")


def test_the_report_is_made():
    """./run coverage, over the table as it is."""
    out = subprocess.run([sys.executable, ROOT / "tools/coverage.py"], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert re.search(r"of 482 operators \d+ ", out.stdout) and "derivatives: " in out.stdout
