// Decompositions of matrices, in plain loops: they serve initialisation, not heavy numerical work.
#include <cmath>
#include <vector>

#include "core/parallel.h"
#include "eager/copy.h"
#include "strata/generated/eager_linalg.h"

namespace strata::eager {

namespace {

// A matrix of m rows, column after column, while reflections turn it into R; v keeps their vectors.
template <class T>
class Reflections {
 public:
  Reflections(int64_t m, int64_t n) : m_(m), n_(n), k_(std::min(m, n)), a_(m * n), v_(m * k_), tau_(k_) {}

  void decompose(const T* rows) {
    for (int64_t i = 0; i < m_; ++i)
      for (int64_t j = 0; j < n_; ++j) a_[j * m_ + i] = rows[i * n_ + j];
    for (int64_t j = 0; j < k_; ++j) {
      T* column = &a_[j * m_];
      T* v = &v_[j * m_];
      T rest = 0;
      for (int64_t i = j + 1; i < m_; ++i) rest += column[i] * column[i];
      for (int64_t i = 0; i < m_; ++i) v[i] = i > j ? column[i] : T(0);
      v[j] = 1;
      tau_[j] = 0;
      if (rest == 0) continue;  // nothing below the diagonal to remove
      // The sign that adds to the diagonal instead of cancelling it.
      T top = column[j], beta = -std::copysign(std::sqrt(top * top + rest), top);
      tau_[j] = (beta - top) / beta;
      for (int64_t i = j + 1; i < m_; ++i) v[i] /= top - beta;
      for (int64_t c = j + 1; c < n_; ++c) reflect(j, &a_[c * m_]);
      column[j] = beta;
      for (int64_t i = j + 1; i < m_; ++i) column[i] = 0;
    }
  }

  void upper(T* to, int64_t rows) const {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n_; ++j) to[i * n_ + j] = i <= j ? a_[j * m_ + i] : T(0);
  }

  void orthogonal(T* to, int64_t columns) const {
    std::vector<T> column(m_);
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t i = 0; i < m_; ++i) column[i] = T(i == c);
      for (int64_t j = k_; j-- > 0;) reflect(j, column.data());
      for (int64_t i = 0; i < m_; ++i) to[i * columns + c] = column[i];
    }
  }

 private:
  // x -= tau * v * (v . x)
  void reflect(int64_t j, T* x) const {
    const T* v = &v_[j * m_];
    T dot = 0;
    for (int64_t i = j; i < m_; ++i) dot += v[i] * x[i];
    dot *= tau_[j];
    for (int64_t i = j; i < m_; ++i) x[i] -= dot * v[i];
  }

  int64_t m_, n_, k_;
  std::vector<T> a_, v_, tau_;
};

template <class T>
void decompose_all(const Tensor& a, const Tensor& q, const Tensor& r) {
  const int64_t d = a.dim(), m = a.sizes()[d - 2], n = a.sizes()[d - 1], rows = r.sizes()[d - 2];
  const int64_t columns = q.numel() == 0 ? 0 : q.sizes()[d - 1];
  const int64_t count = rows * n > 0 ? r.numel() / (rows * n) : columns > 0 ? q.numel() / (m * columns) : 0;
  parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    Reflections<T> work(m, n);
    for (int64_t b = begin; b < end; ++b) {
      work.decompose(a.data<T>() + b * m * n);
      if (n > 0) work.upper(r.data<T>() + b * rows * n, rows);
      if (columns > 0) work.orthogonal(q.data<T>() + b * m * columns, columns);
    }
  });
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_qr(const Tensor& a, std::string_view mode) {
  STRATA_CHECK(a.dim() >= 2, "linalg.qr: The input tensor A must have at least 2 dimensions, got shape ", a.sizes());
  STRATA_CHECK(mode == "reduced" || mode == "complete" || mode == "r", "qr received unrecognized mode '", mode,
               "' but expected one of 'reduced' (default), 'r', or 'complete'");
  STRATA_CHECK(is_differentiable(a.dtype()) && a.dtype() != DType::F16 && a.dtype() != DType::BF16,
               "linalg.qr: expected float32 or float64, got ", a.dtype(), "; convert A with .to() first");
  STRATA_CHECK_NOT_IMPLEMENTED(!a.is_complex(), "linalg.qr: not implemented for ", a.dtype());
  const int64_t d = a.dim(), m = a.sizes()[d - 2], n = a.sizes()[d - 1], k = std::min(m, n);
  DimVec q(a.sizes()), r(a.sizes());
  r[d - 2] = mode == "complete" ? m : k;
  q[d - 1] = mode == "complete" ? m : k;
  Tensor left = mode == "r" ? new_tensor(a, {0}) : new_tensor(a, q), right = new_tensor(a, r);
  if (a.is_meta()) return {left, right};
  if (a.dtype() == DType::F64)
    decompose_all<double>(as_contiguous(a), left, right);
  else
    decompose_all<float>(as_contiguous(a), left, right);
  return {left, right};
}

}  // namespace strata::eager
