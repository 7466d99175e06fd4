"""Functions do not change their arguments by the way: `x += y` on a parameter writes a tensor that the caller holds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import strata

FOLDER = Path(strata.__file__).parent
FILES = sorted(p.relative_to(FOLDER) for p in FOLDER.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=str)
def test_no_parameter_is_written_in_place(path):
    found = []
    for function in ast.walk(ast.parse((FOLDER / path).read_text())):
        if not isinstance(function, ast.FunctionDef):
            continue
        names = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
        found += [f"{path}:{n.lineno}: {ast.unparse(n)}" for n in ast.walk(function)
                  if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and n.target.id in names]
    assert not found


def test_tensors_as_indices_stay():
    index = strata.tensor(-1)
    assert strata.utils.data.ConcatDataset([[1, 2], [3]])[index] == 3
    strata.nn.functional.embedding(strata.tensor([0]), strata.ones(5, 2), padding_idx=index)
    assert index.item() == -1
