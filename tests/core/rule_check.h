// The check of a shape rule: it runs once over symbols, which records an expression for each size and the comparisons
// that it decided by; then the expressions must give the rule's numbers for all other sizes that answer those
// comparisons alike.
#pragma once
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "core/shape/rules.h"
#include "core/sym.h"

namespace strata {

template <class S>
using List = std::vector<S>;

// A list that is made from a view, as DimVec is.
template <class S>
struct Listed : List<S> {
  explicit Listed(ArrayRef<S> sizes) : List<S>(sizes.begin(), sizes.end()) {}
  List<S> list() const { return *this; }
};

// ---- the comparison

// Runs `rule(sizes)` over symbols and over numbers; an error counts as the result.
template <class Rule>
void check_rule(size_t variables, int64_t low, int64_t high, Rule rule) {
  std::mt19937_64 rng(3);
  std::uniform_int_distribution<int64_t> pick(low, high);
  auto draw = [&] {
    std::vector<int64_t> v(variables);
    for (int64_t& x : v) x = pick(rng);
    return v;
  };
  auto numbers = [&](const std::vector<int64_t>& at, List<int64_t>& out) {
    try {
      out = rule(List<int64_t>(at.begin(), at.end()));
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  int compared = 0, general = 0;
  for (int trial = 0; trial < 200; ++trial) {
    SymContext context;
    const std::vector<int64_t> hints = draw();
    List<SymInt> symbols, made;
    for (size_t i = 0; i < variables; ++i) symbols.push_back(context.variable("s" + std::to_string(i), hints[i]));
    bool good = true;
    try {
      made = rule(symbols);
    } catch (const Error&) {
      good = false;
    }
    for (int other = 0; other < 60; ++other) {
      std::vector<int64_t> at = other ? draw() : hints;
      if (!context.holds(at)) continue;
      List<int64_t> want;
      ASSERT_EQ(numbers(at, want), good);
      if (!good) continue;
      ASSERT_EQ(made.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(SymContext::evaluate(made[i], at), want[i]) << made[i];
        if (!other) ASSERT_EQ(made[i].hint(), want[i]);
      }
      ++compared;
      general += other > 0;
    }
  }
  EXPECT_GT(compared, 0);
  EXPECT_GT(general, 0) << "no result was used for other sizes";
}

#define RULE(...)                           \
  [](const auto& s) {                       \
    using S = std::decay_t<decltype(s[0])>; \
    [[maybe_unused]] List<S> out;           \
    __VA_ARGS__;                            \
  }

// Sizes and strides of results, values for the kernel, and what its indices stay below, of a rule.
template <class S>
List<S> all(const shape::Prepared<S>& p) {
  List<S> out;
  for (const auto& o : p.outputs) out.insert(out.end(), o.sizes.begin(), o.sizes.end());
  for (const auto& strides : p.strides) out.insert(out.end(), strides.begin(), strides.end());
  for (const auto& v : p.values) out.insert(out.end(), v.values.begin(), v.values.end());
  out.push_back(p.size);
  return out;
}

template <class S>
List<S> all(const shape::Output<S>& o) {
  return {o.sizes.begin(), o.sizes.end()};
}

template <class S>
List<S> all(const shape::Layout<S>& l) {
  List<S> out(l.sizes.begin(), l.sizes.end());
  out.insert(out.end(), l.strides.begin(), l.strides.end());
  return out;
}

template <class S>
shape::Geometry<S> tensor(const List<S>& sizes, DType dtype = DType::F32) {
  return {sizes, {}, dtype, Device{}, true};
}

}  // namespace strata
