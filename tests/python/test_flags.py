"""Settings of PyTorch's compiler that programs write: kept, patched and given back; hooks of it are refused."""

from __future__ import annotations

import logging

import pytest
import strata
import strata._dynamo.config
import strata._functorch.config
import strata._inductor.config as config
from strata._dynamo.testing import CompileCounter
from strata._dynamo.utils import same


def test_flags_are_kept():
    assert config.freezing is False and config is strata._inductor.config
    config.some_flag = 3
    assert config.some_flag == 3
    del config.some_flag
    with pytest.raises(AttributeError, match=r"strata\._inductor\.config\.some_flag does not exist"):
        _ = config.some_flag
    assert strata._functorch.config.activation_memory_budget == 1.0
    assert strata._dynamo.config is strata._bytecode.config.config and strata._dynamo.config.compiled_autograd is False


def test_patches_end_with_their_block():
    with config.patch({"max_autotune": True, "triton.cudagraphs": True}):
        assert config.max_autotune and config.triton.cudagraphs
    assert not config.max_autotune and not config.triton.cudagraphs

    @config.patch(freezing=True)
    def f():
        return config.freezing

    assert f() and f() and not config.freezing
    with strata._dynamo.config.patch("recompile_limit", 3):
        assert strata._dynamo.config.cache_size_limit == 3
    assert strata._dynamo.config.recompile_limit == 8
    with config.patch(new_one=1):
        assert config.new_one == 1
    assert not hasattr(config, "new_one")


def test_hooks_of_another_compiler_are_refused():
    config.post_grad_custom_post_pass = None
    with pytest.raises(NotImplementedError, match="post_grad_custom_post_pass: passes over PyTorch's own graphs are not called"):
        config.post_grad_custom_post_pass = print


def test_logs_by_other_names_and_levels(capfd):
    strata._logging.set_logs(dynamo=logging.ERROR, aot_graphs=True, graph=False)
    strata.compile(lambda x: x + 1)(strata.ones(2))
    assert capfd.readouterr().err == ""
    strata._logging.set_logs(graph=True)
    strata.compile(lambda x: x + 2)(strata.ones(2))
    strata._logging.set_logs()
    assert "aten::add" in capfd.readouterr().err
    with pytest.raises(ValueError, match="no_such_log"):
        strata._logging.set_logs(no_such_log=True)
    with pytest.raises(TypeError, match="or a level of logging"):
        strata._logging.set_logs(graph="yes")


def test_counting_and_comparing():
    count = CompileCounter()
    f = strata.compile(lambda x: (x + 1) * 2, backend=count)
    f(strata.ones(2))
    f(strata.ones(2))
    assert (count.frame_count, count.op_count) == (1, 2)
    one, other = strata.ones(2), strata.zeros(2)
    assert same([one, {"a": one}], (one, {"a": one + 1e-6})) and not same([one], [other]) and not same(one, one.double())


def test_a_package_of_an_exported_program(tmp_path):
    m = strata.nn.Sequential(strata.nn.Linear(4, 3), strata.nn.ReLU())
    sizes = ({0: strata.export.Dim("b", min=1, max=10)},)
    path = strata._inductor.aoti_compile_and_package(
        strata.export.export(m, (strata.ones(2, 4),), dynamic_shapes=sizes), package_path=str(tmp_path / "m.pt2")
    )
    x = strata.rand(5, 4)
    found = strata._inductor.aoti_load_package(path)(x)
    assert strata.equal(found, m(x)) and not found.requires_grad
    with pytest.raises(ValueError, match=r"ends in \.pt2"):
        strata._inductor.aoti_compile_and_package(None, package_path="m.so")
    assert set(strata._inductor.list_mode_options()) == {"default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune"}
    strata.compiler.cudagraph_mark_step_begin()
    assert strata.compiler.nested_compile_region(len) is len
