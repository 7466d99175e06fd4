"""Parts of PyTorch that are not there: they can be imported and named, and raise with the reason when used."""

import importlib

import pytest
import strata
from strata import _absent


@pytest.mark.parametrize("part", sorted(_absent.PARTS))
def test_each_part_raises_with_its_reason(part):
    module = importlib.import_module(f"strata.{part}")
    inside = importlib.import_module(f"strata.{part}.some.module")
    for home in (module, inside):
        stand_in = home.SomeName
        assert isinstance(stand_in, type) and not isinstance(3, stand_in)
        with pytest.raises(NotImplementedError) as error:
            stand_in(1, a=2)
        assert str(error.value) == f"{home.__name__}.SomeName is not provided: {_absent.PARTS[part]}"
        with pytest.raises(AttributeError):
            home.__path_of_nothing__


def test_names_without_an_import():
    with pytest.raises(NotImplementedError, match="no quantised tensors"):
        strata.quantization.quantize_dynamic(None)
    with pytest.raises(NotImplementedError, match="trains in one process"):
        strata.distributed.fsdp.FullyShardedDataParallel(None)
    assert not strata.distributed.is_available()


def test_other_modules_are_refused_as_ever():
    with pytest.raises(ModuleNotFoundError, match="No module named 'strata.no_such_part'"):
        importlib.import_module("strata.no_such_part")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("strata.distributed.no_such_part")
