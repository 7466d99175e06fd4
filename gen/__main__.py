"""`python -m gen OUTDIR [TABLE]`: reads the table, ops/*.yaml unless another folder is named, and writes all that is
generated from it."""

from __future__ import annotations

import sys
from pathlib import Path

from . import (
    arg_types,
    autograd_cpp,
    info_cpp,
    kernels_cpp,
    math_cpp,
    model,
    ops_cpp,
    pages,
    python_cpp,
    reads_cpp,
    stubs,
)
from .emit import Output
from .formula_table import Table


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    out = Output(Path(sys.argv[1]))
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else root / "ops"
    entries, kernels = model.load(folder)
    definitions = model.definitions(folder)
    table = Table(entries, definitions, kernels)
    ops_cpp.write(entries, out)
    info_cpp.write(out)
    arg_types.write(out)
    kernels_cpp.write(entries, kernels, table, out)
    autograd_cpp.write(entries, definitions, table, out)
    python_cpp.write(entries, out)
    reads_cpp.write(entries, out)
    math_cpp.write(root, out)
    stubs.write(entries, root, out)
    pages.write(entries, definitions, out)
    out.write("manifest.txt", "\n".join(sorted(str(p.relative_to(out.folder)) for p in out.written if p.suffix == ".cpp")) + "\n")
    kinds = (".cpp", ".h", ".inc", ".md", ".pyi")
    stale = [p for p in out.folder.rglob("*") if p.is_file() and p.suffix in kinds and p not in out.written]
    for path in stale:
        path.unlink()


main()
