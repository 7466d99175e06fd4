// Rules of results whose size is data: with symbols they give a fresh size with bounds, which the operator's own
// results keep; over numbers they raise.
#include <gtest/gtest.h>

#include <random>

#include "core/shape/rules.h"
#include "core/sym.h"
#include "core/tensor.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/random.h"
#include "strata/generated/ops/search.h"
#include "strata/generated/ops/sort.h"

namespace strata {
namespace {

// A tensor's sizes as symbols of a context.
struct Symbols {
  std::vector<SymInt> sizes;
  DType dtype;
  Symbols(SymContext& context, const Tensor& t, std::vector<int64_t>& values) : dtype(t.dtype()) {
    for (int64_t s : t.sizes()) {
      sizes.push_back(context.variable("s" + std::to_string(values.size()), s));
      values.push_back(s);
    }
  }
  operator shape::Geometry<SymInt>() const { return {sizes, {}, dtype, Device{}, true}; }
};

// The rule's results, once its unknown size is `count`, are the operator's; and that size is within its bounds.
template <class Rule>
void same(const std::vector<Tensor>& operands, const std::vector<Tensor>& results, int64_t count, Rule rule) {
  SymContext context;
  SymContext::Scope scope(context);
  std::vector<int64_t> values;
  std::vector<Symbols> symbols;
  for (const Tensor& t : operands) symbols.emplace_back(context, t, values);
  const shape::Prepared<SymInt> made = rule(symbols);
  if (!context.bounds().empty()) {
    ASSERT_EQ(context.bounds().size(), 1u);
    values.push_back(count);
    const SymBound& bound = context.bounds()[0];
    EXPECT_EQ(SymContext::evaluate(bound.of, values), count);
    EXPECT_LE(SymContext::evaluate(bound.low, values), count);
    if (bound.high) EXPECT_GE(SymContext::evaluate(*bound.high, values), count);
  }
  ASSERT_EQ(made.outputs.size(), results.size());
  for (size_t k = 0; k < results.size(); ++k) {
    EXPECT_EQ(made.outputs[k].dtype, results[k].dtype());
    ASSERT_EQ(int64_t(made.outputs[k].sizes.size()), results[k].dim());
    for (size_t d = 0; d < made.outputs[k].sizes.size(); ++d)
      EXPECT_EQ(SymContext::evaluate(made.outputs[k].sizes[d], values), results[k].sizes()[d]);
  }
}

Tensor draw(std::mt19937_64& rng, std::vector<int64_t> sizes, int64_t below = 4) {
  Tensor t = ops::randint(0, below, IntArrayRef(sizes), DType::I64);
  return rng() % 2 ? t : ops::to(t, DType::F32);
}

std::vector<Tensor> three(const std::tuple<Tensor, Tensor, Tensor>& t) {
  return {std::get<0>(t), std::get<1>(t), std::get<2>(t)};
}

#define RULE(...) [&](const std::vector<Symbols>& s) { return __VA_ARGS__; }

TEST(ShapeData, ResultsHaveTheRulesSizes) {
  std::mt19937_64 rng(5);
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t a = int64_t(rng() % 5), b = int64_t(rng() % 4);
    const Tensor x = draw(rng, {a, b}), mask = ops::gt(draw(rng, {b}), Scalar(1));
    Tensor r = ops::nonzero(x);
    same({x}, {r}, r.sizes()[0], RULE(shape::nonzero<SymInt>(s[0])));
    r = ops::masked_select(x, mask);
    same({x, mask}, {r}, r.sizes()[0], RULE(shape::masked_select<SymInt>(s[0], s[1])));
    const bool inverse = rng() % 2, counts = rng() % 2;
    std::vector<Tensor> all = three(ops::_unique2(x, true, inverse, counts));
    same({x}, all, all[0].sizes()[0], RULE(shape::unique<SymInt>(s[0], inverse, counts)));
    all = three(ops::unique_consecutive(x, inverse, counts, std::nullopt));
    same({x}, all, all[0].sizes()[0], RULE(shape::unique_consecutive<SymInt>(s[0], inverse, counts, std::nullopt)));
    if (b > 0) {
      all = three(ops::unique_dim(x, 0, true, true, true));
      same({x}, all, all[0].sizes()[0], RULE(shape::unique_slices<SymInt>("unique_dim", s[0], 0)));
    }
    const Tensor line = ops::to(draw(rng, {a}), DType::I64), weights = ops::to(line, DType::F32);
    r = ops::bincount(line, {}, b);
    same({line}, {r}, r.sizes()[0], RULE(shape::bincount<SymInt>(s[0], {}, SymInt(b))));
    r = ops::bincount(line, weights, b);
    if (a > 0) same({line, weights}, {r}, r.sizes()[0], RULE(shape::bincount<SymInt>(s[0], s[1], SymInt(b))));
    r = ops::repeat_interleave(line, std::nullopt);
    same({line}, {r}, r.sizes()[0], RULE(shape::repeat_positions<SymInt>(s[0], std::nullopt)));
    if (a == 0) continue;
    r = ops::one_hot(line, -1);
    same({line}, {r}, r.sizes()[1], RULE(shape::one_hot<SymInt>(s[0], -1)));
    r = ops::one_hot(line, 9);
    same({line}, {r}, 0, RULE(shape::one_hot<SymInt>(s[0], 9)));
  }
}

TEST(ShapeData, NumbersRaise) {
  const std::vector<int64_t> sizes{2, 3};
  const shape::Geometry<int64_t> x{sizes, {}, DType::F32, Device{}, true};
  EXPECT_THROW(shape::nonzero<int64_t>(x), Error);
  EXPECT_THROW(shape::unique<int64_t>(x, true, true), Error);
  const std::vector<SymInt> numbers{2, 3};
  const shape::Geometry<SymInt> y{numbers, {}, DType::F32, Device{}, true};
  EXPECT_THROW(shape::nonzero<SymInt>(y), Error) << "no context is open";
  SymContext context;
  SymContext::Scope scope(context);
  EXPECT_TRUE(shape::nonzero<SymInt>(y).outputs[0].sizes[0].is_symbolic()) << "also of sizes that are numbers";
}

}  // namespace
}  // namespace strata
