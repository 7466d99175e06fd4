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
