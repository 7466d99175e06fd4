// ir/parse: texts of graphs, where their errors point, and texts that nobody wrote.
#include "ir/parse.h"

#include <gtest/gtest.h>

#include <random>

#include "strata/generated/ops.h"

namespace strata::ir {

namespace {

std::string error_of(std::string_view text, TensorList captured = {}) {
  try {
    parse(text, captured);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Value) << e.what();
    return e.message();
  }
  return "";
}

// Every form that the text has.
constexpr const char* kAll =
    R"(graph(%0: f32[2, 3] 'x\'s \\ \n', %1: bf16[2, 3; 1, 2], %2: b8[]) captures(%3: f32[2, 3] 'model.0.weight') {
  %4: number f64 = constant 2.0
  %5: number c128 = constant complex(nan, -inf)
  %6: f32[2, 3] = aten::mul.Tensor(%0, %4)  # model.py:12 in forward
  %7: f32[2, 3] = aten::add.Tensor(%6, %3, alpha=-0.0)
  %8: f32[3, 2; 1, 3] = aten::permute(%7, [1, 0])
  %9: f32[2, 3] = aten::_to_copy(%1, dtype=float32, device=cpu, non_blocking=False, memory_format=contiguous_format)
  %10: f32[2] = aten::linalg_vector_norm(%9, inf, [1], False, dtype=None)
  %11: f32[2, 3] = aten::clamp(%9, 1e-08, 18446744073709551615)
  %12: f32[2, 3] = if %2 {
    %13: f32[2, 3] = aten::neg(%9)
    yield %13
  } else {
    yield %9
  }  # model.py:13 in forward
  %14: int = constant 3
  %15: f32[2, 3], %16: int = loop %14, True, %12, 7 (%17: int, %18: f32[2, 3], %19: int) {
    %20: f32[2, 3] = aten::mul.Scalar(%18, 3)
    %21: f32[3] = aten::select.int(%20, 0, %14)
    yield %2, %20, %17
  }
  return %15, %8, %10, None
}
)";

Tensor captured() { return ops::ones({2, 3}); }

}  // namespace

TEST(Parse, PrintsWhatItRead) { EXPECT_EQ(print(parse(kAll, {captured()})), kAll); }

TEST(Parse, BlanksAreFree) {
  const Graph g = parse("graph ( %0 :f32[ 2 ] ) {%1:f32[2]=aten::neg( %0 )return %1}");
  EXPECT_EQ(print(g), "graph(%0: f32[2]) {\n  %1: f32[2] = aten::neg(%0)\n  return %1\n}\n");
  EXPECT_EQ(print(parse("graph() captures(%0: f32[2, 3]) { return %0 }", {captured()})),
            "graph() captures(%0: f32[2, 3]) {\n  return %0\n}\n");
}

TEST(Parse, BlocksRun) {
  const Graph g = parse(R"(graph(%0: f32[], %1: b8[]) {
  %2: f32[] = loop 4, True, %0 (%3: int, %4: f32[]) {
    %5: f32[] = aten::mul.Scalar(%4, 2)
    %6: b8[] = aten::lt.Scalar(%5, 5)
    yield %6, %5
  }
  %7: f32[] = if %1 {
    %8: f32[] = aten::neg(%2)
    yield %8
  } else {
    yield %2
  }
  return %7
})");
  auto at = [&](double x, bool negative) {
    return ops::item(run(g, {ops::full({}, Scalar(x)), ops::full({}, Scalar(negative))})[0]).to_double();
  };
  EXPECT_EQ(at(1, false), 8);  // 2, 4, 8
  EXPECT_EQ(at(1, true), -8);
  EXPECT_EQ(at(0.125, false), 2);  // four turns
}

TEST(Parse, ErrorsPoint) {
  EXPECT_EQ(error_of("graph(%0: f32[2]) {\n  %1: f32[2] = aten::negg(%0)\n  return %1\n}"),
            "graph: line 2, column 16: unknown operator 'aten::negg'; is it aten::neg, aten::neg_, aten::neg.out\n"
            "    %1: f32[2] = aten::negg(%0)\n"
            "                 ^");
  auto has = [](const std::string& text, const std::string& part) {
    const std::string got = error_of(text);
    EXPECT_NE(got.find(part), got.npos) << text << "\n" << got;
  };
  has("", "line 1, column 1: expected 'graph'");
  has("graph(%0: f32[2]) {\n  return %1\n}", "line 2, column 10: %1 is not defined before");
  has("graph(%0: f32[2], %0: f32[2]) {\n  return %0\n}", "line 1, column 19: %0 is defined twice");
  has("graph(%0: f99[2]) {", "column 11: unknown type 'f99'");
  has("graph(%0: f32[2]@moon) {", "column 18: ");
  has("graph(%0: f32[-2]) {", "expected 0 or more");
  has("graph(%0: f32[n]) {", "expected an integer of 64 bits, got 'n'");
  has("graph(%0: f32[99999999999999999999]) {", "expected an integer of 64 bits");
  has("graph(%0: f32[4294967296, 4294967296]) {", "fits in memory");
  has("graph(%0: f32[2, 3; 1]) {", "expected 2 strides");
  has("graph(%4000000000: f32[2]) {", "expected a smaller number");
  has("graph(%0: f32[2]) captures(%1: f32[2]) {", "expected the tensors of 1 captures, got 0");
  has("graph(%0: f32[2]) { %1: f32[2] = aten::neg() return %1 }", "expected 1 arguments, got 0");
  has("graph(%0: f32[2]) { %1: f32[2] = aten::neg(%0, 1) return %1 }", "expected ')'");
  has("graph(%0: f32[2]) { %1: f32[2] = aten::neg(1) return %1 }", "expected a value, as %0, for a Tensor");
  has("graph(%0: f32[2]) { %1: f32[2] = aten::add.Tensor(%0, %0) return %1 }", "expected 3 arguments, got 2");
  has("graph(%0: f32[2]) { %1: f32[2] = aten::add.Tensor(%0, %0, beta=1) return %1 }", "expected 'alpha'");
  has("graph(%0: f32[2]) { %1: f32[2] = aten::add.Tensor(%0, %0, alpha=...) return %1 }", "has no text");
  has("graph(%0: f32[2]) { %1: f32[2] = aten::bernoulli(%0, generator=generator) return %1 }", "has no text");
  has("graph(%0: f32[2]) { %1: f32[2] = aten::sum.dim_IntList(%0, [0, x], False, dtype=None) return %1 }", "got 'x'");
  has("graph(%0: f32[2]) { %1: number f32 = constant 2.0 return %1 }", "expected a constant of type number f32");
  has("graph(%0: f32[2]) { %1: int = constant 2.0 return %0 }", "expected a constant of type int");
  has("graph(%0: f32[2]) { return %0 } x", "expected the end");
  has("graph(%0: f32[2] 'x) {", "expected a closing '");
  has("graph(%0: f32[2]) { %1: f32[2] = if %0 { yield %0 } else { yield %0 } return %1 }",
      "node 0, if: expected a condition");
  const Tensor f = ops::ones({2});
  EXPECT_NE(error_of("graph() captures(%0: f32[3]) { return %0 }", {f})
                .find("captured tensor 0: expected f32[3], got f32[2]"),
            std::string::npos);
}

TEST(Parse, BlocksEndSomewhere) {
  std::string deep = "graph(%0: b8[]) {";
  for (int i = 0; i < 100000; ++i) deep += " if %0 {";
  EXPECT_NE(error_of(deep).find("expected at most 64 blocks in one another"), std::string::npos);
  EXPECT_NE(error_of("graph(%0: f32[" + std::string(100000, '1') + "]) {").find("64 bits"), std::string::npos);
}

// Texts that are cut, and with random changes, are graphs or Value errors.
TEST(Parse, HostileTexts) {
  const std::string all = kAll;
  auto survives = [&](const std::string& text) {
    try {
      const Graph g = parse(text, {captured()});
      EXPECT_EQ(print(parse(print(g), g.captured)), print(g)) << text;
      return true;
    } catch (const Error& e) {
      EXPECT_TRUE(e.kind() == ErrorKind::Value) << e.what() << "\n" << text;
      return false;
    }
  };
  for (size_t n = 0; n < all.size(); ++n) survives(all.substr(0, n));
  std::mt19937 random(7);
  const std::string_view pieces[] = {
      "%0",       "%99", "None",    "[",         "]",     "(",      ")",
      "{",        "}",   "if ",     "loop ",     "'",     "\\",     "-1",
      "1e999",    "nan", "True",    ",",         ":",     "=",      "#",
      "\n",       "i64", "number ", "aten::cat", "yield", "return", "9223372036854775808",
      "complex(", "\0",  "\xff"};
  int good = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string text = all;
    for (int edits = 1 + int(random() % 3); edits > 0; --edits) {
      const size_t at = random() % text.size(), n = std::min<size_t>(random() % 12, text.size() - at);
      switch (random() % 4) {
        case 0:
          text.erase(at, n);
          break;
        case 1:
          text.insert(at, text.substr(random() % text.size(), n));
          break;
        case 2:
          text.replace(at, n, pieces[random() % std::size(pieces)]);
          break;
        default:
          text[at] = char(random());
      }
      if (text.empty()) break;
    }
    good += survives(text);
  }
  EXPECT_GT(good, 100);
}

}  // namespace strata::ir
