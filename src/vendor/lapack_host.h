// The core's side of lapack.h: opens the library of decompositions at first use, and what their operators share.
#pragma once
#include "core/parallel.h"
#include "core/shape/matrix.h"
#include "core/tensor.h"
#include "run/prepare.h"
#include "vendor/lapack.h"

namespace strata::eager {

// Raises NotImplementedError in the name of `op` where there is no such library.
const StrataLapack& lapack(const char* op);
// "OpenBLAS 0.3.21", or why there is none.
std::string lapack_report();
// Raises for any status but OK.
void lapack_done(int status, const StrataLapack& library, const char* op);
int lapack_type(DType t);

// Composites refuse what shape rules do.
inline void check_matrices(const Tensor& a, const char* op) { shape::check_matrices(geometry(a), op); }
inline void check_square(const Tensor& a, const char* op) { shape::check_square(geometry(a), op); }
inline void check_lapack_dtype(const Tensor& a, const char* op) { shape::check_lapack_dtype(geometry(a), op); }

// A fresh tensor of the kind of `like` whose matrices (the last two dims of sizes) are column-major.
Tensor new_columns(const Tensor& like, IntArrayRef sizes);
// A column-major copy of a, broadcast to sizes.
Tensor columns_of(const Tensor& a, IntArrayRef sizes);
inline Tensor columns_of(const Tensor& a) { return columns_of(a, a.sizes()); }
// The sizes of a with the last two replaced.
DimVec with_matrix(IntArrayRef sizes, int64_t rows, int64_t columns);
// The sizes of a's batch, and of batches of vectors.
DimVec batch_sizes(IntArrayRef sizes);
DimVec with_vector(IntArrayRef sizes, int64_t length);
int64_t batch_count(IntArrayRef sizes);
// Matrices of this order, with columns beside them, that a thread takes at least: factors of small ones take 10 ns.
int64_t matrices_of_thread(int64_t order, int64_t columns);

// Matrix b of a batch that lies in memory without gaps.
inline void* matrix(const Tensor& t, int64_t b) {
  IntArrayRef s = t.sizes();
  const size_t d = s.size();
  return t.bytes() + b * s[d - 2] * s[d - 1] * t.itemsize();
}
// Vector b of a batch of vectors.
inline void* vector(const Tensor& t, int64_t b) { return t.bytes() + b * t.sizes().back() * t.itemsize(); }

// Whether no number of the `count` at p is infinite or NaN: LAPACK's iterations may not end on such.
bool all_finite(const void* p, int64_t count, DType t);

// Our own verdict on such a matrix, beside LAPACK's, and the text for it and for iterations that did not end: `values`
// is "singular values" or the like.
inline constexpr int32_t not_finite = -1;
std::string no_convergence(int32_t info, const char* values);

// Whether a derivative may be asked for, by what the tensor itself says: derivatives of values alone need the vectors.
// A view may take its history from its base only later.
bool may_need_grad(const Tensor& a);

// Raises LinAlgError for the first info of a batch with memory that is not 0. `name` is PyTorch's, text(info) says what
// is wrong.
template <class Text>
void check_info(const Tensor& info, const char* name, Text&& text);
void check_info(const Tensor& info, const char* name, const char* text);  // in which {} stands for info
[[noreturn]] void raise_linalg(const char* name, const Tensor& info, int64_t element, const std::string& text);

template <class Text>
void check_info(const Tensor& info, const char* name, Text&& text) {
  for (int64_t i = 0; i < info.numel(); ++i)
    if (int32_t verdict = info.data<int32_t>()[i]) raise_linalg(name, info, i, text(verdict));
}

}  // namespace strata::eager
