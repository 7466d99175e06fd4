"""The rules that keep the house in order; `./run lint` runs them all and prints what breaks them.

Checks: file sizes, include order by layer, headers of operators by family, device words in the core,
references to notes and from pages, names in texts, who asks for memory, circles of imports, clang-format, ruff.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ["base", "core", "dispatch", "dist", "run", "vendor", "ops", "compose", "grad", "io", "ir", "jit", "device", "lower", "nn", "optim",
          "serve"]
MAX_LINES = 500
CODE = {".cpp", ".h", ".c", ".py", ".yaml", ".expr", ".md", ".txt"}
# What callers of kernels may read of lower/: the interface of printed kernels, no generator.
ALLOWED = {(layer, f"lower/{name}.h") for layer in ("run", "ops") for name in ("kernel_abi", "registry")}
# The layers that generated headers belong to, by how their names under strata/generated/ begin: declarations of operators are
# dispatch's, kernels, formulas and the C++ that entries name are declared for run/ and what stands on it.
# Public headers outside of the SDK are of the library for programs in C++.
GENERATED = {"strata/sdk/": "base", "strata/optim/": "optim", **dict.fromkeys(("strata/nn/", "strata/data/", "strata/autograd.h", "strata/files.h", "strata/graph.h", "strata/tensors.h"), "nn"), "tensor_methods": "core", "op_info": "dispatch", "arg_types": "dispatch", "ops/": "dispatch", "handles/": "dispatch", "kernel_": "run", "formulas": "run", "by_hand/": "run"}
# Layers that print texts themselves.
PRINTS = {"jit", "device"}
# lower/ stands beside the layers: it may use these only.
LOWER_MAY = {"base", "core", "lower"}


# What may ask whether a tensor has memory: where launches begin, reads of values on the host, records of autograd, the choice of
# a device's kernels, files, observers of launches. Those that make results or launch kernels ask by the functions of run/launch.h and core/tensor.h.
MEMORY_KNOWN = {"run/launch.h", "run/launch.cpp", "run/formulas.cpp", "run/index_args.cpp", "grad/engine/node.h", "dispatch/operator.cpp",
                "io/safetensors.cpp", "run/observe.h", "jit/compile/launches.cpp", "jit/compiled.cpp", "device/operators.cpp", "device/twins.cpp"}
LAUNCHES = {"run/copy.cpp", "run/launches.cpp", "run/pointwise.cpp", "run/random.cpp", "run/rows.cpp", "run/prepare.cpp",
            "run/prepare.h"}

# Packages whose modules import each other in one direction, imports inside of functions included.
ONE_WAY = ("python/strata/_bytecode",)


def tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / n for n in names.split("\0") if n and (ROOT / n).exists()]


def sizes(files: list[Path]) -> list[str]:
    found = []
    for f in files:
        if f.suffix in CODE and "tests/data" not in str(f):
            n = len(f.read_text(errors="replace").splitlines())
            if n > MAX_LINES:
                found.append(f"{f.relative_to(ROOT)}: {n} lines; the limit is {MAX_LINES}: split it by family")
    return found


def layers(files: list[Path]) -> list[str]:
    found = []
    for f in files:
        parts = f.relative_to(ROOT).parts
        if parts[0] != "src" or f.suffix not in (".cpp", ".h") or len(parts) < 3:
            continue
        layer = parts[1]
        for i, line in enumerate(f.read_text().splitlines(), 1):
            match = re.match(r'#include "((\w+)/[^"]+)"', line)
            if not match or match.group(2) not in [*LAYERS, "strata"]:
                continue
            target = match.group(2)
            if target == "strata":
                made = match.group(1).removeprefix("strata/generated/")
                target = next((layer for start, layer in GENERATED.items() if made.startswith(start)), "serve")
            if (layer, match.group(1)) in ALLOWED:
                continue
            if layer == "lower":
                fine = target in LOWER_MAY
            else:
                fine = LAYERS.index(target) <= LAYERS.index(layer) and target != "lower" or target == layer or target == "lower" and layer in PRINTS
            if not fine:
                found.append(f"{f.relative_to(ROOT)}:{i}: {layer}/ may not include {match.group(1)}")
    return found


def operator_headers(files: list[Path]) -> list[str]:
    """The library includes the headers of families: one with all operators would build it anew for each new one."""
    found = []
    for f in files:
        if f.relative_to(ROOT).parts[0] in ("src", "python") and f.suffix in (".cpp", ".h"):
            for i, line in enumerate(f.read_text().splitlines(), 1):
                if m := re.match(r'#include "strata/generated/(ops|handles)\.h"', line):
                    found.append(f"{f.relative_to(ROOT)}:{i}: include strata/generated/{m.group(1)}/<family>.h instead")
    return found


def device_words(files: list[Path]) -> list[str]:
    data = json.loads((ROOT / "ops/device_words.json").read_text())
    words = data["lint_words"]
    pattern = re.compile(r"(?<![A-Za-z0-9])(" + "|".join(map(re.escape, words)) + r")(?![a-z0-9])", re.I)
    found = []
    for f in files:
        if f.relative_to(ROOT).parts[0] not in ("include", "src", "python") or f.suffix not in CODE | {".pyi"}:
            continue
        for i, line in enumerate(f.read_text(errors="replace").splitlines(), 1):
            if m := pattern.search(line):
                found.append(f"{f.relative_to(ROOT)}:{i}: the device word {m.group(0)!r}; the core knows the CPU only")
    return found


def notes(files: list[Path]) -> list[str]:
    """References to `Note [Name]` lead to a heading of docs/notes.md, and code refers to every note."""
    known = set(re.findall(r"^## Note \[(.+?)\]", (ROOT / "docs/notes.md").read_text(), re.M))
    found, used = [], set()
    for f in files:
        folder = f.relative_to(ROOT).parts[0]
        if f.suffix not in CODE or folder in ("tests", "tools"):
            continue
        text = f.read_text(errors="replace")
        for m in re.finditer(r"(?<!`)Note[\s/#]+\[([^]]+)\]", text):  # a comment may break the line there
            if m[1] not in known:
                found.append(f"{f.relative_to(ROOT)}:{text.count(chr(10), 0, m.start()) + 1}: no Note [{m[1]}] in docs/notes.md")
            if folder != "docs":
                used.add(m[1])
    return found + [f"docs/notes.md: Note [{name}]: no code refers to it" for name in sorted(known - used)]


def pages(files: list[Path]) -> list[str]:
    """What pages name is there: `src/run/rows.cpp`, and with `src/run/rows.cpp: rows` a word of that file."""
    reference = re.compile(r"`((?:bench|docs|examples|gen|ops|plugins|python|src|tests|tools)/[\w./-]+)(?:: ([\w ]+))?`")
    found = []
    for f in files:
        if f.suffix != ".md":
            continue
        for i, line in enumerate(f.read_text().splitlines(), 1):
            for path, names in reference.findall(line):
                place = f"{f.relative_to(ROOT)}:{i}"
                if not (ROOT / path).exists():
                    found.append(f"{place}: there is no {path}")
                elif names:
                    words = set(re.findall(r"\w+", (ROOT / path).read_text()))
                    found += [f"{place}: {path} has no {name}" for name in names.split() if name not in words]
    return found


def texts(files: list[Path]) -> list[str]:
    """Texts name the function alone, or strata: users may have imported it under any name. Files of PyTorch's are its."""
    pattern = re.compile(r'"[^"\n]*(?<![\w.])torch\.(?!save\b|load\b)(?:[a-z_]+[^"\n]*)?"')
    found = []
    for f in files:
        parts = f.relative_to(ROOT).parts
        ours = parts[0] in ("src", "python") and parts[:2] != ("src", "io") and not f.name.startswith(("_pt_", "_as_torch"))
        if not ours or f.suffix not in (".cpp", ".h", ".py"):
            continue
        for i, line in enumerate(f.read_text().splitlines(), 1):
            if m := pattern.search(line.partition("//")[0] if f.suffix != ".py" else line):
                found.append(f"{f.relative_to(ROOT)}:{i}: {m.group(0)} speaks of torch; name the function alone")
    return found


def memory(files: list[Path]) -> list[str]:
    """Kernels do not ask whether a tensor has memory: generated code prepares their results and calls them where there is some."""
    asks = re.compile(r"\bis_meta\b")
    launches = re.compile(r"\b(to_fill|filled_by|shape_only)\(")
    found = []
    for f in files:
        name = str(f.relative_to(ROOT))
        if not name.startswith("src/") or name.startswith("src/core/") or f.suffix not in (".cpp", ".h"):
            continue
        for i, line in enumerate(f.read_text().splitlines(), 1):
            for pattern, may in ((asks, MEMORY_KNOWN), (launches, MEMORY_KNOWN | LAUNCHES)):
                if (m := pattern.search(line)) and name.removeprefix("src/") not in may:
                    found.append(f"{name}:{i}: {m.group(0).rstrip('(')}: give the entry a shape rule (docs/add-an-operator.md), so that "
                                 "only what has memory comes here")
    return found


def test_names(files: list[Path]) -> list[str]:
    """pytest imports test files by name: two of one name can't be collected together."""
    seen: dict[str, Path] = {}
    found = []
    for f in sorted(files):
        if f.name.startswith("test_") and f.suffix == ".py" and f != seen.setdefault(f.name, f):
            found.append(f"{f.relative_to(ROOT)}: {seen[f.name].relative_to(ROOT)} has that name, too")
    return found


def circles(files: list[Path]) -> list[str]:
    found = []
    for package in ONE_WAY:
        reads = {f.stem: siblings(f) for f in files if f.parent == ROOT / package and f.suffix == ".py"}
        while leaves := [name for name, of in reads.items() if not of & reads.keys()]:
            for name in leaves:
                del reads[name]
        found += [f"{package}/{name}.py: in a circle of imports, or over one: {', '.join(sorted(of & reads.keys()))}" for name, of in reads.items()]
    return found


def siblings(f: Path) -> set[str]:
    """The modules of its package that a module imports, those for checkers of types apart."""
    found: set[str] = set()
    nodes: list[ast.AST] = [ast.parse(f.read_text())]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {node.module.partition(".")[0]} if node.module else {name.name for name in node.names}
    return found


def formatting(files: list[Path]) -> list[str]:
    sources = [str(f) for f in files if f.suffix in (".cpp", ".h") and "third_party" not in str(f)]
    found = []
    for at in range(0, len(sources), 40):
        run = subprocess.run(["clang-format-19", "--dry-run", *sources[at : at + 40]], cwd=ROOT, capture_output=True, text=True)
        names = sorted({line.split(":")[0] for line in run.stderr.splitlines() if "warning:" in line or "error:" in line})
        found += [f"{Path(n).relative_to(ROOT)}: not as clang-format-19 has it (run ./run lint --fix)" for n in names]
    return found


def ruff() -> list[str]:
    run = subprocess.run([sys.executable, "-m", "ruff", "check", "--quiet", "--output-format=concise", "."], cwd=ROOT,
                         capture_output=True, text=True)
    return [line for line in run.stdout.splitlines() if line.strip()]


def fix(files: list[Path]) -> None:
    sources = [str(f) for f in files if f.suffix in (".cpp", ".h")]
    subprocess.run(["clang-format-19", "-i", *sources], cwd=ROOT, check=True)
    subprocess.run([sys.executable, "-m", "ruff", "check", "--fix", "--quiet", "."], cwd=ROOT, check=False)


def main() -> int:
    files = tracked()
    if "--fix" in sys.argv:
        fix(files)
    failed = 0
    checks = {
        "file sizes": sizes(files),
        "layer order": layers(files),
        "operator headers": operator_headers(files),
        "device words": device_words(files),
        "notes": notes(files),
        "pages": pages(files),
        "texts": texts(files),
        "memory": memory(files),
        "names of tests": test_names(files),
        "circles of imports": circles(files),
        "clang-format": formatting(files),
        "ruff": ruff(),
    }
    for name, found in checks.items():
        print(f"{name}: {'ok' if not found else f'{len(found)} to mend'}")
        for line in found[:40]:
            print("  " + line)
        failed += bool(found)
    print(f"lint: {len(checks) - failed} checks passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
