// Generator: a Philox4x32-10 stream (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Element i
// of a draw takes word i mod 4 of counter offset + i / 4; a draw consumes a number of counters that depends on its
// element count alone.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/device.h"

namespace strata {

struct PhiloxState {
  uint64_t seed = 0;
  uint64_t offset = 0;  // in counters of four words
};

class Generator {
 public:
  Generator() = default;  // undefined: the default generator
  static Generator make(Device device = {}, uint64_t seed = kDefaultSeed);
  static constexpr uint64_t kDefaultSeed = 67280421310721;

  bool defined() const { return bool(impl_); }
  Device device() const { return impl_->device; }
  void manual_seed(uint64_t seed);
  uint64_t initial_seed() const;
  PhiloxState state() const;
  void set_state(PhiloxState state);
  bool replace_state(PhiloxState expected, PhiloxState state);  // false: it is another one
  // Hands out the counters for `words` 32-bit words and moves on.
  PhiloxState reserve(int64_t words);
  bool operator==(const Generator& o) const { return impl_ == o.impl_; }
  void* identity() const { return impl_.get(); }

 private:
  struct Impl {
    std::mutex lock;
    Device device;
    PhiloxState state;
  };
  std::shared_ptr<Impl> impl_;
};

Generator& default_generator(Device device = {});

// The four words of counter `counter` under `seed`.
void philox(uint64_t seed, uint64_t counter, uint32_t out[4]);
// Words [first, first + count) of the stream that begins at counter `state.offset`.
void philox_words(PhiloxState state, int64_t first, int64_t count, uint32_t* out);

}  // namespace strata
