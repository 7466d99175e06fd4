// ir/pass and the passes: what each does to a text, and what it leaves alone.
#include "ir/pass.h"

#include <gtest/gtest.h>

#include "ir/draw.h"
#include "ir/effect.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "strata/generated/ops.h"

namespace strata::ir {

namespace {

struct After {
  std::string text, note;
};

After after(std::initializer_list<const char*> names, const std::string& text, TensorList captured = {}) {
  Graph g = parse(text, captured);
  PassLog log;
  for (const char* name : names) run_passes(g, {&pass_named(name), 1}, log);
  verify(g);
  return {print(g), log.lines.back().note};
}

// The nodes of "graph(%0: f32[2, 3], %1: f32[2, 3]) {...}" after a pass.
std::string nodes(const char* pass, const std::string& body,
                  const std::string& params = "%0: f32[2, 3], %1: f32[2, 3]") {
  std::string text = after({pass}, "graph(" + params + ") {\n" + body + "\n}\n").text;
  text = text.substr(text.find('\n') + 1);
  return text.substr(0, text.size() - 2);
}

void expect_same(const char* pass, const std::string& body) {
  EXPECT_EQ(nodes(pass, body), nodes("dead", body)) << pass;  // which numbers them, too
}

}  // namespace

TEST(Effect, IsWhatTheTableSays) {
  auto effect = [](const char* name) { return has_effect(OperatorTable::instance().get(name)); };
  for (const char* name : {"aten::add.Tensor", "aten::mm", "aten::sum.dim_IntList", "aten::select.int",
                           "aten::empty.memory_format", "aten::detach"})
    EXPECT_FALSE(effect(name)) << name;
  for (const char* name :
       {"aten::add_.Tensor", "aten::add.out", "aten::rand", "aten::dropout", "aten::native_dropout",
        "aten::bernoulli.p", "aten::gather", "aten::floor_divide.Tensor", "aten::index.Tensor", "strata::_check",
        "aten::nonzero", "aten::linalg_inv_ex", "aten::randperm", "strata::_become"})
    EXPECT_TRUE(effect(name)) << name;
  EXPECT_FALSE(repeats(OperatorTable::instance().get("aten::rand")));
  EXPECT_FALSE(repeats(OperatorTable::instance().get("aten::empty.memory_format")));
  EXPECT_TRUE(repeats(OperatorTable::instance().get("aten::gather")) &&
              repeats(OperatorTable::instance().get("aten::gelu")));
}

TEST(Dead, GoesUnlessItActs) {
  EXPECT_EQ(
      nodes("dead",
            "%2: f32[2, 3] = aten::neg(%0) %3: f32[2, 3] = aten::sin(%2) %4: f32[2, 3] = aten::cos(%1) return %4"),
      "  %2: f32[2, 3] = aten::cos(%1)\n  return %2\n");
  expect_same("dead", "%2: f32[2, 3] = aten::neg_(%0) return %1");
  EXPECT_NE(nodes("dead", "%2: f32[3] = aten::rand([3], dtype=float32, device=cpu) return %1").find("rand"),
            std::string::npos);
  EXPECT_NE(nodes("dead", "%2: f32[2, 3] = aten::neg(%0) %3: f32[2, 3] = aten::floor_divide.Tensor(%2, %1) return %1")
                .find("neg"),
            std::string::npos);
  // What a block does counts.
  const std::string b = "graph(%0: b8[], %1: f32[2]) {%2: f32[2] = if %0 {%3: f32[2] = aten::neg";
  EXPECT_EQ(after({"dead"}, b + "(%1) yield %3} else {yield %1} return %1}").text.find("if"), std::string::npos);
  EXPECT_NE(after({"dead"}, b + "_(%1) yield %3} else {yield %1} return %1}").text.find("if"), std::string::npos);
}

TEST(Losses, AreOneWhereNobodyElseReads) {
  const std::string params = "%0: f32[5, 3], %1: i64[5], %2: f32[], %3: f32[]";
  const std::string loss =
      "%4: f32[5, 3] = aten::nll_loss_backward(%2, %0, %1, None, 1, -100, %3) "
      "%5: f32[5, 3] = aten::_log_softmax_backward_data(%4, %0, ";
  EXPECT_EQ(nodes("losses", loss + "-1, float32) return %5", params),
            "  %4: f32[5, 3] = strata::_nll_log_softmax_backward(%2, %0, %1, None, 1, -100, %3)\n  return %4\n");
  // Another dim, another reader, a write in between.
  for (const char* rest : {"0, float32) return %5", "1, float32) return %4, %5"})
    EXPECT_EQ(nodes("losses", loss + rest, params), nodes("dead", loss + rest, params));
  const std::string written =
      "%4: f32[5, 3] = aten::nll_loss_backward(%2, %0, %1, None, 1, -100, %3) %6: i64[5] = aten::zero_(%1) "
      "%5: f32[5, 3] = aten::_log_softmax_backward_data(%4, %0, 1, float32) return %5";
  EXPECT_EQ(nodes("losses", written, params), nodes("dead", written, params));
}

TEST(Common, JoinsWhatNobodyTellsApart) {
  const std::string two = "%2: f32[2, 3] = aten::sin(%0) %3: f32[2, 3] = aten::sin(%0) ";
  EXPECT_EQ(nodes("common", two + "%4: f32[2, 3] = aten::mul.Tensor(%2, %3) return %4"),
            "  %2: f32[2, 3] = aten::sin(%0)\n  %3: f32[2, 3] = aten::mul.Tensor(%2, %2)\n  return %3\n");
  expect_same("common", two + "return %2, %3");
  expect_same("common",
              two + "%4: f32[2, 3] = aten::neg_(%3) %5: f32[2, 3] = aten::add.Tensor(%2, %3, alpha=1) return %5");
  expect_same("common",
              "%2: f32[2, 3] = aten::sin(%0) %3: f32[2, 3] = aten::neg_(%1) %4: f32[2, 3] = aten::sin(%0) "
              "%5: f32[2, 3] = aten::add.Tensor(%2, %4, alpha=1) return %5");  // the inputs may be one
  expect_same("common",
              "%2: f32[2, 3] = aten::add.Scalar(%0, 0.0, 1) %3: f32[2, 3] = aten::add.Scalar(%0, -0.0, 1) "
              "%4: f32[2, 3] = aten::div.Tensor(%2, %3) return %4");
  expect_same("common",
              "%2: f32[2, 3] = aten::rand_like(%0, dtype=None, device=None, memory_format=None) %3: f32[2, 3] = "
              "aten::rand_like(%0, dtype=None, device=None, memory_format=None) %4: f32[2, 3] = aten::mul.Tensor(%2, "
              "%3) return %4");
}

TEST(Simplify, KeepsBits) {
  const std::string f = "%2: f32[2, 3] = aten::sin(%0) ";
  auto gone = [&](const std::string& node) {
    EXPECT_EQ(nodes("simplify", f + "%3: f32[2, 3] = " + node + " %4: f32[2, 3] = aten::cos(%3) return %4"),
              "  %2: f32[2, 3] = aten::sin(%0)\n  %3: f32[2, 3] = aten::cos(%2)\n  return %3\n")
        << node;
  };
  auto stays = [&](const std::string& node) {
    expect_same("simplify", f + "%3: f32[2, 3] = " + node + " %4: f32[2, 3] = aten::cos(%3) return %4");
  };
  gone("aten::mul.Scalar(%2, 1)");
  gone("aten::div.Scalar(%2, 1.0)");
  gone("aten::sub.Scalar(%2, 0, 1)");
  gone("aten::add.Scalar(%2, -0.0, 1)");
  gone("aten::clone(%2, memory_format=None)");
  gone("aten::detach(%2)");
  gone("aten::view(%2, [2, 3])");
  gone("aten::expand(%2, [2, 3], implicit=False)");
  stays("aten::mul.Scalar(%2, -1)");
  stays("aten::add.Scalar(%2, 0.0, 1)");  // -0.0 becomes 0.0
  stays("aten::add.Scalar(%2, 0, 1)");
  stays("aten::sub.Scalar(%2, -0.0, 1)");
  stays("aten::sub.Scalar(%2, 0, 2)");
  stays("aten::as_strided(%2, [2, 3], [3, 1], 0)");
  EXPECT_EQ(
      nodes("simplify", "%3: number f64 = constant 1.0 " + f + "%4: f32[2, 3] = aten::mul.Tensor(%2, %3) return %4"),
      "  %2: number f64 = constant 1.0\n  %3: f32[2, 3] = aten::sin(%0)\n  return %3\n");
  EXPECT_EQ(nodes("simplify", f + "%3: f32[2, 3] = aten::neg(%2) %4: f32[2, 3] = aten::neg(%3) return %4"),
            "  %2: f32[2, 3] = aten::sin(%0)\n  %3: f32[2, 3] = aten::neg(%2)\n  return %2\n");
  EXPECT_EQ(
      nodes("simplify", f + "%3: f32[3, 2; 1, 3] = aten::permute(%2, [1, 0]) %4: f32[2, 3] = aten::permute(%3, [1, 0]) "
                            "%5: f32[2, 3] = aten::cos(%4) return %5"),
      "  %2: f32[2, 3] = aten::sin(%0)\n  %3: f32[3, 2; 1, 3] = aten::permute(%2, [1, 0])\n  %4: f32[2, 3] = "
      "aten::cos(%2)\n"
      "  return %4\n");
  // A cast forth and back, where the wide dtype has all values.
  const std::string cast = "aten::_to_copy(%2, dtype=float64, device=None, non_blocking=False, memory_format=None) ";
  const std::string back =
      "aten::_to_copy(%3, dtype=float32, device=None, non_blocking=False, memory_format=None) return %4";
  EXPECT_EQ(nodes("simplify", f + "%3: f64[2, 3] = " + cast + "%4: f32[2, 3] = " + back).find("%4"), std::string::npos);
  expect_same(
      "simplify",
      f +
          "%3: bf16[2, 3] = aten::_to_copy(%2, dtype=bfloat16, device=None, non_blocking=False, memory_format=None) "
          "%4: f32[2, 3] = " +
          back);
  // Written, or given away.
  expect_same("simplify", "%2: f32[2, 3] = aten::mul.Scalar(%0, 1) return %2");
  expect_same("simplify", f + "%3: f32[2, 3] = aten::mul.Scalar(%2, 1) %4: f32[2, 3] = aten::neg_(%3) return %2, %3");
  expect_same("simplify", f + "%3: f32[2, 3] = aten::mul.Scalar(%2, 1) %4: f32[2, 3] = aten::neg_(%2) return %2, %3");
  expect_same("simplify", f + "%3: f32[2, 3] = aten::neg(%2) %4: f32[2, 3] = aten::add_.Scalar(%3, 1, 1) %5: f32[2, 3] "
                              "= aten::neg(%3) return %5");
  expect_same("simplify", "%2: f32[2, 3] = aten::detach(%0) return %2");
}

TEST(Fold, NumbersAndBranches) {
  EXPECT_EQ(nodes("fold",
                  "%2: number f64 = constant 2.0 %3: f32[] = aten::sqrt(%2) %4: f32[] = aten::mul.Scalar(%3, 3) "
                  "%5: f32[2, 3] = aten::mul.Tensor(%0, %4) return %5"),
            "  %2: number f64 = constant 2.0\n"
            "  %3: f32[] = aten::full([], 1.4142135381698608, dtype=float32, device=cpu)\n"
            "  %4: f32[] = aten::full([], 4.242640495300293, dtype=float32, device=cpu)\n"
            "  %5: f32[2, 3] = aten::mul.Tensor(%0, %4)\n  return %5\n");
  EXPECT_EQ(nodes("fold", "%2: int = constant 1 %3: f32[3] = aten::select.int(%0, 0, %2) return %3"),
            "  %2: int = constant 1\n  %3: f32[3] = aten::select.int(%0, 0, 1)\n  return %3\n");
  EXPECT_EQ(nodes("fold",
                  "%2: bool = constant True %3: f32[2, 3] = if %2 {%4: f32[2, 3] = aten::neg(%0) yield %4} else {yield "
                  "%1} return %3"),
            "  %2: bool = constant True\n  %3: f32[2, 3] = aten::neg(%0)\n  return %3\n");
  EXPECT_EQ(nodes("fold",
                  "%2: f32[2, 3], %3: int = loop 0, True, %0, 7 (%4: int, %5: f32[2, 3], %6: int) "
                  "{%7: bool = constant True yield %7, %5, %4} %8: f32[3] = aten::select.int(%2, 0, %3) return %2, %8"),
            "  %2: int = constant 7\n  %3: f32[3] = aten::select.int(%0, 0, 7)\n  return %0, %3\n");
  // What writes a number's tensor, what raises, and random numbers stay.
  expect_same("fold",
              "%2: f32[] = aten::full([], 2.0, dtype=float32, device=cpu) %3: f32[] = aten::neg_(%2) %4: f32[] = "
              "aten::sin(%2) return %4");
  expect_same(
      "fold",
      "%2: i64[] = aten::full([], 0, dtype=int64, device=cpu) %3: i64[] = aten::floor_divide.Tensor(%2, %2) return %3");
  expect_same("fold", "%2: f32[] = aten::rand([], dtype=float32, device=cpu) return %2");
}

TEST(Functional, WritesGoToTheEnd) {
  EXPECT_EQ(nodes("functional",
                  "%2: f32[3] = aten::select.int(%0, 0, 1) %3: f32[3] = aten::mul_.Scalar(%2, 3) "
                  "%4: f32[2, 3] = aten::sin(%0) return %4, %2"),
            "  %2: f32[3] = aten::select.int(%0, 0, 1)\n"
            "  %3: f32[3] = aten::mul.Scalar(%2, 3)\n"
            "  %4: f32[2, 3] = aten::select_scatter(%0, %3, 0, 1)\n"
            "  %5: f32[2, 3] = aten::sin(%4)\n"
            "  %6: f32[3] = aten::select.int(%0, 0, 1)\n"
            "  %7: f32[2, 3] = aten::copy_(%0, %4, False)\n"
            "  return %5, %6\n");
  EXPECT_NO_THROW(
      verify(parse("graph(%0: f32[2, 3], %1: f32[2, 3]) {\n" +
                   nodes("functional",
                         "%2: f32[2, 3] = aten::add_.Tensor(%0, %1, alpha=1) %3: f32[2, 3] = aten::copy_(%1, %0, "
                         "False) %4: f32[2, 3] = aten::zero_(%0) return %0") +
                   "}"),
             Stage::Functional));
}

TEST(Functional, DrawsAndListsAreTwins) {
  EXPECT_EQ(nodes("functional",
                  "%2: f32[2, 3] = aten::normal_(%0, 1.0, 2.0, generator=None) "
                  "aten::_foreach_mul_.Scalar([%0, %1], 3) return %2"),
            "  %2: f32[2, 3] = aten::normal_functional(%0, 1.0, 2.0, generator=None)\n"
            "  %3: f32[2, 3], %4: f32[2, 3] = aten::_foreach_mul.Scalar([%2, %1], 3)\n"
            "  %5: f32[2, 3] = aten::copy_(%0, %3, False)\n"
            "  %6: f32[2, 3] = aten::copy_(%1, %4, False)\n"
            "  return %0\n");
}

TEST(Functional, SaysWhatStopsIt) {
  const After a = after({"functional"}, R"(graph(%0: f32[2, 3], %1: f32[3, 2]) {
  %2: f32[2, 3] = aten::neg_(%0)
  %3: f32[3, 2; 1, 3] = aten::permute(%0, [1, 0])
  %4: f32[3, 2; 1, 3] = aten::sin(%3)
  %5: f32[3, 2] = strata::_become(%1, %1)  # m.py:7 in f
  %6: f32[2, 3] = aten::neg_(%0)
  return %4, %3
})");
  EXPECT_EQ(a.note, "stopped at node 3, strata::_become (m.py:7 in f): no operator computes the same without writing");
  EXPECT_EQ(a.text, R"(graph(%0: f32[2, 3], %1: f32[3, 2]) {
  %2: f32[2, 3] = aten::neg(%0)
  %3: f32[3, 2; 1, 3] = aten::permute(%2, [1, 0])
  %4: f32[3, 2; 1, 3] = aten::sin(%3)
  %5: f32[2, 3] = aten::copy_(%0, %2, False)
  %6: f32[3, 2; 1, 3] = aten::permute(%0, [1, 0])
  %7: f32[3, 2] = strata::_become(%1, %1)  # m.py:7 in f
  %8: f32[2, 3] = aten::neg_(%0)
  return %4, %6
}
)");
  auto stops = [](const std::string& body, const std::string& why) {
    const After got = after({"functional"}, "graph(%0: f32[2, 3], %1: b8[]) {\n" + body + "\n}");
    EXPECT_NE(got.note.find(why), got.note.npos) << got.note;
  };
  stops("%2: f32[3, 2; 1, 3] = aten::permute(%0, [1, 0]) %3: f32[2, 3] = strata::_become(%0, %2) return %0",
        "strata::_become: no operator");
  stops("%2: f32[3] = aten::as_strided(%0, [3], [1], 0) %3: f32[2, 3] = aten::neg_(%0) return %2",
        "a view by places in memory");
  stops("%2: f32[2, 3] = if %1 {%3: f32[2, 3] = aten::neg_(%0) yield %0} else {yield %0} return %2",
        "a block: what its blocks write");
  stops("%2: f32[2, 3] = if %1 {yield %0} else {yield %0} %3: f32[2, 3] = aten::neg_(%0) return %2",
        "a block: what its blocks write, or give");
  stops(
      "%2: f32[2, 3] = aten::contiguous(%0, memory_format=contiguous_format) %3: f32[2, 3] = aten::neg_(%2) return %0",
      "share memory");
  const Tensor t = ops::ones({2, 3});
  const After one =
      after({"functional"}, "graph() captures(%0: f32[2, 3], %1: f32[3]) { %2: f32[2, 3] = aten::neg_(%0) return %1 }",
            {t, ops::select(t, 0, 0)});
  EXPECT_NE(one.note.find("a captured tensor that shares memory"), one.note.npos) << one.note;
}

TEST(Passes, LogAndSpans) {
  Graph g = parse(
      "graph(%0: f32[2]) {\n  %1: f32[2] = aten::neg(%0)\n  %2: f32[2] = aten::neg_(%0)  # m.py:3 in f\n  return "
      "%0\n}");
  PassLog log;
  run_passes(g, all_passes(), log);
  ASSERT_EQ(log.lines.size(), all_passes().size());
  EXPECT_EQ(log.lines[0].before, 2u);
  EXPECT_EQ(log.lines.back().after, 2u);
  EXPECT_EQ(log.text().find("functional: 2 -> 3 nodes, "), 0u);
  EXPECT_EQ(print(g),
            "graph(%0: f32[2]) {\n  %1: f32[2] = aten::neg(%0)  # m.py:3 in f\n"
            "  %2: f32[2] = aten::copy_(%0, %1, False)  # m.py:3 in f\n  return %0\n}\n");
  EXPECT_THROW(pass_named("none"), Error);
}

TEST(Draw, EscapesWhatItShows) {
  const std::string svg =
      draw(parse("graph(%0: f32[2] 'a<b>&\"') {\n  %1: f32[2] = aten::neg(%0)  # <module> & \"x\"\n  return %1\n}"));
  EXPECT_NE(svg.find("a&lt;b&gt;&amp;&quot;"), svg.npos);
  EXPECT_NE(svg.find("&lt;module&gt; &amp; &quot;x&quot;"), svg.npos);
}

}  // namespace strata::ir
