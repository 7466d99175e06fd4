// True values: the C library in double for float32, libquadmath for float64.
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "kernels.h"

extern "C" {
__float128 expq(__float128);
__float128 exp2q(__float128);
__float128 expm1q(__float128);
__float128 logq(__float128);
__float128 log1pq(__float128);
__float128 sinq(__float128);
__float128 cosq(__float128);
__float128 tanhq(__float128);
__float128 erfq(__float128);
__float128 erfcq(__float128);
__float128 tanq(__float128);
__float128 asinq(__float128);
__float128 acosq(__float128);
__float128 atanq(__float128);
__float128 sinhq(__float128);
__float128 coshq(__float128);
__float128 asinhq(__float128);
__float128 acoshq(__float128);
__float128 atanhq(__float128);
__float128 log2q(__float128);
__float128 log10q(__float128);
__float128 lgammaq(__float128);
__float128 rintq(__float128);
__float128 sqrtq(__float128);
__float128 atan2q(__float128, __float128);
__float128 fmodq(__float128, __float128);
__float128 powq(__float128, __float128);
}

namespace strata::ulp {
namespace {

using quad = __float128;

/// A starting value from w = -log(1 - x^2), then Halley's steps on erfc(y) = 1 - x (on erf where x is small).
template <class T, class Log, class Exp, class Erf, class Erfc, class Root>
T inverse_erf(T x, int steps, Log log, Exp exp, Erf erf, Erfc erfc, Root root) {
  const T a = x < 0 ? -x : x;
  if (!(a < 1))
    return a == 1 ? x * std::numeric_limits<double>::infinity() : T(std::numeric_limits<double>::quiet_NaN());
  if (a == 0) return x;
  const T l = log((1 - a) * (1 + a));
  const T c = T(4.3307) + l / 2;
  T y = root(root(c * c - l / T(0.147)) - c);
  for (int i = 0; i < steps; ++i) {
    const T gap = a < T(0.5) ? erf(y) - a : (1 - a) - erfc(y);
    const T d = gap / (T(1.1283791670955125739L) * exp(-y * y));
    y -= d / (1 + y * d);
  }
  return x < 0 ? -y : y;
}

/// psi and psi' by reflection, recurrence up to 30 and the asymptotic series.
template <class T, class Log, class Tan, class Rint>
T digamma(T x, Log log, Tan tan, Rint rint) {
  const T pi = T(3.14159265358979323846264338327950288Q);
  if (x == 0) return -1 / x;
  if (x < 0) {
    const T r = x - rint(x);
    if (!(r != 0)) return T(std::numeric_limits<double>::quiet_NaN());
    return digamma<T, Log, Tan, Rint>(1 - x, log, tan, rint) - pi / tan(pi * r);
  }
  T sum = 0;
  for (; x < 30; x += 1) sum += 1 / x;
  const T s = 1 / (x * x);
  const T c[] = {T(1) / 12,  T(-1) / 120,     T(1) / 252, T(-1) / 240,
                 T(1) / 132, T(-691) / 32760, T(1) / 12,  T(-3617) / 8160};
  T tail = 0;
  for (int i = 7; i >= 0; --i) tail = tail * s + c[i];
  return log(x) - 1 / (2 * x) - tail * s - sum;
}

template <class T, class Sin, class Rint>
T trigamma(T x, Sin sin, Rint rint) {
  const T pi = T(3.14159265358979323846264338327950288Q);
  if (x == 0) return std::numeric_limits<double>::infinity();
  if (x < 0) {
    const T r = x - rint(x);
    if (!(r != 0)) return std::numeric_limits<double>::infinity();
    const T s = pi / sin(pi * r);
    return s * s - trigamma<T, Sin, Rint>(1 - x, sin, rint);
  }
  T sum = 0;
  for (; x < 30; x += 1) sum += 1 / (x * x);
  const T u = 1 / x;
  const T s = u * u;
  const T c[] = {T(1) / 6, T(-1) / 30, T(1) / 42, T(-1) / 30, T(5) / 66, T(-691) / 2730, T(7) / 6, T(-3617) / 510};
  T tail = 0;
  for (int i = 7; i >= 0; --i) tail = tail * s + c[i];
  return u + s / 2 + tail * s * u + sum;
}

template <class T, class Sin, class Tan, class Rint>
T tetragamma(T x, Sin sin, Tan tan, Rint rint) {
  const T pi = T(3.14159265358979323846264338327950288Q);
  if (x == 0) return -std::numeric_limits<double>::infinity();
  if (x < 0) {
    const T r = x - rint(x);
    if (r != r) return std::numeric_limits<double>::quiet_NaN();
    if (r == 0) return -std::numeric_limits<double>::infinity();
    const T s = pi / sin(pi * r);
    const T cot = r == T(0.5) || r == T(-0.5) ? T(0) : 1 / tan(pi * r);
    return tetragamma<T, Sin, Tan, Rint>(1 - x, sin, tan, rint) - 2 * pi * s * s * cot;
  }
  T sum = 0;
  for (; x < 30; x += 1) sum += 1 / (x * x * x);
  const T u = 1 / x;
  const T s = u * u;
  const T c[] = {T(1) / 2, T(-1) / 6, T(1) / 6, T(-3) / 10, T(5) / 6, T(-691) / 210, T(35) / 2, T(-3617) / 30};
  T tail = 0;
  for (int i = 7; i >= 0; --i) tail = tail * s + c[i];
  return -(s + s * u + tail * s * s) - 2 * sum;
}

struct Wide {
  double (*f32)(double);
  quad (*f64)(quad);
};
struct Wide2 {
  double (*f32)(double, double);
  quad (*f64)(quad, quad);
};

constexpr quad half_root = 0.70710678118654752440084436210484903928Q;
constexpr quad root_two_pi = 2.5066282746310005024157652848110452530Q;

const std::map<std::string, Wide> one = {
    {"exp", {[](double x) { return std::exp(x); }, expq}},
    {"exp2", {[](double x) { return std::exp2(x); }, exp2q}},
    {"expm1", {[](double x) { return std::expm1(x); }, expm1q}},
    {"sigmoid", {[](double x) { return 1 / (1 + std::exp(-x)); }, [](quad x) { return 1 / (1 + expq(-x)); }}},
    {"tanh", {[](double x) { return std::tanh(x); }, tanhq}},
    {"log", {[](double x) { return std::log(x); }, logq}},
    {"log1p", {[](double x) { return std::log1p(x); }, log1pq}},
    {"sin", {[](double x) { return std::sin(x); }, sinq}},
    {"cos", {[](double x) { return std::cos(x); }, cosq}},
    {"tan", {[](double x) { return std::tan(x); }, tanq}},
    {"asin", {[](double x) { return std::asin(x); }, asinq}},
    {"acos", {[](double x) { return std::acos(x); }, acosq}},
    {"atan", {[](double x) { return std::atan(x); }, atanq}},
    {"sinh", {[](double x) { return std::sinh(x); }, sinhq}},
    {"cosh", {[](double x) { return std::cosh(x); }, coshq}},
    {"asinh", {[](double x) { return std::asinh(x); }, asinhq}},
    {"acosh", {[](double x) { return std::acosh(x); }, acoshq}},
    {"atanh", {[](double x) { return std::atanh(x); }, atanhq}},
    {"log2", {[](double x) { return std::log2(x); }, log2q}},
    {"log10", {[](double x) { return std::log10(x); }, log10q}},
    {"erf", {[](double x) { return std::erf(x); }, erfq}},
    {"erfc", {[](double x) { return std::erfc(x); }, erfcq}},
    {"erfinv",
     {[](double x) {
        return inverse_erf(
            x, 3, [](double v) { return std::log(v); }, [](double v) { return std::exp(v); },
            [](double v) { return std::erf(v); }, [](double v) { return std::erfc(v); },
            [](double v) { return std::sqrt(v); });
      },
      [](quad x) { return inverse_erf(x, 4, logq, expq, erfq, erfcq, sqrtq); }}},
    {"lgamma", {[](double x) { return double(lgammal(x)); }, lgammaq}},
    {"digamma",
     {[](double x) { return double(digamma<long double>(x, logl, tanl, rintl)); },
      [](quad x) { return digamma<quad>(x, logq, tanq, rintq); }}},
    {"trigamma",
     {[](double x) { return double(trigamma<long double>(x, sinl, rintl)); },
      [](quad x) { return trigamma<quad>(x, sinq, rintq); }}},
    {"tetragamma",
     {[](double x) { return double(tetragamma<long double>(x, sinl, tanl, rintl)); },
      [](quad x) { return tetragamma<quad>(x, sinq, tanq, rintq); }}},
    {"normpdf",
     {[](double x) { return std::exp(-x * x / 2) / double(root_two_pi); },
      [](quad x) { return expq(-x * x / 2) / root_two_pi; }}},
    {"normcdf",
     {[](double x) { return 0.5 * std::erfc(-x * double(half_root)); },
      [](quad x) { return erfcq(-x * half_root) / 2; }}},
    {"rsqrt", {[](double x) { return 1 / std::sqrt(x); }, [](quad x) { return 1 / sqrtq(x); }}},
};

const std::map<std::string, Wide2> two = {
    {"atan2", {[](double y, double x) { return std::atan2(y, x); }, atan2q}},
    {"fmod", {[](double x, double y) { return std::fmod(x, y); }, fmodq}},
    {"pow", {[](double x, double y) { return std::pow(x, y); }, powq}},
};

}  // namespace

void fill_references(std::vector<Function>& table) {
  for (auto& f : table) {
    if (auto it = one.find(f.name); it != one.end()) {
      f.wide32 = it->second.f32;
      f.wide64 = it->second.f64;
    } else if (auto jt = two.find(f.name); jt != two.end()) {
      f.wide32_2 = jt->second.f32;
      f.wide64_2 = jt->second.f64;
    } else if (!fill_special(f)) {
      throw std::runtime_error("no reference for " + f.name);
    }
  }
}

}  // namespace strata::ulp
