// Singular values and vectors, and those of Hermitian matrices, by LAPACK's divide and conquer.
#include "run/copy.h"
#include "strata/generated/by_hand/decompose.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/decompose.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"
#include "vendor/lapack_host.h"

namespace strata::eager {

namespace {

Tensor new_info(const Tensor& a) { return new_tensor(a, batch_sizes(a.sizes()), DType::I32); }

}  // namespace

void linalg_svd_all(const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& a, bool full_matrices,
                    bool compute_uv, std::optional<std::string_view>) {
  constexpr const char* op = "linalg.svd";
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), right = full_matrices ? n : k;
  const int64_t count = batch_count(a.sizes());
  if (k == 0) {
    for (const Tensor& t : {u, vh})
      if (t.numel() > 0) copy_values(t, ops::eye(t.size(-1), t.dtype(), t.device()));
    return;
  }
  const StrataLapack& library = lapack(op);
  const int type = lapack_type(a.dtype());
  const char vectors = !compute_uv ? 'N' : full_matrices ? 'A' : 'S';
  Tensor work = columns_of(a), info = new_info(a);
  parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      void* matrix_b = matrix(work, b);
      int32_t& verdict = info.data<int32_t>()[b];
      verdict = not_finite;
      if (!all_finite(matrix_b, m * n, a.dtype())) continue;
      lapack_done(library.svd(type, vectors, m, n, matrix_b, m, vector(s, b), compute_uv ? matrix(u, b) : nullptr, m,
                              compute_uv ? matrix(vh, b) : nullptr, std::max<int64_t>(right, 1), &verdict),
                  library, op);
    }
  });
  check_info(info, op, [](int32_t verdict) { return no_convergence(verdict, "singular values"); });
}

Tensor linalg_svdvals(const Tensor& a, std::optional<std::string_view> driver) {
  return std::get<1>(ops::_linalg_svd(a, false, may_need_grad(a), driver));
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self, bool some, bool compute_uv) {
  if (compute_uv) {
    auto [u, s, vh] = ops::linalg_svd(self, !some, std::nullopt);
    return {u, s, ops::_conjugate(ops::transpose(vh, -2, -1))};
  }
  check_matrices(self, "linalg.svd");
  const int64_t m = self.size(-2), n = self.size(-1);
  Tensor s = ops::linalg_svdvals(self, std::nullopt);
  auto none = [&](int64_t size) { return ops::new_zeros(self, with_matrix(self.sizes(), size, size)); };
  return {none(m), s, none(n)};
}

void linalg_eigh_all(const Tensor& values, const Tensor& vectors, const Tensor& a, std::string_view uplo,
                     bool compute_v) {
  if (a.numel() == 0) return;
  constexpr const char* op = "linalg.eigh";
  const int64_t n = a.size(-1);
  const Tensor work = compute_v ? vectors : new_columns(a, a.sizes()), info = new_info(a);
  copy_values(work, a);
  const StrataLapack& library = lapack(op);
  const bool upper = uplo == "U" || uplo == "u";
  parallel_for(0, batch_count(a.sizes()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      void* matrix_b = matrix(work, b);
      int32_t& verdict = info.data<int32_t>()[b];
      verdict = not_finite;
      if (!all_finite(matrix_b, n * n, a.dtype())) continue;
      lapack_done(library.eigh(lapack_type(a.dtype()), compute_v, upper, n, matrix_b, n, vector(values, b), &verdict),
                  library, op);
    }
  });
  check_info(info, op, [](int32_t verdict) { return no_convergence(verdict, "eigenvalues"); });
}

Tensor linalg_eigvalsh(const Tensor& a, std::string_view uplo) {
  return std::get<0>(ops::_linalg_eigh(a, uplo, may_need_grad(a)));
}

}  // namespace strata::eager
