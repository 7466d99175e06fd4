// The gradient of an embedding, as PyTorch calls it.
#include "strata/generated/ops/embedding.h"
#include "strata/generated/by_hand/embedding.h"

namespace strata::eager {

Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                          bool scale_grad_by_freq, bool sparse) {
  STRATA_CHECK_NOT_IMPLEMENTED(!sparse, "embedding: sparse gradients are not implemented; use sparse=False");
  return ops::embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq);
}

}  // namespace strata::eager
