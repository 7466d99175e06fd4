"""The operator table as typed values: entries of ops/*.yaml and the operators that each one stands for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from . import expr
from .effects import Effects
from .keys import BODIES, FormulaRow, KernelRow, OpRow, expanded
from .rows import Operand, read, typed
from .schema import Arg, Schema, parse_schema, safe
from .space_text import check_order, check_space, into_of, rule_call, strides_of


@dataclass
class Entry:
    """One entry of the table. `kind` is pointwise, rows, space, allocate, cpu, composite or view. With `plan` the body is text over
    tensors; such an entry is cpu, or composite where its derivative is that of its parts."""

    schema: Schema
    kind: str
    text: str  # expression, or name of the C++ function, or C++ expression
    family: str
    line: int
    row: OpRow  # what the table says, key by key
    grad: dict[str, str] = field(default_factory=dict)
    derived: bool = False  # made by gen: the derivative kernel of another entry
    node: str = ""  # the name of its autograd node
    calls: tuple[str, ...] = ()  # kernels and operators that its plan calls (gen/formula_table.py)
    acts: tuple[str, ...] = ()  # what it does beside its results (gen/effects.py)
    makes_twin: bool = False  # whether its functional twin is made from it, since no entry says that

    @property
    def plan(self) -> bool:
        return self.row.body == "plan"

    @property
    def reads(self) -> set[str]:
        return set(self.row.reads)

    @property
    def source(self) -> str:
        return f"ops/{self.family}.yaml:{self.line}: {self.schema.full}"

    @property
    def promote(self) -> str:
        return self.row.promote

    @property
    def dtypes(self) -> list[str]:
        return expanded(self.row.dtypes or (("float",) if self.promote == "float" else ("int", "float")))

    @property
    def tensors(self) -> list[Arg]:
        return [a for a in self.schema.args if a.is_tensor]

    @property
    def by_hand(self) -> str | None:
        """The C++ function beside a text that says the operator, the CPU's schedule, or beside a shape rule alone."""
        return self.row.cpu or None if self.kind == "space" or self.plan or self.filled else None

    @property
    def filled(self) -> bool:
        """Whether its C++ function fills results that a shape rule prepares, and there is no text."""
        return self.kind == "cpu" and bool(self.row.shape) and not self.row.size

    def kernel_scalars(self) -> list[tuple[str, str]]:
        """Scalar operands of the generated kernel: the name in the expression and the C++ value."""
        tensors = {a.name for a in self.tensors} | {"n", "index", "result"}
        bind = self.row.bind
        used: list[str] = []
        assigned: set[str] = set()
        for name, value in expr.lines(self.text):
            used += [u for u in expr.used_names(value) if u not in used and u not in tensors | assigned]
            assigned.add(name)
        found = []
        by_name = {a.name: a for a in self.schema.args}
        for name in [n for n in [*by_name, *bind] if n in used]:
            if name in bind:
                found.append((name, f"Scalar({bind[name]})"))
            else:
                found.append((name, safe(name) if by_name[name].type == "Scalar" else f"Scalar({safe(name)})"))
        if missing := [u for u in used if u not in by_name and u not in bind]:
            raise ValueError(f"the expression names {missing}, which are no arguments; bind them")
        return found

    def kernel_operands(self) -> tuple[str, str]:
        """The kernel's tensor and number operands with their marks, as its description has them."""
        if self.kind == "space":
            return " ".join(map(str, self.row.inputs)), " ".join(map(str, self.row.scalars))
        fixed = self.row.fixed
        inputs = " ".join(f"{a.name}:{fixed[a.name]}" if a.name in fixed else a.name for a in self.kernel_inputs())
        return inputs, " ".join(n for n, _ in self.kernel_scalars())

    @property
    def unpromoted(self) -> int:
        """Bit i: scalar operand i takes no part in the result type."""
        return sum(1 << i for i, (n, _) in enumerate(self.kernel_scalars()) if n in self.row.unpromoted)

    @property
    def narrow(self) -> int:
        """Bit i: scalar operand i must fit the dtype of the operands, not only that of the computation."""
        return sum(1 << i for i, (n, _) in enumerate(self.kernel_scalars()) if n in self.row.narrow)

    @property
    def checked(self) -> int:
        """Bit i: scalar operand i must fit. Numbers that stand for a tensor (`x + 300`) wrap as its elements do."""
        numbers = {a.name for a in self.schema.args if a.type.startswith("Scalar") and a.name not in self.row.bind}
        return self.narrow | sum(1 << i for i, (n, _) in enumerate(self.kernel_scalars())
                                 if n in numbers - {"self", "other", "exponent", "x", "n"})

    def kernel_inputs(self) -> list[Arg]:
        """Tensor operands of the generated kernel."""
        used = {u for _, value in expr.lines(self.text) for u in expr.used_names(value)}
        return [a for a in self.tensors if a.name in used]

    @property
    def inplace(self) -> bool:
        default = self.kind == "pointwise" and not self.derived and len(self.schema.returns) == 1
        return (self.row.inplace if "inplace" in self.row.said else default) and self.schema.args[0].name == "self" and self.schema.args[0].type == "Tensor"

    @property
    def out(self) -> str | None:
        """Overload name of the out= form; None when there is none."""
        name = self.row.out
        if name is False or self.derived or self.kind == "view" or "Tensor" not in self.schema.returns[0].type:
            return None
        if name is not True:
            return name
        if self.kind == "composite" or self.schema.returns[0].type != "Tensor":
            return None
        o = self.schema.overload
        return "out" if o in ("", "Tensor") else f"{o}_out"

    @property
    def writes_self(self) -> bool:
        """Whether the operator itself, not a form of it, writes its first argument."""
        return bool(self.schema.args) and self.schema.args[0].written and self.schema.args[0].name == "self"

    @property
    def methods(self) -> bool:
        return "method" in self.row.variants and self.schema.args[:1] != () and \
            self.schema.args[0].name == "self"

    @property
    def functions(self) -> bool:
        return "function" in self.row.variants

    def aliases(self, kind: str) -> list[str]:
        """Other names that Python knows the operator by."""
        return [a + ("_" if kind == "inplace" else "") for a in self.row.aliases]

    def inplace_schema(self) -> Schema:
        s = self.schema
        first = Arg("Tensor", "self", None, False, "a!")
        return s.with_(name=s.name + "_", args=(first, *s.args[1:]), returns=(Arg("Tensor", "", alias="a!"),))

    def out_schema(self) -> Schema:
        s = self.schema
        if s.returns[0].type == "Tensor[]":
            return s.with_(overload=self.out, args=(*s.args, Arg("Tensor[]", "out", None, True, "a!")), returns=())
        names = self.row.out_args or ([r.name or f"out{i}" for i, r in enumerate(s.returns)] if len(s.returns) > 1 else ["out"])
        outs = tuple(Arg("Tensor", n, None, True, chr(97 + i) + "!") for i, n in enumerate(names))
        return s.with_(overload=self.out, args=s.args + outs,
                       returns=tuple(Arg("Tensor", "", alias=o.alias) for o in outs))

    @property
    def twin(self) -> str:
        """Of an entry that writes: the operator that computes the same and writes nothing; "" where there is none."""
        s, said = self.schema, self.row.functional
        if not any(a.written for a in s.args) or said.startswith("none"):
            return ""
        return f"{s.ns}::{said}" if said else s.with_(name=s.name.removesuffix("_")).full

    def twin_schema(self) -> Schema:
        """Of the twin that is made: the arguments, unwritten, and as results what they become; those that the entry gives come first."""
        s = self.schema
        name, _, overload = self.twin.partition("::")[2].partition(".")
        given = {r.alias for r in s.returns}
        returns = [replace(r, alias="") for r in s.returns]
        returns += [Arg(a.type, f"{a.name}_out") for a in s.args if a.written and a.alias not in given]
        if len(returns) == 1:
            returns[0] = replace(returns[0], name="")
        return s.with_(name=name, overload=overload, args=tuple(replace(a, alias="") for a in s.args), returns=tuple(returns))

    def forms(self) -> list[tuple[str, Schema]]:
        """All operators that come from it: those with code of their own, and the functional twin."""
        return self.operators() + ([("functional", self.twin_schema())] if self.makes_twin else [])

    def operators(self) -> list[tuple[str, Schema]]:
        found = [("function", self.schema)]
        if self.inplace:
            found.append(("inplace", self.inplace_schema()))
        if self.out:
            found.append(("out", self.out_schema()))
        return found

    @property
    def scatters(self) -> bool:
        """Whether its text changes places of a result that begins as something."""
        return self.kind == "space" and into_of(self.text) is not None

    @property
    def sums_wide(self) -> bool:
        """Whether half types are scattered as float32: they need no kernels of their own."""
        return self.scatters and self.row.outputs[-1].dtype == "wide"


@dataclass
class Kernel:
    """A generated kernel that hand-written code calls: no operator of its own."""

    kind: str
    family: str
    source: str
    row: KernelRow
    first: bool = True  # of the rows of its name: each is for other dtypes

    @property
    def name(self) -> str:
        return self.row.kernel

    @property
    def text(self) -> str:
        return self.row.text

    @property
    def inputs(self) -> tuple[Operand, ...]:
        return self.row.inputs

    @property
    def scalars(self) -> tuple[Operand, ...]:
        return self.row.scalars

    @property
    def dtypes(self) -> list[str]:
        return expanded(self.row.dtypes)

    @property
    def draws(self) -> bool:
        """Whether it takes words of a generator's stream."""
        return any(o.dtype.startswith("word") for o in self.inputs)


@dataclass
class Definition:
    """A formula of the table that other formulas call by name."""

    schema: Schema
    text: str
    source: str


KIND = {"compute": "pointwise"}


def camel(name: str) -> str:
    return "".join(p.title() for p in name.strip("_").split("_") if p)  # log1p: Log1P, as PyTorch's


def load(folder: Path) -> tuple[list[Entry], list[Kernel]]:
    entries: list[Entry] = []
    kernels: list[Kernel] = []
    formulas: dict[str, str] = {}
    for path in sorted(folder.glob("*.yaml")):
        for raw, line in read(path):
            try:
                if "formula" in raw:
                    formulas[raw["formula"].partition("(")[0]] = str(raw.get("text", ""))
                if "kernel" in raw:
                    kernels.append(make_kernel(raw, path.stem, line))
                elif "op" in raw or not {"formula", "type"} & set(raw):
                    entries.append(make_entry(raw, path.stem, line))
            except (ValueError, KeyError, SyntaxError) as error:
                raise SystemExit(f"ops/{path.name}:{line}: {raw.get('op') or raw.get('kernel')}: {error}") from error
    check_rows(kernels)
    names: set[str] = set()
    for e in entries:
        for _, s in e.operators():
            if s.full in names:
                raise SystemExit(f"{e.source}: operator {s.full} exists twice")
            names.add(s.full)
    for e in entries:
        check_twin(e, names)
    number_nodes(entries)
    derived = [d for e in entries for d in derive(e)]
    found = Effects(entries + derived, kernels, formulas)
    for e in entries + derived:
        e.acts = tuple(sorted(found.of(e)))
    return entries + derived, kernels


def check_twin(e: Entry, names: set[str]) -> None:
    """Whether an entry's functional twin is one of the table's operators, is made, or is said not to be."""
    said, writes = e.row.functional, any(a.written for a in e.schema.args)
    if said and not writes:
        raise SystemExit(f"{e.source}: functional: expected in an entry that writes an argument")
    if said.startswith("none") and not said.partition(";")[2].strip():
        raise SystemExit(f"{e.source}: functional: expected a reason, as in `none; it changes a header`, got {said!r}")
    if writes and e.twin == e.schema.full:
        raise SystemExit(f"{e.source}: expected a name that ends with _, or the key `functional`, of an entry that writes")
    e.makes_twin = bool(e.twin) and e.twin not in names
    order = [a.alias for a in e.schema.args if a.written]
    if e.makes_twin and order[:len(e.schema.returns)] != [r.alias for r in e.schema.returns]:
        raise SystemExit(f"{e.source}: expected its results to be the first arguments that it writes; its functional twin gives them in that order")


def check_rows(kernels: list[Kernel]) -> None:
    """Rows of one name are one kernel: their operands are called alike, and their dtypes differ."""
    first: dict[str, Kernel] = {}
    taken: set[tuple[str, str]] = set()
    for k in kernels:
        other = first.setdefault(k.name, k)
        k.first = other is k
        names, others = (([o.name for o in x.inputs], [o.name for o in x.scalars]) for x in (k, other))
        if names != others or any((k.name, d) in taken for d in k.dtypes):
            raise SystemExit(f"{k.source}: {other.source} has other operands, or some of its dtypes")
        taken |= {(k.name, d) for d in k.dtypes}


def definitions(folder: Path) -> list[Definition]:
    """The `formula` rows of the table."""
    found = []
    for path in sorted(folder.glob("*.yaml")):
        for raw, line in read(path):
            if "formula" in raw:
                source = f"ops/{path.name}:{line}: {raw['formula']}"
                try:
                    row = typed(FormulaRow, raw)
                    found.append(Definition(parse_schema(row.formula), row.text, source))
                except ValueError as error:
                    raise SystemExit(f"{source}: {error}") from error
    return found


def make_kernel(raw: dict, family: str, line: int) -> Kernel:
    kinds = [k for k in ("compute", "rows", "space") if k in raw]
    if len(kinds) != 1:
        raise ValueError(f"expected exactly one of compute, rows, space, got {kinds}")
    row = typed(KernelRow, raw)
    check_order(row)
    return Kernel(KIND.get(row.body, row.body), family, f"ops/{family}.yaml:{line}: {row.kernel}", row)


def make_entry(raw: dict, family: str, line: int) -> Entry:
    kinds = [k for k in BODIES if k in raw]
    if len(kinds) != 1 and kinds not in (["space", "cpu"], ["plan", "cpu"]):
        raise ValueError(f"expected exactly one of {', '.join(BODIES)}, or cpu beside space or plan, got {', '.join(kinds) or 'none'}")
    row = typed(OpRow, raw)
    parts = row.grad == "parts"
    if isinstance(row.grad, str) and (not parts or kinds != ["plan"]):
        raise ValueError("grad is `parts` where a plan's derivative is that of what it calls, else a formula for each argument")
    kind = {**KIND, "plan": "composite" if parts else "cpu", "header": "cpu"}.get(row.body, row.body)
    if row.body == "cpu" and not row.order:
        raise ValueError("order: expected a text, or `none` where no floating contributions meet, of C++ that no text says")
    entry = Entry(parse_schema(row.op), kind, row.text, family, line, row)
    if kind in ("pointwise", "rows"):
        entry.kernel_scalars()  # raises for names that are no arguments
        strides_of(entry)
    elif kind == "space":
        check_space(entry)
    elif kind == "allocate":
        rule_call(entry)
    elif entry.filled:
        rule_call(entry)
        strides_of(entry)
    elif row.size and row.shape:
        rule_call(entry)
    elif unused := row.said & {"shape", "strides", "check"}:
        raise ValueError(f"{', '.join(sorted(unused))}: of entries with cpu or plan only those that have a shape rule have it")
    grad = {} if parts else row.grad
    names = {a.name for a in entry.schema.args}
    for key, value in grad.items():
        for arg in (p.strip() for p in key.split(",")):
            if arg not in names:
                raise ValueError(f"grad names {arg}, which is no argument")
        entry.grad[key] = value
    return entry


def number_nodes(entries: list[Entry]) -> None:
    """Autograd nodes are named as PyTorch names them: AddBackward0; overloads count up unless `node` says otherwise."""
    count: dict[str, int] = {}
    for e in entries:
        base = camel(e.schema.name)
        if e.row.node:
            e.node = e.row.node
            continue
        n = count.get(base, 0)
        if e.grad:
            count[base] = n + 1
        e.node = f"{base}Backward{n}"


def pointwise_formula(entry: Entry, formula: str) -> str | None:
    """The formula as a scalar expression over grad, result, tensors and scalars; None when it composes tensors."""
    if entry.kind != "pointwise" or formula.startswith("tensors:") or len(entry.schema.returns) != 1:
        return None
    allowed = {"grad", "result"} | {a.name for a in entry.schema.args if a.is_tensor or a.type == "Scalar"}
    try:
        text = expr.inlined(formula)
        tree = expr.parse(text)
        import ast as _ast

        for node in _ast.walk(tree):
            if isinstance(node, (_ast.Attribute, _ast.Subscript)):
                return None
        return text if set(expr.used_names(text)) <= allowed else None
    except (SyntaxError, NameError):
        return None


def derivative_name(s: Schema, arg: str) -> str:
    """Of the kernel that a scalar derivative by an argument becomes, in strata::."""
    return f"{s.ident.removeprefix('strata_')}_grad_{arg}"


def derive(entry: Entry) -> list[Entry]:
    """The derivative kernels of a pointwise entry, as entries of their own."""
    found = []
    for arg, formula in list(entry.grad.items()):
        text = pointwise_formula(entry, formula)
        if text is None or text in ("grad", "-grad"):
            continue
        by_name = {a.name: a for a in entry.schema.args}
        used = expr.used_names(text)
        order = [n for n in ["grad", *by_name, "result"] if n in used]
        # Beside another one, which the gradient's dtype comes from.
        tensors = {n for n, a in by_name.items() if a.is_tensor}
        integers = tensors if len(tensors) > 1 else set()
        args = tuple(Arg("Scalar" if n in by_name and by_name[n].type == "Scalar" else "Tensor", n) for n in order)
        name = derivative_name(entry.schema, arg)
        schema = Schema("strata", name, "", args, (Arg("Tensor", ""),))
        kept = {key: getattr(entry.row, key) for key in ("fixed", "unpromoted") if key in entry.row.said}
        row = OpRow(frozenset({"compute", "dtypes", "doc", *kept}), op=schema.text(), compute=text,
                    dtypes=("float", "complex") if "complex64" in entry.dtypes else ("float",),
                    doc=f"Derivative of {entry.schema.full} by {arg}.", variants=(), **kept)
        d = Entry(schema, "pointwise", text, entry.family, entry.line, row, derived=True, node=camel(name) + "Backward0")
        for a in args:
            if a.type != "Tensor" or a.name in entry.row.fixed:
                continue
            converted = []
            try:
                slopes = expr.slopes(expr.parse(text), a.name, "complex64" in d.dtypes)
                trees = [expr.scaled(expr.parse(outer), renamed(slope, {"grad": "grad_"})) for outer, slope in slopes]
                apart = sorted(integers & set().union(*map(expr.met_apart, trees)))
                terms = [expr.over_tensors(renamed(tree, {n: f"{n}_cast" for n in apart})) for tree in trees]
                converted = [f"{n}_cast = in_dtype({n}, grad.dtype)" for n in apart]
            except expr.NotPointwise:
                terms = [f'raise NotImplementedError("{schema.full}: the second derivative by {a.name} is not implemented; '
                         'use create_graph=False")']
            if terms or (entry.row.straight and a.name != "grad"):
                body = [*converted, " + ".join(terms) or "zeros_like(grad)"]
                d.grad[a.name] = "\n".join(["tensors:", *body] if converted else [f"tensors: {body[0]}"])
        found.append(d)
    return found


def renamed(tree, names: dict[str, str]):
    """A copy with other names. Inside the derivative of a derivative kernel, `grad` is the outer gradient and `grad_` the
    kernel's own operand."""
    import ast as _ast
    import copy

    class Put(_ast.NodeTransformer):
        def visit_Name(self, node):
            return _ast.Name(names.get(node.id, node.id))

    return Put().visit(copy.deepcopy(tree))
