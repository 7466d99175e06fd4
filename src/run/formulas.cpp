#include "run/formulas.h"

#include "base/checked.h"
#include "core/promote.h"
#include "core/shape/view.h"
#include "dispatch/seen.h"
#include "dispatch/tls.h"
#include "run/bind.h"
#include "run/copy.h"
#include "run/index_args.h"
#include "run/observe.h"
#include "run/rows.h"
#include "run/view_rules.h"
#include "strata/generated/ops/close.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/view.h"

namespace strata {

namespace {
// Integers as integers where the result fits one, else as float64.
template <class Exact, class F>
Scalar combine(const Scalar& a, const Scalar& b, Exact exact, F f) {
  if (a.is_complex() || b.is_complex()) return Scalar(f(a.to_complex(), b.to_complex()));
  int64_t r;
  const bool integers = a.is_integral(true) && b.is_integral(true) && !a.is_unsigned64() && !b.is_unsigned64();
  if (integers && !exact(a.to_int(), b.to_int(), &r)) return Scalar(static_cast<long>(r));
  return Scalar(f(a.to_double(), b.to_double()));
}
}  // namespace

Scalar operator+(const Scalar& a, const Scalar& b) {
  return combine(
      a, b, [](int64_t x, int64_t y, int64_t* r) { return __builtin_add_overflow(x, y, r); },
      [](auto x, auto y) { return x + y; });
}
Scalar operator-(const Scalar& a, const Scalar& b) {
  return combine(
      a, b, [](int64_t x, int64_t y, int64_t* r) { return __builtin_sub_overflow(x, y, r); },
      [](auto x, auto y) { return x - y; });
}
Scalar operator*(const Scalar& a, const Scalar& b) {
  return combine(
      a, b, [](int64_t x, int64_t y, int64_t* r) { return __builtin_mul_overflow(x, y, r); },
      [](auto x, auto y) { return x * y; });
}
Scalar operator/(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return Scalar(a.to_complex() / b.to_complex());
  return Scalar(a.to_double() / b.to_double());
}

namespace formulas {

int64_t minus(int64_t a, int64_t b) {
  int64_t r;
  STRATA_CHECK(!__builtin_sub_overflow(a, b, &r), "a number of a formula: ", a, " - ", b, " does not fit in 64 bits");
  return r;
}

int64_t floor_divided(int64_t a, int64_t b) {
  STRATA_CHECK(b != 0, "a number of a formula: ", a, " // 0: division by zero");
  if (b == -1) return minus(0, a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

// ---- lists of numbers

int64_t at(IntArrayRef values, int64_t i) { return values[strata::wrap_dim(i, int64_t(values.size()))]; }

DimVec part(IntArrayRef values, int64_t begin, int64_t end) {
  const int64_t n = int64_t(values.size());
  auto place = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  begin = place(begin);
  return DimVec(values.slice(begin, std::max<int64_t>(place(end) - begin, 0)));
}

DimVec joined(IntArrayRef a, IntArrayRef b) {
  DimVec r(a);
  for (int64_t v : b) r.push_back(v);
  return r;
}

int64_t product(IntArrayRef values) { return checked_numel(values, "product"); }

DimVec inverse_order(IntArrayRef dims) {
  DimVec back(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) back[strata::wrap_dim(dims[i], int64_t(dims.size()))] = int64_t(i);
  return back;
}

DimVec broadcast_shapes(IntArrayRef a, IntArrayRef b) { return strata::broadcast_shapes(a, b); }

DimVec row_dims(int64_t ndim, OptIntArrayRef dim) { return eager::row_dims(ndim, dim); }

double largest_of(DType t) { return eager::largest_of(traits(t).component); }

DType result_type(const Tensor& a, const Tensor& b, const Tensor& c) {
  ResultType type;
  type.add(a);
  type.add(b);
  if (c.defined()) type.add(c);
  return type.get();
}

Tensor wrapped_number(const Scalar& value, const Tensor& like) {
  const Tensor number = strata::wrapped_number(value);
  if (!like.is_meta() && like.device().is_cpu()) return number;
  Tensor made = eager::new_tensor(like, {}, number.dtype());
  eager::fill_values(made, value);
  made.impl()->wrapped_number_ = true;
  return made;
}

void check_tensors(TensorList list, std::string_view op) {
  for (const Tensor& t : list) STRATA_CHECK(t.defined(), op, ": expected a list of tensors, got None in it");
}

void check_has_values(const Tensor& t, std::string_view op) { eager::check_has_values(std::string(op).c_str(), t); }

void check_writable(TensorList list, std::string_view op) {
  check_tensors(list, op);
  for (const Tensor& t : list) {
    eager::check_no_overlap(std::string(op).c_str(), t, {});
    t.check_memory();
  }
}

// ---- reductions

Tensor unsqueeze_reduced(const Tensor& t, int64_t ndim, OptIntArrayRef dim, bool keepdim) {
  if (keepdim || ndim == 0) return t;
  if (!dim || dim->empty()) {
    DimVec ones(ndim, 1);
    return ops::reshape(t, ones);
  }
  DimVec dims;
  for (int64_t d : *dim) dims.push_back(wrap_dim(d, ndim));
  std::sort(dims.begin(), dims.end());
  Tensor r = t;
  for (int64_t d : dims) r = ops::unsqueeze(r, d);
  return r;
}

Tensor expand_reduced(const Tensor& t, IntArrayRef sizes, OptIntArrayRef dim, bool keepdim) {
  return ops::expand(unsqueeze_reduced(t, int64_t(sizes.size()), dim, keepdim), sizes);
}

MemoryFormat suggested_format(const Tensor& t) { return eager::suggested_format(t); }

bool is_viewable(const Tensor& t, IntArrayRef shape) {
  return eager::view_strides(t, eager::inferred_sizes(shape, t.numel())).has_value();
}

int64_t reduced_numel(IntArrayRef sizes, OptIntArrayRef dim) {
  int64_t n = 1;
  if (!dim || dim->empty()) {
    for (int64_t s : sizes) n *= s;
    return n;
  }
  if (sizes.empty()) return 1;
  for (int64_t d : *dim) n *= sizes[wrap_dim(d, int64_t(sizes.size()))];
  return n;
}

// ---- corners

Tensor corner(const Tensor& t, IntArrayRef sizes) {
  Tensor r = t;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (r.sizes()[d] != sizes[d]) r = ops::narrow(r, d, 0, sizes[d]);
  return r;
}

Tensor at_corner(const Tensor& t, IntArrayRef sizes) {
  if (t.sizes() == sizes) return t;
  Tensor whole = ops::zeros(sizes, t.dtype(), t.device());
  ops::copy_(ops::as_strided(whole, t.sizes(), whole.strides(), std::nullopt), t);
  return whole;
}

// ---- products

namespace {

// Products of all elements before each one along the last dim, or after it, by doubling: log n steps of which each has
// derivatives.
Tensor products_beside(const Tensor& x, bool before) {
  int64_t n = x.size(-1);
  DimVec one(x.sizes());
  one[x.dim() - 1] = 1;
  Tensor r = ops::ones(one, x.dtype(), x.device());
  if (n == 1) return r;
  r = before ? ops::cat({r, ops::narrow(x, -1, 0, n - 1)}, -1) : ops::cat({ops::narrow(x, -1, 1, n - 1), r}, -1);
  for (int64_t step = 1; step < n; step *= 2) {
    Tensor product = ops::narrow(r, -1, step, n - step) * ops::narrow(r, -1, 0, n - step);
    r = before ? ops::cat({ops::narrow(r, -1, 0, step), product}, -1)
               : ops::cat({product, ops::narrow(r, -1, n - step, step)}, -1);
  }
  return r;
}

}  // namespace

Tensor products_of_others(const Tensor& t) { return products_beside(t, true) * products_beside(t, false); }

// ---- modes and values

bool grad_enabled() { return strata::grad_enabled(); }

bool truth(const Tensor& t) { return ops::item(t).to_bool(); }

int64_t integer(const Tensor& t) {
  eager::check_has_values("a number of a formula", t);
  return ops::item(t).to_int();
}
// Values that shapes do not have: what hangs on them is not told by launches either. A recording has them read all the
// same, which it refuses: what it recorded would be another formula's for other values.
static bool without_values(const Tensor& t) {
  if (!t.is_meta() || recording_here()) return false;
  eager::tell_other();
  return true;
}

Scalar element(const Tensor& t) { return without_values(t) ? Scalar(0) : ops::item(t); }

double least(DType t) { return is_integral(t, true) ? eager::smallest_value(t).to_double() : -largest(t); }
double largest(DType t) {
  return is_integral(t, true) ? eager::largest_value(t).to_double() : eager::largest_of(traits(t).component);
}
Scalar last_integer(DType t) {
  switch (t) {
    case DType::F16:
      return 1L << 11;
    case DType::BF16:
      return 1L << 8;
    case DType::F32:
      return 1L << 24;
    case DType::F64:
      return 1L << 53;
    default:
      return eager::largest_value(t);
  }
}

// Of one bool, whose value an observer may have found though the host runs over shapes; `otherwise` without a value.
static bool truth_of(Tensor (*one)(const Tensor&), const Tensor& t, bool otherwise) {
  eager::LaunchObserver* o = t.is_meta() ? eager::LaunchObserver::current() : nullptr;
  if (o && o->has_values())
    if (const std::optional<bool> known = o->truth(one(t))) return *known;
  return without_values(t) ? otherwise : truth(one(t));
}

bool any_true(const Tensor& t) {
  return truth_of([](const Tensor& x) { return x.numel() == 1 ? x : ops::any(x); }, t, false);
}

bool may_be_true(const Tensor& t) { return (t.is_meta() && t.keys().has(Key::Python)) || any_true(t); }

bool all_true(const Tensor& t) {
  return truth_of([](const Tensor& x) { return ops::all(x); }, t, true);
}

}  // namespace formulas
}  // namespace strata
