// Operators that draw random numbers.
#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "core/default_device.h"
#include "core/math.h"
#include "core/promote.h"
#include "eager/bind.h"
#include "eager/copy.h"
#include "eager/pointwise.h"
#include "eager/random.h"
#include "strata/generated/eager_random.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"

namespace strata::eager {

namespace {
using MaybeType = std::optional<DType>;
using MaybeDevice = std::optional<Device>;
using MaybeFormat = std::optional<MemoryFormat>;

Tensor fresh(IntArrayRef size, MaybeType dtype, MaybeDevice device, DType otherwise) {
  return make_tensor(size, dtype.value_or(otherwise), device.value_or(default_device()));
}
}  // namespace

// ---- uniform and normal numbers

Tensor rand(IntArrayRef size, const Generator& generator, MaybeType dtype, MaybeDevice device) {
  Tensor t = fresh(size, dtype, device, default_dtype());
  fill_uniform(t, 0, 1, generator);
  return t;
}
Tensor rand(IntArrayRef size, MaybeType dtype, MaybeDevice device) { return rand(size, Generator(), dtype, device); }

Tensor randn(IntArrayRef size, const Generator& generator, MaybeType dtype, MaybeDevice device) {
  Tensor t = fresh(size, dtype, device, default_dtype());
  fill_normal(t, 0, 1, generator);
  return t;
}
Tensor randn(IntArrayRef size, MaybeType dtype, MaybeDevice device) { return randn(size, Generator(), dtype, device); }

Tensor rand_like(const Tensor& self, const Generator& generator, MaybeType dtype, MaybeDevice device,
                 MaybeFormat format) {
  Tensor t = ops::empty_like(self, dtype, device, format);
  fill_uniform(t, 0, 1, generator);
  return t;
}
Tensor rand_like(const Tensor& self, MaybeType dtype, MaybeDevice device, MaybeFormat format) {
  return rand_like(self, Generator(), dtype, device, format);
}

Tensor randn_like(const Tensor& self, const Generator& generator, MaybeType dtype, MaybeDevice device,
                  MaybeFormat format) {
  Tensor t = ops::empty_like(self, dtype, device, format);
  fill_normal(t, 0, 1, generator);
  return t;
}
Tensor randn_like(const Tensor& self, MaybeType dtype, MaybeDevice device, MaybeFormat format) {
  return randn_like(self, Generator(), dtype, device, format);
}

namespace {
void refuse_complex(const char* name, const Tensor& self) {
  STRATA_CHECK_NOT_IMPLEMENTED(!self.is_complex(), "\"", name, "\" not implemented for '",
                               scalar_type_name(self.dtype()), "'; fill the real parts of view_as_real()");
}
}  // namespace

namespace {
void check_writable(const char* name, const Tensor& self) {
  STRATA_CHECK(!overlaps_itself(self), name,
               ": unsupported operation: more than one element of the written-to tensor refers "
               "to a single memory location. Please clone() the tensor before performing the operation.");
}
}  // namespace

Tensor uniform_(const Tensor& self, double from, double to, const Generator& generator) {
  check_writable("uniform_", self);
  STRATA_CHECK_NOT_IMPLEMENTED(is_differentiable(self.dtype()), "\"uniform_\" not implemented for '",
                               scalar_type_name(self.dtype()), "'; expected a floating dtype");
  double most = largest_of(traits(self.dtype()).component);
  STRATA_CHECK(from >= -most && from <= most, "from is out of bounds for ", dtype_name(self.dtype()));
  STRATA_CHECK(to >= -most && to <= most, "to is out of bounds for ", dtype_name(self.dtype()));
  STRATA_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  STRATA_CHECK(to - from <= most, "uniform_ expects to-from <= std::numeric_limits<", scalar_type_name(self.dtype()),
               ">::max(), but found to=", to, " and from=", from, " which result in to-from to exceed the limit");
  fill_uniform(self, from, to, generator);
  return self;
}

namespace {
void check_std(double std) { STRATA_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std); }
void check_std(const Tensor& std) {
  STRATA_CHECK(!std.is_complex(), "normal expects standard deviation to be non-complex");
  STRATA_CHECK(std.is_meta() || std.numel() == 0 || ops::item(ops::all(ops::ge(std, Scalar(0)))).to_bool(),
               "normal expects all elements of std >= 0.0");
}
}  // namespace

Tensor normal_(const Tensor& self, double mean, double std, const Generator& generator) {
  check_writable("normal_", self);
  check_std(std);
  fill_normal(self, mean, std, generator);
  return self;
}

Tensor normal(const Tensor& mean, double std, const Generator& generator) {
  check_std(std);
  Tensor t = ops::empty_like(mean, std::nullopt, std::nullopt, MemoryFormat::Contiguous);
  fill_normal(t, 0, std, generator);
  return ops::add(t, mean);
}

Tensor normal(double mean, const Tensor& std, const Generator& generator) {
  check_std(std);
  Tensor t = ops::empty_like(std, std::nullopt, std::nullopt, MemoryFormat::Contiguous);
  fill_normal(t, 0, 1, generator);
  return ops::add(ops::mul(t, std), Scalar(mean));
}

Tensor normal(const Tensor& mean, const Tensor& std, const Generator& generator) {
  check_std(std);
  DimVec sizes = broadcast_shapes(mean.sizes(), std.sizes());
  Tensor t = new_tensor(mean, sizes);
  fill_normal(t, 0, 1, generator);
  return ops::add(ops::mul(t, std), mean);
}

Tensor normal(double mean, double std, IntArrayRef size, const Generator& generator, MaybeType dtype,
              MaybeDevice device) {
  check_std(std);
  Tensor t = fresh(size, dtype, device, default_dtype());
  fill_normal(t, mean, std, generator);
  return t;
}

// ---- other distributions

Tensor log_normal_(const Tensor& self, double mean, double std, const Generator& generator) {
  check_writable("log_normal_", self);
  STRATA_CHECK(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
  if (self.numel() == 0) return self;
  refuse_complex("log_normal_", self);
  fill_normal(self, mean, std, generator);
  ops::exp_(self);
  return self;
}

Tensor exponential_(const Tensor& self, double lambd, const Generator& generator) {
  check_writable("exponential_", self);
  STRATA_CHECK(lambd > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
  fill_exponential(self, lambd, generator);
  return self;
}

Tensor cauchy_(const Tensor& self, double median, double sigma, const Generator& generator) {
  check_writable("cauchy_", self);
  STRATA_CHECK(self.is_floating_point(),
               "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
               "specified ",
               dtype_name(self.dtype()));
  STRATA_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  fill_cauchy(self, median, sigma, generator);
  return self;
}

Tensor geometric_(const Tensor& self, double p, const Generator& generator) {
  check_writable("geometric_", self);
  STRATA_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  if (self.numel() == 0) return self;
  refuse_complex("geometric_", self);
  STRATA_CHECK_NOT_IMPLEMENTED(self.dtype() != DType::Bool, "\"geometric_\" not implemented for 'Bool'; it counts");
  Tensor t = new_tensor(self, self.sizes(), DType::F64);
  fill_exponential(t, -math::log1p(-p), generator);
  copy_values(self, ops::ceil(t));
  return self;
}

Tensor bernoulli_(const Tensor& self, double p, const Generator& generator) {
  check_writable("bernoulli_", self);
  STRATA_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  if (self.numel() > 0) refuse_complex("bernoulli_", self);
  fill_bernoulli(self, p, generator);
  return self;
}

namespace {
void check_probabilities(const Tensor& p) {
  if (p.numel() == 0) return;
  STRATA_CHECK_NOT_IMPLEMENTED(is_float(p.dtype()), "\"bernoulli\" not implemented for '", scalar_type_name(p.dtype()),
                               "': expected probabilities of a floating dtype");
  if (p.is_meta()) return;
  Tensor inside = ops::logical_and(ops::ge(p, Scalar(0)), ops::le(p, Scalar(1)));
  STRATA_CHECK(ops::item(ops::all(inside)).to_bool(), "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
}
}  // namespace

Tensor bernoulli_(const Tensor& self, const Tensor& p, const Generator& generator) {
  check_writable("bernoulli_", self);
  if (self.numel() > 0) refuse_complex("bernoulli_", self);
  check_probabilities(p);
  DimVec shape = broadcast_shapes(self.sizes(), p.sizes());
  STRATA_CHECK(self.sizes() == IntArrayRef(shape), "output with shape ", self.sizes(),
               " doesn't match the broadcast shape ", shape);
  fill_bernoulli(self, p, generator);
  return self;
}

void bernoulli_out(const Tensor& self, const Generator& generator, const Tensor& out) {
  check_probabilities(self);
  STRATA_CHECK(out.defined(), "bernoulli: argument out: expected a tensor, got None");
  check_writable("bernoulli", out);
  check_same_device(out, self, "bernoulli");
  resize_output(out, self.sizes(), "bernoulli");
  fill_bernoulli(out, self, generator);
}

Tensor bernoulli(const Tensor& self, const Generator& generator) {
  check_probabilities(self);
  Tensor t = ops::empty_like(self, std::nullopt, std::nullopt, std::nullopt);
  fill_bernoulli(t, self, generator);
  return t;
}

Tensor bernoulli(const Tensor& self, double p, const Generator& generator) {
  return bernoulli_(ops::empty_like(self, std::nullopt, std::nullopt, std::nullopt), p, generator);
}

// ---- integers

namespace {

// The largest integer below which a dtype holds all of them.
double exact_limit(DType t) {
  switch (t) {
    case DType::F16:
      return 0x1p11;
    case DType::BF16:
      return 0x1p8;
    case DType::F32:
      return 0x1p24;
    default:
      return 0x1p53;
  }
}

void check_bound(const Tensor& self, int64_t value, const char* name) {
  DType t = self.dtype();
  bool fits = is_float(t)
                  ? std::abs(double(value)) <= largest_of(t)
                  : double(value) >= smallest_value(t).to_double() && double(value) <= largest_value(t).to_double();
  STRATA_CHECK(fits && (traits(t).kind != DKind::Unsigned || value >= 0), name, " is out of bounds for ",
               dtype_name(t));
  if (is_float(t) && std::abs(double(value)) > exact_limit(t))
    warn(str_cat(name, " is out of bounds [-", int64_t(exact_limit(t)), ", ", int64_t(exact_limit(t)),
                 "]. Due to precision limitations ", dtype_name(t),
                 " can support discrete uniform distribution only within this range."));
}

Tensor integers(const Tensor& self, int64_t low, int64_t high, const Generator& generator) {
  STRATA_CHECK(!self.is_complex(), "random_: expected a real dtype, got ", self.dtype());
  STRATA_CHECK(low < high, "random_ expects 'from' to be less than 'to', but got from=", low, " >= to=", high);
  check_bound(self, low, "from");
  check_bound(self, high - 1, "to - 1");
  fill_integers(self, low, uint64_t(high) - uint64_t(low), generator);
  return self;
}

// One past the largest integer of random_() and random_(from, None); 0 stands for 2^64.
uint64_t whole_range(DType t) {
  if (is_float(t)) return uint64_t(exact_limit(t)) + 1;
  if (t == DType::Bool) return 2;
  int bits = traits(t).bits - (traits(t).kind == DKind::Signed ? 1 : 0);
  return bits == 64 ? 0 : uint64_t(1) << bits;
}

}  // namespace

Tensor random_(const Tensor& self, const Generator& generator) {
  check_writable("random_", self);
  if (self.numel() == 0) return self;
  refuse_complex("random_", self);
  fill_integers(self, 0, whole_range(self.dtype()), generator);
  return self;
}

Tensor random_(const Tensor& self, int64_t to, const Generator& generator) {
  check_writable("random_", self);
  return integers(self, 0, to, generator);
}

Tensor random_(const Tensor& self, int64_t from, std::optional<int64_t> to, const Generator& generator) {
  check_writable("random_", self);
  if (to) return integers(self, from, *to, generator);
  STRATA_CHECK(!self.is_complex(), "random_: expected a real dtype, got ", self.dtype());
  check_bound(self, from, "from");
  fill_integers(self, from, whole_range(self.dtype()) - uint64_t(from), generator);
  return self;
}

Tensor randint(int64_t low, int64_t high, IntArrayRef size, const Generator& generator, MaybeType dtype,
               MaybeDevice device) {
  return integers(fresh(size, dtype, device, DType::I64), low, high, generator);
}
Tensor randint(int64_t low, int64_t high, IntArrayRef size, MaybeType dtype, MaybeDevice device) {
  return randint(low, high, size, Generator(), dtype, device);
}
Tensor randint(int64_t high, IntArrayRef size, const Generator& generator, MaybeType dtype, MaybeDevice device) {
  return randint(0, high, size, generator, dtype, device);
}
Tensor randint(int64_t high, IntArrayRef size, MaybeType dtype, MaybeDevice device) {
  return randint(0, high, size, Generator(), dtype, device);
}
Tensor randint_like(const Tensor& self, int64_t low, int64_t high, MaybeType dtype, MaybeDevice device,
                    MaybeFormat format) {
  return integers(ops::empty_like(self, dtype, device, format), low, high, Generator());
}
Tensor randint_like(const Tensor& self, int64_t high, MaybeType dtype, MaybeDevice device, MaybeFormat format) {
  return randint_like(self, 0, high, dtype, device, format);
}

}  // namespace strata::eager
