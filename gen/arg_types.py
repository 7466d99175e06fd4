"""Types of arguments: ops/types.yaml, and what C++ needs of it (the schema parser's names, the kinds of Python's conversions)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .emit import HEADER, Output
from .rows import key, read, typed


@dataclass(frozen=True)
class ArgType:
    said: frozenset[str]
    type: str = key("as schemas write it, without sizes of lists")
    parameter: str = key("the C++ type of a parameter")
    value: str = key("the C++ type that keeps it, and that of a result")
    stub: str = key("in type stubs, of a parameter")
    kind: str = key("the conversion from Python, py::to_<kind>", "")
    words: str = key("in errors and signatures of calls from Python", "")
    holder: str = key("what the conversion gives, where that is not the parameter's type", "")

    @property
    def result(self) -> str:
        """In type stubs, of a result."""
        return self.stub.replace("Sequence[", "tuple[").replace("]", ", ...]")

    @property
    def converted(self) -> str:
        """The C++ type that the conversion from Python gives."""
        return self.holder or self.parameter.removeprefix("const ").removesuffix("&")


PATH = Path(__file__).resolve().parent.parent / "ops/types.yaml"


def load() -> dict[str, ArgType]:
    found = {}
    for raw, line in read(PATH):
        try:
            row = typed(ArgType, raw)
        except ValueError as error:
            raise SystemExit(f"ops/{PATH.name}:{line}: {raw.get('type')}: {error}") from error
        if row.type in found:
            raise SystemExit(f"ops/{PATH.name}:{line}: the type {row.type} stands there twice")
        found[row.type] = row
    return found


TYPES = load()
# Of the C++ schema parser: the words of types, and what they are called in C++. Only the parser knows SymInt and Layout.
BASES = {"Tensor": "Tensor", "int": "Int", "SymInt": "SymInt", "float": "Float", "bool": "Bool", "Scalar": "Scalar", "str": "Str",
         "ScalarType": "DType", "Device": "Device", "MemoryFormat": "MemoryFormat", "Generator": "Generator", "Layout": "Layout"}
# Kinds of Python's conversions that no type has: several out= tensors, what is taken and not looked at, and the one layout.
OTHER_KINDS = {"OutTuple": "tuple of Tensors", "Ignored": "anything",
               "Layout": "strata.strided (sparse tensors are made by sparse_coo_tensor and to_sparse)"}


def kind_of(base: str, list_: str) -> str:
    """The conversion of a type of the C++ parser where a value is given."""
    name = {"SymInt": "int"}.get(base, base)
    found = next((TYPES[t].kind for t in (name + list_, name, name + "?") if t in TYPES and TYPES[t].kind), "Ignored")
    return f"ArgKind::{found}"


def write(out: Output) -> None:
    names = "\n".join(f'    {{"{name}", ArgType::{cpp}}},' for name, cpp in BASES.items())
    out.write("strata/generated/arg_types.h", HEADER + f"""#pragma once
#include <cstdint>

namespace strata {{

enum class ArgType : uint8_t {{ {", ".join(BASES.values())} }};

struct ArgTypeName {{
  const char* name;  // as schemas write it
  ArgType type;
}};
inline constexpr ArgTypeName arg_type_names[] = {{
{names}
}};

}}  // namespace strata
""")
    kinds = {t.kind: t for t in TYPES.values() if t.kind}
    words = ",\n".join(f'    "{w}"' for w in [*(t.words for t in kinds.values()), *OTHER_KINDS.values()])
    optional = ", ".join(["false" if not t.type.endswith("?") else "true" for t in kinds.values()] + ["false", "true"])
    of = ",\n".join("    {" + ", ".join(kind_of(base, list_) for list_ in ("", "[]", "?[]")) + "}" for base in BASES)
    out.write("strata/generated/arg_kinds.h", HEADER + f"""#pragma once
#include "strata/generated/arg_types.h"

namespace strata::py {{

// The conversions from Python: what a call's argument has to be.
enum class ArgKind : uint8_t {{ {", ".join([*kinds, *OTHER_KINDS])} }};

// By kind: what errors call it, and whether None will do.
inline constexpr const char* arg_kind_words[] = {{
{words}}};
inline constexpr bool arg_kind_optional[] = {{{optional}}};
// By ArgType, of a value that is none, of a list, and of one whose elements may be None: that of a value that is given.
inline constexpr ArgKind arg_kinds[][3] = {{
{of}}};

}}  // namespace strata::py
""")
