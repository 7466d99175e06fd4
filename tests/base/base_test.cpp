// base/: sizes that do not overflow silently, small vectors, error texts.
#include <gtest/gtest.h>

#include "base/checked.h"
#include "base/inline_vec.h"

namespace strata {

TEST(Checked, ProductsThatDoNotFitRaise) {
  EXPECT_THROW(checked_mul(int64_t(1) << 32, int64_t(1) << 32, "size"), Error);
  EXPECT_THROW(checked_numel({int64_t(1) << 31, int64_t(1) << 31, 4}), Error);
  EXPECT_EQ(checked_numel({int64_t(1) << 62, 0, int64_t(1) << 62}), 0);
  EXPECT_THROW(checked_numel({2, -1}), Error);
}

TEST(Checked, WrapDimNamesTheRange) {
  EXPECT_EQ(wrap_dim(-1, 3), 2);
  EXPECT_EQ(wrap_dim(-1, 0), 0);
  try {
    wrap_dim(3, 3);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Index);
    EXPECT_STREQ(e.what(), "Dimension out of range (expected to be in range of [-3, 2], but got 3)");
  }
}

TEST(SmallVec, GrowsInsertsAndErases) {
  SmallVec<int64_t, 2> v{1, 2};
  for (int64_t i = 3; i < 20; ++i) v.push_back(i);
  v.insert(0, 0);
  v.erase(1);
  EXPECT_EQ(v.size(), 19u);
  EXPECT_EQ(v[0], 0);
  EXPECT_EQ(v[1], 2);
  SmallVec<int64_t, 2> moved = std::move(v);
  EXPECT_EQ(moved.back(), 19);
  EXPECT_TRUE(v.empty());
}

TEST(InlineVec, KeepsValuesAcrossGrowthAndMoves) {
  InlineVec<std::string, 2> v;
  for (int i = 0; i < 10; ++i) v.push_back(std::string(40, char('a' + i)));
  InlineVec<std::string, 2> w = std::move(v);
  EXPECT_EQ(w.size(), 10u);
  EXPECT_EQ(w[9][0], 'j');
  w.resize(1);
  InlineVec<std::string, 2> copy = w;
  EXPECT_EQ(copy[0], w[0]);
}

}  // namespace strata
