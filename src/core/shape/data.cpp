#include "core/shape/data.h"

#include "core/promote.h"
#include "core/shape/index.h"
#include "core/shape/strides.h"

namespace strata::shape {
namespace {

// The size that values decide.
template <class S>
S found(const char* op, const char* name, const S& low, const std::optional<S>& high) {
  if constexpr (std::is_same_v<S, SymInt>)
    return SymContext::current(op).unknown(name, low, high);
  else
    throw_error(ErrorKind::NotImplemented,
                str_cat(op,
                        ": the shape of the result depends on values, which shape-only tensors do not have; run it on "
                        "real tensors"));
}

template <class S>
Prepared<S> three(Sizes<S> first, DType dtype, Sizes<S> second, Sizes<S> third) {
  Prepared<S> r(first, dtype);
  r.outputs.push_back({std::move(second), DType::I64});
  r.outputs.push_back({std::move(third), DType::I64});
  return r;
}

template <class S>
Sizes<S> line(S n) {
  Sizes<S> sizes;
  sizes.push_back(std::move(n));
  return sizes;
}

}  // namespace

template <class S>
Prepared<S> nonzero(const Geometry<S>& self) {
  Sizes<S> sizes = line(found<S>("nonzero", "nonzero", S(0), self.numel()));
  sizes.push_back(S(self.dim()));
  return {sizes, DType::I64};
}

template <class S>
Prepared<S> masked_select(const Geometry<S>& self, const Geometry<S>& mask) {
  STRATA_CHECK(mask.dtype == DType::Bool, "masked_select: expected BoolTensor for mask, got ",
               scalar_type_name(mask.dtype));
  S count(1);
  for (const S& s : broadcast(self.sizes, mask.sizes)) count = times<S>(count, s);
  return {line(found<S>("masked_select", "selected", S(0), count)), self.dtype};
}

template <class S>
Prepared<S> unique(const Geometry<S>& self, bool inverse, bool counts) {
  STRATA_CHECK_NOT_IMPLEMENTED(!is_complex(self.dtype), "\"unique\" not implemented for '",
                               scalar_type_name(self.dtype), "'; view it as real first");
  const S n = self.numel();
  const S count = found<S>("unique", "unique", smaller(S(1), n), n);
  return three<S>(line(count), self.dtype, inverse ? Sizes<S>(self.sizes) : line(S(0)), line(counts ? count : S(0)));
}

template <class S>
Prepared<S> unique_slices(const char* op, const Geometry<S>& self, int64_t dim) {
  STRATA_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  dim = wrap_dim(dim, self.dim());
  const S n = self.sizes[size_t(dim)];
  S others(1);
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim) others = others * self.sizes[size_t(d)];
  const bool none = others == S(0);
  STRATA_CHECK(!none || n == S(0),
               "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied (", op, ")");
  STRATA_CHECK(!none, op, ": expected a dim with elements, got shape ", self.sizes);
  Sizes<S> sizes(self.sizes);
  if (n == S(0)) return three<S>(std::move(sizes), self.dtype, line(S(0)), line(S(0)));
  const S count = found<S>(op, "unique", S(1), n);
  sizes[size_t(dim)] = count;
  return three<S>(std::move(sizes), self.dtype, line(n), line(count));
}

template <class S>
Prepared<S> unique_consecutive(const Geometry<S>& self, bool inverse, bool counts, std::optional<int64_t> dim) {
  if (dim) return unique_slices<S>("unique_dim_consecutive", self, *dim);
  return unique<S>(self, inverse, counts);
}

template <class S>
Prepared<S> bincount(const Geometry<S>& self, const Geometry<S>& weights, const S& minlength) {
  STRATA_CHECK_NOT_IMPLEMENTED(is_integral(self.dtype, false), "\"bincount_cpu\" not implemented for '",
                               scalar_type_name(self.dtype), "'; expected integers");
  STRATA_CHECK(minlength >= S(0), "minlength should be >= 0, got ", minlength);
  STRATA_CHECK(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs, got shape ", self.sizes);
  const S n = self.size_at(0);
  if (n == S(0)) return {line(minlength), DType::I64};
  STRATA_CHECK(!weights.defined || (weights.dim() == 1 && weights.size_at(0) == n),
               "weights should be 1-d and have the same length as input");
  const DType dtype = !weights.defined ? DType::I64 : weights.dtype == DType::F32 ? DType::F32 : DType::F64;
  return {line(found<S>("bincount", "bins", larger(minlength, S(1)), std::nullopt)), dtype};
}

template <class S>
Prepared<S> repeat_positions(const Geometry<S>& repeats, const std::optional<S>& output_size) {
  STRATA_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  STRATA_CHECK_NOT_IMPLEMENTED(repeats.dtype == DType::I64 || repeats.dtype == DType::I32,
                               "repeats has to be Long or Int tensor, got ", repeats.dtype);
  return {line(output_size ? *output_size : found<S>("repeat_interleave", "repeated", S(0), std::nullopt)),
          repeats.dtype};
}

template <class S>
Prepared<S> one_hot(const Geometry<S>& self, int64_t num_classes) {
  STRATA_CHECK(self.dtype == DType::I64, "one_hot is only applicable to index tensor of type LongTensor.");
  STRATA_CHECK(num_classes >= -1, "num_classes should be positive or -1, got ", num_classes);
  STRATA_CHECK(num_classes > 0 || !(self.numel() == S(0)), "Can not infer total number of classes from empty tensor.");
  Sizes<S> sizes(self.sizes);
  sizes.push_back(num_classes >= 0 ? S(num_classes) : found<S>("one_hot", "classes", S(1), std::nullopt));
  return {sizes, DType::I64};
}

#define STRATA_RULES(S)                                                                            \
  template Prepared<S> nonzero(const Geometry<S>&);                                                \
  template Prepared<S> masked_select(const Geometry<S>&, const Geometry<S>&);                      \
  template Prepared<S> unique(const Geometry<S>&, bool, bool);                                     \
  template Prepared<S> unique_slices(const char*, const Geometry<S>&, int64_t);                    \
  template Prepared<S> unique_consecutive(const Geometry<S>&, bool, bool, std::optional<int64_t>); \
  template Prepared<S> bincount(const Geometry<S>&, const Geometry<S>&, const S&);                 \
  template Prepared<S> repeat_positions(const Geometry<S>&, const std::optional<S>&);              \
  template Prepared<S> one_hot(const Geometry<S>&, int64_t);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
