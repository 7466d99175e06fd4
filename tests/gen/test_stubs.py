"""The generated stubs hold every operator in every form, name what the module names, and satisfy a type checker."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import strata

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from gen import model  # noqa: E402
from gen.stubs import name_of  # noqa: E402

ENTRIES = [e for e in model.load(ROOT / "ops")[0] if not e.derived and e.row.python]
PACKAGE = Path(strata.__file__).parent


@cache
def stub(name: str) -> ast.Module:
    return ast.parse((PACKAGE / f"{name}.pyi").read_text())


def functions(body) -> dict[str, list[ast.FunctionDef]]:
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


@cache
def base() -> ast.ClassDef:
    return next(n for n in stub("_C").body if isinstance(n, ast.ClassDef) and n.name == "TensorBase")


def parameters(f: ast.FunctionDef) -> list[tuple[str, bool]]:
    """Names, and whether each has a default."""
    a = f.args
    plain = [*a.posonlyargs, *a.args]
    found = [(p.arg, i >= len(plain) - len(a.defaults)) for i, p in enumerate(plain)]
    return found + [(p.arg, d is not None) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]


def by_hand() -> set[str]:
    """Functions and attributes that hand-written code gives in place of the table's."""
    names = {*strata.functional.__all__, *" ".join(strata._NAMES.values()).split()}
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    names |= {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    hand = ast.parse((ROOT / "python/bind/_C.pyi").read_text())
    cls = next(n for n in hand.body if isinstance(n, ast.ClassDef) and n.name == "TensorBase")
    return names | {n.name for n in cls.body if isinstance(n, ast.FunctionDef)} | {
        n.target.id for n in cls.body if isinstance(n, ast.AnnAssign)}


@pytest.mark.parametrize("family", sorted({e.family for e in ENTRIES}))
def test_every_form_is_there(family):
    free, methods, skip = functions(stub("__init__").body), functions(base().body), by_hand()
    for e in (e for e in ENTRIES if e.family == family):
        for kind, s in e.operators():
            for place, there in ((free, e.functions), (methods, e.methods and kind != "out")):
                if not there or s.name in skip:
                    continue
                method = place is methods
                written = {a.name for a in s.args if a.written} if kind == "out" else set()
                want = [(("self" if method else "input") if i == 0 and a.name == "self" else name_of(a), a.default is not None)
                        for i, a in enumerate(s.args) if a.name not in written]
                if kind == "out":
                    want.append(("out", True))
                found = [parameters(f) for f in place.get(s.name, [])]
                fits = [p for p in found if p[: len(want)] == want or [x for x in p if x[0] != "out"] == want
                        or [x for x in p if x in want] == want]
                assert fits, f"{s.full} ({kind}, {'method' if method else 'function'}): expected {want}, the stub has {found}"


def test_names_are_those_of_the_module():
    module = {n for n in vars(strata._C) if not n.startswith("_")}
    tree = stub("_C")
    named = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    named |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    named |= {a.asname or a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert not module - named, f"python/bind/_C.pyi lacks {sorted(module - named)}"
    gone = {n for n in named if not n.startswith("_") and n not in module}
    assert gone <= {"Any", "Callable", "Iterator", "ModuleType", "NamedTuple", "Number", "Sequence", "Tensor", "TracebackType",
                    "Union", "overload"}, f"python/bind/_C.pyi names {sorted(gone)}, which the module has not"
    own = {n for n in vars(strata._C.TensorBase) if not re.fullmatch(r"__(new|doc|module|dict|setattr|delattr)__", n)}
    members = set(functions(base().body)) | {n.target.id for n in base().body if isinstance(n, ast.AnnAssign)}
    hidden = {"__lt__", "__init__"}
    assert not own - members, f"python/bind/_C.pyi: TensorBase lacks {sorted(own - members)}"
    assert not members - own - hidden, f"python/bind/_C.pyi: TensorBase has no {sorted(members - own - hidden)}"


def test_public_names_are_those_of_the_package():
    tree = stub("__init__")
    named = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    named |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    named |= {a.asname for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}
    absent = [n for n in sorted(named) if not hasattr(strata, n)]
    assert not absent, f"the stub names {absent}, which the package has not"
    lacking = [n for n in vars(strata._C._functions) if not n.startswith("_") and n not in named]
    assert not lacking, f"the stub lacks {lacking}"
    assert (PACKAGE / "py.typed").exists()


PROGRAM = '''
import strata as torch

a: torch.Tensor = torch.ones(2, 3, requires_grad=True)
b: torch.Tensor = torch.add(a, 1, alpha=2) * 3 - a.sum(0, keepdim=True)
values: torch.Tensor = torch.max(b, 1).values
parts: "tuple[torch.Tensor, ...]" = b.view(3, 2).add_(1).split(2)
torch.mul(a, b, out=b)
torch.zeros((2, 3), dtype=torch.float64, device="cpu")
torch.zeros("x")  # error
a.add(1, beta=3)  # error
a.summ()  # error
torch.mul(a, b, out=3)  # error
'''


def test_a_type_checker_reads_them(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary", "--hide-error-context",
         "--cache-dir", str(tmp_path / "cache"), str(PACKAGE / "__init__.pyi"), str(PACKAGE / "_C.pyi"), str(program)],
        cwd=tmp_path, capture_output=True, text=True, env={"MYPYPATH": str(PACKAGE.parent), "PATH": "/usr/bin:/bin"})
    assert not run.stderr, run.stderr
    wrong = [i for i, line in enumerate(PROGRAM.splitlines(), 1) if "# error" in line]
    errors = [line for line in run.stdout.splitlines() if ": error:" in line]
    elsewhere = [line for line in errors if not line.startswith("program.py:")]
    assert not elsewhere, "\n".join(elsewhere[:20])
    assert {int(line.split(":")[1]) for line in errors} == set(wrong), run.stdout
