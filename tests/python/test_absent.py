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


def test_files_whose_names_are_elsewhere():
    import strata.cpu.amp
    import strata.nn.quantized
    import strata.profiler.profiler
    from strata._functorch.eager_transforms import jacrev
    from strata._functorch.vmap import vmap
    from strata._jit_internal import BroadcastingList2, boolean_dispatch
    from strata.autograd.profiler_util import EventList
    from strata.cpu.amp import autocast
    from strata.jit.annotations import BroadcastingList3, List
    from strata.nn.parallel.distributed import DistributedDataParallel
    from strata.profiler.profiler import profile

    assert jacrev is strata.func.jacrev and vmap is strata.func.vmap and profile is strata.profiler.profile
    assert DistributedDataParallel is strata.nn.parallel.DistributedDataParallel
    with autocast():
        assert strata.is_autocast_enabled("cpu") and (strata.ones(2, 2) @ strata.ones(2, 2)).dtype is strata.bfloat16
    assert EventList is strata.profiler.EventList and BroadcastingList2[int] == BroadcastingList3[int] and List is not None
    with pytest.raises(ImportError):
        from strata.profiler.profiler import nothing  # noqa: F401
    with pytest.raises(NotImplementedError, match="no quantised tensors"):
        strata.nn.quantized.Linear(2, 2)
    either = boolean_dispatch("indices", 1, False, lambda x, indices=False: "both", lambda x, indices=False: "one", "here", "pool")
    assert either(1) == "one" and either(1, True) == either(1, indices=True) == "both" and either.__name__ == "pool"
