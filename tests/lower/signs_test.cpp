// Which arguments pass over a sign, and that others do not.
#include "lower/pass/signs.h"

#include <gtest/gtest.h>

namespace strata::lower {
namespace {

constexpr DType f32 = DType::F32, i32 = DType::I32;

class SignsTest : public testing::Test {
 protected:
  int load(uint64_t which) { return g.add({Op::Load, f32, {-1, -1, -1}, which}); }
  int bits(int v) { return g.op(Op::Bitcast, i32, v); }
  int real(int v) { return g.op(Op::Bitcast, f32, v); }
  int magnitude(int v) { return real(g.bin(Op::And, bits(v), g.constant(i32, 0x7fffffff))); }
  int sign(int v) { return g.bin(Op::And, bits(v), g.constant(i32, 0x80000000)); }
  int copysign(int v, int of) { return real(g.bin(Op::Or, bits(magnitude(v)), sign(of))); }
  int flipped(int v, int by) { return real(g.bin(Op::Xor, bits(v), g.bin(Op::Shl, by, g.constant(i32, 31)))); }
  int squared(int v) { return g.bin(Op::Mul, v, v); }
  // The argument of what is squared, after the pass.
  int under(int v) {
    const int result = squared(v);
    ignore_signs(g, {{result, -1}});
    EXPECT_EQ(g.node(result).arg[0], g.node(result).arg[1]);
    return g.node(result).arg[0];
  }
  Graph g;
  const int x = load(0), y = load(1);
};

TEST_F(SignsTest, OfSquares) {
  EXPECT_EQ(under(g.op(Op::Neg, f32, x)), x);
  EXPECT_EQ(under(magnitude(x)), x);
  EXPECT_EQ(under(copysign(x, y)), x);
  EXPECT_EQ(under(flipped(x, bits(y))), x);
  EXPECT_EQ(under(flipped(copysign(x, y), bits(y))), x);
}

TEST_F(SignsTest, ThroughChoicesAndProducts) {
  const int less = g.compare(Op::Lt, x, y);
  const int chosen = g.select(less, magnitude(x), g.op(Op::Neg, f32, y));
  EXPECT_EQ(under(chosen), chosen);
  EXPECT_EQ(g.node(chosen).arg, (std::array<int, 3>{less, x, y}));
  const int product = g.bin(Op::Mul, magnitude(x), copysign(y, x)), result = magnitude(product);
  ignore_signs(g, {{result, -1}});
  EXPECT_EQ(g.node(product).arg, (std::array<int, 3>{x, y, -1}));
}

TEST_F(SignsTest, WhatIsReadWholeStays) {
  const int turned = g.op(Op::Neg, f32, x);
  const int square = squared(turned), sum = g.bin(Op::Add, turned, y), sqrt = g.op(Op::Sqrt, f32, magnitude(y));
  const int fused = g.op(Op::Fma, f32, turned, turned, g.op(Op::Neg, f32, y));
  const Node before = g.node(sum), root = g.node(sqrt);
  const int added = g.node(fused).arg[2];
  ignore_signs(g, {{square, -1}, {sum, -1}, {sqrt, -1}, {fused, -1}});
  EXPECT_EQ(g.node(square).arg[0], turned);  // it is computed in any case
  EXPECT_EQ(g.node(sum).arg, before.arg);
  EXPECT_EQ(g.node(sqrt).arg, root.arg);
  EXPECT_EQ(g.node(fused).arg[2], added);
}

TEST_F(SignsTest, ResultsKeepTheirs) {
  const int turned = g.op(Op::Neg, f32, x), joined = g.bin(Op::Xor, bits(x), bits(y)), result = real(joined);
  ignore_signs(g, {{turned, -1}, {squared(result), -1}});
  EXPECT_EQ(g.node(turned).arg[0], x);
  EXPECT_EQ(g.node(result).arg[0], joined);  // y has more bits than its sign
}

// Where the maximum of a row is taken away, nothing is above zero: softmax's exp has no part for what is.
TEST(Fold, NothingIsAboveTheMaximum) {
  Graph g;
  const int x = g.add({Op::Load, f32, {-1, -1, -1}, 0}), y = g.add({Op::Load, f32, {-1, -1, -1}, 1});
  const int most = g.add({Op::Reduced, f32, {-1, -1, -1}, uint64_t(g.reduce({Combine::Max, f32, {x, -1}, "m"}))});
  const int least = g.add({Op::Reduced, f32, {-1, -1, -1}, uint64_t(g.reduce({Combine::Min, f32, {x, -1}, "m"}))});
  auto is_false = [&](int v) { return g.node(v).op == Op::Const && g.node(v).imm == 0; };
  const int below = g.bin(Op::Sub, x, most), zero = g.real(f32, 0), one = g.real(f32, 1);
  EXPECT_TRUE(is_false(g.compare(Op::Gt, below, zero)));
  EXPECT_TRUE(is_false(g.compare(Op::Gt, below, one)));
  EXPECT_TRUE(is_false(g.compare(Op::Lt, zero, below)));
  EXPECT_FALSE(is_false(g.compare(Op::Gt, below, g.real(f32, -1))));
  EXPECT_FALSE(is_false(g.compare(Op::Ge, below, zero)));
  EXPECT_FALSE(is_false(g.compare(Op::Gt, g.bin(Op::Sub, y, most), zero)));
  EXPECT_FALSE(is_false(g.compare(Op::Gt, g.bin(Op::Sub, x, least), zero)));
  EXPECT_FALSE(is_false(g.compare(Op::Gt, g.bin(Op::Sub, most, x), zero)));
}

}  // namespace
}  // namespace strata::lower
