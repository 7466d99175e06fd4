"""The operator table as typed values: entries of ops/*.yaml and the operators that each one stands for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from . import expr
from .rows import read
from .schema import Arg, Schema, parse_schema, safe
from .space_text import check_order, check_space, into_of, rule_call, strides_of

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128"]
GROUPS = {
    "bool": ["bool"],
    "int": ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"],
    "float": ["float16", "bfloat16", "float32", "float64"],
    "complex": ["complex64", "complex128"],
}
# Elements that are only moved, by their width.
GROUPS["width"] = ["uint8", "uint16", "uint32", "uint64", "complex128"]
GROUPS["all"] = GROUPS["bool"] + GROUPS["int"] + GROUPS["float"] + GROUPS["complex"]

KEYS = {
    "op", "compute", "rows", "dims", "cpu", "composite", "view", "inverse", "promote", "dtypes", "grad", "variants", "inplace",
    "out", "out_args", "node", "node_edges", "doc", "samples", "python", "fixed", "outputs", "inputs", "cpu_inplace", "cpu_out", "note",
    "autocast", "no_python", "skip", "bind", "tags", "check", "unpromoted", "out_dtype", "out_apart", "aliases", "constant_outputs",
    "shape_only", "underived", "refuses_grad", "narrow", "space", "shape", "scalars", "outside", "strides", "starts", "reference",
    "reason", "numbers", "over", "order", "rank", "plan", "reads", "size", "allocate", "direct", "header",
}
# Who reads values of tensors on the host: the caller gets them, the operator alone looks at them, its derivative does.
READS = {"value", "inside", "gradient"}
FORMULA_KEYS = {"formula", "text"}
KERNEL_KEYS = {"kernel", "inputs", "scalars", "outputs", "compute", "rows", "space", "dtypes", "doc", "over", "order", "rank", "promote",
               "operator"}


@dataclass
class Entry:
    """One entry of the table. `kind` is pointwise, rows, space, allocate, cpu, composite or view. With `plan` the body is text over
    tensors; such an entry is cpu, or composite where its derivative is that of its parts."""

    schema: Schema
    kind: str
    text: str  # expression, or name of the C++ function, or C++ expression
    family: str
    line: int
    raw: dict
    grad: dict[str, str] = field(default_factory=dict)
    derived: bool = False  # made by gen: the derivative kernel of another entry

    @property
    def plan(self) -> bool:
        return "plan" in self.raw

    @property
    def reads(self) -> set[str]:
        return set(self.raw.get("reads", "").split())

    @property
    def source(self) -> str:
        return f"ops/{self.family}.yaml:{self.line}: {self.schema.full}"

    @property
    def promote(self) -> str:
        return self.raw.get("promote", "common")

    @property
    def dtypes(self) -> list[str]:
        words = self.raw.get("dtypes")
        if words is None:
            words = "float" if self.promote == "float" else "int float"
        return dtype_list(words)

    @property
    def tensors(self) -> list[Arg]:
        return [a for a in self.schema.args if a.is_tensor]

    @property
    def by_hand(self) -> str | None:
        """The C++ function beside a text that says the operator, the CPU's schedule, or beside a shape rule alone."""
        return self.raw.get("cpu") if self.kind == "space" or self.plan or self.filled else None

    @property
    def filled(self) -> bool:
        """Whether its C++ function fills results that a shape rule prepares, and there is no text."""
        return self.kind == "cpu" and "shape" in self.raw

    def kernel_scalars(self) -> list[tuple[str, str]]:
        """Scalar operands of the generated kernel: the name in the expression and the C++ value."""
        tensors = {a.name for a in self.tensors} | {"n", "index", "result"}
        bind = self.raw.get("bind", {})
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

    @property
    def unpromoted(self) -> int:
        """Bit i: scalar operand i takes no part in the result type."""
        names = self.raw.get("unpromoted", "").split()
        return sum(1 << i for i, (n, _) in enumerate(self.kernel_scalars()) if n in names)

    @property
    def narrow(self) -> int:
        """Bit i: scalar operand i must fit the dtype of the operands, not only that of the computation."""
        names = self.raw.get("narrow", "").split()
        return sum(1 << i for i, (n, _) in enumerate(self.kernel_scalars()) if n in names)

    @property
    def checked(self) -> int:
        """Bit i: scalar operand i must fit. Numbers that stand for a tensor (`x + 300`) wrap as its elements do."""
        numbers = {a.name for a in self.schema.args if a.type.startswith("Scalar") and a.name not in self.raw.get("bind", {})}
        return self.narrow | sum(1 << i for i, (n, _) in enumerate(self.kernel_scalars())
                                 if n in numbers - {"self", "other", "exponent", "x", "n"})

    def kernel_inputs(self) -> list[Arg]:
        """Tensor operands of the generated kernel."""
        used = {u for _, value in expr.lines(self.text) for u in expr.used_names(value)}
        return [a for a in self.tensors if a.name in used]

    @property
    def inplace(self) -> bool:
        default = self.kind == "pointwise" and not self.derived and len(self.schema.returns) == 1
        return bool(self.raw.get("inplace", default)) and self.schema.args[0].name == "self" and self.schema.args[0].type == "Tensor"

    @property
    def out(self) -> str | None:
        """Overload name of the out= form; None when there is none."""
        name = self.raw.get("out", True)
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
        return "method" in self.raw.get("variants", "function method") and self.schema.args[:1] != () and \
            self.schema.args[0].name == "self"

    @property
    def functions(self) -> bool:
        return "function" in self.raw.get("variants", "function method")

    def aliases(self, kind: str) -> list[str]:
        """Other names that Python knows the operator by."""
        return [a + ("_" if kind == "inplace" else "") for a in self.raw.get("aliases", "").split()]

    def inplace_schema(self) -> Schema:
        s = self.schema
        first = Arg("Tensor", "self", None, False, "a!")
        return s.with_(name=s.name + "_", args=(first, *s.args[1:]), returns=(Arg("Tensor", "", alias="a!"),))

    def out_schema(self) -> Schema:
        s = self.schema
        if s.returns[0].type == "Tensor[]":
            return s.with_(overload=self.out, args=(*s.args, Arg("Tensor[]", "out", None, True, "a!")), returns=())
        names = self.raw.get("out_args") or ([r.name or f"out{i}" for i, r in enumerate(s.returns)] if len(s.returns) > 1 else ["out"])
        outs = tuple(Arg("Tensor", n, None, True, chr(97 + i) + "!") for i, n in enumerate(names))
        return s.with_(overload=self.out, args=s.args + outs,
                       returns=tuple(Arg("Tensor", "", alias=o.alias) for o in outs))

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
        return self.scatters and self.raw["outputs"].endswith(":wide")

    @property
    def node(self) -> str:
        return self.raw["node"]


@dataclass
class Kernel:
    """A generated kernel that hand-written code calls: no operator of its own."""

    name: str
    kind: str
    text: str
    inputs: str
    scalars: str
    outputs: str
    dtypes: list[str]
    family: str
    source: str
    raw: dict = field(default_factory=dict)
    first: bool = True  # of the rows of its name: each is for other dtypes

    @property
    def draws(self) -> bool:
        """Whether it takes words of a generator's stream."""
        return ":word" in self.inputs


@dataclass
class Definition:
    """A formula of the table that other formulas call by name."""

    schema: Schema
    text: str
    source: str


KINDS = ("compute", "rows", "space", "allocate", "plan", "header", "cpu", "composite", "view")


def camel(name: str) -> str:
    return "".join(p.title() for p in name.strip("_").split("_") if p)  # log1p: Log1P, as PyTorch's


def load(folder: Path) -> tuple[list[Entry], list[Kernel]]:
    entries: list[Entry] = []
    kernels: list[Kernel] = []
    for path in sorted(folder.glob("*.yaml")):
        for raw, line in read(path):
            try:
                if "kernel" in raw:
                    kernels.append(make_kernel(raw, path.stem, line))
                elif "formula" not in raw:
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
    number_nodes(entries)
    derived = [d for e in entries for d in derive(e)]
    return entries + derived, kernels


def check_rows(kernels: list[Kernel]) -> None:
    """Rows of one name are one kernel: their operands are called alike, and their dtypes differ."""
    first: dict[str, Kernel] = {}
    taken: set[tuple[str, str]] = set()
    for k in kernels:
        other = first.setdefault(k.name, k)
        k.first = other is k
        names, others = ([w.split(":")[0] for w in (x.inputs + " | " + x.scalars).split()] for x in (k, other))
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
                if set(raw) != FORMULA_KEYS:
                    raise SystemExit(f"{source}: expected the keys {sorted(FORMULA_KEYS)}, got {sorted(raw)}")
                found.append(Definition(parse_schema(raw["formula"]), str(raw["text"]).strip(), source))
    return found


def dtype_list(words: str) -> list[str]:
    found: list[str] = []
    for w in words.split():
        found += [d for d in GROUPS.get(w, [w]) if d not in found]
    return found


def make_kernel(raw: dict, family: str, line: int) -> Kernel:
    if unknown := set(raw) - KERNEL_KEYS:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    kinds = [k for k in ("compute", "rows", "space") if k in raw]
    if len(kinds) != 1:
        raise ValueError(f"expected exactly one of compute, rows, space, got {kinds}")
    kind = {"compute": "pointwise"}.get(kinds[0], kinds[0])
    check_order(raw)
    return Kernel(raw["kernel"], kind, str(raw[kinds[0]]).strip(), raw.get("inputs", ""),
                  raw.get("scalars", ""), raw.get("outputs", "result"), dtype_list(raw["dtypes"]), family,
                  f"ops/{family}.yaml:{line}: {raw['kernel']}", raw)


def make_entry(raw: dict, family: str, line: int) -> Entry:
    unknown = set(raw) - KEYS
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    kinds = [k for k in KINDS if k in raw]
    if len(kinds) != 1 and kinds not in (["space", "cpu"], ["plan", "cpu"]):
        raise ValueError(f"expected exactly one of {KINDS}, or cpu beside space or plan, got {kinds}")
    if not raw.get("doc"):
        raise ValueError("expected a doc")
    if "reason" in raw and kinds[0] not in ("cpu", "composite"):
        raise ValueError("reason says why an entry is C++, which this one is not")
    if "reads" in raw and not set(raw["reads"].split()) <= READS:
        raise ValueError(f"reads takes some of {sorted(READS)}, got {raw['reads']!r}")
    if "direct" in raw and kinds[0] != "plan":
        raise ValueError("direct says which forms of a plan its last kernels write")
    parts = raw.get("grad") == "parts"
    if parts and kinds != ["plan"]:
        raise ValueError("grad is `parts` where a plan's derivative is that of what it calls")
    kind = {"compute": "pointwise", "plan": "composite" if parts else "cpu", "header": "cpu"}.get(kinds[0], kinds[0])
    entry = Entry(parse_schema(raw["op"]), kind, str(raw[kinds[0]]).strip(), family, line, raw)
    if kind in ("pointwise", "rows"):
        entry.kernel_scalars()  # raises for names that are no arguments
    elif kind == "space":
        check_space(entry)
    elif kind == "allocate":
        rule_call(entry)
    elif kinds == ["cpu"] and "shape" in raw:
        rule_call(entry)
        strides_of(entry)
    elif "shape" in raw:
        raise ValueError("shape is a key of entries with space, or with cpu alone")
    grad = {} if parts else raw.get("grad") or {}
    names = {a.name for a in entry.schema.args}
    for key, value in grad.items():
        for arg in (p.strip() for p in str(key).split(",")):
            if arg not in names:
                raise ValueError(f"grad names {arg}, which is no argument")
        entry.grad[str(key)] = str(value).strip()
    return entry


def number_nodes(entries: list[Entry]) -> None:
    """Autograd nodes are named as PyTorch names them: AddBackward0; overloads count up unless `node` says otherwise."""
    count: dict[str, int] = {}
    for e in entries:
        base = camel(e.schema.name)
        if "node" in e.raw:
            continue
        n = count.get(base, 0)
        if e.grad:
            count[base] = n + 1
        e.raw["node"] = f"{base}Backward{n}"


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
        args = tuple(Arg("Scalar" if n in by_name and by_name[n].type == "Scalar" else "Tensor", n) for n in order)
        base = entry.schema.ident
        schema = Schema("strata", f"{base}_grad_{arg}", "", args, (Arg("Tensor", ""),))
        raw = {"promote": entry.raw.get("grad_promote", "common"), "dtypes": "float complex" if "complex64" in entry.dtypes else "float",
               "doc": f"Derivative of {entry.schema.full} by {arg}.", "variants": "", "node": camel(f"{base}_grad_{arg}") + "Backward0"}
        for key in ("fixed", "unpromoted"):
            if key in entry.raw:
                raw[key] = entry.raw[key]
        d = Entry(schema, "pointwise", text, entry.family, entry.line, raw, derived=True)
        for a in args:
            if a.type != "Tensor" or a.name in entry.raw.get("fixed", {}):
                continue
            try:
                slopes = expr.slopes(expr.parse(text), a.name, "complex64" in d.dtypes)
                terms = [f"{outer} * ({expr.over_tensors(rename_grad(slope))})" for outer, slope in slopes]
            except expr.NotPointwise:
                terms = [f'raise NotImplementedError("{schema.full}: the second derivative by {a.name} is not implemented; '
                         'use create_graph=False")']
            if terms:
                d.grad[a.name] = "tensors: " + " + ".join(terms)
        found.append(d)
    return found


def rename_grad(tree):
    """Inside the derivative of a derivative kernel, `grad` is the outer gradient and `grad_` the kernel's own operand."""
    import ast as _ast
    import copy

    class Put(_ast.NodeTransformer):
        def visit_Name(self, node):
            return _ast.Name("grad_") if node.id == "grad" else node

    return Put().visit(copy.deepcopy(tree))
