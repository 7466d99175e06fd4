"""Exported graphs without composites and without writes but at the end."""

from __future__ import annotations

import re

from strata import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NORM = re.compile(r"^(.*?) = ((?:no_grad )?)aten::native_batch_norm\((%\d+, (?:%\d+|None), (?:%\d+|None), (%\d+), (%\d+), True, [^()]*)\)$")


_TYPED = re.compile(r"(%\d+): (\w+\[[^\]]*\](?:@[\w:]+)?)")


def _listed_writes(text: str) -> str:
    """The text of a functional graph where the running statistics that normalisations write are results, copied at the end."""
    types = dict(_TYPED.findall(text))
    free = 1 + max((int(v[1:]) for v in types), default=0)
    now: dict[str, str] = {}  # what the statistics are after the last normalisation
    lines = []
    for line in text.splitlines():
        head, mark, span = line.partition("  # ")
        left, equals, right = head.partition(" = ")
        if not equals:
            left, right = "", head
        elif " aten::copy_(" not in f" {right}":
            right = re.sub(r"%\d+", lambda m: now.get(m.group(), m.group()), right)
        elif right.partition("(")[2].partition(",")[0] in now:
            raise NotImplementedError(f"run_decompositions: a normalisation's running statistics are written by something else, too ({span})")
        match = _NORM.match(f"{left} = {right}")
        if match is None:
            if head.strip().startswith("return"):
                indent = head[: len(head) - len(head.lstrip())]
                for to, value in now.items():
                    lines.append(f"{indent}%{free}: {types[to]} = aten::copy_({to}, {value}, False)")
                    free += 1
                head = re.sub(r"%\d+", lambda m: now.get(m.group(), m.group()), head)
                lines.append(head + mark + span)
                continue
            lines.append((left + equals if equals else "") + right + mark + span)
            continue
        results, before, arguments, mean, var = match.groups()
        origin = {v: k for k, v in now.items()}
        made = f"%{free}", f"%{free + 1}"
        free += 2
        lines.append(
            f"{results}, {made[0]}: {types[mean]}, {made[1]}: {types[var]} = {before}aten::_native_batch_norm_legit_functional({arguments}){mark}{span}"
        )
        for old, new in zip((mean, var), made, strict=True):
            types[new] = types[old]
            now[origin.get(old, old)] = new
    return "\n".join(lines) + "\n"


def decomposed(graph: Any) -> Any:
    """Of a graph with whole composites. NotImplementedError where a write has no other form."""
    graph = _C._graph_instantiate(graph)
    graph, log = _C._graph_pass(graph, "functional")
    try:
        _C._graph_verify(graph, True)
    except ValueError as error:
        raise NotImplementedError(f"run_decompositions: {log.strip() or error}") from None
    graph = _C._graph_parse(_listed_writes(_C._graph_text(graph)), _C._graph_captured(graph))
    return _C._graph_pass(graph, "dead")[0]
