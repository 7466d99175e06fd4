// Distances between two inputs.
#pragma once
#include "strata/nn/module.h"

namespace strata::nn {

// p-norm of x1 - x2 + eps along the last dim.
class PairwiseDistanceImpl : public Module {
 public:
  using Module::forward;
  explicit PairwiseDistanceImpl(double p = 2, double eps = 1e-6, bool keepdim = false)
      : norm(p), eps(eps), keepdim(keepdim) {}
  Tensor forward(const Tensor& x1, const Tensor& x2) {
    return ops::linalg_vector_norm(x1 - x2 + eps, norm, IntArrayRef(-1), keepdim);
  }
  const double norm, eps;
  const bool keepdim;
};
STRATA_MODULE(PairwiseDistance);

// Cosine of the angle between x1 and x2 along `dim`.
class CosineSimilarityImpl : public Module {
 public:
  using Module::forward;
  explicit CosineSimilarityImpl(int64_t dim = 1, double eps = 1e-8) : dim(dim), eps(eps) {}
  Tensor forward(const Tensor& x1, const Tensor& x2) { return ops::cosine_similarity(x1, x2, dim, eps); }
  const int64_t dim;
  const double eps;
};
STRATA_MODULE(CosineSimilarity);

}  // namespace strata::nn
