#include "core/shape/random.h"

#include <algorithm>
#include <cmath>

#include "core/promote.h"
#include "core/shape/strides.h"

namespace strata::shape {
namespace {

// How many choices of r among n there are. Numbers are checked to fit.
int64_t choice_count(int64_t n, int64_t r, bool with_replacement) {
  if (n == 0 || (!with_replacement && r > n)) return 0;
  const int64_t all = with_replacement ? checked_add(n - 1, r, "combinations") : n;
  __int128 count = 1;
  for (int64_t i = 1, least = std::min(r, all - r); i <= least; ++i) {
    count = count * (all - least + i) / i;
    STRATA_CHECK(count <= INT64_MAX, "combinations: the number of choices of ", r, " among ", n,
                 " does not fit in 64 bits; use a smaller r");
  }
  return int64_t(count);
}

SymInt choice_count(const SymInt& n, int64_t r, bool with_replacement) {
  if (n == 0 || (!with_replacement && n < r)) return 0;
  const SymInt less = with_replacement ? n - 1 : n - r;
  SymInt count = 1;
  for (int64_t i = 1; i <= r; ++i) count = count * (less + i) / i;
  return count;
}

}  // namespace

template <class S>
Prepared<S> randperm(const S& n, const std::optional<DType>& dtype) {
  STRATA_CHECK(n >= S(0), "n must be non-negative, got ", n);
  const DType t = dtype.value_or(DType::I64);
  STRATA_CHECK_NOT_IMPLEMENTED(!is_complex(t) && t != DType::Bool, "\"randperm\" not implemented for '",
                               scalar_type_name(t), "': expected an integer or floating dtype");
  const double most = t == DType::F16    ? 0x1p11
                      : t == DType::BF16 ? 0x1p8
                      : t == DType::F32  ? 0x1p24
                      : t == DType::F64  ? 0x1p53
                                         : std::ldexp(1.0, traits(t).bits - (traits(t).kind == DKind::Signed ? 1 : 0));
  STRATA_CHECK(most >= 0x1p63 || n <= S(int64_t(most)), "n cannot be greater than ", most, " for ", dtype_name(t),
               " type, got ", n);
  return {Sizes<S>(1, n), t};
}

template <class S>
Prepared<S> multinomial(const Geometry<S>& self, const S& samples, bool replacement) {
  STRATA_CHECK(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  STRATA_CHECK(is_float(self.dtype),
               "multinomial only supports floating-point dtypes for input, got: ", scalar_type_name(self.dtype));
  STRATA_CHECK(samples > S(0), "cannot sample n_sample <= 0 samples");
  STRATA_CHECK(replacement || samples <= self.sizes.back(),
               "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  STRATA_CHECK(self.sizes.back() <= S(int64_t(1) << 24), "number of categories cannot exceed 2^24");
  Sizes<S> sizes(self.sizes);
  sizes.back() = samples;
  return {std::move(sizes), DType::I64};
}

template <class S>
Prepared<S> poisson(const Geometry<S>& rate) {
  STRATA_CHECK_NOT_IMPLEMENTED(is_float(rate.dtype), "\"poisson_cpu\" not implemented for '",
                               scalar_type_name(rate.dtype), "'; convert the input with .to() first");
  return {rate.sizes, rate.dtype};
}

template <class S>
Prepared<S> binomial(const Geometry<S>& count, const Geometry<S>& prob) {
  STRATA_CHECK_VALUE(is_float(count.dtype),
                     "binomial only supports floating-point dtypes for count, got: ", scalar_type_name(count.dtype));
  Sizes<S> sizes = broadcast<S>(count.sizes, prob.sizes);
  const bool plain = count.sizes == ArrayRef<S>(sizes);
  Sizes<S> strides = plain ? Sizes<S>() : result_strides<S>(sizes, {count, prob});
  Prepared<S> r;
  r.add({std::move(sizes), count.dtype, std::move(strides)});
  STRATA_CHECK_NOT_IMPLEMENTED(count.dtype == DType::F32 || count.dtype == DType::F64,
                               "\"binomial_cpu\" not implemented for '", scalar_type_name(count.dtype),
                               "'; convert count and prob to float32 first");
  STRATA_CHECK(count.dtype == prob.dtype, "binomial: expected count and prob of one dtype, but found ", count.dtype,
               " and ", prob.dtype);
  return r;
}

template <class S>
Prepared<S> generator_state() {
  return {Sizes<S>(1, S(16)), DType::U8};
}

template <class S>
Prepared<S> new_generator_state(const Geometry<S>& state) {
  STRATA_CHECK_TYPE(
      state.dtype == DType::U8 && state.numel() == S(16) && (state.device.is_cpu() || state.device.is_meta()),
      "RNG state must be a strata.uint8 tensor of 16 elements on the CPU, got ", state.dtype, " of ", state.numel());
  return {};
}

template <class S>
Prepared<S> choices(const S& n, int64_t r, bool with_replacement) {
  STRATA_CHECK(n >= S(0) && r >= 1, "_choices: expected n of 0 or more and r of 1 or more, got ", n, " and ", r);
  const S count = choice_count(n, r, with_replacement);
  times(count, S(r));
  return {Sizes<S>{count, S(r)}, DType::I64};
}

#define STRATA_RULES(S)                                                  \
  template Prepared<S> randperm(const S&, const std::optional<DType>&);  \
  template Prepared<S> multinomial(const Geometry<S>&, const S&, bool);  \
  template Prepared<S> poisson(const Geometry<S>&);                      \
  template Prepared<S> binomial(const Geometry<S>&, const Geometry<S>&); \
  template Prepared<S> generator_state();                                \
  template Prepared<S> new_generator_state(const Geometry<S>&);          \
  template Prepared<S> choices(const S&, int64_t, bool);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
