// Shape rules of what C++ fills, with symbolic sizes: sorts, decompositions, attention, random choices.
#include "rule_check.h"

namespace strata {
namespace {

// A contiguous tensor with its strides.
template <class S>
struct Laid {
  List<S> sizes, strides;
  explicit Laid(List<S> of) : sizes(std::move(of)), strides(sizes.size()) {
    S step(1);
    for (size_t d = sizes.size(); d-- > 0; step = step * sizes[d]) strides[d] = step;
  }
  operator shape::Geometry<S>() const { return {sizes, strides, DType::F32, Device{}, true}; }
};

TEST(ShapeFilled, Convolutions) {
  check_rule(6, 1, 4,
             RULE(List<S> input{s[0], s[1], s[2]}; List<S> weight{s[3], s[1], s[4]}; List<S> bias{s[3]};
                  List<S> one{S(1)}; List<S> pad{s[5]};
                  return all(shape::convolve<S>(tensor(input), tensor(weight), tensor(bias), one, pad, one, S(1)))));
  check_rule(6, 1, 4,
             RULE(List<S> input{s[0], s[1], s[2], s[3]}; List<S> weight{s[1], s[4], s[5], S(2)}; List<S> bias{s[4]};
                  List<S> one{S(1)}; List<S> none{S(0)}; return all(shape::convolve_back<S>(
                      tensor(input), tensor(weight), tensor(bias), one, none, one, none, S(1)))));
}

TEST(ShapeFilled, Order) {
  check_rule(2, 0, 9, RULE(return all(shape::sort<S>(tensor(s), -1))));
  check_rule(3, -1, 9, RULE(List<S> self{s[0], s[1]}; return all(shape::topk<S>(tensor(self), s[2], 1))));
  check_rule(3, -1, 9, RULE(List<S> self{s[0], s[1]}; return all(shape::kthvalue<S>(tensor(self), s[2], 0, false))));
  check_rule(2, 0, 9, RULE(return all(shape::median<S>("median", tensor(s)))));
  check_rule(2, 0, 9, RULE(return all(shape::median_of_lines<S>("median", tensor(s), 1, true))));
  check_rule(2, 0, 9, RULE(return all(shape::mode<S>(tensor(s), 0, false))));
}

TEST(ShapeFilled, Decompositions) {
  for (const char* mode : {"reduced", "complete", "r"})
    check_rule(3, 0, 4, [mode](const auto& s) {
      using S = std::decay_t<decltype(s[0])>;
      return all(shape::qr<S>(tensor(s), mode));
    });
  check_rule(3, 0, 4, RULE(return all(shape::svd<S>(tensor(s), true, true, std::nullopt))));
  check_rule(3, 0, 4, RULE(return all(shape::svd<S>(tensor(s), false, false, std::nullopt))));
  check_rule(3, 1, 3, RULE(return all(shape::eigh<S>(tensor(s), "L", true))));
  check_rule(3, 1, 3, RULE(return all(shape::eig<S>("linalg.eig", tensor(s), true))));
  check_rule(3, 1, 3, RULE(return all(shape::cholesky<S>(tensor(s)))));
  check_rule(3, 1, 3, RULE(return all(shape::inverse<S>(tensor(s)))));
  check_rule(3, 0, 3, RULE(return all(shape::determinant<S>(tensor(s)))));
  check_rule(3, 0, 3, RULE(return all(shape::log_determinant<S>(tensor(s)))));
  check_rule(3, 0, 4, RULE(return all(shape::lu_factor<S>(tensor(s), true))));
  check_rule(3, 0, 3, RULE(return all(shape::ldl_factor<S>(tensor(s)))));
  check_rule(3, 0, 4, RULE(return all(shape::geqrf<S>(tensor(s)))));
  check_rule(3, 1, 4,
             RULE(List<S> input{s[0], s[1]}; List<S> tau{s[2]};
                  return all(shape::householder_product<S>(tensor(input), tensor(tau)))));
}

TEST(ShapeFilled, Spectra) {
  check_rule(
      3, 0, 9,
      RULE(const int64_t dims[] = {2, 0}; return all(shape::complex_spectrum<S>(tensor(s, DType::C64), {dims, 2}, 1))));
  for (bool onesided : {true, false})
    check_rule(2, 0, 9, [onesided](const auto& s) {
      using S = std::decay_t<decltype(s[0])>;
      const int64_t dims[] = {0, -1};
      return all(shape::real_spectrum<S>(tensor(s), {dims, 2}, 0, onesided));
    });
  check_rule(2, 1, 9,
             RULE(const int64_t dims[] = {1}; List<S> self{s[0], s[1] + S(1)};
                  return all(shape::from_half_spectrum<S>(tensor(self, DType::C128), {dims, 1}, 2, s[1] * S(2)))));
}

TEST(ShapeFilled, Systems) {
  for (bool left : {true, false}) {
    check_rule(6, 1, 2, [left](const auto& s) {
      using S = std::decay_t<decltype(s[0])>;
      List<S> a{s[0], s[1], s[2]}, b{s[3], s[4], s[5]};
      return all(shape::solve<S>(tensor(a), tensor(b), left));
    });
    check_rule(5, 1, 2, [left](const auto& s) {
      using S = std::decay_t<decltype(s[0])>;
      List<S> a{s[0], s[1], s[1]}, b{s[2], s[3], s[4]};
      return all(shape::solve_triangular<S>(tensor(a), tensor(b), left));
    });
    check_rule(5, 1, 2, [left](const auto& s) {
      using S = std::decay_t<decltype(s[0])>;
      List<S> a{s[0], s[1], s[1]}, pivots{s[0], s[1]}, b{s[2], s[3], s[4]};
      return all(shape::lu_solve<S>(tensor(a), tensor(pivots, DType::I32), tensor(b), left));
    });
  }
  check_rule(3, 1, 3,
             RULE(List<S> a{s[0], s[1], s[1]}; List<S> b{s[0], s[2]};
                  return all(shape::solve<S>(tensor(a), tensor(b), true))));
  check_rule(4, 1, 2,
             RULE(List<S> a{s[0], s[1], s[1]}; List<S> pivots{s[0], s[1]}; List<S> b{s[2], s[3], S(2)};
                  return all(shape::ldl_solve<S>(tensor(a), tensor(pivots, DType::I32), tensor(b)))));
  for (const char* driver : {"gels", "gelsy", "gelsd"})
    check_rule(4, 0, 3, [driver](const auto& s) {
      using S = std::decay_t<decltype(s[0])>;
      List<S> a{s[0], s[1], s[2]}, b{s[0], s[1], s[3]};
      return all(shape::lstsq<S>(tensor(a), tensor(b), driver));
    });
  check_rule(3, 0, 3, RULE(List<S> b{s[0], s[1]}; return all(shape::lstsq<S>(tensor(s), tensor(b), std::nullopt))));
}

TEST(ShapeFilled, Attention) {
  check_rule(6, 2, 4,
             RULE(Laid<S> query({s[0], s[1], s[2], s[3]}); Laid<S> key({s[0], s[1], s[4], s[3]});
                  Laid<S> value({s[0], s[1], s[4], s[5]}); List<S> mask{s[2], s[4]};
                  return all(shape::attention<S>(query, key, value, 0.0, tensor(mask)))));
  check_rule(5, 2, 4,
             RULE(Laid<S> query({s[0], s[1], s[2], s[3]}); Laid<S> key({s[0], s[1], s[4], s[3]});
                  List<S> sums{s[0], s[1], s[2]};
                  return all(shape::attention_backward<S>(query, query, key, key, query, tensor(sums), 0.0, {}))));
}

TEST(ShapeFilled, FractionalPools) {
  check_rule(4, 1, 5,
             RULE(List<S> self{s[0], s[1], s[2], s[3]}; List<S> samples{s[0], s[1], S(2)};
                  return all(shape::fractional_max_pool<S>("pool", 2, tensor(self), {2}, {2, 1}, tensor(samples)))));
}

TEST(ShapeFilled, GradientsOfConvolutions) {
  check_rule(4, 2, 4,
             RULE(Laid<S> input({s[0], S(2), s[2], s[3]}); Laid<S> weight({s[1], S(2), S(2), S(1)});
                  Laid<S> grad({s[0], s[1], s[2] - S(1), s[3]}); List<S> one{S(1)}; List<S> none{S(0)};
                  return all(shape::convolution_backward<S>(grad, input, weight, one, none, one, false, none, S(1),
                                                            {true, false, true}))));
}

TEST(ShapeFilled, Choices) {
  check_rule(1, -2, 9, RULE(return all(shape::randperm<S>(s[0], std::nullopt))));
  check_rule(3, -1, 4, RULE(List<S> self{s[0], s[1]}; return all(shape::multinomial<S>(tensor(self), s[2], false))));
  check_rule(2, 0, 9, RULE(return all(shape::poisson<S>(tensor(s)))));
  check_rule(
      4, 1, 3,
      RULE(Laid<S> count({s[0], s[1]}); Laid<S> prob({s[2], s[3]}); return all(shape::binomial<S>(count, prob))));
  check_rule(1, -1, 9, RULE(return all(shape::choices<S>(s[0], 3, false))));
  check_rule(1, -1, 9, RULE(return all(shape::choices<S>(s[0], 3, true))));
}

}  // namespace
}  // namespace strata
