// Quantiles and covariances, composed of operators.
#include <cmath>

#include "base/checked.h"
#include "core/promote.h"
#include "run/copy.h"
#include "strata/generated/by_hand/compose.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/close.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/compose.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/scatter.h"
#include "strata/generated/ops/sort.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

Tensor quantiles(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                 std::string_view interpolation, bool ignore_nan) {
  STRATA_CHECK(self.numel() > 0, "quantile() input tensor must be non-empty");
  STRATA_CHECK(q.dim() <= 1, "quantile() q must be a scalar or 1D tensor, got shape ", q.sizes());
  STRATA_CHECK(self.dtype() == DType::F32 || self.dtype() == DType::F64,
               "quantile() input tensor must be either float or double dtype, got ", self.dtype());
  STRATA_CHECK(self.dtype() == q.dtype(), "quantile() q tensor must be same dtype as the input tensor, got ", q.dtype(),
               " for ", self.dtype());
  const bool known = interpolation == "linear" || interpolation == "lower" || interpolation == "higher" ||
                     interpolation == "midpoint" || interpolation == "nearest";
  STRATA_CHECK(known, "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got ",
               interpolation);
  ops::_check(ops::logical_and(ops::ge(q, Scalar(0)), ops::le(q, Scalar(1))),
              "quantile() q values must be in the range [0, 1]");
  const int64_t d = dim ? wrap_dim(*dim, self.dim()) : 0;
  DimVec shape(self.sizes());
  if (!dim) shape = DimVec(self.dim(), 1);
  if (dim && self.dim() > 0) shape[d] = 1;
  // Rows last, sorted: NaN stands behind all numbers.
  Tensor x = !dim ? ops::flatten(self) : self.dim() == 0 ? ops::reshape(self, {1}) : ops::movedim(self, d, -1);
  Tensor sorted = std::get<0>(ops::sort(x));
  Tensor nan = ops::isnan(sorted);
  const int64_t n = sorted.size(-1);
  DimVec last{-1}, row(sorted.dim(), 1);
  row[sorted.dim() - 1] = q.numel();
  Tensor ranks = ops::reshape(q, row);
  if (ignore_nan) {
    Tensor count = ops::sum(ops::to(ops::logical_not(nan), self.dtype()), OptIntArrayRef(last), true);
    ranks = ops::mul(ranks, ops::clamp_min(ops::sub(count, Scalar(1)), Scalar(0)));
  } else {
    ranks = ops::masked_fill(ops::mul(ranks, Scalar(double(n - 1))), ops::any(nan, -1, true), Scalar(double(n - 1)));
  }
  if (interpolation == "lower") ranks = ops::floor(ranks);
  if (interpolation == "higher") ranks = ops::ceil(ranks);
  if (interpolation == "nearest") ranks = ops::round(ranks);
  DimVec full(sorted.sizes());
  full[sorted.dim() - 1] = q.numel();
  ranks = ops::expand(ranks, full);
  Tensor below = ops::to(ranks, DType::I64), result = ops::gather(sorted, -1, below);
  if (interpolation == "linear" || interpolation == "midpoint") {
    Tensor above = ops::gather(sorted, -1, ops::to(ops::ceil(ranks), DType::I64));
    if (interpolation == "midpoint")
      result = ops::lerp(result, above, Scalar(0.5));
    else
      result = ops::lerp(result, above, ops::sub(ranks, ops::to(below, self.dtype())));
  }
  // The quantiles first, as dims of their own where q has one; then self's dims.
  DimVec out;
  if (q.dim() > 0) out.push_back(q.numel());
  for (int64_t i = 0; i < int64_t(shape.size()); ++i)
    if (keepdim || (dim && i != d)) out.push_back(shape[i]);
  return ops::reshape(ops::movedim(result, -1, 0), out);
}

Tensor number(const Tensor& self, double q) {
  STRATA_CHECK(q >= 0 && q <= 1, "quantile() q must be in the range [0, 1] but got ", q);
  return ops::full(DimVec(), Scalar(q), self.dtype(), self.device());
}

}  // namespace

Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim, std::string_view how) {
  return quantiles(self, q, dim, keepdim, how, false);
}
Tensor quantile(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim, std::string_view how) {
  return quantiles(self, number(self, q), dim, keepdim, how, false);
}
Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view how) {
  return quantiles(self, q, dim, keepdim, how, true);
}
Tensor nanquantile(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim, std::string_view how) {
  return quantiles(self, number(self, q), dim, keepdim, how, true);
}

Tensor cov(const Tensor& self, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  STRATA_CHECK(self.dim() <= 2, "cov(): expected input to have two or fewer dimensions but got an input with ",
               self.dim(), " dimensions");
  STRATA_CHECK(self.dtype() != DType::Bool, "cov(): bool dtype is not supported for input");
  Tensor x = self.dim() < 2 ? ops::reshape(self, {1, -1}) : self;
  const int64_t observations = x.sizes()[1];
  for (const Tensor* w : {&fweights, &aweights}) {
    if (!w->defined()) continue;
    const bool counts = w == &fweights;
    const char* name = counts ? "fweights" : "aweights";
    STRATA_CHECK(w->dim() <= 1, "cov(): expected ", name, " to have one or fewer dimensions but got ", w->dim());
    STRATA_CHECK(counts ? is_integral(w->dtype(), false) : w->is_floating_point(), "cov(): expected ", name,
                 " to have ", counts ? "integral" : "floating point", " dtype but got ", w->dtype());
    STRATA_CHECK(w->numel() == observations, "cov(): expected ", name,
                 " to have the same numel as there are observations, ", observations, ", got ", w->numel());
    ops::_check(ops::ge(*w, Scalar(0)), str_cat("cov(): ", name, " cannot be negative"));
  }
  Tensor w = fweights;
  if (aweights.defined()) w = w.defined() ? ops::mul(w, aweights) : aweights;
  DimVec along{1};
  Tensor total = w.defined() ? ops::sum(w) : ops::full(DimVec(), Scalar(static_cast<long>(observations)));
  Tensor mean = w.defined()
                    ? ops::div(ops::sum(ops::mul(x, w), OptIntArrayRef(along), true), total)
                    : ops::div(ops::sum(x, OptIntArrayRef(along), true), Scalar(static_cast<long>(observations)));
  Tensor norm;
  if (w.defined() && aweights.defined() && correction != 0)
    norm = ops::sub(total,
                    ops::div(ops::mul(ops::sum(ops::mul(w, aweights)), Scalar(static_cast<long>(correction))), total));
  else
    norm = ops::sub(total, Scalar(static_cast<long>(correction)));
  norm = ops::clamp_min(norm, Scalar(0));
  Tensor centred = ops::sub(x, mean), weighed = w.defined() ? ops::mul(centred, w) : centred;
  Tensor r = ops::matmul(centred, ops::t(ops::_conjugate(weighed)));
  return ops::squeeze(ops::true_divide(r, norm));
}

Tensor corrcoef(const Tensor& self) {
  STRATA_CHECK(self.dim() <= 2, "corrcoef(): expected input to have two or fewer dimensions but got an input with ",
               self.dim(), " dimensions");
  Tensor c = ops::cov(self);
  if (c.dim() == 0) return ops::div(c, c);
  Tensor deviation = ops::sqrt(ops::real(ops::diagonal(c)));
  Tensor r = ops::div(ops::div(c, ops::unsqueeze(deviation, 1)), ops::unsqueeze(deviation, 0));
  return r.is_complex() ? r : ops::clamp(r, Scalar(-1), Scalar(1));
}

}  // namespace strata::eager
