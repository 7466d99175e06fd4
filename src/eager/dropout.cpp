#include <cmath>

#include "base/checked.h"
#include "core/promote.h"
#include "eager/copy.h"
#include "strata/generated/eager_dropout.h"
#include "strata/generated/kernel_calls.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/dropout.h"
#include "strata/generated/ops/pointwise.h"

namespace strata::eager {

namespace {

void check_probability(double p) {
  STRATA_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}

Tensor scaled(const Tensor& input, const Tensor& mask, double scale) {
  Scalar s(scale);
  const Tensor* in[] = {&input, &mask};
  return pointwise(kernels::kept_scaled, {in, 2}, Scalars(&s, 1));
}

// Nothing is kept, of any dtype; NaN and infinities give NaN.
Tensor zero_of(const Tensor& input) {
  Tensor zero = new_tensor(input, DimVec());
  fill_values(zero, Scalar(0));
  return zero;
}
Tensor zeroed(const Tensor& input) { return ops::mul(input, zero_of(input)); }

double scale_for(double p) { return p == 1.0 ? 0.0 : 1.0 / (1.0 - p); }

// One draw per sample and channel, as a factor that broadcasts to input.
Tensor channel_mask(const Tensor& input, double p) {
  STRATA_CHECK(input.dim() >= 2, "feature dropout requires at least 2 dimensions in the input, got ", input.dim());
  DimVec sizes(input.dim(), 1);
  sizes[0] = input.sizes()[0];
  sizes[1] = input.sizes()[1];
  Tensor mask = new_tensor(input, sizes);
  calls::draw_bernoulli(mask, {}, 1.0 - p);
  return mask;
}

}  // namespace

Tensor dropout(const Tensor& input, double p, bool train) {
  check_probability(p);
  if (!train || p == 0 || input.numel() == 0) return input;
  if (p == 1) return zeroed(input);
  return std::get<0>(ops::native_dropout(input, p, train));
}

Tensor dropout_(const Tensor& self, double p, bool train) {
  check_probability(p);
  if (!train || p == 0 || self.numel() == 0) return self;
  if (p == 1) return ops::mul_(self, zero_of(self));
  Tensor mask = new_tensor(self, self.sizes());
  calls::draw_bernoulli(mask, {}, 1.0 - p);
  Scalar scale(scale_for(p));
  return ops::mul_(self, ops::mul(mask, scale));
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, std::optional<bool> train) {
  check_probability(p);
  STRATA_CHECK_NOT_IMPLEMENTED(is_differentiable(input.dtype()), "\"native_dropout\" not implemented for '",
                               scalar_type_name(input.dtype()), "'; convert the input with .to() first");
  Tensor mask = new_tensor(input, input.sizes(), DType::Bool);
  if (!train.value_or(true)) {
    fill_values(mask, Scalar(true));
    return {laid_out(contiguous_copy(input), {&input}), laid_out(mask, {&input})};
  }
  calls::draw_bernoulli(mask, {}, 1.0 - p);
  mask = laid_out(mask, {&input});
  return {scaled(input, mask, scale_for(p)), mask};
}

Tensor feature_dropout(const Tensor& input, double p, bool train) {
  check_probability(p);
  if (!train || p == 0 || input.numel() == 0) return input;
  if (p == 1) return zeroed(input);
  return ops::mul(input, ops::mul(channel_mask(input, p), Scalar(scale_for(p))));
}

Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  check_probability(p);
  if (!train || p == 0 || input.numel() == 0) return input;
  if (p == 1) return zeroed(input);
  const double alpha = 1.7580993408473766;  // -(scale * alpha) of selu
  double a = 1.0 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  Tensor mask = new_tensor(input, input.sizes());
  calls::draw_bernoulli(mask, {}, 1.0 - p);
  Tensor shift = ops::add(ops::mul(ops::sub(mask, Scalar(1)), Scalar(alpha * a)), Scalar(alpha * a * p));
  return ops::add(ops::mul(input, ops::mul(mask, Scalar(a))), shift);
}

}  // namespace strata::eager
