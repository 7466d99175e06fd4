// History of views and of writes through them. A view remembers its base; when the base's storage has been written by a
// recorded operator, the view's node is made anew from the base (as_strided of it), and a recorded write through a view
// gives the base a CopySlices node.
#pragma once
#include "core/tensor.h"

namespace strata {

// Brings the node of a view up to date with writes to its base.
void refresh_view(const Tensor& view);

}  // namespace strata
