// The derivative of attention: blocked where no graph is wanted of it, composed of operators where one is.
#pragma once
#include "grad/node.h"

namespace strata::formulas {

std::tuple<Tensor, Tensor, Tensor> attention_grad(const Grads& grads, const Tensor& query, const Tensor& key,
                                                  const Tensor& value, const Tensor& output, const Tensor& logsumexp,
                                                  double dropout_p, bool causal, const Tensor& mask,
                                                  std::optional<double> scale, const BoolVec& wanted);

}  // namespace strata::formulas
