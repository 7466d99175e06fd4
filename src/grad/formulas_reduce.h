// Derivative helpers of reductions.
#pragma once
#include "core/tensor.h"
#include "grad/node.h"

namespace strata::formulas {

Tensor prod_back(const Tensor& grad, const Tensor& self, const Tensor& result);
Tensor prod_dim_back(const Tensor& grad, const Tensor& self, const Tensor& result, int64_t dim, bool keepdim);
// The gradient shared evenly among the elements that equal the extremum.
Tensor extremum_back(const Tensor& grad, const Tensor& self, const Tensor& result, IntArrayRef dim, bool keepdim);
Tensor aminmax_back(const Grads& grads, const Tensor& self, const Tensor& min, const Tensor& max,
                    std::optional<int64_t> dim, bool keepdim);
Tensor logsumexp_back(const Tensor& grad, const Tensor& self, const Tensor& result, IntArrayRef dim, bool keepdim);

Tensor var_back(const Tensor& grad, const Tensor& self, OptIntArrayRef dim, const std::optional<Scalar>& correction,
                bool keepdim);
Tensor std_back(const Tensor& grad, const Tensor& self, const Tensor& result, OptIntArrayRef dim,
                const std::optional<Scalar>& correction, bool keepdim);
Tensor var_mean_back(const Grads& grads, const Tensor& self, OptIntArrayRef dim,
                     const std::optional<Scalar>& correction, bool keepdim);
Tensor std_mean_back(const Grads& grads, const Tensor& self, const Tensor& std, OptIntArrayRef dim,
                     const std::optional<Scalar>& correction, bool keepdim);

}  // namespace strata::formulas
