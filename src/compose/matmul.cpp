// Products that are made of mm, bmm and their kin: matmul, linear, tensordot...
#include <algorithm>

#include "base/checked.h"
#include "core/promote.h"
#include "core/shape/matmul.h"
#include "run/view_rules.h"
#include "strata/generated/by_hand/matmul.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

int64_t product_of(IntArrayRef sizes) { return checked_numel(sizes, "matmul"); }

// Whether a batch of matrices times one matrix becomes one product over the rows of all: always where the one matrix
// needs a gradient (its gradient is one product then), else where the rows can be seen together without a copy.
bool folds(const Tensor& batch, const Tensor& one) {
  if (one.requires_grad() || batch.numel() == 0) return true;
  return view_strides(batch.sizes(), batch.strides(),
                      {product_of(batch.sizes().slice(0, batch.dim() - 1)), batch.sizes().back()})
      .has_value();
}

Tensor expanded_batch(const Tensor& t, const DimVec& leading, int64_t rows, int64_t cols) {
  DimVec sizes(leading);
  sizes.push_back(rows);
  sizes.push_back(cols);
  Tensor wide = t.sizes() == IntArrayRef(sizes) ? t : ops::expand(t, sizes);
  return ops::reshape(wide, {product_of(leading), rows, cols});
}

}  // namespace

Tensor matmul(const Tensor& self, const Tensor& other) {
  int64_t a = self.dim(), b = other.dim();
  STRATA_CHECK(a > 0 && b > 0, "both arguments to matmul need to be at least 1D, but they are ", a, "D and ", b, "D");
  if (a == 1 && b == 1) return ops::dot(self, other);
  if (a == 2 && b == 1) return ops::mv(self, other);
  if (a == 1 && b == 2) return ops::squeeze(ops::mm(ops::unsqueeze(self, 0), other), 0);
  if (a == 2 && b == 2) return ops::mm(self, other);
  if (a >= 3 && b <= 2 && folds(self, other)) {
    Tensor rows = ops::reshape(self, {product_of(self.sizes().slice(0, a - 1)), self.sizes().back()});
    DimVec sizes = shape::matmul_sizes<DimVec>(self.sizes(), other.sizes(), self.sizes().slice(0, a - 2));
    return ops::_unsafe_view(b == 1 ? ops::mv(rows, other) : ops::mm(rows, other), sizes);
  }
  if (a <= 2 && b >= 3) {
    // (other^T @ self^T)^T over the rows of all of other's transposes; of complex operands it would be rounded
    // otherwise.
    if ((self.requires_grad() && !self.is_complex()) || other.numel() == 0) {
      Tensor turned = ops::transpose(other, -2, -1);
      Tensor rows = ops::reshape(turned, {product_of(turned.sizes().slice(0, b - 1)), turned.sizes().back()});
      DimVec sizes(turned.sizes().slice(0, b - 1));
      if (a == 1) return ops::_unsafe_view(ops::mv(rows, self), sizes);
      sizes.push_back(self.sizes()[0]);
      Tensor r = ops::transpose(ops::_unsafe_view(ops::mm(rows, ops::t(self)), sizes), -2, -1);
      return ops::clone(r, MemoryFormat::Contiguous);
    }
  }
  Tensor x = a == 1 ? ops::unsqueeze(self, 0) : self, y = b == 1 ? ops::unsqueeze(other, 1) : other;
  IntArrayRef xs = x.sizes(), ys = y.sizes();
  DimVec leading = broadcast_shapes(xs.slice(0, xs.size() - 2), ys.slice(0, ys.size() - 2));
  Tensor r = ops::bmm(expanded_batch(x, leading, xs[xs.size() - 2], xs.back()),
                      expanded_batch(y, leading, ys[ys.size() - 2], ys.back()));
  return ops::_unsafe_view(r, shape::matmul_sizes<DimVec>(self.sizes(), other.sizes(), leading));
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  STRATA_CHECK(weight.dim() == 1 || weight.dim() == 2, "linear: argument weight: expected 1 or 2 dims, got shape ",
               weight.sizes());
  STRATA_CHECK(input.dim() >= 1, "linear: argument input: expected 1 dim or more, got a 0-dim tensor");
  Tensor turned = weight.dim() == 2 ? ops::t(weight) : weight;
  if (!bias.defined()) return ops::matmul(input, turned);
  if (weight.dim() == 2 && input.dim() == 2) return ops::addmm(bias, input, turned);
  if (weight.dim() == 2 && bias.dim() <= 1) {
    DimVec sizes(input.sizes());
    STRATA_CHECK(sizes.back() == weight.sizes()[1], "mat1 and mat2 shapes cannot be multiplied (",
                 product_of(input.sizes().slice(0, sizes.size() - 1)), "x", sizes.back(), " and ", weight.sizes()[1],
                 "x", weight.sizes()[0], ")");
    Tensor rows = ops::reshape(input, {product_of(input.sizes().slice(0, sizes.size() - 1)), sizes.back()});
    sizes.back() = weight.sizes()[0];
    return ops::view(ops::addmm(bias, rows, turned), sizes);
  }
  return ops::add(ops::matmul(input, turned), bias);
}

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  STRATA_CHECK(input1.dim() == input2.dim(), "bilinear(): input dimensions do not match: got ", input1.dim(), " and ",
               input2.dim());
  for (int64_t d = 0; d + 1 < input1.dim(); ++d)
    STRATA_CHECK(input1.sizes()[d] == input2.sizes()[d], "bilinear(): input batch dimensions do not match at dim ", d,
                 ": got ", input1.sizes()[d], " and ", input2.sizes()[d]);
  STRATA_CHECK(weight.dim() == 3 && input1.dim() >= 1, "bilinear(): argument weight: expected 3 dims, got shape ",
               weight.sizes());
  int64_t out = weight.sizes()[0], left = weight.sizes()[1], right = weight.sizes()[2];
  STRATA_CHECK(input1.sizes().back() == left, "bilinear(): input1 size does not match weight size: got ",
               input1.sizes().back(), " but expected ", left);
  STRATA_CHECK(input2.sizes().back() == right, "bilinear(): input2 size does not match weight size: got ",
               input2.sizes().back(), " but expected ", right);
  STRATA_CHECK(!bias.defined() || bias.sizes() == IntArrayRef(out),
               "bilinear(): bias size does not match weight size: got ", bias.sizes(), " but expected [", out, "]");
  DimVec sizes(input1.sizes());
  sizes.back() = out;
  int64_t n = product_of(input1.sizes().slice(0, input1.dim() - 1));
  Tensor x = ops::reshape(input1, {n, left}), y = ops::reshape(input2, {n, right, 1});
  Tensor both = ops::mm(x, ops::reshape(ops::permute(weight, {1, 0, 2}), {left, out * right}));
  Tensor r = ops::reshape(ops::bmm(ops::reshape(both, {n, out, right}), y), sizes);
  return bias.defined() ? ops::add(r, bias) : r;
}

Tensor outer(const Tensor& self, const Tensor& vec2) {
  STRATA_CHECK(self.dim() == 1, "outer: Expected 1-D argument self, but got ", self.dim(), "-D");
  STRATA_CHECK(vec2.dim() == 1, "outer: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  return ops::mul(ops::reshape(self, {self.numel(), 1}), vec2);
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return ops::mul(self, other);
  STRATA_CHECK(self.sizes().back() == other.sizes().back(),
               "inner() the last dimension must match on both input tensors but got shapes ", self.sizes(), " and ",
               other.sizes());
  const int64_t last = -1;
  return ops::tensordot(self, other, IntArrayRef(last), IntArrayRef(last));
}

Tensor tensordot(const Tensor& self, const Tensor& other, IntArrayRef dims_self, IntArrayRef dims_other) {
  STRATA_CHECK(dims_self.size() == dims_other.size(), "tensordot: both dimension lists should have same length, got ",
               dims_self.size(), " and ", dims_other.size());
  Tensor x = self, y = other;
  DimVec sum_x, sum_y;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    int64_t p = wrap_dim(dims_self[i], self.dim()), q = wrap_dim(dims_other[i], other.dim());
    STRATA_CHECK(std::find(sum_x.begin(), sum_x.end(), p) == sum_x.end() &&
                     std::find(sum_y.begin(), sum_y.end(), q) == sum_y.end(),
                 "tensordot: dim ", p, " or ", q, " appears multiple times in the list of dims");
    int64_t s = self.sizes()[p], t = other.sizes()[q];
    STRATA_CHECK(s == t || s == 1 || t == 1, "contracted dimensions need to match, but first has size ", s, " in dim ",
                 p, " and second has size ", t, " in dim ", q);
    if (s == 1 && t != 1) y = ops::sum(y, IntArrayRef(q), true, y.dtype());
    if (t == 1 && s != 1) x = ops::sum(x, IntArrayRef(p), true, x.dtype());
    sum_x.push_back(p);
    sum_y.push_back(q);
  }
  DimVec order_x, order_y(sum_y), sizes;
  int64_t rows = 1, inner = 1, cols = 1;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (std::find(sum_x.begin(), sum_x.end(), d) == sum_x.end()) {
      order_x.push_back(d);
      sizes.push_back(x.sizes()[d]);
      rows *= x.sizes()[d];
    }
  for (int64_t d : sum_x) {
    order_x.push_back(d);
    inner *= x.sizes()[d];
  }
  for (int64_t d = 0; d < y.dim(); ++d)
    if (std::find(sum_y.begin(), sum_y.end(), d) == sum_y.end()) {
      order_y.push_back(d);
      sizes.push_back(y.sizes()[d]);
      cols *= y.sizes()[d];
    }
  Tensor r = ops::mm(ops::reshape(ops::permute(x, order_x), {rows, inner}),
                     ops::reshape(ops::permute(y, order_y), {inner, cols}));
  return ops::reshape(r, sizes);
}

Tensor kron(const Tensor& self, const Tensor& other) {
  int64_t n = std::max(self.dim(), other.dim());
  DimVec a, b, sizes;
  for (int64_t d = 0; d < n; ++d) {
    int64_t at = d - (n - self.dim()), bt = d - (n - other.dim());
    int64_t s = at < 0 ? 1 : self.sizes()[at], t = bt < 0 ? 1 : other.sizes()[bt];
    a.push_back(s);
    a.push_back(1);
    b.push_back(1);
    b.push_back(t);
    sizes.push_back(checked_mul(s, t, "kron"));
  }
  return ops::reshape(ops::mul(ops::reshape(self, a), ops::reshape(other, b)), sizes);
}

namespace {
Tensor multiply_chain(TensorList list, const std::vector<std::vector<size_t>>& split, size_t i, size_t j) {
  if (i == j) return list[i];
  return ops::mm(multiply_chain(list, split, i, split[i][j]), multiply_chain(list, split, split[i][j] + 1, j));
}
}  // namespace

Tensor chain_matmul(TensorList matrices) {
  size_t n = matrices.size();
  STRATA_CHECK(n > 0, "chain_matmul(): Expected one or more matrices");
  for (const Tensor& m : matrices)
    STRATA_CHECK(m.dim() == 2, "chain_matmul(): expected matrices, got a tensor of ", m.dim(), " dims");
  if (n == 1) return ops::clone(matrices[0]);
  // The cheapest bracketing by dynamic programming over lengths.
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n, 0));
  for (size_t length = 2; length <= n; ++length)
    for (size_t i = 0; i + length <= n; ++i) {
      size_t j = i + length - 1;
      cost[i][j] = INFINITY;
      for (size_t k = i; k < j; ++k) {
        double c = cost[i][k] + cost[k + 1][j] +
                   double(matrices[i].sizes()[0]) * double(matrices[k].sizes()[1]) * double(matrices[j].sizes()[1]);
        if (c < cost[i][j]) {
          cost[i][j] = c;
          split[i][j] = k;
        }
      }
    }
  return multiply_chain(matrices, split, 0, n - 1);
}

}  // namespace strata::eager
