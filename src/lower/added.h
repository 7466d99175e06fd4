// Descriptions of kernels that programs add while they run, beside the table's (lower/desc.h).
#pragma once
#include <string_view>

#include "base/array_ref.h"
#include "lower/desc.h"

namespace strata::lower {

// It lives for ever, and so do its texts. Its name is nobody else's.
void add_description(const KernelDesc& desc);
ArrayRef<const KernelDesc*> added_descriptions(std::string_view name);  // one or none

}  // namespace strata::lower
