#include "grad/formulas_view.h"

#include "base/checked.h"
#include "grad/formulas.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/scatter_view.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/split.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

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

Tensor permute_back(const Tensor& grad, IntArrayRef dims) {
  DimVec back(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) back[wrap_dim(dims[i], int64_t(dims.size()))] = int64_t(i);
  return ops::permute(grad, back);
}

Tensor as_strided_scatter_grad(const Tensor& grad, IntArrayRef base_stride, int64_t base_offset, IntArrayRef size,
                               IntArrayRef stride, std::optional<int64_t> offset) {
  Tensor ones = ops::ones(size, grad.dtype(), grad.device());
  Tensor hit = ops::as_strided_backward(ones, grad.sizes(), base_stride, base_offset, size, stride,
                                        offset.value_or(base_offset));
  return ops::where(ops::ne(hit, Scalar(0)), ops::zeros_like(grad), grad);
}

// ---- lists of views

namespace {

const Tensor& any_defined(const Grads& grads) {
  for (const Tensor& g : grads)
    if (g.defined()) return g;
  throw_error(ErrorKind::Internal, "a list of gradients without any");
}

Tensor part_in(const Tensor& grad, DType dtype) {
  Tensor g = grad.is_complex() && !is_complex(dtype) ? ops::real(grad) : grad;
  return ops::to(g, dtype);
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
      r.push_back(ops::zeros({0}, dtypes[i], grad.device()));
      continue;
    }
    r.push_back(part_in(ops::narrow(grad, dim, start, sizes[i][dim]), dtypes[i]));
    start += sizes[i][dim];
  }
  return r;
}

std::vector<Tensor> stack_back(const Tensor& grad, const std::vector<DType>& dtypes, int64_t dim) {
  std::vector<Tensor> r = ops::unbind(grad, dim);
  for (size_t i = 0; i < r.size(); ++i) r[i] = part_in(r[i], dtypes[i]);
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
    r.push_back(part_in(ops::reshape(block, s), dtypes[i]));
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

Tensor constant_pad_back(const Tensor& grad, IntArrayRef pad) {
  DimVec back(pad);
  for (int64_t& p : back) p = -p;
  return ops::constant_pad_nd(grad, back, Scalar(0));
}

// ---- complex numbers of parts

Tensor complex_part(const Tensor& grad, bool imaginary) {
  if (!grad.is_complex()) return imaginary ? ops::zeros_like(grad) : grad;
  return imaginary ? ops::imag(grad) : ops::real(grad);
}

Tensor polar_abs_back(const Tensor& grad, const Tensor& angle) {
  return complex_part(grad, false) * ops::cos(angle) + complex_part(grad, true) * ops::sin(angle);
}

// d (r e^ia) / da = i r e^ia: real(conj(grad) * i * result).
Tensor polar_angle_back(const Tensor& grad, const Tensor& result) {
  return complex_part(grad, true) * ops::real(result) - complex_part(grad, false) * ops::imag(result);
}

}  // namespace strata::formulas
