#include "ops/fft/lines.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "base/checked.h"
#include "core/call_memory.h"
#include "core/parallel.h"
#include "ops/fft/line_transform.h"
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

// How many lines from `first` on lie side by side.
int side_by_side(const int64_t* at, int first, int count) {
  int last = first + 1;
  while (last < count && at[last] == at[first] + last - first) ++last;
  return last - first;
}

// Whether all lines of a block are `pitch` apart.
bool follow(const int64_t* at, int64_t pitch) {
  for (int l = 1; l < kMost; ++l)
    if (at[l] != at[0] + l * pitch) return false;
  return true;
}

// `count` elements of each line, `step` apart, to rows `pitch` apart. Here and below all that counts in elements of
// `width` bytes.
void gather(int64_t width, const char* from, const Block& b, int64_t step, int64_t count, char* rows, int64_t pitch) {
  for (int l = 0, some; l < b.count; l += some) {
    some = step == 1 ? 1 : side_by_side(b.from, l, b.count);
    const char* x = from + b.from[l] * width;
    char* y = rows + l * pitch * width;
    if (some > 1)
      transpose(width, x, step * width, y, pitch * width, count, some);
    else if (step == 1)
      std::memcpy(y, x, size_t(count * width));
    else
      copy_apart(width, x, step, y, 1, count);
  }
}

// And back.
void scatter(int64_t width, char* to, const Block& b, int64_t step, int64_t count, const char* rows, int64_t pitch) {
  for (int l = 0, some; l < b.count; l += some) {
    some = step == 1 ? 1 : side_by_side(b.to, l, b.count);
    char* y = to + b.to[l] * width;
    const char* x = rows + l * pitch * width;
    if (some > 1)
      transpose(width, x, pitch * width, y, step * width, some, count);
    else if (step == 1)
      std::memcpy(y, x, size_t(count * width));
    else
      copy_apart(width, x, 1, y, step, count);
  }
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
  const bool together = LineTransform<R>::length_of(p) < kShort && lines >= kMost;
  const auto apart = [&](int64_t count, int64_t width) {
    return together ? count : (count * width + 63) / 64 * 64 / width + 64 / width;
  };
  const int64_t from_pitch = apart(read, from_width), to_pitch = apart(made, to_width);
  const int64_t most = together ? kMost : std::clamp<int64_t>(kBlock / n, 1, kMost);
  const LineTransform<R> transform(library, p, together ? kMost : 1, op);
  const auto* from = static_cast<const char*>(p.from);
  auto* to = static_cast<char*>(p.to);
  const int64_t grain = std::max<int64_t>(1, kGrain / (n * most));
  parallel_for(0, (lines + most - 1) / most, grain, [&](int64_t first, int64_t last) {
    const auto [in, out, own] =
        lines_buffers(most * from_pitch * from_width, most * to_pitch * to_width, transform.own_bytes());
    Block b;
    for (int64_t i = first; i < last; ++i) {
      find(p, i * most, int(std::min(most, lines - i * most)), b);
      if (together) {
        // Whole blocks that lie as the library takes them stay where they are.
        char *x = const_cast<char*>(from) + b.from[0] * from_width, *y = to + b.to[0] * to_width;
        const bool whole = b.count == kMost && p.from != p.to;
        const bool reads = whole && p.from_step == 1 && !transform.destroys_input() && follow(b.from, read) &&
                           (!transform.reads() || aligned(x));
        const bool writes = whole && p.to_step == 1 && follow(b.to, made) && (!transform.writes() || aligned(y));
        if (!reads) gather(from_width, from, b, p.from_step, read, in, from_pitch);
        transform(reads ? x : in, writes ? y : out, own, b.count);
        if (!writes) scatter(to_width, to, b, p.to_step, made, out, to_pitch);
      } else {
        const bool side = p.from_step != 1;  // they are brought together, else one after the other
        if (side) gather(from_width, from, b, p.from_step, read, in, from_pitch);
        for (int l = 0; l < b.count; ++l) {
          char* x = side ? in + l * from_pitch * from_width : const_cast<char*>(from) + b.from[l] * from_width;
          if (!side && (transform.destroys_input() || p.from == p.to || (transform.reads() && !aligned(x))))
            x = static_cast<char*>(std::memcpy(in, x, size_t(read * from_width)));
          char* there = to + b.to[l] * to_width;
          char* y = p.to_step == 1 && (!transform.writes() || aligned(there)) ? there : out + l * to_pitch * to_width;
          transform(x, y, own);
          if (p.to_step == 1 && y != there) std::memcpy(there, y, size_t(made * to_width));
        }
        if (p.to_step != 1) scatter(to_width, to, b, p.to_step, made, out, to_pitch);
      }
      if (p.mirrored) mirror<R>(to, b, p.to_step, n);
    }
    drop_large_buffers();
  });
}

// One long real line by a long complex one of half its length.
template <class R>
void run_long_real(const StrataFourier& library, const LinesPass& p, int64_t rows, const Block& b, const char* op) {
  using Complex = std::complex<R>;
  const bool half = p.kind == STRATA_FOURIER_HALF;
  const int64_t m = p.length / 2, real = sizeof(R), complex = 2 * real;
  const int64_t from_width = half ? complex : real, to_width = half ? real : complex;
  const int64_t bytes = checked_mul(m + 1, complex, "bytes");
  CallMemory memory(bytes);
  const char* from = static_cast<const char*>(p.from) + b.from[0] * from_width;
  char *to = static_cast<char*>(p.to) + b.to[0] * to_width, *own = memory.take(bytes);
  if (p.from_step != 1) {
    copy_apart(from_width, from, p.from_step, own, 1, half ? m + 1 : p.length);
    from = own;
  }
  char* result = p.to_step == 1 ? to : own;
  LinesPass pass{half ? STRATA_FOURIER_BACKWARD : STRATA_FOURIER_FORWARD, p.precise, m, 1};
  pass.from_step = pass.to_step = 1;
  const RealLine<R> line(p.length, half, p.scale);
  if (half) {
    line(reinterpret_cast<const Complex*>(from), reinterpret_cast<Complex*>(own));
    transform_long_line(library, pass, rows, own, result, op);
  } else {
    transform_long_line(library, pass, rows, from, own, op);
    line(reinterpret_cast<const Complex*>(own), reinterpret_cast<Complex*>(result));
  }
  if (result == own) copy_apart(to_width, own, 1, to, p.to_step, half ? p.length : m + 1);
  if (p.mirrored) mirror<R>(static_cast<char*>(p.to), b, p.to_step, p.length);
}

template <class R>
void run_kind(const StrataFourier& library, const LinesPass& p, const char* op) {
  const bool real = p.kind == STRATA_FOURIER_REAL || p.kind == STRATA_FOURIER_HALF;
  const int64_t length = LineTransform<R>::length_of(p);
  const int64_t rows = real && length == p.length ? 0 : rows_of_long_line(length);
  if (!rows) return run<R>(library, p, op);
  constexpr int64_t width = 2 * sizeof(R);
  Block b;
  for (int64_t l = 0, lines = checked_numel(p.sizes); l < lines; ++l) {
    find(p, l, 1, b);
    if (real)
      run_long_real<R>(library, p, rows, b, op);
    else
      transform_long_line(library, p, rows, static_cast<const char*>(p.from) + b.from[0] * width,
                          static_cast<char*>(p.to) + b.to[0] * width, op);
  }
}

}  // namespace

std::array<char*, 3> lines_buffers(int64_t first, int64_t second, int64_t third) {
  first = (first + 63) / 64 * 64;
  second = (second + 63) / 64 * 64;
  char* p = part_workspace().get(size_t(first + second + third));
  return {p, p + first, p + first + second};
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
