// Functions composed of operators, differentiable by their parts.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/checked.h"
#include "compose/powers.h"
#include "core/default_device.h"
#include "core/parallel.h"
#include "core/promote.h"
#include "dispatch/tls.h"
#include "run/prepare.h"
#include "run/visit.h"
#include "strata/generated/by_hand/compose.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/compose.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/distance.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/matmul.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/scan.h"
#include "strata/generated/ops/scatter.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/sort.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/vector_norm.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  return ops::linalg_vector_norm(ops::sub(self, other), p);
}

// ---- products of vectors of 3

Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  STRATA_CHECK(self.dim() == other.dim(), "linalg.cross: inputs must have the same number of dimensions, got ",
               self.sizes(), " and ", other.sizes());
  STRATA_CHECK(self.dtype() == other.dtype(), "linalg.cross: expected scalar type ", scalar_type_name(self.dtype()),
               " but found ", scalar_type_name(other.dtype()), "; convert other with .to() first");
  STRATA_CHECK(wrap_dim(dim, self.dim()) >= 0 && self.size(dim) == 3 && other.size(dim) == 3,
               "linalg.cross: inputs dimension ", dim, " must have length 3. Got ", self.size(dim), " and ",
               other.size(dim));
  auto turned = [&](const Tensor& t, int64_t by) {
    DimVec shift{by}, along{dim};
    return ops::roll(t, shift, along);
  };
  const DType dtype = self.dtype(), wide = wide_dtype(dtype);  // of half types the result alone is rounded
  auto widened = [&](const Tensor& t) { return wide == dtype ? t : ops::to(t, wide); };
  const Tensor a = widened(self), b = widened(other);
  const Tensor made = ops::sub(ops::mul(turned(a, -1), turned(b, -2)), ops::mul(turned(a, -2), turned(b, -1)));
  return wide == dtype ? made : ops::to(made, dtype);
}

Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (dim) return linalg_cross(self, other, *dim);
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.sizes()[d] == 3) return linalg_cross(self, other, d);
  STRATA_CHECK(false, "no dimension of size 3 in input: cross got shape ", self.sizes());
}

// ---- distances between rows

namespace {

// Whether what is made on the way takes memory here and is seen by nobody: no gradient is to be recorded, no mode or
// recording is on.
bool unseen(const Tensor& a, const Tensor& b) {
  return dispatch_tls.include.empty() && by_hand(a) && by_hand(b) &&
         !(grad_enabled() && (a.requires_grad() || b.requires_grad()));
}

}  // namespace

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
  STRATA_CHECK(x1.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
  STRATA_CHECK(x2.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
  STRATA_CHECK(x1.size(-1) == x2.size(-1), "X1 and X2 must have the same number of columns. X1: ", x1.size(-1),
               " X2: ", x2.size(-1));
  for (const Tensor* t : {&x1, &x2})
    STRATA_CHECK(t->is_floating_point(), "cdist only supports floating-point dtypes, got: ", t->dtype());
  STRATA_CHECK(p >= 0, "cdist only supports non-negative p values, got ", p);
  STRATA_CHECK(mode.value_or(0) >= 0 && mode.value_or(0) <= 2, "possible modes: 0, 1, 2, but was: ", mode.value_or(0));
  // As in PyTorch: a product is quicker, and loses digits.
  const int64_t rows = std::max(x1.size(-2), x2.size(-2)), how = mode.value_or(0);
  DimVec batch = broadcast_shapes(x1.sizes().slice(0, size_t(x1.dim() - 2)), x2.sizes().slice(0, size_t(x2.dim() - 2)));
  const DType dtype = promote_types(x1.dtype(), x2.dtype());
  const auto expanded = [&](const Tensor& x) {
    DimVec sizes = batch;
    sizes.push_back(x.size(-2));
    sizes.push_back(x.size(-1));
    return ops::expand(x.dtype() == dtype ? x : ops::to(x, dtype), sizes);
  };
  if (p == 2 && (how == 1 || (how == 0 && rows > 25)) && x1.dtype() == x2.dtype() && x1.numel() && x2.numel())
    return ops::_euclidean_dist(expanded(x1), expanded(x2));
  STRATA_CHECK_NOT_IMPLEMENTED(!is_half(x1.dtype()) && !is_half(x2.dtype()), "\"cdist\" not implemented for '",
                               scalar_type_name(x1.dtype()), "'; convert the operands to float32 first");
  return ops::_distances(expanded(x1), expanded(x2), p);
}

Tensor pdist(const Tensor& self, double p) {
  STRATA_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
  STRATA_CHECK(self.is_floating_point(), "pdist only supports floating-point dtypes, got ", self.dtype());
  STRATA_CHECK(p >= 0, "pdist only supports non-negative p values, got ", p);
  const int64_t n = self.sizes()[0];
  STRATA_CHECK_NOT_IMPLEMENTED(
      n < 2 || self.sizes()[1] == 0 || self.dtype() == DType::F32 || self.dtype() == DType::F64,
      "\"pdist\" not implemented for '", scalar_type_name(self.dtype()), "'; convert the operand with .to() first");
  constexpr int64_t kFew = 1 << 14, kNear = 1 << 16;  // elements of differences
  const DimVec last{-1};
  if (n < 2) return ops::flatten(ops::narrow(self, 0, 0, 0), 0, -1);
  if (self.size(1) == 0 || n * n * self.size(1) < kFew || !unseen(self, self)) {
    const Tensor pairs = [&] {
      const KindGuard kind(self);
      return ops::triu_indices(n, n, 1, DType::I64, self.device());
    }();
    const Tensor first = ops::select(pairs, 0, 0), second = ops::select(pairs, 0, 1);
    if (self.size(1) == 0) return ops::index_select(ops::sum(self, OptIntArrayRef(last), false), 0, first);
    const Tensor all = ops::flatten(ops::_distances(self, self, p), 0, 1);
    return ops::index_select(all, 0, ops::add(ops::mul(first, Scalar(n)), second));
  }
  // Some rows at a time with all that follow: their differences stay in a cache.
  const Tensor x = ops::contiguous(self, MemoryFormat::Contiguous);
  std::vector<Tensor> made;
  for (int64_t i = 0, some = 1; i + 1 < n; i += some) {
    const int64_t rest = n - i - 1;
    some = std::clamp<int64_t>(kNear / std::max<int64_t>(1, rest * x.size(1)), 1, rest);
    const Tensor block =
        ops::linalg_vector_norm(ops::sub(ops::unsqueeze(ops::narrow(x, 0, i, some), 1), ops::narrow(x, 0, i + 1, rest)),
                                Scalar(p), OptIntArrayRef(last));
    for (int64_t r = 0; r < some; ++r) made.push_back(ops::narrow(ops::select(block, 0, r), 0, r, rest - r));
  }
  return ops::cat(made, 0);
}

// ---- integrals

namespace {

// The areas between neighbours along dim; x undefined: points dx apart.
Tensor trapezia(const Tensor& y, const Tensor& x, const Scalar& dx, int64_t dim) {
  STRATA_CHECK(!x.defined() || (x.dtype() != DType::Bool && y.dtype() != DType::Bool),
               "trapezoid: received a bool input for `x` or `y`, but bool is not supported");
  STRATA_CHECK(y.dtype() != DType::Bool, "trapezoid: received a bool input for `y`, but bool is not supported");
  STRATA_CHECK_INDEX(y.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions (in trapezoid)");
  const int64_t d = wrap_dim(dim, y.dim()), n = y.sizes()[d], pairs = n > 0 ? n - 1 : 0;
  Tensor sums = ops::add(ops::narrow(y, d, n - pairs, pairs), ops::narrow(y, d, 0, pairs));
  if (!x.defined()) {  // a length, and no integer: it must not wrap
    const Scalar length = dx.is_integral(true) ? Scalar(dx.to_double()) : dx;
    return ops::mul(ops::mul(sums, length), Scalar(0.5));
  }
  Tensor points = x;
  if (x.dim() == 1) {
    STRATA_CHECK(x.sizes()[0] == n, "trapezoid: There must be one `x` value for each sample point, got ", x.sizes()[0],
                 " for ", n, " points");
    DimVec shape(y.dim(), 1);
    shape[d] = n;
    points = ops::reshape(x, shape);
  } else if (x.dim() < y.dim()) {
    DimVec shape(y.dim() - x.dim(), 1);
    for (int64_t size : x.sizes()) shape.push_back(size);
    points = ops::reshape(x, shape);
  }
  // Of points with more dims than y the dim of y's number, from the front.
  const int64_t m = std::max<int64_t>(points.size(d), 1);
  Tensor steps = ops::sub(ops::narrow(points, d, points.size(d) - (m - 1), m - 1), ops::narrow(points, d, 0, m - 1));
  return ops::mul(ops::mul(sums, steps), Scalar(0.5));
}

// Without points the integral is 0 in y's own dtype.
Tensor integral(const Tensor& y, const Tensor& x, const Scalar& dx, int64_t dim) {
  STRATA_CHECK_INDEX(y.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions (in trapezoid)");
  const int64_t d = wrap_dim(dim, y.dim());
  if (y.sizes()[d] == 0) {
    DimVec sizes(y.sizes());
    sizes.erase(d);
    return ops::zeros(sizes, y.dtype(), y.device());
  }
  DimVec along{d};
  if (x.defined()) return ops::sum(trapezia(y, x, dx, dim), OptIntArrayRef(along));
  // Every point twice but for the ends: fewer roundings than a sum of areas.
  STRATA_CHECK(y.dtype() != DType::Bool, "trapezoid: received a bool input for `y`, but bool is not supported");
  Tensor ends = ops::mul(ops::add(ops::select(y, d, 0), ops::select(y, d, -1)), Scalar(0.5));
  return ops::mul(ops::sub(ops::sum(y, OptIntArrayRef(along)), ends), dx);
}

}  // namespace

Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) { return integral(y, x, {}, dim); }
Tensor trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) { return integral(y, {}, dx, dim); }
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  return ops::cumsum(trapezia(y, x, {}, dim), y.dim() > 0 ? wrap_dim(dim, y.dim()) : dim);
}
Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  return ops::cumsum(trapezia(y, {}, dx, dim), dim);
}

Tensor ldexp_inplace(const Tensor& self, const Tensor& other) {
  // Recorded, as its part is, which keeps its operand.
  const Tensor result = ops::ldexp(self.requires_grad() ? ops::clone(self) : self, other);
  check_result(self, result, "ldexp_");
  return ops::copy_(self, result);
}

// ---- matrices of special form

Tensor fill_diagonal_(const Tensor& self, const Scalar& value, bool wrap) {
  STRATA_CHECK(self.dim() >= 2, "dimensions must larger than 1: fill_diagonal_ got shape ", self.sizes());
  const int64_t rows = self.sizes()[0], columns = self.sizes()[1];
  int64_t step = 0, count = rows;
  for (int64_t d = 0; d < self.dim(); ++d) {
    STRATA_CHECK(self.dim() == 2 || self.sizes()[d] == rows, "all dimensions of input must be of equal length, got ",
                 self.sizes());
    count = std::min(count, self.sizes()[d]);
    step += self.strides()[d];
  }
  DimVec size{count}, stride{step};
  ops::fill_(ops::as_strided(self, size, stride, std::nullopt), value);
  // Below the last column one row stays free, then the diagonal begins anew.
  if (wrap && self.dim() == 2)
    for (int64_t first = columns + 1; first < rows; first += columns + 1)
      ops::fill_(ops::diagonal(ops::narrow(self, 0, first, rows - first)), value);
  return self;
}

Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  STRATA_CHECK(p.to_double() > 0, "renorm: non-positive-norm not supported, got p = ", p.to_double());
  STRATA_CHECK(maxnorm.to_double() >= 0, "renorm: expected maxnorm to be >= 0 but got ", maxnorm.to_double());
  STRATA_CHECK(self.dim() > 1, "renorm: input needs at least 2 dimensions, got ", self.dim(), " dimensions");
  const int64_t kept = wrap_dim(dim, self.dim());
  DimVec others;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != kept) others.push_back(d);
  // Norms of halves stay in float32 until the product.
  const auto wide = is_half(self.dtype()) ? std::optional(DType::F32) : std::nullopt;
  Tensor norm = ops::linalg_vector_norm(self, p, OptIntArrayRef(others), true, wide);
  Tensor factor = ops::mul(ops::reciprocal(ops::add(norm, Scalar(1e-7))), maxnorm);
  return ops::to(ops::mul(ops::contiguous(self), ops::where(ops::gt(norm, maxnorm), factor, Scalar(1.0))),
                 self.dtype());
}

Tensor vander(const Tensor& x, std::optional<int64_t> columns, bool increasing) {
  STRATA_CHECK(x.dim() == 1, "x must be a one-dimensional tensor: vander got shape ", x.sizes());
  const int64_t n = columns.value_or(x.sizes()[0]);
  STRATA_CHECK(n >= 0, "N must be non-negative: vander got ", n);
  DimVec empty{x.sizes()[0], 0}, last{1};
  if (n == 0) return ops::new_zeros(is_integral(x.dtype(), true) ? ops::to(x, DType::I64) : x, empty);
  Tensor r = powers_of(x, n);
  return increasing ? r : ops::flip(r, last);
}

void choices(const Tensor& index, int64_t n, int64_t r, bool with_replacement, std::optional<Device>) {
  const int64_t count = index.sizes()[0];
  std::vector<int64_t> at(count > 0 ? r : 0);
  for (size_t i = 0; i < at.size(); ++i) at[i] = with_replacement ? 0 : int64_t(i);
  // In lexicographic order: the last place that can still grow does, and those behind it begin again.
  for (int64_t row = 0; row < count; ++row) {
    std::copy(at.begin(), at.end(), index.data<int64_t>() + row * r);
    int64_t i = r;
    while (i-- > 0)
      if (at[i] < (with_replacement ? n - 1 : n - r + i)) break;
    if (i < 0) break;
    ++at[i];
    for (int64_t j = i + 1; j < r; ++j) at[j] = with_replacement ? at[i] : at[j - 1] + 1;
  }
}

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  STRATA_CHECK(self.dim() == 1, "Expect a 1D vector, but got shape ", self.sizes());
  STRATA_CHECK(r >= 0, "Expect a non-negative number, but got ", r);
  if (r == 0) return ops::new_empty(self, {0});
  const int64_t n = self.sizes()[0];
  const Tensor index = [&] {
    const KindGuard kind(self);
    return ops::_choices(n, r, with_replacement, self.device());
  }();
  return ops::reshape(ops::index_select(self, 0, ops::reshape(index, {-1})), index.sizes());
}

}  // namespace strata::eager
