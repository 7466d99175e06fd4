"""The keys of the table: what is refused, with which words, and the tables of docs/add-an-operator.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from gen import arg_types, keys, model  # noqa: E402
from gen.rows import Operand, typed  # noqa: E402
from gen.rows import keys as keys_of  # noqa: E402

SCHEMA = "probe(Tensor self, int dim) -> Tensor"
SPACE = {"op": SCHEMA, "space": "self", "inputs": "self[p..]", "outputs": "result[p..]", "dtypes": "all", "shape": "same(self)", "doc": "For tests."}
CPU = {"op": SCHEMA, "cpu": "probe", "doc": "For tests.", "order": "none"}


def refused(text: str, raw: dict) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        model.make_entry(raw, "probe", 7)


@pytest.mark.parametrize(("text", "more"), [
    ("unknown key 'dtype'; did you mean 'dtypes'?", {"dtype": "float"}),
    ("unknown key 'colour'; the keys are op, compute", {"colour": "red"}),
    ("inplace: expected true or false, got 'yes'", {"inplace": "yes"}),
    ("node_edges: expected an integer, got True", {"node_edges": True}),
    ("doc: expected a text, got ['a']", {"doc": ["a"]}),
    ("fixed: expected a mapping {name: text}, got 'mask'", {"fixed": "mask"}),
    ("out: expected true or false, or a text, got {}", {"out": {}}),
    ("variants: expected some of function, method, got 'static'", {"variants": "function static"}),
    ("promote: expected one of common, float, first, sum, floating, got 'double'", {"promote": "double"}),
    ("dtypes: expected some of bool, int, float", {"dtypes": "float128"}),
    ("outputs: expected operands written name, name:dtype or name[dim,dim..]:dtype, which 'a-b' is not", {"outputs": "a-b"}),
    ("over: expected in an entry with space, got one with compute", {"over": "k"}),
    ("reason: expected in an entry with cpu, composite, got one with compute", {"reason": "it is so"}),
    ("grad is `parts` where a plan's derivative is that of what it calls", {"grad": "parts"}),
    ("expected exactly one of compute, rows", {"view": "probe"}),
])
def test_refuses(text, more):
    refused(text, {"op": SCHEMA, "compute": "self", "doc": "For tests.", **more})


def test_refuses_what_lacks():
    refused("doc: expected this key, got op, compute", {"op": SCHEMA, "compute": "self"})
    refused("expected exactly one of compute, rows", {"op": SCHEMA, "doc": "For tests."})
    refused("check: of entries with cpu or plan only those that have a shape rule", {**CPU, "check": "refuse(true)"})


def test_contributions_meet_in_an_order():
    refused("order: expected a text, or `none` where no floating contributions meet", {k: v for k, v in CPU.items() if k != "order"})
    refused("order: expected none of what neither has `over` nor adds up, got tree", {**SPACE, "order": "tree"})
    refused("order: expected tree or sequence of `over`, got none", {**SPACE, "space": "sum(self)", "over": "k"})
    refused("order: expected chains of `over`, got tree", {**SPACE, "space": "sum_products(self, self)", "over": "k", "order": "tree"})
    refused("order: expected chains or sequence of sum_into, got none", {**SPACE, "space": "sum_into(result[p], self)", "starts": 0})
    model.make_entry({**SPACE, "space": "sum_into(result[p], self)", "starts": 0, "order": "chains; from the first"}, "probe", 7)


def test_types():
    row = typed(keys.OpRow, {**SPACE, "inputs": "self[p..,n] index[p..]:int64", "starts": 0, "out_args": ["a", "b"]})
    assert row.inputs == (Operand("self", ("p..", "n")), Operand("index", ("p..",), ("int64",)))
    assert [str(o) for o in row.inputs] == ["self[p..,n]", "index[p..]:int64"]
    assert (row.starts, row.out_args, row.outputs[0].fixed_dims, row.strides) == ("0", ("a", "b"), -1, "contiguous")
    assert row.body == "space" and row.text == "self" and "strides" not in row.said


def test_an_error_has_its_line(tmp_path):
    (tmp_path / "probe.yaml").write_text("# A family.\n- op: f(Tensor self) -> Tensor\n  compute: self\n  inplace: maybe\n  doc: For tests.\n")
    with pytest.raises(SystemExit, match=r"ops/probe.yaml:2: f\(Tensor self\) -> Tensor: inplace: expected true or false, got 'maybe'"):
        model.load(tmp_path)
    (tmp_path / "other.yaml").write_text("- formula: f(Tensor t) -> Tensor\n  texts: t\n")
    with pytest.raises(SystemExit, match=r"ops/other.yaml:1: f\(Tensor t\) -> Tensor: unknown key 'texts'; did you mean 'text'"):
        model.definitions(tmp_path)


@pytest.mark.parametrize(("more", "text"), [
    ("\n  op: probe(Tensor(a!) self) -> Tensor(a!)", "probe: expected a name that ends with _, or the key `functional`, of an entry that writes"),
    ("\n  op: probe_(Tensor(a!) self) -> Tensor(a!)\n  functional: none", "functional: expected a reason, as in `none; it changes a header`, got 'none'"),
    ("\n  op: probe(Tensor self) -> Tensor\n  functional: other", "functional: expected in an entry that writes an argument"),
    ("\n  op: probe_(Tensor(a!) self, Tensor(b!) other) -> Tensor(b!)", "expected its results to be the first arguments that it writes"),
])
def test_functional_twins(tmp_path, more, text):
    (tmp_path / "probe.yaml").write_text(f"-{more.removeprefix(chr(10) + ' ')}\n  cpu: probe\n  order: none\n  out: false\n  doc: For tests.\n")
    with pytest.raises(SystemExit, match=re.escape(text)):
        model.load(tmp_path)


def test_schemas_of_functional_twins():
    def twin(op, **more):
        return model.make_entry({"op": op, "cpu": "probe", "doc": "For tests.", "order": "none", "out": False, **more}, "probe", 7).twin_schema().text()

    assert twin("f_.x(Tensor(a!) self, int n=1, *, Generator? g=None) -> Tensor(a!)") == "aten::f.x(Tensor self, int n=1, *, Generator? g=None) -> Tensor"
    assert twin("f_(Tensor(a!)[] self, Tensor[] other) -> ()", functional="g.y") == "aten::g.y(Tensor[] self, Tensor[] other) -> Tensor[]"
    assert twin("f_(Tensor(a!)[] self, Tensor(b!) found) -> ()") == "aten::f(Tensor[] self, Tensor found) -> (Tensor[] self_out, Tensor found_out)"
    assert twin("f_(Tensor(a!) self, Tensor(b!) n, Tensor o) -> Tensor(a!)") == "aten::f(Tensor self, Tensor n, Tensor o) -> (Tensor, Tensor n_out)"


def test_types_of_arguments(tmp_path, monkeypatch):
    assert all(a.type in arg_types.TYPES and arg_types.TYPES[a.key].value for e in model.load(ROOT / "ops")[0] for a in e.schema.args
               if a.type == a.key)
    row = "- type: Tensor\n  parameter: const Tensor&\n  value: Tensor\n  stub: Tensor\n"
    for name, text, said in [("twice", row + row, "types.yaml:5: the type Tensor stands there twice"),
                             ("lacks", row.replace("  value: Tensor\n", ""), "types.yaml:1: Tensor: value: expected this key")]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "types.yaml").write_text(text)
        monkeypatch.setattr(arg_types, "PATH", tmp_path / name / "types.yaml")
        with pytest.raises(SystemExit, match=said):
            arg_types.load()


def test_the_page_has_the_tables():
    text = (ROOT / "docs/add-an-operator.md").read_text()
    assert keys.pages(text) == text, "`python -m gen.keys` writes them"
    shown = set(re.findall(r"^\| `(\w+)` \|", text, re.M))
    assert {name for row in (keys.OpRow, keys.KernelRow) for name in keys_of(row)} <= shown
