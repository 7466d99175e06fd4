"""Records what PyTorch's export gives: writes tests/data/export.json, which tests/export/test_export_recorded.py compares with.

Run with a Python that has torch: `python tools/record_export.py [out.json]`. The modules are those of
tests/export/export_models.py, executed with torch in the place of strata.
"""

import json
import sys
import warnings
from pathlib import Path

import torch
import torch.export

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/export"))
torch.while_loop = torch._higher_order_ops.while_loop
for name in ("", ".nn", ".nn.functional"):
    sys.modules["strata" + name] = sys.modules["torch" + name]
from export_models import cases, recorded  # noqa: E402


def main():
    warnings.simplefilter("ignore")
    found = {name: recorded(torch.export.export(module, example)) for name, (module, example, _) in cases().items()}
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/data/export.json"
    out.write_text(json.dumps(found, indent=0) + "\n")
    print(f"{out}: {len(found)} modules, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
