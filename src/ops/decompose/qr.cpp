// A = Q R by Householder's reflections.
#include <cstring>

#include "run/copy.h"
#include "strata/generated/by_hand/decompose.h"
#include "vendor/lapack_host.h"

namespace strata::eager {

namespace {

// The upper triangle of the first rows of a (m x n, column-major) into r (rows x n), zeros below.
void upper(const char* a, char* r, int64_t m, int64_t rows, int64_t n, int64_t width) {
  if (rows == 0) return;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t kept = std::min(j + 1, rows);
    std::memcpy(r + j * rows * width, a + j * m * width, kept * width);
    std::memset(r + (j * rows + kept) * width, 0, (rows - kept) * width);
  }
}

}  // namespace

void linalg_qr(const Tensor& q, const Tensor& r, const Tensor& a, std::string_view mode) {
  constexpr const char* op = "linalg.qr";
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), columns = r.size(-2);
  const StrataLapack& library = lapack(op);
  const int type = lapack_type(a.dtype());
  const int64_t width = a.itemsize(), rows = std::max<int64_t>(m, 1);
  Tensor work = columns_of(a), tau = new_tensor(a, with_vector(a.sizes(), k));
  parallel_for(0, batch_count(a.sizes()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      char* factored = static_cast<char*>(matrix(work, b));
      if (k > 0) lapack_done(library.qr_factor(type, m, n, factored, rows, vector(tau, b)), library, op);
      upper(factored, static_cast<char*>(matrix(r, b)), m, columns, n, width);
      if (mode == "r" || columns == 0) continue;
      void* formed = matrix(q, b);
      if (k > 0) std::memcpy(formed, factored, m * k * width);
      lapack_done(library.qr_form(type, m, columns, k, formed, rows, vector(tau, b)), library, op);
    }
  });
}

}  // namespace strata::eager
