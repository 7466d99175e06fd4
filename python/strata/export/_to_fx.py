"""The text of an exported graph as nodes of fx: operators, and cond and while_loop with their functions as submodules."""

from __future__ import annotations

import ast
import operator
import re

import strata
from strata import _C
from strata._control_flow import _Namespace
from strata.fx._from_graph import _MARKS, _arguments, _split_types, _stack_trace, _tensor_of, _value, _Words
from strata.fx.graph import Graph
from strata.fx.graph_module import GraphModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from strata.fx.node import Node


_FUNCTIONS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
# With a number, too, PyTorch's programs call the overload of tensors, which takes it for one.
_ARITHMETIC = frozenset(("add", "sub", "mul", "div"))


def sizes_hold(holds: bool, condition: str, place: str, got: int) -> None:
    """Raises ValueError where the sizes of a call are none that the program was exported for."""
    if not holds:
        raise GuardError(f"Guard failed: {condition}\nexported program: expected {condition}, got {got} ({place})")


class GuardError(AssertionError, ValueError):
    """An input of a call is not what the program was exported for."""


class Statement:
    """A line of a block, or an `if` or `loop` with its blocks.

    results: (name, type) of each. right: what stands behind "=", without blocks. blocks: a list of (parameters, statements, yielded).
    """

    def __init__(self, left: str, right: str, blocks: list, span: str) -> None:
        self.results = [m for part in left.split(", ") for m in [part] if m] and _results(left)
        self.right, self.blocks, self.span = right, blocks, span

    def uses(self) -> list[str]:
        """Values from outside of it that it or its blocks read."""
        found = re.findall(r"%\d+", self.right)
        for params, inner, yielded in self.blocks:
            own = {name for name, _ in params}
            for s in inner:
                found += [v for v in s.uses() if v not in own]
                own.update(name for name, _ in s.results)
            found += [v for v in yielded if v not in own]
        return list(dict.fromkeys(found))


def _results(left: str) -> list[tuple[str, str]]:
    """("%7", "f32[1]"), ...; a result that is undefined is ("", "")."""
    if not left:
        return []
    typed = iter(_split_types(left))
    return [("", "") if word == "None" else next(typed) for word in re.findall(r"(?:^|, )(None|%\d+)", left)]


def read_blocks(text: str) -> tuple[list[Statement], list[str]]:
    """The statements of a graph's body, and the values that it gives."""
    lines = text.splitlines()[1:-1]
    at = 0

    def block(last: str) -> tuple[list[Statement], list[str]]:
        nonlocal at
        found = []
        while True:
            line = lines[at].strip()
            at += 1
            if line == last or line.startswith(last + " "):
                return found, re.findall(r"%\d+|None", line[len(last) :])
            head, _, span = line.partition("  # ")
            left, equals, right = head.partition(" = ")
            if not equals:
                left, right = "", head
            if not right.endswith("{"):
                found.append(Statement(left, right, [], span))
                continue
            right = right[:-1].rstrip()
            params: list = []
            if right.startswith("loop "):
                right, _, listed = right.partition(" (")
                params = list(_split_types(listed))
            inner, yielded = block("yield")
            blocks = [(params, inner, yielded)]
            line = lines[at].strip()
            at += 1
            if line == "} else {":
                blocks.append(([], *block("yield")))
                line = lines[at].strip()
                at += 1
            found.append(Statement(left, right, blocks, line.partition("  # ")[2]))

    return block("return")


class Builder:
    """Fills a graph of fx with statements. values: the nodes of what is known already."""

    def __init__(self, graph: Graph, values: dict[str, Any], root: dict[str, Any]) -> None:
        self.graph, self.root = graph, root
        self.values = {"None": None, **values}
        self.counts: dict[str, int] = {}
        self.sizes: dict[str, Node] = {}
        self.conditions: list[Any] = []  # of the first turns of loops, which these compute by themselves

    def note(self, node: Node, text: str, span: str = "") -> Node:
        known = _tensor_of(text.replace("?", ""))
        if known is not None:
            node.meta["val"] = known
        trace = _stack_trace(span)
        if trace:
            node.stack_trace = trace
        return node

    def run(self, statements: list[Statement]) -> None:
        used: set[str] = set()
        for s in statements:
            used.update(s.uses())
        self.used = used
        for s in statements:
            if s.right.startswith("check "):
                self.check(s)
            elif s.right.startswith("constant "):
                self.values[s.results[0][0]] = _value(_Words(s.right[9:]), "Scalar", self.values)
            elif s.right.startswith("if "):
                self.branch(s)
            elif s.right.startswith("loop "):
                self.loop(s)
            else:
                self.call(s)
        kept = {id(self.values.get(v)) for v in self.wanted}
        for node in self.conditions:
            self.erase(node, kept)

    def bind(self, node: Node, s: Statement, single: bool) -> None:
        """The results of a statement: the node, or its items."""
        if single:
            self.values[s.results[0][0]] = self.note(node, s.results[0][1], s.span)
            return
        self.note(node, "", s.span)
        for i, (name, kind) in enumerate(s.results):
            if name in self.used or name in self.wanted:
                self.values[name] = self.note(self.graph.call_function(operator.getitem, (node, i)), kind, s.span)

    wanted: set[str] = set()

    def call(self, s: Statement) -> None:
        right = s.right
        off = right.startswith("no_grad ")
        for mark in _MARKS:
            right = right.removeprefix(mark)
        full, _, arguments = right.partition("(")
        arguments = self.expressions(arguments) if ".size(" in arguments else arguments
        op = _C._op_get(full)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        kept = 0  # of the positional ones: up to the last that differs from its default
        for described, value in _arguments(op, arguments, self.values):
            default = described.has_default_value() and _same(value, described.default_value)
            if not described.kwarg_only:
                args.append(value)
                kept = kept if default else len(args)
            elif not default:
                kwargs[described.name] = value
        name = full.partition("::")[2].partition(".")[0]
        if name.removesuffix("_") in _ARITHMETIC and full.endswith(".Scalar"):
            op = _C._op_get(full.removesuffix("Scalar") + "Tensor")
        node = self.graph.create_node("call_function", op, tuple(args[:kept]), kwargs, name=name)
        if off:
            node.meta["no_grad"] = True
        returns = op._schema.returns
        single = len(s.results) == 1 and len(returns) == 1 and not returns[0].type.endswith("]")
        self.bind(node, s, single)

    # ---- sizes

    def check(self, s: Statement) -> None:
        """A condition of sizes, which a call of the program may not fulfil."""
        text = s.right.removeprefix("check ")
        holds = self.expression(text)
        left = holds.args[0] if hasattr(holds, "op") and holds.op == "call_function" and holds.args else holds
        shown = re.sub(r"%\d+", lambda m: self.values[m.group()].name, text)
        self.graph.call_function(sizes_hold, (holds, shown, s.span, left))

    def expressions(self, arguments: str) -> str:
        """The arguments of a call, where a value stands in the place of each expression."""
        parts, depth, last = [], 0, 0
        for i, c in enumerate(arguments):
            depth += (c in "([") - (c in ")]")
            if (c == "," and depth <= 1) or (c == "]" and depth == 0) or (c == ")" and depth < 0):
                parts += [arguments[last:i], c]
                last = i + 1
            elif c == "[":
                parts += [arguments[last:i], c]
                last = i + 1
        parts.append(arguments[last:])
        return "".join(self.named(p) if ".size(" in p else p for p in parts)

    def named(self, text: str) -> str:
        before, equals, value = text.rpartition("=")
        name = f"%{10**9 + len(self.values)}"
        self.values[name] = self.expression(value)
        return f"{before}{equals}{name}"

    def expression(self, text: str) -> Any:
        names = re.sub(r"%(\d+)\.size\((\d+)\)", r"_\1_\2", text.strip())
        return self.number(ast.parse(names, mode="eval").body)

    def number(self, tree: ast.expr) -> Any:
        if isinstance(tree, ast.Constant):
            return tree.value
        if isinstance(tree, ast.Name):
            _, value, dim = tree.id.split("_")
            key = f"{value}.{dim}"
            if f"%{value}" not in self.values:
                raise TypeError(f"export: a size of %{value} is used outside of the branch or loop that makes it; return it from there")
            if key not in self.sizes:
                node = self.graph.create_node("call_method", "size", (self.values[f"%{value}"], int(dim)), {}, name="sym_size_int")
                self.sizes[key] = node
            return self.sizes[key]
        if isinstance(tree, ast.UnaryOp):
            return -self.number(tree.operand)
        parts = (tree.left, tree.ops[0], tree.comparators[0]) if isinstance(tree, ast.Compare) else (tree.left, tree.op, tree.right)
        a, b = self.number(parts[0]), self.number(parts[2])
        function = _FUNCTIONS[type(parts[1])]
        return self.graph.call_function(function, (a, b)) if hasattr(a, "op") or hasattr(b, "op") else function(a, b)

    def erase(self, node: Any, kept: set[int]) -> None:
        """A node and what it alone is made of, where nothing reads it."""
        if hasattr(node, "op") and node.op == "call_function" and not node.users and id(node) not in kept and not _acts(node.target):
            before = list(node.all_input_nodes)
            self.graph.erase_node(node)
            for n in before:
                self.erase(n, kept)

    def submodule(self, base: str, made: GraphModule) -> Node:
        path = f"{base}_{self.counts.setdefault(base, 0)}"
        self.counts[base] += 1
        self.root[path] = made
        return self.graph.get_attr(path)

    def function(self, names: dict[str, str], kinds: dict[str, Any], statements: list[Statement], gives: list[str], single: bool) -> GraphModule:
        """A block as a module. names: of each value that it is given, in order, what it is called there."""
        graph, root = Graph(), {}
        inner: dict[str, Any] = {}
        for value, name in names.items():
            node = graph.placeholder(name)
            node.target = node.name
            if kinds.get(value) is not None:
                node.meta["val"] = kinds[value]
            inner[value] = node
        builder = Builder(graph, {**{k: v for k, v in self.values.items() if not hasattr(v, "op")}, **inner}, root)
        builder.wanted = set(gives)
        builder.run(statements)
        results = tuple(builder.values[v] for v in gives)
        graph.output(results[0] if single else results)
        return GraphModule(root, graph)

    def operands(self, uses: list[str]) -> list[str]:
        return [v for v in uses if v != "None" and hasattr(self.values[v], "op")]

    def kinds(self, values: list[str]) -> dict[str, Any]:
        return {v: self.values[v].meta.get("val") for v in values}

    def branch(self, s: Statement) -> None:
        pred = s.right.split()[1]
        inside = Statement("", "", s.blocks, "")
        given = self.operands(inside.uses())
        modules = []
        for name, (_, statements, yielded) in zip(("true_graph", "false_graph"), s.blocks, strict=True):
            names = {v: self.values[v].name for v in given}
            modules.append(self.submodule(name, self.function(names, self.kinds(given), statements, yielded, False)))
        node = self.graph.create_node(
            "call_function", _Namespace.cond, (self.values[pred], *modules, tuple(self.values[v] for v in given)), {}, name="cond"
        )
        self.bind(node, s, False)

    def loop(self, s: Statement) -> None:
        """A `loop` whose condition is one of what it carries: cond_fn is what of the block leads from there to it."""
        carried = re.findall(r"%\d+", s.right)[1:]
        params, statements, yielded = s.blocks[0]
        going, *turned = yielded
        # Copies that the recording added stand for what they are copies of.
        copies = {st.results[0][0]: re.findall(r"%\d+", st.right)[0] for st in statements if st.right.startswith("aten::clone(")}
        ends = {v: i for i, v in enumerate(turned)}
        for v, i in list(ends.items()):
            if v in copies:
                ends.setdefault(copies[v], i)
        needed, tail = {going}, []
        for st in reversed(statements):
            made = {name for name, _ in st.results}
            if made & needed and not made & set(ends):
                tail.append(st)
                needed.update(v for v in st.uses() if v not in made)
        tail.reverse()
        starts = {v for v in needed if v in ends}
        own = [name for name, _ in params[1:]]
        if needed & ({name for name, _ in params} - starts):
            raise NotImplementedError("export: this loop's condition is no function of what it carries on; it has no form in fx")
        inner = {name for st in tail for name, _ in st.results}
        everything = Statement("", "", [(params, statements, yielded)], "")
        more = self.operands(everything.uses())
        kinds = dict(zip(own, (self.values[v].meta.get("val") for v in carried), strict=True)) | self.kinds(more)
        extra = {v: f"arg{len(own) + i}_1" for i, v in enumerate(more)}
        body_names = {v: f"arg{i}_1" for i, v in enumerate(own)} | extra
        body = [st for st in statements if st not in tail or any(name in turned for name, _ in st.results)]
        # The condition's own values: what it is given is called by the first name of each.
        names: dict[str, str] = {}
        for i in range(len(own)):
            value = next((v for v in sorted(starts) if ends[v] == i), f"#{i}")
            names[value] = f"arg{i}_1"
            kinds[value] = kinds[own[i]]
        same = {v: next(n for n in names if ends.get(n) == ends[v]) for v in starts}
        renamed = [_renamed(st, same) for st in tail]
        assert not inner & set(names)
        cond_graph = self.submodule("while_loop_cond_graph", self.function(names | extra, kinds, renamed, [going], True))
        body_graph = self.submodule("while_loop_body_graph", self.function(body_names, kinds, body, turned, False))
        given = tuple(self.values[v] for v in carried), tuple(self.values[v] for v in more)
        self.conditions.append(self.values.get(re.findall(r"%\d+", s.right)[0]))
        node = self.graph.create_node("call_function", _Namespace.while_loop, (cond_graph, body_graph, *given), {}, name="while_loop")
        self.bind(node, s, False)


def _acts(target: Any) -> bool:
    found = _C._op_info(target) if isinstance(target, strata.ops.OpOverload) else None
    return found is None or bool(found[0]["acts"]) or target._schema.is_mutable


def _renamed(s: Statement, names: dict[str, str]) -> Statement:
    made = Statement.__new__(Statement)
    made.results, made.blocks, made.span = s.results, s.blocks, s.span
    made.right = re.sub(r"%\d+", lambda m: names.get(m.group(), m.group()), s.right)
    return made


def _same(a: Any, b: Any) -> bool:
    if isinstance(b, (list, tuple)) and isinstance(a, (int, list, tuple)):
        a = [a] * len(b) if isinstance(a, int) else list(a)
        return a == list(b)
    if isinstance(a, list) and isinstance(b, int):
        return bool(a) and all(v == b for v in a)
    return type(a) is type(b) and a == b


def value_types(graph: Any) -> list[tuple[str, str, str]]:
    """Of each parameter of a graph: "%3", its name, its type."""
    params, _ = _C._graph_nodes(graph)
    return [(f"%{v}", name, kind) for v, name, kind in params]


def placeholder(graph: Graph, name: str, kind: str) -> Node:
    node = graph.placeholder(name)
    node.target = node.name
    known = _tensor_of(kind.replace("?", ""))
    if known is not None:
        node.meta["val"] = known
    return node


def guard_modes(graph: Graph) -> None:
    """Operators that ran without gradients do so again: the mode is switched around them."""
    off = False
    for node in list(graph.nodes):
        if node.op == "placeholder" or node.op == "get_attr":
            continue
        wanted = bool(node.meta.get("no_grad"))
        if wanted != off:
            with graph.inserting_before(node):
                graph.create_node("call_function", strata._C._set_grad_enabled, (not wanted,), {}, name="_set_grad_enabled")
            off = wanted
