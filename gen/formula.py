"""Derivatives and bodies of operators as text: a small typed language over tensors with Python's syntax, and the C++ that it
becomes.

A text is an expression, or lines of which the last one is it: `name = expression`, `if` with `elif` and `else`, `for`, `return`,
`raise NotImplementedError("...")`. It calls operators of the table by name (`sum(grad, dim, True)`; the types of the arguments
choose the overload, `sum.dim_IntList(...)` names it), the table's `formula` entries, and the functions below. Bodies (`plan`)
call the table's `kernel` entries and operators that write, too. What a node has to save comes from the parsed text:
`self.shape` needs the sizes alone.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from .formula_expr import Expressions, Scope
from .formula_types import Function, Value, fit, joined, parts_of, signature, stored
from .schema import safe

# C++ that every text may call (run/formulas.h): what expressions cannot say and everything needs.
PRIMITIVES = [signature(text, "primitive") for text in (
    # Lists and numbers.
    "product(int[] values) -> int",
    "wrap_dim(int dim, int ndim) -> int",
    "inverse_order(int[] dims) -> int[]",  # of a permutation
    "broadcast_shapes(int[] a, int[] b) -> int[]",
    "row_dims(int ndim, int[]? dim) -> int[]",  # wrapped, in order, none twice; all where there are none
    "default_dtype() -> ScalarType",
    "largest_of(ScalarType dtype) -> float",  # of a real one, or of the parts of a complex one
    "check_fits(Scalar value, ScalarType dtype) -> ()",  # raises where the dtype cannot hold the number
    "promote_types(ScalarType a, ScalarType b) -> ScalarType",
    "reduced_numel(int[] sizes, int[]? dim) -> int",
    "triangle_count(int rows, int columns, int offset, bool lower) -> int",  # elements of a triangle with its diagonal
    # A reduced result or gradient with its reduced dims put back as 1, and expanded to the sizes of the input.
    "unsqueeze_reduced(Tensor t, int ndim, int[]? dim, bool keepdim) -> Tensor",
    "expand_reduced(Tensor t, int[] sizes, int[]? dim, bool keepdim) -> Tensor",
    "corner(Tensor t, int[] sizes) -> Tensor",  # the first elements of each dim
    "at_corner(Tensor t, int[] sizes) -> Tensor",  # zeros but for t in that corner
    "products_of_others(Tensor t) -> Tensor",  # of all but one along the last dim, zeros among them or not
    "grad_enabled() -> bool",  # whether the derivative is itself recorded
    "integers_between(int first, Scalar last) -> Scalar",  # how many there are, modulo 2**64
    "warn(str text) -> ()",
)]
# What headers of tensors say.
PRIMITIVES += [signature(text, "fact") for text in (
    "result_type(Tensor a, Tensor b, Tensor? c=None) -> ScalarType",  # the dtype that they have together
    "wrapped_number(Scalar value, Tensor like) -> Tensor",  # of 0 dims beside `like`, which takes part in promotion as the number
    "is_viewable(Tensor t, int[] shape) -> bool",  # in this shape, without a copy
    "suggested_format(Tensor t) -> MemoryFormat",  # channels last where it lies so, else contiguous
    "keeps_format(Tensor t, MemoryFormat? format) -> bool",  # it lies so already, or none is asked for
    "joined_sizes(Tensor[] tensors, int dim) -> int[]",  # of cat's result, after its checks; and its strides
    "joined_strides(Tensor[] tensors, int dim) -> int[]",
    "joined_dtype(Tensor[] tensors) -> ScalarType",
    "check_tensors(Tensor[] list, str op) -> ()",  # raises for None in it
    "check_has_values(Tensor t, str op) -> ()",  # raises for a tensor without any
    "check_writable(Tensor[] list, str op) -> ()",  # raises where an element has no place of its own
)]
# Launches of kernels, `launches.append(kernel(..., into=...))`, which run together.
PRIMITIVES += [signature(text, "launch") for text in (
    "launches(str op) -> launches",
    "launch(launches list) -> ()",
)]
# Primitives that read values: a text that calls one cannot be recorded for other values.
PRIMITIVES += [signature(text, "reader") for text in (
    "truth(Tensor t) -> bool",  # of one element
    "element(Tensor t) -> Scalar",  # of one element; 0 where it has no value
    "integer(Tensor t) -> int",  # of one element; raises where it has no value
    "any_true(Tensor t) -> bool",
    "may_be_true(Tensor t) -> bool",  # any_true; of a subclass that holds values of several elements (vmap) the general case
    "all_true(Tensor t) -> bool",
)]
# C++ functions of single derivatives (grad/formulas/formulas.h): loops over lists of tensors or over steps.
HELPERS = [signature(text, "helper") for text in (
    "as_strided_gather(Tensor grad, int[] base_stride, int base_offset, int[] size, int[] stride, int offset) -> Tensor",
    "cat_back(Tensor grad, int[][] sizes, ScalarType[] dtypes, int dim) -> Tensor[]",
    "block_diag_back(Tensor grad, int[][] sizes, ScalarType[] dtypes) -> Tensor[]",
    "repeat_back(Tensor grad, int[] repeats, int[] sizes) -> Tensor",
    "unbind_back(grads grads, int dim) -> Tensor",
    "split_back(grads grads, int[] sizes, int split_size, int dim) -> Tensor",
    "split_with_sizes_back(grads grads, int[] sizes, int[] split_sizes, int dim) -> Tensor",
    "householder_grad(Tensor grad, Tensor input, Tensor tau, bool[] wanted) -> (Tensor, Tensor)",
)]

ERRORS = {"RuntimeError": "Runtime", "ValueError": "Value", "TypeError": "Type", "IndexError": "Index",
          "NotImplementedError": "NotImplemented"}


@dataclass
class Code:
    """The C++ of a formula, in which nothing but the names of its scope occur."""

    lines: list[str]  # of a function's body; of an expression alone, that
    type: str
    uses: set[str]  # names whose values it needs
    facts: dict[str, tuple[str, str]]  # field -> (name, attribute)
    calls: set[Function]
    kernels: set[str]  # the C++ functions of kernels that it calls
    single: bool

    def value(self, indent: str) -> str:
        """As an expression."""
        if self.single:
            return self.lines[0]
        return f"[&]() -> {stored(self.type)} {{\n{indented(self.lines, indent + '  ')}\n{indent}}}()"

    def body(self) -> str:
        """As a function's body."""
        return f"  return {self.lines[0]};" if self.single else indented(self.lines, "  ")


def enclosed(code: str) -> bool:
    """Whether one pair of brackets is around the whole."""
    depth = 0
    for i, c in enumerate(code):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return code[0] == "(" and i == len(code) - 1
    return False


def indented(lines: list[str], indent: str) -> str:
    made = []
    for line in lines:
        if line.startswith("}"):
            indent = indent[2:]
        made.append(indent + line)
        if line.endswith("{"):
            indent += "  "
    return "\n".join(made)


@dataclass(frozen=True)
class Given:
    """Tensors that take the result: `direct`, written by the kernel that each way ends in, with whether they are resized; or
    lines that refuse them and that copy the result, `r`, to them. What the text itself writes, it does between those."""

    name: str
    direct: bool = False
    resized: bool = False
    refuse: tuple[str, ...] = ()
    copy: tuple[str, ...] = ()


def writes(node: ast.AST, names: set[str]) -> bool:
    """Whether a line writes into tensors of these names."""
    written = [n.value for n in ast.walk(node) if isinstance(n, ast.keyword) and n.arg == "into"]
    written += [n.args[0] for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id.endswith("_") and n.args]
    return any(isinstance(n, ast.Name) and n.id in names for w in written for n in ast.walk(w))


class Writer(Expressions):
    """Checks one text and writes it as C++."""

    def __init__(self, functions: dict[str, list[Function]], scope: Scope, given: Given | None = None):
        super().__init__(functions, scope)
        self.given = given
        self.hoisted: dict[str, str] = {}  # locals that several lines assign: name -> C++ type
        self.counts: dict[str, int] = {}  # how many lines assign each
        self.want = ""

    # ---- the whole

    def write(self, text: str, want: str) -> Code:
        tree = ast.parse(text)
        self.want = want
        single = len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr) and want != "()" and not self.given
        lines = [self.wanted_value(tree.body[0].value)] if single else self.body(tree)
        return Code(lines, want, self.uses, self.facts, self.calls, self.kernels, single)

    def body(self, tree: ast.Module) -> list[str]:
        stores = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        loads = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        for n in stores:
            self.line = n.lineno
            if n.id in self.scope.names or n.id in self.scope.taken or n.id in ("grads", "wanted"):
                self.fail(f"{n.id} is given; choose another name")
            if n.id.endswith("_") and n.id != "_":
                self.fail(f"{n.id}: names that end with _ are the generator's")
            if n.id not in loads and n.id != "_":
                self.fail(f"{n.id} is never used")
            self.counts[n.id] = self.counts.get(n.id, 0) + 1
        *rest, last = tree.body
        if self.given and not self.given.direct:
            given = set(self.scope.names)
            rest, effects = [s for s in rest if not writes(s, given)], [s for s in rest if writes(s, given)]
            if effects and (effects != tree.body[len(rest):-1] or not isinstance(last, ast.Expr)):
                self.fail("a plan with an out= form writes in its last lines, before the results")
        lines = [x for s in rest for x in self.statement(s)]
        if self.given and not self.given.direct:
            late = [x for s in effects for x in self.statement(s)]
            return [f"{type_} {safe(name)}{{}};" for name, type_ in self.hoisted.items()] + lines + self.handed(last.value, late)
        if isinstance(last, ast.Expr) and self.want != "()":
            last = ast.copy_location(ast.Return(last.value), last)
        elif not self.ends([last]) and self.want != "()":
            self.line = last.lineno
            self.fail("the last line is no expression")
        lines += self.statement(last)
        return [f"{type_} {safe(name)}{{}};" for name, type_ in self.hoisted.items()] + lines

    def wanted_value(self, node: ast.expr) -> str:
        """The code of the value that the whole shall have."""
        self.line = node.lineno
        value = self.tuple_of(node) if isinstance(node, ast.Tuple) else self.expr(node)
        have, want = parts_of(value.type), parts_of(self.want)
        if value.type.startswith("(") and len(have) == len(want) and all(a in (b, b.removesuffix("?")) for a, b in zip(have, want, strict=True)):
            return value.code
        found = fit(value, self.want)
        if found is None:
            self.fail(f"expected {self.want}, got {value.type}")
        return found[1]

    def tuple_of(self, node: ast.Tuple) -> Value:
        want = parts_of(self.want)
        if not self.want.startswith("(") or len(want) != len(node.elts):
            self.fail(f"expected {self.want}, got {len(node.elts)} values")
        codes = []
        for each, type_ in zip(node.elts, want, strict=True):
            value = self.expr(each)
            found = fit(value, type_)
            if found is None:
                self.fail(f"expected {type_}, got {value.type}")
            codes.append(found[1])
        return Value(f"{stored(self.want)}({', '.join(codes)})", self.want)

    # ---- lines

    def ends(self, body: list[ast.stmt]) -> bool:
        last = body[-1]
        return isinstance(last, (ast.Return, ast.Raise)) or (
            isinstance(last, ast.If) and bool(last.orelse) and self.ends(last.body) and self.ends(last.orelse))

    def statement(self, s: ast.stmt) -> list[str]:
        self.line = s.lineno
        if isinstance(s, ast.Assign) and len(s.targets) == 1:
            return [self.let(s.targets[0], s.value)]
        if isinstance(s, ast.If):
            return self.branch(s)
        if isinstance(s, ast.For) and not s.orelse:
            return self.loop(s)
        if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
            return [self.effect(s.value)]
        if isinstance(s, ast.Return) and (s.value is None) == (self.want == "()"):
            if self.given:
                return [self.direct(s.value), f"return {self.given.name};"] if self.given.direct else self.handed(s.value, [])
            return [f"return {self.wanted_value(s.value)};" if s.value else "return;"]
        if isinstance(s, ast.Raise) and isinstance(s.exc, ast.Call) and isinstance(s.exc.func, ast.Name):
            kind = ERRORS.get(s.exc.func.id)
            if kind is None or len(s.exc.args) != 1:
                self.fail(f"expected one of {', '.join(ERRORS)} with a text")
            return [f"throw_error(ErrorKind::{kind}, {self.expr(s.exc.args[0]).code});"]
        self.fail(f"{type(s).__name__} is no line of a formula: expected name = expression, if, for, return or raise")

    def handed(self, node: ast.expr, effects: list[str]) -> list[str]:
        """The end of a way whose result is copied."""
        return [f"const auto r = {self.wanted_value(node)};", *self.given.refuse, *effects, *self.given.copy, f"return {self.given.name};"]

    def direct(self, node: ast.expr) -> str:
        """The kernel, or the operator with an in-place form, that a way ends in, writing the target."""
        if isinstance(node, ast.Call) and self.given.name == "self" and isinstance(node.func, ast.Name) and node.args and \
                isinstance(node.args[0], ast.Name) and node.args[0].id == "self" and f"{node.func.id}_" in self.functions:
            name, _, rest = self.expr(node).code.partition("(")
            return f"{name}_({rest};"
        before = set(self.kernels)
        if not isinstance(node, ast.Call) or not (made := self.expr(node)).code.startswith("eager::calls::"):
            self.fail(f"{ast.unparse(node)}: a plan with `direct` ends in kernels")
        name, _, rest = made.code.partition("(")
        f = self.functions[node.func.id][0]
        if f.rows or f.result != "Tensor" or len(node.keywords):
            self.fail(f"{ast.unparse(node)}: a pointwise kernel of one result, which computes in the dtype of its operands, is direct")
        self.kernels = (self.kernels - {f.name}) | before | {f"{f.name}_out"}
        return f"{name}_out({self.given.name}, {str(self.given.resized).lower()}, {rest};"

    def effect(self, node: ast.Call) -> str:
        """A call for what it writes."""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            return self.appended(node)
        before = self.calls
        self.calls = set()
        value = self.expr(node)
        made, self.calls = self.calls, before | self.calls
        if value.type != "()" and not any(f.kind == "writer" for f in made):
            self.fail(f"{ast.unparse(node)} is no line of a formula: it gives {value.type}, which nothing uses")
        return f"{value.code};"

    def appended(self, node: ast.Call) -> str:
        """A kernel that is to write with others."""
        launches = self.expr(node.func.value)
        call = node.args[0] if len(node.args) == 1 and isinstance(node.args[0], ast.Call) else None
        into = next((k.value for k in call.keywords if k.arg == "into"), None) if call else None
        if launches.type != "launches" or into is None:
            self.fail(f"{ast.unparse(node)}: expected launches.append(kernel(..., into=...))")
        f, outs, codes = self.written_parts(call.func.id, [self.expr(a) for a in call.args], {}, into)
        count = len([a for a in f.args if a.is_tensor])
        numbers = len([a for a in f.args if a.type == "Scalar"])
        return (f"{launches.code}.append(eager::kernels::{f.name}, {{{', '.join(outs)}}}, {{{', '.join(codes[:count])}}}, "
                f"{{{', '.join(codes[count:count + numbers])}}});")

    def loop(self, s: ast.For) -> list[str]:
        """Over lists, in step; what the lines assign is known to them alone."""
        stores = {n.id for each in s.body for n in ast.walk(each) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.forget(stores)
        names, known = dict(self.names), self.known
        lines = self.loop_head(s.target, s.iter)
        lines += [x for each in s.body for x in self.statement(each)]
        self.names, self.known = names, known
        return ["{", *lines, "}", "}"]

    def forget(self, stored_names: set[str]) -> None:
        """What conditions said about names that are assigned anew."""
        self.known = frozenset(k for k in self.known if not stored_names & {n.id for n in ast.walk(ast.parse(k)) if isinstance(n, ast.Name)})

    def let(self, target: ast.expr, value: ast.expr) -> str:
        made = self.expr(value)
        if isinstance(target, ast.Tuple):
            types = parts_of(made.type)
            if not made.type.startswith("(") or len(types) != len(target.elts):
                self.fail(f"expected {len(target.elts)} values, got {made.type}")
            names = []
            for i, (each, type_) in enumerate(zip(target.elts, types, strict=True)):
                name = each.id if each.id != "_" else f"unused_{self.line}_{i}"
                if self.counts.get(each.id, 0) > 1 and each.id != "_":
                    self.fail(f"{each.id} is assigned twice")
                self.names[name] = Value(safe(name), type_)
                names.append(safe(name))
            return f"auto [{', '.join(names)}] = {made.code};"
        name = target.id
        if made.type == "None":
            made = Value("Tensor()", "Tensor?")
        if made.type == "[]":
            made = Value("DimVec{}", "int[]")
        self.forget({name})
        self.names[name] = Value(safe(name), made.type)
        type_ = stored(made.type)
        if made.type == "launches":
            if self.counts[name] > 1:
                self.fail(f"{name}: launches are assigned once")
            return f"{type_} {safe(name)} = {made.code};"
        if self.counts[name] == 1:
            return f"const {type_} {safe(name)} = {made.code};"
        if self.hoisted.setdefault(name, type_) != type_:
            self.fail(f"{name} was {self.hoisted[name]}, and is {type_} here")
        return f"{safe(name)} = {made.code};"

    def branch(self, s: ast.If) -> list[str]:
        test = self.condition(s.test)
        names, known = dict(self.names), self.known
        self.learn(known, s.test, True)
        then = [x for each in s.body for x in self.statement(each)]
        after_then = (self.names, self.known)
        self.names = names
        self.learn(known, s.test, False)
        other = [x for each in s.orelse for x in self.statement(each)]
        lines = [f"if {test if enclosed(test) else f'({test})'} {{", *then, *(["} else {", *other] if other else []), "}"]
        if s.orelse and self.ends(s.orelse):
            self.names, self.known = after_then
        elif not self.ends(s.body):
            self.known &= after_then[1]
            both = {}
            for name, value in self.names.items():
                there = after_then[0].get(name)
                type_ = there and joined(value.type, there.type)
                if type_:
                    both[name] = Value(value.code, type_)
            self.names = both
        return lines

    def learn(self, known: frozenset[str], test: ast.expr, truth: bool) -> None:
        self.known = known | self.learnt(test, truth)
        for name in self.known & set(self.names):
            if self.names[name].type == "Tensor?":
                self.names[name] = Value(self.names[name].code, "Tensor")
