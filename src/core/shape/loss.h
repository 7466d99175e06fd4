// Rules of losses over sequences. Geometries: log_probs (T, N, C), targets (N, S) or, one row after the other, (sum of
// lengths), lengths (N).
#pragma once
#include "core/shape/prepared.h"

namespace strata::shape {

// The losses (N), and the logarithms of the sums over the beginnings of alignments: (N, T, 2 S + 1), or, of rows behind
// each other, (1, T, 2 sum + N).
template <class S>
Prepared<S> ctc_loss(const Geometry<S>& log_probs, const Geometry<S>& targets, const Geometry<S>& input_lengths,
                     const Geometry<S>& target_lengths, int64_t blank);
template <class S>
Prepared<S> ctc_loss_backward(const Geometry<S>& grad, const Geometry<S>& log_probs, const Geometry<S>& targets,
                              const Geometry<S>& input_lengths, const Geometry<S>& target_lengths,
                              const Geometry<S>& losses, const Geometry<S>& log_alpha, int64_t blank);

}  // namespace strata::shape
