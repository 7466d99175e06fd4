"""The text of what runs before the last graph of a stretch whose capture was cut (data.py)."""

from __future__ import annotations

import strata
from strata import _C

from .forms import Method, Nest, Ref
from .frame import Jump
from .reasons import Break
from .sizes import remade
from .stages import under

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .emit import Emitter


def parts_of(emitter: Emitter, count: int) -> list[str]:
    """Lines: each part's graph, what reads of its results, and the choice of the next graph."""
    t, constant = emitter.tracer, emitter.text.constant
    args = "".join(f"a{i}, " for i in range(count))
    fresh = "".join(f"{emitter.made[id(made)]}, " for made, *_ in t.fresh_inputs)
    after, emitter.lines, emitter.between = emitter.lines, [], True
    lines = emitter.lines
    random = "None"
    if t.draws:
        lines.append(f"random = {constant(_C._draw_mark)}()")
        random = "random"
    tables = []
    for i, part in enumerate(t.parts):
        given = ", ".join(emitter.build(v) for v in part.inputs)
        graph = f"graph{i or ''}({given})" if part.graph is not None else "()"
        lines += [f"t{i} = {graph}", f"d{i} = {_call(emitter, *part.call)}"]
        results, found = ("".join(f"{name}{k}, " for k in range(i + 1)) for name in "td")
        lines.append(f"p = part{i + 1}(({args}), ({fresh}), ({results}), ({found}))")
        lines += ["if p is None:", f"    return {constant(Jump)}(-1, [{args}], [{constant(emitter.here)}, {random}])"]
        tables.append(len(lines))
        lines.append("")
    emitter.lines, emitter.between = after, False
    named = t.program.named = [[] for _ in range(len(t.parts) + 1)]
    for slot in sorted(t.program.wanted):
        named[t.program.part_of(slot)].append(slot)
    for i, at in enumerate(tables, 1):
        lines[at] = ", ".join([f"graph{i}", f"part{i + 1}", *(t.program.wanted[slot] for slot in named[i])]) + " = p"
    return lines


def _call(emitter: Emitter, what: Any, forms: Any, keywords: Any, grad: bool) -> str:
    args = [_text(emitter, form) for form in (forms.items if type(forms) is Nest else forms)]
    if type(keywords) is Nest:
        args += [f"{k}={_text(emitter, form)}" for k, form in zip(keywords.keys, keywords.items, strict=True)]
    elif keywords:
        args += [f"{k}={_text(emitter, form)}" for k, form in keywords.items()]
    function = _text(emitter, what)
    if grad != emitter.tracer.began[0]:
        return f"{emitter.text.constant(under)}({', '.join([str(grad), function, *args])})"
    return f"{function}({', '.join(args)})"


def _text(emitter: Emitter, form: Any) -> str:
    """Of a value as steps keep it."""
    program, kind = emitter.tracer.program, type(form)
    if kind is Method:
        return f"{_text(emitter, form.owner)}.{form.name}"
    if kind is Ref:
        tensor = next((t for t in program.keep if program.slots[id(t)] == form.slot), None)
        return emitter.build(tensor) if tensor is not None else program.wanted.setdefault(form.slot, f"N{form.slot}")
    if kind is tuple:
        return f"({''.join(_text(emitter, v) + ', ' for v in form)})"
    if kind is not Nest:
        return emitter.text.literal(form)
    items = [_text(emitter, v) for v in form.items]
    if form.keys is not None:
        return "{" + ", ".join(f"{emitter.text.literal(k)}: {v}" for k, v in zip(form.keys, items, strict=True)) + "}"
    if form.like is list:
        return f"[{', '.join(items)}]"
    if form.like is slice:
        return f"slice({', '.join(items)})"
    if form.like is tuple:
        return f"({''.join(v + ', ' for v in items)})"
    if not isinstance(form.like, strata.Size):
        raise Break(f"a {type(form.like).__name__} is an argument of what reads values")
    return f"{emitter.text.constant(remade)}({emitter.text.constant(strata.Size())}, [{', '.join(items)}])"
