"""Autograd nodes and kernels, and the bookkeeping of in-place and view operators."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import expr, formula
from .emit import HEADER, Output
from .formula_expr import FACTS, LIST_FACTS, Scope
from .formula_table import Table, result_type
from .formula_types import Value, passed, stored
from .model import Definition, Entry, derivative_name, pointwise_formula
from .ops_cpp import call_args, includes
from .schema import Arg, Schema, safe


@dataclass
class Formula:
    args: list[str]  # the arguments whose gradients it makes
    code: formula.Code
    guard: str = ""  # a condition without which there is no gradient


@dataclass
class Fact:
    """What a node keeps of a tensor in place of it."""

    name: str
    type: str
    save: str  # the statement that keeps it; of a tensor that is kept too, the value that is read from it
    made: bool = False  # of a result
    read: bool = False  # from a tensor that is kept too


@dataclass
class Plan:
    """What a node keeps and computes."""

    formulas: list[Formula]
    tensors: list[Arg] = field(default_factory=list)  # saved inputs
    lists: list[Arg] = field(default_factory=list)
    plain: list[Arg] = field(default_factory=list)
    results: list[tuple[str, int]] = field(default_factory=list)  # (name, index)
    facts: list[Fact] = field(default_factory=list)


def census(entries: list[Entry], table: Table) -> list[tuple[str, set[str]]]:
    """Every derivative of the table, and of what kinds the functions are that it calls."""
    return [(f"{e.schema.full}: {key}", {f.kind for f in table.called(made)}) for e in entries if e.grad and not e.derived
            for key, made in compiled(e, table).items()]


def differentiable(e: Entry) -> list[Arg]:
    wanted = {a for key in e.grad for a in (p.strip() for p in key.split(","))}
    return [a for a in e.schema.args if a.name in wanted]


def result_names(e: Entry) -> list[str]:
    if len(e.schema.returns) == 1:
        return ["output"] if any(a.name == "result" for a in e.schema.args) else ["result"]
    return [r.name or f"result{i}" for i, r in enumerate(e.schema.returns)]


def scalar_text(e: Entry, arg: str, text: str) -> str | None:
    """The formula over tensors that calls the generated kernel of a scalar expression."""
    scalar = pointwise_formula(e, text)
    if scalar is None or scalar in ("grad", "-grad"):
        return scalar
    used = expr.used_names(scalar)
    order = [n for n in ["grad", *(a.name for a in e.schema.args), "result"] if n in used]
    return f"{derivative_name(e.schema, arg)}({', '.join(order)})"


def positions(e: Entry) -> dict[str, str]:
    """Where the edges of each differentiable argument begin."""
    found, offset = {}, "0"
    for a in differentiable(e):
        found[a.name] = offset
        offset = f"{offset} + {'count_' + a.name if a.is_tensors else '1'}"
    return found


def scope_of(e: Entry, args: list[str]) -> Scope:
    """The names of a formula of `args`: operands, results, `grad` or `grads`, and of several arguments `wanted`."""
    results = result_names(e)
    names = {"grad_" if a.name == "grad" else a.name: Value(field_name(e, a), a.key) for a in e.schema.args}
    for name, r in zip(results, e.schema.returns, strict=True):
        if r.type == "Tensor":
            names.setdefault(name, Value(name, "Tensor"))
    saved = {n for n, v in names.items() if v.type.startswith("Tensor")}
    single = len(results) == 1 and e.schema.returns[0].type == "Tensor"
    if e.schema.returns[0].type == "Tensor":
        names["grad"] = Value("grad" if single else "grads[0]", "Tensor")
    wanted = {a: f"needs({positions(e)[a]})" for a in args} if len(args) > 1 else {}
    # Results without a gradient are no outputs of the node.
    outputs = [n for n in results if n not in e.row.constant_outputs]
    return Scope(names, saved, [] if single else outputs, wanted)


def compiled(e: Entry, table: Table) -> dict[str, formula.Code]:
    """The formulas of an entry as C++, by argument."""
    found = {}
    for key, text in e.grad.items():
        args = [a.strip() for a in key.split(",")]
        diff = [a for a in e.schema.args if a.name in args]
        types = ["Tensor[]" if a.is_tensors else "Tensor?" for a in diff]
        want = types[0] if len(args) == 1 else f"({', '.join(types)})"
        text = scalar_text(e, args[0], text) or text.removeprefix("tensors:").strip()
        found[key] = table.compile(text, scope_of(e, args), want, f"{e.source}: grad of {key}")
    return found


def plan(e: Entry, table: Table) -> Plan:
    p = Plan([])
    results = result_names(e)
    codes = compiled(e, table)
    read = any(table.reads(table.called(made)) for made in codes.values())
    table.check_reads(e, {"gradient"} if read else set(), e.reads & {"gradient"}, "derivative")
    uses = {name for made in codes.values() for name in made.uses}
    facts: dict[str, Fact] = {}
    arguments = {a.name: a for a in e.schema.args}
    single = len(results) == 1
    for key, made in codes.items():
        guard = "grads[0].defined()" if "grad" in made.uses and not single else ""
        p.formulas.append(Formula([a.strip() for a in key.split(",")], made, guard))
        for fname, (name, attr) in made.facts.items():
            a = arguments.get("grad" if name == "grad_" else name)
            of = field_name(e, a) if a else "made" if single else f"std::get<{results.index(name)}>(made)"
            if a and a.is_tensors:
                type_, maker = LIST_FACTS[attr]
                save = f"node->{fname} = {maker}({of});"
            else:
                type_, method = ("bool", "defined") if attr == "defined" else FACTS[attr]
                if name in uses and attr not in ("strides", "storage_offset"):  # which the copy for an in-place form changes
                    of = field_name(e, a) if a else name
                    save = f"{of}.{method}()"
                    if attr != "defined" and not (a and a.type == "Tensor"):  # it may be undefined
                        save = f"{of}.defined() ? {save} : decltype({save}){{}}"
                    facts[fname] = Fact(fname, "const auto", save, read=True)
                    continue
                save = f"node->{fname} = {of}.{method}();"
                if a and a.type == "Tensor?" and attr != "defined":
                    save = f"if ({of}.defined()) {save}"
            facts[fname] = Fact(fname, stored(type_), save, a is None)
    p.facts = list(facts.values())
    for a in e.schema.args:
        if ("grad_" if a.name == "grad" else a.name) not in uses:
            continue
        (p.tensors if a.is_tensor else p.lists if a.is_tensors else p.plain).append(a)
    p.results = [(n, i) for i, n in enumerate(results) if n in uses and n not in arguments]
    return p


def field_name(e: Entry, a: Arg) -> str:
    return "grad_" if a.name == "grad" else safe(a.name)


def readers(e: Entry, p: Plan, name: str) -> list[str] | None:
    """Where the edges of the arguments lie whose gradients read a saved tensor's values; None where these are all that there are, or
    lists are among them."""
    diff = differentiable(e)
    found = {a for f in p.formulas if name in f.code.uses for a in f.args}
    if found == {a.name for a in diff} or any(a.is_tensors for a in diff):
        return None
    return [positions(e)[a.name] for a in diff if a.name in found]


def save_text(e: Entry, p: Plan, name: str, tensor: str, is_output: str, value: str = "") -> str:
    """The statement that saves a tensor, or `value` in its place: where a gradient will read it, else what tells of it alone."""
    field = safe(name)
    save = f"node->saved_{field}.save({value or tensor}, {is_output});"
    places = readers(e, p, name)
    if places is None:
        return save
    told = any(fact.read and fact.save.startswith(f"{field}.") for fact in p.facts)
    other = f" else node->saved_{field}.save_geometry({tensor});" if told else ""
    return f"if ({' || '.join(f'node->edges[{at}].valid()' for at in places)}) {save}{other}"


def node_class(e: Entry, p: Plan, name: str) -> str:
    count = len(e.schema.returns)
    diff = differentiable(e)
    lines = [f"// {e.source}", f"struct {name}_{e.schema.ident} final : Node {{",
             f'  std::string name() const override {{ return "{name}"; }}']
    saved = []
    for a in p.tensors:
        lines.append(f"  SavedTensor saved_{field_name(e, a)};")
        saved.append(f'visit(context, "{a.name}", saved_{field_name(e, a)});')
    for a in p.lists:
        lines.append(f"  std::vector<SavedTensor> saved_{safe(a.name)};")
        saved.append(f'for (SavedTensor& t : saved_{safe(a.name)}) visit(context, "{a.name}[]", t);')
    for n, _ in p.results:
        lines.append(f"  SavedTensor saved_{n};")
        saved.append(f'visit(context, "{n}", saved_{n});')
    for a in p.plain:
        lines.append(f"  {a.stored} {safe(a.name)};")
    lines += [f"  {fact.type} {fact.name}{{}};" for fact in p.facts if not fact.read]
    lists = [a for a in diff if a.is_tensors]
    for a in lists:
        lines.append(f"  size_t count_{a.name} = 0;")
    if saved:
        lines.append("  void each_saved(void* context, SavedVisitor visit) override {\n    " + "\n    ".join(saved) + "\n  }")
    lines.append("  Grads apply(Grads&& grads) override {")
    lines.append("    Grads out(edges.size());")
    if count == 1 and e.schema.returns[0].type == "Tensor":
        lines.append("    const Tensor& grad = grads[0];\n    if (!grad.defined()) return out;")
    else:
        lines.append("    bool any = false;\n    for (const Tensor& g : grads) any |= g.defined();\n    if (!any) return out;")
    position = positions(e)

    def asked(name: str) -> str:
        places = readers(e, p, name)
        return "" if places is None else ", " + " || ".join(f"needs({at})" for at in places)

    for a in p.tensors:
        n = field_name(e, a)
        lines.append(f"    Tensor {n} = saved_{n}.unpack(this{asked('grad_' if a.name == 'grad' else a.name)});")
    for a in p.lists:
        lines.append(f"    std::vector<Tensor> {safe(a.name)};\n    for (SavedTensor& t : saved_{safe(a.name)}) "
                     f"{safe(a.name)}.push_back(t.unpack(this));")
    for n, _ in p.results:
        lines.append(f"    Tensor {n} = saved_{n}.unpack(this{asked(n)});")
    lines += [f"    {fact.type} {fact.name} = {fact.save};" for fact in p.facts if fact.read]
    for f in p.formulas:
        guard = f" && {f.guard}" if f.guard else ""
        if len(f.args) == 1:
            a = next(x for x in diff if x.name == f.args[0])
            at = position[a.name]
            if a.is_tensors:
                lines.append(f"    {{\n      std::vector<Tensor> list = {f.code.value('      ')};\n      for (size_t i = 0; i < list.size(); ++i) "
                             f"out[{at} + i] = list[i];\n    }}")
            else:
                lines.append(f"    if (needs({at}){guard}) out[{at}] = {f.code.value('    ')};")
        else:
            test = " || ".join(f"needs({position[a]})" for a in f.args)
            names = ", ".join(f"d{i}" for i in range(len(f.args)))
            lines.append(f"    if (({test}){guard}) {{\n      auto [{names}] = {f.code.value('      ')};")
            for i, a in enumerate(f.args):
                lines.append(f"      out[{position[a]}] = d{i};")
            lines.append("    }")
    lines.append("    return out;\n  }\n};")
    return "\n".join(lines)


def save_inputs(e: Entry, p: Plan, inplace: bool) -> list[str]:
    lines = []
    for a in p.tensors:
        value = safe(a.name)
        if inplace and a.name == "self":
            value = "ops::clone(self)"
        lines.append(save_text(e, p, "grad_" if a.name == "grad" else a.name, safe(a.name), "false", value))
    for a in p.lists:
        lines.append(f"for (const Tensor& t : {safe(a.name)}) node->saved_{safe(a.name)}.emplace_back(t, false);")
    for a in p.plain:
        n = safe(a.name)
        if a.key == "int[]":
            lines.append(f"node->{n} = DimVec({n});")
        elif a.key == "int[]?":
            lines.append(f"if ({n}) node->{n} = DimVec(*{n});")
        elif a.key == "float[]":
            lines.append(f"node->{n} = {n}.vec();")
        elif a.key == "str":
            lines.append(f"node->{n} = std::string({n});")
        elif a.key == "str?":
            lines.append(f"if ({n}) node->{n} = std::string(*{n});")
        else:
            lines.append(f"node->{n} = {n};")
    return lines


def kernel(e: Entry, p: Plan, kind: str, s: Schema, cls: str) -> str:
    if kind == "function" and s.args[0].written:
        kind = "inplace"
    diff = differentiable(e)
    single = [safe(a.name) for a in diff if a.is_tensor]
    if kind == "out":
        single += [safe(a.name) for a in s.args if a.written]
    checks = " || ".join([f"needs_grad({n})" for n in single] + [f"needs_grad_list({safe(a.name)})" for a in diff if a.is_tensors])
    below = below_autograd(s)
    lines = [f"{s.cpp_return} a_{s.ident}(Dispatch d, {s.cpp_params()}) {{"]
    if kind == "inplace":
        lines.append(f'  check_inplace(self, "{s.name}");')
    lines += [f'  refuse_gradient("{e.schema.name}", "{a.name}", {safe(a.name)});' for a in left_out(e)]
    lines.append(f"  if (!({checks})) return {below};")
    if kind == "out":
        lines.append(f'  refuse_out("{s.name}");\n}}')
        return "\n".join(lines)
    lines.append(f"  {cls}* node = new {cls};\n  Ref<Node> owner(node);")
    for a in diff:
        if a.is_tensors:
            lines.append(f"  node->count_{a.name} = {safe(a.name)}.size();\n  for (const Tensor& t : {safe(a.name)}) node->add_edge(t);")
        elif kind == "inplace" and safe(a.name) == "self":
            lines.append("  add_written_edge(*node, self);")
        else:
            lines.append(f"  node->add_edge({safe(a.name)});")
    # A number that PyTorch wraps into a tensor has an edge there; what hooks of the node see counts it.
    lines += ["  node->add_edge(Tensor());"] * ((e.row.node_edges or len(diff)) - len(diff))
    lines += ["  " + x for x in save_inputs(e, p, kind == "inplace")]
    lines += [f"  {fact.save}" for fact in p.facts if not fact.made and not fact.read]
    lines.append(f"  {s.cpp_return} made = {below};")
    if kind == "inplace":
        lines.append("  rebase_history(self, owner);")
        for n, _ in p.results:
            lines.append("  " + save_text(e, p, n, "self", "true"))
        lines += [f"  {fact.save}" for fact in p.facts if fact.made]
        lines.append("  return self;\n}")
        return "\n".join(lines)
    lines += [f"  {fact.save}" for fact in p.facts if fact.made]
    count = len(s.returns)
    if count == 1 and s.returns[0].type == "Tensor[]":
        lines.append("  for (Tensor& t : made) set_history(t, owner);")
    elif count == 1:
        lines.append("  set_history(made, owner);")
    else:
        for i, r in enumerate(s.returns):
            if r.type == "Tensor" and result_names(e)[i] not in e.row.constant_outputs:
                lines.append(f"  set_history(std::get<{i}>(made), owner);")
    for n, i in p.results:
        value = "made" if count == 1 else f"std::get<{i}>(made)"
        recorded = str(n not in e.row.constant_outputs).lower()
        lines.append("  " + save_text(e, p, n, value, recorded))
    lines.append("  return made;\n}")
    return "\n".join(lines)


def below_autograd(s: Schema) -> str:
    """The call of what lies below an operator's autograd kernel."""
    return f"TypedOp<{s.cpp_sig}>::below_autograd({', '.join(filter(None, [f'op::{s.ident}', 'd', call_args(s)]))})"


def left_out(e: Entry) -> list[Arg]:
    """Tensors whose values the result depends on, without a formula: their gradient would be missing without a word."""
    if e.derived:  # their formulas are complete: what is missing is zero
        return []
    known = {a.name for a in differentiable(e)} | set(e.row.shape_only)
    return [a for a in e.schema.args if a.is_tensor and not a.written and a.name not in known and e.row.fixed.get(a.name) != "bool"]


def underived(e: Entry, kind: str, s: Schema) -> str | None:
    """The autograd kernel of an operator without a derivative: of one that writes, and of one marked `underived`. In place,
    what is no function of its inputs to derivatives (a comparison) gives them zeros; the others raise in backward."""
    written = [a for a in s.args if a.written]
    raises = e.row.underived or kind == "function"
    if e.row.refuses_grad or (not written and not e.row.underived):
        return None
    read = [a for a in s.args if (a.is_tensor or a.is_tensors) and not a.written]
    lists = {name: f"{{{name}_, {len(args)}}}" if args else "{}" for name, args in (("written", written), ("read", read))}
    call, make = below_autograd(s), ("make_underived_node", f"{s.ns}::{s.name}") if raises else ("make_constant_node", e.node)
    lines = [f"{s.cpp_return} a_{s.ident}(Dispatch d, {s.cpp_params()}) {{"]
    lines += [f"  const TensorList {name}_[] = {{{', '.join(safe(a.name) for a in args)}}};" for name, args in (("written", written), ("read", read)) if args]
    if not written:
        results = ["made"] if len(s.returns) == 1 else [f"std::get<{i}>(made)" for i in range(len(s.returns))]
        return "\n".join([*lines, f"  if (!needs_grad_lists({lists['read']})) return {call};", f'  Ref<Node> node = {make[0]}("{make[1]}");',
                          f"  add_edges(*node, {lists['read']});", f"  {s.cpp_return} made = {call};",
                          *[f"  set_history({r}, node);" for r in results], "  return made;\n}"])
    needs = " && ".join(f"!needs_grad_lists({x})" for x in lists.values() if x != "{}")
    lines += [f'  check_inplace_lists({lists["written"]}, "{s.name}");', f"  if ({needs}) return {call};",
              f'  const RecordedWrites writes({make[0]}, "{make[1]}", {lists["written"]}, {lists["read"]});',
              f"  {call};" if s.cpp_return == "void" else f"  {s.cpp_return} made = {call};", "  writes.finish();"]
    return "\n".join([*lines, *([] if s.cpp_return == "void" else ["  return made;"]), "}"])


def out_guard(e: Entry, s: Schema) -> str:
    """The autograd kernel of an out= form without a derivative of its own: a composite's parts look at what is read, this one
    at what is written."""
    args = ", ".join([f"op::{s.ident}", "d.below(Key::Autograd)", call_args(s)])
    checks = " || ".join(f"needs_grad{'_list' if a.is_tensors else ''}({safe(a.name)})" for a in s.args if a.written)
    return (f"{s.cpp_return} a_{s.ident}(Dispatch d, {s.cpp_params()}) {{\n  if ({checks}) refuse_out(\"{s.name}\");\n"
            f"  return TypedOp<{s.cpp_sig}>::redispatch({args});\n}}")


def bookkeeping(e: Entry, kind: str, s: Schema) -> str | None:
    """The InplaceOrView kernel of an operator that writes or that makes views which derivatives follow."""
    args = ", ".join([f"op::{s.ident}", "d.below(Key::InplaceOrView)"] + ([call_args(s)] if s.args else []))
    redispatch = f"TypedOp<{s.cpp_sig}>::redispatch({args})"
    head = f"{s.cpp_return} v_{s.ident}(Dispatch d, {s.cpp_params()}) {{\n"
    written = [a for a in s.args if a.written]
    if written and e.kind != "composite":
        head += "".join(f'  {safe(a.name)}.check_writable("{s.full}");\n' if a.is_tensor else
                        f'  for (const Tensor& t : {safe(a.name)}) t.check_writable("{s.full}");\n' for a in written)
        bumps = "".join(f'  {safe(a.name)}.bump_version("{s.full}");\n' if a.is_tensor else
                        f'  for (const Tensor& t : {safe(a.name)}) t.bump_version("{s.full}");\n' for a in written)
        if s.cpp_return == "void":
            return f"{head}  {redispatch};\n{bumps}}}"
        r = "made" if any(a.name == "result" for a in s.args) else "result"
        return f"{head}  {s.cpp_return} {r} = {redispatch};\n{bumps}  return {r};\n}}"
    if e.kind == "view" and kind == "function" and e.grad:
        mark = ("  for (Tensor& t : result) mark_view(t, self);\n" if s.returns[0].type == "Tensor[]" else
                "  mark_view(result, self);\n")
        return f"{head}  {s.cpp_return} result = {redispatch};\n{mark}  return result;\n}}"
    return None


def write_definitions(entries: list[Entry], definitions: list[Definition], table: Table, out: Output) -> None:
    """The table's own formulas, as functions that others call."""
    heads, bodies = [], []
    for d in definitions:
        made = table.definitions[d.schema.name]
        params = ", ".join(f"{passed(a.key)} {safe(a.name)}" for a in d.schema.args)
        head = f"{stored(result_type(d.schema))} {d.schema.name}({params})"
        heads.append(f"{head};")
        bodies.append(f"{head} {{\n{made.body()}\n}}")
    out.write("strata/generated/formulas.h", HEADER + '#pragma once\n#include "core/tensor.h"\n\nnamespace strata::formulas {\n\n' +
              "\n".join(heads) + "\n\n}  // namespace strata::formulas\n")
    out.write("formulas.cpp", HEADER + '#include "grad/formulas/formulas.h"\n#include "strata/generated/kernel_calls.h"\n'
              '#include "strata/generated/kernel_ops.h"\n' + includes(entries, "\n".join(bodies)) +
              "\nnamespace strata::formulas {\n\n" + "\n\n".join(bodies) + "\n\n}  // namespace strata::formulas\n")


def write(entries: list[Entry], definitions: list[Definition], table: Table, out: Output) -> None:
    write_definitions(entries, definitions, table, out)
    by_family: dict[str, list[Entry]] = {}
    for e in entries:
        by_family.setdefault(e.family, []).append(e)
    for family, group in by_family.items():
        body, register = [], []
        for e in group:
            cls = ""
            if e.grad and e.kind != "composite":
                p = plan(e, table)
                cls = f"{e.node}_{e.schema.ident}"
                body.append(node_class(e, p, e.node))
            for kind, s in e.operators():
                guard = not cls and kind == "out"
                text = out_guard(e, s) if guard else kernel(e, p, kind, s, cls) if cls else \
                    underived(e, kind, s) if e.kind != "composite" else None
                if text:
                    body.append(text)
                    register.append(f"  table_kernel(op::{s.ident}, TableSlot::Autograd, reinterpret_cast<void*>(&a_{s.ident}));")
                if text := bookkeeping(e, kind, s):
                    body.append(text)
                    register.append(f"  table_kernel(op::{s.ident}, TableSlot::InplaceOrView, reinterpret_cast<void*>(&v_{s.ident}));")
        out.write(f"autograd_{family}.cpp", HEADER + '#include "dispatch/call.h"\n#include "grad/engine/constant.h"\n#include "grad/formulas/formulas.h"\n#include "grad/engine/saved_tensor.h"\n'
                  '#include "grad/engine/variable.h"\n' + includes(entries, "\n".join(body + register)) + "\n"
                  "namespace strata::grad_ops {\nusing namespace formulas;\nnamespace {\n\n" + "\n\n".join(body) +
                  "\n\n}  // namespace\n\n" + f"void register_{family}() {{\n" +
                  "\n".join(register) + "\n}\n\n}  // namespace strata::grad_ops\n")

