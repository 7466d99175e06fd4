"""Python entries: one C function per name and form (function, method), over tables of signatures."""

from __future__ import annotations

from .arg_types import TYPES
from .emit import HEADER, Output, cstring
from .model import Entry
from .ops_cpp import operator_places
from .schema import Arg, Schema, safe


def makes(s: Schema) -> bool:
    """Whether it makes a tensor from none, where the thread's default says."""
    return not any(a.is_tensor or a.is_tensors for a in s.args)


def convert(a: Arg, slot: str, factory: bool = False) -> str:
    kind = TYPES[a.key].kind
    if factory and kind == "DeviceOpt":
        return f"py::to_FactoryDevice({slot})"
    expression = f"py::to_{kind}({slot})"
    if a.default is not None and not (a.default == "None" and kind.endswith(("Opt", "Generator"))):
        given, made = a.cpp_default()[3:], TYPES[a.key].converted
        expression = f"{slot} ? {expression} : " + (f"{made}{given}" if given.startswith("{") else f"{made}({given})")
    return expression


def signature_text(s: Schema, name: str) -> str:
    parts, kw = [], False
    for i, a in enumerate(s.args):
        if a.kwonly and not kw:
            parts.append("*")
            kw = True
        label = "input" if i == 0 and a.name == "self" else a.name
        default = "" if a.default is None else f" = {a.default}"
        parts.append(f"{TYPES[a.key].words} {label}{default}")
    return f"({', '.join(parts)})"


def invoke(e: Entry, kind: str, s: Schema, place: str) -> str:
    lines = [f"PyObject* i_{s.ident}(PyObject* const* s) {{"]
    if not place:
        lines.append(f'  static Operator& op = OperatorTable::instance().get({cstring(s.full)});')
        place = "op"
    many_out = kind == "out" and sum(a.written for a in s.args) > 1
    plain = [a for a in s.args if not (many_out and a.written)]
    for i, a in enumerate(plain):
        kind_name = TYPES[a.key].kind
        type_ = "const Tensor&" if kind_name == "Tensor" and a.default is None else "auto"
        lines.append(f"  {type_} {safe(a.name)}_v = {convert(a, f's[{i}]', makes(s))};")
    if many_out:
        for j, a in enumerate(x for x in s.args if x.written):
            lines.append(f"  Tensor {safe(a.name)}_v = py::out_item(s[{len(plain)}], {j}, {sum(x.written for x in s.args)});")
    args = ", ".join(f"{safe(a.name)}_v" for a in s.args)
    tensors = ", ".join(f"{safe(a.name)}_v" for a in s.args if a.is_tensor or a.is_tensors)
    name = s.name + "_out" if kind == "out" else s.name
    call = f"TypedOp<{s.cpp_sig}>::call({place}{', ' if args else ''}{args})"
    del name
    factory = "factory" in e.row.tags and not many_out and kind != "inplace"
    if factory and kind == "out":
        lines.append("  py::match_out(out_v, dtype_v, device_v);")
    if s.cpp_return == "void":
        lines.append(f"  {call};\n  Py_RETURN_NONE;\n}}")
        return "\n".join(lines)
    lines.append(f"  py::ReleaseLock lock(py::work_of({tensors}));" if tensors else "  py::ReleaseLock lock(false);")
    lines.append(f"  auto r = {call};\n  lock.take();")
    if factory:
        if kind != "out":
            lines.append(f"  if (s[{len(plain) + 2}] && py::to_Bool(s[{len(plain) + 2}])) r = py::pinned(r);")
        lines.append(f"  if (s[{len(plain)}] && py::to_Bool(s[{len(plain)}])) set_requires_grad(r, true);")
    names = [r.name for r in (e.schema if kind == "out" else s).returns]
    if len(s.returns) > 1 and all(names) and kind in ("function", "out"):
        fields = ", ".join(cstring(n) for n in names)
        named = s.name + ("_out" if kind == "out" else "")
        lines.append(f"  static PyTypeObject* type = py::make_struct_type(\"strata.return_types.{named}\", {{{fields}}});")
        lines.append("  return py::wrap_struct(type, std::move(r));\n}")
    else:
        lines.append("  return py::wrap(std::move(r));\n}")
    return "\n".join(lines)


def arg_specs(e: Entry, kind: str, s: Schema) -> str:
    many_out = kind == "out" and sum(a.written for a in s.args) > 1
    parts = []
    for i, a in enumerate(s.args):
        if many_out and a.written:
            continue
        label = "input" if i == 0 and a.name == "self" else a.name
        list_size = a.type[a.type.index("[") + 1:a.type.index("]")] if "[" in a.type else ""
        parts.append(f'{{"{label}", py::ArgKind::{TYPES[a.key].kind}, {str(a.default is not None).lower()}, {str(a.kwonly).lower()}, {str(a.default == "[]").lower()}, {int(list_size or -1)}}}')
    if many_out:
        parts.append('{"out", py::ArgKind::OutTuple, false, true, false, -1}')
    if "factory" in e.row.tags and not many_out and kind != "inplace":
        parts.append('{"requires_grad", py::ArgKind::Bool, true, true, false, -1}')
        parts.append('{"layout", py::ArgKind::Layout, true, true, false, -1}')
        parts.append('{"pin_memory", py::ArgKind::BoolOpt, true, true, false, -1}')
    return "{" + ", ".join(parts) + "}"


def order(item: tuple[Entry, str, Schema]) -> tuple[int, int]:
    """Overloads with tensors are tried before those with numbers, which take a tensor of one element by reading it; out= forms
    last."""
    _, kind, s = item
    scalars = sum(1 for a in s.args if a.type.startswith("Scalar") and not a.kwonly)
    return 100 * (kind == "out") + scalars, sum(1 for a in s.args if a.type.startswith("float"))


def write(entries: list[Entry], out: Output) -> None:
    groups: dict[str, list[tuple[Entry, str, Schema]]] = {}
    for e in entries:
        if e.derived or not e.row.python:
            continue
        for kind, s in e.operators():
            groups.setdefault(s.name, []).append((e, kind, s))
    place = operator_places(entries)
    by_family: dict[str, list[str]] = {}
    for name, items in groups.items():
        by_family.setdefault(items[0][0].family, []).append(name)
    for family, names in by_family.items():
        body, table = [], []
        for name in names:
            items = sorted(groups[name], key=order)
            sigs = []
            for e, kind, s in items:
                # Of another family's array the places change with its operators, of which this file is to know nothing.
                body.append(invoke(e, kind, s, f"*{place[s.ident]}" if e.family == family else ""))
                body.append(f"const py::ArgSpec args_{s.ident}[] = {arg_specs(e, kind, s) if s.args or 'factory' in e.row.tags else '{{}}'};")
                count = arg_specs(e, kind, s).count("py::ArgKind")
                method = e.methods and kind != "out"
                function = e.functions
                sigs.append(f"{{{cstring(signature_text(s, name))}, args_{s.ident}, {count}, {str(function).lower()}, {str(method).lower()}, &i_{s.ident}}}")
            numbers = ", true" if any(e.row.numbers for e, _, _ in items) else ""
            body.append(f"const py::Signature sigs_{name}[] = {{\n  " + ",\n  ".join(sigs) + "};\n"
                        f'const py::Overloads group_{name}{{"{name}", sigs_{name}, {len(sigs)}{numbers}}};\n'
                        f"PyObject* f_{name}(PyObject*, PyObject* const* a, Py_ssize_t n, PyObject* k) {{ return py::call(group_{name}, nullptr, a, n, k); }}\n"
                        f"PyObject* m_{name}(PyObject* self, PyObject* const* a, Py_ssize_t n, PyObject* k) {{ return py::call(group_{name}, self, a, n, k); }}")
            any_function = any(e.functions for e, _, _ in items)
            any_method = any(e.methods and kind != "out" for e, kind, _ in items)
            doc = items[0][0].row.doc
            text = f"{name}{signature_text(items[0][2], name)}\n\n{doc}"
            for called in dict.fromkeys([name, *(a for e, kind, _ in items for a in e.aliases(kind))]):
                table.append(f'{{"{called}", {f"f_{name}" if any_function else "nullptr"}, {f"m_{name}" if any_method else "nullptr"}, {cstring(text)}}},')
        factory = '#include "bind/args/factory.h"\n' if any("to_FactoryDevice" in text for text in body) else ""
        out.write(f"python/py_{family}.cpp", HEADER + '#include "bind/args/args.h"\n' + factory + '#include "dispatch/call.h"\n#include "grad/engine/variable.h"\n'
                  + f"\nnamespace strata {{\n\nextern Operator* operators_{family}[];\n\nnamespace {{\n\n" + "\n".join(body) +
                  f"\n\n}}  // namespace\n\nextern const py::Entry py_entries_{family}[];\nconst py::Entry py_entries_{family}[] = {{\n  " +
                  "\n  ".join(table) + "\n  {nullptr, nullptr, nullptr, nullptr}};\n\n}  // namespace strata\n")
    families = sorted(by_family)
    out.write("python/py_all.cpp", HEADER + '#include "bind/args/args.h"\n\nnamespace strata {\n\n' +
              "\n".join(f"extern const py::Entry py_entries_{f}[];" for f in families) +
              "\n\nnamespace py {\nconst Entry* const all_entries[] = {" + ", ".join(f"py_entries_{f}" for f in families) +
              ", nullptr};\n}  // namespace py\n}  // namespace strata\n")
