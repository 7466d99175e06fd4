"""Captured graphs (strata.graph) as modules of fx, whose nodes call operators of the table."""

from __future__ import annotations

import itertools
import linecache
import math
import operator
import re

import strata
from strata import _C

from .graph import Graph
from .graph_module import GraphModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .node import Node

_DTYPES = {
    "f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "i8": "int8", "i16": "int16", "i32": "int32",
    "i64": "int64", "u8": "uint8", "b8": "bool", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
# Marks of a call that concern the backward alone.
_MARKS = ("no_grad ", "own_grad ", "saved ", "sum ", "total ")
_BESIDE_NUMBERS = {f"aten::{name}{inplace}.Scalar" for name in ("add", "sub", "mul", "div") for inplace in ("", "_")}
_WORD = re.compile(r"""\s*(%\d+|'(?:\\.|[^'\\])*'|complex\([^)]*\)|[\[\](),=]|[^\s\[\](),=]+)""")


class _Words:
    """The words of a printed line, read from left to right."""

    def __init__(self, text: str) -> None:
        self.words = [match.group(1) for match in _WORD.finditer(text)]
        self.at = 0

    def peek(self) -> str:
        return self.words[self.at] if self.at < len(self.words) else ""

    def next(self) -> str:
        self.at += 1
        return self.words[self.at - 1]


def _arguments(op: Any, text: str, values: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """What the text of a call's arguments, up to its ")", gives each argument of the operator's schema."""
    words = _Words(text)
    schema = iter(op._schema.arguments)
    while words.peek() != ")":
        described = next(schema)
        if described.kwarg_only:
            words.next(), words.next()  # its name and "="
        yield described, _value(words, described.type, values)
        if words.peek() == ",":
            words.next()


def _value(words: _Words, kind: str, values: dict[str, Any]) -> Any:
    """One argument. kind: its type in the operator's schema, which says what a bare word is."""
    word = words.next()
    if word == "[":
        items = []
        while words.peek() != "]":
            items.append(_value(words, kind.partition("[")[0], values))
            if words.peek() == ",":
                words.next()
        words.next()
        return items
    if word[0] == "%":
        return values[word]
    if word[0] == "'":
        return re.sub(r"\\(.)", lambda m: "\n" if m.group(1) == "n" else m.group(1), word[1:-1])
    if word in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[word]
    if word.startswith("complex("):
        real, imaginary = word[8:-1].split(",")
        return complex(float(real), float(imaginary))
    kind = kind.rstrip("?")
    if kind in ("ScalarType", "MemoryFormat", "Layout"):
        return getattr(strata, word)
    if kind == "Device":
        return strata.device(word)
    if word in ("inf", "-inf", "nan"):
        return float(word)
    if re.fullmatch(r"[-+]?\d+", word):
        return int(word)
    try:
        return float(word)
    except ValueError:
        raise NotImplementedError(f"from_graph: an argument {word} of type {kind} has no form in fx") from None


def _tensor_of(text: str) -> Any:
    """A tensor without memory of a printed type such as "f32[2, 3; 1, 2]"; None for what is no tensor."""
    match = re.fullmatch(r"(\w+)\[([^\];]*)(?:;([^\]]*))?\](?:@.*)?", text)
    if match is None or match.group(1) not in _DTYPES:
        return None
    try:
        sizes, strides = ([int(v) for v in (part or "").split(",") if v.strip()] for part in match.groups()[1:])
    except ValueError:  # sizes that are not numbers
        return None
    if match.group(3) is None:
        strides = [math.prod(max(1, n) for n in sizes[i + 1 :]) for i in range(len(sizes))]
    return strata.empty_strided(sizes, strides, dtype=getattr(strata, _DTYPES[match.group(1)]), device="meta")


def _stack_trace(span: str) -> str | None:
    """The lines of a printed span, "f.py:3 in f < f.py:9 in <module>", as a traceback prints them, innermost last."""
    found = [re.match(r"(.+):(\d+) in (.+)$", part) for part in span.partition(", backward")[0].split(" < ")]
    frames = [match.groups() for match in found if match]
    if not frames:
        return None
    return "\n".join(
        f'  File "{file}", line {line}, in {name}\n    {linecache.getline(file, int(line)).strip()}' for file, line, name in reversed(frames)
    )


def _split_types(text: str) -> Iterator[tuple[str, str]]:
    """("%7", "f32[1]"), ... of "%7: f32[1], %8: i64[1]"."""
    return ((m.group(1), m.group(2)) for m in re.finditer(r"(%\d+): ((?:number )?\w+(?:\[[^\]]*\])?(?:@[\w:]+)?)", text))


def _identifier(name: str) -> str:
    name = re.sub(r"\W+", "_", name) or "arg"
    return f"_{name}" if name[0].isdigit() else name


class _Paths:
    """Where captured tensors lie in the module: at their own names, as far as these are free."""

    def __init__(self) -> None:
        self.leaves: set[str] = set()
        self.inner: set[str] = set()  # what holds others

    def path(self, name: str) -> str:
        path = ".".join(re.sub(r"\W+", "_", part) or "_" for part in name.split("."))
        first = path.partition(".")[0]
        if hasattr(GraphModule, first) or first in ("meta", "training"):
            path = f"captured_{path}"
        while path in self.leaves or path in self.inner or any(above in self.leaves for above in _above(path)):
            path = path.replace(".", "_") + "_"
        self.leaves.add(path)
        self.inner.update(_above(path))
        return path


def _above(path: str) -> list[str]:
    """("a", "a.b") of "a.b.c"."""
    return list(itertools.accumulate(path.split(".")[:-1], "{}.{}".format))


class _Reader:
    """Reads a captured graph into one of fx."""

    def __init__(self, source: strata.Graph, recorded: bool | None = None) -> None:
        if source._step and (source._grads or source._grads_before):
            raise NotImplementedError(
                "from_graph: the graph leaves gradients in .grad, which no node of fx does; return them (strata.autograd.grad)"
            )
        self.source, self.graph, self.recorded = source, Graph(), recorded
        self.root: dict[str, Any] = {}
        self.values: dict[str, Any] = {"None": None}

    def note(self, node: Node, text: str, span: str = "") -> Node:
        known = _tensor_of(text)
        if known is not None:
            node.meta["val"] = known
            node.meta["device"] = strata.device(text.partition("@")[2] or "cpu")
        trace = _stack_trace(span)
        if trace:
            node.stack_trace = trace
        return node

    def placeholders(self, params: list[tuple[int, str, str]]) -> None:
        """The graph's inputs: their numbers, names and types."""
        for value, name, kind in params:
            node = self.graph.placeholder(_identifier(name))
            node.target = node.name  # parameters of a function differ
            self.values[f"%{value}"] = self.note(node, kind)

    def record(self, on: bool) -> None:
        """From here on nodes are recorded for a backward, or not."""
        if self.recorded is not None and on is not self.recorded:
            self.graph.call_function(_C._set_grad_enabled, (on,))
            self.recorded = on

    def note_recorded(self, left: str, right: str) -> None:
        """Before a call: recording as it was, where an operand has a gradient; what it gives has one then."""
        operands = re.findall(r"%\d+", right)
        if right.startswith(("no_grad ", "own_grad ")):
            self.record(False)
        elif not self.learned.isdisjoint(operands):
            self.record(True)
            self.learned.update(re.findall(r"%\d+", left), operands[:1] if right.partition("(")[0].partition(".")[0].endswith("_") else ())

    def call(self, left: str, right: str, span: str) -> None:
        """A line `left = right`, a call of an operator."""
        self.note_recorded(left, right)
        for mark in _MARKS:
            right = right.removeprefix(mark)
        full, _, arguments = right.partition("(")
        op = _C._op_get(full)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for described, value in _arguments(op, arguments, self.values):
            if not described.kwarg_only:
                args.append(value)
            elif not (described.has_default_value() and value == described.default_value):
                kwargs[described.name] = value
        if full in _BESIDE_NUMBERS:  # as functions of arithmetic are named, which passes look for
            op = _C._op_get(full.replace(".Scalar", ".Tensor"))
            args, alpha = args[:2], args[2:]
            kwargs |= {"alpha": alpha[0]} if alpha and alpha[0] != 1 else {}
        name = full.partition("::")[2].partition(".")[0]
        node = self.graph.create_node("call_function", op, tuple(args), kwargs, name=name)
        results = list(_split_types(left))
        returns = op._schema.returns  # several, where a graph keeps but one of them
        if len(results) == 1 and len(returns) == 1 and not returns[0].type.endswith("]"):
            self.values[results[0][0]] = self.note(node, results[0][1], span)
        else:
            self.note(node, "", span)
            for i, (result, kind) in enumerate(results):
                if result not in self.used:
                    continue
                self.values[result] = self.note(self.graph.call_function(operator.getitem, (node, i)), kind, span)

    def read(self, results: Callable[[list, list], Any]) -> GraphModule:
        """The module. results: makes what it returns of the graph's results and its inputs, captured ones too."""
        lines = _C._graph_text(self.source._graph).splitlines()
        paths = _Paths()
        params, _ = _C._graph_nodes(self.source._graph)
        captured = _C._graph_captured(self.source._graph)
        own = len(params) - len(captured)
        inputs = own - len(self.source._tangent_of)
        self.placeholders(params[:inputs])
        for value, _, _ in params[inputs:own]:
            self.values[f"%{value}"] = None
        for (value, name, kind), tensor in zip(params[own:], captured):
            path = paths.path(name)
            self.root[path] = tensor
            self.values[f"%{value}"] = self.note(self.graph.get_attr(path), kind)
        body = [line[2:] for line in lines[1:-1]]
        if any(line.endswith("{") or line.startswith(" ") for line in body):
            raise NotImplementedError("from_graph: the graph has blocks (if, loop), which nodes of fx cannot hold")
        last = body.pop()
        calls = [line.partition("  # ")[0] for line in body[: self.source._nodes]]
        read = [text.partition(" = ")[2] or text for text in calls]
        self.used = {*re.findall(r"%\d+", " ".join([*read, last]))}
        known = params[:inputs] + params[own:]
        self.learned = {f"%{known[i][0]}" for i in self.source._wanted}  # values that have a gradient
        before = bool(self.recorded)
        for line in body[: self.source._nodes]:  # those behind are the backward's
            text, _, span = line.partition("  # ")
            left, equals, right = text.partition(" = ")
            if not equals:
                left, right = "", text
            if right.startswith("constant "):
                self.values[left.partition(":")[0]] = _value(_Words(right[9:]), "Scalar", self.values)
            else:
                self.call(left, right, span)
        names = last.removeprefix("return").replace(",", " ").split()[: self.source._count]
        made = [self.values[name] for name in names]
        self.record(before)
        self.graph.output(results(made, [self.values[f"%{value}"] for value, _, _ in known]))
        self.graph.eliminate_dead_code()  # what is saved for the backward
        return GraphModule(self.root, self.graph)


def holds_gradients(source: strata.Graph) -> bool:
    """Whether what a captured graph returns is computed by nodes of a backward."""
    body = _C._graph_text(source._graph).splitlines()[1:-1]
    return any(line.endswith(", backward") for line in body[: source._nodes])


def graph_module(source: strata.Graph, recorded: bool | None = None) -> GraphModule:
    """The forward of a captured graph: a module that takes its inputs in order and gives the tuple of its results.

    recorded: whether recording is on where it is called; nodes of _set_grad_enabled turn it off and on then, as in the capture.

    Parameters and other tensors that the capture found are attributes of the module. Nodes call operators of the table;
    `meta["val"]` is a tensor without memory of the value's dtype, sizes and strides, `meta["device"]` where the value lies,
    `stack_trace` the user's lines.
    NotImplementedError for graphs with blocks.
    """
    return _Reader(source, recorded).read(lambda made, known: tuple(made))


def from_graph(g: strata.Graph) -> GraphModule:
    """A captured graph as a module of fx, which takes the captured function's tensors in order and returns what it returned.

    Else as `graph_module`. NotImplementedError, too, for graphs that leave gradients in `.grad`.
    """
    return _Reader(g).read(g._results.give)
