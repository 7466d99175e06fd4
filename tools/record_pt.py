"""Writes tests/data/io/*.pt and recorded.json: files of torch.save and what torch.load makes of them.

Run it with a Python that has PyTorch: python tools/record_pt.py. The cases are those of tests/python/pt_cases.py.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import zipfile
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "tests/data/io"
sys.path.insert(0, str(ROOT / "tests/python"))
cases = importlib.import_module("pt_cases")


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    lines = [f'"by": "tools/record_pt.py with torch {torch.__version__}"']
    for name, (make, options) in cases.LOADED.items():
        path = OUT / f"{name}.pt"
        torch.save(make(torch), path, **options)
        found = cases.describe(torch.load(path, weights_only=False))  # bytes and frozenset need it
        lines.append(f"{json.dumps(name)}: {json.dumps(found)}")
    for name, (make, options, _) in cases.REFUSED.items():
        torch.save(make(torch), OUT / f"{name}.pt", **options)
    torch.save(cases.whole(torch), OUT / "whole.pt")
    found = cases.run_whole(torch, torch.load(OUT / "whole.pt", weights_only=False))
    lines.append(f'"whole": {json.dumps(found)}')
    torch.save(torch.eye(2).to_sparse(), OUT / "sparse.pt")
    torch.save({"a": torch.ones(2), "b": torch.arange(3)}, OUT / "legacy.pt", _use_new_zipfile_serialization=False)
    lazy, other = torch.tensor([1 + 2j, 3 - 1j]).conj(), torch.tensor([1 + 2j, 3 - 1j]).conj()
    matrix = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    for prefix, options in (("", {}), ("legacy_", {"_use_new_zipfile_serialization": False})):
        torch.save([lazy, other.imag, torch.ones(2)], OUT / f"{prefix}conj.pt", **options)
        torch.save([matrix.to_sparse(), matrix.to_sparse_csr(), matrix], OUT / f"{prefix}sparse_layouts.pt", **options)
    torch.save([torch.ones(1).untyped_storage(), torch.ones(2).storage(), torch.Tensor, torch.float32], OUT / "storages.pt")
    torch.save([torch.strided, torch.contiguous_format, torch.channels_last], OUT / "formats4.pt", pickle_protocol=4)
    # The same content, packed by another program.
    with zipfile.ZipFile(OUT / "training.pt") as old, zipfile.ZipFile(OUT / "deflated.pt", "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.infolist():
            new.writestr(item.filename, old.read(item))
    (OUT / "recorded.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sizes = sorted((path.stat().st_size, path.name) for path in OUT.iterdir())
    print(f"{OUT}: {len(sizes)} files, {sum(size for size, _ in sizes) >> 10} KiB, the largest {sizes[-1]}")


if __name__ == "__main__":
    main()
