"""Under autocast on the CPU the operators of the table give the dtypes that PyTorch's give (tools/record_autocast.py)."""

from __future__ import annotations

import json

from kit import SAMPLES, Maker, convert
from table import ENTRIES, ROOT, SKIPS, dtype, operator, pytest, strata, tensor

RECORDED = json.loads((ROOT / "tests/data/autocast.json").read_text())
BY_NAME = {e.schema.full: e for e in ENTRIES}


def given(result) -> list[str]:
    if isinstance(result, strata.Tensor):
        return [str(result.dtype).removeprefix("strata.")]
    return [d for r in result for d in given(r)] if isinstance(result, (list, tuple)) else []


@pytest.mark.parametrize("name", list(RECORDED))
def test_results_have_pytorchs_dtypes(name):
    if reason := SKIPS["autocast"].get(name):
        pytest.skip(reason)
    entry = BY_NAME[name]
    for wanted, dtypes in RECORDED[name].items():
        first = next(SAMPLES[entry.row.samples](Maker(name, wanted)))
        args, kwargs = convert(first.args, tensor, dtype), {k: convert(v, tensor, dtype) for k, v in first.kwargs.items()}
        with strata.autocast("cpu", strata.bfloat16):
            assert given(operator(entry.schema)(*args, **kwargs)) == dtypes, wanted


def test_policies_of_accelerators_are_those_of_their_lists():
    said = {name: strata.ops.info(name).autocast for name in ("aten::sum", "aten::exp", "aten::layer_norm", "aten::mm", "aten::fft_fft")}
    assert said == {"aten::sum": "device:fp32", "aten::exp": "device:fp32", "aten::layer_norm": "device:fp32", "aten::mm": "lower", "aten::fft_fft": "fp32"}
