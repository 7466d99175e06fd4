#include "strata/nn/init.h"

#include <cmath>

#include "strata/autograd.h"

namespace strata::nn::init {

namespace {
thread_local bool unset = false;
}

Unset::Unset() : before_(unset) { unset = true; }
Unset::~Unset() { unset = before_; }

Tensor uniform_(const Tensor& t, double a, double b) {
  const NoGradGuard off;
  return unset ? t : ops::uniform_(t, a, b);
}

Tensor normal_(const Tensor& t, double mean, double std) {
  const NoGradGuard off;
  return unset ? t : ops::normal_(t, mean, std);
}

Tensor constant_(const Tensor& t, double value) {
  const NoGradGuard off;
  return unset ? t : ops::fill_(t, value);
}

Tensor zeros_(const Tensor& t) { return constant_(t, 0); }
Tensor ones_(const Tensor& t) { return constant_(t, 1); }

std::pair<int64_t, int64_t> fans(const Tensor& weight) {
  STRATA_CHECK_VALUE(weight.dim() >= 2, "fan in and fan out: expected a weight of at least 2 dims, got one of ",
                     weight.dim());
  int64_t field = 1;
  for (int64_t d = 2; d < weight.dim(); ++d) field *= weight.sizes()[size_t(d)];
  return {weight.sizes()[1] * field, weight.sizes()[0] * field};
}

namespace {
double kaiming_std(const Tensor& t, double slope, Fan fan) {
  const auto [in, out] = fans(t);
  return std::sqrt(2.0 / (1 + slope * slope)) / std::sqrt(double(fan == Fan::In ? in : out));
}
double sum_of_fans(const Tensor& t) {
  const auto [in, out] = fans(t);
  return double(in + out);
}
}  // namespace

Tensor kaiming_uniform_(const Tensor& t, double slope, Fan fan) {
  if (t.numel() == 0) return t;
  const double bound = std::sqrt(3.0) * kaiming_std(t, slope, fan);
  return uniform_(t, -bound, bound);
}

Tensor kaiming_normal_(const Tensor& t, double slope, Fan fan) {
  return t.numel() == 0 ? t : normal_(t, 0, kaiming_std(t, slope, fan));
}

Tensor xavier_uniform_(const Tensor& t, double gain) {
  const double bound = gain * std::sqrt(6.0 / sum_of_fans(t));
  return uniform_(t, -bound, bound);
}

Tensor xavier_normal_(const Tensor& t, double gain) { return normal_(t, 0, gain * std::sqrt(2.0 / sum_of_fans(t))); }

}  // namespace strata::nn::init
