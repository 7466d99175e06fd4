"""Names that libraries take from PyTorch beside its documented ones: what each does, and that those without a meaning here say so."""

import collections
import copy
import importlib
import importlib.util
import pickle

import pytest
import strata

C = strata._C


@pytest.fixture(autouse=True)
def _seed():
    strata.manual_seed(0)


@pytest.mark.parametrize(
    "name",
    "distributions.wishart distributions.relaxed_bernoulli _higher_order_ops.associative_scan backends.mkldnn backends.cpu "
    "_dynamo.config quantization".split(),
)
def test_made_modules_have_a_spec(name):
    full = f"strata.{name}"
    for _ in range(2):  # before and after it is loaded
        assert importlib.util.find_spec(full).name == full
        importlib.import_module(full)
    assert importlib.util.find_spec("strata.distributions.nothing_of_the_kind") is None


def test_keys_of_the_dispatcher():
    keys = C.DispatchKey
    both = C.DispatchKeySet(keys.AutocastCPU) | C.DispatchKeySet(keys.Autograd)
    assert keys.AutocastCPU is keys.AutocastCPU and repr(keys.CPU) == "DispatchKey.CPU" and keys.CPU.name == "CPU"
    assert both.has(keys.Autograd) and keys.CPU not in both and repr(both) == "DispatchKeySet(AutocastCPU, Autograd)"
    assert both - C.DispatchKeySet(keys.Autograd) == C.DispatchKeySet(keys.AutocastCPU) == both & C.DispatchKeySet(keys.AutocastCPU)
    assert both.remove(keys.AutocastCPU).add(keys.CPU) == C.DispatchKeySet([keys.CPU, keys.Autograd])
    assert pickle.loads(pickle.dumps(keys.CPU)) is keys.CPU
    with pytest.raises(AttributeError, match="has no key 'Nothing'"):
        keys.Nothing
    with pytest.raises(TypeError, match="attributes of the class"):
        keys("CPU")
    with pytest.raises(TypeError, match="expected keys"):
        C.DispatchKeySet(["CPU"])


def test_an_excluded_key_is_not_passed():
    library = strata.library.Library("names_of_libraries", "DEF")
    library.define("product(Tensor x) -> Tensor")
    library.impl("product", lambda x: x @ x, "CompositeExplicitAutograd")
    called = []
    device_keys = [key for key in (getattr(C.DispatchKey, f"Autocast{word.upper()}", None) for word in strata._device_words.device_names()) if key]
    keys = C.DispatchKeySet([C.DispatchKey.AutocastCPU, *device_keys])
    assert device_keys

    def in_float(x):
        called.append(True)
        with C._ExcludeDispatchKeyGuard(keys):
            return strata.ops.names_of_libraries.product(x.float())

    library.impl("product", in_float, "AutocastCPU")
    x = strata.ones(2, 2, dtype=strata.bfloat16)
    assert strata.ops.names_of_libraries.product(x).dtype is strata.bfloat16 and not called
    with strata.autocast("cpu", dtype=strata.bfloat16):
        assert strata.ops.names_of_libraries.product(x).dtype is strata.float32
        assert (x.float() @ x.float()).dtype is strata.bfloat16  # the block has ended
    assert called == [True]
    library._destroy()


def test_other_names_of_the_core():
    assert C._TensorMeta is type(strata.Tensor) and isinstance(C._get_accelerator(), strata.device)
    assert C._nn._parse_to("cpu", strata.float16)[:2] == (strata.device("cpu"), strata.float16)
    assert not C._functorch.is_legacy_batchedtensor(strata.ones(1))
    before = C._jit_set_profiling_mode(True)
    assert C._jit_set_profiling_mode(before) is True
    C._jit_override_can_fuse_on_cpu(True)
    assert C._jit_can_fuse_on_cpu() is True
    with pytest.raises(NotImplementedError, match="no compiler of source text"):
        C.Graph()
    assert not hasattr(C, "nothing_of_the_kind")


def test_helpers_of_pickles():
    from strata import _utils
    from strata._tensor import _rebuild_from_type_v2

    assert strata._tensor._rebuild_from_type_v2 is _rebuild_from_type_v2
    assert [_utils._element_size(d) for d in (strata.bool, strata.bfloat16, strata.float64, strata.complex64)] == [1, 2, 8, 8]
    with pytest.raises(RuntimeError, match="expected strata.dtype"):
        _utils._element_size(4)
    assert _utils._get_device_index(3) == 3 and _utils._get_device_index("cpu", allow_cpu=True) == -1
    for wrong in ("cpu", None):
        with pytest.raises(ValueError, match="Expected a"):
            _utils._get_device_index(wrong)


def test_texts_of_tensors():
    text = strata._tensor_str
    x = strata.tensor([1.0, 2.5])
    assert text._tensor_str(x, 4) == "[1.0000, 2.5000]" and text._tensor_str(strata.empty(0, 3), 4) == "[]"
    assert text._add_suffixes("Index([1]", ["sorted=True"], 6, force_newline=False) == "Index([1], sorted=True)"
    assert text._add_suffixes("Index([1]", ["a", "b"], 6, force_newline=True) == "Index([1],\n      a, b)"
    assert text._str_intern(x, tensor_contents="...") == "tensor(...)"


def test_nests_that_programs_walk_themselves():
    from strata.utils import _pytree

    pair = collections.namedtuple("pair", "a b")  # noqa: PYI024
    value = {"x": [1, 2], "y": pair(3, (4,))}

    def flatten(tree):
        kind = _pytree._get_node_type(tree)
        if kind not in _pytree.SUPPORTED_NODES:
            return [tree], _pytree.LeafSpec()
        children, context = _pytree.SUPPORTED_NODES[kind].flatten_fn(tree)
        parts = [flatten(child) for child in children]
        return sum((leaves for leaves, _ in parts), []), _pytree.TreeSpec(kind, context, [spec for _, spec in parts])

    leaves, spec = flatten(value)
    assert leaves == [1, 2, 3, 4] and _pytree._get_node_type(value["y"]) is collections.namedtuple
    again = _pytree.tree_unflatten([10, 20, 30, 40], spec)
    assert again == {"x": [10, 20], "y": pair(30, (40,))} and type(again["y"]) is pair and "namedtuple" in repr(spec)
    assert _pytree._register_pytree_node is _pytree.register_pytree_node


def test_forms_of_registered_nests():
    from strata.fx import _pytree as fx_pytree
    from strata.utils import _pytree

    class Box:
        def __init__(self, held):
            self.held = held

    _pytree.register_pytree_node(Box, lambda box: ([box.held[k] for k in sorted(box.held)], sorted(box.held)), lambda v, keys: Box(dict(zip(keys, v))))
    fx_pytree.register_pytree_flatten_spec(Box, lambda box, spec: fx_pytree._dict_flatten_spec(box.held, spec))
    spec = _pytree.tree_structure(Box({"b": 1, "a": [2, 3]}))
    assert fx_pytree.tree_flatten_spec(Box({"a": [5, 6], "b": 7, "c": 8}), spec) == [5, 6, 7]  # what the form has, no more


def test_copies_of_graph_modules():
    from strata.fx._symbolic_trace import ScriptObject, compatibility
    from strata.fx.graph_module import _USER_PRESERVED_ATTRIBUTES_KEY, _CodeOnlyModule

    class Made(strata.nn.Module):
        def forward(self, x):
            return x + 1

    traced = strata.fx.symbolic_trace(Made())
    traced.meta[_USER_PRESERVED_ATTRIBUTES_KEY] = {"note": [1, 2]}
    again = copy.deepcopy(traced)
    assert again.note == [1, 2] and again(strata.ones(1)).item() == 2
    bare = _CodeOnlyModule(copy.deepcopy(traced.__dict__))
    assert strata.fx.GraphModule(bare, bare._graph)(strata.ones(1)).item() == 2
    assert compatibility(is_backward_compatible=False)(test_copies_of_graph_modules)._backward_compatible is False
    assert not isinstance(3, ScriptObject)


def test_profiles():
    from strata.profiler.profiler import _default_schedule_fn

    assert strata.profiler.kineto_available() and _default_schedule_fn(7) is strata.profiler.ProfilerAction.RECORD
    assert not strata.autograd._profiler_enabled()
    profile = strata.profiler.profile()
    profile.start()
    assert strata.autograd._profiler_enabled()
    strata.autograd._disable_profiler()
    assert not strata.autograd._profiler_enabled()
    profile.stop()  # has nothing to end
    assert list(profile.events()) == []
    with strata.profiler.profile() as another:
        strata.ones(2) + 1
    assert any("add" in event.name for event in another.events())


def test_indices_in_masks():
    from strata._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    padding = strata.tensor([[True, False, True], [False, True, True]])
    with TransformGetItemToIndex():
        seen = strata.vmap(strata.vmap(lambda b, k: padding[b, k], in_dims=(None, 0)), in_dims=(0, None))(strata.arange(2), strata.arange(3))
        assert strata.vmap(lambda b: padding[b])(strata.arange(2)).equal(padding)
    assert seen.equal(padding)
    assert strata.nn.attention.flex_attention._DEFAULT_SPARSE_BLOCK_SIZE == 128


def test_names_about_compilers():
    from strata._dynamo.eval_frame import is_dynamo_supported
    from strata._dynamo.utils import is_compile_supported

    assert is_dynamo_supported() and is_compile_supported("cpu") and is_compile_supported(strata.device("cpu", 0))
    assert not is_compile_supported("nothing_of_the_kind")
    assert strata.jit._script_if_tracing(abs) is abs and strata._dynamo.config.skip_fwd_side_effects_in_bwd_under_checkpoint is False
    assert strata._inductor.cudagraph_mark_step_begin is strata.compiler.cudagraph_mark_step_begin
    assert strata.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
    with pytest.raises(NotImplementedError, match="sizes are ints"):
        strata._custom_ops.get_ctx()
    with pytest.raises(RuntimeError, match="no classes of C"):
        strata.classes.somewhere.Thing(1)


def test_extra_state_by_its_name():
    from strata.nn.modules.module import _EXTRA_STATE_KEY_SUFFIX

    class Made(strata.nn.Module):
        def get_extra_state(self):
            return 3

    assert list(Made().state_dict()) == [_EXTRA_STATE_KEY_SUFFIX]


def test_progress(capsys):
    from strata.utils import model_zoo

    with model_zoo._Progress(total=4, unit="B", unit_scale=True) as bar:
        bar.update(1)
        bar.update(3)
    assert capsys.readouterr().err == "\r25.0%\r100.0%\n"
    with model_zoo._Progress(disable=True) as bar:
        bar.update(1)
    assert capsys.readouterr().err == "" and callable(model_zoo.tqdm)


def test_export_to_onnx_is_refused_when_it_is_used():
    from strata.onnx import operators, symbolic_helper, symbolic_opset9, symbolic_opset11
    from strata.onnx.symbolic_opset12 import dropout

    @symbolic_helper.parse_args("v", "i")
    def symbolic(g, x, n):
        return g.op("Thing", x)

    assert symbolic.__name__ == "symbolic"
    for use in (lambda: symbolic(None, 1, 2), lambda: symbolic_opset11.squeeze(1), lambda: dropout(1), symbolic_opset9.softmax, symbolic_helper._get_const):
        with pytest.raises(NotImplementedError, match="is not provided"):
            use()
    with pytest.raises(NotImplementedError, match="is not provided"):
        strata.onnx.ONNXProgram()
    strata.onnx.register_custom_op_symbolic("mine::thing", symbolic, 11)
    strata.onnx.unregister_custom_op_symbolic("mine::thing", 11)
    with pytest.raises(ValueError, match="domain::name"):
        strata.onnx.register_custom_op_symbolic("thing", symbolic, 11)
    assert symbolic_helper.cast_pytorch_to_onnx["Long"] is strata.onnx.TensorProtoDataType.INT64 == 7
    assert [strata.onnx.TrainingMode.TRAINING, strata.onnx.OperatorExportTypes.ONNX_FALLTHROUGH] == [2, 3]
    assert operators.shape_as_tensor(strata.ones(2, 3)).tolist() == [2, 3]
    assert operators.reshape_from_tensor_shape(strata.ones(2, 3), strata.tensor([3, -1])).shape == (3, 2)


def test_several_processes_are_refused_when_they_are_used():
    d = strata.distributed
    assert [d.ReduceOp.SUM, d.ReduceOp.AVG, d.ReduceOp.MAX] == [0, 1, 4] and isinstance(d.ReduceOp.SUM, d.ReduceOp.RedOpType)
    assert d.GroupMember.WORLD is None and d.GroupMember.NON_GROUP_MEMBER == -100 and d.Backend.default_device_backend_map == {}
    from strata.distributed._functional_collectives import all_gather_tensor
    from strata.distributed.rpc.api import _require_initialized

    @_require_initialized
    def remote():
        return 1

    for use in (remote, lambda: d.init_device_mesh("cpu", (1,)), d.DeviceMesh, lambda: d.ReduceOp(1), all_gather_tensor):
        with pytest.raises(NotImplementedError, match="one process"):
            use()


def test_names_of_devices_in_modules_of_their_own():
    for word in strata._device_words.device_names():
        device = getattr(strata, word)
        if strata._device_names.is_offered(word):
            continue
        assert device.random.get_rng_state_all() == [] and device.default_generators == []
        with pytest.raises(NotImplementedError, match="no marks for outer tools"):
            device.nvtx.range_push("here")
        assert not hasattr(device.random, "nothing_of_the_kind")
    for name, (function, device) in strata._device_words._load()["older"].items():
        if name.startswith("get"):
            assert getattr(strata, name)() == getattr(strata, function)(device)


def test_metadata_of_traces(tmp_path):
    import json

    with strata.profiler.profile(record_shapes=True) as profile:
        strata.ones(2) + 1
    profile.add_metadata("framework", "mine")
    profile.add_metadata_json("run", '{"number": [1]}')
    profile.export_chrome_trace(tmp_path / "trace.json")
    written = json.loads((tmp_path / "trace.json").read_text())
    assert written["framework"] == "mine" and written["run"] == {"number": [1]} and written["traceEvents"]
    assert any(event.input_shapes for event in profile.events().key_averages(group_by_input_shapes=True))


def test_shapes_before_a_file_is_read():
    storage = strata.storage.TypedStorage(dtype=strata.float32, device="meta")
    made = strata._utils._rebuild_tensor_v2(storage, 0, (2, 3), (3, 1), False, None)
    assert made.is_meta and made.shape == (2, 3) and made.stride() == (3, 1)


def test_questions_about_sizes():
    from strata.fx.experimental import symbolic_shapes

    assert symbolic_shapes.guard_or_false(2 > 1) and not symbolic_shapes.statically_known_true(2 > 3)
    assert symbolic_shapes.sym_eq((1, 2), [1, 2]) and not symbolic_shapes.sym_eq((1,), (1, 2)) and symbolic_shapes.free_symbols((1, 2)) == set()


def test_the_default_device_by_its_type():
    assert C._get_default_device() == "cpu"
    with strata.device("meta"):
        assert C._get_default_device() == "meta" and strata.get_default_device() == strata.device("meta")
