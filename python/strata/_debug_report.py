"""strata.debug.report: calls that a dump recorded, ranked, as text and as a page."""

from __future__ import annotations

import html
import json
import math
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COLUMNS = ("error", "abs", "ulp", "NaN", "operator", "line", "operands", "note")
STYLE = (
    "body{font:14px system-ui,sans-serif;margin:2em}table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:left;"
    "border-bottom:1px solid #ddd}td:nth-child(-n+4){text-align:right;font-variant-numeric:tabular-nums}.bad{background:#fdd}"
)


def read(folder: Any) -> list[dict[str, Any]]:
    path = Path(folder) / "calls.jsonl"
    if not path.exists():
        raise FileNotFoundError(f"debug.report: expected {path}, which strata.debug.dump writes")
    return [json.loads(line) for line in path.read_text().splitlines()]


def wrong(row: dict[str, Any]) -> float:
    return math.inf if "raised" in row else row.get("error", 0.0)


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def note(row: dict[str, Any]) -> str:
    """What else is to be said of a call; without a comparison its results' numbers."""
    if "raised" in row:
        return row["raised"]
    if "why" in row:
        return row["why"]
    if row.get("differ"):
        return f"{row['differ']} elements differ"
    ranges = [f"{s['min']:.4g} to {s['max']:.4g}" for s in row.get("statistics", ()) if "min" in s]
    return ", ".join(ranges)


def cells(row: dict[str, Any]) -> list[str]:
    nan = "" if "nan" not in row else f"{row['nan']}/{row['nan_cpu']}"
    place = row["line"].rpartition("/")[2]
    return [number(row.get("error")), number(row.get("abs")), number(row.get("ulp")), nan, f"{row['number']} {row['op']}", place,
            " ".join(row["inputs"]), note(row)]


def heading(rows: list[dict[str, Any]]) -> str:
    compared = sum("error" in r for r in rows)
    differ = sum(wrong(r) > 0 for r in rows)
    return f"{len(rows)} calls, {compared} compared with the CPU, {differ} differ"


def write(folder: Any, limit: int) -> str:
    rows = sorted(read(folder), key=wrong, reverse=True)
    table = [list(COLUMNS), *(cells(r) for r in rows[:limit])]
    wide = [min(max(len(line[i]) for line in table), 60) for i in range(len(COLUMNS))]
    lines = [heading(rows)]
    for line in table:
        lines.append("  ".join(c.rjust(w) if i < 4 else c.ljust(w) for i, (c, w) in enumerate(zip(line, wide, strict=True))).rstrip())
    (Path(folder) / "report.html").write_text(page(rows))
    return "\n".join(lines)


def page(rows: list[dict[str, Any]]) -> str:
    head = "".join(f"<th>{c}</th>" for c in COLUMNS)
    body = []
    for row in rows:
        mark = ' class="bad"' if wrong(row) else ""
        body.append(f"<tr{mark} title=\"{html.escape(row['line'])}\">" + "".join(f"<td>{html.escape(c)}</td>" for c in cells(row)) + "</tr>")
    return (
        f"<!doctype html><meta charset=utf-8><title>strata.debug.report</title><style>{STYLE}</style><h1>{heading(rows)}</h1>"
        f"<p>error: the largest difference in units in the last place of the result's largest value; NaN: here/on the CPU.</p>"
        f"<table><tr>{head}</tr>{''.join(body)}</table>\n"
    )
