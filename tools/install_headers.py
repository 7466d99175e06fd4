"""Copies the headers that programs in C++ see into a prefix: strata/strata.h, the SDK, and what they include.

    install_headers.py --build BUILD --to PREFIX/include

Headers of the layers go into `strata/<layer>/`, with their includes written anew, so that a program needs one folder and no
name of its own clashes; what only the library's own build leaves out of Tensor is in.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PUBLIC = ("strata/strata.h", "strata/function.h", "strata/library.h", "torch/extension.h", "torch/library.h", "torch/torch.h")
INCLUDE = re.compile(r'^(\s*#include [<"])([^">]+)([">])', re.M)


def place(name: str) -> str:
    """Where a header of that name is installed."""
    return name if name.startswith(("strata/", "torch/")) else f"strata/{name}"


def closure(folders: list[Path]) -> dict[str, Path]:
    """The public headers and all of ours that they include, by name."""

    def find(name: str) -> Path | None:
        return next((folder / name for folder in folders if (folder / name).is_file()), None)

    found: dict[str, Path] = {}
    waiting = [*PUBLIC, *(str(p.relative_to(ROOT / "include")) for p in sorted((ROOT / "include/strata/sdk").iterdir()))]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        path = find(name)
        if path is None:
            raise SystemExit(f"install_headers: there is no {name} in {', '.join(map(str, folders))}")
        found[name] = path
        waiting += [m.group(2) for m in INCLUDE.finditer(path.read_text()) if find(m.group(2))]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    args = parser.parse_args()
    headers = closure([ROOT / "include", ROOT / "src", args.build / "gen"])
    for name, path in headers.items():
        text = re.sub(r"^#ifndef STRATA_BUILD\n(.*?)^#endif\n", r"\1", path.read_text(), flags=re.M | re.S)
        text = INCLUDE.sub(lambda m: m.group(1) + (place(m.group(2)) if m.group(2) in headers else m.group(2)) + m.group(3), text)
        to = args.to / place(name)
        to.parent.mkdir(parents=True, exist_ok=True)
        if not to.exists() or to.read_text() != text:
            to.write_text(text)
    print(f"{len(headers)} headers in {args.to}")


if __name__ == "__main__":
    main()
