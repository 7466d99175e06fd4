"""CPU kernels: descriptions for the kernel printer, and the registration of each operator's kernel with its device."""

from __future__ import annotations

import ast

from . import expr, formula, space_cpp
from .emit import HEADER, Output, cstring
from .formula_table import Table
from .keys import DTYPES
from .model import Entry, Kernel
from .ops_cpp import call_args, includes
from .rows import Operand
from .schema import Schema, safe

PROMOTE = {"common": "Common", "float": "Float", "first": "First", "sum": "Sum", "floating": "Floating"}


def dtype_bits(names: list[str]) -> str:
    return hex(sum(1 << DTYPES.index(n) for n in names))


def joined(operands: tuple[Operand, ...]) -> str:
    return " ".join(map(str, operands))


def describe(e: Entry) -> str:
    """The KernelDesc of an entry."""
    inputs, scalars = e.kernel_operands()
    inputs = inputs.replace(":same", "")
    text = "\n".join(f"{n} = {v}" for n, v in expr.lines(e.text))
    kind = e.kind.capitalize()
    dtypes = [d for d in e.dtypes if d not in ("float16", "bfloat16")] if e.sums_wide else e.dtypes
    return (f'{{"{e.schema.ident}", "{e.family}", KernelKind::{kind}, "{inputs}", "{scalars}", '
            f'"{joined(e.row.outputs)}", {cstring(text)}, {dtype_bits(dtypes)}u, {cstring(e.source)}{space_cpp.order(e.row)}}},')


def describe_kernel(k: Kernel) -> str:
    lie = "" if k.row.lie == "anywhere" else f', "", false, 0, false, RowsLie::{k.row.lie.capitalize()}'
    text = "\n".join(f"{n} = {v}" for n, v in expr.lines(k.text))
    kind = k.kind.capitalize()
    return (f'{{"{k.name}", "{k.family}", KernelKind::{kind}, "{joined(k.inputs)}", "{joined(k.scalars)}", "{joined(k.row.outputs)}", {cstring(text)}, '
            f'{dtype_bits(k.dtypes)}u, {cstring(k.source)}{space_cpp.order(k.row)}{lie}}},')


def info(e: Entry) -> str:
    """The static description that the runner of pointwise or rows kernels reads."""
    inputs = e.kernel_inputs()
    fixed = e.row.fixed
    mask = sum(1 << i for i, a in enumerate(inputs) if a.name in fixed)
    kind = next(iter(fixed.values()), "bool")
    fixed_dtype = {"bool": "Bool", "int64": "I64"}[kind]
    struct = "PointwiseOp" if e.kind == "pointwise" else "RowsOp"
    exact = str(e.row.out_dtype == "exact").lower()
    more = f", {exact}" + (f", {e.unpromoted}u, {e.checked}u, {e.narrow}u" if e.kind == "pointwise" else "")
    return (f'const {struct} info_{e.schema.ident}{{"{e.schema.name}", "{e.schema.ident}", Promote::{PROMOTE[e.promote]}, '
            f"{len(inputs)}, {len(e.kernel_scalars())}, {len(e.row.outputs)}, {mask}u, DType::{fixed_dtype}, ResultStrides::{e.row.result_strides}{more}}};")


def checked(e: Entry) -> str:
    return f"  {e.row.check};\n" if e.row.check else ""


def pointwise_kernels(e: Entry) -> list[tuple[Schema, str]]:
    ident = e.schema.ident
    ins = ", ".join("&" + safe(a.name) for a in e.kernel_inputs())
    scalars = ", ".join(v for _, v in e.kernel_scalars())
    setup = checked(e) + f"  const Tensor* in[] = {{{ins}}};\n"
    if scalars:
        setup += f"  const Scalar scalars[] = {{{scalars}}};\n"
    args = f"info_{ident}, Inputs(in, {len(e.kernel_inputs())}), " + (f"Scalars(scalars, {len(e.kernel_scalars())})" if scalars else "{}")
    found = []
    for kind, s in e.operators():
        if kind == "function":
            body = setup + f"  return pointwise({args});\n"
        elif kind == "inplace":
            body = setup + f"  pointwise_out({args}, self, false);\n  return self;\n"
        else:
            body = setup + f"  pointwise_out({args}, out, true);\n  return out;\n"
        found.append((s, body))
    return found


def rows_kernels(e: Entry) -> list[tuple[Schema, str]]:
    ident = e.schema.ident
    ins = ", ".join("&" + safe(a.name) for a in e.kernel_inputs())
    scalars = ", ".join(v for _, v in e.kernel_scalars())
    names = {a.name for a in e.schema.args}
    setup = checked(e) + f"  const Tensor* in[] = {{{ins}}};\n"
    if scalars:
        setup += f"  const Scalar scalars[] = {{{scalars}}};\n"
    keepdim = "keepdim" if "keepdim" in names else "false"
    dtype = "dtype" if "dtype" in names else "std::nullopt"
    args = (f"info_{ident}, Inputs(in, {len(e.kernel_inputs())}), " + (f"Scalars(scalars, {len(e.kernel_scalars())})" if scalars else "{}") +
            f", row_dims(self, {e.row.dims}), {keepdim}, {dtype}")
    count = len(e.schema.returns)
    found = []
    for kind, s in e.operators():
        if kind == "function" and count == 1:
            body = setup + f"  return rows({args})[0];\n"
        elif kind == "function":
            items = ", ".join(f"std::move(r[{i}])" for i in range(count))
            body = setup + f"  auto r = rows({args});\n  return {{{items}}};\n"
        elif kind == "inplace":
            body = setup + f"  rows_out({args}, {{&self, 1}}, false);\n  return self;\n"
        else:
            outs = [safe(a.name) for a in s.args if a.written]
            body = setup + f"  const Tensor outs[] = {{{', '.join(outs)}}};\n  rows_out({args}, {{outs, {count}}}, true);\n"
            body += f"  return {outs[0]};\n" if count == 1 else f"  return {{{', '.join(outs)}}};\n"
        found.append((s, body))
    return found


def function_kernels(e: Entry, bodies: dict[str, str] | None = None) -> list[tuple[Schema, str]]:
    """Hand-written kernels (cpu), views, composites, and plans, whose bodies are given; out= and in-place forms copy unless a
    function is named, or a plan writes at once."""
    found = []
    for kind, s in e.operators():
        args = call_args(e.schema)
        named = {"inplace": e.row.cpu_inplace, "out": e.row.cpu_out}.get(kind)
        beside = named and kind == "inplace" and e.plan and e.by_hand
        if bodies and kind in bodies:
            body = bodies[kind] + "\n"
        elif kind == "function":
            is_name = e.text.isidentifier() and all(a.name != e.text for a in e.schema.args)
            body = valued(e) + (f"  return {e.text}({args});\n" if is_name else f"  return {e.text};\n")
        elif named and not beside:
            body = f"  {named}({call_args(s)});\n  return " + ("self" if kind == "inplace" else returned(s)) + ";\n"
        else:
            body = f"  if ({on_cpu(e)}) {{\n    {named}({call_args(s)});\n    return self;\n  }}\n" if beside else ""
            body += apart(e, s) if kind == "out" else ""
            body += f"  auto r = ops::{e.schema.name}({args});\n"
            if kind == "inplace" and e.kind == "composite":  # recorded, as its parts are, which may keep self
                tensors = [safe(a.name) for a in e.tensors]
                recorded = " || ".join(f"({n}.defined() && {n}.requires_grad())" for n in tensors)
                body = f"  Tensor before = {recorded} ? ops::clone(self) : self;\n"
                body += f"  auto r = ops::{e.schema.name}({args.replace('self', 'before', 1)});\n"
                body += f'  check_result(self, r, "{s.name}");\n  ops::copy_(self, r);\n  return self;\n'
            elif kind == "inplace":
                body += f'  copy_result(self, r, "{s.name}");\n  return self;\n'
            else:
                body += copied_out(e, s)
        found.append((s, body))
    return found


def valued(e: Entry) -> str:
    """What answers for tensors without values where the size of a result depends on them: the rule, which raises unless the
    arguments say the size."""
    if not (e.row.size and e.row.shape):
        return ""
    asks = " || ".join(f"{safe(a.name)}.is_meta()" if a.type == "Tensor" else f"({safe(a.name)}.defined() && {safe(a.name)}.is_meta())" for a in e.tensors)
    made = [f"new_result({safe(e.tensors[0].name)}, prepared.outputs[{k}], ResultStrides::Contiguous)" for k in range(len(e.schema.returns))]
    given = made[0] if len(made) == 1 else "{" + ", ".join(made) + "}"
    return f"  if ({asks}) {{\n    const auto prepared = {space_cpp.call_of_rule(e)};\n    return {given};\n  }}\n"


def on_cpu(e: Entry) -> str:
    """The condition under which C++ beside a plan runs."""
    return " && ".join(f"by_hand({safe(a.name)})" for a in e.schema.args if a.is_tensor or a.is_tensors) or "by_hand(device)"


def by_hand(e: Entry) -> str:
    """The line that runs the C++ beside a plan on the CPU."""
    return f"  if ({on_cpu(e)}) return {e.by_hand}({call_args(e.schema)});\n" if e.by_hand else ""


def plan_bodies(e: Entry, table: Table) -> dict[str, str]:
    bodies = {"function": by_hand(e) + valued(e) + table.plans[e.schema.ident].body()}
    bodies |= {kind: made.body() for (ident, kind), made in table.direct.items() if ident == e.schema.ident}
    if e.out and "out" not in bodies and formula.writes(ast.parse(e.text), {a.name for a in e.schema.args}):
        s = e.out_schema()
        refuse, copy = out_lines(e, s)
        bodies["out"] = table.plan(e, formula.Given(returned(s), refuse=tuple(refuse), copy=tuple(copy))).body()
    return bodies


def space_kernels(e: Entry) -> list[tuple[Schema, str]]:
    """Printed over an index space; forms without a body of their own copy, as those of functions do."""
    if e.filled:
        return function_kernels(e, {"function": space_cpp.filled_body(e).rstrip("\n")})
    own = {"function": space_cpp.function_body(e), "inplace": space_cpp.inplace_body(e, e.inplace_schema()) if e.inplace else None,
           "out": space_cpp.out_body(e, e.out_schema()) if e.out else None}
    return [(s, own.get(kind) or body) for (kind, _), (s, body) in zip(e.operators(), function_kernels(e), strict=True)]


def allocations(e: Entry) -> list[tuple[Schema, str]]:
    return [(s, space_cpp.allocation_body(e, kind, s)) for kind, s in e.operators()]


def copied_out(e: Entry, s: Schema) -> str:
    """The end of an out= form: what was computed, r, goes to the given tensors."""
    if s.args[-1].is_tensors:
        return f'  copy_to_outs(out, r, {str(e.row.out_dtype == "exact").lower()}, "{s.name}");\n' + noted(e, s)
    refuse, copy = out_lines(e, s)
    return "".join(f"  {line}\n" for line in refuse + copy) + noted(e, s) + f"  return {returned(s)};\n"


def out_lines(e: Entry, s: Schema) -> tuple[list[str], list[str]]:
    """What refuses the given tensors, and what copies r to them."""
    exact = e.row.out_dtype
    outs = [safe(a.name) for a in s.args if a.written]
    values = ["r"] if len(outs) == 1 else [f"std::get<{i}>(r)" for i in range(len(outs))]
    refuse = []
    if exact == "any":  # converted, also to what it does not promote to
        exact, values = "", [f"as_dtype({v}, {o}.dtype())" for o, v in zip(outs, values, strict=True)]
        refuse = [f'check_given({o}, "{s.name}");' for o in outs]
    for o, value in zip(outs, values, strict=True):
        if e.kind == "composite":
            refuse.append(f'check_unrecorded({value}, "{s.name}");')
        if exact:
            condition = exact.removeprefix("exact").strip().removeprefix("if ")
            refuse.append((f"if ({condition}) " if condition else "") + f'check_exact_dtype({o}, {value}.dtype(), "{s.name}");')
        if len(outs) > 1:
            refuse.append(f'check_out({o}, {value}, "{s.name}");')
    return refuse, [f'copy_to_out({o}, {value}, "{s.name}");' for o, value in zip(outs, values, strict=True)]


def apart(e: Entry, s: Schema) -> str:
    """For out= forms that PyTorch refuses to write over their own operands."""
    if not e.row.out_apart:
        return ""
    read = ", ".join("&" + safe(a.name) for a in s.args if a.type == "Tensor" and not a.written)
    return "".join(f'  check_apart("{s.name}", {safe(a.name)}, {{{read}}});\n' for a in s.args if a.written)


def noted(e: Entry, s: Schema) -> str:
    """A composite writes outside of the layer that counts writes."""
    if e.kind != "composite":
        return ""
    return "".join(f'  for (const Tensor& t : {safe(a.name)}) t.bump_version("{s.full}");\n' if a.is_tensors else
                   f'  {safe(a.name)}.bump_version("{s.full}");\n' for a in s.args if a.written)


def returned(s: Schema) -> str:
    outs = [safe(a.name) for a in s.args if a.written]
    return outs[0] if len(outs) == 1 else "{" + ", ".join(outs) + "}"


def write_calls(kernels: list[Kernel], table: Table, out: Output) -> None:
    """The kernels that texts call, as functions."""
    texts = [*table.definitions.values(), *table.plans.values(), *table.direct.values()]
    called = {f.name for made in texts for f in made.calls if f.kind == "kernel"}
    wanted = {name for made in texts for name in made.kernels}
    heads, bodies = [], []
    for k in kernels:
        if k.name not in called or not k.first:
            continue
        if k.draws:
            head, body = draw_call(k, [x for x in kernels if x.name == k.name])
            heads.append(f"{head};")
            bodies.append(f"{head} {{\n{body}}}")
            continue
        tensors, numbers = [o.name for o in k.inputs], [o.name for o in k.scalars]
        params = ", ".join([f"const Tensor& {t}" for t in tensors] + [f"const Scalar& {n}" for n in numbers])
        setup = f"  const Tensor* in_[] = {{{', '.join('&' + t for t in tensors)}}};\n"
        if numbers:
            setup += f"  const Scalar scalars_[] = {{{', '.join(numbers)}}};\n"
        operands = f"kernels::{k.name}, Inputs(in_, {len(tensors)}), " + (f"Scalars(scalars_, {len(numbers)})" if numbers else "{}")
        count = len(k.row.outputs)
        result = "Tensor" if count == 1 else f"std::tuple<{', '.join(['Tensor'] * count)}>"
        if f"{k.name}_into" in wanted:
            head = f"void {k.name}_into(std::initializer_list<const Tensor*> outs_, {params}, std::optional<int64_t> along"
            heads.append(f"{head} = std::nullopt);")
            bodies.append(f"{head}) {{\n{setup}  pointwise_into(kernels::{k.name}, {{outs_.begin(), outs_.size()}}, "
                          f"{operands.partition(', ')[2]}, along);\n}}")
        if f"{k.name}_out" in wanted:
            head = f"void {k.name}_out(const Tensor& out_, bool resize_, {params})"
            heads.append(f"{head};")
            bodies.append(f"{head} {{\n{setup}  pointwise_out({operands}, out_, resize_);\n}}")
        if k.name not in wanted:
            continue
        types = ["std::optional<DType> dtype", "std::optional<DType> stored"]
        if k.kind == "rows":
            call = f"rows({operands}, row_dims({tensors[0]}, dims), keepdim, dtype, stored)"
            params += ", OptIntArrayRef dims, bool keepdim"
        else:
            call = f"pointwise({operands}, dtype, stored, along)"
            types.append("std::optional<int64_t> along")
        if count > 1:
            items = ", ".join(f"std::move(made_[{i}])" for i in range(count))
            body = f"  std::vector<Tensor> made_ = {call};\n  return {{{items}}};"
        else:
            body = f"  return {call}{'[0]' if k.kind == 'rows' else ''};"
        heads.append(f"{result} {k.name}({', '.join([params] + [x + ' = std::nullopt' for x in types])});")
        bodies.append(f"{result} {k.name}({', '.join([params] + types)}) {{\n{setup}{body}\n}}")
    out.write("strata/generated/kernel_calls.h", HEADER + "// The kernels that texts over tensors call, as functions.\n#pragma once\n"
              '#include <initializer_list>\n#include <tuple>\n\n#include "core/generator.h"\n#include "core/tensor.h"\n\nnamespace strata::eager::calls {\n\n' +
              "\n".join(heads) + "\n\n}  // namespace strata::eager::calls\n")
    out.write("kernel_calls.cpp", HEADER + '#include "strata/generated/kernel_calls.h"\n#include "run/random.h"\n#include "strata/generated/kernel_ops.h"\n\n'
              "namespace strata::eager::calls {\n\n" + "\n\n".join(bodies) + "\n\n}  // namespace strata::eager::calls\n")


def draw_call(k: Kernel, rows: list[Kernel]) -> tuple[str, str]:
    """The function that draws into a tensor by a kernel over words of a generator's stream."""
    operands, numbers = k.inputs, k.scalars
    stream = next(o.name for o in operands if o.dtype.startswith("word"))
    tensors = [o for o in operands if o.name != stream]
    params = ["const Tensor& out_", *(f"const {'Generator' if o.name == stream else 'Tensor'}& {o.name}" for o in operands),
              *(f"const Scalar& {n.name}" for n in numbers)]
    every = hex(sum(1 << DTYPES.index(d) for row in rows for d in row.dtypes))
    pairs = hex(sum(1 << DTYPES.index(d) for row in rows for d in row.dtypes if any(o.dtype == "word2" for o in row.inputs)))
    body = f"  static const DrawOp op_{{kernels::{k.name}, {every}u, {pairs}u}};\n"
    each, given = "{}", "{}"
    if tensors:
        body += f"  const DrawOperand each_[] = {{{', '.join(f'{{{o.name}, DType({DTYPES.index(o.dtype)})}}' for o in tensors)}}};\n"
        each = f"{{each_, {len(tensors)}}}"
    if numbers:
        items = ", ".join(f"{{{n.name}, {DTYPES.index(n.dtype) if n.dtype else -1}}}" for n in numbers)
        body += f"  const DrawNumber numbers_[] = {{{items}}};\n"
        given = f"{{numbers_, {len(numbers)}}}"
    return f"void {k.name}({', '.join(params)})", body + f"  draw(op_, out_, {each}, {given}, {stream});\n"


def autocast_policies(text: str) -> str:
    """Those of the CPU and of accelerators, in C++, from an `autocast` key."""
    names = {"lower": "Lower", "fp32": "Float32", "promote": "Promote", "": "Untouched"}
    said = dict(part.split(":") for part in text.split(",")) if ":" in text else {"cpu": text, "device": text}
    return ", ".join(f"Autocast::{names[said.get(where, '')]}" for where in ("cpu", "device"))


def write(entries: list[Entry], kernels: list[Kernel], table: Table, out: Output) -> None:
    write_calls(kernels, table, out)
    families = {e.family for e in entries if e.kind in ("pointwise", "rows")} | {k.family for k in kernels if k.kind != "space"}
    out.write("families.txt", "\n".join(sorted(families)) + "\n")
    out.write("space_families.txt", "\n".join(sorted({k.family for k in [*entries, *kernels] if k.kind == "space" and "cpu" not in k.row.said})) + "\n")
    described = [describe(e) for e in entries if e.kind in ("pointwise", "rows", "space")] + [describe_kernel(k) for k in kernels]
    out.write("table_kernels.cpp", HEADER + '#include "lower/desc.h"\n\nnamespace strata::lower {\n\n'
              "const KernelDesc table_kernels[] = {\n" + "\n".join(described) + "\n};\n"
              f"const int64_t table_kernel_count = {len(described)};\n\n}}  // namespace strata::lower\n")
    decls = []
    defs = []
    for k in kernels:
        if not k.first:
            continue
        if k.kind == "space":
            decls.append(f"extern const eager::SpaceOp {k.name};")
            defs.append(f'const eager::SpaceOp {k.name}{{"{k.name}"}};')
            continue
        struct = "PointwiseOp" if k.kind == "pointwise" else "RowsOp"
        words = [o.dtype for o in k.inputs]
        mask = sum(1 << i for i, w in enumerate(words) if w)
        fixed = next((w for w in words if w), "bool")
        fixed_dtype = {"bool": "Bool", "int64": "I64", "int32": "I32", "word": "U32", "word2": "U64"}[fixed]
        decls.append(f"extern const {struct} {k.name};")
        called, promote = k.row.operator or k.name, PROMOTE[k.row.promote]
        defs.append(f'const {struct} {k.name}{{"{called}", "{k.name}", Promote::{promote}, {len(words)}, {len(k.scalars)}, '
                    f"{len(k.row.outputs)}, {mask}u, DType::{fixed_dtype}, ResultStrides::{k.row.result_strides}}};")
    both = '#include "run/pointwise.h"\n#include "run/rows.h"\n#include "run/space.h"\n'
    out.write("strata/generated/kernel_ops.h", HEADER + "// Generated kernels that hand-written operators call.\n#pragma once\n" + both +
              "\nnamespace strata::eager::kernels {\n\n" + "\n".join(decls) + "\n\n}  // namespace strata::eager::kernels\n")
    out.write("kernel_ops.cpp", HEADER + '#include "strata/generated/kernel_ops.h"\n\nnamespace strata::eager::kernels {\n\n' +
              "\n".join(defs) + "\n\n}  // namespace strata::eager::kernels\n")
    by_family: dict[str, list[Entry]] = {}
    hand: dict[str, list[str]] = {}
    for e in entries:
        by_family.setdefault(e.family, []).append(e)
    for family, group in by_family.items():
        body, register = [], []
        declared: set[tuple[str, str]] = set()
        for e in group:
            if e.kind in ("pointwise", "rows"):
                body.append(info(e))
            if e.kind == "space":
                body.append(space_cpp.info(e))
            if e.kind in ("cpu", "view", "composite") and not e.plan and not e.filled and e.text.isidentifier() and all(a.name != e.text for a in e.schema.args) and (e.text, e.schema.cpp_sig) not in declared:
                declared.add((e.text, e.schema.cpp_sig))
                hand.setdefault(family, []).append(f"{e.schema.cpp_return} {e.text}({e.schema.cpp_params()});")
            if e.by_hand and (e.by_hand, e.schema.cpp_sig) not in declared:
                declared.add((e.by_hand, e.schema.cpp_sig))
                head = f"{e.schema.cpp_return} {e.by_hand}({e.schema.cpp_params()})" if e.plan else space_cpp.hand_written(e)
                hand.setdefault(family, []).append(f"{head};")
            for named, schema in ((e.row.cpu_inplace, e.inplace_schema), (e.row.cpu_out, e.out_schema)):
                if named:
                    hand.setdefault(family, []).append(f"void {named}({schema().cpp_params()});")
            maker = {"pointwise": pointwise_kernels, "rows": rows_kernels, "space": space_kernels, "allocate": allocations}.get("space" if e.filled else e.kind, function_kernels)
            for s, code in function_kernels(e, plan_bodies(e, table)) if e.plan else maker(e):
                body.append(f"{s.cpp_return} k_{s.ident}(Dispatch{''.join(', ' + p for p in [s.cpp_params()] if p)}) {{\n{code}}}")
                where = "Composite" if e.kind == "composite" else "Backend"
                register.append(f"  table_kernel(op::{s.ident}, TableSlot::{where}, reinterpret_cast<void*>(&k_{s.ident}));")
        mine = f'#include "strata/generated/by_hand/{family}.h"\n' if family in hand else ""
        if any(e.plan for e in group):
            mine = '#include "run/formulas.h"\n#include "strata/generated/kernel_ops.h"\n#include "strata/generated/kernel_calls.h"\n' + mine
        if any(e.kind in ("space", "allocate") or e.by_hand for e in group):
            mine = '#include "core/default_device.h"\n#include "run/prepare.h"\n' + mine
        out.write(f"kernels_{family}.cpp", HEADER + '#include "core/math.h"\n#include "dispatch/call.h"\n#include "run/bind.h"\n#include "run/copy.h"\n#include "run/index_args.h"\n#include "run/pointwise.h"\n'
                  '#include "run/rows.h"\n' + mine + includes(entries, "\n".join(body + register)) +
                  "\nnamespace strata::eager {\nnamespace {\n\n" + "\n\n".join(body) +
                  "\n\n}  // namespace\n\n" + f"void register_{family}() {{\n" +
                  "\n".join(register) + "\n}\n\n}  // namespace strata::eager\n")
        if family in hand:
            out.write(f"strata/generated/by_hand/{family}.h", HEADER + "// Hand-written kernels that ops/ names.\n#pragma once\n"
                      '#include "core/generator.h"\n#include "core/tensor.h"\n\nnamespace strata::eager {\n\n' +
                      "\n".join(hand[family]) + "\n\n}  // namespace strata::eager\n")
    rows_ = [f'{{"{s.full}", {autocast_policies(e.row.autocast)}}},' for e in entries if e.row.autocast for _, s in e.operators()[:1]]
    out.write("autocast.cpp", HEADER + '#include "dispatch/autocast.h"\n\nnamespace strata {\n\n'
              "const AutocastPolicy autocast_policies[] = {\n  " + "\n  ".join(rows_) + "\n  {}};\n\n}  // namespace strata\n")
    names = sorted(by_family)
    out.write("register_all.cpp", HEADER + "namespace strata {\nnamespace eager {\n" + "\n".join(f"void register_{n}();" for n in names) +
              "\n}\nnamespace grad_ops {\n" + "\n".join(f"void register_{n}();" for n in names) +
              "\n}\nvoid register_all() {\n" + "\n".join(f"  eager::register_{n}();\n  grad_ops::register_{n}();" for n in names) +
              "\n}\n\n// Linked last, so that the operators exist when their kernels are registered.\n"
              "static const bool registered = (register_all(), true);\n}  // namespace strata\n")
