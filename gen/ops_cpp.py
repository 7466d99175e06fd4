"""C++ functions, methods and handles of every operator.

One header per family, so that a new operator rebuilds only what uses its family; strata/generated/ops.h has them all.
Methods of Tensor are for programs: the library itself is compiled without them (STRATA_BUILD) and calls ops::.
"""

from __future__ import annotations

import re

from .emit import HEADER, Output, cstring
from .info_cpp import record
from .model import Entry
from .schema import Schema, safe


def call_args(s: Schema) -> str:
    return ", ".join(safe(a.name) for a in s.args)


def cpp_name(kind: str, s: Schema) -> str:
    return s.name + "_out" if kind == "out" else s.name


def homes(entries: list[Entry], made: dict = {}) -> tuple[dict[str, str], dict[str, str]]:  # noqa: B006 - computed once
    """The family whose header declares a C++ function (all its overloads), and that of a handle."""
    if made.get("of") is not entries:
        functions: dict[str, str] = {}
        handles: dict[str, str] = {}
        for e in entries:
            for kind, s in e.operators():
                functions.setdefault(cpp_name(kind, s), e.family)
                handles[s.ident] = e.family
        made.update(of=entries, found=(functions, handles))
    return made["found"]


def includes(entries: list[Entry], text: str) -> str:
    """The generated headers that a text needs for the operators which it names."""
    functions, handles = homes(entries)
    wanted = {f"handles/{handles[n]}" for n in re.findall(r"(?<![\w:])op::(\w+)", text) if n in handles}
    wanted |= {f"ops/{functions[n]}" for n in re.findall(r"(?<![\w:])ops::(\w+)", text) if n in functions}
    return "".join(f'#include "strata/generated/{w}.h"\n' for w in sorted(wanted))


def operator_places(entries: list[Entry]) -> dict[str, str]:
    """Of every operator, by its identifier: where its family's array, which callers outside of the core read, has it."""
    families: dict[str, int] = {}
    places = {}
    for ident, family in homes(entries)[1].items():
        at = families.get(family, 0)
        families[family] = at + 1
        places[ident] = f"operators_{family}[{at}]"
    return places


def header(out: Output, name: str, first: str, namespace: str, lines: list[str]) -> None:
    out.write(f"strata/generated/{name}.h", f"{HEADER}#pragma once\n{first}\nnamespace strata::{namespace} {{\n\n" +
              "\n".join(lines) + f"\n\n}}  // namespace strata::{namespace}\n")


def write(entries: list[Entry], out: Output) -> None:
    functions, place = homes(entries)[0], operator_places(entries)
    decls: dict[str, list[str]] = {}
    handles: dict[str, list[str]] = {}
    methods, inline = [], []
    seen_decl: set[str] = set()
    by_family: dict[str, list[str]] = {}
    for e in entries:
        body = by_family.setdefault(e.family, [])
        body.append(f"constexpr const char* said_{e.schema.ident} =\n    {record(e)};")
        for kind, s in e.operators():
            name = cpp_name(kind, s)
            handles.setdefault(e.family, []).append(f"extern Operator& {s.ident};")
            signature = f"{name}({','.join(a.cpp for a in s.args)})"
            made = f"define_op<{s.cpp_sig}>({cstring(s.text())}, said_{e.schema.ident})"
            body.append(f"namespace op {{\nOperator& {s.ident} = *({place[s.ident]} = &{made});\n}}")
            if signature in seen_decl:
                continue
            seen_decl.add(signature)
            # Two overloads that differ in defaulted arguments only would be ambiguous with defaults.
            defaults = kind != "out" and not any(x.startswith(name + "(") and x != signature and
                                                 ambiguous(x, signature, s) for x in seen_decl)
            decls.setdefault(functions[name], []).append(f"{s.cpp_return} {name}({s.cpp_params(defaults=defaults)});")
            body.append(f"namespace ops {{\n{s.cpp_return} {name}({s.cpp_params()}) {{\n"
                        f"  return TypedOp<{s.cpp_sig}>::call(op::{s.ident}{', ' if s.args else ''}{call_args(s)});\n}}\n}}")
            if e.methods and kind != "out" and "Tensor" == s.args[0].type:
                args = ", ".join(["*this"] + [safe(a.name) for a in s.args[1:]])
                methods.append(f"{s.cpp_return} {name}({s.cpp_params(defaults=defaults, skip_self=True)}) const;")
                inline.append(f"inline {s.cpp_return} Tensor::{name}({s.cpp_params(skip_self=True)}) const {{ return ops::{name}({args}); }}")
    for family in by_family:
        made = [f"    &define_twin({cstring(e.twin_schema().text())}, op::{e.schema.ident})," for e in entries if e.family == family and e.makes_twin]
        if made:
            by_family[family].append("namespace {\n// Functional twins.\n[[maybe_unused]] const Operator* const twins[] = {\n" +
                                     "\n".join(made) + "\n};\n}")
    types = '#include "core/generator.h"\n#include "core/tensor.h"\n'
    for family, lines in decls.items():
        header(out, f"ops/{family}", types, "ops", lines)
    for family, lines in handles.items():
        # Hidden: each would cost the loader a search at every start. Others have the family's array, or ask for a name.
        lines = ["#pragma GCC visibility push(hidden)", *lines, "#pragma GCC visibility pop"]
        header(out, f"handles/{family}", '#include "dispatch/operator.h"\n', "op", lines)
    every = "".join(f'#include "strata/generated/ops/{f}.h"\n' for f in sorted(decls))
    out.write("strata/generated/ops.h", HEADER + "// All operators as C++ functions, and the methods of Tensor.\n#pragma once\n" + every +
              '#ifndef STRATA_BUILD\n#include "strata/generated/tensor_methods.h"\n#endif\n')
    out.write("strata/generated/tensor_methods.inc", HEADER + "\n".join(methods) + "\n")
    out.write("strata/generated/tensor_methods.h", HEADER + "#pragma once\n" + every + "\nnamespace strata {\n\n" +
              "\n".join(inline) + "\n\n}  // namespace strata\n")
    for family, body in by_family.items():
        own = "".join(f'#include "strata/generated/{kind}/{family}.h"\n' for kind, has in (("handles", handles), ("ops", decls))
                      if family in has)
        out.write(f"ops_{family}.cpp", HEADER + '#include "dispatch/call.h"\n' + own + "\nnamespace strata {\n\n" +
                  f"Operator* operators_{family}[{len(handles[family])}];\n" + "\n".join(body) + "\n\n}  // namespace strata\n")


def ambiguous(other: str, signature: str, s: Schema) -> bool:
    """Whether a shorter overload of the same name equals this one without its defaulted arguments."""
    required = [a.cpp for a in s.args if a.default is None]
    mine = [a.cpp for a in s.args]
    theirs = other[other.index("(") + 1:-1].split(",")
    return theirs == mine[:len(theirs)] and len(theirs) >= len(required)
