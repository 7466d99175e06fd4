// Dispatch keys in the order of contract 16: the highest set bit is the outermost layer and is served first. A key that
// no tensor and no mode carries costs nothing.
#pragma once
#include <cstdint>

namespace strata {

enum class Key : uint8_t {
  Backend,        // the kernel of the tensor's device (one slot per device type)
  Meta,           // shape-only execution on the real device
  Tracer,         // graph capture
  Functionalize,  // slot for graph capture
  InplaceOrView,  // version counters and view bookkeeping
  Autograd,
  Autocast,
  Vmap,  // slot
  User0,
  User1,
  User2,
  User3,   // whole-key registrations of users
  Python,  // __torch_dispatch__ of subclasses and modes
  Count,
};

constexpr int kKeyCount = static_cast<int>(Key::Count);
const char* key_name(Key key);

class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr explicit KeySet(uint32_t bits) : bits_(bits) {}
  constexpr KeySet(Key k) : bits_(1u << static_cast<int>(k)) {}
  constexpr bool has(Key k) const { return bits_ >> static_cast<int>(k) & 1; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr uint32_t bits() const { return bits_; }
  constexpr Key highest() const { return static_cast<Key>(31 - __builtin_clz(bits_)); }
  // The keys strictly inside of `k`.
  constexpr KeySet below(Key k) const { return KeySet(bits_ & ((1u << static_cast<int>(k)) - 1)); }
  constexpr KeySet operator|(KeySet o) const { return KeySet(bits_ | o.bits_); }
  constexpr KeySet operator&(KeySet o) const { return KeySet(bits_ & o.bits_); }
  constexpr KeySet operator-(KeySet o) const { return KeySet(bits_ & ~o.bits_); }
  constexpr bool operator==(const KeySet&) const = default;

 private:
  uint32_t bits_ = 0;
};

constexpr KeySet operator|(Key a, Key b) { return KeySet(a) | KeySet(b); }

}  // namespace strata
