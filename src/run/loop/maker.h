// An operand of a loop that lies nowhere: its elements are made where those of another would be gathered. In the place
// of addresses it has those that its elements would have if they lay in row-major order from `made_base()` on; strides
// are bytes, as of any operand. Nothing is ever read there.
#pragma once
#include "core/generator.h"

namespace strata::eager {

class Maker {
 public:
  virtual ~Maker() = default;
  // Elements first, first + 1, ... of the row-major order, side by side. Several threads may ask at once.
  virtual void make(int64_t first, int64_t count, char* to) const = 0;
};

char* made_base();
// `count` elements of `width` bytes at `at`, `stride` apart, into `to`, `to_stride` apart.
void make_elements(const Maker& maker, const char* at, int64_t stride, int64_t width, char* to, int64_t to_stride,
                   int64_t count);

// Words of a random stream, or pairs of words.
class WordMaker final : public Maker {
 public:
  WordMaker(PhiloxState state, int64_t each) : state_(state), each_(each) {}
  void make(int64_t first, int64_t count, char* to) const override {
    philox_words(state_, first * each_, count * each_, reinterpret_cast<uint32_t*>(to));
  }

 private:
  PhiloxState state_;
  int64_t each_;
};

}  // namespace strata::eager
