"""Reference pages: one Markdown file per family of the table, docs/ops/<family>.md, and an index."""

from __future__ import annotations

from .emit import Output
from .keys import dtype_words
from .model import Definition, Entry, pointwise_formula
from .order import order_of

PROMOTE = {
    "common": "operands to their common dtype", "float": "operands to their common dtype, integers to the default float dtype",
    "first": "operands to the first tensor's dtype", "sum": "integers and bool to int64",
    "floating": "none: other than floating-point dtypes raise",
}
READERS = {"value": "its caller gets them", "inside": "it alone looks at them", "gradient": "its derivative does"}
def code(text: str) -> str:
    text = " ".join(text.split())
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def block(text: str, indent: int) -> list[str]:
    return ["", *[(" " * indent + line).rstrip() for line in text.splitlines()], ""]


def formulas(definitions: list[Definition]) -> str:
    lines = ["# Formulas", "", "What derivatives of the table call beside operators and the primitives of gen/formula.py, which "
             "docs/add-an-operator.md describes.", ""]
    for d in definitions:
        place = d.source.split(": ")[0]
        lines += [f"## {d.schema.name}", "", f"    {d.schema.text().removeprefix('aten::')}", "", f"{place}:", *block(d.text, 4)]
    return "\n".join(lines)


def section(e: Entry) -> list[str]:
    s = e.schema
    forms = []
    if e.functions and e.row.python:
        forms.append(f"`strata.{s.name}`")
    if e.methods and e.row.python:
        forms.append(f"`Tensor.{s.name}`")
    if e.inplace:
        forms.append(f"`{s.name}_`")
    if e.out:
        forms.append("`out=" + ", ".join(a.name for a in e.out_schema().args if a.written) + "`")
    lines = [f"## {s.full}", "", " ".join(e.row.doc.split()), "", f"    {s.text()}", "",
             f"- entry: ops/{e.family}.yaml, line {e.line}",
             f"- forms: {', '.join(forms) or 'C++ only'}; C++ `strata::ops::{s.name}`"]
    what = {"pointwise": "computes", "rows": "computes per row", "space": "computes per place of the result", "cpu": "hand-written, `strata::eager::", "view": "view, `",
            "composite": "composed: ", "allocate": "allocates, without values, by the shape rule"}[e.kind]
    if e.plan:
        lines += ["- body:", *block(e.text, 4)] if "\n" in e.text else [f"- body: {code(e.text)}"]
    elif e.row.header:
        lines.append(f"- another header over the same memory: `{e.text}`")
    elif e.kind in ("cpu", "view"):
        lines.append(f"- kernel: {what}{e.text}`")
    else:
        lines.append(f"- {what} {code(e.text)}".replace("composed:  ", "composed: "))
    if e.reads:
        lines.append("- reads values of tensors on the host: " + "; ".join(READERS[w] for w in sorted(e.reads)))
    if e.row.size:
        lines.append(f"- the size of its result is {code(e.row.size)}")
    if e.row.reason:
        lines.append(f"- in C++, since {e.row.reason}")
    if e.kind == "space":
        operands = ", ".join(code(str(o)) for o in (*e.row.inputs, *e.row.outputs))
        lines.append(f"- operands: {operands}; shape: {code(e.row.shape or 'self')}")
        lines.append("- dtypes: " + ("all, moved by their width" if e.row.moves else dtype_words(e.dtypes)))
    if e.kind in ("pointwise", "rows"):
        lines.append(f"- dtypes: {dtype_words(e.dtypes)}; promotion: {PROMOTE.get(e.promote, e.promote)}")
    if o := order_of(e):
        lines.append(f"- order: {o}")
    if e.grad:
        lines.append(f"- derivative (`{e.node}`):")
        for arg, formula in e.grad.items():
            how = " (a kernel of its own)" if pointwise_formula(e, formula) not in (None, "grad", "-grad") else ""
            text = formula.removeprefix("tensors:").strip()
            lines += [f"  - {arg}:", *block(text, 8)] if "\n" in text else [f"  - {arg}: {code(text)}{how}"]
    elif e.kind == "composite":
        lines.append("- derivative: that of its parts")
    elif e.kind == "view":
        lines.append(f"- derivative: that of a view; inverse {code(e.row.inverse)}" if e.row.inverse else
                     "- derivative: that of a view")
    else:
        lines.append("- derivative: none")
    if e.twin:
        lines.append(f"- functional twin: `{e.twin_schema().text() if e.makes_twin else e.twin}`")
    if e.row.autocast:
        lines.append(f"- autocast: {e.row.autocast}")
    lines += [f"- samples: `{e.row.samples or 'none'}` (tests/ops)", ""]
    return lines


def write(entries: list[Entry], definitions: list[Definition], out: Output) -> None:
    families: dict[str, list[Entry]] = {}
    for e in entries:
        if not e.derived:
            families.setdefault(e.family, []).append(e)
    for family, members in families.items():
        text = [f"# {family}", "", f"Generated from ops/{family}.yaml: {len(members)} entries.", ""]
        for e in members:
            text += section(e)
        out.write(f"docs/ops/{family}.md", "\n".join(text))
    index = [f"- [{f}]({f}.md): " + ", ".join(dict.fromkeys(e.schema.name for e in m)) for f, m in sorted(families.items())]
    out.write("docs/ops/formulas.md", formulas(definitions))
    index.append("- [formulas](formulas.md): what derivatives call")
    out.write("docs/ops/index.md", "# Operators\n\nOne page per family of the table.\n\n" + "\n".join(index) + "\n")
