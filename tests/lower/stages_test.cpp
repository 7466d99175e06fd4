// Long pointwise texts in stages: where they are cut, what is kept between, and what is never kept.
#include "lower/pass/stages.h"

#include <gtest/gtest.h>

#include <set>

namespace strata::lower {
namespace {

constexpr DType f32 = DType::F32;

class StagesTest : public testing::Test {
 protected:
  StagesTest() {
    k.name = "test";
    k.inputs = {{"x", f32}, {"y", f32}};
    k.scalars = {{"alpha", f32}};
    k.passes.emplace_back();
    k.passes[0].elementwise = true;
  }
  int add(Node n) {
    k.passes[0].nodes.push_back(n);
    return int(k.passes[0].nodes.size()) - 1;
  }
  int load(uint64_t which) { return add({.op = Op::Load, .type = f32, .imm = which}); }
  int chain(int v, int count) {
    for (int i = 0; i < count; ++i) v = add({.op = Op::Mul, .type = f32, .arg = {v, v, -1}});
    return v;
  }
  void store(int v) {
    const int at = int(k.outputs.size());
    k.outputs.push_back({"y" + std::to_string(at), f32});
    k.passes[0].stores.push_back({at, v});
  }
  Stages split(const std::set<int>& rare = {}) const {
    std::vector<char> rarely(k.passes[0].nodes.size(), 0);
    for (int v : rare) rarely[size_t(v)] = 1;
    Stages made = in_stages(k, rarely);
    for (const Stage& s : made.parts) verify(s.kernel);
    return made;
  }
  // Computed values of each stage.
  static std::vector<int> work(const Stages& s) {
    std::vector<int> out;
    for (const Stage& p : s.parts) {
      out.push_back(0);
      for (const Node& n : p.kernel.passes[0].nodes) out.back() += !n.leaf() && !n.uniform;
    }
    return out;
  }
  Kernel k;
};

TEST_F(StagesTest, ShortTextIsOne) {
  store(chain(load(0), 32));
  const Stages s = split();
  ASSERT_EQ(s.parts.size(), 1u);
  EXPECT_EQ(dump(s.parts[0].kernel), dump(k));
  EXPECT_TRUE(s.kept.empty());
}

TEST_F(StagesTest, EachStageReadsWhatTheOneBeforeKept) {
  store(chain(load(0), 70));
  const Stages s = split();
  EXPECT_EQ(work(s), (std::vector<int>{32, 26, 12}));
  EXPECT_EQ(s.kept, (std::vector<DType>{f32, f32}));
  // Outputs first: the whole kernel's are 0, its inputs 1 and 2; what is kept is -1 and -2.
  EXPECT_EQ(s.parts[0].operands, (std::vector<int>{-1, 1}));
  EXPECT_EQ(s.parts[1].operands, (std::vector<int>{-2, -1}));
  EXPECT_EQ(s.parts[2].operands, (std::vector<int>{0, -2}));
}

TEST_F(StagesTest, ResultsAreStoredLastAndInputsReadAgain) {
  const int x = load(0), y = load(1);
  const int first = chain(x, 30);
  store(first);
  const int alpha = add({.op = Op::Param, .type = f32, .uniform = true});
  store(chain(add({.op = Op::Fma, .type = f32, .arg = {first, y, alpha}}), 20));
  const Stages s = split();
  ASSERT_EQ(s.parts.size(), 2u);
  EXPECT_EQ(s.parts[0].operands, (std::vector<int>{-1, 2}));
  EXPECT_EQ(s.parts[0].kernel.outputs[0].name, "kept_0");
  EXPECT_EQ(s.parts[1].operands, (std::vector<int>{0, 1, -1, 3}));
  EXPECT_EQ(s.parts[1].kernel.scalars.size(), 1u);
}

TEST_F(StagesTest, NoMaskIsKeptNorWhatIsSeldomComputed) {
  const int x = load(0);
  const int mask = add({.op = Op::Gt, .type = DType::Bool, .arg = {x, x, -1}});
  const int slow = chain(x, 20), fast = chain(x, 30);
  const int either = add({.op = Op::Rare, .type = f32, .arg = {mask, slow, fast}});
  store(chain(either, 20));
  const Stages s = split({slow});
  ASSERT_EQ(s.parts.size(), 2u);
  EXPECT_EQ(work(s)[0], 52);  // what the choice is made of, and the choice
  for (const Stage& p : s.parts)
    for (const Operand& o : p.kernel.outputs) EXPECT_EQ(o.storage, f32);
}

TEST_F(StagesTest, WhereManyValuesWouldBeKeptTheTextStaysOne) {
  std::vector<int> all;
  for (int i = 0; i < 4; ++i) all.push_back(chain(load(0), 1));
  for (int round = 0; round < 20; ++round)
    for (int& v : all) v = chain(v, 1);
  for (int v : all) store(v);
  EXPECT_EQ(split().parts.size(), 1u);
}

}  // namespace
}  // namespace strata::lower
