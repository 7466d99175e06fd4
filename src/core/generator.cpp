#include "core/generator.h"

#include "base/error.h"

namespace strata {

Generator Generator::make(Device device, uint64_t seed) {
  Generator g;
  g.impl_ = std::make_shared<Impl>();
  g.impl_->device = device;
  g.impl_->state.seed = seed;
  return g;
}

void Generator::manual_seed(uint64_t seed) { set_state({seed, 0}); }
uint64_t Generator::initial_seed() const { return state().seed; }

PhiloxState Generator::state() const {
  std::lock_guard<std::mutex> hold(impl_->lock);
  return impl_->state;
}

void Generator::set_state(PhiloxState state) {
  std::lock_guard<std::mutex> hold(impl_->lock);
  impl_->state = state;
}

PhiloxState Generator::reserve(int64_t words) {
  std::lock_guard<std::mutex> hold(impl_->lock);
  PhiloxState s = impl_->state;
  impl_->state.offset += (static_cast<uint64_t>(words) + 3) / 4;
  return s;
}

Generator& default_generator(Device device) {
  static Generator* cpu = new Generator(Generator::make());
  STRATA_CHECK(device.is_cpu(), "generator: no default generator for ", device);
  return *cpu;
}

void philox(uint64_t seed, uint64_t counter, uint32_t out[4]) {
  uint32_t c0 = uint32_t(counter), c1 = uint32_t(counter >> 32), c2 = 0, c3 = 0;
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
    uint32_t n0 = uint32_t(p1 >> 32) ^ c1 ^ k0, n2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c1 = uint32_t(p1);
    c3 = uint32_t(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

namespace {

constexpr int kLanes = 16;

// philox() of kLanes counters at once.
__attribute__((always_inline)) inline void philox_lanes(uint64_t seed, uint64_t counter, uint32_t* out) {
  typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
  typedef uint64_t Products __attribute__((vector_size(8 * kLanes)));
  Words c0, c1, c2 = {}, c3 = {};
  for (int l = 0; l < kLanes; ++l) {
    c0[l] = uint32_t(counter + l);
    c1[l] = uint32_t((counter + l) >> 32);
  }
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    Products p0 = __builtin_convertvector(c0, Products) * uint64_t(0xD2511F53u);
    Products p1 = __builtin_convertvector(c2, Products) * uint64_t(0xCD9E8D57u);
    c0 = __builtin_convertvector(p1 >> 32, Words) ^ c1 ^ k0;
    c2 = __builtin_convertvector(p0 >> 32, Words) ^ c3 ^ k1;
    c1 = __builtin_convertvector(p1, Words);
    c3 = __builtin_convertvector(p0, Words);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int l = 0; l < kLanes; ++l) {
    out[4 * l] = c0[l];
    out[4 * l + 1] = c1[l];
    out[4 * l + 2] = c2[l];
    out[4 * l + 3] = c3[l];
  }
}

void philox_blocks(uint64_t seed, uint64_t counter, int64_t blocks, uint32_t* out) {
  for (int64_t i = 0; i < blocks; ++i) philox_lanes(seed, counter + i * kLanes, out + i * 4 * kLanes);
}

__attribute__((target("avx2"))) void philox_blocks_wide(uint64_t seed, uint64_t counter, int64_t blocks,
                                                        uint32_t* out) {
  for (int64_t i = 0; i < blocks; ++i) philox_lanes(seed, counter + i * kLanes, out + i * 4 * kLanes);
}

}  // namespace

void philox_words(PhiloxState state, int64_t first, int64_t count, uint32_t* out) {
  uint64_t counter = state.offset + static_cast<uint64_t>(first) / 4;
  int skip = static_cast<int>(first % 4);
  while (count > 0) {
    if (skip == 0 && count >= 4 * kLanes) {
      static const bool wide = __builtin_cpu_supports("avx2");
      int64_t blocks = count / (4 * kLanes);
      (wide ? philox_blocks_wide : philox_blocks)(state.seed, counter, blocks, out);
      counter += static_cast<uint64_t>(blocks) * kLanes;
      out += blocks * 4 * kLanes;
      count -= blocks * 4 * kLanes;
      continue;
    }
    uint32_t w[4];
    philox(state.seed, counter++, w);
    for (int i = skip; i < 4 && count > 0; ++i, --count) *out++ = w[i];
    skip = 0;
  }
}

}  // namespace strata
