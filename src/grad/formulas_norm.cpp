#include <limits>

#include "base/checked.h"
#include "dispatch/tls.h"
#include "grad/formulas.h"
#include "strata/generated/ops/batch_norm.h"
#include "strata/generated/ops/norm.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

Tensor softmax_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& output, int64_t dim) {
  Tensor inner = ops::sum(output * grad, IntArrayRef(dim), true);
  return grad * grad_output - inner * grad_output - grad * ops::sum(grad_output * output, IntArrayRef(dim), true);
}

Tensor log_softmax_grad_output(const Tensor& grad, const Tensor& output, int64_t dim) {
  return grad - ops::sum(grad * ops::exp(output), IntArrayRef(dim), true);
}

Tensor log_softmax_double_backward(const Tensor& grad, const Tensor& grad_output, const Tensor& output, int64_t dim) {
  return -(grad * ops::exp(output) * ops::sum(grad_output, IntArrayRef(dim), true));
}

namespace {

DimVec trailing(const Tensor& t, int64_t count) {
  DimVec dims;
  for (int64_t d = t.dim() - count; d < t.dim(); ++d) dims.push_back(d);
  return dims;
}
DimVec leading(const Tensor& t, int64_t count) {
  DimVec dims;
  for (int64_t d = 0; d < count; ++d) dims.push_back(d);
  return dims;
}
Tensor sum_over(const Tensor& t, const DimVec& dims, bool keepdim) {
  return dims.empty() ? t : ops::sum(t, OptIntArrayRef(dims), keepdim);
}
int64_t count_of(const Tensor& t, const DimVec& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= t.sizes()[d];
  return n;
}

// Gradients of weight * h + bias by x, where h = (x - mean) / deviation over `dims`, all recorded.
struct Composed {
  Tensor input, normalised;
};
Composed compose(const Tensor& grad, const Tensor& x, const DimVec& dims, const Tensor& weight, double eps,
                 bool centred) {
  Scalar n(double(count_of(x, dims)));
  Tensor d = centred ? x - sum_over(x, dims, true) / n : x;
  Tensor r = ops::rsqrt(sum_over(d * d, dims, true) / n + Scalar(eps));
  Tensor h = d * r, g = weight.defined() ? grad * weight : grad;
  Tensor inner = g - h * (sum_over(g * h, dims, true) / n);
  if (centred) inner = inner - sum_over(g, dims, true) / n;
  return {r * inner, h};
}

}  // namespace

ThreeGrads layer_norm_grad(const Grads& grads, const Tensor& input, IntArrayRef shape, const Tensor& weight,
                           const Tensor& bias, double eps, const Tensor& mean, const Tensor& rstd,
                           const BoolVec& wanted) {
  const Tensor& grad = grads[0];
  if (!grad.defined()) return {};
  if (!grad_enabled()) return ops::native_layer_norm_backward(grad, input, shape, mean, rstd, weight, bias, wanted);
  int64_t k = int64_t(shape.size());
  Composed c = compose(grad, input, trailing(input, k), weight, eps, true);
  DimVec outer = leading(input, input.dim() - k);
  return {c.input, wanted[1] ? sum_over(grad * c.normalised, outer, false) : Tensor(),
          wanted[2] ? sum_over(grad, outer, false) : Tensor()};
}

ThreeGrads group_norm_grad(const Grads& grads, const Tensor& input, const Tensor& weight, const Tensor&, int64_t n,
                           int64_t c, int64_t positions, int64_t group, double eps, const Tensor& mean,
                           const Tensor& rstd, const BoolVec& wanted) {
  bool plain = !grads[1].defined() && !grads[2].defined();
  if (plain && !grad_enabled())
    return ops::native_group_norm_backward(grads[0], input, mean, rstd, weight, n, c, positions, group, wanted);
  DimVec shape{n, group, c / group, positions}, outer{0, 3}, channels{c}, rows{n, group, 1, 1};
  Tensor x = ops::reshape(input, shape);
  Tensor g = grads[0].defined() ? ops::reshape(grads[0], shape) : ops::zeros_like(x);
  Tensor w = weight.defined() ? ops::reshape(weight, {group, c / group, 1}) : weight;
  Composed r = compose(g, x, {2, 3}, w, eps, true);
  // The statistics' own gradients: d mean / dx = 1 / count, d rstd / dx = -rstd^2 (normalised x) / count.
  Scalar count(double(c / group * positions));
  if (grads[1].defined()) r.input = r.input + ops::reshape(grads[1], rows) / count;
  if (grads[2].defined()) r.input = r.input - r.normalised * (ops::reshape(grads[2] * rstd * rstd, rows) / count);
  return {ops::reshape(r.input, input.sizes()),
          wanted[1] ? ops::reshape(sum_over(g * r.normalised, outer, false), channels) : Tensor(),
          wanted[2] ? ops::reshape(sum_over(g, outer, false), channels) : Tensor()};
}

std::tuple<Tensor, Tensor> rms_norm_grad(const Grads& grads, const Tensor& input, IntArrayRef shape,
                                         const Tensor& weight, std::optional<double> eps, const Tensor& rstd,
                                         const BoolVec& wanted) {
  const Tensor& grad = grads[0];
  if (!grad.defined()) return {};
  if (!grad_enabled()) return ops::_fused_rms_norm_backward(grad, input, shape, rstd, weight, wanted);
  int64_t k = int64_t(shape.size());
  double small =
      input.dtype() == DType::F64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  Composed c = compose(grad, input, trailing(input, k), weight, eps.value_or(small), false);
  return {c.input, wanted[1] ? sum_over(grad * c.normalised, leading(input, input.dim() - k), false) : Tensor()};
}

ThreeGrads batch_norm_grad(const Grads& grads, const Tensor& input, const Tensor& weight, const Tensor&,
                           const Tensor& running_mean, const Tensor& running_var, const Tensor& save_mean,
                           const Tensor& save_invstd, bool training, double eps, const BoolVec& wanted) {
  const Tensor& grad = grads[0];
  if (!grad.defined()) return {};
  if (!grad_enabled())
    return ops::native_batch_norm_backward(grad, input, weight, running_mean, running_var, save_mean, save_invstd,
                                           training, eps, wanted);
  DimVec per_channel(input.dim(), 1), dims;
  per_channel[1] = input.sizes()[1];
  for (int64_t d = 0; d < input.dim(); ++d)
    if (d != 1) dims.push_back(d);
  Tensor w = weight.defined() ? ops::reshape(weight, per_channel) : weight;
  Composed c;
  if (training) {
    c = compose(grad, input, dims, w, eps, true);
  } else {
    Tensor r = ops::rsqrt(ops::reshape(running_var, per_channel) + Scalar(eps));
    c = {w.defined() ? grad * (r * w) : grad * r, (input - ops::reshape(running_mean, per_channel)) * r};
  }
  return {c.input, wanted[1] ? sum_over(grad * c.normalised, dims, false) : Tensor(),
          wanted[2] ? sum_over(grad, dims, false) : Tensor()};
}

}  // namespace strata::formulas
