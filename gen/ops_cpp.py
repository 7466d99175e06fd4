"""C++ functions, methods and handles of every operator."""

from __future__ import annotations

from .emit import HEADER, Output, cstring
from .model import Entry
from .schema import Schema, safe


def call_args(s: Schema) -> str:
    return ", ".join(safe(a.name) for a in s.args)


def cpp_name(kind: str, s: Schema) -> str:
    return s.name + "_out" if kind == "out" else s.name


def write(entries: list[Entry], out: Output) -> None:
    decls, handles, methods = [], [], []
    seen_decl: set[str] = set()
    by_family: dict[str, list[str]] = {}
    for e in entries:
        body = by_family.setdefault(e.family, [])
        for kind, s in e.operators():
            name = cpp_name(kind, s)
            handles.append(f"extern Operator& {s.ident};")
            signature = f"{name}({','.join(a.cpp for a in s.args)})"
            body.append(f"namespace op {{\nOperator& {s.ident} = define_op<{s.cpp_sig}>({cstring(s.text())});  // {e.source}\n}}")
            if signature in seen_decl:
                continue
            seen_decl.add(signature)
            # Two overloads that differ in defaulted arguments only would be ambiguous with defaults.
            defaults = kind != "out" and not any(x.startswith(name + "(") and x != signature and
                                                 ambiguous(x, signature, s) for x in seen_decl)
            decls.append(f"{s.cpp_return} {name}({s.cpp_params(defaults=defaults)});")
            body.append(f"namespace ops {{\n{s.cpp_return} {name}({s.cpp_params()}) {{\n"
                        f"  return TypedOp<{s.cpp_sig}>::call(op::{s.ident}{', ' if s.args else ''}{call_args(s)});\n}}\n}}")
            if e.methods and kind != "out" and "Tensor" == s.args[0].type:
                args = ", ".join(["*this"] + [safe(a.name) for a in s.args[1:]])
                methods.append(f"{s.cpp_return} {name}({s.cpp_params(defaults=defaults, skip_self=True)}) const;")
                body.append(f"{s.cpp_return} Tensor::{name}({s.cpp_params(skip_self=True)}) const {{ return ops::{name}({args}); }}")
    out.write("strata/generated/ops.h", HEADER + '#pragma once\n#include "core/generator.h"\n#include "core/tensor.h"\n\n'
              "namespace strata::ops {\n\n" + "\n".join(decls) + "\n\n}  // namespace strata::ops\n")
    out.write("strata/generated/handles.h", HEADER + '#pragma once\n#include "dispatch/operator.h"\n\n'
              "namespace strata::op {\n\n" + "\n".join(handles) + "\n\n}  // namespace strata::op\n")
    out.write("strata/generated/tensor_methods.inc", HEADER + "\n".join(methods) + "\n")
    for family, body in by_family.items():
        out.write(f"ops_{family}.cpp", HEADER + '#include "dispatch/call.h"\n#include "strata/generated/handles.h"\n'
                  '#include "strata/generated/ops.h"\n\nnamespace strata {\n\n' + "\n".join(body) + "\n\n}  // namespace strata\n")


def ambiguous(other: str, signature: str, s: Schema) -> bool:
    """Whether a shorter overload of the same name equals this one without its defaulted arguments."""
    required = [a.cpp for a in s.args if a.default is None]
    mine = [a.cpp for a in s.args]
    theirs = other[other.index("(") + 1:-1].split(",")
    return theirs == mine[:len(theirs)] and len(theirs) >= len(required)
