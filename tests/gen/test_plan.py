"""Bodies of operators as text: what a plan may call, which C++ it becomes, and what its errors say."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
import census  # noqa: E402

from gen import kernels_cpp, model  # noqa: E402
from gen.formula import Given  # noqa: E402
from gen.formula_expr import Scope  # noqa: E402
from gen.formula_table import Table  # noqa: E402
from gen.formula_types import Value  # noqa: E402

SCHEMA = "probe(Tensor self, Tensor? bias, int[] dims, int dim, float eps, str mode, Tensor[] parts) -> Tensor"
FORMULAS = {
    "probe_check(Tensor t) -> ()": "if t.ndim == 0:\n  raise IndexError(\"no dims\")",
    "probe_kernel(Tensor t) -> Tensor": "gelu_erf(t)",
    "probe_helper(Tensor t) -> Tensor": "repeat_back(t, [1], [1])",
}


@cache
def parts():
    entries, kernels = model.load(ROOT / "ops")
    made = [model.Definition(model.parse_schema(schema), text, f"ops/probe.yaml:3: {schema}") for schema, text in FORMULAS.items()]
    return entries, [*model.definitions(ROOT / "ops"), *made], kernels


@cache
def table() -> Table:
    return Table(*parts())


def probe(text: str, schema: str = SCHEMA, **raw) -> model.Entry:
    return model.make_entry({"op": schema, "plan": text, "doc": "For tests.", **raw}, "probe", 7)


def code(text: str, schema: str = SCHEMA, **raw) -> str:
    return " ".join(table().plan(probe(text, schema, **raw)).body().split())


@pytest.mark.parametrize(("text", "cpp"), [
    ("self", "return self;"),
    ("gelu_erf(self)", "return eager::calls::gelu_erf(self);"),
    ("gelu_erf(self, stored=float32)", "return eager::calls::gelu_erf(self, std::optional<DType>(), DType::F32);"),
    ("softmax_rows(self, dims=dim)", "return eager::calls::softmax_rows(self, OptIntArrayRef(IntArrayRef(IntArrayRef(int64_t(dim)))), false);"),
    ("norm_rows_plain(self, eps, dims=dims, keepdim=True)[1]",
     "return std::get<1>(eager::calls::norm_rows_plain(self, Scalar(eps), OptIntArrayRef(IntArrayRef(dims)), true));"),
    ("probe_check(self)\nself", "formulas::probe_check(self); return self;"),
    ("moving_average(self, self, eps, 1, into=self)\nself",
     "eager::calls::moving_average_into({&self}, self, self, Scalar(eps), Scalar(1)); return self;"),
    ("moving_average(self, self, eps, 1, into=self, along=1)\nself",
     "eager::calls::moving_average_into({&self}, self, self, Scalar(eps), Scalar(1), 1); return self;"),
    ("gated(self, self, along=dim)",
     "return eager::calls::gated(self, self, std::optional<DType>(), std::optional<DType>(), dim);"),
    ("mul_(self, 2)", "return ops::mul_(self, Scalar(2));"),
    ("draw_uniform(None, eps, 1, into=self)\nself", "eager::calls::draw_uniform(self, Generator(), Scalar(eps), Scalar(1)); return self;"),
    ("for p, q in zip(parts, parts):\n  mul_(p, q)\nself",
     "{ const auto& list0_ = parts; const auto& list1_ = parts; for (size_t i_ = 0; i_ < list0_.size(); ++i_) { const auto& p = list0_[i_]; "
     "const auto& q = list1_[i_]; ops::mul_(p, q); } } return self;"),
    ("self if dim in dims else -self", "return (formulas::contains(dims, dim) ? self : ops::neg(self));"),
    ("if not self.dtype.is_complex:\n  raise NotImplementedError(f'\"{mode}\" not for {self.dtype.name}')\nself",
     'if (!(is_complex(self.dtype()))) { throw_error(ErrorKind::NotImplemented, str_cat("\\"", mode, "\\" not for ", '
     "scalar_type_name(self.dtype()))); } return self;"),
])
def test_bodies(text, cpp):
    assert code(text) == cpp


def test_a_word_of_python_is_an_argument():
    assert code("self + from_", "probe(Tensor self, float from, Generator? generator=None) -> Tensor") == "return (self + Scalar(from));"


def test_rows_of_one_name_are_one_kernel():
    def row(dtypes: str, inputs: str = "r:word"):
        return model.make_kernel({"kernel": "probe_draw", "inputs": inputs, "scalars": "low", "compute": "low", "dtypes": dtypes}, "probe", 1)

    both = [row("float32"), row("float64", "r:word2")]
    model.check_rows(both)
    assert [k.first for k in both] == [True, False] and both[0].draws
    for other in (row("float32"), row("float64", "s:word"), row("int64", "r:word x")):
        with pytest.raises(SystemExit, match="has other operands, or some of its dtypes"):
            model.check_rows([row("float32"), other])


def test_one_without_results():
    assert code("for t in parts:\n  if t.numel > 0:\n    mul_(t, 2)", "probe_(Tensor(a!)[] parts) -> ()", out=False) == (
        "{ const auto& list0_ = parts; for (size_t i_ = 0; i_ < list0_.size(); ++i_) { const auto& t = list0_[i_]; "
        "if (t.numel() > 0) { ops::mul_(t, Scalar(2)); } } }")


def test_launches_run_together():
    assert code("""
steps = launches("probe")
for t in parts:
  steps.append(sgd_step(t, self, 1, 0, eps, into=t))
launch(steps)
self""") == ('eager::Launches steps = formulas::launches("probe"); { const auto& list0_ = parts; for (size_t i_ = 0; i_ < list0_.size(); ++i_) '
            "{ const auto& t = list0_[i_]; steps.append(eager::kernels::sgd_step, {t}, {t, self}, {Scalar(1), Scalar(0), Scalar(eps)}); } } "
            "formulas::launch(steps); return self;")
    for wrong in ("gelu_erf(self)", "self", "gelu_erf(self, into=(self, self))"):
        with pytest.raises(SystemExit, match=r"expected launches.append\(kernel\(..., into=...\)\)|into: expected Tensor"):
            code(f"steps = launches(mode)\nsteps.append({wrong})\nself")


def test_forms_that_write_at_once():
    schema = "probe(Tensor self, Scalar exponent) -> Tensor"
    text = "if exponent == 2:\n  return squared(self)\npow_by_scalar(self, exponent)"
    entry = probe(text, schema, direct="inplace", inplace=True)
    assert " ".join(table().plan(entry, Given("self", True)).body().split()) == (
        "if ((exponent).equals(2)) { eager::calls::squared_out(self, false, self); return self; } "
        "eager::calls::pow_by_scalar_out(self, false, self, exponent); return self;")
    for wrong in ("self * 2", "softmax_rows(self)", "gelu_erf(self, stored=float32)"):
        with pytest.raises(SystemExit, match="`direct` ends in kernels|is direct"):
            table().plan(probe(wrong, schema), Given("self", True))


def test_an_out_form_refuses_before_the_plan_writes():
    schema = "probe(Tensor self, Tensor running) -> Tensor"
    given = Given("out", refuse=("refuse;",), copy=("copy;",))
    text = "if self.ndim == 0:\n  return self\nx = -self\nmoving_average(running, x, 1, 1, into=running)\nx"
    assert " ".join(table().plan(probe(text, schema), given).body().split()) == (
        "if (self.dim() == 0) { const auto r = self; refuse; copy; return out; } const Tensor x = ops::neg(self); const auto r = x; refuse; "
        "eager::calls::moving_average_into({&running}, running, x, Scalar(1), Scalar(1)); copy; return out;")
    with pytest.raises(SystemExit, match="writes in its last lines"):
        table().plan(probe("mul_(running, 2)\nx = -self\nx", schema), given)


def test_what_a_mask_did_not_ask_for_is_none():
    assert "Tensor()" in code("(self if output_mask[0] else None, self)", "probe(Tensor self, bool[2] output_mask) -> (Tensor, Tensor)")
    with pytest.raises(SystemExit, match="expected Tensor, got None"):
        code("(None, self)", "probe(Tensor self) -> (Tensor, Tensor)")


@pytest.mark.parametrize(("text", "message"), [
    ("gelu_erff(self)", r"gelu_erff\(Tensor\): there is no operator, formula or function of that name"),
    ("gelu_erf(dims)", r"self: expected Tensor, got int\[\]"),
    ("gelu_erf(bias)", "which may be None: test it first"),
    ("norm_rows_plain(self)", "eps is missing"),
    ("gelu_erf(self, dims=dim)", "it has no argument dims"),
    ("norm_rows_plain(self, eps)", r"expected Tensor, got \(Tensor, Tensor, Tensor\)"),
    ("gelu_erf(self)\nself", "gives Tensor, which nothing uses"),
    ("softmax_rows(self, into=self)\nself", "what writes into tensors is a pointwise kernel"),
    ("moving_average(self, self, eps, 1, into=(self, self))\nself", "into: expected Tensor, got"),
    ("draw_uniform(None, 0, 1)\nself", "draws numbers into a tensor that there is: say into="),
    ("draw_uniform(None, 0, 1, into=dims)\nself", r"into: expected Tensor, got int\[\]"),
    ("draw_uniform(eps, 0, 1, into=self)\nself", r"r: expected Generator\?, got float"),
    ("repeat_back(self, dims, dims)", "there is no operator"),
    ("probe_helper(self)", "serves a derivative alone"),
    ("if dim > 0:\n  raise Wrong('no')\nself", "expected one of RuntimeError, .* with a text"),
    ("while dim > 0:\n  self\nself", "While is no line of a formula"),
    ("import os\nself", "Import is no line of a formula"),
    ("self.data", "has no attribute 'data'"),
    ("return 3", "expected Tensor, got int"),
    ("for d in range(dim):\n  x = unsqueeze(self, d)\nx", "unknown name 'x'"),
])
def test_errors_say_where_and_what(text, message):
    with pytest.raises(SystemExit) as raised:
        code(text)
    assert str(raised.value).startswith("ops/probe.yaml:7: aten::probe, line ")
    assert re.search(message, str(raised.value)), raised.value


def test_derivatives_reach_no_kernel():
    scope = Scope({"self": Value("self", "Tensor")})
    for text in ("gelu_erf(self)", "mul_(self, 2)"):
        with pytest.raises(SystemExit, match="no operator"):
            table().compile(text, scope, "Tensor", "here")
    with pytest.raises(SystemExit, match="gelu_erf.* is not recorded"):
        table().compile("probe_kernel(self)", scope, "Tensor", "here")
    with pytest.raises(SystemExit, match="the derivative cannot be that of the parts"):
        code("probe_kernel(self)", grad="parts")


def test_what_reads_values_says_so():
    with pytest.raises(SystemExit, match="say `reads: inside`"):
        code("self if any_true(self) else -self")
    assert code("self if any_true(self) else -self", reads="inside")
    with pytest.raises(SystemExit, match="say `reads: value`"):
        code("self if any_true(self) else -self", grad="parts")
    with pytest.raises(SystemExit, match="the plan reads no values"):
        code("self", reads="inside")


def test_the_key_has_its_place():
    with pytest.raises(ValueError, match="exactly one of"):
        probe("self", compute="self")
    with pytest.raises(ValueError, match="grad is `parts` where"):
        model.make_entry({"op": SCHEMA, "cpu": "probe", "order": "none", "grad": "parts", "doc": "For tests."}, "probe", 7)
    assert probe("self").kind == "cpu" and probe("self", grad="parts").kind == "composite"


def test_cpp_beside_a_plan_is_a_schedule_of_it():
    scheduled = probe("linalg_inv_ex(self)[0]", cpu="by_someone")
    assert (scheduled.by_hand, scheduled.kind, probe("self").by_hand) == ("by_someone", "cpu", None)
    assert kernels_cpp.by_hand(scheduled).strip().startswith("if (by_hand(self)") and kernels_cpp.by_hand(probe("self")) == ""
    with pytest.raises(ValueError, match="grad is `parts` where"):
        probe("self", cpu="by_someone", grad="parts")


@pytest.mark.parametrize(("text", "kind", "unsaid"), [
    ("gelu_erf(self) * 2", "composed", []),
    ("probe_kernel(self)", "composed", []),
    ("unsqueeze(self, 0)", "composed", []),
    ("linalg_qr(self)[0]", "plan", ["linalg_qr"]),
    ("corner(self, dims)", "plan", ["corner"]),
])
def test_the_census_counts_what_a_plan_calls(text, kind, unsaid):
    entry = probe(text)
    entries, definitions, kernels = parts()
    count = census.Census([*entries, entry], Table([*entries, entry], definitions, kernels))
    assert (count.kind(entry), count.unsaid(entry)) == (kind, unsaid)
