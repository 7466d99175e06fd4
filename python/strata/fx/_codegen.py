"""Printing a graph as the Python function that it is."""

from __future__ import annotations

import enum
import math
import re
import types
import typing
from dataclasses import dataclass

import strata

from . import _pytree as fx_pytree
from ._names import is_from_strata, qualified_name, type_name
from ._namespace import Namespace
from ._values import Colors, of_meta
from .node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# Objects that code of every graph may name, and how a file imports them.
CUSTOM_BUILTINS: dict[str, tuple[str, Any]] = {
    "inf": ("from math import inf", math.inf),
    "nan": ("from math import nan", math.nan),
    "NoneType": ("NoneType = type(None)", type(None)),
    "strata": ("import strata", strata),
    "device": ("from strata import device", strata.device),
    "fx_pytree": ("import strata.fx._pytree as fx_pytree", fx_pytree),
    "pytree": ("import strata.utils._pytree as pytree", strata.utils._pytree),
}
Namespace.taken.update({name: obj for name, (_, obj) in CUSTOM_BUILTINS.items()})

# Functions of the module operator that print as the operators they are.
reflectable_magic_methods = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "div": "{} / {}",
    "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}", **reflectable_magic_methods,
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}",
    "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}",
    "isub": "{} -= {}", "itruediv": "{} /= {}", "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip

# Of annotations such as typing.List[int], which say list of themselves.
_ORIGINS = {list: typing.List, dict: typing.Dict, set: typing.Set, frozenset: typing.FrozenSet, tuple: typing.Tuple}  # noqa: UP006


@dataclass
class PythonCode:
    """A graph as Python: the text of its function, and what names in it mean.

    _lineno_map: of each line of the function, the number of its node.
    """

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


def path_text(base: str, path: str) -> str:
    """Code for an attribute's path; names that are none in Python are looked up by getattr."""
    for name in path.split("."):
        base = f"{base}.{name}" if name.isidentifier() else f'getattr({base}, "{name}")'
    return base


def stack_summary(stack_trace: str | None) -> str:
    """The innermost line of a stack trace in one line."""
    lines = (stack_trace or "").strip().split("\n")
    for i in range(len(lines) - 2, -1, -1):
        match = re.match(r'^File "(.+)", line (\d+), in (.+)$', lines[i].strip())
        if match:
            file, number, name = match.groups()
            return f"File: {file}:{number} in {name}, code: {lines[i + 1].strip()}"
    return "No stacktrace found for following nodes"


class CodeGen:
    """How a graph becomes a function: its signature, its return, how inputs and outputs of a call meet the graph's."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The `def` line."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr) -> str:
        """The `return` line."""
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The graph's inputs of a call's arguments."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """A call's result of the graph's."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the code uses besides those of its nodes, with what they mean."""
        return []

    def _gen_python_code(self, nodes: Iterable[Node], root_module: str, namespace: Namespace, **options: Any) -> PythonCode:
        return _Writer(self, root_module, namespace, **options).write(list(nodes))


class _PyTreeCodeGen(CodeGen):
    """For functions that were traced with nests as arguments: the graph's inputs and outputs are their leaves."""

    def __init__(self, orig_args: list[str], in_spec: Any, out_spec: Any = None) -> None:
        super().__init__()
        self.orig_args, self.in_spec, self.out_spec = orig_args, in_spec, out_spec

    def process_inputs(self, *args: Any) -> Any:
        return strata.utils._pytree.tree_leaves(args)

    def process_outputs(self, outputs: Any) -> Any:
        if self.out_spec is None:
            return outputs
        if not isinstance(outputs, (list, tuple)):
            outputs = [outputs]
        return strata.utils._pytree.tree_unflatten(outputs, self.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        names = self.orig_args
        if names[:1] == ["self"]:
            free_vars.insert(0, "self")
        head = super().gen_fn_def(list(names), maybe_return_annotation)
        if not free_vars:
            return head
        annotated = [name for name in free_vars if ":" in name]
        if annotated:
            head += "\n    " + "".join(f"{name}; " for name in annotated) + "\n"
        bare = ", ".join(name.split(":")[0].split("#")[0] for name in free_vars)
        return head + f"\n    {bare}, = fx_pytree.tree_flatten_spec([{', '.join(names)}], self._in_spec)"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr) -> str:
        if self.out_spec is None:
            return super().generate_output(output_args, repr_fn=repr_fn)
        return f"return pytree.tree_unflatten({repr_fn(output_args)}, self._out_spec)"


class _Writer:
    """Writes one graph. Names of its nodes are those that `namespace` gives them."""

    def __init__(
        self,
        codegen: CodeGen,
        root: str,
        namespace: Namespace,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
    ) -> None:
        self.codegen, self.root, self.namespace, self.verbose = codegen, root, namespace, verbose
        self.strides, self.device, self.colors = include_stride, include_device, Colors(colored)
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.parameters: list[str] = []
        self.returns = ""
        self.last_summary: str | None = None
        for name, (_, obj) in CUSTOM_BUILTINS.items():
            self.add_global(name, obj)

    def add_global(self, hint: str, obj: Any) -> str:
        """The name of an object from outside of the graph."""
        if is_from_strata(obj) and obj is not strata.device:
            return qualified_name(obj)
        name = self.namespace.create_name(hint, obj)
        self.globals.setdefault(name, obj)
        return name

    def type(self, annotation: Any) -> str:
        """A type in an annotation."""
        if annotation == ():
            return "()"
        text = type_name(annotation)
        if isinstance(annotation, types.UnionType) and "|" in text:
            return "|".join(map(self.type, typing.get_args(annotation)))
        origin = getattr(annotation, "__origin__", None)
        if origin is None:
            return self.add_global(text, annotation)
        if isinstance(annotation, typing._GenericAlias):
            origin = _ORIGINS.get(origin, origin)
        name = self.add_global(type_name(origin), origin)
        inner = typing.get_args(annotation)
        return f"{name}[{','.join(map(self.type, inner))}]" if inner else name

    def value(self, arg: Any) -> str:
        """An argument."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self.add_global(qualified_name(type(arg)), type(arg))}{tuple(arg)!r}"
        if isinstance(arg, strata.ops.OpOverload):
            return self.add_global(qualified_name(arg), arg)
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, strata.Tensor):
            return f"strata.Tensor(size={list(arg.size())}, dtype={str(arg.dtype).rpartition('.')[2]})"
        if isinstance(arg, tuple):
            inner = ", ".join(map(self.value, arg))
            return f"({inner},)" if len(arg) == 1 else f"({inner})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.value, arg))}]"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        return self.colors.sizes(repr(arg))

    def arguments(self, args: tuple, kwargs: dict[str, Any]) -> str:
        return ", ".join([*map(self.value, args), *(f"{k} = {self.value(v)}" for k, v in kwargs.items())])

    def annotation(self, node: Node) -> str:
        known = of_meta(node.meta, self.strides, self.device, self.colors) if self.verbose else ""
        return known or ("" if node.type is None else f" : {self.type(node.type)}")

    def function_call(self, node: Node) -> str:
        """A call of a function, or the operator or attribute that it stands for."""
        head = f"{node!r}{self.annotation(node)} = "
        target = node.target
        if getattr(target, "__module__", "") == "_operator":
            args = [self.value(a) for a in node.args]
            if target.__name__ in magic_methods:
                return head + magic_methods[target.__name__].format(*args)
            if target.__name__ in inplace_methods:
                return f"{inplace_methods[target.__name__].format(*args)};  {head}{args[0]}"
        name = self.add_global(qualified_name(target), target)
        if name == "getattr" and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return head + path_text(self.value(node.args[0]), node.args[1])
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(name)
        return f"{head}{name}({self.arguments(node.args, node.kwargs)})"

    def statement(self, node: Node) -> str | None:
        """The node's line, or None for a parameter of the function."""
        if node.op == "placeholder":
            default = f" = {self.value(node.args[0])}" if node.args else ""
            self.parameters.append(f"{node.target}{self.annotation(node)}{default}")
            name = node.target.replace("*", "")
            return None if name == repr(node) else f"{node!r} = {name}\n"
        if node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.type(node.type)}"
            return self.codegen.generate_output(node.args[0], repr_fn=self.value)
        if node.op == "call_function":
            return self.function_call(node)
        head = f"{node!r}{self.annotation(node)} = "
        if node.op == "call_method":
            return f"{head}{path_text(self.value(node.args[0]), node.target)}({self.arguments(node.args[1:], node.kwargs)})"
        place = path_text(self.root, node.target)
        if node.op == "get_attr":
            return head + place
        return f"{head}{place}({self.arguments(node.args, node.kwargs)})"

    def origin(self, node: Node) -> str:
        """A comment with the user's line, where it is another one than the last node's."""
        if not self.verbose or node.op in ("placeholder", "output"):
            return ""
        custom = {k: v if len(str(v)) <= 40 else str(v)[:40] + "..." for k, v in node.meta.get("custom", {}).items()}
        noted = f" Annotation: {custom}" if custom else ""
        comment = self.colors.dim(f"#{noted} {stack_summary(node.stack_trace)}")
        if comment == self.last_summary:
            return ""
        self.last_summary = comment
        return f"\n{comment}\n"

    def write(self, nodes: list[Node]) -> PythonCode:
        last_uses: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for user in reversed(nodes):
            for node in user._input_nodes:
                if node not in seen:
                    seen.add(node)
                    last_uses.setdefault(user, []).append(node)
        chunks: list[tuple[int | None, str]] = []
        for i, node in enumerate(nodes):
            text = self.statement(node)
            if node.op == "placeholder":
                chunks.append((i, text or ""))
                continue
            ended = [] if node.op == "output" else last_uses.get(node, []) + ([] if node.users else [node])
            freed = self.colors.dim(" = ".join([*map(repr, ended), "None"])) if ended else ""
            chunks.append((i, self.origin(node) + text + (f";  {freed}\n" if ended else "\n")))
        if not nodes:
            chunks.append((None, "pass\n"))
        if self.codegen._body_transformer:
            chunks = [(None, part) for part in self.codegen._body_transformer([text for _, text in chunks])]
        wrap = self.add_global("wrap", strata.fx.wrap) if self.wrapped else ""
        wraps = "\n".join(f'{wrap}("{name}")' for name in self.wrapped)
        for name, obj in self.codegen.additional_globals():
            self.add_global(name, obj)
        head = self.codegen.gen_fn_def(self.parameters, self.returns)
        lines: list[str] = []
        places: dict[int, int | None] = {}
        first = head.count("\n") + 1
        for i, text in chunks:
            for line in text.split("\n")[:-1]:
                places[len(lines) + first] = i
                lines.append(line)
        body = ("\n".join(lines) + "\n").lstrip("\n")
        body = "\n".join("    " + line for line in body.split("\n"))
        return PythonCode(f"\n{wraps}\n\n{head}\n{body}", self.globals, places, wraps.count("\n") + 4)
