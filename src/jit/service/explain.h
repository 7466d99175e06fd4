// Why a kernel was not in the cache: what its key has in common with those that are there.
#pragma once
#include <string>

#include "jit/service/disk_cache.h"

namespace strata::jit {

// "the same text is there, but for another instruction set (v3, wanted v4)", or how its text differs from the nearest.
std::string explain_miss(const DiskCache& disk, std::string_view maker, std::string_view text);

}  // namespace strata::jit
