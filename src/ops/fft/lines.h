// Transforms of the lines along one dim by the library, spread over threads. Lines that lie side by side, or elsewhere
// than the library takes them, go through buffers; a line's bits depend on the sizes alone, not on strides, places or
// threads.
#pragma once
#include <array>

#include "core/tensor.h"
#include "vendor/fourier_host.h"

namespace strata::eager {

struct LinesPass {
  StrataFourierKind kind;
  bool precise;    // parts are float64
  int64_t length;  // of the transform
  double scale;    // of its results
  // What is read and written: strides count elements (of a real side numbers). `sizes` are those of the other dims.
  const void* from;
  void* to;  // may be `from` with its strides where both sides are complex
  int64_t from_step, to_step;
  DimVec sizes, from_strides, to_strides;
  bool mirrored = false;  // of REAL: the conjugates of the results follow them, so that `length` are written
};

void transform_lines(const StrataFourier& library, const LinesPass& pass, const char* op);

// ---- long complex lines (long_line.cpp)

// How a line of this length is taken as a matrix: its number of rows, or 0 where it is transformed at once.
int64_t rows_of_long_line(int64_t length);
// One line of `pass`, its first element at `from` and `to`.
void transform_long_line(const StrataFourier& library, const LinesPass& pass, int64_t rows, const char* from, char* to,
                         const char* op);

// This thread's, of so many bytes, 64 byte aligned, valid until its next call. Large ones are to be dropped.
std::array<char*, 3> lines_buffers(int64_t first, int64_t second, int64_t third = 0);
void drop_large_buffers();

}  // namespace strata::eager
