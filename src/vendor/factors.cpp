#include "vendor/factors.h"

#include "core/promote.h"
#include "run/copy.h"

namespace strata::eager {

Factors new_factors(const Tensor& a) {
  return {new_columns(a, a.sizes()),
          new_tensor(a, with_vector(a.sizes(), std::min(a.size(-2), a.size(-1))), DType::I32),
          new_tensor(a, batch_sizes(a.sizes()), DType::I32)};
}

void factor_matrices(const Factors& f, const Tensor& a, const char* op) {
  fill_values(f.info, Scalar(0));
  if (a.numel() == 0) return;
  const int64_t m = a.size(-2), n = a.size(-1);
  const StrataLapack& library = lapack(op);
  copy_values(f.lu, a);
  parallel_for(0, batch_count(a.sizes()), matrices_of_thread(m, n), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      lapack_done(library.lu_factor(lapack_type(a.dtype()), m, n, matrix(f.lu, b), m,
                                    static_cast<int32_t*>(vector(f.pivots, b)), f.info.data<int32_t>() + b),
                  library, op);
  });
}

int64_t broadcast_index(int64_t b, IntArrayRef batch, IntArrayRef own) {
  int64_t index = 0, step = 1;
  for (size_t i = 0; i < batch.size(); ++i) {
    const int64_t at = b % batch[batch.size() - 1 - i];
    b /= batch[batch.size() - 1 - i];
    if (i >= own.size()) continue;
    const int64_t size = own[own.size() - 1 - i];
    if (size > 1) index += at * step;
    step *= size;
  }
  return index;
}

void solve_factored(const Factors& f, const Tensor& x, IntArrayRef batch, int64_t columns, char transposed,
                    const char* op) {
  if (x.numel() == 0) return;
  const StrataLapack& library = lapack(op);
  const int64_t n = f.lu.size(-1);
  const DimVec own = batch_sizes(f.lu.sizes());
  parallel_for(0, x.numel() / (n * columns), matrices_of_thread(n, columns), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t from = broadcast_index(b, batch, own);
      lapack_done(library.lu_solve(lapack_type(x.dtype()), transposed, n, columns, matrix(f.lu, from), n,
                                   static_cast<const int32_t*>(vector(f.pivots, from)),
                                   x.bytes() + b * n * columns * x.itemsize(), n),
                  library, op);
    }
  });
}

}  // namespace strata::eager
