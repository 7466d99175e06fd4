"""All that texts over tensors may call: operators, kernels, the table's formulas, and functions in C++."""

from __future__ import annotations

import ast
from keyword import iskeyword

from . import formula
from .formula_expr import Scope
from .formula_types import FormulaError, Function, Value
from .model import Definition, Entry, Kernel
from .ops_cpp import cpp_name
from .schema import Arg, Schema, safe


def result_type(s: Schema) -> str:
    types = [r.key for r in s.returns]
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


def body_type(e: Entry) -> str:
    """The type of a plan's value: gradients that a mask did not ask for are None."""
    masked = any(a.name == "output_mask" for a in e.schema.args)
    types = [r.key + "?" if masked and r.key == "Tensor" else r.key for r in e.schema.returns]
    return types[0] if len(types) == 1 else f"({', '.join(types)})"


def kernel_function(k: Kernel) -> Function:
    """A `kernel` entry as a function: its operands, its numbers, and how it runs. `dims` are those of the rows; `dtype` is the
    one that it computes in, `stored` that of results with the elements' places. Vectors lie along dim `along` of the others."""
    args = [Arg("Generator?" if o.dtype.startswith("word") else "Tensor", o.name) for o in k.inputs]
    args += [Arg("Scalar", o.name) for o in k.scalars]
    if k.draws:
        return Function(k.name, tuple(args), "()", f"eager::calls::{k.name}", "kernel", draws=True)
    if k.kind == "rows":
        args += [Arg("int[1]?", "dims", "None", True), Arg("bool", "keepdim", "False", True)]
    args += [Arg("ScalarType?", "dtype", "None", True), Arg("ScalarType?", "stored", "None", True)]
    if k.kind == "pointwise":
        args.append(Arg("int?", "along", "None", True))
    count = len(k.row.outputs)
    return Function(k.name, tuple(args), "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})", f"eager::calls::{k.name}",
                    "kernel", rows=k.kind == "rows")


class Table:
    """`functions` are those of derivatives, `body_functions` those of operators' bodies: kernels and operators that write are
    recorded by nobody, and helpers serve single derivatives."""

    def __init__(self, entries: list[Entry], definitions: list[Definition], kernels: list[Kernel]):
        self.functions: dict[str, list[Function]] = {}
        self.body_functions: dict[str, list[Function]] = {}
        self.entries = {e.schema.full: e for e in entries}
        declared = set()
        for e in entries:
            for kind, s in e.operators():
                signature = (cpp_name(kind, s), tuple(a.cpp for a in s.args))
                if kind == "out" or signature in declared:
                    continue
                declared.add(signature)
                writes = any(a.written for a in s.args)
                self.add(Function(s.name, s.args, result_type(s), f"ops::{s.name}", "writer" if writes else "operator", s.overload,
                                  e.schema.full))
        for d in definitions:
            self.add(Function(d.schema.name, d.schema.args, result_type(d.schema), f"formulas::{d.schema.name}", "definition"))
        for f in formula.PRIMITIVES + formula.HELPERS:
            self.add(f)
        for k in kernels:
            if k.kind != "space" and k.first:
                self.add(kernel_function(k))
        self.definitions = {}
        for d in definitions:
            scope = Scope({a.name: Value(safe(a.name), a.key) for a in d.schema.args})
            self.definitions[d.schema.name] = self.compile(d.text, scope, result_type(d.schema), d.source, None)
        self.plans = {e.schema.ident: self.plan(e) for e in entries if e.plan}
        for e in entries:
            if e.plan:
                e.calls = self.kernels_of(self.plans[e.schema.ident])
        self.direct = {(e.schema.ident, form): self.plan(e, target) for e in entries if e.plan
                       for form, target in (("inplace", formula.Given("self", True)), ("out", formula.Given("out", True, True)))
                       if form in e.row.direct}

    def add(self, f: Function) -> None:
        for functions, kinds in ((self.functions, ("operator", "definition", "primitive", "fact", "reader", "helper")),
                                 (self.body_functions, ("operator", "writer", "definition", "primitive", "fact", "reader", "kernel",
                                                        "launch"))):
            if f.kind not in kinds:
                continue
            others = functions.setdefault(f.name, [])
            if others and {f.kind, others[0].kind} != {"operator"} and {f.kind, others[0].kind} != {"writer"}:
                raise SystemExit(f"{f.text()}: the name is taken by {others[0].text()}")
            others.append(f)

    def compile(self, text: str, scope: Scope, want: str, where: str, body: bool | None = False,
                given: formula.Given | None = None) -> formula.Code:
        """`body`: of an operator. None: a formula of the table, which derivatives and bodies may call, if what it calls is
        theirs."""
        functions = {False: self.functions, True: self.body_functions, None: {**self.body_functions, **self.functions}}[body]
        try:
            made = formula.Writer(functions, scope, given).write(text, want)
            if body is not None:
                self.check_reach(made, body)
            return made
        except FormulaError as error:
            raise SystemExit(f"{where}, {error}") from error
        except SyntaxError as error:
            raise SystemExit(f"{where}, line {error.lineno}: {error.msg}") from error

    def check_reach(self, made: formula.Code, body: bool) -> None:
        refused = ("helper",) if body else ("kernel", "writer", "launch")
        for f in self.called(made):
            if f.kind in refused:
                raise FormulaError(f"line 1: {f.text()} is reached, which " +
                                   ("serves a derivative alone" if body else "is not recorded: only the bodies of operators call it"))

    def called(self, made: formula.Code) -> set[Function]:
        """All that a text calls, through the table's own formulas too."""
        seen: set[Function] = set()
        todo = list(made.calls)
        while todo:
            f = todo.pop()
            if f not in seen:
                seen.add(f)
                todo += self.definitions[f.name].calls if f.kind == "definition" else ()
        return seen

    def kernels_of(self, made: formula.Code) -> tuple[str, ...]:
        """What it calls that is a kernel of the table, or an operator with a kernel or a plan of its own."""
        said = ("pointwise", "rows", "space")
        return tuple(sorted({f.name if f.kind == "kernel" else f.entry for f in self.called(made) if f.kind == "kernel" or f.entry and
                             (self.entries[f.entry].kind in said or self.entries[f.entry].plan)}))

    def plan(self, e: Entry, given: formula.Given | None = None) -> formula.Code:
        """The body of an entry with `plan`, or of a form whose results are given tensors. A plan whose derivative is
        that of its parts calls what records itself."""
        late = e.out and formula.writes(ast.parse(e.text), {a.name for a in e.schema.args})
        taken = {a.name for a in e.out_schema().args if a.written} | {"r"} if late else set()
        scope = Scope({a.name + "_" * iskeyword(a.name): Value(safe(a.name), a.key) for a in e.schema.args}, taken=taken)
        made = self.compile(e.text, scope, body_type(e), e.source, True, given)
        called = self.called(made)
        if e.kind == "composite" and (hidden := [f for f in called if f.kind == "kernel"]):
            raise SystemExit(f"{e.source}: {hidden[0].text()} is not recorded, so that the derivative cannot be that of the parts")
        # What a composite reads is seen from outside; another plan gives it to its caller, or keeps it to itself.
        outward = e.kind == "composite" or bool(e.schema.returns) and not any("Tensor" in r.type for r in e.schema.returns)
        reads = self.reads(called) or e.kind != "composite" and self.reads(called, "inside")
        self.check_reads(e, {"value" if outward else "inside"} if reads else set(), e.reads - {"gradient"}, "plan")
        return made

    def reads(self, called: set[Function], word: str = "value") -> bool:
        """Whether some of what is called reads values of tensors on the host, or gives a result whose size is data."""
        entries = [self.entries[f.entry] for f in called if f.entry]
        return any(f.kind == "reader" for f in called) or any(word in e.reads or bool(e.row.size) for e in entries)

    def check_reads(self, e: Entry, wanted: set[str], said: set[str], what: str) -> None:
        if wanted != said:
            raise SystemExit(f"{e.source}: the {what} " + (f"reads values of tensors: say `reads: {' '.join(wanted)}`" if wanted else
                                                           f"reads no values of tensors, but `reads: {' '.join(said)}` is said"))
