#include "lower/fuzz/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace strata::lower::fuzz {
namespace {

constexpr int64_t kPage = 4096;

bool is_nan(DType t, const char* p) {
  auto bits = [&](auto x) {
    std::memcpy(&x, p, sizeof x);
    return x;
  };
  switch (t) {
    case DType::F16:
      return (bits(uint16_t()) & 0x7fff) > 0x7c00;
    case DType::BF16:
      return (bits(uint16_t()) & 0x7fff) > 0x7f80;
    case DType::F32:
      return std::isnan(bits(float()));
    case DType::F64:
      return std::isnan(bits(double()));
    default:
      return false;
  }
}

void put_real(DType t, char* p, double v) {
  auto put = [&](auto x) { std::memcpy(p, &x, sizeof x); };
  switch (t) {
    case DType::F16:
      return put(to_half(float(v)));
    case DType::BF16:
      return put(to_bfloat16(float(v)));
    case DType::F32:
      return put(float(v));
    default:
      return put(v);
  }
}

void put_integer(DType t, char* p, int64_t v) {
  if (t == DType::Bool) v = v != 0;
  std::memcpy(p, &v, size_t(itemsize(t)));
}

}  // namespace

Layout random_layout(Random& rng, const std::vector<int64_t>& sizes, bool read_only) {
  Layout out;
  const size_t n = sizes.size();
  std::vector<size_t> order(n);
  for (size_t k = 0; k < n; ++k) order[k] = k;
  if (chance(rng, 40)) std::shuffle(order.begin(), order.end(), rng);
  out.strides.assign(n, 0);
  int64_t step = chance(rng, 25) ? 1 + int64_t(rng() % 3) : 1, last = 0;
  for (size_t k = n; k-- > 0;) {
    const size_t d = order[k];
    if (read_only && chance(rng, 7)) continue;
    out.strides[d] = step;
    if (sizes[d] > 1) last += (sizes[d] - 1) * step;
    step *= std::max<int64_t>(sizes[d], 1);
    if (chance(rng, 10)) step += 3;
  }
  const bool empty = std::ranges::find(sizes, 0) != sizes.end();
  out.span = empty ? 0 : last + 1;
  if (chance(rng, 20) && !empty) out.start = int64_t(rng() % 5), out.span += out.start;
  return out;
}

Arenas::Arenas() {
  for (int k = 0; k < 96; ++k) {
    void* p =
        mmap(nullptr, size_t(kMostBytes + 2 * kPage), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) throw std::runtime_error("no memory for arenas");
    mprotect(static_cast<char*>(p) + kPage, size_t(kMostBytes), PROT_READ | PROT_WRITE);
    all_.push_back(static_cast<char*>(p));
  }
}

Arenas::~Arenas() {
  for (char* p : all_) munmap(p, size_t(kMostBytes + 2 * kPage));
}

Block Arenas::take(Random& rng, DType dtype, const Layout& layout) {
  Block b{dtype, layout, nullptr};
  if (used_ == all_.size() || b.bytes() > kMostBytes) throw std::runtime_error("a run takes too much memory");
  char* const first = all_[used_++] + kPage;
  b.data = chance(rng, 50) ? first : first + kMostBytes - b.bytes();
  return b;
}

void fill(Random& rng, const Block& block, bool tame, int64_t below, bool stray) {
  static const std::vector<double> special = {0.0,    -0.0,   1,        -1,   0.5,   2.5,    INFINITY, -INFINITY,
                                              NAN,    1e-40,  -1e-40,   3e38, -3e38, 65504,  65520,    1e10,
                                              1e-310, 9.3e18, -2.147e9, 1e-8, 88.8,  -103.5, 6e-8,     -1.5};
  const DType part = traits(block.dtype).component;
  const int64_t size = itemsize(part), count = block.bytes() / size;
  const bool is_signed = traits(part).kind == DKind::Signed;
  for (int64_t i = 0; i < count; ++i) {
    char* p = block.data + i * size;
    const uint64_t r = rng();
    if (below >= 0) {
      int64_t v = below ? int64_t(r % uint64_t(below)) : 0;
      if (stray && r >> 40 & 1 && (r >> 41) % 61 == 0)
        v = std::vector<int64_t>{-1, below, INT64_MIN, INT64_MAX, -below, below + 1}[(r >> 50) % 6];
      std::memcpy(p, &v, 8);
    } else if (is_float(part)) {
      const int kind = tame ? 3 : int(r % 8);
      if (kind == 0)
        put_real(part, p, special[(r >> 8) % special.size()]);
      else if (kind == 1)
        std::memcpy(p, &r, size_t(size));
      else
        put_real(part, p, (double(int64_t(r)) * 0x1p-62) * (kind == 2 ? 40 : 1));
    } else if (!tame && r % 5 == 0) {
      const uint64_t top = uint64_t(1) << (traits(part).bits - 1);
      put_integer(part, p, int64_t(r & 64 ? top : r & 128 ? top - 1 : r >> 8));
    } else {
      put_integer(part, p, int64_t((r >> 8) % 23) - (is_signed ? 11 : 0));
    }
  }
}

void fill_pattern(const Block& block) { std::memset(block.data, 0x5a, size_t(block.bytes())); }

std::string differ(const Block& a, const Block& b) {
  if (std::memcmp(a.data, b.data, size_t(a.bytes())) == 0) return "";
  const DType t = traits(a.dtype).component;
  const int64_t size = itemsize(t);
  for (int64_t i = 0; i < a.bytes() / size; ++i) {
    const char *x = a.data + i * size, *y = b.data + i * size;
    if (std::memcmp(x, y, size_t(size)) == 0 || (is_nan(t, x) && is_nan(t, y))) continue;
    auto word = [&](const char* p) {
      uint64_t v = 0;
      std::memcpy(&v, p, size_t(size));
      return v;
    };
    char text[128];
    std::snprintf(text, sizeof text, "element %ld of %ld in memory: 0x%lx, expected 0x%lx", long(i),
                  long(a.bytes() / size), static_cast<unsigned long>(word(y)), static_cast<unsigned long>(word(x)));
    return text;
  }
  return "";
}

}  // namespace strata::lower::fuzz
