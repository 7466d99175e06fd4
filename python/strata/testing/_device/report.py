"""What grading a device gave, as rows, text, JSON and a page."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field

LEVELS = {
    0: "memory: the plugin loads; copies, statistics, what does not fit",
    1: "elements: fills, conversions and pointwise operators, eager",
    2: "operators: all of the table, eager",
    3: "gradients: all of the table",
    4: "graphs: all of the table compiled; a network's training",
    5: "whole: errors are told, threads share it, it hides no operator",
}


@dataclass
class Row:
    """One subject in one dtype and form."""

    level: int
    subject: str
    dtype: str
    form: str
    status: str  #: "passed", "failed" or "skipped"
    why: str = ""
    fell: list[str] = field(default_factory=list)  #: operators that ran on the CPU on the way


@dataclass
class Report:
    """All rows of a plugin."""

    plugin: str
    device: str
    version: str
    wanted: int  #: the highest level that was asked for
    sample: str
    seconds: float
    rows: list[Row]
    note: str = ""

    @property
    def failed(self) -> list[Row]:
        return [r for r in self.rows if r.status == "failed"]

    @property
    def reached(self) -> int:
        """The highest level whose rows, and those of the levels below it, all pass; -1: none."""
        reached = -1
        for level in LEVELS:
            statuses = [r.status for r in self.rows if r.level == level]
            if "failed" in statuses or "passed" not in statuses:
                break
            reached = level
        return reached

    def missing(self) -> dict[str, int]:
        """Operators that the device lacks, which ran on the CPU, and in how many rows they did."""
        return dict(Counter(op for r in self.rows for op in r.fell).most_common())

    def text(self) -> str:
        lines = [f"{self.device} {self.version} ({self.plugin}), {self.sample}, {self.seconds:.0f} s"]
        for level, what in LEVELS.items():
            n = Counter(r.status for r in self.rows if r.level == level)
            if n:
                fell = sum(bool(r.fell) for r in self.rows if r.level == level)
                beside = f", {fell} with operators that ran on the CPU" if fell else ""
                lines.append(f"level {level}  {n['passed']:6d} passed {n['failed']:5d} failed {n['skipped']:6d} without calls{beside}  {what}")
        for r in self.failed:
            lines.append(f"FAILED level {r.level} {' '.join(filter(None, (r.subject, r.dtype, r.form)))}: {r.why}")
        missing = self.missing()
        if missing:
            lines.append(f"missing on the device, computed by the CPU: {len(missing)} operators: {' '.join(sorted(missing))}")
        if self.note:
            lines.append(self.note)
        lines.append(f"reached level {self.reached}" if self.reached >= 0 else "reached no level")
        return "\n".join(lines)

    def json(self) -> str:
        return json.dumps({**asdict(self), "reached": self.reached, "missing": self.missing()}, indent=1)

    def html(self) -> str:
        """A page of its own: operators by dtype, one letter a form."""
        from html import escape

        head = f"{self.device} {self.version}"
        parts = [
            f"<!doctype html><meta charset=utf-8><title>{escape(head)}</title><style>body{{font:14px sans-serif;margin:2em}}"
            "td,th{padding:1px 6px;text-align:left}.passed{background:#cfc}.failed{background:#fbb}.skipped{color:#999}"
            f".fell{{background:#fec}}pre{{white-space:pre-wrap}}</style><h1>{escape(head)}: level {self.reached}</h1>",
            f"<pre>{escape(self.text())}</pre><p>Green: the CPU's bits. Yellow: the CPU's bits, by way of the CPU. Red: other bits."
            " Point at a cell for its form and reason.",
        ]
        for level, what in LEVELS.items():
            rows = [r for r in self.rows if r.level == level]
            if not rows:
                continue
            dtypes = list(dict.fromkeys(r.dtype for r in rows))
            cells: dict[str, dict[str, str]] = {}
            for r in rows:
                kind = "fell" if r.status == "passed" and r.fell else r.status
                title = escape(f"{r.form}: {r.status} {r.why} {' '.join(r.fell)}", quote=True)
                at = cells.setdefault(r.subject, dict.fromkeys(dtypes, ""))
                at[r.dtype] += f"<span class={kind} title='{title}'>{escape(r.form[:1] or '·')}</span> "
            body = "".join(f"<tr><td>{escape(s)}<td>" + "<td>".join(c[d] for d in dtypes) for s, c in cells.items())
            parts.append(f"<h2>Level {level}</h2><p>{escape(what)}<table><tr><th><th>{'<th>'.join(dtypes)}{body}</table>")
        return "".join(parts)
