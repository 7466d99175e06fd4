"""What entries over an index space say beside their text: operands with their dims, numbers, the shape rule, the order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .schema import split_top

if TYPE_CHECKING:
    from .model import Entry


@dataclass(frozen=True)
class SpaceOperand:
    """An operand of a space kernel: `index[p..,i]:int64`."""

    name: str
    dims: tuple[str, ...]
    dtype: str  # "" where it is the kernel's

    @property
    def fixed_dims(self) -> int:
        """How many dims it has; -1 where a group says."""
        return -1 if any(d.endswith("..") for d in self.dims) else len(self.dims)


def space_operands(text: str) -> list[SpaceOperand]:
    found = []
    for word in text.split():
        match = re.fullmatch(r"(\w+)(?:\[([\w.,]*)\])?(?::(\w+))?", word)
        if not match:
            raise ValueError(f"cannot read the operand {word!r}; write name[dim,dim..]:dtype")
        found.append(SpaceOperand(match[1], tuple(d for d in (match[2] or "").split(",") if d), match[3] or ""))
    return found


def space_scalars(e: Entry) -> list[tuple[str, str]]:
    """Scalars of a space kernel and the dtype of each: "" for that of the elements, "widest"; lists of a group are int64."""
    return [(o.name, "int64" if o.dims else o.dtype) for o in space_operands(e.raw.get("scalars", ""))]


def checked_index(e: Entry) -> tuple[str | None, bool]:
    """The input whose values are checked to be places, and whether negative ones count from the end."""
    names = [o.name for o in space_operands(e.raw.get("inputs", ""))]
    found = [(m[2], m[1] == "wrapped") for m in re.finditer(r"\b(checked|wrapped)\((\w+)\)", e.text)]
    if len(found) != len(re.findall(r"\b(?:checked|wrapped)\(", e.text)) or any(n not in names for n, _ in found) or len(found) > 1:
        raise ValueError("checked and wrapped stand once, around the name of an input")
    return found[0] if found else (None, False)


def rule_call(e: Entry) -> tuple[str, list[str]]:
    """The name and the arguments of `shape: gather(self, dim, index)`: arguments of the operator, numbers and strings."""
    key = "allocate" if e.kind == "allocate" else "shape"
    match = re.fullmatch(r"(\w+)\((.*)\)", str(e.raw[key]).strip())
    if not match:
        raise ValueError(f"{key} is the call of a rule of core/shape, got {e.raw[key]!r}")
    args = split_top(match[2])
    known = {a.name for a in e.schema.args}
    for a in args:
        if a not in known and not re.fullmatch(r"-?\d+|true|false|\"[^\"]*\"", a):
            raise ValueError(f"{key} names {a}, which is no argument")
    return match[1], args


def check_space(e: Entry) -> None:
    """Raises where the keys of a space entry do not fit together."""
    alone = e.writes_self and not e.raw.get("inputs")  # its sizes are those of self
    for key in ("shape", "outputs", "dtypes"):
        if (key in e.raw) == (alone and key == "shape"):
            raise ValueError(f"an entry with space has {key}, but one that writes self and reads no tensor no shape")
    tensors = {a.name for a in e.schema.args if a.is_tensor}
    for o in space_operands(e.raw.get("inputs", "")):
        if o.name not in tensors:
            raise ValueError(f"inputs names {o.name}, which is no tensor argument")
    if len(space_operands(e.raw["outputs"])) != len(e.schema.returns):
        raise ValueError("outputs are not as many as results")
    check_order(e.raw)
    index, _ = checked_index(e)
    if (index is not None) != ("outside" in e.raw):
        raise ValueError("outside is the error of an index that is checked or wrapped")
    if e.scatters != ("starts" in e.raw):
        raise ValueError("starts says what the result of a text that scatters (sum_into, put_into ...) begins as")
    if str(e.raw.get("starts", 0)) not in ("0", *tensors):
        raise ValueError(f"starts is a tensor argument or 0, got {e.raw['starts']}")
    strides_of(e)
    if not alone:
        rule_call(e)
    space_scalars(e)


def strides_of(e: Entry) -> str:
    """Those of the results: a word, or the name of an argument, a memory format."""
    formats = [a.name for a in e.schema.args if a.type == "MemoryFormat?"]
    if (found := e.raw.get("strides", "contiguous")) not in ("contiguous", "preserve", "suggested", *formats):
        raise ValueError("strides are contiguous, preserve or suggested, or as a memory format among the arguments says")
    return found


def into_of(text: str) -> str | None:
    """sum, prod, max, min or put, where the text's last line says what changes places of the result."""
    found = re.match(r"(sum|prod|max|min|put)_into\(", text.strip().splitlines()[-1])
    return found and found[1]


def check_order(raw: dict) -> None:
    into = into_of(str(raw.get("space", "-")))
    if into:
        if raw.get("order", "chains") not in ("chains", "sequence") or (into in ("sum", "prod")) != ("order" in raw):
            raise ValueError("sum_into and prod_into have an `order`, chains or sequence; what else changes places has none")
    else:
        words = ("chains",) if "sum_products(" in str(raw.get("space", "")) else ("tree", "sequence")
        if raw.get("order", words[0]) not in words or ("over" in raw) != ("order" in raw):
            raise ValueError("what has `over` has an `order`, tree or sequence, of sum_products chains, and nothing else has one")
