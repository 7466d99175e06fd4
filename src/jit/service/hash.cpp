#include "jit/service/hash.h"

#include <cstring>

namespace strata::jit {

namespace {

constexpr uint64_t kOdd[] = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93};

// Both halves of a product of 128 bits.
uint64_t fold(uint64_t x, uint64_t y) {
  const auto product = static_cast<unsigned __int128>(x) * y;
  return uint64_t(product) ^ uint64_t(product >> 64);
}

}  // namespace

Hash hash(std::string_view bytes, Hash seed) {
  uint64_t a = seed.a ^ kOdd[0], b = seed.b ^ kOdd[1];
  const char* p = bytes.data();
  size_t left = bytes.size();
  auto step = [&](const uint64_t* w) {
    a = fold(w[0] ^ a, w[1] ^ kOdd[2]);
    b = fold(w[1] ^ b, w[0] ^ kOdd[3]);
  };
  uint64_t words[2];
  for (; left >= sizeof words; p += sizeof words, left -= sizeof words) {
    std::memcpy(words, p, sizeof words);
    step(words);
  }
  words[0] = words[1] = 0;
  if (left) std::memcpy(words, p, left);
  step(words);
  words[0] = bytes.size(), words[1] = a;
  step(words);
  words[0] = b, words[1] = a;
  step(words);
  return {a, b};
}

std::string hex(const Hash& h) {
  std::string out;
  for (uint64_t word : {h.a, h.b})
    for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[word >> shift & 15];
  return out;
}

}  // namespace strata::jit
