"""Records what PyTorch's fx prints: writes tests/data/fx.json, which tests/python/fx/test_fx_texts.py compares with.

Run with a Python that has torch: `python tools/record_fx.py [out.json]`. The programs are those of
tests/python/fx/fx_programs.py. Functions of torch._C stand in the texts as those of torch that they are.
"""

import json
import re
import sys
import warnings
from pathlib import Path

import torch
import torch.fx.experimental.optimization
import torch.fx.operator_schemas
import torch.fx.passes.infra.partitioner
import torch.fx.passes.operator_support
import torch.fx.passes.shape_prop
import torch.fx.passes.split_module  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/python/fx"))
from fx_programs import PROGRAMS  # noqa: E402


def main():
    warnings.simplefilter("ignore")
    found = {}
    for name, program in PROGRAMS.items():
        found[name] = [re.sub(r"torch\._C\._\w+\.", "torch.", text) for text in program(torch)]
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/data/fx.json"
    out.write_text(json.dumps(found, indent=0) + "\n")
    print(f"{out}: {len(found)} programs, {sum(map(len, found.values()))} texts, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
