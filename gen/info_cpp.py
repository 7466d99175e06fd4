"""OpInfo: what the table says of an operator, for C++ and Python at run time. An entry is one record of fields, each a letter, its
value and a NUL; all forms of the entry share it. No pointers inside, so nothing is relocated or built at start-up."""

from __future__ import annotations

from .emit import HEADER, Output, cstring
from .keys import AUTOCAST, PROMOTE, dtype_words
from .model import KIND as KINDS
from .model import Entry
from .order import order_of

# Fields: their letter, what they say, and the words that they choose from.
FIELDS = {
    "source": ("s", "the file and the line of the table, and the operator that the entry says", ""),
    "kind": ("k", "what says it; a twin is the operator that the entry says over copies of what that writes", "pointwise rows space allocate plan header cpu view composite twin"),
    "text": ("t", "what it computes: an expression, a text over tensors, or C++", ""),
    "calls": ("m", "the kernels and operators that have kernels which a text over tensors calls, formulas taken apart", ""),
    "by_hand": ("c", "the C++ that the CPU runs beside a text or a shape rule", ""),
    "promotion": ("p", "the dtype that a kernel computes in", PROMOTE),
    "dtypes": ("d", "of a kernel; \"width\" where elements are only moved", ""),
    "inputs": ("i", "tensor operands of a kernel", ""),
    "numbers": ("n", "its number operands", ""),
    "outputs": ("o", "its results", ""),
    "shape": ("h", "the call of its shape rule", ""),
    "strides": ("g", "of the results of a shape rule: these, or as an argument says", ""),
    "order": ("r", "in which contributions meet", ""),
    "reads": ("e", "who reads values of tensors on the host: value, inside, gradient", ""),
    "size": ("z", "\"data\" and under which condition, where sizes of results depend on values", ""),
    "acts": ("x", "what it does beside its results: raises by values, draws random numbers, untold where C++ alone says it", ""),
    "inverse": ("v", "the operator that puts a changed view back into a copy of its base; a view is replayed by itself", ""),
    "functional": ("f", "of what writes: the operator that computes the same and writes nothing, where its name does not tell; or none, and why", ""),
    "gradient": ("l", "where its derivative comes from", "formulas parts view unwritten none"),
    "autocast": ("a", "what mixed precision does with its operands, on all devices, on the CPU or on accelerators", AUTOCAST),
    "reason": ("y", "why it is C++", ""),
}
DERIVATIVE = "w"  # of an argument, or several: their names, a line's end, the formula


def gradient(e: Entry) -> str:
    if e.grad:
        return "formulas"
    if e.kind == "composite":
        return "parts"
    return "view" if e.kind == "view" else "unwritten" if e.row.underived else "none"


def values(e: Entry) -> dict[str, str]:
    """The fields of an entry that say something."""
    kernel = e.kind in ("pointwise", "rows", "space")
    inputs, numbers = e.kernel_operands() if kernel else ("", "")
    found = {
        "source": e.source, "kind": KINDS.get(e.row.body, e.row.body), "text": e.text, "calls": " ".join(e.calls),
        "by_hand": e.by_hand or "",
        "promotion": e.promote if e.kind in ("pointwise", "rows") else "",
        "dtypes": "width" if e.row.moves else dtype_words(e.dtypes) if kernel else "", "inputs": inputs, "numbers": numbers,
        "outputs": " ".join(map(str, e.row.outputs)) if kernel else "", "shape": e.text if e.kind == "allocate" else e.row.shape,
        "strides": e.row.strides if e.row.shape else "", "order": order_of(e), "reads": " ".join(e.row.reads), "size": e.row.size,
        "acts": " ".join(e.acts), "inverse": e.row.inverse, "functional": e.twin if e.twin and e.row.functional else e.row.functional, "gradient": gradient(e), "autocast": e.row.autocast, "reason": e.row.reason,
    }
    return {name: text for name, text in found.items() if text}


def derivatives(e: Entry) -> dict[str, str]:
    return {arg: formula.removeprefix("tensors:").strip() for arg, formula in e.grad.items()}


def record(e: Entry) -> str:
    """The C++ literal of an entry."""
    parts = []
    for name, text in values(e).items():
        letter, _, words = FIELDS[name]
        parts.append(letter + (chr(ord("A") + words.split().index(text)) if words else text))
    parts += [f"{DERIVATIVE}{arg}\n{formula}" for arg, formula in derivatives(e).items()]
    return "\n    ".join(cstring(p)[:-1] + '\\0"' for p in parts)


def write(out: Output) -> None:
    members = "\n".join(f"  // {text}\n  std::string_view {name};" for name, (_, text, _) in FIELDS.items())
    rows = "\n".join(f"    {{'{letter}', \"{name}\", &OpInfo::{name}, \"{words}\"}}," for name, (letter, _, words) in FIELDS.items())
    out.write("strata/generated/op_info.h", HEADER + f"""#pragma once
#include <string_view>
#include <utility>
#include <vector>

namespace strata {{

// What the table says of an operator; a field is empty where it says nothing of the kind. Views into constant data.
struct OpInfo {{
{members}
  // an argument, or several, and the formula
  std::vector<std::pair<std::string_view, std::string_view>> derivatives;
}};

struct OpInfoField {{
  char letter;
  const char* name;
  std::string_view OpInfo::*field;
  std::string_view words;  // the record has a letter for one of these; else its text
}};
inline constexpr OpInfoField op_info_fields[] = {{
{rows}
}};
inline constexpr char kDerivativeField = '{DERIVATIVE}';

}}  // namespace strata
""")
