// dispatch/info: what the table says of an operator, at run time.
#include "dispatch/info.h"

#include <gtest/gtest.h>

#include "dispatch/boxed.h"

namespace strata {

namespace {
Operator& named(const char* name) { return OperatorTable::instance().get(name); }
}  // namespace

TEST(Info, SaysWhatTheTableSays) {
  const OpInfo sum = *info(named("aten::sum.dim_IntList"));
  EXPECT_EQ(sum.kind, "rows");
  EXPECT_EQ(sum.text, "sum(self)");
  EXPECT_EQ(sum.promotion, "sum");
  EXPECT_EQ(sum.outputs, "result:row");
  EXPECT_NE(sum.order.find("tree T"), std::string_view::npos);
  ASSERT_EQ(sum.derivatives.size(), 1u);
  EXPECT_EQ(sum.derivatives[0].first, "self");
  EXPECT_EQ(info(named("aten::transpose.int"))->gradient, "formulas");
  EXPECT_FALSE(info(named("aten::transpose.int"))->inverse.empty());
}

TEST(Info, EveryOperatorOfTheTableHasASourceAndAKind) {
  int n = 0;
  for (Operator* op : OperatorTable::instance().all()) {
    const std::optional<OpInfo> said = info(*op);
    if (!said) continue;
    ++n;
    EXPECT_EQ(said->source.substr(0, 4), "ops/") << op->name;
    EXPECT_FALSE(said->kind.empty()) << op->name;
    EXPECT_FALSE(said->text.empty() && said->kind != "cpu") << op->name;
    EXPECT_NE(describe(*op).find(op->schema_text), std::string::npos);
  }
  EXPECT_GT(n, 1500);
}

TEST(Info, FormsThatWriteHaveFunctionalTwins) {
  EXPECT_EQ(functional_twin(named("aten::add_.Tensor")), &named("aten::add.Tensor"));
  EXPECT_EQ(functional_twin(named("aten::add.out")), &named("aten::add.Tensor"));
  EXPECT_EQ(functional_twin(named("aten::add.Tensor")), nullptr);
}

TEST(Info, OthersHaveNone) {
  EXPECT_FALSE(info(define_boxed("info_test::one(Tensor self) -> Tensor")));
  try {
    named("aten::cosin");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find(" aten::cos"), std::string::npos) << e.message();
  }
}

}  // namespace strata
