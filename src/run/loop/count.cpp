#include "run/loop/count.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/parallel.h"
#include "run/isa.h"

namespace strata::eager {

namespace {

constexpr int64_t kLanes = 32, kMost = 255;  // of bytes, and what one of them can count
constexpr int64_t kShare = 64 << 10;         // elements of a row that are worth a thread

[[gnu::always_inline]] inline int64_t counted(const uint8_t* p, int64_t n) {
  using Register [[gnu::vector_size(kLanes)]] = uint8_t;
  int64_t all = 0;
  while (n >= kLanes) {
    const int64_t rounds = std::min(n / kLanes, kMost);
    Register lanes{}, some;
    for (int64_t r = 0; r < rounds; ++r, p += kLanes) {
      std::memcpy(&some, p, sizeof some);
      lanes -= Register(some != 0);  // of which each lane is 0 or 255
    }
    for (int64_t l = 0; l < kLanes; ++l) all += lanes[l];
    n -= rounds * kLanes;
  }
  for (; n > 0; --n) all += *p++ != 0;
  return all;
}
int64_t count(const uint8_t* p, int64_t n) { return counted(p, n); }
[[gnu::target("avx2")]] int64_t count_wide(const uint8_t* p, int64_t n) { return counted(p, n); }

class Truths {
 public:
  explicit Truths(RowsLoop& l) : l_(l) {}

  bool fit() const {
    const RowOperand &out = l_.operands.front(), &in = l_.operands.back();
    return l_.operands.size() == 2 && in.dtype == DType::Bool && in.kernel == DType::I64 && !in.maker &&
           out.dtype == DType::I64 && l_.reduced_sizes.size() == 1 && in.reduced[0] == 1 &&
           l_.reduced_sizes[0] >= kLanes;
  }

  void run() const {
    const RowOperand &out = l_.operands.front(), &in = l_.operands.back();
    const auto of = current_isa() > 0 ? count_wide : count;
    const int64_t n = l_.reduced_sizes[0], rows = product(l_.kept_sizes);
    const int64_t shares = rows < num_threads() ? std::clamp<int64_t>(n / kShare, 1, num_threads()) : 1;
    std::vector<std::atomic<int64_t>> found(size_t(shares > 1 ? rows : 0));
    const int64_t each = (n / shares + kLanes - 1) / kLanes * kLanes;
    parallel_for(0, rows * shares, std::max<int64_t>(1, kShare / each), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / shares, first = std::min(n, i % shares * each), last = std::min(n, first + each);
        const auto* p = reinterpret_cast<const uint8_t*>(at(in, row)) + first;
        const int64_t here = of(p, last - first);
        shares > 1 ? void(found[size_t(row)] += here) : void(*reinterpret_cast<int64_t*>(at(out, row)) = here);
      }
    });
    for (size_t row = 0; row < found.size(); ++row) *reinterpret_cast<int64_t*>(at(out, int64_t(row))) = found[row];
  }

 private:
  char* at(const RowOperand& o, int64_t row) const {
    if (l_.kept_sizes.empty()) return o.base;
    const int64_t columns = l_.kept_sizes.back();
    return l_.column_at(o, row / columns, row % columns);
  }

  RowsLoop& l_;
};

}  // namespace

bool count_truths(RowsLoop& loop) { return runs_as<Truths>(loop); }

}  // namespace strata::eager
