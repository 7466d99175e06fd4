#include "core/generator.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/pool.h"
#include "core/generator_scope.h"
#include "core/stream.h"

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

bool Generator::replace_state(PhiloxState expected, PhiloxState state) {
  std::lock_guard<std::mutex> hold(impl_->lock);
  const bool is = impl_->state.seed == expected.seed && impl_->state.offset == expected.offset;
  if (is) impl_->state = state;
  return is;
}

struct Drawn {
  uint32_t draws, counters;  // counters: from default generators; both are compared, and may begin again
};
static thread_local Drawn drawn STRATA_HOT_TLS = {};
uint32_t draws() { return drawn.draws; }

DrawMark draw_mark() { return {default_generator().state(), drawn.counters}; }

bool rewind_draws(const DrawMark& mark) {
  return default_generator().replace_state({mark.state.seed, mark.state.offset + (drawn.counters - mark.counters)},
                                           mark.state);
}

static thread_local DrawTape* tape STRATA_HOT_TLS = nullptr;
DrawTape::DrawTape() : outer_(std::exchange(tape, this)) {}
DrawTape::~DrawTape() { tape = outer_; }

void DrawTape::note(PhiloxState begin, uint64_t counters) {
  for (DrawTape* t = tape; t; t = t->outer_) {
    if (!t->drawn_.any) t->drawn_.begin = t->end_ = begin;
    t->drawn_.any = true;
    t->drawn_.torn |= begin.seed != t->end_.seed || begin.offset != t->end_.offset;
    t->end_ = {begin.seed, begin.offset + counters};
  }
}

PhiloxState Generator::reserve(int64_t words) {
  const uint64_t counters = (static_cast<uint64_t>(words) + 3) / 4;
  ++drawn.draws;
  if (*this == default_generator()) drawn.counters += uint32_t(counters);
  std::lock_guard<std::mutex> hold(impl_->lock);
  PhiloxState s = impl_->state;
  impl_->state.offset += counters;
  if (STRATA_UNLIKELY(tape != nullptr)) DrawTape::note(s, counters);
  return s;
}

namespace {
thread_local Generator* instead STRATA_HOT_TLS = nullptr;
}

GeneratorScope::GeneratorScope(Generator& g) : before_(std::exchange(instead, &g)) {}
GeneratorScope::~GeneratorScope() { instead = before_; }

Generator& default_generator(Device device) {
  static Generator* cpu = new Generator(Generator::make());
  if (STRATA_LIKELY(device.is_cpu())) return STRATA_UNLIKELY(instead != nullptr) ? *instead : *cpu;
  STRATA_CHECK(!device.is_meta(), "generator: no default generator for ", device);
  // A device's begins with the CPU's seed: a program draws the same there.
  static std::mutex* lock = new std::mutex;
  static auto* others = new std::map<std::pair<int, int>, Generator>;
  device = numbered(device);
  std::lock_guard<std::mutex> hold(*lock);
  auto [at, fresh] = others->try_emplace({device.type, device.index});
  if (fresh) at->second = Generator::make(device, cpu->initial_seed());
  return at->second;
}

// Printed from src/lower/math/philox.expr (lower/print/print_host.cpp): the words of one counter, and of `count` from
// there on.
extern "C" {
void strata_philox(uint64_t seed, uint64_t counter, uint32_t* out);
void strata_philox_run(uint64_t seed, uint64_t counter, int64_t count, uint32_t* out);
void strata_philox_run_v3(uint64_t seed, uint64_t counter, int64_t count, uint32_t* out);
}

void philox(uint64_t seed, uint64_t counter, uint32_t out[4]) { strata_philox(seed, counter, out); }

void philox_words(PhiloxState state, int64_t first, int64_t count, uint32_t* out) {
  uint64_t counter = state.offset + static_cast<uint64_t>(first) / 4;
  int skip = static_cast<int>(first % 4);
  while (count > 0) {
    if (skip == 0 && count >= 4) {
      static const bool wide = __builtin_cpu_supports("avx2");
      const int64_t whole = count / 4;
      (wide ? strata_philox_run_v3 : strata_philox_run)(state.seed, counter, whole, out);
      counter += static_cast<uint64_t>(whole);
      out += whole * 4;
      count -= whole * 4;
      continue;
    }
    uint32_t w[4];
    philox(state.seed, counter++, w);
    for (int i = skip; i < 4 && count > 0; ++i, --count) *out++ = w[i];
    skip = 0;
  }
}

}  // namespace strata
