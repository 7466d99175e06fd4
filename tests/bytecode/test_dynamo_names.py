"""What programs reach of the compiler by PyTorch's inner names: errors, counters, breaks as errors, backends, caches."""

import pytest
import strata as torch
from strata._dynamo import exc
from strata._dynamo.utils import counters


def breaks(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def test_errors_are_of_one_family():
    with pytest.raises(exc.Unsupported) as error:
        torch.compile(breaks, fullgraph=True)(torch.ones(2))
    assert isinstance(error.value, exc.TorchDynamoException) and type(error.value).__module__ == "strata._dynamo.exc"
    f = torch.compile(lambda x: x.relu())
    f(torch.ones(3))
    with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(exc.RecompileError, match="a recompile is needed"):
        f(torch.ones(4))
    for name in exc.__all__:
        assert issubclass(getattr(exc, name), RuntimeError)


def test_breaks_become_errors_and_back():
    torch._dynamo.reset()
    with torch._dynamo.error_on_graph_break(True), pytest.raises(exc.Unsupported):
        torch.compile(breaks)(torch.ones(2))

    @torch._dynamo.error_on_graph_break(False)
    def lenient(x):
        return torch.compile(breaks, fullgraph=True)(x)

    assert lenient(torch.ones(2)).tolist() == [4.0, 4.0]
    with pytest.raises(exc.Unsupported):
        torch.compile(breaks, fullgraph=True)(torch.ones(2))
    with pytest.raises(TypeError, match="expected a bool"):
        torch._dynamo.error_on_graph_break(1)


def test_counters():
    torch._dynamo.reset()
    counters.clear()
    torch.compile(breaks)(torch.ones(2))
    assert counters["stats"]["unique_graphs"] == 2 and sum(counters["graph_break"].values()) == 1
    counters.clear()
    assert counters["stats"]["unique_graphs"] == 0


def test_backends_by_name():
    from strata._inductor.compile_fx import compile_fx

    assert torch._dynamo.lookup_backend("inductor") is compile_fx
    seen = []

    def mine(gm, inputs):
        seen.append(len(inputs))
        return torch._dynamo.lookup_backend("inductor")(gm, inputs)

    assert torch.compile(lambda x: x.sin() + 1, backend=mine)(torch.zeros(3)).tolist() == [1.0] * 3 and seen == [1]
    with pytest.raises(RuntimeError, match="Invalid backend"):
        torch._dynamo.lookup_backend("none such")


def test_settings_of_properties_can_be_patched():
    config = torch._dynamo.config
    before = config.cache_size_limit
    with config.patch(cache_size_limit=2):
        assert config.recompile_limit == 2
    assert config.cache_size_limit == before
    with config.patch("a_new_name", 1):
        assert config.a_new_name == 1
    assert not hasattr(config, "a_new_name")


def test_blocks_that_change_nothing():
    x = torch.ones(3, requires_grad=True)
    with torch._dynamo.compiled_autograd.enable(torch.compile(backend="eager")), torch._inductor.utils.fresh_inductor_cache():
        (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    with pytest.raises(TypeError), torch._dynamo.compiled_autograd.enable(3):
        pass
    torch._dynamo.mark_static_address(x)


def test_weights_of_a_package_are_exchanged(tmp_path):
    models = [torch.nn.Linear(4, 2) for _ in range(2)]
    x = torch.ones(3, 4)
    path = torch._inductor.aoti_compile_and_package(torch.export.export(models[0], (x,)), package_path=str(tmp_path / "m.pt2"))
    loaded = torch._inductor.aoti_load_package(path)
    assert torch.equal(loaded(x), models[0](x))
    loaded.load_constants(models[1].state_dict(), check_full_update=True, user_managed=True)
    assert torch.equal(loaded(x), models[1](x)) and sorted(loaded.get_constant_fqns()) == ["bias", "weight"]
    with torch.no_grad():
        models[1].bias += 1
    assert torch.equal(loaded(x), models[1](x))  # the tensors themselves
    with pytest.raises(ValueError, match="are not given: \\['bias'\\]"):
        loaded.load_constants({"weight": models[0].weight}, check_full_update=True)
    with pytest.raises(ValueError, match="unknown constants \\['other'\\]"):
        loaded.load_constants({"other": x}, check_full_update=False)
