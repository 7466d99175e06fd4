// The shape rules of core/shape run with symbolic sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>

#include "core/shape/arrange.h"
#include "core/shape/conv.h"
#include "core/shape/index.h"
#include "core/shape/matmul.h"
#include "core/shape/pool.h"
#include "core/shape/shape.h"
#include "core/shape/view.h"
#include "rule_check.h"

namespace strata {
namespace {

TEST(Sym, ExpressionsAndGuardsHaveText) {
  SymContext context;
  const SymInt n = context.variable("n", 5), m = context.variable("m", 3);
  EXPECT_EQ((n * 2 + 1 - (m - 1)).text(), "n * 2 + 1 - (m - 1)");
  EXPECT_EQ((floor_div(n + m, 2) * m).text(), "(n + m) // 2 * m");
  EXPECT_EQ(floor_mod(-n, m).text(), "(0 - n) % m");
  EXPECT_EQ(larger(smaller(n, m), SymInt(0)).text(), "max(min(n, m), 0)");
  EXPECT_EQ((n * 1 + 0).text(), "n");
  EXPECT_FALSE((n * 0).is_symbolic());
  EXPECT_EQ(floor_mod(-n, m).hint(), 1);
  EXPECT_EQ((-n / m).hint(), -1);
  EXPECT_TRUE(n > m && n == n && m + 2 == n);
  EXPECT_TRUE(n > m);
  ASSERT_EQ(context.guards().size(), 2u);
  EXPECT_EQ(context.guards()[0].text(), "m < n");
  EXPECT_EQ(context.guards()[1].text(), "m + 2 == n");
  const int64_t alike[] = {9, 7}, other[] = {9, 8};
  EXPECT_TRUE(context.holds({alike, 2}));
  EXPECT_FALSE(context.holds({other, 2}));
  EXPECT_EQ(SymContext::evaluate(n * m - 3, {alike, 2}), 60);
  EXPECT_THROW(n * (int64_t(1) << 62), Error);
}

TEST(Shape, Diagonals) {
  check_rule(2, 0, 9, RULE(return List<S>{shape::diagonal_length(s[0], s[1], 2)}));
  check_rule(2, 0, 9, RULE(return List<S>{shape::diagonal_length(s[0], s[1], -3)}));
  check_rule(3, 0, 9, RULE(return shape::diagonal_sizes(s, 1, 0, 2)));
  check_rule(2, 0, 9, RULE(return List<S>{shape::triangle_width(s[0], s[1], 1)}));
}

TEST(Shape, Windows) {
  check_rule(5, 1, 12, RULE(return List<S>{shape::conv_size(s[0] + S(40), s[1], s[2], s[3], s[4])}));
  check_rule(6, 1, 9, RULE(return List<S>{shape::conv_transpose_size(s[0], s[1], s[2], s[3], s[4], s[5])}));
  check_rule(5, 1, 6, RULE(return List<S>{shape::pool_size(s[0] + S(30), s[1], s[2], s[3], s[4], false)}));
  check_rule(5, 1, 6, RULE(return List<S>{shape::pool_size(s[0] + S(30), s[1], s[2], s[3], s[4], true)}));
  check_rule(3, 1, 9, RULE(return List<S>{shape::even_begin(s[0], s[1], s[2]), shape::even_end(s[0], s[1], s[2])}));
  check_rule(3, 0, 9, RULE(return List<S>{shape::windows(s[0], int64_t(1), s[1], s[2])}));
}

TEST(Shape, Products) {
  check_rule(6, 0, 9,
             RULE(List<S> a{s[0], s[1], s[2]}; List<S> b{s[0], s[2], s[3]}; List<S> lead{s[4], s[5]};
                  return shape::matmul_sizes<List<S>>(a, b, lead)));
  check_rule(2, 0, 9,
             RULE(List<S> a{s[0]}; List<S> b{s[0], s[1]}; return shape::matmul_sizes<List<S>>(a, b, List<S>())));
  check_rule(4, 0, 2,
             RULE(List<S> a{s[0], s[1]}; List<S> b{s[2], s[3]}; return all(shape::mm<S>(tensor(a), tensor(b)))));
  check_rule(4, 0, 2,
             RULE(List<S> a{s[0], s[1], s[2]}; List<S> b{s[0], s[2], s[3]};
                  return all(shape::bmm<S>(tensor(a, DType::Bool), tensor(b, DType::Bool)))));
  check_rule(3, 0, 2, RULE(List<S> a{s[0], s[1]}; List<S> v{s[2]}; return all(shape::mv<S>(tensor(a), tensor(v)))));
  check_rule(4, 0, 2,
             RULE(List<S> self{s[0], s[3]}; List<S> a{s[1], s[2]}; List<S> b{s[2], s[3]};
                  return all(shape::addmm<S>(tensor(self), tensor(a), tensor(b)))));
  check_rule(3, 0, 2,
             RULE(List<S> self{s[0]}; List<S> a{s[1], s[2]}; List<S> v{s[2]};
                  return all(shape::addmv<S>(tensor(self), tensor(a), tensor(v)))));
}

TEST(Shape, Copies) {
  check_rule(5, 0, 2,
             RULE(List<S> self{s[0], s[1], s[2]}; List<S> src{s[3], s[4]};
                  return all(shape::copy_from<S>(tensor(self), tensor(src)))));
  EXPECT_EQ(shape::copy<int64_t>(tensor<int64_t>({2, 3}), DType::I8).outputs[0].dtype, DType::I8);
}

TEST(Shape, Indexing) {
  check_rule(6, 0, 9,
             RULE(List<S> self{s[0], s[1], s[2], s[3]}; List<S> broadcast{s[4], s[5]};
                  return shape::index_sizes(self, List<bool>{false, true, true, false}, broadcast)));
  check_rule(5, 0, 9,
             RULE(List<S> self{s[0], s[1], s[2]}; List<S> broadcast{s[3], s[4]};
                  return shape::index_sizes(self, List<bool>{true, false, true}, broadcast)));
  check_rule(3, 0, 9, RULE(return shape::with_dim(s, 1, s[0] * s[2])));
}

TEST(Shape, Pools) {
  const std::vector<int64_t> three{3}, two{2}, one{1}, output{3, 2};
  const auto max = [&](const auto& s) {
    using S = std::decay_t<decltype(s[0])>;
    const List<S> self{s[0], s[1], s[2] + S(3), s[3] + S(3)};
    auto r = shape::max_pool<S>("max_pool2d", 2, tensor(self), three, two, one, one, true);
    return all(std::move(r));
  };
  check_rule(4, 0, 9, max);
  const auto avg = [&](const auto& s) {
    using S = std::decay_t<decltype(s[0])>;
    const List<S> self{s[0], s[1], s[2] + S(3), s[3] + S(3), s[4]};
    return all(shape::avg_pool<S>("avg_pool3d", 3, tensor(self), two, {}, one, false, std::nullopt));
  };
  check_rule(5, 0, 9, avg);
  const auto even = [&](const auto& s) {
    using S = std::decay_t<decltype(s[0])>;
    const List<S> self{s[0], s[1], s[2]};
    return all(shape::adaptive_max_pool<S>("adaptive_max_pool2d", 2, tensor(self), output));
  };
  check_rule(3, 1, 9, even);
}

TEST(Shape, Factories) {
  const Scalar none(0), some(5), half(0.5);
  check_rule(3, 0, 9, RULE(return all(shape::full<S>(ArrayRef<S>(s), DType::I32))));
  check_rule(3, 0, 9, RULE(return all(shape::new_full<S>(tensor(s), ArrayRef<S>(s), std::nullopt))));
  check_rule(2, -2, 9, RULE(return all(shape::eye<S>(s[0], s[1], std::nullopt))));
  check_rule(1, -2, 9, [&](const auto& s) {
    using S = std::decay_t<decltype(s[0])>;
    return all(shape::spaced<S>("linspace", none, some, s[0], DType::Bool));
  });
  check_rule(4, -1, 9,
             RULE(List<S> size{s[0], s[1]}; List<S> stride{s[2], s[3]};
                  return all(shape::empty_strided<S>(size, stride, std::nullopt))));
  static constexpr int64_t order[] = {2, 0, 1}, twice[] = {2, 0, 2};
  check_rule(3, 0, 9, RULE(return all(shape::empty_permuted<S>(s, {order, 3}, std::nullopt))));
  EXPECT_THROW(shape::empty_permuted<int64_t>({order, 3}, {twice, 3}, std::nullopt), Error);
  EXPECT_EQ(shape::full_of<int64_t>({}, half, std::nullopt).dtype, default_dtype());
  EXPECT_EQ(shape::full_of<int64_t>({}, some, std::nullopt).dtype, DType::I64);
}

// How many numbers there are from start to end, or -1 for an error.
TEST(Shape, RangesCount) {
  const auto count = [](Scalar start, Scalar end, Scalar step, std::optional<DType> dtype = std::nullopt) -> int64_t {
    try {
      const auto made = shape::range<int64_t>(start, end, step, dtype);
      EXPECT_EQ(shape::range<SymInt>(start, end, step, dtype).sizes[0].hint(), made.sizes[0]);
      return made.sizes[0];
    } catch (const Error&) {
      return -1;
    }
  };
  const long least = INT64_MIN, most = INT64_MAX;
  const double nan = std::nan(""), inf = INFINITY;
  EXPECT_EQ(count(0, 10, 3), 4);
  EXPECT_EQ(count(10, 0, -3), 4);
  EXPECT_EQ(count(0, 10, 0), -1);
  EXPECT_EQ(count(0, 10, -1), -1);
  EXPECT_EQ(count(3, 3, -1), 0);
  EXPECT_EQ(count(least, most, 1), -1);  // 2^64 - 1
  EXPECT_EQ(count(least, most, 2), -1);  // 2^63
  EXPECT_EQ(count(least, most, 3), 6148914691236517205);
  EXPECT_EQ(count(least, most, most), 3);
  EXPECT_EQ(count(most, least, least), 2);
  EXPECT_EQ(count(0.0, 1.0, 0.1), 10);
  EXPECT_EQ(count(0.0, nan, 1), -1);
  EXPECT_EQ(count(0.0, 1.0, nan), -1);
  EXPECT_EQ(count(0.0, inf, 1), -1);
  EXPECT_EQ(count(0.0, 1e300, 1), -1);
  EXPECT_EQ(count(0.0, 1.0, 1e-300), -1);
  EXPECT_EQ(count(0.0, 1.0, 0.5, DType::I64), -1);  // a step of 0
  EXPECT_EQ(count(0.9, 5.9, 1, DType::I64), 5);
  EXPECT_EQ(count(0.9, 5.9, 1, DType::Bool), -1);
  EXPECT_EQ(count(std::complex<double>(1, 0), 5, 1), -1);
}

TEST(Shape, Searches) {
  check_rule(3, 0, 3,
             RULE(List<S> weights{s[0]}, index{s[1]};
                  return all(shape::bins<S>(tensor(weights), tensor(index, DType::I64), s[2]))));
  check_rule(4, 0, 2,
             RULE(List<S> self{s[0], s[1]}, target{s[2]};
                  return all(shape::of_classes<S>(tensor(self), 1, tensor(target, DType::I64)))));
  check_rule(4, 0, 4,
             RULE(List<S> sequence{s[0], s[1]}, values{s[2], s[3]};
                  return all(shape::search<S>(tensor(sequence), tensor(values)))));
  check_rule(
      3, 0, 4,
      RULE(List<S> sequence{s[0]}, values{s[1], s[2]}; return all(shape::search<S>(tensor(sequence), tensor(values)))));
  check_rule(
      3, 0, 4,
      RULE(List<S> elements{s[0], s[1]}, tests{s[2]}; return all(shape::among<S>(tensor(elements), tensor(tests)))));
}

TEST(Shape, Gathers) {
  const auto gather = [](const auto& s) {
    using S = std::decay_t<decltype(s[0])>;
    List<S> self{s[0], s[1]}, index{s[2], s[3]};
    return all(shape::gather<S>(tensor(self), -1, tensor(index, DType::I64)));
  };
  check_rule(4, 0, 4, gather);
  check_rule(3, 0, 9,
             RULE(List<S> self{s[0], s[1]}; List<S> index{s[2]};
                  return all(shape::index_select<S>(tensor(self), 0, tensor(index, DType::I32)))));
  // No dims: one element, of which there is one place.
  check_rule(
      1, 0, 2,
      RULE(List<S> index{s[0]}; return all(shape::index_select<S>(tensor(List<S>()), 0, tensor(index, DType::I64)))));
}

TEST(Shape, Moves) {
  static constexpr int64_t last[] = {-1}, both[] = {1, 0}, twice[] = {0, 1, 0};
  check_rule(3, 0, 9, RULE(return all(shape::flip<S>(tensor(s), {both, 2}))));
  check_rule(3, 0, 9, RULE(return all(shape::rot90<S>(tensor(s), -3, {both, 2}))));
  check_rule(4, -3, 6,
             RULE(List<S> self{s[0] + S(3), s[1] + S(3)}; List<S> by{s[2]};
                  return all(shape::roll<S>(tensor(self), by, ArrayRef<int64_t>()))));
  check_rule(5, -3, 6,
             RULE(List<S> self{s[0] + S(3), s[1] + S(3)}; List<S> by{s[2], s[3], s[4]};
                  return all(shape::roll<S>(tensor(self), by, {twice, 3}))));
  check_rule(
      2, -3, 6,
      RULE(List<S> self{s[0] + S(3)}; List<S> by{s[1]}; return all(shape::roll<S>(tensor(self), by, {last, 1}))));
  check_rule(3, -9, 9,
             RULE(List<S> self{s[0] + S(9), s[1] + S(9)}; return all(shape::triangle<S>(tensor(self), s[2], "tril"))));
  check_rule(3, 0, 9, RULE(return all(shape::diagonal_copy<S>(tensor(s), -2, 0, 2))));
  check_rule(5, -1, 6,
             RULE(List<S> self{s[0], s[1]}; List<S> repeats{s[2], s[3], s[4]};
                  return all(shape::repeat<S>(tensor(self), repeats))));
  check_rule(4, 0, 16, RULE(return all(shape::pixel_shuffle<S>(tensor(s), 2))));
  check_rule(4, 0, 9, RULE(return all(shape::pixel_unshuffle<S>(tensor(s), 2))));
}

TEST(Shape, Scans) {
  check_rule(3, 0, 9, RULE(return all(shape::scan<S>(tensor(s), 1))));
  check_rule(3, 0, 9, RULE(return all(shape::scan_sum<S>("cumsum", tensor(s), -1, DType::F64))));
  check_rule(2, 0, 9, RULE(return all(shape::extremes_so_far<S>("cummax", tensor(s), 0))));
  check_rule(2, 0, 9, RULE(return all(shape::linear_scan<S>(tensor(s), tensor(s), 1))));
}

TEST(Shape, Selections) {
  check_rule(3, -2, 4,
             RULE(List<S> self{S(3), s[0] + S(2)}; List<S> src{s[1] + S(2)};
                  return all(shape::select_scatter<S>(tensor(self), tensor(src), 1, s[2]))));
  check_rule(3, -2, 4,
             RULE(List<S> sizes{s[0] + S(2), S(4)}; List<S> grad{s[1] + S(2)};
                  return all(shape::select_backward<S>(tensor(grad), sizes, 0, s[2]))));
  check_rule(3, 0, 4,
             RULE(List<S> self{s[0], s[1]}; List<S> index{s[2]};
                  return all(shape::take<S>(tensor(self), tensor(index, DType::I64)))));
  check_rule(4, 0, 4,
             RULE(List<S> weight{s[0], s[1]}; List<S> index{s[2], s[3]};
                  return all(shape::embedding<S>(tensor(weight), tensor(index, DType::I32)))));
}

TEST(Shape, Pads) {
  auto pads = [](auto rule) {
    check_rule(6, -3, 6, [rule](const auto& s) {
      using S = std::decay_t<decltype(s[0])>;
      List<S> self{S(2), S(3), s[0] + S(3), s[1] + S(3)}, pad{s[2], s[3], s[4], s[5]};
      return all(rule(tensor(self), ArrayRef<S>(pad)));
    });
  };
  pads([](const auto& self, auto pad) { return shape::constant_pad(self, pad); });
  pads([](const auto& self, auto pad) { return shape::reflection_pad(self, pad, 2); });
  pads([](const auto& self, auto pad) { return shape::replication_pad(self, pad, 2); });
  pads([](const auto& self, auto pad) { return shape::circular_pad(self, pad); });
}

TEST(Shape, Scatters) {
  check_rule(6, 0, 3,
             RULE(List<S> self{s[0], s[1]}; List<S> index{s[2], s[3]}; List<S> src{s[4], s[5]};
                  return all(shape::scatter<S>(tensor(self), 1, tensor(index, DType::I64), tensor(src)))));
  check_rule(4, 0, 3,
             RULE(List<S> self{s[0], s[1]}; List<S> index{s[2], s[3]};
                  return all(shape::scatter_value<S>(tensor(self), 0, tensor(index, DType::I64)))));
  check_rule(5, 0, 2,
             RULE(List<S> self{s[0], s[1]}; List<S> index{s[2]}; List<S> source{s[3], s[4]};
                  return all(shape::index_add<S>(tensor(self), 0, tensor(index, DType::I32), tensor(source)))));
  check_rule(5, 0, 2,
             RULE(List<S> self{s[0], s[1]}; List<S> index{s[2]}; List<S> source{s[3], s[4]};
                  return all(shape::index_copy<S>(tensor(self), -1, tensor(index, DType::I64), tensor(source)))));
  check_rule(3, 0, 4,
             RULE(List<S> self{s[0], s[1]}; List<S> index{s[2]};
                  return all(shape::index_fill<S>(tensor(self), 1, tensor(index, DType::I64)))));
  check_rule(4, 0, 2,
             RULE(List<S> grad{s[0], s[1]}; List<S> index{s[2]};
                  return all(shape::embedding_backward<S>(tensor(grad), tensor(index, DType::I64), s[3]))));
  check_rule(4, 0, 2,
             RULE(List<S> rows{s[0], s[1]}; List<S> index{s[2]}; const auto at = tensor(index, DType::I64);
                  return all(shape::bag_sum<S>(tensor(rows), at, at, tensor(index), s[3]))));
  check_rule(4, 0, 2,
             RULE(List<S> grad{s[0], s[1]}; List<S> index{s[2]}; const auto at = tensor(index, DType::I64);
                  return all(shape::bag_sum_backward<S>(tensor(grad), at, at, tensor(index), s[3]))));
}

TEST(Shape, ViewsPutBack) {
  check_rule(5, -1, 4,
             RULE(List<S> self{S(2), s[0] + S(1)}; List<S> src{S(2), s[1] + S(1)}; const std::optional<S> start(s[2]);
                  const std::optional<S> end(s[3]);
                  return all(shape::slice_scatter<S>(tensor(self), tensor(src), 1, start, end, s[4]))));
  check_rule(5, -1, 4,
             RULE(List<S> sizes{s[0], S(2)}; List<S> grad{s[1] + S(1), S(2)};
                  return all(shape::slice_backward<S>(tensor(grad), sizes, 0, s[2], s[3], s[4]))));
  check_rule(3, 0, 4,
             RULE(List<S> sizes{s[0], S(2)}; List<S> grad{s[1], S(2), s[2]};
                  return all(shape::unfold_backward<S>(tensor(grad), sizes, 0, 2, 1))));
  check_rule(3, 0, 4,
             RULE(List<S> self{s[0], s[1]}; List<S> src{s[2]};
                  return all(shape::diagonal_scatter<S>(tensor(self), tensor(src), 1, 0, 1))));
  check_rule(2, 0, 5, RULE(return all(shape::diag_embed<S>(tensor(s), -2, 0, 2))));
}

TEST(Shape, GradientsOfWindowsAndPads) {
  const std::vector<int64_t> two{2}, one{1};
  const auto avg = [&](const auto& s) {
    using S = std::decay_t<decltype(s[0])>;
    const List<S> self{S(2), s[0] + S(2), s[1] + S(2)}, grad{S(2), s[0] + S(3), s[1] + S(2) + s[2]};
    return all(shape::avg_pool_backward<S>("avg_pool2d", 2, tensor(grad), tensor(self), two, one, one, false, 3));
  };
  check_rule(3, 1, 4, avg);
  const auto even = [](const auto& s) {
    using S = std::decay_t<decltype(s[0])>;
    const List<S> self{S(2), s[0], s[1]}, grad{S(2), s[2], s[3]};
    return all(shape::adaptive_avg_pool_backward<S>("adaptive_avg_pool2d", 2, tensor(grad), tensor(self)));
  };
  check_rule(4, 0, 5, even);
  const auto chosen = [](const auto& s) {
    using S = std::decay_t<decltype(s[0])>;
    const List<S> self{S(2), s[0], s[1]}, grad{S(2), s[2], s[3]};
    return all(shape::max_pool_backward<S>("max_pool2d", 2, tensor(grad), tensor(self), tensor(grad, DType::I64)));
  };
  check_rule(4, 0, 5, chosen);
  auto pads = [](auto rule) {
    check_rule(3, 1, 4, [rule](const auto& s) {
      using S = std::decay_t<decltype(s[0])>;
      List<S> self{S(2), S(3), s[0] + S(1)}, pad{s[1], s[2]}, grad{S(2), S(3), s[0] + S(1) + s[1] + s[2]};
      return all(rule(tensor(grad), tensor(self), ArrayRef<S>(pad)));
    });
  };
  pads([](const auto& grad, const auto& self, auto pad) { return shape::reflection_pad_backward(grad, self, pad, 1); });
  pads(
      [](const auto& grad, const auto& self, auto pad) { return shape::replication_pad_backward(grad, self, pad, 1); });
  pads(
      [](const auto& grad, const auto& self, auto pad) { return shape::circular_pad_backward(grad, self.sizes, pad); });
}

TEST(Shape, Resampling) {
  check_rule(4, 0, 3,
             RULE(List<S> self{s[0], S(2), s[1], S(3)}; List<S> wanted{s[2], s[3]};
                  return all(shape::resample<S>("test", 2, tensor(self), wanted))));
  check_rule(4, 0, 3,
             RULE(List<S> grad{s[0], S(2), s[1]}; List<S> wanted{s[2]}; List<S> given{s[0], S(2), s[3]};
                  return all(shape::resample_backward<S>("test", 1, tensor(grad), wanted, given))));
  check_rule(5, 0, 3, [](const auto& s) {
    using S = std::decay_t<decltype(s[0])>;
    const List<S> image{s[0], s[1], S(3), S(1)}, place{s[0], s[2], s[3]};
    const List<S> weight{s[0], s[2], s[4]}, grad{s[0], s[1], s[4], S(1)};
    List<S> made = all(shape::weighted_gather<S>(tensor(image), tensor(place, DType::I64), tensor(weight)));
    for (const auto& r : {shape::weighted_scatter<S>(tensor(grad), tensor(place, DType::I64), tensor(weight), s[1]),
                          shape::gathered_products<S>(tensor(image), tensor(place, DType::I64), tensor(grad))})
      for (const S& size : all(r)) made.push_back(size);
    return made;
  });
}

TEST(Shape, Slices) {
  check_rule(4, -3, 8, RULE(auto r = shape::slice(s[0], s[1], s[2], s[3]); return List<S>{r.start, r.length}));
  check_rule(3, -2, 6, RULE(return List<S>{shape::select_index(ArrayRef<S>(s), 1, s[2])}));
  check_rule(3, -2, 6, RULE(return List<S>{shape::narrow_start(s[0], s[1], s[2])}));
  check_rule(2, -1, 9, RULE(return List<S>{shape::parts(s[0], s[1])}));
  check_rule(3, -1, 5,
             RULE(List<S> parts{s[0], s[1]}; shape::check_split_sizes(ArrayRef<S>(parts), s[2], 0); return parts));
}

TEST(Shape, Joins) {
  check_rule(4, 1, 3,
             RULE(List<S> into{s[0], s[1]}; List<S> more{s[2], s[3]}; shape::join(into, ArrayRef<S>(more), 0, 1);
                  return into));
  check_rule(5, -1, 6,
             RULE(List<S> sizes{s[0], s[1]}; List<S> repeats{s[2], s[3], s[4]};
                  return (shape::repeated<S, List<S>>(ArrayRef<S>(sizes), ArrayRef<S>(repeats)))));
  check_rule(4, -2, 6,
             RULE(List<S> sizes{s[0], s[1]}; List<S> pad{s[2], s[3]};
                  return (shape::padded<S, Listed<S>>(ArrayRef<S>(sizes), ArrayRef<S>(pad)).list())));
}

}  // namespace
}  // namespace strata
