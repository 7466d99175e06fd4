"""The language of derivatives: what it accepts, what a node saves, which C++ it becomes, and what its errors say."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))
from gen import autograd_cpp, formula, model  # noqa: E402
from gen.formula_expr import NUMBERS  # noqa: E402
from gen.formula_table import Table  # noqa: E402

SCHEMA = "probe(Tensor self, Tensor? bias, int[] dims, int dim, Scalar? limit, str mode, Tensor[] parts) -> Tensor"


@cache
def table() -> Table:
    entries, kernels = model.load(ROOT / "ops")
    return Table(entries, model.definitions(ROOT / "ops"), kernels)


def probe(text: str, schema: str = SCHEMA, key: str = "self", **raw) -> model.Entry:
    entry = model.make_entry({"op": schema, "cpu": "probe", "order": "none", "doc": "For tests.", "grad": {key: text}, **raw}, "probe", 7)
    entry.node = "ProbeBackward0"
    return entry


def code(text: str, **kwargs) -> str:
    return " ".join(autograd_cpp.plan(probe(text, **kwargs), table()).formulas[0].code.value("").split())


@pytest.mark.parametrize(("text", "cpp"), [
    ("grad", "grad"),
    ("-grad * 2", "(ops::neg(grad) * Scalar(2))"),
    ("sum(grad, dim, True)", "ops::sum(grad, OptIntArrayRef(IntArrayRef(IntArrayRef(int64_t(dim)))), true, std::optional<DType>())"),
    ("sum(grad)", "ops::sum(grad, std::optional<DType>())"),
    ("zeros(dims, dtype=bool)", "ops::zeros(dims, DType::Bool, std::optional<Device>())"),
    ("roll(grad, [-d for d in dims], dims)",
     "ops::roll(grad, [&] { DimVec made_; const auto& list0_ = dims; for (size_t i_ = 0; i_ < list0_.size(); ++i_) { const auto& d_ = "
     "list0_[i_]; made_.push_back(formulas::minus(0, d_)); } return made_; }(), dims)"),
    ("pow(grad, 2)", "ops::pow(grad, Scalar(2))"),
    ("masked_fill(grad, grad == 0, 1)", "ops::masked_fill(grad, ops::eq(grad, Scalar(0)), Scalar(1))"),
    ("grad if mode == \"sum\" else grad / 2", '((mode == "sum") ? grad : (grad / Scalar(2)))'),
    ("grad if limit is None else grad * limit", "(!limit.has_value() ? grad : (grad * (*limit)))"),
    ("reshape(grad, dims[1:] + [1] * len(dims))",
     "ops::reshape(grad, formulas::joined(formulas::part(dims, 1, INT64_MAX), DimVec(size_t(int64_t(dims.size())), 1)))"),
    ("linalg_pinv.atol_rtol_tensor(grad)", "ops::linalg_pinv(grad, Tensor(), Tensor(), false)"),
    ("max(grad, dim)[0]", "std::get<0>(ops::max(grad, dim, false))"),
    ("to(grad, self.dtype)", "ops::to(grad, self_dtype, false, false, std::optional<MemoryFormat>())"),
    ("None", "Tensor()"),
])
def test_expressions(text, cpp):
    assert code(text) == cpp


def test_lines_become_a_function():
    made = code("""
total = grad
if len(dims) > 0:
  total = sum(grad, dims)
elif mode == "none":
  return None
half = total * 0.5
half + total""")
    assert made == (
        "[&]() -> Tensor { Tensor total{}; total = grad; if (int64_t(dims.size()) > 0) { total = ops::sum(grad, "
        "OptIntArrayRef(IntArrayRef(dims)), false, std::optional<DType>()); } else { if (mode == \"none\") { return Tensor(); } } "
        "const Tensor half = (total * Scalar(0.5)); return (half + total); }()")


def test_raise():
    assert code('raise ValueError(f"expected 1, got {dims}")') == \
        '[&]() -> Tensor { throw_error(ErrorKind::Value, str_cat("expected 1, got ", dims)); }()'


def saved(text: str, **kwargs):
    """What the node of a formula keeps: tensors, other arguments, results, facts; and what it reads from kept tensors."""
    p = autograd_cpp.plan(probe(text, **kwargs), table())
    return ([a.name for a in p.tensors + p.lists], [a.name for a in p.plain], [n for n, _ in p.results],
            [f.name for f in p.facts if not f.read], [f.name for f in p.facts if f.read])


@pytest.mark.parametrize(("text", "kept"), [
    ("expand(grad, self.shape)", ([], [], [], ["self_sizes"], [])),
    ("grad * self", (["self"], [], [], [], [])),
    ("expand(grad * self, self.shape)", (["self"], [], [], [], ["self_sizes"])),
    ("as_strided(grad * self, dims, self.strides)", (["self"], ["dims"], [], ["self_strides"], [])),
    ("grad * result", ([], [], ["result"], [], [])),
    ("to(grad, result.dtype)", ([], [], [], ["result_dtype"], [])),
    ("grad if bias is None else grad + 1", ([], [], [], ["bias_defined"], [])),
    ("grad if bias is None else expand(grad, bias.shape)", ([], [], [], ["bias_defined", "bias_sizes"], [])),
    ("grad if mode == \"sum\" else sum(grad, dim)", ([], ["dim", "mode"], [], [], [])),
    ("grad if len(parts.shapes) == 0 else parts[0]", (["parts"], [], [], ["parts_shapes"], [])),
])
def test_what_a_node_keeps(text, kept):
    assert saved(text) == kept


def test_facts_of_an_absent_tensor_are_not_read():
    p = autograd_cpp.plan(probe("grad if bias is None else expand(grad, bias.shape)"), table())
    assert [f.save for f in p.facts] == ["node->bias_defined = bias.defined();",
                                         "if (bias.defined()) node->bias_sizes = bias.sizes();"]


def test_gradients_of_several_results():
    two = {"schema": "probe(Tensor self, int dim) -> (Tensor P, Tensor L, Tensor U)", "constant_outputs": "P"}
    p = autograd_cpp.plan(probe("tril(grad)", **two), table())
    assert p.formulas[0].guard == "grads[0].defined()" and p.formulas[0].code.lines == ["ops::tril(grads[0], 0)"]
    assert code("None if grads.U is None else triu(grads.U)", **two) == "(!grads[1].defined() ? Tensor() : ops::triu(grads[1], 0))"
    with pytest.raises(SystemExit, match="grads has no 'P', but L, U"):
        code("grads.P", **two)


def test_several_arguments_at_once():
    both = {"schema": "probe(Tensor a, Tensor b) -> Tensor", "key": "a, b"}
    assert code("(grad * b if wanted.a else None, grad)", **both) == \
        "std::tuple<Tensor, Tensor>((needs(0) ? (grad * b) : Tensor()), grad)"
    with pytest.raises(SystemExit, match=r"expected \(Tensor\?, Tensor\?\), got Tensor"):
        code("grad", **both)


@pytest.mark.parametrize(("text", "message"), [
    ("grad * other", "line 1: unknown name 'other'"),
    ("shape_of(grad)", r"line 1: shape_of\(Tensor\): there is no operator, formula or function of that name"),
    ("sum(grad, mode)", r"sum\(Tensor, str\): .*dim_IntList.*: dim: expected int\[\]\?, got str"),
    ("tril(grad, 1, 2)", "it takes 2 by position"),
    ("tril(grad, diag=1)", "it has no argument diag"),
    ("gather(grad, dim)", "index is missing"),
    ("linalg_pinv(grad)", "ambiguous between linalg_pinv.atol_rtol_tensor.* and linalg_pinv.atol_rtol_float.*name the overload"),
    ("grad * bias", r"no such operation on Tensor and Tensor\?"),
    ("tril(bias)", r"self: expected Tensor, got Tensor\?, which may be None: test it first"),
    ("expand(grad, bias.shape)", "bias may be None: test it before .shape"),
    ("grad.size", "has no attribute 'size'"),
    ("self.shape", r"expected Tensor\?, got int\[\]"),
    ("grad if grad == 0 else self", r"expected a condition, got Tensor; any_true\(...\) reads it"),
    ("grad if mode == 1 else self", "no such comparison of str and int"),
    ("grad if self is None else self", r"self \(Tensor\) is never None"),
    ("lambda: grad", "Lambda is not part of the language"),
    ("x = grad\ngrad", "line 1: x is never used"),
    ("self = grad\nself", "line 1: self is given; choose another name"),
    ("grad\nself", "line 1: Expr is no line of a formula"),
    ("if dim > 0:\n  x = grad\nx", "line 3: unknown name 'x', or one that not every way here gives a value"),
    ("if dim > 0:\n  return grad", "the last line is no expression"),
    ("made_ = grad\nmade_", "line 1: made_: names that end with _ are the generator's"),
    ("x = grad\nx = dims\nx", "line 2: x was Tensor, and is DimVec here"),
    ("copy_(grad, self)", "there is no operator"),
    ("(grad", "line 1: "),
])
def test_errors_say_where_and_what(text, message):
    with pytest.raises(SystemExit) as raised:
        code(text)
    assert str(raised.value).startswith("ops/probe.yaml:7: aten::probe: grad of self, line ")
    assert re.search(message, str(raised.value)), raised.value


def test_a_tested_value_is_no_longer_optional():
    assert code("""
if bias is None:
  return grad
g = grad * bias
g if limit is None or bias.ndim == 0 else g * limit""").count("*limit") == 1


def test_formulas_of_the_table_are_functions():
    definition = model.Definition(model.parse_schema("halved(Tensor t, int[]? dim) -> Tensor"),
                                  "t if dim is None else sum(t, dim) / 2", "ops/probe.yaml:3: halved")
    entries, kernels = model.load(ROOT / "ops")
    made = Table(entries, [*model.definitions(ROOT / "ops"), definition], kernels).definitions["halved"]
    assert made.body() == ("  return (!dim.has_value() ? t : (ops::sum(t, OptIntArrayRef(IntArrayRef((*dim))), false, "
                           "std::optional<DType>()) / Scalar(2)));")


def test_the_census():
    found = dict(autograd_cpp.census(model.load(ROOT / "ops")[0], table()))
    assert sum("helper" not in kinds for kinds in found.values()) >= 0.95 * len(found)
    assert len(formula.PRIMITIVES) + len(NUMBERS) <= 50
    assert "helper" in found["aten::cat: tensors"] and "reader" in found["aten::prod: self"]
    assert "reader" in found["aten::_linalg_det: A"]
