// instance_norm: batch_norm whose channels are those of each sample.
#include "strata/generated/ops/batch_norm.h"
#include "dispatch/tls.h"
#include "strata/generated/by_hand/batch_norm.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                     const Tensor& running_var, bool use_input_stats, double momentum, double eps, bool flag) {
  STRATA_CHECK(use_input_stats || (running_mean.defined() && running_var.defined()),
               "Expected running_mean and running_var to be defined when use_input_stats is false");
  STRATA_CHECK(input.dim() >= 2, "instance_norm: expected an input of 2 dims or more, got shape ", input.sizes());
  int64_t n = input.sizes()[0], c = input.sizes()[1];
  DimVec shape{1, n * c};
  for (int64_t d = 2; d < input.dim(); ++d) shape.push_back(input.sizes()[d]);
  auto repeated = [&](const Tensor& v) {
    return v.defined() ? ops::reshape(ops::expand(ops::unsqueeze(v, 0), {n, c}), {n * c}) : v;
  };
  // Each sample's channels are channels of their own; the running statistics take the mean over samples.
  auto copied = [&](const Tensor& v) { return v.defined() ? ops::clone(repeated(ops::detach(v))) : v; };
  Tensor mean = copied(running_mean), var = copied(running_var);
  Tensor r = ops::batch_norm(ops::reshape(input, shape), repeated(weight), repeated(bias), mean, var, use_input_stats,
                             momentum, eps, flag);
  auto take_back = [&](const Tensor& running, const Tensor& values) {
    if (!running.defined() || !use_input_stats) return;
    GradModeGuard off(false);
    ops::copy_(running, ops::div(ops::sum(ops::view(values, {n, c}), IntArrayRef(int64_t(0))), Scalar(double(n))));
  };
  take_back(running_mean, mean);
  take_back(running_var, var);
  return ops::reshape(r, input.sizes());
}

}  // namespace strata::eager
