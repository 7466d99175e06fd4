"""Every operator of the table where nobody looked: seven dtypes, five layouts, gradients, at one thread beside PyTorch.

`./run bench sweep [--only PART ...] [--blocks N]` prints the operators with the worst ratios; the whole takes about 25 minutes. What an operator
needs beside tensors are ones; what PyTorch or we refuse is left out, and what makes more than 2^24 elements. Both sides time
the cases of one operator after another, and a figure is the least of its calls: on a machine with other work read ratios
above 3.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools/beside"))
from calls import bare, schemas, target  # noqa: E402

ROWS = 512
DTYPES = "float32 float64 bfloat16 int64 uint8 bool complex64".split()
LAYOUTS = ("contiguous", "turned", "strided", "expanded", "deep")
SECONDS = 0.1  # a case
MOST = 2**24  # elements of a result
SHOWN = 100
KINDS = {"Tensor": None, "int": 1, "SymInt": 1, "float": 1.5, "Scalar": 1.5, "bool": False}


def operand(T, dtype: str, layout: str):
    base = T.tensor([((i * 7919) % 997) / 100.0 - 5 for i in range(ROWS)], dtype=T.float64)
    x = (base[:, None] * 1.7 + base[None, :] * 0.3) % 5 - 2
    x = x > 0 if dtype == "bool" else (x.abs() * 20 if "int" in dtype else x).to(getattr(T, dtype))
    made = {
        "turned": lambda: x.t().contiguous().t(),
        "strided": lambda: T.stack([x, x], -1)[..., 0],
        "expanded": lambda: x[:1].expand(ROWS, ROWS),
        "deep": lambda: x.reshape(8, ROWS // 8, ROWS),
    }
    return made.get(layout, lambda: x)()


def arguments(T, needed: list[dict], dtype: str, layout: str) -> list | None:
    x, values = operand(T, dtype, layout), []
    for a in needed:
        kind = bare(a["type"])
        if kind == "Tensor":
            at = a["name"].startswith(("index", "indices", "target"))
            chooses = a["name"] in ("mask", "condition")
            values.append((T.arange(x.numel()) % ROWS).reshape(x.shape) if at else operand(T, "bool", layout) if chooses else x)
        elif kind in KINDS:
            values.append(2 if KINDS[kind] == 1.5 and dtype in ("int64", "uint8", "bool") else KINDS[kind])
        elif found := re.fullmatch(r"(?:Sym)?[iI]nt\[(\d*)\]", kind):
            values.append([1] * int(found[1] or 1))
        else:
            return None
    return values


def least(call) -> float:
    call()
    times, begin = [], time.perf_counter()
    while len(times) < 7 and time.perf_counter() - begin < SECONDS:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def cases(T, name: str, needed: list[dict]) -> Iterator[tuple[str, float]]:
    call = target(T, name)
    for dtype in DTYPES:
        for layout in LAYOUTS:
            values = arguments(T, needed, dtype, layout)
            try:
                result = call(*values)
            except Exception:  # noqa: BLE001 - refused here
                continue
            if isinstance(result, T.Tensor) and result.numel() > MOST:
                return  # a cube of what it is given: seconds a call
            yield f"{dtype} {layout}", least(lambda values=values: call(*values))
            if dtype != "float32":
                continue
            leaves = [v.detach().clone(memory_format=T.preserve_format).requires_grad_() if isinstance(v, T.Tensor) and v.is_floating_point() else v
                      for v in values]  # fmt: skip
            made = call(*leaves)
            made = made[0] if isinstance(made, (tuple, list)) else made
            if isinstance(made, T.Tensor) and made.requires_grad:
                asked = [v for v in leaves if isinstance(v, T.Tensor) and v.requires_grad]
                try:
                    yield f"gradient {layout}", least(lambda: T.autograd.grad(made, asked, T.ones_like(made), retain_graph=True))  # noqa: B023
                except Exception:  # noqa: BLE001, S112 - there is none
                    continue


def work(library: str) -> None:
    T = importlib.import_module(library)
    T.set_num_threads(1)
    table = dict(schemas())
    for line in sys.stdin:
        try:
            found = dict(cases(T, line.strip(), [a for a in table[line.strip()] if a["default"] is None]))
        except Exception:  # noqa: BLE001 - one side lacks it
            found = {}
        print(json.dumps(found), flush=True)


def beside(script: str, torch: str | None, names: list[str], blocks: int) -> list[tuple]:
    """(ratio, name, case, our seconds, the peer's) of what `script` times in a process of each library, a name after the other."""
    if not torch:
        raise SystemExit(f"bench {Path(script).stem}: STRATA_TORCH names no interpreter that has PyTorch 2.13")

    def started(python: str, library: str) -> subprocess.Popen:
        return subprocess.Popen([python, "-W", "ignore", script, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.DEVNULL, env=dict(os.environ, OMP_NUM_THREADS="1"))  # fmt: skip

    def asked(side: subprocess.Popen, name: str) -> dict[str, float]:
        side.stdin.write(name + "\n")
        side.stdin.flush()
        return json.loads(side.stdout.readline() or "{}")

    ours, theirs, rows = started(sys.executable, "strata"), started(torch, "torch"), []
    for at, name in enumerate(names, 1):
        print(f"[{at}/{len(names)}] {name}", file=sys.stderr, flush=True)
        pairs = [(asked(ours, name), asked(theirs, name)) for _ in range(blocks)]
        if ("error" in pairs[0][0]) != ("error" in pairs[0][1]):
            print(f"{name}: ours {pairs[0][0].get('error', 'runs')}, the peer's {pairs[0][1].get('error', 'runs')}", file=sys.stderr)
        for case in (pairs[0][0].keys() & pairs[0][1].keys()) - {"error"}:
            mine, peer = (min(pair[side].get(case, math.inf) for pair in pairs) for side in (0, 1))
            rows.append((mine / peer, name, case, mine, peer))
    return sorted(rows, reverse=True)


def show(rows: list[tuple], width: int) -> None:
    """Of each call its worst case, of those that take longer than timers' noise; the worst calls, and the mean of all cases."""
    worst: dict[str, list[tuple]] = {}
    for row in rows:
        if row[3] > 1e-4 and row[0] > 1:
            worst.setdefault(row[1], []).append(row)
    print(f"{'call':<{width}}{'its worst case':<22}{'ours':>11}{'peer':>13}{'ours/peer':>11}{'above 2':>9}")
    for name, found in list(worst.items())[:SHOWN]:
        ratio, _, case, mine, peer = found[0]
        many = sum(row[0] > 2 for row in found)
        print(f"{name[: width - 2]:<{width}}{case:<22}{mine * 1e6:>9.0f} us{peer * 1e6:>10.0f} us{ratio:>11.2f}{many:>9}")
    mean = math.exp(sum(math.log(r[0]) for r in rows) / len(rows)) if rows else math.nan
    print(f"geometric mean of {len(rows)}: {mean:.2f}; {sum(r[0] > 2 for r in rows)} take more than twice the peer's time")


def main(torch: str | None, only: list[str] | None, blocks: int) -> None:
    names = [n for n, args in schemas() if args[0]["type"] == "Tensor" and (not only or any(part in n for part in only))]
    show(beside(__file__, torch, names, blocks), 32)


if __name__ == "__main__":
    work(sys.argv[1])
