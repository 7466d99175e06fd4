"""What entries over an index space say beside their text: operands with their dims, numbers, the shape rule, the order."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from . import expr
from .schema import split_top

if TYPE_CHECKING:
    from .keys import KernelRow, OpRow
    from .model import Entry


def space_scalars(e: Entry) -> list[tuple[str, str]]:
    """Scalars of a space kernel and the dtype of each: "" for that of the elements, "widest"; lists of a group are int64."""
    return [(o.name, "int64" if o.dims else o.dtype) for o in e.row.scalars]


def checked_index(e: Entry) -> tuple[str | None, bool]:
    """The input whose values are checked to be places, and whether negative ones count from the end."""
    names = [o.name for o in e.row.inputs]
    found = [c for c in expr.calls(e.text) if c.func.id in ("checked", "wrapped")]
    places = {a.id if isinstance(a, ast.Name) else "" for c in found for a in c.args}
    if len(found) > 1 or not places <= set(names):
        raise ValueError("checked and wrapped stand once, around the name of an input")
    return (places.pop(), found[0].func.id == "wrapped") if found else (None, False)


def rule_call(e: Entry) -> tuple[str, list[str]]:
    """The name and the arguments of `shape: gather(self, dim, index)`: arguments of the operator, numbers and strings."""
    key = "allocate" if e.kind == "allocate" else "shape"
    match = re.fullmatch(r"(\w+)\((.*)\)", getattr(e.row, key))
    if not match:
        raise ValueError(f"{key} is the call of a rule of core/shape, got {getattr(e.row, key)!r}")
    args = split_top(match[2])
    known = {a.name for a in e.schema.args}
    for a in args:
        if a not in known and not re.fullmatch(r"-?\d+|true|false|\"[^\"]*\"", a):
            raise ValueError(f"{key} names {a}, which is no argument")
    return match[1], args


def check_space(e: Entry) -> None:
    """Raises where the keys of a space entry do not fit together."""
    alone = e.writes_self and not e.row.inputs  # its sizes are those of self
    for key in ("shape", "outputs", "dtypes"):
        if (key in e.row.said) == (alone and key == "shape"):
            raise ValueError(f"an entry with space has {key}, but one that writes self and reads no tensor no shape")
    tensors = {a.name for a in e.schema.args if a.is_tensor}
    for o in e.row.inputs:
        if o.name not in tensors:
            raise ValueError(f"inputs names {o.name}, which is no tensor argument")
    if len(e.row.outputs) != len(e.schema.returns):
        raise ValueError("outputs are not as many as results")
    check_order(e.row)
    index, _ = checked_index(e)
    if (index is not None) != bool(e.row.outside):
        raise ValueError("outside is the error of an index that is checked or wrapped")
    if e.scatters != ("starts" in e.row.said):
        raise ValueError("starts says what the result of a text that scatters (sum_into, put_into ...) begins as")
    if e.row.starts not in ("0", *tensors):
        raise ValueError(f"starts is a tensor argument or 0, got {e.row.starts}")
    strides_of(e)
    if not alone:
        rule_call(e)
    space_scalars(e)


def strides_of(e: Entry) -> str:
    """Those of the results: a word, or the name of an argument, a memory format."""
    formats = [a.name for a in e.schema.args if a.type == "MemoryFormat?"]
    if (found := e.row.strides) not in ("contiguous", "preserve", "suggested", *formats):
        raise ValueError("strides are contiguous, preserve or suggested, or as a memory format among the arguments says")
    return found


SCATTERS = {"sum_into", "prod_into", "max_into", "min_into", "put_into"}


def into_of(text: str) -> str | None:
    """sum, prod, max, min or put, where the text's last line says what changes places of the result."""
    last = expr.parse(expr.lines(text)[-1][1])
    name = last.func.id if isinstance(last, ast.Call) and isinstance(last.func, ast.Name) else ""
    return name.removesuffix("_into") if name in SCATTERS else None


def order_word(row: OpRow | KernelRow) -> str:
    """How contributions of a space text meet: tree, sequence or chains; "" where it has none."""
    return row.order.partition(";")[0].strip() if row.body == "space" else ""


def check_order(row: OpRow | KernelRow) -> None:
    """Raises where contributions meet in an order that is not said, or an order is said of none."""
    if row.body != "space":
        return
    word, into = order_word(row), into_of(row.text)
    if into:
        words = ("chains", "sequence") if into in ("sum", "prod") else ()
        what = f"{into}_into"
    else:
        words = () if not row.over else ("chains",) if "sum_products(" in row.text else ("tree", "sequence")
        what = "`over`" if row.over else "what neither has `over` nor adds up"
    if word not in (words or ("",)):
        raise ValueError(f"order: expected {' or '.join(words) or 'none'} of {what}, got {word or 'none'}")
