// Random counts: poisson and binomial. One uniform number in double precision chooses among the outcomes in an order of
// their own: the most likely one, the next above it, the next below it, and so on, which takes about as many steps as
// the distribution is wide.
#include <cmath>

#include "core/parallel.h"
#include "core/promote.h"
#include "run/copy.h"
#include "run/pointwise.h"
#include "run/random.h"
#include "strata/generated/by_hand/random.h"
#include "strata/generated/kernel_calls.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/special.h"
#include "strata/generated/ops/unary.h"

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

double normal_count(double deviate, double mean, double variance, double last) {
  return std::min(std::max(std::rint(mean + std::max(deviate, -9.0) * std::sqrt(variance)), 0.0), last);
}

// `u`: a uniform number; `at_mode`: the probability of the most likely outcome; `deviate`: the normal number of u, for
// wide distributions only.
struct Draw {
  double u, at_mode;
  const double* deviate;
};

double poisson_count(const Draw& draw, double rate) {
  if (!(rate > 0) || std::isinf(rate)) return rate;
  if (rate > kWide) return normal_count(*draw.deviate, rate, rate, INFINITY);
  return walk(
      draw.u, std::floor(rate), draw.at_mode, INFINITY, [&](double k) { return rate / (k + 1); },
      [&](double k) { return k / rate; });
}

double binomial_mode(double n, double p) { return std::min(std::floor((n + 1) * p), n); }

double binomial_count(const Draw& draw, double n, double p) {
  if (std::isnan(n) || std::isnan(p)) return NAN;
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (n * p * (1 - p) > kWide) return normal_count(*draw.deviate, n * p, n * p * (1 - p), n);
  const double odds = p / (1 - p);
  return walk(
      draw.u, binomial_mode(n, p), draw.at_mode, n, [&](double k) { return (n - k) / (k + 1) * odds; },
      [&](double k) { return k / ((n - k + 1) * odds); });
}

// Of `count` by a Poisson distribution: rate^count exp(-rate) / count!, elementwise.
Tensor probability(const Tensor& count, const Tensor& rate) {
  const Tensor* in[] = {&count, &rate};
  return pointwise(kernels::igamma_factor, {in, 2}, {});
}

Tensor uniform_like(const Tensor& like, IntArrayRef sizes, const Generator& generator) {
  Tensor u = new_tensor(like, sizes, DType::F64);
  calls::draw_uniform(u, generator, 0, 1);
  return u;
}

// From uniform numbers to counts, in place. is_wide(i): whether element i needs its normal number.
template <class IsWide, class Count>
void draw_counts(const Tensor& uniform, const Tensor& at_mode, IsWide is_wide, Count count) {
  double* u = uniform.data<double>();
  const double* most = at_mode.data<double>();
  Tensor normal;
  for (int64_t i = 0; i < uniform.numel() && !normal.defined(); ++i)
    if (is_wide(i)) normal = ops::special_ndtri(uniform);
  const double* deviates = normal.defined() ? normal.data<double>() : nullptr;
  parallel_for(0, uniform.numel(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) u[i] = count(Draw{u[i], most[i], deviates ? deviates + i : nullptr}, i);
  });
}

}  // namespace

void poisson(const Tensor& result, const Tensor& self, const Generator& generator) {
  Tensor rate = as_contiguous(as_dtype(self, DType::F64));
  const double* r = rate.data<double>();
  for (int64_t i = 0; i < rate.numel(); ++i)
    STRATA_CHECK(!(r[i] < 0), "invalid Poisson rate, expected rate to be non-negative: poisson expects 0 or more, got ",
                 r[i]);
  Tensor out = uniform_like(self, self.sizes(), generator);
  const Tensor mode = new_tensor(rate, rate.sizes());
  for (int64_t i = 0; i < rate.numel(); ++i) mode.data<double>()[i] = std::floor(r[i]);
  const Tensor at_mode = probability(mode, rate);
  draw_counts(
      out, at_mode, [&](int64_t i) { return r[i] > kWide; },
      [&](const Draw& draw, int64_t i) { return poisson_count(draw, r[i]); });
  copy_values(result, out);
}

void binomial(const Tensor& result, const Tensor& count, const Tensor& prob, const Generator& generator) {
  const IntArrayRef sizes = result.sizes();
  auto wide = [&](const Tensor& t) {
    Tensor made = new_tensor(t, sizes, DType::F64);
    copy_values(made, t);
    return made;
  };
  const Tensor n = ops::floor(wide(count)), p = wide(prob);
  const double *ns = n.data<double>(), *ps = p.data<double>();
  // With q = 1 - p, the probability of m out of n is that of m at rate n p, times that of n - m at rate n q, over that
  // of n at rate n: nothing large cancels.
  Tensor part[4];
  double* to[4];
  for (int k = 0; k < 4; ++k) to[k] = (part[k] = new_tensor(n, sizes)).data<double>();
  for (int64_t i = 0; i < n.numel(); ++i) {
    to[0][i] = binomial_mode(ns[i], ps[i]);
    to[1][i] = ns[i] * ps[i];
    to[2][i] = ns[i] - to[0][i];
    to[3][i] = ns[i] * (1 - ps[i]);
  }
  const Tensor at_mode =
      ops::div(ops::mul(probability(part[0], part[1]), probability(part[2], part[3])), probability(n, n));
  Tensor out = uniform_like(count, sizes, generator);
  draw_counts(
      out, at_mode, [&](int64_t i) { return ns[i] * ps[i] * (1 - ps[i]) > kWide; },
      [&](const Draw& draw, int64_t i) { return binomial_count(draw, ns[i], ps[i]); });
  copy_values(result, out);
}

}  // namespace strata::eager
