"""Saved programs: damaged files raise, in Python and in C++; nests and extra files come back."""

from __future__ import annotations

import dataclasses
import io
import os
import subprocess
import zipfile
from pathlib import Path

import pytest
import strata
from export_models import Branch, Nests, Pair
from strata import _C, nn

RUN = Path(os.path.realpath(_C.__file__)).parent / "strata_run"


def packed(module, args, **more) -> bytes:
    out = io.BytesIO()
    strata.export.save(strata.export.export(module, args), out, **more)
    return out.getvalue()


def rewritten(whole: bytes, name: str, change) -> bytes:
    """The archive with another entry of that name, whose checksum is right."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            new.writestr(info.filename, change(content) if info.filename == name else content)
    return out.getvalue()


@pytest.fixture(scope="module")
def program() -> bytes:
    strata.manual_seed(0)
    return packed(Branch(), (strata.randn(2, 4),))


def fails(content: bytes) -> str:
    with pytest.raises((RuntimeError, ValueError)) as error:
        strata.export.load(io.BytesIO(content))
    return str(error.value)


def test_damaged_files_are_errors(program: bytes, tmp_path: Path) -> None:
    path = tmp_path / "p.pt2"
    import numpy as np

    np.save(tmp_path / "x.npy", np.zeros((2, 4), np.float32))
    for k, at in enumerate(range(0, len(program), len(program) // 24)):
        for content in (program[:at], program[:at] + bytes([program[at] ^ 0x55]) + program[at + 1 :]):
            try:
                strata.export.load(io.BytesIO(content))
            except (RuntimeError, ValueError):
                pass
            if k % 6:
                continue
            path.write_bytes(content)
            done = subprocess.run([RUN, path, tmp_path / "x.npy", "--out", tmp_path / "o"], capture_output=True, text=True, check=False)
            assert done.returncode in (0, 1), done
    fails(program[: len(program) // 2])
    assert "another version" in fails(rewritten(program, "archive_version", lambda c: b"7"))
    assert "expected a program of strata.export.save" in fails(rewritten(program, "archive_format", lambda c: b"pt2"))
    assert "line " in fails(rewritten(program, "models/model.graph", lambda c: c.replace(b"aten::relu", b"aten::rulu")))
    for old, new in ((b'"tensor"', b'"tensors"'), (b'"x"', b'"x y"'), (b"yes.weight", b'a\\" + x'), (b"true", b"1"), (b"[", b"{"), (b"float32", b"int64")):
        fails(rewritten(program, "models/model.json", lambda c, old=old, new=new: c.replace(old, new)))


def test_nests_of_every_kind_come_back(tmp_path: Path) -> None:
    args = {"x": strata.randn(3), "y": strata.randn(2)}, Pair(strata.randn(3), strata.randn(1))
    loaded = strata.export.load(io.BytesIO(packed(Nests(), args, extra_files={"note": "seen"})))
    got = loaded.module()(*args)
    assert type(got["pair"]) is Pair
    assert got["n"] == 3
    extra = {"note": ""}
    strata.export.load(io.BytesIO(packed(Nests(), args, extra_files={"note": "seen"})), extra_files=extra)
    assert extra == {"note": "seen"}
    example, keywords = loaded.example_inputs
    assert strata.equal(example[1].b, args[1].b)
    assert keywords == {}


@dataclasses.dataclass
class Both:
    left: strata.Tensor
    right: strata.Tensor


class Swap(nn.Module):
    def forward(self, both):
        return Both(both.right, both.left * 2)


def test_dataclasses_are_nests_once_they_are_registered() -> None:
    value = Both(strata.ones(2), strata.zeros(3))
    with pytest.raises(TypeError, match="result 0 is a Both"):
        strata.export.export(Swap(), (value,))
    strata.export.register_dataclass(Both, serialized_type_name="tests.Both")
    got = strata.export.load(io.BytesIO(packed(Swap(), (value,)))).module()(value)
    assert type(got) is Both
    assert got.right.tolist() == [2, 2]
    with pytest.raises(ValueError, match="already registered"):
        strata.export.register_dataclass(Both)
    with pytest.raises(ValueError, match="Only dataclasses"):
        strata.export.register_dataclass(int)
    strange = rewritten(packed(Swap(), (value,)), "models/model.json", lambda c: c.replace(b"tests.Both", b"os.system"))
    assert "register_dataclass with it first" in fails(strange)


def test_what_is_no_program_is_not_saved() -> None:
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram'"):
        strata.export.save(nn.Linear(2, 2), io.BytesIO())
