#include "ops/matmul/product.h"

#include <atomic>
#include <cstring>

#include "core/parallel.h"
#include "core/promote.h"
#include "lower/registry.h"
#include "run/copy.h"
#include "run/kernels.h"
#include "vendor/library_host.h"

namespace strata::eager {

namespace {

const GemmKernel* find_product(const char* isa, DType t) {
  for (const StrataGemmTable* g = strata_gemm_tables; g->isa; ++g)
    if (!std::strcmp(g->isa, isa) && !std::strcmp(g->dtype, traits(t).cname))
      return static_cast<const GemmKernel*>(g->kernel);
  return nullptr;
}

// One stride of 1, as the library wants it; a dim of size 1 may have any.
bool library_reads(const Tensor& t) {
  int64_t n = t.dim(), rows = t.sizes()[n - 2], cols = t.sizes()[n - 1];
  int64_t row = t.strides()[n - 2], col = t.strides()[n - 1];
  return (col == 1 || cols == 1) ? row >= cols || rows == 1 : (row == 1 || rows == 1) && col >= rows;
}

struct Layout {
  int64_t row, col, batch;
  explicit Layout(const Tensor& t) {
    int64_t n = t.dim();
    row = t.strides()[n - 2];
    col = t.strides()[n - 1];
    batch = n == 3 && t.sizes()[0] != 1 ? t.strides()[0] : 0;
  }
};

bool by_library(const Tensor& c, const Tensor& a0, const Tensor& b0, const Tensor& bias, const char* op,
                double alpha = 1, bool accumulate = false) {
  const StrataLibrary* lib = library();
  if (!lib) return false;
  Tensor a = library_reads(a0) ? a0 : contiguous_copy(a0);
  Tensor b = library_reads(b0) ? b0 : contiguous_copy(b0);
  Layout la(a), lb(b), lc(c);
  int64_t n = c.dim();
  StrataMatmul p{};
  p.size = sizeof p;
  p.dtype = c.dtype() == a.dtype() ? library_type(c.dtype()) : int32_t(STRATA_LIBRARY_BF16_F32);
  p.batch = n == 3 ? c.sizes()[0] : 1;
  p.m = c.sizes()[n - 2];
  p.n = c.sizes()[n - 1];
  p.k = a.sizes()[n - 1];
  p.a = a.data_ptr();
  p.a_row = la.row, p.a_col = la.col, p.a_batch = la.batch;
  p.b = b.data_ptr();
  p.b_row = lb.row, p.b_col = lb.col, p.b_batch = lb.batch;
  p.c = c.data_ptr();
  p.c_row = lc.row, p.c_batch = lc.batch;
  p.bias = bias.defined() ? bias.data_ptr() : nullptr;
  p.alpha = float(alpha);
  p.accumulate = accumulate;
  return library_done(lib->matmul(&p), *lib, op);
}

}  // namespace

const GemmKernel& gemm_kernel(DType t, const char* op) {
  static std::atomic<const GemmKernel*> cache[kDTypeCount];
  static std::atomic<uint32_t> generation{0};
  uint32_t now = isa_generation();
  if (STRATA_UNLIKELY(generation.load(std::memory_order_relaxed) != now)) {
    for (auto& c : cache) c.store(nullptr, std::memory_order_relaxed);
    generation.store(now, std::memory_order_relaxed);
  }
  auto& cached = cache[static_cast<int>(t)];
  const GemmKernel* k = cached.load(std::memory_order_relaxed);
  if (STRATA_UNLIKELY(!k)) {
    k = find_product(cpu_isa(), t);
    if (!k) k = find_product("base", t);
    STRATA_CHECK_NOT_IMPLEMENTED(k, "\"", op, "\" not implemented for '", scalar_type_name(t),
                                 "'; convert the operands with .to() first");
    cached.store(k, std::memory_order_relaxed);
  }
  return *k;
}

GemmThreads gemm_threads() {
  int n = in_parallel_region() ? 1 : num_threads();
  return {n, n > 1 ? &parallel_for_raw : nullptr};
}

double matrix_work(IntArrayRef sizes, int64_t k) {
  return double(sizes[sizes.size() - 2]) * double(sizes.back()) * double(k);
}

bool library_takes(DType t, double multiplications) {
  return library_type(t) >= 0 && multiplications > double(kSmallProduct) && library() != nullptr;
}

bool library_product(const Tensor& c, const Tensor& a, const Tensor& b, double alpha, bool accumulate, const char* op) {
  const double work = matrix_work(c.sizes(), a.sizes().back());
  return work > 0 && library_takes(a.dtype(), work) && by_library(c, a, b, {}, op, alpha, accumulate);
}

void matrix_product(const Tensor& c, const Tensor& a, const Tensor& b, const Tensor& bias, const char* op) {
  if (c.numel() == 0) return;
  int64_t n = c.dim();
  int64_t k = a.sizes()[n - 1];
  if (k == 0 && !bias.defined()) return fill_values(c, Scalar(0));
  if (k > 0 && library_takes(c.dtype(), matrix_work(c.sizes(), k)) && by_library(c, a, b, bias, op)) return;
  const GemmKernel& kernel = gemm_kernel(c.dtype(), op);
  Layout la(a), lb(b), lc(c);
  GemmCall call{};
  call.batch = n == 3 ? c.sizes()[0] : 1;
  call.m = c.sizes()[n - 2];
  call.n = c.sizes()[n - 1];
  call.k = k;
  call.a = a.data_ptr();
  call.a_row = la.row, call.a_col = la.col, call.a_batch = la.batch;
  call.b = b.data_ptr();
  call.b_row = lb.row, call.b_col = lb.col, call.b_batch = lb.batch;
  call.c = c.data_ptr();
  call.c_row = lc.row, call.c_batch = lc.batch;
  call.bias = bias.defined() ? bias.data_ptr() : nullptr;
  gemm(kernel, call, gemm_threads());
}

}  // namespace strata::eager
