// Drives the generated matrix-product kernels (text: lower/print/gemm.h) over blocks, threads and batches.
//
// c = a @ b with a m x k, b k x n, any strides for a and b (elements, may be 0 or negative), rows of c contiguous.
// The bits are those of contract 5, whatever the strides, blocking or number of threads: per element, chains of 1,024
// fma in order of k, the chains' results added in order, one rounding. k = 0 gives zeros. c may not overlap a or b.
// Transposed results: exchange a and b and their strides, since real products commute. Not so for complex, whose
// imaginary part adds ar * bi before ai * br.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strata::eager {

// One dtype's kernels at one instruction set: the layout of the table that the printed text exports.
// A panel holds up to mr rows of a (nr columns of b), k after k. It is filled up with zeros to a size that the kernel
// has a body for: a power of two of rows, a multiple of `lanes` of columns. Its elements have compute_bytes; complex
// panels hold, for each k, all real parts and then all imaginary ones.
struct GemmKernel {
  int64_t mr, nr, lanes;
  int64_t element_bytes, compute_bytes;
  int64_t plain;    // 1: elements are stored as they are computed, and real, so a panel can be written by copying
  const void* one;  // the element 1
  void (*pack_a)(int64_t kc, int64_t count, const void* from, int64_t count_stride, int64_t k_stride, void* to);
  void (*pack_b)(int64_t kc, int64_t count, const void* from, int64_t count_stride, int64_t k_stride, void* to);
  // c = or (add) += a panel times b panel; b_step 0: packed, else b is read in place and its k are b_step apart.
  void (*kernel)(int64_t kc, const void* a, const void* b, int64_t b_step, void* c, int64_t ldc, int64_t rows,
                 int64_t cols, int64_t add);
  // From accumulators to elements; null where these are the same.
  void (*round)(int64_t rows, int64_t cols, const void* from, int64_t ld_from, void* to, int64_t ld_to);
};

// Runs body over [begin, end) in pieces of at least `grain`, on any threads, and returns when all is done.
using ParallelFor = void (*)(int64_t begin, int64_t end, int64_t grain, void (*body)(void*, int64_t, int64_t),
                             void* ctx);

struct GemmThreads {
  int count = 1;                       // how many pieces are worth making
  ParallelFor parallel_for = nullptr;  // null: everything on the calling thread
};

struct GemmCall {
  int64_t m, n, k;
  const void* a;
  int64_t a_row, a_col;
  const void* b;
  int64_t b_row, b_col;
  void* c;
  int64_t c_row;
  int64_t batch = 1;
  int64_t a_batch = 0, b_batch = 0, c_batch = 0;
  const void* bias = nullptr;  // n elements, added to every row as one more chain, before the rounding
};

void gemm(const GemmKernel& kernel, const GemmCall& call, const GemmThreads& threads);

// The engine below gemm(), for operands that are not strided matrices (convolutions).
// An operand packs its panels itself; columns may come in segments that are separate rows of memory in c.
struct PanelSource {
  // Packs rows (columns) [first, first + count) of the operand, k in [k0, k0 + kc), in the form of pack_a (pack_b).
  // For b, `first` counts inside `segment`.
  void (*pack)(const PanelSource& self, int64_t segment, int64_t first, int64_t count, int64_t k0, int64_t kc,
               void* to);
};

struct PanelProduct {
  int64_t m, k;
  int64_t segments, columns;  // n = segments * columns
  const PanelSource* a;
  const PanelSource* b;
  // Optional: a last chain of one k (a bias: its column times a row of ones, or a column of ones times its row).
  const PanelSource* last_a = nullptr;
  const PanelSource* last_b = nullptr;
  // Where b's panels can be read in place, its first element for (k0 = 0, first = 0), else null. One segment only.
  const void* b_direct = nullptr;
  int64_t b_row = 0;
  void* c;
  int64_t c_row, c_segment;  // elements
};

void panel_product(const GemmKernel& kernel, const PanelProduct& product, const GemmThreads& threads);

// Scratch memory of the calling thread for sources that gather before they pack; valid until the thread's next call.
char* gather_buffer(int64_t bytes);

}  // namespace strata::eager
