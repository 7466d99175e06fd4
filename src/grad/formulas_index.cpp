#include "grad/formulas_index.h"

#include "base/checked.h"
#include "core/promote.h"
#include "grad/formulas.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/scatter.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

Tensor no_derivative(const char* op, const char* instead) {
  throw_error(ErrorKind::NotImplemented, str_cat("the derivative for '", op, "' is not implemented; ", instead));
}

Tensor zero_of(const Tensor& grad) { return zeros_like_sizes(grad, {}); }

Tensor index_backward(const Tensor& grad, IntArrayRef sizes, TensorList indices) {
  return ops::index_put(zeros_like_sizes(grad, sizes), indices, grad, true);
}

Tensor index_select_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim, const Tensor& index) {
  return ops::index_add(zeros_like_sizes(grad, sizes), dim, index, grad, Scalar(1));
}

Tensor rows_of(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef sizes) {
  return ops::reshape(ops::index_select(grad, dim, index), sizes);
}

// Each place of self counts once, however often index names it.
Tensor index_fill_value_backward(const Tensor& grad, int64_t dim, const Tensor& index) {
  Tensor filled = ops::index_fill(ops::zeros(grad.sizes(), DType::Bool, grad.device()), dim, index, Scalar(true));
  return masked_fill_value_backward(grad, filled);
}

Tensor take_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& index) {
  return ops::put(zeros_like_sizes(grad, sizes), index, grad, true);
}

Tensor put_zeros(const Tensor& grad, const Tensor& index) { return zeros_like_sizes(grad, index.sizes()); }

Tensor gather_backward(const Tensor& grad, IntArrayRef sizes, int64_t dim, const Tensor& index) {
  return ops::scatter_add(zeros_like_sizes(grad, sizes), dim, index, grad);
}

Tensor gather_for(const Tensor& grad, int64_t dim, const Tensor& index, IntArrayRef sizes) {
  Tensor g = ops::gather(grad, dim, index);
  if (g.sizes() == sizes) return g;
  // index covers the leading corner of src.
  Tensor whole = zeros_like_sizes(grad, sizes);
  ops::copy_(ops::as_strided(whole, g.sizes(), whole.strides(), std::nullopt), g);
  return whole;
}

namespace {
Tensor like_numbers(const Tensor& mask, const Tensor& like) { return ops::to(mask, like.dtype()); }
}  // namespace

std::tuple<Tensor, Tensor> scatter_reduce_backward(const Tensor& grad, const Tensor& self, int64_t dim,
                                                   const Tensor& index, const Tensor& src, std::string_view reduce,
                                                   bool include_self, const Tensor& result) {
  STRATA_CHECK(index.numel() == 0 || index.sizes() == src.sizes(),
               "scatter_reduce(): expected index and src of one shape for the derivative, got ", index.sizes(), " and ",
               src.sizes(), "; slice src to the shape of index first");
  if (index.numel() == 0) return {grad, ops::zeros_like(src)};
  auto at_src = [&](const Tensor& t) { return ops::gather(t, dim, index); };
  Tensor grad_self, grad_src;
  if (reduce == "sum") {
    grad_self = grad;
    grad_src = at_src(grad);
  } else if (reduce == "mean") {
    Tensor count = include_self ? ops::ones_like(grad) : ops::zeros_like(grad);
    count = ops::scatter_add(count, dim, index, ops::ones(index.sizes(), grad.dtype(), grad.device()));
    count = ops::masked_fill(count, ops::eq(count, Scalar(0)), Scalar(1));
    grad_self = grad / count;
    grad_src = at_src(grad / count);
  } else if (reduce == "prod") {
    // Products without one factor: by division where that is no zero, and with the single zero left out otherwise.
    Tensor self_zero = ops::eq(self, Scalar(0)), src_zero = ops::eq(src, Scalar(0));
    Tensor plain_self = ops::masked_fill(self, self_zero, Scalar(1));
    Tensor others = ops::scatter_reduce(plain_self, dim, index, src, reduce, include_self) / plain_self;
    grad_self = grad * ops::_conjugate(others);
    Tensor zeros = at_src(ops::scatter_add(ops::zeros_like(self), dim, index, like_numbers(src_zero, self)));
    Tensor single = ops::logical_and(src_zero, ops::eq(zeros, Scalar(1)));
    Tensor without =
        ops::scatter_reduce(self, dim, index, ops::masked_fill(src, single, Scalar(1)), reduce, include_self);
    Tensor divided =
        at_src(grad * ops::_conjugate(result)) / ops::_conjugate(ops::masked_fill(src, src_zero, Scalar(1)));
    grad_src = ops::where(single, at_src(grad * ops::_conjugate(without)), divided);
  } else {
    // Ties share the gradient.
    Tensor self_wins = like_numbers(ops::eq(self, result), grad);
    if (!include_self) self_wins = ops::scatter(self_wins, dim, index, Scalar(0));
    Tensor src_wins = like_numbers(ops::eq(src, at_src(result)), grad);
    Tensor share = grad / ops::scatter_add(self_wins, dim, index, src_wins);
    grad_self = self_wins * share;
    grad_src = src_wins * at_src(share);
  }
  if (!include_self) grad_self = ops::scatter(grad_self, dim, index, Scalar(0));
  return {grad_self, grad_src};
}

Tensor masked_fill_value_backward(const Tensor& grad, const Tensor& mask) {
  return ops::sum(ops::where(mask, grad, Scalar(0)), OptIntArrayRef(), false, std::nullopt);
}

Tensor masked_select_backward(const Tensor& grad, IntArrayRef sizes, const Tensor& mask) {
  return ops::masked_scatter(zeros_like_sizes(grad, broadcast_shapes(sizes, mask.sizes())), mask, grad);
}

Tensor masked_scatter_backward(const Tensor& grad, const Tensor& mask, IntArrayRef sizes) {
  Tensor chosen = ops::masked_select(grad, mask);
  int64_t n = checked_numel(sizes);
  Tensor whole = zeros_like_sizes(grad, IntArrayRef(n));
  ops::copy_(ops::as_strided(whole, chosen.sizes(), whole.strides(), std::nullopt), chosen);
  return ops::view(whole, sizes);
}

// ---- order and rank

Tensor place_values(const Tensor& grad, int64_t dim, const Tensor& indices, IntArrayRef sizes, bool keepdim) {
  Tensor zeros = zeros_like_sizes(grad, sizes);
  if (keepdim || sizes.empty()) return ops::scatter(zeros, dim, indices, grad);
  dim = wrap_dim(dim, int64_t(sizes.size()));
  return ops::scatter(zeros, dim, ops::unsqueeze(indices, dim), ops::unsqueeze(grad, dim));
}

Tensor spread_evenly(const Tensor& grad, const Tensor& self, const Tensor& result) {
  Tensor equal = ops::logical_or(ops::eq(self, result), ops::logical_and(ops::isnan(self), ops::isnan(result)));
  Tensor share = grad / ops::sum(equal, OptIntArrayRef(), false, self.dtype());
  return ops::to(equal, self.dtype()) * share;
}

}  // namespace strata::formulas
