// Long complex lines: n = rows * columns, element j = r * columns + c. Columns are transformed, multiplied by roots of
// 1, then rows are, and element q of row p is the result p + rows * q. All of that is cut by the length alone, so
// threads share one line without a change of bits, and no step leaves the cache with strides of a large power of two.
#include <algorithm>
#include <complex>

#include "base/checked.h"
#include "core/call_memory.h"
#include "core/parallel.h"
#include "ops/fft/lines.h"
#include "ops/fft/roots.h"
#include "run/loop/transpose.h"

namespace strata::eager {

namespace {

constexpr int64_t kLong = 1 << 18;  // from here on it is the quicker way
constexpr int64_t kRows = 256;  // and as many rows as this, if they can be: columns are short, so that many are taken
constexpr int64_t kTogether = 32768;  // elements that are taken together, of at least 8 columns or rows
constexpr int64_t kStep = 32;         // roots of one column that are products with one

// Values p = 0, 1, ... of one transformed column, times root p * column.
template <class R>
void turn(std::complex<R>* values, int64_t count, int64_t column, const Roots& roots) {
  double re[kStep], im[kStep];
  for (int64_t i = 0; i < kStep; ++i) {
    const std::complex<double> r = roots(column * std::min(i, count - 1));
    re[i] = r.real();
    im[i] = r.imag();
  }
  R* parts = reinterpret_cast<R*>(values);
  for (int64_t p = 0; p < count; p += kStep) {
    const std::complex<double> r = roots(column * p);
    const double a = r.real(), b = r.imag();
    R* x = parts + 2 * p;
    for (int64_t i = 0; i < std::min(kStep, count - p); ++i) {
      const R c = R(re[i] * a - im[i] * b), d = R(re[i] * b + im[i] * a), u = x[2 * i], v = x[2 * i + 1];
      x[2 * i] = u * c - v * d;
      x[2 * i + 1] = u * d + v * c;
    }
  }
}

// to[c][r] = from[r][c]; rows of each begin `pitch` elements apart.
template <class T>
void turn_over(const T* from, int64_t from_pitch, T* to, int64_t to_pitch, int64_t rows, int64_t columns) {
  transpose(sizeof(T), reinterpret_cast<const char*>(from), from_pitch * int64_t(sizeof(T)),
            reinterpret_cast<char*>(to), to_pitch * int64_t(sizeof(T)), rows, columns);
}

template <class R>
void run(const StrataFourier& library, const LinesPass& p, int64_t rows, const std::complex<R>* from,
         std::complex<R>* to, const char* op) {
  using Complex = std::complex<R>;
  const int64_t n = p.length, columns = n / rows, width = int64_t(sizeof(Complex));
  const FourierPlan along_columns(library, p.kind, p.precise, rows, 1, op);
  const FourierPlan along_rows(library, p.kind, p.precise, columns, 1, op);
  const Roots roots(n, n, p.kind == STRATA_FOURIER_FORWARD ? -1 : 1);
  const int64_t row_pitch = (columns + 7) / 8 * 8 + 8, column_pitch = (rows + 7) / 8 * 8 + 8;
  const int64_t bytes = checked_mul(rows * row_pitch, width, "bytes");
  CallMemory memory(bytes);
  auto* between = reinterpret_cast<Complex*>(memory.take(bytes));
  const R scale = R(p.scale);
  const int64_t side = std::clamp<int64_t>(kTogether / rows / 8 * 8, 8, 128);
  parallel_for(0, (columns + side - 1) / side, 1, [&](int64_t first, int64_t last) {
    const auto buffers = lines_buffers(side * column_pitch * width, side * column_pitch * width);
    auto *in = reinterpret_cast<Complex*>(buffers[0]), *out = reinterpret_cast<Complex*>(buffers[1]);
    for (int64_t begin = first * side; begin < std::min(last * side, columns); begin += side) {
      const int64_t count = std::min(side, columns - begin);
      if (p.from_step == 1)
        turn_over(from + begin, columns, in, column_pitch, rows, count);
      else
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < count; ++c) in[c * column_pitch + r] = from[(r * columns + begin + c) * p.from_step];
      for (int64_t c = 0; c < count; ++c) {
        along_columns.run(in + c * column_pitch, out + c * column_pitch);
        turn(out + c * column_pitch, rows, begin + c, roots);
      }
      turn_over(out, column_pitch, between + begin, row_pitch, count, rows);
    }
  });
  const int64_t high = std::clamp<int64_t>(kTogether / columns / 8 * 8, 8, 128);
  parallel_for(0, (rows + high - 1) / high, 1, [&](int64_t first, int64_t last) {
    auto* out = reinterpret_cast<Complex*>(lines_buffers(0, high * row_pitch * width)[1]);
    for (int64_t begin = first * high; begin < std::min(last * high, rows); begin += high) {
      const int64_t count = std::min(high, rows - begin);
      for (int64_t r = 0; r < count; ++r) {
        Complex* row = out + r * row_pitch;
        along_rows.run(between + (begin + r) * row_pitch, row);
        for (int64_t q = 0; scale != R(1) && q < columns; ++q) row[q] *= scale;
      }
      if (p.to_step == 1)
        turn_over(out, row_pitch, to + begin, rows, count, columns);
      else
        for (int64_t q = 0; q < columns; ++q)
          for (int64_t r = 0; r < count; ++r) to[(q * rows + begin + r) * p.to_step] = out[r * row_pitch + q];
    }
    drop_large_buffers();
  });
}

}  // namespace

int64_t rows_of_long_line(int64_t length) {
  if (length < kLong) return 0;
  int64_t best = 0;
  for (int64_t r = 64; r * r <= length && (r <= kRows || !best); ++r)
    if (length % r == 0) best = r;
  return best;
}

void transform_long_line(const StrataFourier& library, const LinesPass& pass, int64_t rows, const char* from, char* to,
                         const char* op) {
  if (pass.precise)
    run<double>(library, pass, rows, reinterpret_cast<const std::complex<double>*>(from),
                reinterpret_cast<std::complex<double>*>(to), op);
  else
    run<float>(library, pass, rows, reinterpret_cast<const std::complex<float>*>(from),
               reinterpret_cast<std::complex<float>*>(to), op);
}

}  // namespace strata::eager
