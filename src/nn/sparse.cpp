// Look-ups in tables.
#include "strata/nn/sparse.h"

#include "strata/nn/init.h"

namespace strata::nn {

namespace {
// Counted from the front, checked.
std::optional<int64_t> row_of(std::optional<int64_t> padding_idx, int64_t num_embeddings) {
  if (!padding_idx) return padding_idx;
  STRATA_CHECK_VALUE(*padding_idx >= -num_embeddings && *padding_idx < num_embeddings,
                     "Padding_idx must be within num_embeddings, got ", *padding_idx);
  return *padding_idx < 0 ? *padding_idx + num_embeddings : *padding_idx;
}

void reset_table(const Tensor& weight, std::optional<int64_t> padding_idx) {
  init::normal_(weight);
  const NoGradGuard off;
  if (padding_idx) ops::fill_(ops::select(weight, 0, *padding_idx), 0.0);
}

// Scales the rows that are used and whose norm exceeds max_norm down to it.
void limit_rows(const Tensor& weight, const Tensor& index, double max_norm, double norm_type) {
  const NoGradGuard off;
  const Tensor table = ops::detach(weight), flat = ops::reshape(index, {-1});
  const Tensor rows = ops::index_select(table, 0, flat);
  const Tensor norms = ops::linalg_vector_norm(rows, norm_type, IntArrayRef(1), true);
  const Tensor scale = ops::where(norms > max_norm, max_norm / (norms + 1e-7), ops::ones_like(norms));
  ops::index_copy_(table, 0, flat, rows * scale);
}

Tensor look_up(const Tensor& index, const Tensor& weight, std::optional<int64_t> padding_idx,
               std::optional<double> max_norm, double norm_type, bool scale_grad_by_freq) {
  if (max_norm) limit_rows(weight, index, *max_norm, norm_type);
  return ops::embedding(weight, index, padding_idx.value_or(-1), scale_grad_by_freq);
}
}  // namespace

EmbeddingImpl::EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim, EmbeddingOptions given)
    : options(given), padding_idx(row_of(given.padding_idx, num_embeddings)) {
  const Tensor table = options.weight;
  STRATA_CHECK_VALUE(!table.defined() || table.sizes() == IntArrayRef({num_embeddings, embedding_dim}),
                     "Embedding: expected a weight of ", num_embeddings, " rows of ", embedding_dim);
  weight = register_parameter(
      "weight", table.defined() ? ops::detach(table) : ops::empty({num_embeddings, embedding_dim}, options.dtype),
      !options.freeze);
  if (!table.defined()) reset_parameters();
}

void EmbeddingImpl::reset_parameters() { reset_table(weight, padding_idx); }

Tensor EmbeddingImpl::forward(const Tensor& input) {
  return look_up(input, weight, padding_idx, options.max_norm, options.norm_type, options.scale_grad_by_freq);
}

EmbeddingBagImpl::EmbeddingBagImpl(int64_t num_embeddings, int64_t embedding_dim, EmbeddingBagOptions given)
    : options(given), padding_idx(row_of(given.padding_idx, num_embeddings)) {
  const std::string& mode = options.mode;
  STRATA_CHECK_VALUE(mode == "sum" || mode == "mean" || mode == "max", "mode has to be one of sum, mean or max");
  STRATA_CHECK_VALUE(mode != "max" || !options.scale_grad_by_freq,
                     "max mode does not support scaling the gradient by the frequency");
  weight = register_parameter("weight", ops::empty({num_embeddings, embedding_dim}, options.dtype));
  reset_parameters();
}

void EmbeddingBagImpl::reset_parameters() { reset_table(weight, padding_idx); }

Tensor EmbeddingBagImpl::forward(const Tensor& given, const Tensor& offsets, const Tensor& given_factors) {
  const std::string& mode = options.mode;
  Tensor input = given, factors = given_factors, bag;
  STRATA_CHECK_VALUE(!factors.defined() || (mode == "sum" && factors.sizes() == input.sizes()),
                     "embedding_bag: per_sample_weights needs mode 'sum' and the input's shape");
  STRATA_CHECK_VALUE(
      input.dim() == 2 ? !offsets.defined() : input.dim() == 1 && offsets.defined() && offsets.dim() == 1,
      "embedding_bag: expected an input of 2 dims without offsets, or of 1 dim with offsets of 1 dim");
  if (offsets.defined() && offsets.numel()) {
    const int64_t first = item<int64_t>(ops::select(offsets, 0, 0)), last = item<int64_t>(ops::select(offsets, 0, -1));
    STRATA_CHECK(first == 0 && last <= input.numel(), "embedding_bag: expected offsets from 0 to at most ",
                 input.numel(), ", got ", first, " to ", last);
    if (options.include_last_offset) {  // where the last bag ends
      input = ops::narrow(input, 0, 0, last);
      if (factors.defined()) factors = ops::narrow(factors, 0, 0, last);
    }
  }
  int64_t bags = input.size(0);
  if (input.dim() == 2) {
    bag = ops::repeat_interleave(ops::arange(Scalar(bags)), input.size(1));
  } else {
    bags = offsets.numel() - int64_t(options.include_last_offset);
    const Tensor marks = ops::zeros({input.numel() + 1}, DType::I64);
    const Tensor starts = ops::to(ops::narrow(offsets, 0, 0, bags), DType::I64);
    const Tensor sums = ops::cumsum(ops::index_add(marks, 0, starts, ops::ones({bags}, DType::I64)), 0);
    bag = ops::narrow(sums, 0, 0, input.numel()) - 1;
  }
  const Tensor index = ops::to(ops::reshape(input, {-1}), DType::I64);
  Tensor rows = look_up(index, weight, padding_idx, options.max_norm, options.norm_type, options.scale_grad_by_freq);
  if (factors.defined()) factors = ops::reshape(factors, {-1, 1});
  if (padding_idx) {
    const Tensor kept = ops::select(ops::nonzero(ops::ne(index, Scalar(*padding_idx))), 1, 0);
    rows = ops::index_select(rows, 0, kept);
    bag = ops::index_select(bag, 0, kept);
    if (factors.defined()) factors = ops::index_select(factors, 0, kept);
  }
  const int64_t width = rows.size(1);
  if (mode == "max")
    return ops::scatter_reduce(ops::zeros({bags, width}, rows.dtype(), rows.device()), 0,
                               ops::expand_as(ops::unsqueeze(bag, 1), rows), rows, "amax", false);
  const bool narrow = rows.dtype() == DType::F16 || rows.dtype() == DType::BF16;
  Tensor wide = narrow ? ops::to(rows, DType::F32) : rows;
  if (factors.defined()) wide = wide * factors;
  Tensor total = ops::index_add(ops::zeros({bags, width}, wide.dtype(), wide.device()), 0, bag, wide);
  if (mode == "mean") {
    const Tensor counts = ops::index_add(ops::zeros({bags}, DType::I64), 0, bag, ops::ones_like(bag));
    total = total / ops::to(ops::unsqueeze(ops::clamp_min(counts, Scalar(1)), 1), total.dtype());
  }
  return narrow ? ops::to(total, rows.dtype()) : total;
}

}  // namespace strata::nn
