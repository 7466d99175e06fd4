// 128 bits of a text: names of cached files and the check of what they hold. Quick rather than cryptic: who may write
// to the cache may run code as the user anyway, and equal hashes are confirmed by comparing the texts.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace strata::jit {

struct Hash {
  uint64_t a = 0, b = 0;
  bool operator==(const Hash&) const = default;
};

Hash hash(std::string_view bytes, Hash seed = {});
std::string hex(const Hash& h);  // 32 digits

}  // namespace strata::jit
