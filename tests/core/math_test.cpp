// core/math.h: numbers that come one at a time get the bits that tensors get.
#include "core/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "strata/generated/ops.h"

namespace strata {

namespace {

const std::vector<double> numbers{0.0,   -0.0, 1.0,    0.1,      -0.3,      2.5,   -7.75,     1e-310,
                                  -1e-8, 0.9,  1e5,    -3.2e9,   1e300,     709.5, -745.0,    0.99999999,
                                  M_PI,  42,   1.0625, INFINITY, -INFINITY, NAN,   0x1p-1074, 0.5};

template <class T>
bool same(T a, T b) {
  using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<U>(a) == std::bit_cast<U>(b);
}

Tensor tensor_of(double x) { return ops::full({1}, Scalar(x), DType::F64); }
double value(const Tensor& t) { return ops::item(t).to_double(); }

}  // namespace

TEST(Math, HasTheBitsOfTheOperators) {
  for (double x : numbers) {
    const Tensor t = tensor_of(x);
    EXPECT_TRUE(same(math::exp(x), value(ops::exp(t)))) << x;
    EXPECT_TRUE(same(math::log(x), value(ops::log(t)))) << x;
    EXPECT_TRUE(same(math::log1p(x), value(ops::log1p(t)))) << x;
    EXPECT_TRUE(same(math::sin(x), value(ops::sin(t)))) << x;
    EXPECT_TRUE(same(math::cos(x), value(ops::cos(t)))) << x;
    EXPECT_TRUE(same(math::acos(x), value(ops::acos(t)))) << x;
    const Tensor narrow = ops::full({1}, Scalar(double(float(x))), DType::F32);
    EXPECT_TRUE(same(math::log(float(x)), float(value(ops::log(narrow))))) << x;
    for (double y : numbers) {
      EXPECT_TRUE(same(math::pow(x, y), value(ops::pow(t, tensor_of(y))))) << x << " " << y;
      const std::complex<double> z(x, y);
      const Tensor pair = ops::full({1}, Scalar(z), DType::C128);
      const std::complex<double> log = math::log(z), expected = ops::item(ops::log(pair)).to_complex();
      EXPECT_TRUE(same(log.real(), expected.real()) && same(log.imag(), expected.imag())) << z;
      EXPECT_TRUE(same(math::abs(z), value(ops::abs(pair)))) << z;
      const Tensor small = ops::full({1}, Scalar(std::complex<double>(float(x), float(y))), DType::C64);
      EXPECT_TRUE(same(math::abs(std::complex<float>(float(x), float(y))), float(value(ops::abs(small))))) << z;
    }
  }
}

TEST(Math, PowersOfTenAreExact) {
  for (int k = 0; k <= 22; ++k)
    EXPECT_EQ(math::power_of_ten(k), std::strtod(("1e" + std::to_string(k)).c_str(), nullptr));
  EXPECT_NEAR(math::power_of_ten(300), 1e300, 1e285);
  EXPECT_EQ(math::power_of_ten(400), INFINITY);
}

}  // namespace strata
