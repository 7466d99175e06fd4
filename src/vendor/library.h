/* The contract between the CPU core and an optional library of matrix products and convolutions.
 *
 * A library is a shared object that exports one C symbol, strata_library_v1, which returns a constant table.
 * Rules of the boundary:
 *  - every struct begins with its size in bytes as its author compiled it; fields are only appended, and a reader
 *    looks at a field only when the size covers it. A change of meaning raises the major version and the symbol's name;
 *  - a function returns a StrataLibraryStatus; for any but OK, last_error() holds the reason, per thread.
 *    STRATA_LIBRARY_UNSUPPORTED means that nothing was written and that the caller should take its own kernel;
 *  - nothing is thrown across the boundary, nothing aborts, every function may be called from any thread;
 *  - sizes and strides count elements, and strides may not be negative; outputs may not overlap inputs;
 *  - parallel work uses the OpenMP runtime that the process loaded globally before the library, with as many threads as
 *    set_threads() said, or else the calling thread's omp_get_max_threads(); inside a parallel region, with one.
 * This file is C11 and C++. */
#ifndef STRATA_EAGER_LIBRARY_H
#define STRATA_EAGER_LIBRARY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STRATA_LIBRARY_MAJOR 1
#define STRATA_LIBRARY_MINOR 2
#define STRATA_LIBRARY_SYMBOL "strata_library_v1"

typedef enum StrataLibraryStatus {
  STRATA_LIBRARY_OK = 0,
  STRATA_LIBRARY_UNSUPPORTED = 1, /* this shape, dtype or layout: use another kernel */
  STRATA_LIBRARY_INVALID = 2,     /* the caller broke the contract: negative sizes, null pointers */
  STRATA_LIBRARY_MEMORY = 3,      /* out of memory */
  STRATA_LIBRARY_FAILED = 4       /* the library itself reported an error */
} StrataLibraryStatus;

typedef enum StrataLibraryType {
  STRATA_LIBRARY_F32 = 0,
  STRATA_LIBRARY_BF16 = 1,    /* inputs and outputs bfloat16, accumulation in float32, one rounding */
  STRATA_LIBRARY_BF16_F32 = 2 /* since 1.1, matmul and conv_backward_data alone: inputs bfloat16, outputs float32 */
} StrataLibraryType;

/* c[i] = alpha * a[i] @ b[i] (+ bias) (+ c[i] when accumulate), for i < batch.
 * a is m x k, b is k x n, c is m x n with unit column stride. One stride of each of a's and b's row and column must be
 * 1 (a size-1 dimension's stride does not matter); a batch stride of 0 repeats the matrix. k = 0 gives zeros (+ bias).
 * bias has n elements of dtype (of BF16_F32: unsupported) and is added after the product in float32: the bits of a
 * separate float32 addition, before bfloat16's one rounding. Unsupported with alpha != 1 or accumulate. */
typedef struct StrataMatmul {
  uint32_t size;
  int32_t dtype; /* StrataLibraryType */
  int64_t batch, m, n, k;
  const void* a;
  int64_t a_row, a_col, a_batch;
  const void* b;
  int64_t b_row, b_col, b_batch;
  void* c;
  int64_t c_row, c_batch;
  const void* bias; /* or null */
  float alpha;
  int32_t accumulate; /* 0 or 1 */
} StrataMatmul;

/* Geometry of a convolution with 1 to 3 spatial dimensions. Strides are listed as N, C, spatial... for input and
 * output and as O, I/groups, spatial... for the weight. Entries past `spatial` (or past spatial + 2 for strides) are 0.
 * output[d] must equal (input[d] + 2 padding[d] - dilation[d] (kernel[d] - 1) - 1) / stride[d] + 1, or, for the use as
 * a transposed convolution with output padding, any size that this relation's division rounds from.
 * A plain or a channels-last order of dense tensors is taken as it is; other strides are unsupported. */
typedef struct StrataConvolution {
  uint32_t size;
  int32_t dtype; /* StrataLibraryType */
  int64_t spatial, batch, groups, in_channels, out_channels;
  int64_t input[3], output[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t input_strides[5], output_strides[5], weight_strides[5];
} StrataConvolution;

typedef struct StrataLibraryCache {
  uint32_t size;
  uint32_t unused;
  int64_t entries, capacity, hits, misses;
} StrataLibraryCache;

typedef struct StrataLibrary {
  uint32_t size;
  uint32_t major, minor;
  const char* name;        /* "oneDNN" */
  const char* version;     /* "2.6.3" */
  const char* instruction; /* the instruction set the library chose, for reports */

  /* Reason of this thread's last status that was not OK; never null, valid until the thread's next call. */
  const char* (*last_error)(void);
  /* File of the OpenMP runtime that really serves the library, "" if unknown: the host compares it with its own. */
  const char* (*openmp_runtime)(void);

  /* Threads of every later call, from whichever thread it comes; 0 leaves it to the OpenMP runtime (the default). */
  int (*set_threads)(int32_t count);

  int (*matmul)(const StrataMatmul* call);

  /* bias (out_channels elements of dtype) may be null. bfloat16 results are rounded once, bias included. */
  int (*conv_forward)(const StrataConvolution* shape, const void* input, const void* weight, const void* bias,
                      void* output);
  /* The gradient of the input; also the forward of a transposed convolution (then without its bias). */
  int (*conv_backward_data)(const StrataConvolution* shape, const void* grad_output, const void* weight,
                            void* grad_input);
  /* grad_bias may be null. Both results are overwritten. */
  int (*conv_backward_weights)(const StrataConvolution* shape, const void* input, const void* grad_output,
                               void* grad_weight, void* grad_bias);

  /* Prepared kernels are kept in one bounded table for all threads, least recently used out first. */
  int (*cache_info)(StrataLibraryCache* out); /* the caller sets out->size */
  int (*cache_resize)(int64_t capacity);      /* 0 empties the table and keeps nothing */

  /* Since 1.2: what the first product does once for all, as writing code, by the calling thread alone. */
  int (*prepare)(void);
} StrataLibrary;

/* The one symbol: const StrataLibrary* strata_library_v1(void). Null if the library cannot run on this machine. */
typedef const StrataLibrary* (*StrataLibraryEntry)(void);

#ifdef __cplusplus
}
#endif

#endif /* STRATA_EAGER_LIBRARY_H */
