#include "dispatch/tls.h"
#include "grad/formulas.h"
#include "strata/generated/ops/conv.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

namespace {

DimVec full(IntArrayRef list, size_t n) {
  return list.size() == n ? DimVec(list) : DimVec(n, list.empty() ? 0 : list[0]);
}

// The gradient of the input of a plain convolution is a transposed one; what the size division dropped comes back as
// output padding.
Tensor input_grad(const Tensor& grad, const Tensor& weight, IntArrayRef sizes, const DimVec& stride,
                  const DimVec& padding, const DimVec& dilation, int64_t groups) {
  DimVec extra;
  for (size_t d = 0; d < stride.size(); ++d)
    extra.push_back(sizes[d + 2] - ((grad.sizes()[d + 2] - 1) * stride[d] - 2 * padding[d] +
                                    dilation[d] * (weight.sizes()[d + 2] - 1) + 1));
  return ops::convolution(grad, ops::_conjugate(weight), {}, stride, padding, dilation, true, extra, groups);
}

// The first elements of the spatial dims, as many as `sizes` says.
Tensor cropped(Tensor r, IntArrayRef sizes) {
  for (int64_t d = 2; d < r.dim(); ++d)
    if (r.sizes()[d] != sizes[d]) r = ops::narrow(r, d, 0, sizes[d]);
  return r;
}

// The gradient of the weight: channels and batch change places, steps of the kernel and of the window too. x is the
// tensor that the windows read, y the one of their positions.
Tensor weight_grad(const Tensor& x, const Tensor& y, IntArrayRef sizes, const DimVec& stride, const DimVec& padding,
                   const DimVec& dilation) {
  DimVec none(stride.size(), 0);
  Tensor r =
      ops::convolution(ops::transpose(x, 0, 1), ops::transpose(y, 0, 1), {}, dilation, padding, stride, false, none, 1);
  return cropped(ops::transpose(r, 0, 1), sizes);
}

Tensor grouped_weight_grad(const Tensor& x, const Tensor& y, IntArrayRef sizes, const DimVec& stride,
                           const DimVec& padding, const DimVec& dilation, int64_t groups) {
  if (groups == 1) return weight_grad(x, y, sizes, stride, padding, dilation);
  std::vector<Tensor> parts;
  int64_t xs = x.sizes()[1] / groups, ys = y.sizes()[1] / groups;
  for (int64_t g = 0; g < groups; ++g)
    parts.push_back(
        weight_grad(ops::narrow(x, 1, g * xs, xs), ops::narrow(y, 1, g * ys, ys), sizes, stride, padding, dilation));
  return ops::cat(parts, 0);
}

}  // namespace

ThreeGrads convolution_grad(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& bias,
                            IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool transposed,
                            IntArrayRef output_padding, int64_t groups, const BoolVec& wanted) {
  if (!grad_enabled()) {
    DimVec bias_sizes;
    if (bias.defined()) bias_sizes = DimVec(bias.sizes());
    return ops::convolution_backward(grad, input, weight, bias.defined() ? OptIntArrayRef(bias_sizes) : std::nullopt,
                                     stride, padding, dilation, transposed, output_padding, groups, wanted);
  }
  size_t n = size_t(weight.dim()) - 2;
  DimVec s = full(stride, n), p = full(padding, n), d = full(dilation, n), none(n, 0);
  ThreeGrads r;
  if (wanted[0])
    // Output padding of a whole stride or more leaves room for one more window, which nothing came from.
    std::get<0>(r) =
        transposed
            ? cropped(ops::convolution(grad, ops::_conjugate(weight), {}, s, p, d, false, none, groups), input.sizes())
            : input_grad(grad, weight, input.sizes(), s, p, d, groups);
  if (wanted[1])
    std::get<1>(r) = transposed ? grouped_weight_grad(grad, ops::_conjugate(input), weight.sizes(), s, p, d, groups)
                                : grouped_weight_grad(ops::_conjugate(input), grad, weight.sizes(), s, p, d, groups);
  if (wanted[2]) {
    DimVec dims{0};
    for (int64_t i = 2; i < grad.dim(); ++i) dims.push_back(i);
    std::get<2>(r) = ops::sum(grad, OptIntArrayRef(dims));
  }
  return r;
}

}  // namespace strata::formulas
