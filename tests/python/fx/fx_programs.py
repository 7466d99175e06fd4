"""Programs of fx as users write them, each a function of the module torch that gives lines of text.

tools/record_fx.py runs them with PyTorch; test_fx_texts.py runs them with strata and compares.
"""

import copy
import operator
import pickle
import random
from collections import namedtuple
from typing import Dict, List, Optional, Tuple  # noqa: UP035

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def both(gm):
    return [str(gm.graph), gm.code]


def make_net(torch):
    nn, F = torch.nn, torch.nn.functional

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.register_buffer("scale", torch.ones(4))
            self.offset = torch.ones(4)

        def forward(self, x):
            return torch.relu(self.linear(x) * self.scale + self.offset).clamp(min=0.1, max=2.0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
            self.inner = Inner()
            self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(4, 2)))])
            self.table = nn.ModuleDict({"act-1": nn.GELU()})
            self.weight = nn.Parameter(torch.ones(2))
            self.drop = nn.Dropout(0.5)

        def forward(self, x: torch.Tensor, scale=2):
            x = F.relu(self.norm(self.conv(x))).mean((2, 3))
            x = self.inner(x)
            for block in self.blocks:
                x = block(x)
            if self.training:
                x = self.drop(x)
            x = F.dropout(x, 0.25, self.training) @ self.weight.view(2, 1)
            first, second = torch.max(x, 1)
            return {"a": self.table["act-1"](first * scale), "b": [second, abs(x), 3 - x]}

    return Net


@program
def nested_modules(torch):
    net = make_net(torch)()
    gm = torch.fx.symbolic_trace(net)
    lines = [*both(gm), str(gm), gm.print_readable(print_output=False), torch.fx.symbolic_trace(net.eval()).code]
    lines += [str(list(gm.state_dict())), str([n.meta.get("nn_module_stack") is not None for n in gm.graph.nodes])]
    return lines + [str(copy.deepcopy(gm)), torch.fx.symbolic_trace(gm).code]


@program
def operators(torch):
    def f(x, y):
        return [x + 1, 1 + x, x - 1, 1 - x, x * 2, 2 / x, x // 2, 2 // x, x % 2, 2 % x, x**2, 2**x, x @ y, x << 1, x >> 1, x & y, x | y,
                x ^ y, ~x, -x, +x, abs(x), x == y, x != y, x < y, x <= 1, x > y, 1 >= x, x[0], x[..., None], x[y:1], x[1, ::2]]

    return both(torch.fx.symbolic_trace(f))


@program
def attributes_and_methods(torch):
    def f(x):
        inf = float("inf")
        return x.shape[0], x.T.foo.bar(1, a=x), x.dtype, getattr(x, "a-b"), x.to(torch.float64).to(device=torch.device("cpu")), inf * x

    return both(torch.fx.symbolic_trace(f))


@program
def constants(torch):
    Pair = namedtuple("Pair", "left right")
    table = torch.ones(3)

    def f(x):
        a = torch.zeros(x.shape, dtype=torch.float16) + torch.full_like(x, float("nan"))
        b = x.contiguous(memory_format=torch.contiguous_format) + table + table[x]
        return Pair(a, b), {"k": (x,), 3: None}, slice(x, None), table + x

    gm = torch.fx.symbolic_trace(f)
    return both(gm)[:1]


@program
def annotations(torch):
    def f(x: Optional[torch.Tensor], y: List[int] = None, z: Tuple[int, str] = (), w: int = 3) -> Dict[str, torch.Tensor]:  # noqa: UP006, UP045
        return {"a": x + y[0]}

    def g(x: "list[int]", *args, y=2, **kwargs) -> tuple[int, str]:
        return x + args[0] + kwargs["z"] * y

    return [line for h in (f, g) for line in both(torch.fx.symbolic_trace(h))]


@program
def functionals(torch):
    F = torch.nn.functional

    def f(x, w):
        y = F.gelu(x) + F.softmax(x, dim=-1) + F.layer_norm(x, (3,)) + F.max_pool2d(x, 2) + F.interpolate(x, scale_factor=2)
        y = y + F.cross_entropy(x, w) + F.pad(x, (1, 1)) + F.embedding(x, w) + F.batch_norm(x, w, w) + F.linear(x, w) + F.conv2d(x, w)
        a, b = torch.split(x, 2)
        c = torch.cat([x, w], 1) + torch.stack((x, w)) + torch.einsum("ij,jk->ik", x, w) + torch.norm(x) + torch.where(x > 0, a, b)
        return y, c, torch.unique(x), torch.meshgrid(x, w, indexing="ij"), torch.numel(x), torch.ops.aten.add(x, w), torch.ops.aten.mul.Tensor(x, w)

    return both(torch.fx.symbolic_trace(f))


@program
def constant_arguments(torch):
    def f(x, b, c=None, d=1):
        return x * 2 if b else x + 1

    def g(x):
        return {"r": x["a"] + x["b"][0], "s": [x["b"][1]]}

    PH = torch.fx.PH
    flags = torch.fx.symbolic_trace(f, concrete_args={"b": True, "c": None})
    nest = torch.fx.symbolic_trace(g, concrete_args={"x": {"a": PH, "b": [PH, PH]}})
    return [*both(flags), *both(nest), str(nest({"a": 1, "b": [4, 5]})), str(torch.fx.Interpreter(nest).run({"a": 1, "b": [4, 5]}))]


@program
def graphs_by_hand(torch):
    graph = torch.fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b", default_value=3)
    c = graph.call_function(operator.mul, (a, b))
    d = graph.call_method("relu", (c,))
    graph.output((d, c))
    lines = [str(graph), str([n.next.name for n in graph.nodes]), str([a.users, c.users, d.all_input_nodes])]
    lines += [str(graph.find_nodes(op="placeholder")), str(graph.output_node()), str((a < c, sorted([d, a, c])))]
    gm = torch.fx.GraphModule({}, graph, "ByHand")
    c.update_arg(1, 5)
    with graph.inserting_before(c):
        k = graph.create_node("call_function", torch.add, (a,), {"other": b, "alpha": 2}, name="named")
    c.replace_input_with(a, k)
    gm.recompile()
    lines += [gm.code, str(gm(torch.ones(2))), k.format_node(), str(graph.eliminate_dead_code())]
    proxy = torch.fx.Proxy(k)
    made = (proxy.sin() + 1).node
    lines += [str(graph), str(made.prev), str(graph.eliminate_dead_code()), str(graph)]
    with graph.inserting_after(d):
        e = graph.call_function(torch.tanh, (d,))
    d.replace_all_uses_with(e, delete_user_cb=lambda user: user is not e)
    graph.lint()
    other = torch.fx.Graph()
    value = other.graph_copy(graph, {})
    other.output(value)
    lines += [str(other), str(copy.deepcopy(graph)), str(len(graph.nodes))]
    for wrong in (lambda: graph.erase_node(c), lambda: graph.create_node("call_function", "no", ()), lambda: k.args.append(1),
                  lambda: other.erase_node(next(iter(graph.nodes))), lambda: a.prepend(a)):
        try:
            lines.append(str(wrong()))
        except (RuntimeError, ValueError, AttributeError, AssertionError) as error:
            lines.append(f"{type(error).__name__}: {error}")
    return lines


@program
def rewriting_calls(torch):
    def f(x, y):
        return torch.relu(torch.add(x, y)) + torch.sigmoid(x).neg()

    gm = torch.fx.symbolic_trace(f)
    for node in list(gm.graph.nodes):
        if node.target is torch.relu:
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(torch.tanh, node.args, node.kwargs)
            node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
        elif node.target is torch.add:
            node.target = torch.mul
    gm.recompile()

    class Inverted(torch.fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(torch.neg if target is torch.sigmoid else target, args, kwargs)

        def call_method(self, target, args, kwargs):
            return args[0].sigmoid() if target == "neg" else super().call_method(target, args, kwargs)

    return both(gm) + both(Inverted(gm).transform())


@program
def tracers(torch):
    Net = make_net(torch)

    class Shallow(torch.fx.Tracer):
        proxy_buffer_attributes = True

        def is_leaf_module(self, m, name):
            return name == "inner" or super().is_leaf_module(m, name)

        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            node = super().create_node(kind, target, args, kwargs, name, type_expr)
            node.meta["seen"] = kind
            return node

    net = Net().eval()
    graph = Shallow().trace(net)
    gm = torch.fx.GraphModule(net, graph, "Shallow")
    lines = [str(graph), gm.code, str([n.meta["seen"] for n in graph.nodes]), str([name for name, _ in gm.named_modules()])]
    gm.add_submodule("extra.relu", torch.nn.ReLU())
    gm.delete_submodule("table.act-1")
    lines += [str(gm.delete_submodule("none")), str([name for name, _ in gm.named_modules()])]
    gm.delete_all_unused_submodules()
    return lines + [str([name for name, _ in gm.named_modules()]), str(pickle.loads(pickle.dumps(torch.fx.symbolic_trace(net.inner))))]


@program
def patterns(torch):
    trace, replace, lines = torch.fx.symbolic_trace, torch.fx.replace_pattern, []
    relu, sigmoid = torch.relu, torch.sigmoid

    def once(x):
        y, z = relu(x * 2), relu(x * 3)
        return sigmoid(y) + sigmoid(z) + y

    def sums(x, a, b):
        return x + torch.cat([a, b]).sum() + torch.cat([b, a]).sum()

    def chained(x):
        return relu(relu(relu(relu(relu(x)))))

    def two(x, y):
        return x + y, x * y, (x - 1) * 2

    cases = [
        (once, lambda x: sigmoid(relu(x)), lambda x: torch.tanh(x)),
        (sums, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: torch.stack([a, b])),
        (chained, lambda x: relu(relu(x)), lambda x: torch.neg(x)),
        (two, lambda x, y: (x + y, x * y), lambda x, y: (x - y, x / y)),
        (two, lambda x, c: x * c, lambda x, c: x - c),
        (two, lambda x: x * 2, lambda x: x << 1),
        (two, lambda x: x * 3, lambda x: x << 2),
    ]
    for f, pattern, replacement in cases:
        gm = trace(f)
        found = replace(gm, pattern, replacement)
        lines += [gm.code, str([(m.anchor, {str(k): str(v) for k, v in m.nodes_map.items()}) for m in found])]

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(x)

    gm = trace(once)
    replace(gm, lambda x: sigmoid(x), trace(Layer()))
    lines += [gm.code, str([name for name, _ in gm.named_modules()])]
    filtered = torch.fx.subgraph_rewriter.replace_pattern_with_filters
    for options in ({"match_filters": [lambda m, g, p: m.placeholder_nodes[1] == 2]}, {}):
        gm = trace(lambda x: x * 2 + x * 3)
        lines += [str(len(filtered(gm, lambda x, c: x * c, lambda x, c: x - c, **options))), gm.code]
    gm = trace(lambda x: x * 2 + x * 3)
    return lines + [str(len(filtered(gm, lambda x: x * 5, lambda x: x - 1, ignore_literals=True))), gm.code]


@program
def shapes(torch):
    from_passes = __import__(f"{torch.__name__}.fx.passes.shape_prop", fromlist=["ShapeProp"])
    gm = torch.fx.symbolic_trace(make_net(torch)().eval())
    from_passes.ShapeProp(gm).propagate(torch.ones(2, 3, 8, 8), 3)
    metas = [f"{n.name} {n.meta.get('tensor_meta')} {n.meta.get('type')}" for n in gm.graph.nodes]
    return [*metas, gm.print_readable(print_output=False)]


@program
def splits(torch):
    split = __import__(f"{torch.__name__}.fx.passes.split_module", fromlist=["split_module"]).split_module
    gm = torch.fx.symbolic_trace(make_net(torch)().eval())
    parts = {"conv": 0, "norm": 0, "relu": 0, "max_1": 2, "getitem": 2, "getitem_1": 2}
    lines, names = [], {}
    for options in ({}, {"keep_original_order": True, "keep_original_node_name": True}, {"partition_affix": "pp", "tuple_return": True},
                    {"keep_original_input_name": False, "qualname_map": names}):
        made = split(gm, None, lambda n: parts.get(n.name, 1) if n.name not in ("mul_1", "table_act_1") else 3, **options)
        lines += [str(made.graph), made.print_readable(print_output=False), str(sorted(made.meta["partition_names"]))]
    return [*lines, str(names)]


@program
def folded_norms(torch):
    optimization = __import__(f"{torch.__name__}.fx.experimental.optimization", fromlist=["fuse"])
    net = make_net(torch)().eval()
    return [str(optimization.fuse(net)), optimization.remove_dropout(net.train()).code]


def random_graph(torch, rng):
    functions = [torch.add, torch.mul, torch.sub, torch.sin, torch.cos, torch.maximum]
    graph = torch.fx.Graph()
    values = [graph.placeholder("a"), graph.placeholder("b")]
    for _ in range(rng.randint(5, 18)):
        f = rng.choice(functions)
        count = 1 if f in (torch.sin, torch.cos) else 2
        values.append(graph.call_function(f, tuple(rng.choice(values[-6:]) for _ in range(count))))
    graph.output((*rng.sample(values, 2), values[-1]))
    graph.eliminate_dead_code()
    return torch.fx.GraphModule({}, graph), rng.sample(functions, 3)


@program
def normalized_arguments(torch):
    F, lines = torch.nn.functional, []

    def f(x, w):
        a, b = torch.relu(x), F.relu(x) + F.dropout(x, 0.2) + F.max_pool2d(x, 2) + x.view(2)
        c = torch.flatten(x, 1), torch.softmax(x, 1), torch.cat([x, w], 1), torch.transpose(x, 0, 1), torch.mean(x)
        return a, b, c, torch.ops.aten.add.Tensor(x, w), operator.neg(x)

    class Layers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.own = torch.nn.Conv2d(1, 1, 1), make_net(torch)().inner

        def forward(self, x):
            return self.own(self.conv(x))

    class Leaves(torch.fx.Tracer):
        def is_leaf_module(self, m, name):
            return True

    layers = Layers()
    for gm in (torch.fx.symbolic_trace(f), torch.fx.GraphModule(layers, Leaves().trace(layers))):
        for node in gm.graph.nodes:
            if node.target is operator.neg or node.target is operator.add:
                continue
            for by_name in (False, True):
                found = node.normalized_arguments(gm, normalize_to_only_use_kwargs=by_name)
                lines.append(f"{node} {found and tuple(found)}")
    x, T = next(iter(gm.graph.nodes)), torch.Tensor
    lines.append(str(tuple(torch.fx.operator_schemas.normalize_function(torch.add, (x, x), {}, (T, T)))))
    try:
        torch.fx.operator_schemas.normalize_function(torch.add, (x, x))
    except RuntimeError as error:
        lines.append(str("ambiguous" in str(error)))
    return lines


@program
def partitions(torch):
    support = __import__(f"{torch.__name__}.fx.passes.operator_support", fromlist=["chain"])
    Partitioner = __import__(f"{torch.__name__}.fx.passes.infra.partitioner", fromlist=["Partition"]).CapabilityBasedPartitioner
    tools = __import__(f"{torch.__name__}.fx.passes.tools_common", fromlist=["legalize_graph"])
    rng, lines = random.Random(1), []

    def f(a, b, c):
        x = a + b
        y = torch.relu(x * c)
        u = torch.sigmoid(y - a) + x
        t = torch.max(u, 1)
        return t[0] * t[1] + u, y

    def supports(functions):
        return support.create_op_support(lambda modules, node: node.op == "call_function" and node.target in functions)

    cases = [(torch.fx.symbolic_trace(f), functions) for functions in
             ({operator.add, operator.mul}, {torch.max, operator.add}, {operator.mul, torch.max}, {operator.sub, torch.relu, torch.sigmoid})]
    for gm, functions in cases + [random_graph(torch, rng) for _ in range(12)]:
        options = rng.choice(({}, {"allows_single_node_partition": True}, {"skip_horizontal_fusion": True, "allows_single_node_partition": True}))
        partitioner = Partitioner(gm, supports(functions), **options)
        found = partitioner.propose_partitions()
        lines += [str([[n.name for n in part.nodes] for part in found]), partitioner.fuse_partitions(found).print_readable(print_output=False)]
    gm = torch.fx.symbolic_trace(make_net(torch)().eval())
    modules = dict(gm.named_modules())
    lines.append(str([tools.get_node_target(modules, n) for n in gm.graph.nodes if n.op.startswith("call")]))
    add, once = f"{torch.__name__}.add", torch.fx.symbolic_trace(lambda x: torch.add(torch.add(x, 1), torch.sin(x)))
    for node in once.graph.nodes:
        node.meta["type"] = torch.float32 if node.name != "sin" else torch.float64
    table = support.OperatorSupport({add: (((torch.float32,), (torch.float32,)), {})})
    for chosen in (table, support.chain(table, support.OpSupports.decline_if_node_in_names({"add"})), support.OpSupports.decline_if_input_dtype(torch.float64),
                   support.any_chain(table, supports({torch.sin}))):
        lines.append(str([chosen.is_node_supported({}, n) for n in once.graph.nodes]))
    last = list(gm.graph.nodes)[-2]
    next(iter(gm.graph.nodes)).prepend(last)
    return [*lines, tools.legalize_graph(gm).code]


@program
def errors_of_graphs(torch):
    lines = []
    gm = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    relu, add = list(gm.graph.nodes)[1:3]
    cases = [lambda: relu.prepend(add) or gm.graph.lint(), lambda: gm.graph.call_module("none") and gm.graph.lint(),
             lambda: torch.fx.GraphModule({}, torch.fx.Tracer().trace(torch.nn.Sequential(torch.nn.ReLU()))),
             lambda: torch.fx.GraphModule(3, torch.fx.Graph()), lambda: torch.fx.wrap(3), lambda: torch.fx.wrap("len"),
             lambda: torch.fx.Interpreter(gm).run(), lambda: setattr(add.kwargs, "a", 1)]
    for case in cases:
        try:
            lines.append(str(case()))
        except (RuntimeError, AttributeError, NotImplementedError) as error:
            lines.append(f"{type(error).__name__}: {error}".partition("\n\nWhile")[0])
    return lines
