// Random counts: poisson and binomial. One uniform number in double precision chooses among the outcomes in an order of
// their own: the most likely one, the next above it, the next below it, and so on, which takes about as many steps as
// the distribution is wide.
#include <cmath>

#include "core/parallel.h"
#include "core/promote.h"
#include "eager/copy.h"
#include "eager/random.h"
#include "strata/generated/eager_random.h"

namespace strata::eager {

namespace {

// up(k): P(k + 1) / P(k); down(k): P(k - 1) / P(k); outcomes are 0 to last.
template <class Up, class Down>
double walk(double u, double mode, double at_mode, double last, Up up, Down down) {
  double high = mode, low = mode, p_high = at_mode, p_low = at_mode;
  u -= at_mode;
  while (u >= 0) {
    const bool more = high < last && p_high > 0, less = low > 0 && p_low > 0;
    if (!more && !less) return mode;  // what rounding left over
    if (more) {
      p_high *= up(high);
      u -= p_high;
      high += 1;
      if (u < 0) return high;
    }
    if (less) {
      p_low *= down(low);
      u -= p_low;
      low -= 1;
      if (u < 0) return low;
    }
  }
  return mode;
}

// Wider distributions are taken for normal ones, from which they differ by less than doubles show.
constexpr double kWide = 1e10;

double normal_count(double u, double mean, double variance, double last) {
  double low = -9, high = 9;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle * M_SQRT1_2) / 2 < u ? low : high) = middle;
  }
  return std::min(std::max(std::rint(mean + low * std::sqrt(variance)), 0.0), last);
}

// std::lgamma writes a global sign.
double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

double poisson_count(double u, double rate) {
  if (!(rate > 0) || std::isinf(rate)) return rate;
  if (rate > kWide) return normal_count(u, rate, rate, INFINITY);
  const double mode = std::floor(rate);
  return walk(
      u, mode, std::exp(mode * std::log(rate) - rate - log_gamma(mode + 1)), INFINITY,
      [&](double k) { return rate / (k + 1); }, [&](double k) { return k / rate; });
}

double binomial_count(double u, double n, double p) {
  if (std::isnan(n) || std::isnan(p)) return NAN;
  n = std::floor(n);
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (n * p * (1 - p) > kWide) return normal_count(u, n * p, n * p * (1 - p), n);
  const double mode = std::min(std::floor((n + 1) * p), n), odds = p / (1 - p);
  const double choices = log_gamma(n + 1) - log_gamma(mode + 1) - log_gamma(n - mode + 1);
  return walk(
      u, mode, std::exp(choices + mode * std::log(p) + (n - mode) * std::log1p(-p)), n,
      [&](double k) { return (n - k) / (k + 1) * odds; }, [&](double k) { return k / ((n - k + 1) * odds); });
}

Tensor uniform_like(const Tensor& like, IntArrayRef sizes, const Generator& generator) {
  Tensor u = new_tensor(like, sizes, DType::F64);
  fill_uniform(u, 0, 1, generator);
  return u;
}

}  // namespace

Tensor poisson(const Tensor& self, const Generator& generator) {
  STRATA_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), "\"poisson_cpu\" not implemented for '",
                               scalar_type_name(self.dtype()), "'; convert the input with .to() first");
  if (self.is_meta()) return new_tensor(self, self.sizes());
  Tensor rate = as_contiguous(as_dtype(self, DType::F64));
  const double* r = rate.data<double>();
  for (int64_t i = 0; i < rate.numel(); ++i)
    STRATA_CHECK(!(r[i] < 0), "invalid Poisson rate, expected rate to be non-negative: poisson expects 0 or more, got ",
                 r[i]);
  Tensor out = uniform_like(self, self.sizes(), generator);
  double* u = out.data<double>();
  parallel_for(0, out.numel(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) u[i] = poisson_count(u[i], r[i]);
  });
  return as_dtype(out, self.dtype());
}

Tensor binomial(const Tensor& count, const Tensor& prob, const Generator& generator) {
  STRATA_CHECK_VALUE(count.is_floating_point(),
                     "binomial only supports floating-point dtypes for count, got: ", scalar_type_name(count.dtype()));
  STRATA_CHECK_NOT_IMPLEMENTED(count.dtype() == DType::F32 || count.dtype() == DType::F64,
                               "\"binomial_cpu\" not implemented for '", scalar_type_name(count.dtype()),
                               "'; convert count and prob to float32 first");
  check_same_device(count, prob, "binomial");
  STRATA_CHECK(count.dtype() == prob.dtype(), "binomial: expected count and prob of one dtype, but found ",
               count.dtype(), " and ", prob.dtype());
  DimVec sizes = broadcast_shapes(count.sizes(), prob.sizes());
  if (count.is_meta() || prob.is_meta()) return make_tensor(sizes, count.dtype(), count.device(), true);
  auto wide = [&](const Tensor& t) {
    Tensor made = new_tensor(t, sizes, DType::F64);
    copy_values(made, t);
    return made;
  };
  Tensor n = wide(count), p = wide(prob), out = uniform_like(count, sizes, generator);
  double* u = out.data<double>();
  parallel_for(0, out.numel(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) u[i] = binomial_count(u[i], n.data<double>()[i], p.data<double>()[i]);
  });
  return as_dtype(out, count.dtype());
}

}  // namespace strata::eager
