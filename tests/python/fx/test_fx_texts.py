"""What programs of fx print: PyTorch's text (tools/record_fx.py) with strata for torch."""

import json
import sys
from pathlib import Path

import pytest
import strata

sys.path.insert(0, str(Path(__file__).parent))
from fx_programs import PROGRAMS

RECORDED = json.loads((Path(__file__).parents[2] / "data/fx.json").read_text())


def test_all_programs_are_recorded():
    assert list(RECORDED) == list(PROGRAMS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_texts_are_those_of_pytorch(name):
    texts = PROGRAMS[name](strata)
    assert len(texts) == len(RECORDED[name])
    for text, recorded in zip(texts, RECORDED[name]):
        assert text == recorded.replace("torch", "strata")
