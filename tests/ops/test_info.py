"""What strata.ops.info gives: for every operator of the table what the table says, functional twins that exist, and its words."""

from __future__ import annotations

import re

import pytest
from table import ROOT, strata

from gen import info_cpp, model
from gen.formula_table import Table

ENTRIES, KERNELS = model.load(ROOT / "ops")
Table(ENTRIES, model.definitions(ROOT / "ops"), KERNELS)  # finds what texts over tensors call


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.schema.full)
def test_says_what_the_table_says(entry):
    said = info_cpp.values(entry)
    for form, schema in entry.operators():
        found = strata.ops.info(schema.full)
        assert (found.name, found.schema) == (schema.full, schema.text())
        assert {name: getattr(found, name) for name in info_cpp.FIELDS} == {name: said.get(name, "") for name in info_cpp.FIELDS}
        assert found.derivatives == info_cpp.derivatives(entry)
        assert found.source.startswith(f"ops/{entry.family}.yaml:{entry.line}: ")
        if form != "function":
            assert found.twin == entry.schema.full
        elif not entry.writes_self:
            assert found.twin is None
        if found.twin:
            assert not strata.ops.get(found.twin)._schema.is_mutable


def test_declares_its_fields():
    assert list(strata.ops.OpInfo.__annotations__) == ["name", "schema", *info_cpp.FIELDS, "derivatives", "twin"]


def test_every_operator_of_the_package_is_of_the_table():
    known = {s.full for e in ENTRIES for _, s in e.forms()}
    assert {name for name in strata.ops.names() if name.startswith(("aten::", "strata::"))} >= known
    for name in known:
        strata.ops.info(name)


def test_views_say_what_puts_them_back():
    for e in ENTRIES:
        if e.kind == "view":
            inverse = strata.ops.info(e.schema.full).inverse
            assert not inverse or strata.ops.aten.__getattr__(inverse).overloads()


def test_shows_what_the_docs_show():
    text = (ROOT / "docs/architecture.md").read_text()
    shown = re.search(r"```\n>>> strata.ops.info\((.*?)\)\n(.*?)```", text, re.S)
    assert re.sub(r"yaml:\d+", "yaml:N", repr(strata.ops.info(eval(shown[1])))) == re.sub(r"yaml:\d+", "yaml:N", shown[2])


def test_takes_operators_and_names():
    assert strata.ops.info(strata.ops.aten.add.Tensor).name == strata.ops.info("add.Tensor").name == "aten::add.Tensor"
    assert strata.ops.info("dot").kind == strata.ops.info(strata.dot).kind
    assert strata.ops.info("aten::copy_").twin is None or strata.ops.get(strata.ops.info("aten::copy_").twin)


@pytest.mark.parametrize(("name", "kind", "words"), [
    ("aten::ad.Tensor", RuntimeError, "got aten::ad.Tensor; did you mean one of .*aten::add.Tensor"),
    ("aten::add.Tenser", RuntimeError, "did you mean one of .*aten::add.Tensor aten::add.out"),
    ("aten::nothing_of_the_kind", RuntimeError, "see strata.ops.names()"),
    ("aten::add", ValueError, "expected one operator, but aten::add has the overloads aten::add.Tensor"),
])
def test_refuses(name, kind, words):
    with pytest.raises(kind, match=words):
        strata.ops.info(name)


def test_operators_outside_of_the_table():
    library = strata.library.Library("probe_info", "DEF")
    library.define("one(Tensor self) -> Tensor")
    with pytest.raises(ValueError, match="expected an operator of the table, got probe_info::one, which was defined outside of it"):
        strata.ops.info("probe_info::one")
