"""The order in which contributions of an operator's result meet, in words: that of the functions which its text calls, or as its
entry says."""

from __future__ import annotations

from . import expr
from .model import Entry
from .space_text import into_of, order_word

# What functions of texts promise (docs/architecture.md).
ORDERS = [
    ({"max", "min"}, "NaN wins over every number"),
    ({"argmax", "argmin"}, "the first of equals, the first NaN before all"),
    ({"any", "all"}, "independent of order"),
    ({"scan"}, "blocks of 1,024 elements from left to right, then the blocks' totals from left to right"),
    ({"recurrence"}, "element after element"),
]
TREE = "tree T over the logical index of the reduced dims"
WORDS = {"tree": TREE, "sequence": "element after element of the reduced dims"}
SCATTERED = {"chains": "chains of 1,024 contributions in the order of their sources, the chains' results added in order",
             "sequence": "contributions to one place in the order of their sources"}
PRODUCTS = "chains of 1,024 fma in order of k, the chains' results added in order, one rounding"


def order_of(e: Entry) -> str:
    """"" where nothing meets, or where the parts of the body say it."""
    if e.kind not in ("rows", "space"):
        return "" if e.row.order == "none" else " ".join(e.row.order.split())
    names = {c.func.id for c in expr.calls(e.text)}
    found = [TREE] if e.kind == "rows" and names & {"sum", "prod"} else []
    if word := order_word(e.row):
        found.append((SCATTERED if into_of(e.text) else {**WORDS, "chains": PRODUCTS})[word])
    found += [text for functions, text in ORDERS if names & functions]
    more = e.row.order.partition(";")[2].strip() if e.kind == "space" else ""
    return "; ".join([*found, *([more] if more else [])])
