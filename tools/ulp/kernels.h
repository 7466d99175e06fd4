// The functions under measurement, as loops over arrays, and the table that the checker walks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace strata::ulp {

using Unary32 = void (*)(const float*, float*, std::size_t);
using Binary32 = void (*)(const float*, const float*, float*, std::size_t);
using Unary64 = void (*)(const double*, double*, std::size_t);
using Binary64 = void (*)(const double*, const double*, double*, std::size_t);

/// One function: its loops (null where the text lacks that type) and its true value in a wider type.
struct Function {
  std::string name;
  Unary32 unary32 = nullptr;
  Unary64 unary64 = nullptr;
  Binary32 binary32 = nullptr;
  Binary64 binary64 = nullptr;
  double (*wide32)(double) = nullptr;
  __float128 (*wide64)(__float128) = nullptr;
  double (*wide32_2)(double, double) = nullptr;
  __float128 (*wide64_2)(__float128, __float128) = nullptr;
  /// Points near which the sampling is dense, besides zero: where the text changes its formula or the function is zero.
  std::vector<double> points = {};
  /// float64 only: results smaller than this are judged by its unit in the last place; the error allowed.
  double (*floor64)(double) = [](double) { return 0.0; };
  double limit64 = 2;
};

/// All functions with their loops; the true values are filled in by reference.cpp.
std::vector<Function> functions();
void fill_references(std::vector<Function>& table);
bool fill_special(Function& f);  // false: not a special function

}  // namespace strata::ulp
