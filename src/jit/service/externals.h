// The functions outside of their object that compiled kernels may call.
#pragma once
#include <string_view>

namespace strata::jit {

void* external(std::string_view name);  // null: not offered

}  // namespace strata::jit
