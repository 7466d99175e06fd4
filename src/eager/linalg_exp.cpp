// The exponential of matrices by Taylor's polynomial of degree 18 of a scaled matrix, squared as often (Bader, Blanes,
// Casas, "Computing the matrix exponential with an optimized Taylor polynomial approximation", 2019, has the method).
#include <cmath>

#include "core/promote.h"
#include "eager/copy.h"
#include "strata/generated/eager_factor.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

constexpr int degree = 18, block = 5;

// The sum of x^i / i! for i up to the degree: powers up to the fifth, then Horner's rule in the fifth.
Tensor taylor(const Tensor& x) {
  Tensor powers[block + 1];
  powers[0] = ops::expand(ops::eye(x.size(-1), x.dtype(), x.device()), x.sizes());
  powers[1] = x;
  for (int i = 2; i <= block; ++i) powers[i] = ops::matmul(powers[i - 1], x);
  double factorial[degree + 1] = {1};
  for (int i = 1; i <= degree; ++i) factorial[i] = i * factorial[i - 1];  // exact
  Tensor sum;
  for (int first = degree - degree % block; first >= 0; first -= block) {
    Tensor part;
    for (int i = 0; i < block && first + i <= degree; ++i) {
      Tensor term = ops::mul(powers[i], Scalar(1 / factorial[first + i]));
      part = part.defined() ? ops::add(part, term) : term;
    }
    sum = sum.defined() ? ops::add(ops::matmul(sum, powers[block]), part) : part;
  }
  return sum;
}

}  // namespace

void linalg_matrix_exp(const Tensor& result, const Tensor& a) {
  if (a.numel() == 0) return;
  // In double precision: each squaring doubles the error of what went before.
  const Tensor x = as_dtype(a, a.is_complex() ? DType::C128 : DType::F64);
  DimVec rows{-2}, columns{-1};
  const Tensor norms = as_contiguous(ops::amax(ops::sum(ops::abs(x), OptIntArrayRef(rows)), columns, false));
  // Halved until its 1-norm is 1 at most: there the polynomial is exact to double precision.
  Tensor halvings = new_tensor(norms, norms.sizes(), DType::I64), scale = new_tensor(norms, norms.sizes());
  int64_t most = 0;
  for (int64_t i = 0; i < norms.numel(); ++i) {
    const double norm = norms.data<double>()[i];
    int count = 0;
    if (std::isfinite(norm) && norm > 1 && std::frexp(norm, &count) == 0.5) --count;
    halvings.data<int64_t>()[i] = count;
    scale.data<double>()[i] = std::ldexp(1.0, -count);
    most = std::max<int64_t>(most, count);
  }
  auto per_matrix = [](const Tensor& t) { return ops::unsqueeze(ops::unsqueeze(t, -1), -1); };
  Tensor r = taylor(ops::mul(x, per_matrix(scale)));
  for (int64_t i = 0; i < most; ++i) r = ops::where(per_matrix(ops::gt(halvings, Scalar(i))), ops::matmul(r, r), r);
  copy_values(result, r);
}

}  // namespace strata::eager
