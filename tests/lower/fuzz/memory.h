// Memory of a run: each tensor lies in an arena of its own between pages that nobody may touch, flush with one of them,
// in a random layout: permuted dims, steps, and, where it is only read, dims of stride 0.
#pragma once
#include "lower/fuzz/program.h"

namespace strata::lower::fuzz {

constexpr int64_t kMostBytes = int64_t(1) << 24;  // of a tensor

struct Layout {
  std::vector<int64_t> strides;  // elements
  int64_t span = 0;              // elements from the first to the last one
  int64_t start = 0;             // element 0, from the beginning of the memory
};

struct Block {
  DType dtype = DType::F32;
  Layout layout;
  char* data = nullptr;  // of the whole span
  int64_t bytes() const { return layout.span * itemsize(dtype); }
};

Layout random_layout(Random& rng, const std::vector<int64_t>& sizes, bool read_only);

class Arenas {
 public:
  Arenas();
  ~Arenas();
  Arenas(const Arenas&) = delete;
  void clear() { used_ = 0; }
  Block take(Random& rng, DType dtype, const Layout& layout);  // until clear()

 private:
  std::vector<char*> all_;
  size_t used_ = 0;
};

// Random values; tame ones are finite and near 1, so that each rounding shows. `below`: places of a dim of that size, a
// few of them (where `stray`) outside.
void fill(Random& rng, const Block& block, bool tame, int64_t below, bool stray);
void fill_pattern(const Block& block);  // what a result's memory holds before

// Equal bits, any NaN being any NaN, over the whole span; else a message.
std::string differ(const Block& a, const Block& b);

}  // namespace strata::lower::fuzz
