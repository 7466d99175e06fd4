"""strata.return_types: the classes of named results, there before anything has been called."""

import pickle
import subprocess
import sys

import pytest
import strata

CALLS = {
    "max": lambda x: strata.max(x, 0),
    "sort": lambda x: x.sort(),
    "topk": lambda x: x.topk(1),
    "linalg_svd": strata.linalg.svd,
    "frexp": strata.frexp,
    "histogram": lambda x: strata.histogram(x, 3),
    "histogramdd": lambda x: strata.histogramdd(x, 3),
}


@pytest.mark.parametrize("name", CALLS)
def test_is_the_class_of_what_a_call_gives(name):
    assert type(CALLS[name](strata.randn(2, 2))) is getattr(strata.return_types, name)


def test_is_found_by_a_process_that_called_nothing(tmp_path):
    found = strata.max(strata.tensor([[1.0, 4.0], [3.0, 2.0]]), 0)
    file = tmp_path / "found"
    file.write_bytes(pickle.dumps(found))
    code = f"import pickle, strata; r = pickle.load(open({str(file)!r}, 'rb')); print(r.values.tolist(), type(r) is type(strata.ones(1).max(0)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[3.0, 4.0] True"


def test_lists_them():
    assert "max" in dir(strata.return_types) and strata.return_types.max in strata.return_types.all_return_types
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        strata.return_types.nothing  # noqa: B018


def test_names_of_copied_modules():
    F = strata.nn.functional
    mask = F._canonical_mask(strata.tensor([True, False]), "mask", F._none_or_dtype(None), "other", strata.float32)
    assert mask.tolist() == [float("-inf"), 0.0]
    with pytest.warns(UserWarning, match="mismatched mask and other"):
        F._canonical_mask(mask, "mask", strata.bool, "other", strata.float32)
    t = strata.nn.init._no_grad_trunc_normal_(strata.empty(1000), 0.0, 1.0, -0.5, 0.5)
    assert t.abs().max() <= 0.5
    assert "processor" in strata.utils.collect_env.get_pretty_env_info()
