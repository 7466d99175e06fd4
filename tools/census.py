"""How much of the table is said in its own language, over the entries of tools/census.txt: every operator that was neither
composite nor view when the count began.

Said is an entry with an expression (`compute`, `rows`, `space`), a shape rule alone (`allocate`), another header over the same
memory alone (`header`; views are so too, and no part of the count), and one whose text (`plan`,
or `composite`) only calls said operators; a plan may call kernels of the table, formulas whose text is said, and functions of
numbers. C++ is an entry that names a function: by `cpu`, or a composite by its text; it may be host code around printed
kernels. A plan that calls what is not said is none of these.

`derivatives` counts likewise what `grad` says."""

from __future__ import annotations

import json
import re
import textwrap
from functools import cache
from pathlib import Path

from gen import autograd_cpp, model
from gen.formula_table import Table
from gen.formula_types import Function
from gen.model import Entry

ROOT = Path(__file__).resolve().parent.parent
# What a composite's text may use beside operators: numbers, one result of several, and what a tensor knows of itself.
PLAIN = re.compile(r"(Scalar|std::(get|optional|tuple)(<\w+>)?|\w+\.(is_complex|dtype|device|sizes|dim|numel|defined))$")
CALL = re.compile(r"([A-Za-z_][\w:.]*(?:<\w+>)?)\s*[({]")


def calls(text: str) -> list[str]:
    """The identifiers that a C++ expression calls; strings apart."""
    return CALL.findall(re.sub(r'"[^"]*"', '""', text))


def table_of_texts() -> Table:
    entries, kernels = model.load(ROOT / "ops")
    return Table(entries, model.definitions(ROOT / "ops"), kernels)


class Census:
    def __init__(self, entries: list[Entry], texts: Table | None = None):
        self.texts = texts or table_of_texts()
        self.by_operator: dict[str, list[Entry]] = {}
        for e in entries:
            for _, s in e.operators():
                self.by_operator.setdefault(s.name, []).append(e)
            self.by_operator.setdefault(e.schema.name + "_out", []).append(e)
        self.by_name = {e.schema.full: e for e in entries}
        self.names = (ROOT / "tools/census.txt").read_text().split()
        self.judged: dict[str, str] = {}

    def callee_is_said(self, name: str) -> bool:
        """All overloads of an operator; views only make headers."""
        found = self.by_operator.get(name.removeprefix("ops::"), [])
        return bool(found) and all(e.kind == "view" or self.kind(e) in ("expression", "composed") for e in found)

    def function_is_said(self, f: Function) -> bool:
        """What a plan calls. Readers, and functions of numbers and headers, belong to the language; C++ over tensors does not."""
        if f.kind in ("operator", "writer"):
            e = self.by_name.get(f.entry) or self.texts.entries[f.entry]
            return e.kind == "view" or self.kind(e) in ("expression", "composed")
        if f.kind == "primitive":
            return not any("Tensor" in a.type for a in f.args)
        return f.kind in ("kernel", "launch", "fact", "reader", "definition")

    def unsaid(self, e: Entry) -> list[str]:
        """What a plan calls that is not said."""
        return sorted({f.text().partition("(")[0] for f in self.texts.called(self.texts.plans[e.schema.ident]) if not self.function_is_said(f)})

    def kind(self, e: Entry) -> str:
        """expression, composed, plan (over what is not said), host or other (C++)."""
        name = e.schema.full
        if name not in self.judged:
            self.judged[name] = "other"  # of what calls itself
            self.judged[name] = self.judge(e)
        return self.judged[name]

    def judge(self, e: Entry) -> str:
        if e.kind in ("pointwise", "rows", "space", "allocate") or e.row.header:
            return "expression"
        if e.plan:
            return "plan" if self.unsaid(e) else "composed"
        if re.fullmatch(r"\w+", e.text) and e.text not in {a.name for a in e.schema.args}:
            return "host" if runs_kernels(e.text) else "other"
        fine = all(PLAIN.match(c) or c.startswith("ops::") and self.callee_is_said(c) for c in calls(e.text))
        return "composed" if e.kind == "composite" and fine else "other"

    def report(self) -> list[str]:
        gone = [n for n in self.names if n not in self.by_name]
        found = [self.by_name[n] for n in self.names if n in self.by_name]
        kinds = {k: [e for e in found if self.kind(e) == k] for k in ("expression", "composed", "plan", "host", "other")}
        said, cpp = len(kinds["expression"]) + len(kinds["composed"]), kinds["host"] + kinds["other"]
        lines = [f"census: of {len(self.names)} operators {said} ({100 * said / len(self.names):.1f} %) are said: "
                 f"{len(kinds['expression'])} expressions, {len(kinds['composed'])} composed of said ones",
                 f"census: {len(cpp)} are C++: {len(kinds['host'])} host code around printed kernels, {len(kinds['other'])} other; "
                 f"{sum(bool(e.row.reason) for e in cpp)} say why"]
        if kinds["plan"]:
            lines.append(f"census: {len(kinds['plan'])} are plans over what is not said")
            lines += [f"  {e.schema.full.removeprefix('aten::')}: {', '.join(self.unsaid(e))}" for e in kinds["plan"]]
        if gone:
            lines.append(f"census: {len(gone)} are no entries any more: {', '.join(gone)}")
        for kind, title in (("host", "host code around printed kernels"), ("other", "other C++")):
            lines += listed(title, [e for e in kinds[kind] if not e.row.reason])
        reasons: dict[str, list[Entry]] = {}
        for e in cpp:
            if e.row.reason:
                reasons.setdefault(e.row.reason, []).append(e)
        for reason, members in reasons.items():
            lines += listed(f"C++, since {reason}", members)
        return lines


def derivatives() -> list[str]:
    """How many derivatives are table text: scalar expressions, and formulas that call operators, the table's other formulas and
    the primitives of gen/formula.py, no C++ of their own."""
    texts = table_of_texts()
    found = autograd_cpp.census(list(texts.entries.values()), texts)
    said = sum("helper" not in kinds for _, kinds in found)
    lines = [f"derivatives: {said} of {len(found)} are table text ({100 * said / len(found):.1f} %)"]
    for kind, title in (("helper", "by C++"), ("reader", "reading values")):
        names = ", ".join(name for name, kinds in found if kind in kinds)
        lines += textwrap.wrap(f"{title}: {names}", 118, initial_indent="  ", subsequent_indent="    ")
    return lines


def readers() -> list[str]:
    """Which operators read values of tensors on the host, which results have a size that is data, and which errors are of values:
    what shape-only execution cannot do, or does without refusing."""
    refused = json.loads((ROOT / "tests/ops/skips.json").read_text())["values"]
    entries = [e for e in table_of_texts().entries.values() if not e.derived]
    kinds = [("values go to the caller", lambda e: "value" in e.reads), ("read values inside", lambda e: "inside" in e.reads),
             ("sizes are data", lambda e: e.row.size), ("of these a rule gives a symbol with bounds", lambda e: e.row.size and e.row.shape),
             ("errors are of values", lambda e: e.row.outside or e.schema.full in refused)]
    found = [(title, [e.schema.full for e in entries if test(e)]) for title, test in kinds]
    lines = ["host: " + ", ".join(f"{len(names)} {title}" for title, names in found)]
    for title, names in found:
        lines += textwrap.wrap(f"{title}: {', '.join(names)}", 118, initial_indent="  ", subsequent_indent="    ")
    return lines


@cache
def sources() -> dict[Path, str]:
    return {p: p.read_text() for folder in ("run", "vendor", "ops", "compose", "optim", "grad") for p in (ROOT / "src" / folder).rglob("*.cpp")}


def runs_kernels(function: str) -> bool:
    """Whether a file that defines the function, or names it where a macro does, runs printed kernels."""
    defines = re.compile(rf"^[A-Za-z][^\n;(]*\b{function}\(", re.M)
    found = [t for t in sources().values() if defines.search(t)] or [t for t in sources().values() if re.search(rf"\b{function}\b", t)]
    return bool(found) and all("kernels::" in t for t in found)


def listed(title: str, entries: list[Entry]) -> list[str]:
    families: dict[str, list[str]] = {}
    for e in sorted(entries, key=lambda e: (e.family, e.line)):
        families.setdefault(e.family, []).append(e.schema.full.removeprefix("aten::"))
    lines = [f"{title}: {len(entries)}"] if entries else []
    for family, names in families.items():
        lines += textwrap.wrap(", ".join(names), 118, initial_indent=f"  {family}: ", subsequent_indent="    ")
    return lines
