"""Sizes that would keep a call busy for days are refused before the work starts. Each call runs in a child with an alarm."""

import sys
from pathlib import Path

import pytest
import strata

sys.path.insert(0, str(Path(__file__).parent.parent / "ops"))
from child import in_child


class Endless:
    def __len__(self):
        return 2**40

    def __getitem__(self, index):
        return 1


HOPELESS = {
    "einsum": (lambda: strata.einsum(strata.ones(2), Endless()), ValueError, "more than 64 dims"),
    "einsum alone": (lambda: strata.einsum(Endless()), ValueError, "must specify"),
    "einsum range": (lambda: strata.einsum(strata.ones(2), [99]), ValueError, "valid range"),
    "GRU": (lambda: strata.nn.GRU(2, 3, 2**31), ValueError, "num_layers: expected at most"),
    "LSTM": (lambda: strata.nn.LSTM(2, 3, 2**62), ValueError, "num_layers: expected at most"),
    "decoder of a number": (lambda: strata.nn.TransformerDecoder(1, 2**62), TypeError, "not a Module subclass"),
    "decoder": (lambda: strata.nn.TransformerDecoder(strata.nn.Identity(), 2**62), ValueError, "num_layers"),
    "transformer": (lambda: strata.nn.Transformer(8, 2, 2**40, 1), ValueError, "num_layers"),
}


@pytest.mark.parametrize("name", HOPELESS)
def test_hopeless_work_is_refused_at_once(name):
    work, kind, text = HOPELESS[name]

    def judged():
        with pytest.raises(kind, match=text):
            work()
        return []

    in_child(judged, name)
