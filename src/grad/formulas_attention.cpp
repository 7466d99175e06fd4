#include "grad/formulas_attention.h"

#include <cmath>
#include <limits>

#include "dispatch/tls.h"
#include "grad/formulas.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/attention.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::formulas {

std::tuple<Tensor, Tensor, Tensor> attention_grad(const Grads& grads, const Tensor& query, const Tensor& key,
                                                  const Tensor& value, const Tensor& output, const Tensor& logsumexp,
                                                  double dropout_p, bool causal, const Tensor& mask,
                                                  std::optional<double> scale, const BoolVec& wanted) {
  const Tensor& grad = grads[0];
  if (!grad.defined()) return {};
  if (!grad_enabled())
    return ops::_scaled_dot_product_flash_attention_for_cpu_backward(grad, query, key, value, output, logsumexp,
                                                                     dropout_p, causal, mask, scale);
  // With all weights in memory, so that derivatives of this exist.
  const int64_t batch = query.sizes()[0], heads = query.sizes()[1], kv = key.sizes()[1];
  const int64_t shared = kv == 0 ? 1 : heads / kv;
  auto repeat = [&](const Tensor& t) { return shared == 1 ? t : ops::repeat_interleave(t, shared, int64_t(1)); };
  auto add_shared = [&](const Tensor& t) {
    if (shared == 1) return t;
    DimVec sizes{batch, kv, shared, t.sizes()[2], t.sizes()[3]}, dims{2};
    return ops::sum(ops::reshape(t, sizes), OptIntArrayRef(dims));
  };
  auto turned = [](const Tensor& t) { return ops::transpose(t, -2, -1); };
  const int64_t width = query.sizes()[3];
  const Scalar by(scale.value_or(width == 0 ? 0.0 : 1.0 / std::sqrt(double(width))));
  Tensor k = repeat(key), v = repeat(value);
  Tensor scores = ops::matmul(query, turned(k)) * by;
  const Scalar none(-std::numeric_limits<double>::infinity());
  if (mask.defined())
    scores = mask.dtype() == DType::Bool ? ops::masked_fill(scores, ops::logical_not(mask), none) : scores + mask;
  if (causal) {
    DimVec last{scores.sizes()[2], scores.sizes()[3]};
    scores = ops::masked_fill(scores, ops::logical_not(ops::tril(ops::ones(last, DType::Bool, query.device()))), none);
  }
  Tensor weights = ops::_safe_softmax(scores, -1);
  Tensor by_weight = ops::matmul(grad, turned(v));
  DimVec last_dim{-1};
  Tensor by_score = weights * (by_weight - ops::sum(by_weight * weights, OptIntArrayRef(last_dim), true)) * by;
  return {wanted[0] ? ops::matmul(by_score, k) : Tensor(),
          wanted[1] ? add_shared(ops::matmul(turned(by_score), query)) : Tensor(),
          wanted[2] ? add_shared(ops::matmul(turned(weights), grad)) : Tensor()};
}

}  // namespace strata::formulas
