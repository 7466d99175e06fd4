"""What is missing says so, with the way out; and importing loads only what is used."""

import importlib
import inspect
import subprocess
import sys

import pytest
import strata
from strata import nn


def test_missing_functions_and_parallel():
    with pytest.raises(NotImplementedError, match="run one process per device"):
        nn.parallel.DistributedDataParallel(nn.ReLU())
    with pytest.raises(NotImplementedError, match="there are no process groups"):
        nn.SyncBatchNorm(2, process_group=object())
    with pytest.raises(TypeError, match="must be a Tensor or a PackedSequence, but got str"):
        nn.LSTM(1, 1)("packed")


def test_unknown_names_are_attribute_errors():
    assert not hasattr(nn, "NoSuchLayer") and not hasattr(strata.nn.functional, "no_such")
    assert not hasattr(nn.utils, "no_such")


def test_names_are_listed():
    assert {"Linear", "Conv2d", "Module", "functional"} <= set(dir(nn))
    assert {"relu", "linear", "conv2d"} <= set(dir(strata.nn.functional))
    for name in nn.__all__:
        assert getattr(nn, name).__name__ == name
    for name in strata.nn.functional.__all__:
        try:
            assert callable(getattr(strata.nn.functional, name))
        except NotImplementedError as error:  # an operator that the table does not hold yet says so
            assert "needs the operator aten::" in str(error)


def test_what_is_not_listed_is_private():
    functional = strata.nn.functional
    for file, names in functional._FAMILIES.items():
        module = importlib.import_module(f"strata.nn.functional.{file}")
        own = [f for f in vars(module).values() if inspect.isfunction(f) and f.__code__.co_filename == module.__file__]
        assert {f.__name__ for f in own if f.__name__[0] != "_"} <= set(names.split()), file


def test_import_is_lazy():
    code = (
        "import sys; from strata import nn; nn.Module; "
        "loaded = [m for m in sys.modules if m.startswith('strata.nn.')]; "
        "assert 'strata.nn.modules.linear' not in loaded and 'strata.nn.functional' not in loaded, loaded; "
        "nn.Linear; assert 'strata.nn.modules.conv' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_fits_nothing_is_refused():
    x = strata.zeros(2, 1, 4)
    for layer in (strata.nn.LSTM(4, 6), strata.nn.GRU(4, 6), strata.nn.RNN(4, 6)):
        with pytest.raises(ValueError, match="does not match weight dtype"):
            layer(x.double())
    with pytest.raises(ValueError, match="only supported for LSTM"):
        strata.nn.GRU(4, 6, proj_size=2)
    with pytest.raises(RuntimeError, match="is_causal=True"):
        strata.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=strata.zeros(1, 1), is_causal=True)


def test_autocast_without_a_device_is_not_the_cpus():
    with strata.autocast("cpu"):
        assert not strata.is_autocast_enabled() and strata.is_autocast_enabled("cpu")
