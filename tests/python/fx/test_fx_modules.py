"""Graph modules as modules: they run as what was traced, copy, pickle, go to files, and change."""

import copy
import gc
import linecache
import pickle
import subprocess
import sys
import weakref

import pytest
import strata
from strata import fx, nn
from strata.fx.immutable_collections import immutable_dict, immutable_list


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.fc = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4 * 36, 5)
        self.bias = nn.Parameter(strata.randn(5))

    def forward(self, x, scale=2.0, *rest, flat=True):
        x = strata.relu(self.norm(self.conv(x)))
        return self.fc(x.flatten(1)) * scale + self.bias


def same(a, b):
    return a.dtype == b.dtype and strata.equal(a, b)


@pytest.fixture
def net():
    return Net().eval()


@pytest.fixture
def x():
    return strata.randn(2, 3, 8, 8)


def test_calls_and_interpreters_agree(net, x):
    gm = fx.symbolic_trace(net)
    assert same(gm(x), net(x)) and same(gm(x, 3.0), net(x, 3.0)) and same(gm(x, scale=4.0), net(x, scale=4.0))
    interpreter = fx.Interpreter(gm)
    assert same(interpreter.run(x), net(x)) and same(interpreter.run(x, 3.0), net(x, 3.0))
    assert same(fx.Interpreter(gm, garbage_collect_values=False).run(x), net(x))
    assert same(fx.Transformer(gm).transform()(x), net(x))
    some = fx.symbolic_trace(lambda a, b: a + b)
    given = [x, x]
    assert same(fx.Interpreter(some).boxed_run(given), x + x) and given == []
    with pytest.raises(RuntimeError, match="expected 2 arguments for placeholders but received 1"):
        fx.Interpreter(some).boxed_run([x])
    assert same(fx.Interpreter(some).run(x, initial_env={next(iter(some.graph.nodes)): x}), x + x)


def test_values_are_let_go_of_behind_their_last_use():
    alive = []

    class Watching(fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            alive.append(len(self.env))
            return result

    gm = fx.symbolic_trace(lambda x: x.sin().cos().tan().exp())
    Watching(gm).run(strata.ones(2))
    assert max(alive) == 1
    alive.clear()
    Watching(gm, garbage_collect_values=False).run(strata.ones(2))
    assert max(alive) == 5


def test_an_interpreters_error_names_the_node():
    gm = fx.symbolic_trace(lambda x: strata.relu(x @ x))
    with pytest.raises(RuntimeError, match=r"While executing %matmul : .*target=operator.matmul"):
        fx.Interpreter(gm).run(strata.ones(2, 3))


def test_training_goes_through(net, x):
    gm = fx.symbolic_trace(net.train())
    assert gm.training and dict(gm.named_parameters()).keys() == dict(net.named_parameters()).keys()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    expected = strata.autograd.grad(net(x).sum(), list(net.parameters()))
    net.load_state_dict(before)
    got = strata.autograd.grad(gm(x).sum(), list(gm.parameters()))
    by_name = dict(zip((n for n, _ in net.named_parameters()), expected))
    assert all(same(g, by_name[n]) for (n, _), g in zip(gm.named_parameters(), got))


def test_copies_have_their_own_parameters(net, x):
    gm = fx.symbolic_trace(net)
    gm.meta["note"] = [1]
    for made in (copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))):
        assert same(made(x), net(x)) and made.code == gm.code and made.fc is not gm.fc and made.meta == {"note": [1]}
        made.graph.lint()
        with strata.no_grad():
            made.bias.add_(1)
        assert not same(made(x), net(x)) and same(gm(x), net(x))
    assert copy.copy(gm).fc is gm.fc and type(copy.copy(gm)) is not type(gm)
    wrapped = nn.Sequential(gm)
    assert same(copy.deepcopy(wrapped)(x), net(x)) and same(pickle.loads(pickle.dumps(wrapped))(x), net(x))


def test_pickles_keep_nests_and_own_functions():
    gm = fx.symbolic_trace(lambda d: [helper(d["a"]), d["b"]], concrete_args={"d": {"a": fx.PH, "b": fx.PH}})
    gm.graph.find_nodes(op="call_function", target=strata.sin)[0].stack_trace = "kept"
    made = pickle.loads(pickle.dumps(gm))
    assert made({"a": strata.zeros(1), "b": 3}) == [strata.zeros(1), 3]
    assert [n.stack_trace for n in made.graph.find_nodes(op="call_function", target=strata.sin)] == ["kept"]


def helper(x):
    return strata.sin(x)


def test_a_module_of_a_graph_is_a_folder(net, x, tmp_path):
    gm = fx.symbolic_trace(net)
    gm.to_folder(tmp_path / "made", "Made")
    strata.save(x, tmp_path / "x.pt")
    code = (
        "import sys, strata; sys.path.insert(0, sys.argv[1]); from made import Made\n"
        "print(Made().eval()(strata.load(sys.argv[1] + '/x.pt')).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(net(x).tolist())


def test_roots_may_be_dicts(x):
    graph = fx.Graph()
    a = graph.placeholder("a")
    graph.output(graph.call_function(strata.add, (graph.call_module("deep.layer", (a,)), graph.get_attr("deep.w"))))
    layer, w = nn.Linear(3, 3), strata.randn(3)
    gm = fx.GraphModule({"deep.layer": layer, "deep.w": w}, graph)
    a = strata.randn(2, 3)
    assert same(gm(a), layer(a) + w) and list(gm.state_dict()) == ["deep.w", "deep.layer.weight", "deep.layer.bias"]
    with pytest.raises(RuntimeError, match="that target was not provided"):
        fx.GraphModule({"deep.layer": layer}, graph)


def test_edits_count_uses():
    graph = fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    c = graph.call_function(strata.add, (a, a), {"alpha": 2})
    d = graph.call_function(strata.cat, ([a, c], 0))
    graph.output(d)
    assert list(a.users) == [c, d] and type(d.args[0]) is immutable_list and type(c.kwargs) is immutable_dict
    c.args = (a, b)
    c.insert_arg(1, b)
    assert c.args == (a, b, b) and list(b.users) == [c]
    c.update_arg(2, 1)
    c.update_kwarg("alpha", b)
    c.args = (1, 2)
    assert list(a.users) == [d] and list(b.users) == [c] and c.all_input_nodes == [b]
    d.replace_input_with(c, b)
    assert d.args == ([a, b], 0) and not c.users and hash(d.args[0]) == hash((a, b))
    assert c.replace_all_uses_with(a) == []
    with pytest.raises(AssertionError, match="insert_args index"):
        c.insert_arg(9, 1)
    c.meta["x"] = 1
    with graph.inserting_before():
        first = graph.call_function(strata.zeros, (1,))
    assert first.prev is graph._root and next(iter(graph.nodes)) is first
    first.append(c)
    assert c.prev is first and [n.name for n in reversed(graph.nodes)][-2:] == ["add", "zeros"]
    graph.erase_node(c)
    a.meta["x"] = 1
    assert a.replace_all_uses_with(first, propagate_meta=True) == [d] and first.meta == {"x": 1} and len(graph.nodes) == 5
    graph.lint()


def test_dead_code_that_acts_stays():
    def f(x):
        strata._assert(x.dim() > 0, "no")
        y = x.clone()
        strata.ops.aten.add_.Tensor(y, x)
        strata.ops.aten.relu.default(x)
        strata.rand(3)
        noted(x)
        strata.cos(x)
        return x + 1

    gm = fx.symbolic_trace(f)
    gm.graph.eliminate_dead_code()
    names = [n.name for n in gm.graph.nodes]
    assert "cos" not in names and "relu_default" not in names and {"_assert", "add__tensor"} <= {*names}


def noted(x):
    return x


def test_has_side_effect_keeps_calls():
    graph = fx.Graph()
    a = graph.placeholder("a")
    kept, gone = graph.call_function(fx.has_side_effect(noted), (a,)), graph.call_function(helper, (a,))
    graph.output(a)
    assert graph.eliminate_dead_code() and kept in list(graph.nodes) and gone not in list(graph.nodes)
    assert graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output")) and kept not in list(graph.nodes)


def test_arguments_are_not_changed_in_place():
    gm = fx.symbolic_trace(lambda x: strata.cat([x, x]))
    cat = gm.graph.find_nodes(op="call_function", target=strata.cat)[0]
    with pytest.raises(TypeError, match="'immutable_list' object does not support mutation"):
        cat.args[0].append(1)
    with pytest.raises(TypeError, match="'immutable_dict' object does not support mutation"):
        cat.kwargs["a"] = 1
    assert copy.deepcopy(cat.args[0][:0]) == [] and pickle.loads(pickle.dumps(immutable_list([1]))) == [1]


def test_maps_over_arguments():
    node = fx.Graph().placeholder("a")
    nest = ([node, 1], {"k": (node, slice(node, None))}, None)
    got = fx.map_arg(nest, lambda n: n.name)
    assert got == (["a", 1], {"k": ("a", slice("a", None))}, None) and type(got[0]) is immutable_list
    assert fx.map_aggregate(nest, lambda v: 0 if v is None else v)[2] == 0


def test_hooks_see_changes():
    gm = fx.symbolic_trace(lambda x: x.sin() + 1)
    seen = []
    gm._register_create_node_hook(lambda n: seen.append(("made", n.name)))
    gm._register_erase_node_hook(lambda n: seen.append(("erased", n.name)))
    sin = gm.graph.find_nodes(op="call_method", target="sin")[0]
    with gm._set_replace_hook(lambda old, new, user: seen.append((old.name, new, user.name))), gm.graph.inserting_after(sin):
        cos = gm.graph.call_method("cos", sin.args)
        sin.replace_all_uses_with(cos)
    gm.graph.erase_node(sin)
    assert seen == [("made", "cos"), ("sin", "cos", "add"), ("erased", "sin")]


def test_code_may_be_changed_as_it_is_made():
    gm = fx.symbolic_trace(lambda x: x + 1)
    with gm.graph.on_generate_code(lambda before: lambda body: ["x = x * 2\n", *body]):
        gm.recompile()
    assert gm(3) == 7
    gm.recompile()
    assert gm(3) == 4


def test_what_was_compiled_is_let_go_of():
    gm = fx.symbolic_trace(lambda x: x + 1)
    forward = weakref.ref(type(gm).forward)
    gm.recompile()
    del gm
    gc.collect()
    assert forward() is None and not any("eval_with_key" in name and "test_what_was_compiled" in name for name in linecache.cache)


def test_find_nodes_and_order():
    gm = fx.symbolic_trace(lambda x, y: x.sin() + strata.add(y, x) + y.sin())
    find = gm.graph.find_nodes
    assert [n.name for n in find(op="call_method", target="sin")] == ["sin", "sin_1"] and [n.name for n in find(op="placeholder")] == ["x", "y"]
    first, last = find(op="call_method", target="sin")
    assert first < last and last > first and first <= first and sorted([last, first]) == [first, last]
    last.append(first)
    assert last < first
    with pytest.raises(AssertionError, match="target must not be None"):
        find(op="call_function")
