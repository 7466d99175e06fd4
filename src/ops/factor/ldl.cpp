// The factors L D L^T and L D L^H of symmetric and Hermitian matrices that need not be positive definite.
#include "core/promote.h"
#include "run/copy.h"
#include "strata/generated/by_hand/factor.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/decompose.h"
#include "strata/generated/ops/factor.h"
#include "vendor/factors.h"

namespace strata::eager {

namespace {

constexpr const char* zero_block =
    "D[{},{}] is zero and using it on ldl_solve would result in a division by zero. linalg.ldl_factor_ex gives the "
    "factors all the same";

// Every pivot must name a row, and those of a block of two rows must both be there.
void check_pivots(const int32_t* pivots, int64_t n, const char* op) {
  for (int64_t i = 0; i < n; ++i) {
    const bool pair = pivots[i] < 0;
    const int64_t row = pair ? -int64_t(pivots[i]) : int64_t(pivots[i]);
    STRATA_CHECK(row >= 1 && row <= n && (!pair || (i + 1 < n && pivots[i + 1] == pivots[i])), op,
                 ": pivots must be those that linalg.ldl_factor made of a matrix of ", n, " rows, got ", pivots[i],
                 " at ", i);
    i += pair;
  }
}

}  // namespace

void linalg_ldl_factor_ex(const Tensor& ld, const Tensor& pivots, const Tensor& info, const Tensor& a, bool hermitian,
                          bool check_errors) {
  constexpr const char* op = "linalg.ldl_factor_ex";
  copy_values(ld, ops::tril(a));
  fill_values(info, Scalar(0));
  if (a.numel() == 0) return;
  const int64_t n = a.size(-1);
  const StrataLapack& library = lapack(op);
  parallel_for(0, batch_count(a.sizes()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      lapack_done(library.ldl_factor(lapack_type(a.dtype()), hermitian, n, matrix(ld, b), n,
                                     static_cast<int32_t*>(vector(pivots, b)), info.data<int32_t>() + b),
                  library, op);
  });
  if (check_errors) check_info(info, op, zero_block);
}

std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& a, bool hermitian) {
  auto [ld, pivots, info] = ops::linalg_ldl_factor_ex(a, hermitian, false);
  ops::_check_info(info, "linalg.ldl_factor", zero_block);
  return {ld, pivots};
}

void linalg_ldl_solve(const Tensor& x, const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
  constexpr const char* op = "linalg.ldl_solve";
  const DimVec own = batch_sizes(ld.sizes()), batch = batch_sizes(x.sizes());
  copy_values(x, b);
  const int64_t n = ld.size(-1), columns = b.size(-1);
  const Tensor rows = as_contiguous(as_dtype(pivots, DType::I32));
  for (int64_t i = 0; n > 0 && i < rows.numel() / n; ++i)
    check_pivots(static_cast<const int32_t*>(vector(rows, i)), n, op);
  if (x.numel() == 0) return;
  const StrataLapack& library = lapack(op);
  const Tensor factors = columns_of(ld);
  parallel_for(0, batch_count(x.sizes()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = broadcast_index(i, batch, own);
      lapack_done(library.ldl_solve(lapack_type(ld.dtype()), hermitian, n, columns, matrix(factors, from), n,
                                    static_cast<const int32_t*>(vector(rows, from)), matrix(x, i), n),
                  library, op);
    }
  });
}

}  // namespace strata::eager
