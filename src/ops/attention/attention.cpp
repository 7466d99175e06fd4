// scaled_dot_product_attention: what it accepts, and the choice between the blocked kernels (no dropout, no gradient of
// the mask) and the composition of operators.
#include <cmath>
#include <initializer_list>
#include <limits>

#include "core/promote.h"
#include "ops/attention/blocks.h"
#include "run/pointwise.h"
#include "run/prepare.h"
#include "run/rows.h"
#include "run/visit.h"
#include "strata/generated/by_hand/attention.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/attention.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/dropout.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/norm.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

int64_t from_end(const Tensor& t, int64_t d) { return t.sizes()[t.dim() - d]; }

void check_operands(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
  shape::check_attention(geometry(query), geometry(key), geometry(value), geometry(mask));
}

void check_heads(const Tensor& query, const Tensor& key, const Tensor& value) {
  STRATA_CHECK_INDEX(query.dim() >= 3 && key.dim() >= 3 && value.dim() >= 3,
                     "scaled_dot_product_attention: enable_gqa needs a dim of heads, (..., heads, L, E), got ",
                     query.sizes(), ", ", key.sizes(), " and ", value.sizes());
  int64_t h = from_end(query, 3), k = from_end(key, 3), v = from_end(value, 3);
  STRATA_CHECK(k > 0 && v > 0 && h % k == 0 && h % v == 0,
               "Number of heads in key and value must divide the number of heads in query; got ", h, " of query, ", k,
               " of key and ", v, " of value");
}

// Products over no width are 0, whatever the scale.
double scale_or_default(const Tensor& query, std::optional<double> scale) {
  int64_t width = from_end(query, 1);
  return scale.value_or(width == 0 ? 0.0 : 1.0 / std::sqrt(double(width)));
}

DimVec lead_dims(const Tensor& t, int64_t kept) { return DimVec(t.sizes().slice(0, t.dim() - kept)); }

// `t` with leading dims `lead` before its last `kept` ones, as four dims.
Tensor four_dims(const Tensor& t, const DimVec& lead, int64_t kept) {
  DimVec sizes(lead);
  for (int64_t d = kept; d > 0; --d) sizes.push_back(from_end(t, d));
  Tensor r = t.sizes() == IntArrayRef(sizes) ? t : ops::expand(t, sizes);
  if (r.dim() == 4) return r;
  DimVec four(4, 1);
  for (int64_t d = 0; d < 3; ++d)
    if (d < r.dim()) four[3 - d] = from_end(r, d + 1);
  for (int64_t d = 4; d <= r.dim(); ++d) four[0] *= from_end(r, d);
  return ops::reshape(r, four);
}

Tensor repeat_heads(const Tensor& t, int64_t heads) {
  return from_end(t, 3) == heads ? t : ops::repeat_interleave(t, heads / from_end(t, 3), t.dim() - 3);
}

AttentionCall call_of(const Tensor& query, const Tensor& key, const Tensor& value, bool causal, const Tensor& mask,
                      std::optional<double> scale) {
  AttentionCall call{query, key, value, mask, causal, scale_or_default(query, scale)};
  if (mask.defined()) {
    DimVec full{query.sizes()[0], query.sizes()[1], query.sizes()[2], key.sizes()[2]};
    call.mask = ops::expand(mask, full);
  }
  return call;
}

// What the math of a causal or given mask adds to scores (..., L, S).
Tensor masked_scores(const Tensor& scores, const Tensor& mask, bool causal) {
  Tensor r = scores;
  if (causal) {
    DimVec last{from_end(scores, 2), from_end(scores, 1)};
    Tensor seen = ops::tril(ops::ones(last, DType::Bool, scores.device()));
    r = ops::masked_fill(r, ops::logical_not(seen), Scalar(kMinusInfinity));
  }
  if (!mask.defined()) return r;
  DimVec sizes = broadcast_shapes(scores.sizes(), mask.sizes());
  STRATA_CHECK(IntArrayRef(sizes) == scores.sizes(), "output with shape ", scores.sizes(),
               " doesn't match the broadcast shape ", IntArrayRef(sizes), " of attn_mask");
  if (mask.dtype() == DType::Bool) return ops::masked_fill(r, ops::logical_not(mask), Scalar(kMinusInfinity));
  return ops::add(r, mask);
}

}  // namespace

Tensor safe_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  Tensor x = dtype ? ops::to(self, *dtype) : self;
  if (x.numel() == 0) return ops::softmax(x, dim);
  Tensor none = ops::all(ops::eq(x, Scalar(kMinusInfinity)), dim, true);
  return ops::masked_fill(ops::softmax(ops::masked_fill(x, none, Scalar(0)), dim), none, Scalar(0));
}

std::tuple<Tensor, Tensor> attention_by_parts(const Tensor& query, const Tensor& key, const Tensor& value,
                                              const Tensor& mask, double dropout_p, bool causal,
                                              const Tensor& dropout_mask, std::optional<double> scale,
                                              bool enable_gqa) {
  check_operands(query, key, value, mask);
  STRATA_CHECK(!causal || !mask.defined(),
               "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  Tensor k = key, v = value;
  if (enable_gqa) {
    check_heads(query, key, value);
    k = repeat_heads(key, from_end(query, 3));
    v = repeat_heads(value, from_end(query, 3));
  }
  // Halves are computed in float32 and rounded once, as the blocks do.
  DType wide = wide_dtype(query.dtype());
  auto widen = [&](const Tensor& t) { return t.dtype() == wide ? t : ops::to(t, wide); };
  Tensor scores =
      ops::mul(ops::matmul(widen(query), ops::transpose(widen(k), -2, -1)), Scalar(scale_or_default(query, scale)));
  Tensor weights = safe_softmax(masked_scores(scores, mask, causal), -1, {});
  if (weights.dtype() != wide) weights = ops::to(weights, wide);
  if (dropout_mask.defined())
    weights = ops::masked_fill(weights, ops::logical_not(dropout_mask), Scalar(0));
  else if (dropout_p > 0)
    weights = ops::dropout(weights, dropout_p, true);
  Tensor out = ops::matmul(weights, widen(v));
  if (dropout_mask.defined()) out = ops::mul(out, Scalar(dropout_p < 1 ? 1 / (1 - dropout_p) : 0.0));
  if (wide == query.dtype()) return {out, weights};
  return {ops::to(out, query.dtype()), ops::to(weights, query.dtype())};
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                                    double dropout_p, bool causal, std::optional<double> scale, bool enable_gqa) {
  check_operands(query, key, value, mask);
  STRATA_CHECK(dropout_p >= 0 && dropout_p <= 1, "dropout probability has to be between 0 and 1, but got ", dropout_p);
  STRATA_CHECK(!(causal && mask.defined()),
               "scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  if (enable_gqa) check_heads(query, key, value);
  if (dropout_p > 0 || (mask.defined() && mask.requires_grad()))
    return std::get<0>(ops::_scaled_dot_product_attention_math(query, key, value, mask, dropout_p, causal, Tensor(),
                                                               scale, enable_gqa));
  // Heads of key and value that are shared stay as they are where the batches before them agree.
  Tensor k = key, v = value;
  bool shared = enable_gqa && from_end(key, 3) == from_end(value, 3) && from_end(key, 3) != from_end(query, 3);
  if (enable_gqa && !shared) {
    k = repeat_heads(key, from_end(query, 3));
    v = repeat_heads(value, from_end(query, 3));
  }
  const int64_t kept = shared ? 3 : 2;
  DimVec lead = broadcast_shapes(broadcast_shapes(lead_dims(query, kept), lead_dims(k, kept)), lead_dims(v, kept));
  DimVec full(lead);
  if (shared) full.push_back(from_end(query, 3));
  DimVec sizes(full);
  full.push_back(from_end(query, 2));
  sizes.push_back(from_end(query, 2));
  full.push_back(from_end(key, 2));
  sizes.push_back(from_end(value, 1));
  Tensor m = mask;
  if (mask.defined()) {
    DimVec all = broadcast_shapes(full, mask.sizes());
    STRATA_CHECK(IntArrayRef(all) == IntArrayRef(full), "output with shape ", IntArrayRef(full),
                 " doesn't match the broadcast shape ", IntArrayRef(all), " of attn_mask");
    DimVec outer(IntArrayRef(full).slice(0, full.size() - 2));
    m = mask.dim() <= 4 && full.size() == 4 ? mask : four_dims(ops::expand(mask, full), outer, 2);
  }
  Tensor out = std::get<0>(ops::_scaled_dot_product_flash_attention_for_cpu(
      four_dims(query, lead, kept), four_dims(k, lead, kept), four_dims(v, lead, kept), 0.0, causal, m, scale));
  return sizes.size() == 4 ? out : ops::reshape(out, sizes);
}

void attention(const Tensor& out, const Tensor& logsumexp, const Tensor& query, const Tensor& key, const Tensor& value,
               double, bool causal, const Tensor& mask, std::optional<double> scale) {
  if (out.numel() == 0) return fill_values(logsumexp, Scalar(0));
  attention_forward(call_of(query, key, value, causal, mask, scale), out, logsumexp);
}

void attention_backward(const Tensor& grad_query, const Tensor& grad_key, const Tensor& grad_value,
                        const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value,
                        const Tensor& out, const Tensor& logsumexp, double, bool causal, const Tensor& mask,
                        std::optional<double> scale) {
  const DType wide = wide_dtype(query.dtype());
  const Tensor* made[] = {&grad_query, &grad_key, &grad_value};
  Tensor sums[3];
  for (int k = 0; k < 3; ++k) {
    sums[k] = made[k]->dtype() == wide ? *made[k] : new_tensor(*made[k], made[k]->sizes(), wide);
    fill_values(sums[k], Scalar(0));
  }
  if (out.numel() > 0) {
    const Tensor* in[] = {&out, &grad_out};
    Tensor delta = new_tensor(out, logsumexp.sizes(), wide);
    if (is_half(query.dtype()))
      fill_values(delta, Scalar(0));
    else
      delta = as_contiguous(rows(kernels::attention_delta, {in, 2}, {}, last_dims(out, 1), false)[0]);
    attention_backward_blocks(call_of(query, key, value, causal, mask, scale), grad_out, as_contiguous(logsumexp),
                              delta, sums[0], sums[1], sums[2]);
  }
  for (int k = 0; k < 3; ++k)
    if (!sums[k].is_same(*made[k])) copy_values(*made[k], sums[k]);
}

}  // namespace strata::eager
