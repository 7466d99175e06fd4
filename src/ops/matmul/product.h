// Matrix products of tensors: chooses between the library (large float32 and bfloat16 products) and the generated
// kernels (everything else; contract 5 gives their bits), whatever the strides of the operands.
#pragma once
#include "core/tensor.h"
#include "ops/matmul/gemm.h"

namespace strata::eager {

// Up to this many multiplications a product takes the generated kernel even where a library is present.
constexpr int64_t kSmallProduct = 64 * 64 * 64;

// The generated kernels of a dtype; NotImplementedError, naming `op`, for one without products.
const GemmKernel& gemm_kernel(DType t, const char* op);
// This process's threads; one inside a parallel region.
GemmThreads gemm_threads();

// Multiplications of one matrix of a result of `sizes`, which decide, however many a batch holds.
double matrix_work(IntArrayRef sizes, int64_t k);
// Whether a product of this size and dtype goes to the library.
bool library_takes(DType t, double multiplications);

// c = alpha * (a @ b), added to c where `accumulate`, by the library, rounded once; false, and nothing written, where
// it takes none of this size and dtype. c may be float32 for bfloat16 operands.
bool library_product(const Tensor& c, const Tensor& a, const Tensor& b, double alpha, bool accumulate, const char* op);

// c = a @ b (+ bias along the last dim, one value per column). All of 2 dims or all of 3 (a batch; stride 0 repeats a
// matrix), of one dtype, consistent sizes, c fresh with contiguous rows.
void matrix_product(const Tensor& c, const Tensor& a, const Tensor& b, const Tensor& bias, const char* op);

}  // namespace strata::eager
