// Normalisation over trailing dims: layer_norm, rms_norm, and group_norm, which is one on a view of four dims.
#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "core/promote.h"
#include "eager/norm_common.h"
#include "strata/generated/eager_norm.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/norm.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

Tensor sum_leading(const Tensor& t, int64_t kept) {
  DimVec dims;
  for (int64_t d = 0; d < t.dim() - kept; ++d) dims.push_back(d);
  return dims.empty() ? t : ops::sum(t, OptIntArrayRef(dims));
}

namespace {

void check_shape(const Tensor& input, IntArrayRef shape, const Tensor& weight, const Tensor& bias) {
  STRATA_CHECK(!shape.empty(),
               "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
               "but got normalized_shape = ",
               shape);
  STRATA_CHECK(!weight.defined() || weight.sizes() == shape,
               "Expected weight to be of same shape as normalized_shape, but got weight "
               "of shape ",
               weight.sizes(), " and normalized_shape = ", shape);
  STRATA_CHECK(!bias.defined() || bias.sizes() == shape,
               "Expected bias to be of same shape as normalized_shape, but got bias of shape ", bias.sizes(),
               " and normalized_shape = ", shape);
  int64_t n = input.dim(), k = int64_t(shape.size());
  STRATA_CHECK(n >= k && input.sizes().slice(std::max<int64_t>(n - k, 0), k) == shape, "Given normalized_shape=", shape,
               ", expected input with shape [*, ", shape, "], but got input of size ", input.sizes());
}

void check_normalized(const Tensor& input, IntArrayRef shape, const Tensor& weight, const Tensor& bias,
                      const char* op) {
  check_shape(input, shape, weight, bias);
  STRATA_CHECK_NOT_IMPLEMENTED(input.is_floating_point(), "\"", op, "\" not implemented for '",
                               scalar_type_name(input.dtype()), "'; convert the input with .to() first");
}

// Statistics and affine values wider than the input: everything is computed in their dtype.
DType work_dtype(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  DType t = input.dtype();
  if (weight.defined()) t = promote_types(t, weight.dtype());
  if (bias.defined()) t = promote_types(t, bias.dtype());
  return t;
}

struct Normalised {
  Tensor result, mean, rstd;
};

// x over `dims`; weight and bias broadcast to x.
Normalised normalise(const Tensor& input, const DimVec& dims, const Tensor& weight, const Tensor& bias, double eps,
                     bool keepdim) {
  DType t = work_dtype(input, weight, bias);
  Tensor x = as_dtype(input, t);
  Scalar e(eps);
  std::vector<Tensor> r;
  if (x.numel() == 0) {
    DimVec sizes;
    for (int64_t d = 0; d < x.dim(); ++d) {
      bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
      if (!reduced || keepdim) sizes.push_back(reduced ? 1 : x.sizes()[d]);
    }
    return {new_tensor(input, input.sizes()), constant(x, sizes, t, 0),
            constant(x, sizes, t, std::numeric_limits<double>::quiet_NaN())};
  }
  if (!weight.defined() && !bias.defined()) {
    const Tensor* in[] = {&x};
    r = rows(kernels::norm_rows_plain, {in, 1}, Scalars(&e, 1), dims, keepdim);
  } else {
    Tensor w = or_constant(weight, x, DimVec(), t, 1), b = or_constant(bias, x, DimVec(), t, 0);
    const Tensor* in[] = {&x, &w, &b};
    r = rows(kernels::norm_rows, {in, 3}, Scalars(&e, 1), dims, keepdim);
  }
  return {as_dtype(r[0], input.dtype()), r[1], r[2]};
}

Tensor backward_rows(const Tensor& grad, const Tensor& input, const DimVec& dims, const Tensor& mean,
                     const Tensor& rstd, const Tensor& weight) {
  if (input.numel() == 0) return new_tensor(input, input.sizes());
  DType t = mean.dtype();
  Tensor x = as_dtype(input, t), w = or_constant(weight, x, DimVec(), t, 1);
  const Tensor* in[] = {&x, &grad, &w, &mean, &rstd};
  return as_dtype(rows(kernels::norm_backward_rows, {in, 5}, {}, dims, false)[0], input.dtype());
}

void check_gradient(const char* op, const Tensor& grad, const Tensor& input, const Tensor& mean, const Tensor& rstd) {
  STRATA_CHECK(grad.sizes() == input.sizes(), op, ": expected a gradient of shape ", input.sizes(), ", got ",
               grad.sizes());
  STRATA_CHECK(mean.is_floating_point() && rstd.is_floating_point(), op,
               ": expected statistics of a floating dtype, got ", mean.dtype(), " and ", rstd.dtype());
}

// grad times the normalised input, in the dtype in which it is then summed.
Tensor normalised_grad(const Tensor& grad, const Tensor& input, const Tensor& mean, const Tensor& rstd) {
  DType t = accumulator_of(mean.dtype());
  Tensor m = as_dtype(mean, t), out = new_tensor(input, input.sizes(), t);
  const Tensor* in[] = {&m, &input, &grad, &rstd};
  const Tensor* outs[] = {&out};
  pointwise_into(kernels::normalised_times_grad, {outs, 1}, {in, 4}, {});
  return out;
}

}  // namespace

Tensor layer_norm(const Tensor& input, IntArrayRef shape, const Tensor& weight, const Tensor& bias, double eps, bool) {
  return std::get<0>(ops::native_layer_norm(input, shape, weight, bias, eps));
}

std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, IntArrayRef shape, const Tensor& weight,
                                                     const Tensor& bias, double eps) {
  check_normalized(input, shape, weight, bias, "layer_norm");
  Normalised r = normalise(input, last_dims(input, int64_t(shape.size())), weight, bias, eps, true);
  return {r.result, r.mean, r.rstd};
}

std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward(const Tensor& grad, const Tensor& input,
                                                              IntArrayRef shape, const Tensor& mean, const Tensor& rstd,
                                                              const Tensor& weight, const Tensor& bias,
                                                              const BoolVec& mask) {
  check_normalized(input, shape, weight, bias, "layer_norm");
  check_gradient("native_layer_norm_backward", grad, input, mean, rstd);
  int64_t k = int64_t(shape.size());
  std::tuple<Tensor, Tensor, Tensor> r;
  if (mask[0]) std::get<0>(r) = backward_rows(grad, input, last_dims(input, k), mean, rstd, weight);
  if (mask[1] && weight.defined())
    std::get<1>(r) = as_dtype(sum_leading(normalised_grad(grad, input, mean, rstd), k), weight.dtype());
  if (mask[2] && bias.defined()) std::get<2>(r) = as_dtype(sum_leading(grad, k), bias.dtype());
  return r;
}

// ---- group_norm: (N, groups, channels of a group, positions)

namespace {

struct Groups {
  DimVec sizes, affine;
  Tensor shaped(const Tensor& t) const { return ops::reshape(t, sizes); }
  Tensor per_channel(const Tensor& t) const { return t.defined() ? ops::reshape(t, affine) : t; }
};

Groups groups_of(const Tensor& input, int64_t n, int64_t c, int64_t positions, int64_t group) {
  STRATA_CHECK(group > 0 && c > 0 && c % group == 0, "native_group_norm: expected groups of channels, got ", c,
               " channels in ", group, " groups");
  STRATA_CHECK(n >= 0 && positions >= 0 &&
                   input.numel() == checked_mul(checked_mul(n, c, "native_group_norm"), positions, "native_group_norm"),
               "native_group_norm: expected N * C * HxW = ", n, " * ", c, " * ", positions, " elements, got shape ",
               input.sizes());
  return {{n, group, c / group, positions}, {group, c / group, 1}};
}

}  // namespace

Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps, bool) {
  STRATA_CHECK(input.dim() >= 2, "group_norm: Expected at least 2 dimensions for input tensor but received ",
               input.dim());
  int64_t n = input.sizes()[0], c = input.sizes()[1];
  STRATA_CHECK(num_groups > 0, "group_norm: Expected num groups to be greater than 0, got ", num_groups);
  STRATA_CHECK(c % num_groups == 0,
               "Expected number of channels in input to be divisible by num_groups, but got input of shape ",
               input.sizes(), " and num_groups=", num_groups);
  STRATA_CHECK(!weight.defined() || (weight.dim() == 1 && weight.numel() == c),
               "Expected weight to be a vector of size equal to the number "
               "of channels in input, but got weight of shape ",
               weight.sizes(), " and input of shape ", input.sizes());
  STRATA_CHECK(!bias.defined() || (bias.dim() == 1 && bias.numel() == c),
               "Expected bias to be a vector of size equal to the number of "
               "channels in input, but got bias of shape ",
               bias.sizes(), " and input of shape ", input.sizes());
  return std::get<0>(ops::native_group_norm(input, weight, bias, n, c,
                                            checked_numel(input.sizes().slice(2, input.dim() - 2)), num_groups, eps));
}

std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                                     int64_t n, int64_t c, int64_t positions, int64_t group,
                                                     double eps) {
  STRATA_CHECK_NOT_IMPLEMENTED(input.is_floating_point(), "\"group_norm\" not implemented for '",
                               scalar_type_name(input.dtype()), "'");
  Groups g = groups_of(input, n, c, positions, group);
  Normalised r = normalise(g.shaped(input), {2, 3}, g.per_channel(weight), g.per_channel(bias), eps, false);
  return {ops::reshape(r.result, input.sizes()), r.mean, r.rstd};
}

std::tuple<Tensor, Tensor, Tensor> native_group_norm_backward(const Tensor& grad, const Tensor& input,
                                                              const Tensor& mean, const Tensor& rstd,
                                                              const Tensor& weight, int64_t n, int64_t c,
                                                              int64_t positions, int64_t group, const BoolVec& mask) {
  Groups g = groups_of(input, n, c, positions, group);
  STRATA_CHECK(grad.sizes() == input.sizes() && mean.numel() == n * group && rstd.numel() == n * group,
               "native_group_norm_backward: expected a gradient of shape ", input.sizes(), " and ", n * group,
               " means and deviations, got ", grad.sizes(), ", ", mean.sizes(), " and ", rstd.sizes());
  check_gradient("native_group_norm_backward", grad, input, mean, rstd);
  Tensor dy = g.shaped(grad), x = g.shaped(input);
  std::tuple<Tensor, Tensor, Tensor> r;
  if (mask[0])
    std::get<0>(r) = ops::reshape(backward_rows(dy, x, {2, 3}, mean, rstd, g.per_channel(weight)), input.sizes());
  DimVec stat{n, group, 1, 1}, summed{0, 3}, channels{c};
  DType t = weight.defined() ? weight.dtype() : input.dtype();
  if (mask[1]) {
    Tensor product = normalised_grad(dy, x, ops::reshape(mean, stat), ops::reshape(rstd, stat));
    std::get<1>(r) = as_dtype(ops::reshape(ops::sum(product, OptIntArrayRef(summed)), channels), t);
  }
  if (mask[2]) std::get<2>(r) = as_dtype(ops::reshape(ops::sum(dy, OptIntArrayRef(summed)), channels), t);
  return r;
}

// ---- rms_norm

Tensor rms_norm(const Tensor& input, IntArrayRef shape, const Tensor& weight, std::optional<double> eps) {
  if (input.is_complex()) {
    check_shape(input, shape, weight, {});
    DimVec dims = last_dims(input, int64_t(shape.size()));
    Scalar small(eps.value_or(input.dtype() == DType::C128 ? std::numeric_limits<double>::epsilon()
                                                           : std::numeric_limits<float>::epsilon()));
    Tensor mean = ops::mean(ops::mul(input, input), OptIntArrayRef(IntArrayRef(dims)), true, std::nullopt);
    Tensor r = ops::mul(input, ops::rsqrt(ops::add(mean, small)));
    return weight.defined() ? ops::mul(r, weight) : r;
  }
  return std::get<0>(ops::_fused_rms_norm(input, shape, weight, eps));
}

std::tuple<Tensor, Tensor> fused_rms_norm(const Tensor& input, IntArrayRef shape, const Tensor& weight,
                                          std::optional<double> eps) {
  check_normalized(input, shape, weight, {}, "rms_norm");
  DType t = work_dtype(input, weight, {});
  // The default is the spacing of numbers at 1 in the dtype of the computation.
  double small =
      input.dtype() == DType::F64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  Scalar e(eps.value_or(small));
  DimVec dims = last_dims(input, int64_t(shape.size()));
  Tensor x = as_dtype(input, t);
  if (x.numel() == 0) {
    DimVec sizes(x.sizes());
    for (int64_t d : dims) sizes[d] = 1;
    return {new_tensor(input, input.sizes()),
            constant(x, sizes, accumulator_of(t), std::numeric_limits<double>::quiet_NaN())};
  }
  Tensor w = or_constant(weight, x, DimVec(), t, 1);
  const Tensor* in[] = {&x, &w};
  std::vector<Tensor> r = rows(kernels::rms_rows, {in, 2}, Scalars(&e, 1), dims, true);
  return {as_dtype(r[0], input.dtype()), as_dtype(r[1], accumulator_of(t))};
}

std::tuple<Tensor, Tensor> fused_rms_norm_backward(const Tensor& grad, const Tensor& input, IntArrayRef shape,
                                                   const Tensor& rstd, const Tensor& weight, const BoolVec& mask) {
  check_normalized(input, shape, weight, {}, "rms_norm");
  check_gradient("_fused_rms_norm_backward", grad, input, rstd, rstd);
  int64_t k = int64_t(shape.size());
  std::tuple<Tensor, Tensor> r;
  if (mask[0] && input.numel() > 0) {
    Tensor x = as_dtype(input, rstd.dtype()), w = or_constant(weight, x, DimVec(), rstd.dtype(), 1);
    const Tensor* in[] = {&x, &grad, &w, &rstd};
    std::get<0>(r) =
        as_dtype(rows(kernels::rms_backward_rows, {in, 4}, {}, last_dims(input, k), false)[0], input.dtype());
  } else if (mask[0]) {
    std::get<0>(r) = new_tensor(input, input.sizes());
  }
  if (mask[1] && weight.defined()) {
    Tensor zero = constant(input, DimVec(), accumulator_of(rstd.dtype()), 0);
    std::get<1>(r) = as_dtype(sum_leading(normalised_grad(grad, input, zero, rstd), k), weight.dtype());
  }
  return r;
}

}  // namespace strata::eager
