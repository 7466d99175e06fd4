// Scans whose combine is a printed kernel.
#pragma once
#include "core/tensor.h"

namespace strata::eager {

constexpr int64_t kScanBlock = 1024;  // elements that are scanned from left to right before totals are combined

// out = the scan of `in` by logaddexp along dim; both contiguous, of one floating or complex dtype that has kernels.
void scan_logaddexp(const Tensor& in, const Tensor& out, int64_t dim);

}  // namespace strata::eager
