// ir/verify: one graph that breaks each rule.
#include "ir/verify.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "strata/generated/ops.h"

namespace strata::ir {

namespace {

Type f32(std::initializer_list<int64_t> sizes) { return type_of(ops::ones(IntArrayRef(sizes))); }

std::string fault(const Graph& g, Stage stage = Stage::Captured) {
  try {
    verify(g, stage);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Value);
    return e.message();
  }
  return "";
}

// One node over %0.
struct One {
  Graph g;
  Node n;
  One() {
    g.body.params.push_back(g.add(f32({2})));
    n.op = &OperatorTable::instance().get("aten::add.Scalar");
    n.args = {Arg::one(0), {Arg::Constant, IValue(Scalar(1)), {}}, {Arg::Constant, IValue(Scalar(1)), {}}};
    n.results = {g.add(f32({2}))};
    n.span = "m.py:3 in f";
  }
  std::string told(Stage stage = Stage::Captured) {
    g.body.nodes = {n};
    g.body.results = {1};
    return fault(g, stage);
  }
};

std::string told(void (*break_it)(One&)) {
  One one;
  break_it(one);
  return one.told();
}

std::string functional(std::string_view text) { return fault(parse(text), Stage::Functional); }

}  // namespace

TEST(Verify, NamesTheNodeAndTheRule) {
  EXPECT_EQ(told([](One&) {}), "");
  EXPECT_EQ(told([](One& o) { o.n.args[0] = Arg::one(7); }),
            "graph: node 0, aten::add.Scalar (m.py:3 in f): argument 0: %7 is not defined before, in this block or one "
            "around it");
  auto has = [](void (*break_it)(One&), const std::string& part) {
    const std::string got = told(break_it);
    EXPECT_NE(got.find(part), got.npos) << got;
  };
  has([](One& o) { o.n.args[0] = Arg::one(1); }, "argument 0: %1 is not defined before");
  has([](One& o) { o.n.args[0] = Arg::one(kNone); }, "argument 'self': expected Tensor, got None");
  has([](One& o) { o.n.args.pop_back(); }, "expected 3 arguments, got 2; the schema is aten::add.Scalar(");
  has([](One& o) { o.n.args[1].constant = IValue(std::string("a")); }, "argument 'other': expected Scalar, got 'a'");
  has([](One& o) { o.n.args[1] = Arg::list({0}); }, "argument 'other': expected Scalar, got a list");
  has([](One& o) { o.n.args[1] = Arg::one(0); }, "argument 'other': expected Scalar, got %0: f32[2]");
  has([](One& o) { o.n.args[1].values = {0, 0}; }, "neither a constant nor one value");
  has([](One& o) { o.n.results = {0}; }, "defines %0 a second time");
  has([](One& o) { o.n.results = {1, kNone}; }, "expected 1 results, got 2");
  has([](One& o) { o.n.results = {9}; }, "there is no %9");
  has([](One& o) { o.g.values[1].type.kind = Type::Int; }, "its result %1 is no tensor");
  has([](One& o) { o.g.values[1].type.strides = {}; }, "%1 has 1 sizes and 0 strides");
  has([](One& o) { o.n.op = nullptr; }, "expected an operator");
  has([](One& o) { o.n.constant = ops::ones({2}); }, "holds a tensor");
  has([](One& o) { o.n.blocks.resize(1); }, "has blocks");
  has([](One& o) { o.n.kind = Node::If; }, "expected a condition");
  has([](One& o) { o.n.kind = Node::Loop; }, "expected a count, a condition");
  has([](One& o) { o.n.kind = Node::Constant; }, "expected one constant and one result");
  has([](One& o) { o.g.captured.push_back(ops::ones({3})); }, "captured tensor 0: expected f32[2], got f32[3]");
  has([](One& o) { o.g.captured.resize(2); }, "expected a parameter for each captured tensor");
  has([](One& o) { o.g.values[0].type.kind = Type::Int; }, "expected tensors as parameters, got %0: int");
}

TEST(Verify, BlocksAgreeWithTheirNodes) {
  auto wrong = [](const std::string& node, const std::string& part) {
    std::string got;
    try {
      parse("graph(%0: b8[], %1: f32[2], %2: f32[3]) {\n" + node + "\n  return %1\n}");
    } catch (const Error& e) {
      got = e.message();
    }
    EXPECT_NE(got.find(part), got.npos) << node << "\n" << got;
  };
  wrong("%3: f32[2] = if %0 { yield %1 } else { yield %2 }",
        "a block's result: expected one type, got f32[3] and f32[2]");
  wrong("%3: f32[2] = if %0 { yield %1 } else { yield }", "expected 1 results of each block, got 0");
  wrong("%3: f32[2] = if %0 { yield %1 } else { yield None }", "expected one type, got None and f32[2]");
  wrong("if %0 (%3: int) { yield } else { yield }", "expected blocks without parameters");
  wrong("%3: f32[2] = loop %1, True, %1 (%4: int, %5: f32[2]) { yield %0, %5 }", "expected an int as its count");
  wrong("%3: f32[2] = loop 3, 3, %1 (%4: int, %5: f32[2]) { yield %0, %5 }", "expected a condition");
  wrong("%3: f32[2] = loop 3, True, %1 (%4: int, %5: f32[2]) { yield %1, %5 }",
        "expected a condition as its block's first");
  wrong("%3: f32[2] = loop 3, True, %1 (%4: int, %5: f32[3]) { yield %0, %5 }", "what it carries: expected one type");
  wrong("%3: f32[2] = loop 3, True, %1 (%4: int, %5: f32[2]) { yield %0, %2 }",
        "what its block carries on: expected one");
  wrong("%3: f32[3] = loop 3, True, %1 (%4: int, %5: f32[2]) { yield %0, %5 }", "its result: expected one type");
  wrong("%3: f32[2] = loop 3, True, %1 (%4: f32[2], %5: f32[2]) { yield %0, %5 }", "the turn's number");
  wrong("%3: f32[2] = loop 3, True, %1 (%4: int) { yield %0, %1 }", "carries 1 values: expected 2 parameters");
  wrong("%3: int = loop 3, True, 2.0 (%4: int, %5: int) { yield %0, %5 }",
        "expected what it carries to be int, got 2.0");
  wrong("if %0 { %3: f32[2] = aten::neg(%1) yield } else { %4: f32[2] = aten::neg(%3) yield }",
        "%3 is not defined before");
}

TEST(Verify, TypesAreWhatRunsGive) {
  auto types = [](const std::string& result, const std::string& call) {
    try {
      parse("graph(%0: f32[2, 3], %1: i64[2]) {\n%2: " + result + " = " + call + "\nreturn %0\n}");
    } catch (const Error& e) {
      return e.message();
    }
    return std::string();
  };
  EXPECT_EQ(types("f32[2]", "aten::neg(%0)  # m.py:3 in f"),
            "graph: aten::neg (m.py:3 in f): gives f32[2, 3], where the graph says %2: f32[2]");
  EXPECT_EQ(types("f32[2, 3]", "aten::neg(%0)"), "");
  EXPECT_NE(types("f64[2, 3]", "aten::neg(%0)").find("gives f32[2, 3]"), std::string::npos);
  EXPECT_NE(types("f32[3, 2]", "aten::permute(%0, [1, 0])").find("gives f32[3, 2; 1, 3]"), std::string::npos);
  EXPECT_NE(types("number f64", "aten::sum(%0, dtype=None)").find("gives f32[]"), std::string::npos);
  EXPECT_EQ(types("f32[7]", "aten::mm(%0, %0)"), "");  // which raises when it is run
}

TEST(Verify, FunctionalGraphsEndWithCopies) {
  EXPECT_EQ(
      functional("graph(%0: f32[2], %1: f32[2]) { %2: f32[2] = aten::neg(%0) %3: f32[2] = aten::copy_(%0, %2, False) "
                 "%4: f32[2] = aten::copy_(%1, %2, False) return %0 }"),
      "");
  auto has = [](std::string_view text, const std::string& part) {
    const std::string got = functional(text);
    EXPECT_NE(got.find(part), got.npos) << text << "\n" << got;
  };
  has("graph(%0: f32[2]) { %1: f32[2] = aten::neg_(%0) return %0 }",
      "aten::neg_: writes an operand, and is none of the last");
  has("graph(%0: f32[2]) { %1: f32[2] = aten::copy_(%0, %0, False) %2: f32[2] = aten::neg(%0) return %2 }",
      "aten::copy_: writes");
  has("graph(%0: f32[2]) { %1: f32[2] = aten::neg(%0) %2: f32[2] = aten::copy_(%1, %0, False) return %1 }",
      "aten::copy_: writes");
  has("graph(%0: f32[2]) { %1: f32[2] = aten::copy_(%0, %0, False) %2: f32[2] = aten::copy_(%0, %0, False) return %0 }",
      "writes");
  has("graph(%0: f32[2]) { %1: f32[2] = aten::copy_(%0, %0, False) return %1 }", "returns %1, a copy's result");
  has("graph(%0: b8[], %1: f32[2]) { if %0 { %2: f32[2] = aten::neg_(%1) yield } else { yield } return %1 }",
      "aten::neg_: writes");
}

}  // namespace strata::ir
