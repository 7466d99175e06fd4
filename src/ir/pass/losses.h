// Derivatives of losses that are one operator where they follow each other: nll_loss_backward, whose result only
// _log_softmax_backward_data of the same classes reads, as cross_entropy's backward has them. That result is zeros but
// for each target's class; it is not made then.
#pragma once
#include "ir/graph.h"

namespace strata::ir {

std::string join_losses(Graph& graph);

}  // namespace strata::ir
