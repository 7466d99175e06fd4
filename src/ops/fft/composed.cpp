// A length whose prime factors are small is split into radices of at most 61 (Cooley and Tukey: n * (sum of radices)
// multiplications); any other becomes a convolution of a length that is a power of two (Bluestein). The order of sums
// depends on the length alone.
#include "ops/fft/composed.h"

#include <algorithm>
#include <vector>

#include "core/math.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

constexpr int64_t kLargestPrime = 61;
constexpr int64_t kRadix = 32;  // up to here one product with a matrix is the quickest

// exp(sign * 2 pi i * exponents / count), rounded once from float64; exponents are int64.
Tensor roots(int64_t count, const Tensor& exponents, int sign, DType dtype) {
  const double step = sign * 2 * 3.14159265358979323846 / double(count);
  const Tensor angle = ops::mul(ops::to(ops::remainder(exponents, Scalar(count)), DType::F64), Scalar(step));
  return ops::to(ops::complex(ops::cos(angle), ops::sin(angle)), dtype);
}

Tensor numbers(const Tensor& like, int64_t from, int64_t to) {
  return ops::arange(Scalar(from), Scalar(to), DType::I64, like.device());
}

// exp(sign * 2 pi i * r * c / count) at row r and column c.
Tensor matrix_of_roots(const Tensor& like, int64_t rows, int64_t columns, int64_t count, int sign) {
  const Tensor exponents = ops::mul(ops::unsqueeze(numbers(like, 0, rows), 1), numbers(like, 0, columns));
  return roots(count, exponents, sign, like.dtype());
}

int64_t largest_prime(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) largest = p;
  return n > 1 ? n : largest;
}

// The divisor of n, at most 61 and not 1, whose ratio to `wanted` is nearest to 1.
int64_t divisor_near(int64_t n, double wanted) {
  int64_t best = 0;
  double least = 0;
  for (int64_t d = 2; d <= std::min(n, kLargestPrime); ++d) {
    const double apart = std::max(double(d) / wanted, wanted / double(d));
    if (n % d || (best && apart >= least)) continue;
    best = d;
    least = apart;
  }
  return best;
}

// The least number of radices of 32 and fewer, as equal as n's divisors allow.
std::vector<int64_t> radices(int64_t n) {
  std::vector<int64_t> found;
  while (n > kRadix && largest_prime(n) < n) {
    int steps = 1;
    for (int64_t all = kRadix; all < n; all *= kRadix) ++steps;
    found.push_back(divisor_near(n, math::pow(double(n), 1.0 / steps)));
    n /= found.back();
  }
  found.push_back(n);
  return found;
}

// The last dim of (lines, n).
Tensor by_radices(Tensor x, int sign) {
  const int64_t lines = x.size(0), n = x.size(1);
  const std::vector<int64_t> parts = radices(n);
  DimVec digits{lines}, order{0};
  int64_t done = lines, rest = n;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const int64_t r = parts[i];
    const Tensor matrix = matrix_of_roots(x, r, r, r, sign);
    x = ops::matmul(matrix, ops::reshape(x, {done, r, rest / r}));
    x = ops::mul(x, matrix_of_roots(x, r, rest / r, rest, sign));
    digits.push_back(r);
    done *= r;
    rest /= r;
  }
  x = ops::matmul(ops::reshape(x, {done, rest}), matrix_of_roots(x, rest, rest, rest, sign));
  digits.push_back(rest);
  for (size_t i = parts.size(); i > 0; --i) order.push_back(int64_t(i));
  return ops::reshape(ops::permute(ops::reshape(x, digits), order), {lines, n});
}

Tensor by_convolution(const Tensor& x, int sign) {
  const int64_t n = x.size(1);
  int64_t size = 1;
  while (size < 2 * n - 1) size *= 2;
  const Tensor k = numbers(x, 0, n);
  const Tensor chirp = roots(2 * n, ops::mul(k, k), sign, DType::C128), filter = ops::_conjugate(chirp);
  const Tensor tail = ops::flip(ops::narrow(filter, 0, 1, n - 1), {0});
  const Tensor gap = ops::new_zeros(filter, {size - 2 * n + 1});
  const Tensor kernel = by_radices(ops::unsqueeze(ops::cat({filter, gap, tail}, 0), 0), -1);
  const Tensor turned = ops::to(chirp, x.dtype());
  const Tensor padded = ops::constant_pad_nd(ops::mul(x, turned), {0, size - n}, Scalar(0));
  const Tensor met = by_radices(ops::mul(by_radices(padded, -1), ops::to(kernel, x.dtype())), 1);
  return ops::mul(ops::narrow(met, 1, 0, n), ops::mul(turned, Scalar(1 / double(size))));
}

}  // namespace

Tensor composed_transform(const Tensor& self, IntArrayRef dims, bool forward) {
  Tensor x = self;
  const int sign = forward ? -1 : 1;
  for (size_t i = dims.size(); i-- > 0;) {
    const int64_t n = x.size(dims[i]);
    if (n == 1) continue;
    const Tensor moved = ops::movedim(x, dims[i], -1);
    const Tensor lines = ops::reshape(moved, {x.numel() / n, n});
    const Tensor made = largest_prime(n) > kLargestPrime ? by_convolution(lines, sign) : by_radices(lines, sign);
    x = ops::movedim(ops::reshape(made, moved.sizes()), -1, dims[i]);
  }
  return x;
}

Tensor composed_from_half(const Tensor& self, IntArrayRef dims, int64_t length) {
  const int64_t last = dims.back();
  const Tensor half = composed_transform(self, dims.slice(0, dims.size() - 1), false);
  const Tensor rest = ops::flip(ops::_conjugate(ops::narrow(half, last, 1, (length - 1) / 2)), {last});
  const Tensor whole = composed_transform(ops::cat({half, rest}, last), {last}, false);
  return ops::real(whole);
}

Tensor scaled(const Tensor& t, double scale) { return scale == 1 ? t : ops::mul(t, Scalar(scale)); }

}  // namespace strata::eager
