// Derivatives of joins, splits, strided views and products of reflections: loops over lists of tensors.
#include "base/checked.h"
#include "grad/formulas/formulas.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/split.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

// The inverse of as_strided_backward's scatter: reads a gradient of the base at the places of the view.
Tensor as_strided_gather(const Tensor& grad, IntArrayRef base_stride, int64_t base_offset, IntArrayRef size,
                         IntArrayRef stride, int64_t offset) {
  int64_t low = std::min(base_offset, offset);
  int64_t high = std::max(base_offset + strided_span(grad.sizes(), base_stride), offset + strided_span(size, stride));
  Tensor flat = ops::zeros(IntArrayRef(high - low), grad.dtype(), grad.device());
  ops::copy_(ops::as_strided(flat, grad.sizes(), base_stride, base_offset - low), grad);
  return ops::as_strided(flat, size, stride, offset - low);
}

std::vector<DimVec> sizes_of(TensorList tensors) {
  std::vector<DimVec> r;
  for (const Tensor& t : tensors) r.emplace_back(t.sizes());
  return r;
}

std::vector<DType> dtypes_of(TensorList tensors) {
  std::vector<DType> r;
  for (const Tensor& t : tensors) r.push_back(t.dtype());
  return r;
}

// ---- lists of views

namespace {

const Tensor& any_defined(const Grads& grads) {
  for (const Tensor& g : grads)
    if (g.defined()) return g;
  throw_error(ErrorKind::Internal, "a list of gradients without any");
}

}  // namespace

Tensor unbind_back(const Grads& grads, int64_t dim) {
  const Tensor& some = any_defined(grads);
  std::vector<Tensor> parts;
  for (const Tensor& g : grads)
    parts.push_back(g.defined() ? g : ops::zeros(some.sizes(), some.dtype(), some.device()));
  return ops::stack(parts, dim);
}

Tensor split_with_sizes_back(const Grads& grads, IntArrayRef sizes, IntArrayRef split_sizes, int64_t dim) {
  const Tensor& some = any_defined(grads);
  dim = wrap_dim(dim, int64_t(sizes.size()));
  std::vector<Tensor> parts;
  for (size_t i = 0; i < grads.size(); ++i) {
    DimVec part(sizes);
    part[dim] = split_sizes[i];
    parts.push_back(grads[i].defined() ? grads[i] : ops::zeros(part, some.dtype(), some.device()));
  }
  return ops::cat(parts, dim);
}

Tensor split_back(const Grads& grads, IntArrayRef sizes, int64_t split_size, int64_t dim) {
  DimVec parts(grads.size(), split_size);
  int64_t n = sizes[wrap_dim(dim, int64_t(sizes.size()))];
  parts.back() = n - split_size * (int64_t(grads.size()) - 1);
  return split_with_sizes_back(grads, sizes, parts, dim);
}

// ---- joins

std::vector<Tensor> cat_back(const Tensor& grad, const std::vector<DimVec>& sizes, const std::vector<DType>& dtypes,
                             int64_t dim) {
  dim = wrap_dim(dim, grad.dim());
  std::vector<Tensor> r;
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].size() == 1 && sizes[i][0] == 0) {  // of any rank, and skipped
      r.push_back(ops::new_zeros(grad, {0}, dtypes[i]));
      continue;
    }
    r.push_back(in_dtype(ops::narrow(grad, dim, start, sizes[i][dim]), dtypes[i]));
    start += sizes[i][dim];
  }
  return r;
}

std::vector<Tensor> block_diag_back(const Tensor& grad, const std::vector<DimVec>& sizes,
                                    const std::vector<DType>& dtypes) {
  std::vector<Tensor> r;
  int64_t row = 0, column = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const DimVec& s = sizes[i];
    int64_t rows = s.size() == 2 ? s[0] : 1, columns = s.empty() ? 1 : s.back();
    Tensor block = ops::narrow(ops::narrow(grad, 0, row, rows), 1, column, columns);
    r.push_back(in_dtype(ops::reshape(block, s), dtypes[i]));
    row += rows;
    column += columns;
  }
  return r;
}

Tensor repeat_back(const Tensor& grad, IntArrayRef repeats, IntArrayRef sizes) {
  size_t lead = repeats.size() - sizes.size();
  for (int64_t n : repeats)
    if (n == 0) return ops::zeros(sizes, grad.dtype(), grad.device());
  DimVec shape, dims;
  for (size_t d = 0; d < repeats.size(); ++d) {
    dims.push_back(int64_t(shape.size()));
    shape.push_back(repeats[d]);
    if (d >= lead) shape.push_back(sizes[d - lead]);
  }
  if (dims.empty()) return grad;
  return ops::sum(ops::reshape(grad, shape), OptIntArrayRef(IntArrayRef(dims)), false, std::nullopt);
}

// ---- reflections

// With Q_k the unit columns and Q_i = Q_{i+1} - tau_i v_i (v_i^H Q_{i+1}): the reverse sweep over these steps.
std::tuple<Tensor, Tensor> householder_grad(const Tensor& grad, const Tensor& input, const Tensor& tau,
                                            const BoolVec& wanted) {
  const int64_t m = input.size(-2), n = input.size(-1), k = tau.size(-1);
  Tensor unit = ops::eye(m, n, input.dtype(), input.device());
  Tensor vectors = ops::tril(ops::narrow(input, -1, 0, k), -1) + ops::narrow(unit, -1, 0, k);
  auto vector = [&](int64_t i) { return ops::narrow(vectors, -1, i, 1); };
  auto factor = [&](int64_t i) { return ops::unsqueeze(ops::narrow(tau, -1, i, 1), -1); };
  std::vector<Tensor> q(k + 1);
  q[k] = ops::expand(unit, input.sizes());
  for (int64_t i = k; i-- > 0;) q[i] = q[i + 1] - vector(i) * factor(i) * ops::matmul(adjoint_of(vector(i)), q[i + 1]);
  std::vector<Tensor> by_vectors, by_taus;
  Tensor g = grad;
  for (int64_t i = 0; i < k; ++i) {
    const Tensor v = vector(i), t = factor(i), &before = q[i + 1];
    Tensor row = ops::matmul(adjoint_of(v), before), grad_row = ops::matmul(adjoint_of(v), g);
    by_taus.push_back(ops::squeeze(-ops::matmul(grad_row, adjoint_of(row)), -1));
    by_vectors.push_back(-(ops::_conjugate(t) * ops::matmul(g, adjoint_of(row))) -
                         t * ops::matmul(before, adjoint_of(grad_row)));
    g = g - ops::_conjugate(t) * v * grad_row;
  }
  if (k == 0) return {wanted[0] ? ops::zeros_like(input) : Tensor(), wanted[1] ? ops::zeros_like(tau) : Tensor()};
  Tensor by_input;
  if (wanted[0]) {
    if (k < n) by_vectors.push_back(ops::zeros_like(ops::narrow(input, -1, k, n - k)));
    by_input = ops::tril(ops::cat(by_vectors, -1), -1);
  }
  return {by_input, wanted[1] ? ops::cat(by_taus, -1) : Tensor()};
}

}  // namespace strata::formulas
