// Nests: what the builders make of a text, what the printer makes of them, and what both refuse.
#include "lower/ir/nest.h"

#include <gtest/gtest.h>

#include <bit>
#include "lower/pass/fuse.h"
#include "lower/pass/inner_loop.h"
#include "lower/pass/space_nest.h"
#include "lower/print/print_nest.h"
#include "lower/source.h"

namespace strata::lower {
namespace {

KernelDesc space(const char* inputs, const char* scalars, const char* outputs, const char* text) {
  return {"test", "test", KernelKind::Space, inputs, scalars, outputs, text, 1u << int(DType::F32), "test"};
}

std::string refusal(const KernelDesc& desc, SpaceForm form = {}) {
  try {
    build_space(desc, DType::F32, form);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Value);
    return e.what();
  }
  return "";
}

TEST(Nest, OfAGather) {
  const KernelDesc d = space("self[p..,n] index[i]:int64", "", "result[p..,i]", "self[p, checked(index)]");
  EXPECT_EQ(dump(build_space(d, DType::F32, {})), R"(nest test_f32
 out result[outer,i] f32
 in self[outer,n] f32
 in index[i] i64
  %0 [outer] i64 = range outer
  %1 [i] i64 = range i
  %2 [] i64 = stride index 0
  %3 [i] i64 = mul %1 %2
  %4 [i] i64 = at index %3
  %5 [] i64 = extent n
  %6 [] i64 = const 0
  %7 [i] b8 = ge %4 %6
  %8 [i] b8 = lt %4 %5
  %9 [i] b8 = and %7 %8
  %10 [i] b8 = check 2 %9
  %11 [] i64 = stride self 0
  %12 [outer] i64 = mul %0 %11
  %13 [] i64 = stride self 1
  %14 [i] i64 = mul %4 %13
  %15 [outer,i] i64 = add %12 %14
  %16 [outer,i] f32 = at self %15 %10
  %17 [] i64 = stride result 0
  %18 [outer] i64 = mul %0 %17
  %19 [] i64 = stride result 1
  %20 [i] i64 = mul %1 %19
  %21 [outer,i] i64 = add %18 %20
  store result %21 %16
)");
}

TEST(Nest, PrintsWhatADimKnowsOutsideOfTheNextLoop) {
  const KernelDesc d = space("self[g..]", "value before[f]", "result[f..]", "inside(self[f - before], value)");
  NestHelpers helpers(c99);
  EXPECT_EQ(print_nest(build_space(d, DType::F32, {1, false}), c99, helpers), R"(// test
//   inside(self[f - before], value)
void test_r1_f32(void* result_out_memory, i64 result_out_byte, const void* self_memory, i64 self_byte, i64 n_f0, i64 n_g0, i64 result_out_s0, i64 self_s0, f32 value, i64 before0, i64 begin_f0, i64 end_f0, i32* status) {
  f32* const p_result_out = (f32*)((char*)result_out_memory + result_out_byte);
  const f32* const p_self = (const f32*)((const char*)self_memory + self_byte);
  for (i64 f0 = begin_f0; f0 < end_f0; f0++) {
    const i64 t = (i64)((u64)f0 - (u64)before0);
    const bit m = t >= 0;
    const bit m_2 = t < n_g0;
    const bit m_3 = m & m_2;
    const i64 t_2 = (i64)((u64)t * (u64)self_s0);
    const f32 self = m_3 ? p_self[t_2] : 0;
    const f32 result = m_3 ? self : value;
    const i64 t_3 = (i64)((u64)f0 * (u64)result_out_s0);
    p_result_out[t_3] = result;
  }
}

)");
}

// The comparison with the limit is gone from the loops, and with it the guard.
TEST(Nest, PrintsPiecesOfTheInnermostLoop) {
  const KernelDesc d = space("self[g..]", "value before[f]", "result[f..]", "inside(self[f - before], value)");
  Dialect local = c99;
  local.any_order = "ANY_ORDER";
  NestHelpers helpers(local);
  const std::string text = print_nest(build_space(d, DType::F32, {1, false}), local, helpers);
  const size_t begin = text.find("  if ("), end = text.find("  } else {");
  EXPECT_EQ(text.substr(begin, end - begin), R"(  if (self_s0 == 1 && result_out_s0 == 1) {
    {
      const i64 t_4 = (i64)((u64)0 - (u64)before0);
      const i64 t_5 = (i64)((u64)0 - (u64)t_4);
      const i64 t_6 = (i64)((u64)n_g0 - (u64)t_4);
      const i64 t_7 = (i64)((u64)t_4 * (u64)self_s0);
      i64 first = begin_f0, past = end_f0;
      first = greater(first, t_5);
      past = lesser(past, t_6);
      ANY_ORDER
      for (i64 f0 = first; f0 < past; f0++) {
        const f32 self = p_self[t_7 + f0];
        p_result_out[f0] = self;
      }
    }
    {
      const i64 t_4 = (i64)((u64)0 - (u64)before0);
      const i64 t_5 = (i64)((u64)0 - (u64)t_4);
      const i64 t_6 = (i64)((u64)n_g0 - (u64)t_4);
      i64 first = begin_f0, past = end_f0;
      first = greater(first, t_5);
      first = greater(first, t_6);
      ANY_ORDER
      for (i64 f0 = first; f0 < past; f0++) {
        p_result_out[f0] = value;
      }
    }
    {
      const i64 t_4 = (i64)((u64)0 - (u64)before0);
      const i64 t_5 = (i64)((u64)0 - (u64)t_4);
      i64 first = begin_f0, past = end_f0;
      past = lesser(past, t_5);
      ANY_ORDER
      for (i64 f0 = first; f0 < past; f0++) {
        p_result_out[f0] = value;
      }
    }
)");
}

TEST(Nest, LoopsThatReadBackwardsHaveAHintOfTheirOwn) {
  Dialect local = c99;
  local.any_order = "ANY_ORDER";
  local.backwards = "BACKWARDS";
  NestHelpers helpers(local);
  const KernelDesc turned = space("self[f..]", "", "result[f..]", "self[extent(f) - 1 - f]");
  const KernelDesc moved = space("self[g..]", "value before[f]", "result[f..]", "inside(self[f - before], value)");
  const std::string back = print_nest(build_space(turned, DType::F32, {1, false}), local, helpers);
  const std::string on = print_nest(build_space(moved, DType::F32, {1, false}), local, helpers);
  EXPECT_NE(back.find("BACKWARDS\n"), std::string::npos);
  EXPECT_EQ(back.find("ANY_ORDER\n"), std::string::npos);
  EXPECT_EQ(on.find("BACKWARDS\n"), std::string::npos);
}

TEST(Nest, PiecesNest) {
  const KernelDesc d = space("self[g..]", "before[f]", "result[f..]",
                             "self[where(f < before, before - f, where(f - before >= extent(g), "
                             "2 * extent(g) - 2 - f + before, f - before))]");
  Nest nest = build_space(d, DType::F32, {1, false});
  const InnerLoop loop(nest, 0);
  ASSERT_EQ(loop.pieces().size(), 3u);
  const std::vector<std::vector<bool>> upper = {{true}, {false, false}, {false, true}};
  for (size_t k = 0; k < 3; ++k) {
    const InnerPiece& piece = loop.pieces()[k];
    ASSERT_EQ(piece.limits.size(), upper[k].size());
    for (size_t l = 0; l < upper[k].size(); ++l) EXPECT_EQ(piece.limits[l].upper, upper[k][l]);
    ASSERT_EQ(piece.reads.size(), 1u);
    EXPECT_EQ(piece.reads.begin()->second.sign, k == 2 ? 1 : -1);
  }
  EXPECT_EQ(loop.strides().size(), 2u);
}

size_t pieces(const KernelDesc& desc) {
  Nest nest = build_space(desc, DType::F32, {});
  return InnerLoop(nest, 0).pieces().size();
}

// In the piece that does not read, too: an error does not depend on strides.
TEST(Nest, EveryPieceReports) {
  const KernelDesc d = space("self[n] index[i]:int64", "by:int64", "result[i]",
                             "where(i < 5, self[checked(index)], 0) + where(i < 5, floordiv(i, by), 0)");
  Nest nest = build_space(d, DType::F32, {});
  const InnerLoop loop(nest, 0);
  ASSERT_EQ(loop.pieces().size(), 2u);
  EXPECT_EQ(loop.pieces()[0].reports.size(), 0u);
  ASSERT_EQ(loop.pieces()[1].reports.size(), 2u);
  EXPECT_TRUE(nest.depends[size_t(loop.pieces()[1].reports[0])] & 1);
  EXPECT_FALSE(nest.depends[size_t(loop.pieces()[1].reports[1])] & 1) << "the divisor is known before the loop";
}

// A reduction over the loop's own range is not cut with it, one inside of another stays there.
// Rows that are outside belong to somebody else, also where the loop's pieces know it.
TEST(Nest, StripsReadNothingThatIsOutside) {
  KernelDesc made = space("x[a,k]", "", "v[a]", "sum(x)");
  made.over = "k";
  made.sequence = true;
  const KernelDesc d = space("v[n]", "", "y[i]", "inside(v[i - 5], 2.5)");
  const Nest nest = fuse(build_space(d, DType::F32, {}), build_space(made, DType::F32, {}), "both").nest;
  Dialect local = c99;
  local.any_order = "";
  NestHelpers helpers(local);
  const std::string text = print_nest(nest, local, helpers);
  EXPECT_NE(text.find("strip"), std::string::npos);
  EXPECT_NE(text.find("const f32 x_2 = 0;"), std::string::npos) << text;
}

TEST(Nest, ReductionsThatAreNotTakenApart) {
  KernelDesc d = space("v[a] x[m]", "", "y[i]", "sum(v[i] * k)");
  d.over = "k";
  d.sequence = true;
  KernelDesc inside = space("x[m]", "", "v[a]", "sum(x[k] * a)");
  inside.over = "k";
  inside.sequence = true;
  Nest nest = fuse(build_space(d, DType::F32, {}), build_space(inside, DType::F32, {}), "both").nest;
  Dialect local = c99;
  local.any_order = "";
  NestHelpers helpers(local);
  EXPECT_NE(print_nest(nest, local, helpers).find("strip"), std::string::npos) << "nothing is inside: it is hoisted";
  d.text = "sum(v[i + k])";
  nest = fuse(build_space(d, DType::F32, {}), build_space(inside, DType::F32, {}), "both").nest;
  EXPECT_EQ(print_nest(nest, local, helpers).find("strip"), std::string::npos);
}

// Of a reduction without elements, too, an index that hangs on no element is checked.
TEST(Nest, ChecksOutsideOfAReductionStayThere) {
  KernelDesc d = space("x[n] at[i]:int64", "", "y[i]", "sum(x[checked(at)] * k)");
  d.over = "k";
  d.sequence = true;
  Dialect local = c99;
  local.any_order = "";
  NestHelpers helpers(local);
  EXPECT_EQ(print_nest(build_space(d, DType::F32, {}), local, helpers).find("strip"), std::string::npos);
  d.text = "sum(x[checked(at + k)])";
  EXPECT_NE(print_nest(build_space(d, DType::F32, {}), local, helpers).find("strip"), std::string::npos);
}

// What a strip's reduction reads of another one is known before its loops, whose index the other one has, too.
TEST(Nest, AReductionThatIsReadComesFirst) {
  KernelDesc d = space("x[n] z[m]", "", "y[i]", "r = sum(inside(x[k + 2]))\nmin(z[i] * x[k] + r)");
  d.over = "k";
  d.sequence = true;
  Dialect local = c99;
  local.any_order = "";
  NestHelpers helpers(local);
  const std::string text = print_nest(build_space(d, DType::F32, {}), local, helpers);
  const size_t strip = text.find("f32 min[64];"), sum = text.find("add = add +", strip);
  const size_t loop = text.find("for (i64 k = 0", text.find("const f32 r = add;", strip));
  ASSERT_NE(strip, std::string::npos);
  EXPECT_LT(sum, loop);
  EXPECT_EQ(text.substr(0, sum).find("for (i64 k = 0", text.find("for (i64 k = 0", strip) + 1), std::string::npos);
}

TEST(Nest, ConditionsThatAreNoLimitsStay) {
  for (const char* text : {"where(index[i] < i, self, 0)", "where(i * i < 5, self, 0)"}) {
    const KernelDesc d = space("self[i] index[i]:int64", "", "result[i]", text);
    EXPECT_EQ(pieces(d), 1u) << text;
  }
  EXPECT_EQ(pieces(space("self[i]", "", "result[i]", "self * maximum(i, 5)")), 1u);
  const KernelDesc d = space("self[i]", "", "result[i]", "where(5 > i, self, where(3 - i <= 1, self * 2, 0))");
  EXPECT_EQ(pieces(d), 3u);
}

// A window's sums: a strip of the innermost loop at a time, cut where the window is at an edge.
TEST(Nest, WindowsGoStripAfterStrip) {
  KernelDesc d = space("self[p..,w]", "s:int64 pad:int64", "result[p..,x]", "sum(inside(self[p, x * s + k - pad]))");
  d.over = "k";
  d.sequence = true;
  Nest nest = build_space(d, DType::F32, {});
  ASSERT_EQ(nest.reductions.size(), 1u);
  EXPECT_GE(nest.reductions[0].guard, 0);
  const InnerLoop loop(nest, 1, {nest.reductions[0].value[0], nest.reductions[0].guard});
  ASSERT_EQ(loop.pieces().size(), 3u);
  const InnerPiece& within = loop.pieces()[0];
  ASSERT_EQ(within.limits.size(), 2u);
  for (const InnerPiece::Limit& l : within.limits) {
    ASSERT_GE(l.divisor, 0);
    EXPECT_EQ(nest.nodes[size_t(l.divisor)].op, Op::Param);
  }
  EXPECT_FALSE(loop.never(within, nest.reductions[0].guard));
  for (size_t k : {1, 2}) EXPECT_TRUE(loop.never(loop.pieces()[k], nest.reductions[0].guard));
  Dialect local = c99;
  local.any_order = "";
  NestHelpers helpers(local);
  const std::string text = print_nest(build_space(d, DType::F32, {}), local, helpers);
  EXPECT_NE(text.find("f32 add[64];"), std::string::npos);
  EXPECT_NE(text.find("add[x - strip] = add[x - strip] + "), std::string::npos);
  EXPECT_NE(text.find("first = greater_quotient(first, "), std::string::npos);
}

// Of windows that differ in length one piece has elements: the last loop of the reduction ends where the window does.
TEST(Nest, AReductionEndsWithItsWindow) {
  KernelDesc d = space("self[p..,w]", "", "result[p..,x]", "sum(inside(self[p, where(x + k < 3 * x, x + k, -1)]))");
  d.over = "k";
  d.sequence = true;
  Dialect local = c99;
  local.any_order = "";
  NestHelpers helpers(local);
  const std::string text = print_nest(build_space(d, DType::F32, {}), local, helpers);
  const size_t general = text.find("  } else {");
  ASSERT_NE(general, std::string::npos);
  EXPECT_NE(text.find("for (i64 k = first; k < past; k++) {", general), std::string::npos);
  EXPECT_EQ(text.find("?", general), std::string::npos) << "a guard is left";
}

TEST(Nest, ALargestValueComesWithItsPlace) {
  KernelDesc d = space("self[p..,w]", "", "result[p..,x] at[p..,x]:int64",
                       "at = argmax(inside(self[p, x + k]), x + k)\nresult = max(inside(self[p, x + k]))");
  d.over = "k";
  d.sequence = true;
  EXPECT_EQ(build_space(d, DType::F32, {}).reductions.size(), 1u);
  EXPECT_NE(refusal(space("self[p..,w]", "", "result[p..,x]", "sum(self[p, x])")).find("sum"), std::string::npos);
  d.text = "at = argmax(inside(self[p, x + k]))\nresult = 0";
  EXPECT_NE(refusal(d).find("argmax takes a value and its place"), std::string::npos);
}

// Places are kept in 32 bits where the guard says that they lie in the operand, and the operand is small enough.
TEST(Nest, PlacesInsideAreNarrow) {
  NestHelpers helpers(hinted_c);
  auto nest = [](const char* place) {
    const std::string text = std::string("argmax(inside(self[p, f + k]), place(g, ") + place + "))";
    KernelDesc d = space("self[p..,g..]", "", "at[p..,f..]:int64", text.c_str());
    d.over = "k..";
    d.sequence = true;
    return build_space(d, DType::F32, {2, false});
  };
  const Nest inside = nest("f + k");
  EXPECT_EQ(std::popcount(inside.reductions[0].below), 2);
  const std::string text = print_nest(inside, hinted_c, helpers);
  EXPECT_NE(text.find("&& (u64)n_g0 * (u64)n_g1 < (u64)1 << 31) {"), std::string::npos) << text;
  EXPECT_NE(text.find("i32 argmax_at[64] __attribute__((aligned(64)));"), std::string::npos) << text;
  const Nest beyond = nest("f + k + 1");
  EXPECT_EQ(beyond.reductions[0].below, 0u);
  EXPECT_EQ(print_nest(beyond, hinted_c, helpers).find("i32 argmax_at"), std::string::npos);
}

// A dim of the operands alone that the text is `over`: chains of 1,024, whatever order the operands name their dims in.
// Positions of a row that are dear are computed once for a strip of it, outside of the other loops.
TEST(Nest, DearPositionsAreKept) {
  NestHelpers helpers(hinted_c);
  auto text = [&](const char* at) {
    const std::string source = std::string("x[a, ") + at + "]";
    return print_nest(
        build_space({"test", "test", KernelKind::Space, "x[a,n]", "by", "y[a,i]", source.c_str(), ~0u, "test"},
                    DType::F32, {}),
        hinted_c, helpers);
  };
  const std::string dear = text("minimum(int64(floor(i * by)), extent(n) - 1)");
  const size_t kept = dear.find("for (i64 row = begin_i; row < end_i; row += 64) {"), outer = dear.find("for (i64 a =");
  ASSERT_NE(kept, std::string::npos) << dear;
  EXPECT_LT(dear.find("(i64)", kept), outer);
  EXPECT_EQ(dear.find("+62f", outer), std::string::npos) << "not again inside of the loops";
  EXPECT_EQ(text("extent(n) - 1 - i").find("row"), std::string::npos) << "cheap: computed where it is used";
}

TEST(Nest, SumsOfProductsGoInChains) {
  KernelDesc d = space("self[i,k] mat2[k,j]", "", "result[i,j]", "sum_products(self, mat2)");
  d.over = "k";
  const Nest nest = build_space(d, DType::F32, {});
  const std::string text = dump(nest);
  EXPECT_NE(text.find("reduction 0 add f32 over [k] chains %"), std::string::npos) << text;
  NestHelpers helpers(c99);
  const std::string printed = print_nest(nest, c99, helpers);
  EXPECT_EQ(printed.substr(printed.find("  for (i64 i")), R"(  for (i64 i = begin_i; i < end_i; i++) {
    const i64 t = (i64)((u64)i * (u64)self_s0);
    const i64 t_7 = (i64)((u64)i * (u64)result_out_s0);
    for (i64 j = begin_j; j < end_j; j++) {
      const i64 t_5 = (i64)((u64)j * (u64)mat2_s1);
      f32 result = 0, chain = 0;
      {
        i64 used = 0;
        for (i64 k = 0; k < n_k; k++) {
          const i64 t_2 = (i64)((u64)k * (u64)self_s1);
          const i64 t_3 = (i64)((u64)t + (u64)t_2);
          const f32 self = p_self[t_3];
          const i64 t_4 = (i64)((u64)k * (u64)mat2_s0);
          const i64 t_6 = (i64)((u64)t_4 + (u64)t_5);
          const f32 mat2 = p_mat2[t_6];
          chain = fmaf(self, mat2, chain);
          if ((++used & 1023) == 0) {
            result = used == 1024 ? chain : result + chain;
            chain = 0;
          }
        }
        if (used & 1023) {
          result = used < 1024 ? chain : result + chain;
        }
      }
      const i64 t_8 = (i64)((u64)j * (u64)result_out_s1);
      const i64 t_9 = (i64)((u64)t_7 + (u64)t_8);
      p_result_out[t_9] = result;
    }
  }
}

)");
  EXPECT_NE(
      refusal(space("self[i]", "", "result[i]", "sum_products(self, self)")).find("sum_products takes two values"),
      std::string::npos);
  d.over = "i";
  EXPECT_NE(refusal(d).find("reduced dim 'i' is one of an output"), std::string::npos);
}

TEST(Nest, FormsOfAKernel) {
  const KernelDesc plain = space("self[p..,n]", "", "result[p..,i]", "self[p, 0]");
  EXPECT_EQ(space_forms(plain, DType::F32).size(), 2u);
  const KernelDesc group = space("self[p..,f..]", "", "result[p..,f..]", "self[p, extent(f) - 1 - f]");
  EXPECT_EQ(space_forms(group, DType::F32).size(), 6u);
  EXPECT_EQ(space_name("flip", {2, true}), "flip_r2_in");
}

// log1p has a variable k, which is not the dim.
TEST(Nest, NamesOfAFunctionAreItsOwn) {
  KernelDesc d = space("self[n]", "", "result[i]", "log1p(self[i]) + sum(self[k])");
  d.over = "k";
  const Nest nest = build_space(d, DType::F32, {});
  EXPECT_EQ(nest.depends[size_t(nest.stores[0].value)], nest.depends[size_t(nest.stores[0].offset)]);
}

TEST(Nest, CarriesAlongADim) {
  const KernelDesc d = space("self[p..,i]", "", "result[p..,i]", "scan(i, a, b, a * b, self)");
  const Nest nest = build_space(d, DType::F32, {});
  ASSERT_EQ(nest.carries.size(), 1u);
  EXPECT_EQ(nest.carries[0].kind, Carry::Blocks);
  EXPECT_TRUE(nest.ranges[size_t(nest.carries[0].range)].whole);
  EXPECT_EQ(space_forms(d, DType::F32).size(), 1u);  // its dim is the innermost loop
  EXPECT_NE(dump(nest).find("scan 0 over i from"), std::string::npos);
  const std::string text = print_nests({nest}, c99);
  EXPECT_NE(text.find("static void test_f32_a_2(const f32* a, const f32* b, f32* to)"), std::string::npos);
  EXPECT_NE(text.find("if (i & 1023)"), std::string::npos);
  const Nest order =
      build_space(space("self[p..,i]", "", "result[p..,i]", "recurrence(i, h, self, h * self)"), DType::F32, {});
  EXPECT_EQ(order.carries[0].kind, Carry::Recurrence);
  EXPECT_NE(print_nests({order}, c99).find("const f32 next = i ? "), std::string::npos);
}

TEST(Nest, RepeatsInsideOfAnElement) {
  const KernelDesc d = space("self[p..]", "", "result[p..]", "repeat(x, x < 100, x, self, x * 2)");
  const Nest nest = build_space(d, DType::F32, {});
  ASSERT_EQ(nest.carries.size(), 1u);
  EXPECT_EQ(nest.loops() >> nest.carries[0].range & 1, 0u);
  const std::string text = print_nests({nest}, c99);
  EXPECT_NE(text.find("for (;;) {"), std::string::npos);
  EXPECT_NE(text.find(") break;"), std::string::npos);
  EXPECT_NE(refusal(space("self[p..]", "", "result[p..]", "repeat(x, x < 1, x, self)")).find("repeat takes"),
            std::string::npos);
  EXPECT_NE(refusal(space("self[p..]", "", "result[p..]", "repeat(x, x < 1, 2, self, x)")).find("expected the name"),
            std::string::npos);
}

TEST(Nest, RefusesATextThatMakesNoSense) {
  EXPECT_NE(
      refusal(space("self[p..,i]", "", "result[p..,i]", "scan(p, a, b, a + b, self)")).find("no dim of an output"),
      std::string::npos);
  EXPECT_NE(refusal(space("self[p..,i]", "", "result[p..,i]", "scan(i, a, b, self)")).find("scan takes a dim"),
            std::string::npos);
  EXPECT_NE(refusal(space("self[p..,n]", "", "result[p..,i]", "self[p]")).find("self has 2 dims, got 1 indices"),
            std::string::npos);
  EXPECT_NE(refusal(space("self[p..,n]", "", "result[p..,i]", "other[p, i]")).find("'other' is no tensor operand"),
            std::string::npos);
  EXPECT_NE(refusal(space("self[p..,n]", "", "result[p..,i]", "self[i, i]")).find("plain group"), std::string::npos);
  EXPECT_NE(refusal(space("self[p..,n]", "", "result[p..,i]", "self[p, n]")).find("dim 'n' is of no output"),
            std::string::npos);
  EXPECT_NE(refusal(space("self[p..,f..]", "", "result[p..,f..]", "self[p, f] + f"), {1, false}).find("group 'f'"),
            std::string::npos);
  EXPECT_NE(refusal(space("self[p..,i]", "", "result[p..,i]", "inside(self, 0)")).find("inside takes operand[...]"),
            std::string::npos);
}

TEST(Nest, SpecIsExecuted) {
  const KernelDesc d = space("self[p..,i]", "", "result[p..,i]", "self + 1");
  Nest nest = build_space(d, DType::F32, {});
  nest.stores[0].operand = 1;
  EXPECT_THROW(verify(nest), Error);
  nest = build_space(d, DType::F32, {});
  nest.nodes.back().arg[0] = int(nest.nodes.size());
  EXPECT_THROW(verify(nest), Error);
}

TEST(Nest, SourceOfATableKernel) {
  const KernelSource add = kernel_source("aten::add.Tensor", DType::F32, "c99");
  EXPECT_EQ(add.symbol, "add_Tensor_f32");
  EXPECT_NE(add.text.find("void add_Tensor_f32("), std::string::npos);
  EXPECT_EQ(add.parameters.back().kind, NestParameter::Status);
  EXPECT_THROW(kernel_source("aten::linalg_qr", DType::F32, "c99"), Error);
  EXPECT_THROW(kernel_source("aten::add.Tensor", DType::F32, "fortran"), Error);
  EXPECT_THROW(kernel_source("aten::sigmoid", DType::I64, "c99"), Error);
}

}  // namespace
}  // namespace strata::lower
