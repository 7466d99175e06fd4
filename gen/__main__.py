"""`python -m gen OUTDIR`: reads ops/*.yaml and writes all that is generated from it."""

from __future__ import annotations

import sys
from pathlib import Path

from . import autograd_cpp, kernels_cpp, math_cpp, model, ops_cpp, python_cpp
from .emit import Output


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    out = Output(Path(sys.argv[1]))
    entries, kernels = model.load(root / "ops")
    ops_cpp.write(entries, out)
    kernels_cpp.write(entries, kernels, out)
    autograd_cpp.write(entries, out)
    python_cpp.write(entries, out)
    math_cpp.write(root, out)
    out.write("manifest.txt", "\n".join(sorted(str(p.relative_to(out.folder)) for p in out.written if p.suffix == ".cpp")) + "\n")
    stale = [p for p in out.folder.rglob("*") if p.is_file() and p.suffix in (".cpp", ".h", ".inc") and p not in out.written]
    for path in stale:
        path.unlink()


main()
