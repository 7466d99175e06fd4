#include "ops/fft/lines.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "base/checked.h"
#include "core/parallel.h"
#include "run/loop/rows_fold.h"
#include "run/loop/transpose.h"

namespace strata::eager {

namespace {

constexpr int kMost = 32;  // lines of one block
// Lines below this length are transformed kMost at a time, where there are as many.
constexpr int64_t kShort = 48;
constexpr int64_t kBlock = 32768;  // elements of a block of longer lines
constexpr size_t kKept = 1 << 22;  // bytes of a buffer that wait for the thread's next call
// Elements that a thread takes at least.
constexpr int64_t kGrain = 8192;

// Where the lines of a block begin.
struct Block {
  int count;
  int64_t from[kMost], to[kMost];
};

// Lines begin, begin + 1, ... in row-major order of the other dims.
void find(const LinesPass& p, int64_t begin, int count, Block& b) {
  DimVec at(p.sizes.size(), 0);
  int64_t rest = begin, from = 0, to = 0;
  for (size_t d = at.size(); d-- > 0;) {
    at[d] = rest % p.sizes[d];
    rest /= p.sizes[d];
    from += at[d] * p.from_strides[d];
    to += at[d] * p.to_strides[d];
  }
  b.count = count;
  for (int l = 0; l < count; ++l) {
    b.from[l] = from;
    b.to[l] = to;
    for (size_t d = at.size(); d-- > 0;) {
      from += p.from_strides[d];
      to += p.to_strides[d];
      if (++at[d] < p.sizes[d]) break;
      from -= at[d] * p.from_strides[d];
      to -= at[d] * p.to_strides[d];
      at[d] = 0;
    }
  }
}

template <class T>
void copy_apart(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t count) {
  const auto* x = reinterpret_cast<const T*>(from);
  auto* y = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) y[i * to_step] = x[i * from_step];
}
void copy_apart(int64_t width, const char* from, int64_t from_step, char* to, int64_t to_step, int64_t count) {
  (width == 4   ? copy_apart<float>
   : width == 8 ? copy_apart<double>
                : copy_apart<std::complex<double>>)(from, from_step, to, to_step, count);
}

// Whether the lines of a block lie side by side.
bool neighbours(const int64_t* at, int count) {
  for (int l = 1; l < count; ++l)
    if (at[l] != at[0] + l) return false;
  return true;
}

// `count` elements of each line, `step` apart, to rows `pitch` apart. Here and below all that counts in elements of
// `width` bytes.
void gather(int64_t width, const char* from, const Block& b, int64_t step, int64_t count, char* rows, int64_t pitch) {
  if (step != 1 && neighbours(b.from, b.count))
    return transpose(width, from + b.from[0] * width, step * width, rows, pitch * width, count, b.count);
  for (int l = 0; l < b.count; ++l) {
    const char* x = from + b.from[l] * width;
    char* y = rows + l * pitch * width;
    if (step == 1)
      std::memcpy(y, x, size_t(count * width));
    else
      copy_apart(width, x, step, y, 1, count);
  }
}

// And back.
void scatter(int64_t width, char* to, const Block& b, int64_t step, int64_t count, const char* rows, int64_t pitch) {
  if (step != 1 && neighbours(b.to, b.count))
    return transpose(width, rows, pitch * width, to + b.to[0] * width, step * width, b.count, count);
  for (int l = 0; l < b.count; ++l) {
    char* y = to + b.to[l] * width;
    const char* x = rows + l * pitch * width;
    if (step == 1)
      std::memcpy(y, x, size_t(count * width));
    else
      copy_apart(width, x, 1, y, step, count);
  }
}

template <class R>
void multiply(void* parts, int64_t count, R by) {
  if (by == R(1)) return;
  auto* x = static_cast<R*>(parts);
  for (int64_t i = 0; i < count; ++i) x[i] *= by;
}

// The elements behind the half of each line: conjugates of those before. Lines side by side go on together.
template <class R>
void mirror(void* to, const Block& b, int64_t step, int64_t n) {
  auto* values = static_cast<std::complex<R>*>(to);
  const int together = step == 1 ? 1 : b.count;
  for (int first = 0; first < b.count; first += together)
    for (int64_t k = n / 2 + 1; k < n; ++k)
      for (int l = first; l < first + together; ++l) {
        auto* line = values + b.to[l];
        line[k * step] = std::conj(line[(n - k) * step]);
      }
}

bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % STRATA_FOURIER_ALIGNMENT == 0; }

template <class R>
void run(const StrataFourier& library, const LinesPass& p, const char* op) {
  const bool half = p.kind == STRATA_FOURIER_HALF;
  const int64_t n = p.length, lines = checked_numel(p.sizes), some = n / 2 + 1;
  const int64_t read = half ? some : n, made = p.kind == STRATA_FOURIER_REAL ? some : n;
  const int64_t from_width = int64_t(sizeof(R)) * (p.kind == STRATA_FOURIER_REAL ? 1 : 2);
  const int64_t to_width = int64_t(sizeof(R)) * (half ? 1 : 2);
  // A short plan's lines lie without gaps; others begin at lines of the cache, and not all in one set of it.
  const bool together = n < kShort && lines >= kMost;
  const auto apart = [&](int64_t count, int64_t width) {
    return together ? count : (count * width + 63) / 64 * 64 / width + 64 / width;
  };
  const int64_t from_pitch = apart(read, from_width), to_pitch = apart(made, to_width);
  const int64_t most = together ? kMost : std::clamp<int64_t>(kBlock / n, 1, kMost);
  const FourierPlan plan(library, p.kind, p.precise, n, together ? kMost : 1, op);
  const R scale = R(p.scale);
  const auto* from = static_cast<const char*>(p.from);
  auto* to = static_cast<char*>(p.to);
  // What has no partner counts by its real part alone. A half is scaled before, in the copy that the library destroys.
  const auto prepare = [&](char* x) {
    auto* parts = reinterpret_cast<R*>(x);
    parts[1] = 0;
    if (n % 2 == 0) parts[2 * (n / 2) + 1] = 0;
    multiply(x, 2 * some, scale);
  };
  const int64_t parts = made * to_width / int64_t(sizeof(R));
  const int64_t grain = std::max<int64_t>(1, kGrain / (n * most));
  parallel_for(0, (lines + most - 1) / most, grain, [&](int64_t first, int64_t last) {
    const auto [in, out] = lines_buffers(most * from_pitch * from_width, most * to_pitch * to_width);
    Block b;
    for (int64_t i = first; i < last; ++i) {
      find(p, i * most, int(std::min(most, lines - i * most)), b);
      if (together) {
        gather(from_width, from, b, p.from_step, read, in, from_pitch);
        std::memset(in + b.count * read * from_width, 0, size_t((kMost - b.count) * read * from_width));
        for (int l = 0; half && l < b.count; ++l) prepare(in + l * read * from_width);
        plan.run(in, out);
        if (!half) multiply(out, b.count * parts, scale);
        scatter(to_width, to, b, p.to_step, made, out, to_pitch);
      } else {
        const bool side = p.from_step != 1;  // they are brought together, else one after the other
        if (side) gather(from_width, from, b, p.from_step, read, in, from_pitch);
        for (int l = 0; l < b.count; ++l) {
          char* x = side ? in + l * from_pitch * from_width : const_cast<char*>(from) + b.from[l] * from_width;
          if (!side && (half || p.from == p.to || !aligned(x)))
            x = static_cast<char*>(std::memcpy(in, x, size_t(read * from_width)));
          if (half) prepare(x);
          char* there = to + b.to[l] * to_width;
          char* y = p.to_step == 1 && aligned(there) ? there : out + l * to_pitch * to_width;
          plan.run(x, y);
          if (!half) multiply(y, parts, scale);
          if (p.to_step == 1 && y != there) std::memcpy(there, y, size_t(made * to_width));
        }
        if (p.to_step != 1) scatter(to_width, to, b, p.to_step, made, out, to_pitch);
      }
      if (p.mirrored) mirror<R>(to, b, p.to_step, n);
    }
    drop_large_buffers();
  });
}

template <class R>
void run_kind(const StrataFourier& library, const LinesPass& p, const char* op) {
  const bool complex = p.kind == STRATA_FOURIER_FORWARD || p.kind == STRATA_FOURIER_BACKWARD;
  const int64_t rows = complex ? rows_of_long_line(p.length) : 0;
  if (!rows) return run<R>(library, p, op);
  constexpr int64_t width = 2 * sizeof(R);
  Block b;
  for (int64_t l = 0, lines = checked_numel(p.sizes); l < lines; ++l) {
    find(p, l, 1, b);
    transform_long_line(library, p, rows, static_cast<const char*>(p.from) + b.from[0] * width,
                        static_cast<char*>(p.to) + b.to[0] * width, op);
  }
}

}  // namespace

std::pair<char*, char*> lines_buffers(int64_t first, int64_t second) {
  first = (first + 63) / 64 * 64;
  char* p = part_workspace().get(size_t(first + second));
  return {p, p + first};
}

void drop_large_buffers() {
  if (part_workspace().size > kKept) part_workspace() = {};
}

void transform_lines(const StrataFourier& library, const LinesPass& pass, const char* op) {
  if (pass.precise)
    run_kind<double>(library, pass, op);
  else
    run_kind<float>(library, pass, op);
}

}  // namespace strata::eager
