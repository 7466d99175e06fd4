"""Some of the random programs of `./run fuzz-graphs`: as launches and as kernels, with eager's bits."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
from fuzz_graphs import examine  # noqa: E402

SEED = int(os.environ.get("STRATA_TEST_SEED", "1"))
COUNT = 500 if os.environ.get("STRATA_TEST_ALL") else 50


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "launches"])
def test_random_graphs(fused):
    verdicts = [examine(SEED, number, fused) for number in range(COUNT)]
    wrong = [(number, words) for number, (verdict, words) in enumerate(verdicts) if verdict == "differs"]
    assert not wrong, f"--seed {SEED} --replay {wrong[0][0]}: {wrong[0][1]}"
    assert sum(verdict == "same" for verdict, _ in verdicts) > COUNT // 2
