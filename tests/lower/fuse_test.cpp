// Fusing: what is computed in place of a read, under which guard, over which ranges, and what is refused.
#include "lower/pass/fuse.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lower/pass/space_nest.h"

namespace strata::lower {
namespace {

Nest space(const char* inputs, const char* scalars, const char* outputs, const char* text, const char* over = "",
           DType dtype = DType::F32) {
  return build_space({"test", "test", KernelKind::Space, inputs, scalars, outputs, text, ~0u, "test", over}, dtype, {});
}

TEST(Fuse, IndicesStandForRangesUnderTheGuard) {
  const Nest producer = space("x[a] w[b]", "", "t[a]", "x * w[extent(b) - 1 - a]");
  const Nest consumer = space("t[n]", "before:int64 value", "y[i]", "inside(t[i - before], value)");
  ASSERT_EQ(why_not(consumer, producer), "");
  const Fused fused = fuse(consumer, producer, "both");
  EXPECT_EQ(dump(fused.nest), R"(nest both_f32
 out y[i] f32
 in x[n] f32
 in w[b] f32
 scalar before i64
 scalar value f32
  %0 [i] i64 = range i
  %1 [] i64 = stride y 0
  %2 [i] i64 = mul %0 %1
  %3 [] i64 = param before
  %4 [i] i64 = sub %0 %3
  %5 [] i64 = const 0
  %6 [i] b8 = ge %4 %5
  %7 [] i64 = extent n
  %8 [i] b8 = lt %4 %7
  %9 [i] b8 = and %6 %8
  %10 [] i64 = stride x 0
  %11 [i] i64 = mul %4 %10
  %12 [i] f32 = at x %11 %9
  %13 [] i64 = extent b
  %14 [] i64 = const 1
  %15 [] i64 = sub %13 %14
  %16 [i] i64 = sub %15 %4
  %17 [] i64 = stride w 0
  %18 [i] i64 = mul %16 %17
  %19 [i] f32 = at w %18 %9
  %20 [i] f32 = mul %12 %19
  %21 [] f32 = const 0
  %22 [i] f32 = select %9 %20 %21
  %23 [] f32 = param value
  %24 [i] f32 = select %9 %22 %23
  store y %2 %24
)");
  EXPECT_EQ(fused.of_consumer, (std::vector<int>{0, 1, -1}));
  EXPECT_EQ(fused.of_producer, (std::vector<int>{-1, -1, 1}));
}

// The row's largest value is known outside of the loop over its elements; the tensor that both read is one.
TEST(Fuse, AReductionBindsARangeOfItsOwn) {
  const Nest producer = space("x[r,n]", "", "m[r]", "max(x[r, k])", "k");
  const Nest consumer = space("x[r,i] m[r]", "", "y[r,i]", "x - m");
  const Fused fused = fuse(consumer, producer, "both");
  EXPECT_EQ(dump(fused.nest), R"(nest both_f32
 out y[r,i] f32
 in x[r,i] f32
  %0 [r] i64 = range r
  %1 [] i64 = stride y 0
  %2 [r] i64 = mul %0 %1
  %3 [i] i64 = range i
  %4 [] i64 = stride y 1
  %5 [i] i64 = mul %3 %4
  %6 [r,i] i64 = add %2 %5
  %7 [] i64 = stride x 0
  %8 [r] i64 = mul %0 %7
  %9 [] i64 = stride x 1
  %10 [i] i64 = mul %3 %9
  %11 [r,i] i64 = add %8 %10
  %12 [r,i] f32 = at x %11
  %13 [k] i64 = range k
  %14 [k] i64 = mul %13 %9
  %15 [r,k] i64 = add %8 %14
  %16 [r,k] f32 = at x %15
  %17 [r] f32 = reduced 0
  %18 [r,i] f32 = sub %12 %17
  reduction 0 max f32 over [k] tree %16
  store y %6 %18
)");
  // The same, where the producer's loop and its reduction have one range.
  const Nest soft = space("x[r,i]", "", "m[r,i]", "x - max(x[r, k])", "k");
  const Nest sum = space("m[r,n]", "", "y[r]", "sum(m[r, j])", "j");
  const Nest twice = fuse(sum, soft, "sums").nest;
  ASSERT_EQ(twice.reductions.size(), 2u);
  EXPECT_EQ(twice.reductions[0].over & twice.reductions[1].over, 0u);
}

TEST(Fuse, RoundingsStay) {
  auto converts = [](const Nest& n) {
    return std::count_if(n.nodes.begin(), n.nodes.end(),
                         [](const Node& m) { return m.type == DType::U16 && m.op == Op::Convert; });
  };
  const Nest producer = space("x[a]:bfloat16", "", "t[a]:bfloat16", "x * 3");
  const Nest consumer = space("t[i]:bfloat16", "", "y[i]:bfloat16", "t + 1");
  EXPECT_EQ(converts(producer), 1);
  EXPECT_EQ(converts(fuse(consumer, producer, "both").nest), 2);
}

TEST(Fuse, ReadsTheSameTensorAtSeveralPlaces) {
  const Nest producer = space("x[a]", "", "t[a]", "x * x");
  const Nest consumer = space("t[i]", "", "y[i]", "t + t[extent(i) - 1 - i] + t[0] + t[1]");
  const Nest nest = fuse(consumer, producer, "both").nest;
  EXPECT_EQ(std::count_if(nest.nodes.begin(), nest.nodes.end(), [](const Node& n) { return n.op == Op::At; }), 4);
}

// What is handed along a dim is handed along the consumer's loop, where that reads it in order.
TEST(Fuse, ScansAreReadInOrder) {
  const Nest sums = space("x[a,b]", "", "t[a,b]", "scan(b, p, q, p + q, x)");
  const Nest nest = fuse(space("t[i,j] z[i]", "", "y[i,j]", "t * 2 + z"), sums, "both").nest;
  ASSERT_EQ(nest.carries.size(), 1u);
  EXPECT_EQ(nest.ranges[size_t(nest.carries[0].range)].name, "j");
  EXPECT_TRUE(nest.ranges[size_t(nest.carries[0].range)].whole);
  const std::string other = "t is handed along a dim, and not read in its order";
  for (const char* text : {"t[i, extent(n) - 1 - j]", "t[i, j - 1 + j]", "inside(t[i, j], 0)", "t[j, i]", "t[i, 0]"})
    EXPECT_EQ(why_not(space("t[m,n]", "", "y[i,j]", text), sums), other) << text;
  EXPECT_EQ(why_not(space("t[i,n]", "", "y[i]", "sum(t[i, k])", "k"), sums), other);
  EXPECT_EQ(why_not(space("t[n,j]", "", "y[j]", "sum(t[k, j])", "k"), sums), other);
  const KernelDesc rows{"rows", "test", KernelKind::Rows, "t", "", "result", "t - max(t)", ~0u, "test"};
  EXPECT_EQ(why_not(build_nest(rows, DType::F32), sums), other) << "a row that is reduced, and walked once more";
}

// A loop inside of an element is one for each place at which the element is read.
TEST(Fuse, RepeatsAtEachPlace) {
  const Nest halves = space("x[a]", "", "t[a]", "repeat(v, v > 1, v, x, v * 0.5)");
  const Nest nest = fuse(space("t[i]", "", "y[i]", "t + t[extent(i) - 1 - i]"), halves, "both").nest;
  ASSERT_EQ(nest.carries.size(), 2u);
  EXPECT_NE(nest.carries[0].range, nest.carries[1].range);
}

TEST(Fuse, SaysWhyNot) {
  auto reason = [](const Nest& consumer, const Nest& producer) { return why_not(consumer, producer); };
  const Nest reads = space("t[i]", "", "y[i]", "t + 1");
  EXPECT_EQ(reason(reads, space("x[i]", "", "other[i]", "x")), "the consumer reads nothing that the producer writes");
  EXPECT_EQ(reason(reads, space("x[i,j]", "", "t[i,j]", "x")), "t has 2 dims, and is read with 1");
  EXPECT_EQ(reason(reads, space("x[i]", "", "t[i]:float64", "x")),
            "t is written as strata.float64 and read as strata.float32");
  EXPECT_EQ(reason(reads, space("x[i] at[i]:int64", "", "t[n]", "sum_into(t[checked(at)], x)")), "t is scattered to");
  EXPECT_EQ(reason(reads, space("y[i]", "", "t[i]", "y")), "the producer reads y, which the consumer writes");
  // A status must not be lost.
  const Nest gathers = space("x[n] at[i]:int64", "", "t[i]", "x[checked(at)]");
  EXPECT_EQ(reason(reads, gathers), "");
  const std::string lost = "t is checked where it is made, and not read everywhere";
  EXPECT_EQ(reason(space("t[n]", "", "y[i]", "t[0]"), gathers), lost);
  EXPECT_EQ(reason(space("t[n]", "", "y[i]", "inside(t[i], 0)"), gathers), lost);
  EXPECT_EQ(reason(space("t[i] z[i,j]", "", "y[i,j]", "z + t"), gathers), lost) << "there may be no j";
  EXPECT_EQ(reason(space("t[j] z[i,j]", "", "y[i,j]", "z + t"), gathers), lost) << "there may be no i";
  // Rows that are looked up may have no elements, and then nothing looks them up.
  const Nest rows = space("x[n,j] at[i]:int64", "", "t[i,j]", "x[checked(at), j]");
  EXPECT_EQ(reason(space("t[k,j]", "", "y[j]", "sum(t)", "k"), rows), "");
  EXPECT_EQ(reason(space("t[i,k]", "", "y[i]", "sum(t)", "k"), rows), lost) << "there may be no k";
  // What is one number is made also where nothing is written.
  const Nest number = space("x[n] at[k]:int64", "", "t", "sum(x[checked(at)])", "k");
  EXPECT_EQ(reason(space("t z[i]", "", "y[i]", "z + t"), number), lost);
  EXPECT_EQ(reason(space("t", "", "y", "t + 1"), number), "");
  const Nest nest = fuse(reads, gathers, "both").nest;
  EXPECT_TRUE(std::any_of(nest.nodes.begin(), nest.nodes.end(), [](const Node& n) { return n.op == Op::Check; }));
  EXPECT_THROW(fuse(space("t[n]", "", "y[i]", "t[0]"), gathers, "both"), Error);
}

}  // namespace
}  // namespace strata::lower
