"""Operators over an index space: their kernels' descriptions for C++, and the code that checks, prepares and launches them."""

from __future__ import annotations

from . import expr
from .emit import cstring
from .keys import DTYPES, KernelRow, OpRow
from .model import Entry
from .ops_cpp import call_args
from .schema import Schema, safe
from .space_text import checked_index, order_word, rule_call, space_scalars

ERRORS = {"IndexError": "Index", "RuntimeError": "Runtime", "ValueError": "Value"}


def order(row: OpRow | KernelRow) -> str:
    """The end of a KernelDesc: the dims that reductions run over, how, the rank of groups, and whether C++ runs it on the CPU."""
    if not {"over", "rank", "order", "cpu"} & row.said:
        return ""
    return f', "{row.over}", {str(order_word(row) == "sequence").lower()}, {row.rank}, {str("cpu" in row.said and "fused" not in row.said).lower()}, RowsLie::Anywhere, {str("fused" in row.said).lower()}'


def info(e: Entry) -> str:
    """The static description that the launch reads."""
    inputs = []
    for o in e.row.inputs:
        convert = ", SpaceInput::kSame" if o.dtype == "same" else f", {DTYPES.index(o.dtype)}" if o.dtype else ""
        inputs.append(f'{{"{o.name}", {o.fixed_dims}{convert}}}')
    found, wraps = checked_index(e)
    names = [o.name for o in e.row.inputs]
    kind, _, text = (e.row.outside or "IndexError: ").partition(": ")
    result = e.row.outputs[0]
    ident = e.schema.ident
    array = f"const SpaceInput inputs_{ident}[] = {{{', '.join(inputs)}}};\n" if inputs else ""
    listed = f"{{inputs_{ident}, {len(inputs)}}}" if inputs else "{}"
    flags = [str(flag).lower() for flag in (e.row.moves, result.dtype == "wide", result.dtype in DTYPES)]
    moves = e.row.moves and all(dtype for _, dtype in space_scalars(e))
    op = f'"{ident}", {str(moves).lower()}'
    if e.row.lines:
        array += f'const SpaceOp lines_{ident}{{"{e.row.lines}", {str(moves).lower()}}};\n'
        op += f", &lines_{ident}"
    return (f'{array}const SpaceInfo info_{ident}{{{{{op}}}, "{e.schema.name}", {listed}, {result.fixed_dims}, '
            f"{', '.join(flags)}, {sum(1 << DTYPES.index(d) for d in e.dtypes)}u, {names.index(found) if found else -1}, {str(wraps).lower()}, "
            f"ErrorKind::{ERRORS[kind]}, {cstring(text)}}};")


def scalars(e: Entry) -> tuple[str, str, str]:
    """Numbers of the kernel: C++ statements that check them, those that gather them, and the argument that hands them over."""
    checks, setup, items = "", "", []
    by_name = {a.name: a for a in e.schema.args}
    for name, dtype in space_scalars(e):
        if name in e.row.bind:
            setup += f"  const Scalar number_{name}({e.row.bind[name]});\n"
        elif name in by_name:
            setup += f"  const Scalar number_{name}({safe(name)});\n"
            if not dtype:
                made = "self.dtype()" if e.writes_self else "prepared.outputs[0].dtype" if reads(e) else "made.dtype"
                number = safe(name) if by_name[name].type == "Scalar" else f"Scalar({safe(name)})"
                checks += f"  check_fits({number}, {made});\n"
        else:
            items.append(f'{{"{name}"}}')
            continue
        kind = {"": "SpaceScalar::kElement", "widest": "SpaceScalar::kWidest"}.get(dtype) or str(DTYPES.index(dtype))
        items.append(f'{{"{name}", &number_{name}, {kind}}}')
    if items:
        setup += f"  const SpaceScalar scalars[] = {{{', '.join(items)}}};\n"
    return checks, setup, f", {{scalars, {len(items)}}}" if items else ""


def reads(e: Entry) -> bool:
    """Whether the kernel has operands; the rule of one without gives the sizes and the dtype of the result alone."""
    return bool(e.row.inputs)


def made_result(e: Entry, k: int, like: str) -> str:
    """Result k in the strides that the entry names, or in the format that its argument does."""
    named = e.row.strides
    if any(a.name == named for a in e.schema.args):
        device = ", device" if any(a.name == "device" for a in e.schema.args) else ""
        return f"new_result({like}, prepared.outputs[{k}], {named}{device})"
    chosen = f"ResultStrides::{e.row.result_strides}"
    if e.row.result_strides != "Contiguous":
        chosen = f"prepared.contiguous ? ResultStrides::Contiguous : {chosen}"
    return f"new_result({like}, {f'prepared, {k}' if e.filled else f'prepared.outputs[{k}]'}, {chosen})"


def call_of_rule(e: Entry) -> str:
    """The shape rule over numbers: `shape::gather<int64_t>(geometry(self), dim, geometry(index))`."""
    name, args = rule_call(e)
    by_name = {a.name: a for a in e.schema.args}
    values = [f"geometry({safe(a)})" if a in by_name and by_name[a].is_tensor else safe(a) if a in by_name else a for a in args]
    return f"shape::{name}<int64_t>({', '.join(values)})"


def prepare(e: Entry) -> tuple[str, str]:
    """Checks, the rule and the numbers; and what the launch takes after the result."""
    names = [safe(o.name) for o in e.row.inputs]
    listed = f"{{in, {len(names)}}}"
    body = f"  {e.row.check};\n" if e.row.check else ""
    body += f"  const Tensor* in[] = {{{', '.join('&' + n for n in names)}}};\n"
    guard = f"if (!{names[0]}.defined()) " if len(names) == 1 else ""
    body += f"  {guard}check_operands(info_{e.schema.ident}, {listed});\n"
    if start(e) not in ("nullptr", *names):
        body += f'  check_same_device({start(e)}, {names[0]}, "{e.schema.name}");\n'
    body += f"  const auto prepared = {call_of_rule(e)};\n"
    if not e.row.moves:
        body += f"  check_dtype(info_{e.schema.ident}, {names[0]});\n"
    checks, setup, numbers = scalars(e)
    return body + checks + ("" if e.by_hand else setup), f"{listed}, prepared{numbers}"


def place(e: Entry) -> str:
    """Where a result without operands lies: on `device`, which without one is self's or the default; else on the CPU."""
    if not any(a.name == "device" for a in e.schema.args):
        return "Device{}"
    like = next((f"{safe(a.name)}, " for a in e.schema.args if a.is_tensor), "")
    return like + "device" if like else "device.value_or(default_device())"


def given_out(e: Entry, s: Schema) -> str:
    """The start of an out= form whose result takes the dtype of `out` (`out_dtype: own`)."""
    body = f'  check_given(out, "{s.name}");\n'
    return body + ("  dtype = out.dtype();\n" if any(a.name == "dtype" for a in s.args) else "")


def factory(e: Entry) -> tuple[str, str]:
    """Of an entry without operands: checks, the rule and the numbers; and what the launch takes after the result."""
    checks, setup, numbers = scalars(e)
    body = f"  {e.row.check};\n" if e.row.check else ""
    return body + f"  const auto made = {call_of_rule(e)};\n" + checks + setup, numbers


def out_body(e: Entry, s: Schema) -> str | None:
    """Into `out` at once, where it decides the dtype; None elsewhere."""
    if e.row.out_dtype != "own":
        return None
    body, numbers = factory(e)
    into, before, after = "out", f'  resize_output(out, made.sizes, "{s.name}");\n', ""
    if [o.fixed_dims for o in e.row.outputs] == [1]:  # a range: the order of its elements counts alone
        into, before = "row", f'  const Tensor row = output_in_order(out, made.sizes, "{s.name}");\n'
        after = "  if (!shapes_alone(out)) taken_in_order(out, row);\n"
    return (given_out(e, s) + body + before + f"  check_no_overlap(info_{e.schema.ident}.name, out, {{}});\n"
            f"  if (!shapes_alone(out)) launch_factory(info_{e.schema.ident}, {into}{numbers});\n{after}  return out;\n")


def allocation_body(e: Entry, kind: str, s: Schema) -> str:
    """Of entries that promise no values: the rule, and memory."""
    layout = f"  const auto layout = {call_of_rule(e)};\n"
    if kind == "function":
        return layout + f"  return allocate(layout, {place(e)});\n"
    body = given_out(e, s)
    if any(a.name == "memory_format" for a in s.args):
        body += f'  refuse_format(memory_format, "{s.name}");\n'
    return body + layout + f'  resize_output(out, layout.sizes, "{s.name}");\n  return out;\n'


def start(e: Entry) -> str:
    """What the result of a scatter begins as, a tensor argument; nullptr: zeros."""
    return "nullptr" if e.row.starts == "0" else safe(e.row.starts)


def results(e: Entry) -> list[str]:
    """Names of the results. Those of C++ that fills them are the schema's, unless an argument is called so."""
    names = ["result", *(f"result{k}" for k in range(1, len(e.schema.returns)))]
    taken = {a.name for a in e.schema.args}
    return [safe(r.name) if e.filled and r.name and r.name not in taken else n for r, n in zip(e.schema.returns, names)]


def hand_written(e: Entry) -> str:
    """The head of the C++ function that fills the results."""
    outs = [] if e.writes_self else [f"const Tensor& {r}" for r in results(e)]
    return f"void {e.by_hand}({', '.join([*outs, *filter(None, [e.schema.cpp_params()])])})"


def launch(e: Entry, outs: list[str], call: str) -> str:
    """The launch; on the CPU the C++ function, where there is one."""
    if not e.by_hand:
        return f"  {call};\n"
    args = ", ".join([*([] if e.writes_self else outs), call_args(e.schema)])
    setup = scalars(e)[1].replace("\n  ", "\n    ").removeprefix("  ")  # the C++ takes the numbers as they are
    other = f"  }} else {{\n    {setup}  {call};\n  }}\n" if setup else f"  }} else {{\n    {call};\n  }}\n"
    return f"  if (by_hand(info_{e.schema.ident}, {outs[0]})) {{\n    {e.by_hand}({args});\n{other}"


def scatter_function(e: Entry) -> str:
    body, args = prepare(e)
    begins = start(e)
    tensors = [a.name for a in e.schema.args if a.is_tensor]
    like = begins if begins != "nullptr" else "self" if "self" in tensors else safe(tensors[0])
    return (f"{body}  const Tensor result = {made_result(e, 0, like)};\n"
            "  if (shapes_alone(result)) return result;\n"
            + launch(e, ["result"], f"scatter_space(info_{e.schema.ident}, result, {'&' * (begins != 'nullptr')}{begins}, {args})") +
            "  return result;\n")


def written_self(e: Entry) -> str:
    """Of an operator that writes its first argument: every element, of numbers, or of other tensors."""
    if not reads(e):
        checks, setup, numbers = scalars(e)
        return checks + setup + f"  if (!shapes_alone(self)) launch_factory(info_{e.schema.ident}, self{numbers});\n  return self;\n"
    body, args = prepare(e)
    meta = " || ".join(f"shapes_alone({safe(n)})" for n in ("self", *(o.name for o in e.row.inputs)))
    return (f'  if (!self.is_contiguous()) check_apart("{e.schema.name}", self, {{}});\n' + body + f"  if ({meta}) return self;\n"
            + launch(e, ["self"], f"launch_space(info_{e.schema.ident}, {{&self}}, {args})") + "  return self;\n")


def function_body(e: Entry) -> str:
    if e.scatters:
        return scatter_function(e)
    if e.writes_self:
        return written_self(e)
    if not reads(e):
        body, numbers = factory(e)
        return (body + f"  Tensor result = new_result({place(e)}, made);\n"
                f"  if (!shapes_alone(result)) launch_factory(info_{e.schema.ident}, result{numbers});\n  return result;\n")
    body, args = prepare(e)
    tensors = [safe(o.name) for o in e.row.inputs]
    made = results(e)
    for k, name in enumerate(made):
        body += f"  Tensor {name} = {made_result(e, k, tensors[0])};\n"
    given = made[0] if len(made) == 1 else "{" + ", ".join(made) + "}"
    outs = "{" + ", ".join("&" + r for r in made) + "}"
    return (body + f"  if (shapes_alone(result)) return {given};\n" +
            launch(e, made, f"launch_space(info_{e.schema.ident}, {outs}, {args})") + f"  return {given};\n")


def filled_body(e: Entry) -> str:
    """Of C++ that fills what a shape rule prepares: checks, the rule, memory, and where there is memory the C++."""
    name = e.schema.name
    tensors = [(safe(a.name), a.type.endswith("?")) for a in e.tensors if a.type in ("Tensor", "Tensor?")]
    body = f"  {e.row.check};\n" if e.row.check else ""
    for t, optional in tensors:
        body += f'  check_{"optional" if optional else "operand"}({cstring(name)}, {cstring(t)}, {t}, {tensors[0][0]});\n'
    body += f"  const auto prepared = {call_of_rule(e)};\n"
    made = results(e)
    for k, r in enumerate(made):
        body += f"  const Tensor {r} = " + (made_result(e, k, tensors[0][0]) if tensors else f"new_result({place(e)}, prepared.outputs[{k}])") + ";\n"
    given = made[0] if len(made) == 1 else "{" + ", ".join(made) + "}" if made else ""
    asked = ", ".join("&" + t for t in made or [t for t, _ in tensors])
    return (body + f"  if (eager::to_run({{{asked}}})) {e.by_hand}({', '.join([*made, call_args(e.schema)])});\n"
            f"  return {given}".rstrip() + ";\n")


def inplace_body(e: Entry, s: Schema) -> str | None:
    """In place at once, where each element is made of the one that it replaces; None elsewhere."""
    if e.scatters:
        body, args = prepare(e)
        read = ", ".join("&" + safe(o.name) for o in e.row.inputs)
        return (f'  check_apart("{s.name}", self, {{{read}}});\n' + body + "  if (shapes_alone(self)) return self;\n"
                f"  scatter_space(info_{e.schema.ident}, self, &self, {args});\n  return self;\n")
    if e.by_hand or "self" in expr.indexed_names(e.text):
        return None
    body, args = prepare(e)
    return (f'  check_apart("{s.name}", self, {{}});\n' + body + "  if (shapes_alone(self)) return self;\n"
            f"  launch_space(info_{e.schema.ident}, {{&self}}, {args});\n  return self;\n")
