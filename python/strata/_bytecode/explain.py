"""What strata.compile would make of a call: graphs, breaks and their reasons, guards."""

from __future__ import annotations

from . import callees, entry
from .api import Options, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class ExplainOutput:
    """graph_count, graph_break_count, op_count; break_reasons with `reason` and `place`; out_guards; print it for all."""

    def __init__(self, owners: list[entry.Compiled]):
        entries = [e for c in owners for table in (c.start, *c.tables.values()) for e in table.entries]
        self.graphs = [region for e in entries for region in e.regions]
        self.texts = [e.text for e in entries if e.run is not None]
        self.break_reasons = [b for c in owners for b in c.breaks]
        self.graph_count = len(self.graphs)
        self.graph_break_count = len(self.break_reasons)
        self.op_count = sum(sum(1 for n in g.nodes if n.op not in ("input", "constant")) for g in self.graphs)
        self.out_guards = [g for e in entries for g in e.guards.guards]

    def __str__(self) -> str:
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}", f"Op Count: {self.op_count}"]
        lines.append("Break Reasons:")
        for i, b in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {i}:", "    " + b.text().replace("\n", "\n    ")]
        return "\n".join(lines)

    __repr__ = __str__


def explain(f: Callable, *extra: Any, **options: Any) -> Any:
    """explain(f)(*args): calls f, compiled anew, and tells what was captured."""

    def call(*args: Any, **kwargs: Any) -> ExplainOutput:
        import strata

        target = f
        if isinstance(f, strata.nn.Module):
            target = f.forward if callees.plain_call(f) else f._call_impl
        compiled = wrap(target, Options(False, "exact"))
        compiled(*args, **kwargs)
        return ExplainOutput(list(_all_of(compiled._strata_compiled)))

    return call(*extra, **options) if extra or options else call


def _all_of(c: entry.Compiled) -> Any:
    yield c
    for _, callee in c.plain.callees.values():
        yield from _all_of(callee)
