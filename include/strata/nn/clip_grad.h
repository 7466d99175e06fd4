// Limits on gradients: Python's nn.utils.clip_grad_norm_ and clip_grad_value_.
#pragma once
#include "strata/nn/module.h"

namespace strata::nn::utils {

// Scales all gradients together so that their norm is at most max_norm; gives the norm before. Raises Runtime where
// error_if_nonfinite and it is infinite or NaN.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2,
                       bool error_if_nonfinite = false);
// Limits every element of every gradient to [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

}  // namespace strata::nn::utils
