// Look-ups in tables: Embedding and EmbeddingBag.
#pragma once
#include <string>

#include "strata/nn/module.h"

namespace strata::nn {

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx;  // that row gets no gradient
  std::optional<double> max_norm;      // rows that are used are first scaled down to it, in place
  double norm_type = 2;
  bool scale_grad_by_freq = false;
  DType dtype = default_dtype();
  Tensor weight = {};  // the table, where there is one
  bool freeze = false;
};
// Rows of a table (num_embeddings, embedding_dim), initially standard normal, with zeros in the padding row.
class EmbeddingImpl : public Module {
 public:
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim, EmbeddingOptions options = {});
  Tensor forward(const Tensor& input) override;
  void reset_parameters();
  const EmbeddingOptions options;
  const std::optional<int64_t> padding_idx;
  Tensor weight;
};
STRATA_MODULE(Embedding);

struct EmbeddingBagOptions {
  std::optional<double> max_norm;
  double norm_type = 2;
  bool scale_grad_by_freq = false;
  std::string mode = "mean";  // or "sum", "max"
  bool include_last_offset = false;
  std::optional<int64_t> padding_idx;
  DType dtype = default_dtype();
};
// Sums, means or maxima of rows over bags: input (bags, each), or (all) with the offsets where bags begin.
class EmbeddingBagImpl : public Module {
 public:
  EmbeddingBagImpl(int64_t num_embeddings, int64_t embedding_dim, EmbeddingBagOptions options = {});
  Tensor forward(const Tensor& input) override { return forward(input, {}, {}); }
  Tensor forward(const Tensor& input, const Tensor& offsets, const Tensor& per_sample_weights = {});
  void reset_parameters();
  const EmbeddingBagOptions options;
  const std::optional<int64_t> padding_idx;
  Tensor weight;
};
STRATA_MODULE(EmbeddingBag);

}  // namespace strata::nn
