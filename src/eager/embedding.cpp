// Embedding's gradients, added in the order of the indices; rows of bounded norm.
#include <cmath>

#include "core/parallel.h"
#include "eager/visit.h"
#include "strata/generated/eager_embedding.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/embedding.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/vector_norm.h"

namespace strata::eager {

namespace {

Tensor checked_indices(const Tensor& indices, const char* op) {
  STRATA_CHECK(indices.dtype() == DType::I64 || indices.dtype() == DType::I32,
               "Expected tensor for argument #1 'indices' to have one of "
               "the following scalar types: Long, Int; but got ",
               indices.dtype(), " instead (while checking arguments for ", op, ")");
  return as_contiguous(as_dtype(indices, DType::I64));
}

int64_t row_size(IntArrayRef sizes, size_t lead) {
  int64_t n = 1;
  for (size_t d = lead; d < sizes.size(); ++d) n *= sizes[d];
  return n;
}

void check_range(const int64_t* index, int64_t count, int64_t rows) {
  for (int64_t i = 0; i < count; ++i)
    STRATA_CHECK_INDEX(index[i] >= 0 && index[i] < rows, "index out of range in self: embedding got index ", index[i],
                       " at position ", i, " for a table of ", rows, " rows");
}

}  // namespace

Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                          bool scale_grad_by_freq, bool sparse) {
  STRATA_CHECK_NOT_IMPLEMENTED(!sparse, "embedding: sparse gradients are not implemented; use sparse=False");
  return ops::embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq);
}

namespace {

// Positions of each row's occurrences, in ascending order: those of row r are order[start[r]] to order[start[r + 1] -
// 1].
struct Occurrences {
  std::vector<int64_t> start, order;
  Occurrences(const int64_t* index, int64_t count, int64_t rows, int64_t skipped) : start(rows + 1), order(count) {
    for (int64_t i = 0; i < count; ++i)
      if (index[i] != skipped) ++start[index[i] + 1];
    for (int64_t r = 0; r < rows; ++r) start[r + 1] += start[r];
    std::vector<int64_t> next(start.begin(), start.end() - 1);
    for (int64_t i = 0; i < count; ++i)
      if (index[i] != skipped) order[next[index[i]]++] = i;
  }
};

template <class T>
void add_rows(const Tensor& out, const Tensor& grad, const Occurrences& o, int64_t size, bool by_freq) {
  T* to = out.data<T>();
  const T* from = grad.data<T>();
  parallel_for(0, out.sizes()[0], std::max<int64_t>(1, 16384 / std::max<int64_t>(size, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   int64_t first = o.start[r], last = o.start[r + 1];
                   T* sum = to + r * size;
                   for (int64_t j = 0; j < size; ++j) sum[j] = T();
                   T scale = by_freq && first != last ? T(1) / T(float(last - first)) : T(1);
                   for (int64_t k = first; k < last; ++k) {
                     const T* row = from + o.order[k] * size;
                     for (int64_t j = 0; j < size; ++j) sum[j] += by_freq ? row[j] * scale : row[j];
                   }
                 }
               });
}

}  // namespace

Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                                int64_t padding_idx, bool scale_grad_by_freq) {
  Tensor index = checked_indices(indices, "embedding_backward");
  int64_t lead = indices.dim();
  STRATA_CHECK(grad_output.dim() > lead && grad_output.sizes().slice(0, lead) == indices.sizes(),
               "embedding_dense_backward: expected "
               "grad_output of shape [",
               indices.sizes(), ", ...], got ", grad_output.sizes());
  DimVec sizes{num_weights};
  for (int64_t d = lead; d < grad_output.dim(); ++d) sizes.push_back(grad_output.sizes()[d]);
  DType t = grad_output.dtype();
  STRATA_CHECK_NOT_IMPLEMENTED(is_differentiable(t), "embedding_dense_backward: expected a floating dtype, got ", t);
  Tensor out = new_tensor(grad_output, sizes, wide_dtype(t));
  if (out.is_meta() || out.numel() == 0) return new_tensor(grad_output, sizes);
  check_range(index.data<int64_t>(), index.numel(), num_weights);
  Tensor grad = as_contiguous(widened(grad_output));
  Occurrences o(index.data<int64_t>(), index.numel(), num_weights, padding_idx);
  visit_numbers(out.dtype(), "embedding_dense_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_integral_v<T>) add_rows<T>(out, grad, o, row_size(sizes, 1), scale_grad_by_freq);
  });
  return as_dtype(out, t);
}

Tensor embedding_renorm(const Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  STRATA_CHECK(self.dim() == 2, "'self' must be 2-D, got shape ", self.sizes());
  Tensor index = checked_indices(indices, "embedding_renorm_");
  if (self.is_meta() || index.is_meta()) return self;
  int64_t rows = self.sizes()[0];
  check_range(index.data<int64_t>(), index.numel(), rows);
  std::vector<bool> seen(rows);
  for (int64_t i = 0; i < index.numel(); ++i) {
    int64_t r = index.data<int64_t>()[i];
    if (seen[r]) continue;
    seen[r] = true;
    Tensor row = self.alias({self.sizes()[1]}, {self.strides()[1]}, self.storage_offset() + r * self.strides()[0]);
    const auto wide = is_half(row.dtype()) ? std::optional(DType::F32) : std::nullopt;
    double norm = ops::item(ops::linalg_vector_norm(row, Scalar(norm_type), std::nullopt, false, wide)).to_double();
    if (norm > max_norm) copy_values(row, ops::mul(row, Scalar(max_norm / (norm + 1e-7))));
  }
  return self;
}

}  // namespace strata::eager
