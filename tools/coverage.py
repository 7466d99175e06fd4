"""Which operators are said in the table's own language (tools/census.py); which tests each one has, and the written reasons of
those that it lacks.

    ./run coverage [--list KIND]

Writes out/coverage.html, one row per operator, and ends with a line of counts. `--list KIND` prints the operators that lack
tests of a kind without a reason. The kinds: forward (PyTorch's recorded results, or a reference in NumPy), layouts and bits
(other strides, every instruction set and number of threads give the same bits), inplace, out, grad, gradgrad, errors, meta.
"""

from __future__ import annotations

import argparse
import html
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
os.environ["STRATA_TEST_ALL"] = "1"
sys.path[:0] = [str(ROOT), str(ROOT / "tests/ops")]
import census  # noqa: E402
import table  # noqa: E402
import test_errors  # noqa: E402
import test_forward  # noqa: E402
import test_grad  # noqa: E402
import test_meta  # noqa: E402

KINDS = ["forward", "layouts", "bits", "inplace", "out", "grad", "gradgrad", "errors", "meta"]
TESTS = {  # kind -> the test functions' module and name, whose parameters are the operators tested
    "forward": (test_forward, "test_recorded"),
    "layouts": (test_forward, "test_layouts_give_the_same_bits"),
    "bits": (test_forward, "test_instruction_sets_and_threads_give_the_same_bits"),
    "inplace": (test_forward, "test_inplace_equals_the_function"),
    "out": (test_forward, "test_out_equals_the_function"),
    "grad": (test_grad, "test_gradcheck"),
    "gradgrad": (test_grad, "test_gradgradcheck"),
    "errors": (test_errors, "test_errors"),
    "meta": (test_meta, "test_meta"),
}


def tested(kind: str) -> dict[str, int]:
    """Operators that the parametrised test of a kind runs, and how many cases each."""
    module, name = TESTS[kind]
    mark = next(m for m in getattr(module, name).pytestmark if m.name == "parametrize")
    counts: dict[str, int] = {}
    for case in mark.args[1]:
        entry, dtype = case if isinstance(case, tuple) else (case, None)
        if kind == "forward" and not entry.row.reference and not test_forward.expected(entry, dtype):
            continue
        counts[entry.schema.full] = counts.get(entry.schema.full, 0) + 1
    return counts


def applies(entry, kind: str) -> bool:
    """Whether an operator can have a test of a kind at all."""
    return {
        "forward": True,
        "layouts": any(a.is_tensor or a.is_tensors for a in entry.schema.args),
        "bits": entry.kind in ("pointwise", "rows", "space"),
        "inplace": entry.inplace,
        "out": entry.out is not None,
        "grad": bool(test_grad.derived(entry)),
        "gradgrad": bool(test_grad.derived(entry)),
        "errors": True,
        "meta": any(a.is_tensor or a.is_tensors for a in entry.schema.args),
    }[kind]


def state(entry, kind: str, counts: dict[str, int]) -> tuple[str, str]:
    """(word, text): tested, reason, none (nothing to test) or lacking."""
    if n := counts.get(entry.schema.full):
        return "tested", str(n)
    if reason := table.skip_reason(entry, kind) or (kind == "gradgrad" and table.skip_reason(entry, "grad")):
        return "reason", reason
    if not applies(entry, kind):
        return "none", ""
    if entry.row.samples not in table.SAMPLES:
        return "lacking", f"no samples of the name {entry.row.samples!r}"
    return "lacking", "no test"


STYLE = """body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}td,th{padding:2px 8px;text-align:left}
tr:nth-child(even){background:#f4f4f4}.tested{color:#06632c}.reason{color:#8a6100}.lacking{color:#b00020;font-weight:bold}
.none{color:#999}th{position:sticky;top:0;background:#fff}"""


def page(rows: list[tuple], summary: list[str]) -> str:
    head = "".join(f"<th>{k}</th>" for k in KINDS)
    body = []
    for entry, states in rows:
        cells = "".join(f'<td class="{w}" title="{html.escape(t)}">{t if w == "tested" else {"none": "&ndash;"}.get(w, w)}</td>'
                        for w, t in states)
        body.append(f"<tr><td>{html.escape(entry.schema.full)}</td><td>ops/{entry.family}.yaml:{entry.line}</td>{cells}</tr>")
    lines = "".join(f"<li>{html.escape(s)}</li>" for s in summary)
    return (f"<!doctype html><meta charset=utf-8><title>Tests of the operators</title><style>{STYLE}</style>"
            f"<h1>Tests of the operators</h1><ul>{lines}</ul><p>Numbers count cases; a reason stands in the cell's title.</p>"
            f"<table><tr><th>operator</th><th>entry</th>{head}</tr>{''.join(body)}</table>\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", choices=KINDS)
    args = parser.parse_args()
    counts = {k: tested(k) for k in KINDS}
    rows = [(e, [state(e, k, counts[k]) for k in KINDS]) for e in table.ENTRIES]
    summary = []
    for i, kind in enumerate(KINDS):
        words = [states[i][0] for _, states in rows]
        cases = sum(counts[kind].values())
        summary.append(f"{kind}: {words.count('tested')} operators ({cases} cases), {words.count('reason')} skipped with a reason, "
                       f"{words.count('lacking')} lacking, {words.count('none')} have none to test")
    if args.list:
        for entry, states in rows:
            word, text = states[KINDS.index(args.list)]
            if word == "lacking":
                print(f"{entry.schema.full} (ops/{entry.family}.yaml:{entry.line}): {text}")
    path = ROOT / "out/coverage.html"
    path.parent.mkdir(exist_ok=True)
    path.write_text(page(rows, summary))
    for line in [*census.Census(table.ENTRIES).report(), *census.derivatives(), *census.readers(), *summary]:
        print(line)
    whole = sum(all(w != "lacking" for w, _ in states) for _, states in rows)
    print(f"{len(rows)} operators: {whole} have every test that applies or a written reason, {len(rows) - whole} lack some; "
          f"{path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
