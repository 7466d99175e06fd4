#include "core/shape/order.h"

#include "base/checked.h"
#include "core/promote.h"
#include "core/shape/index.h"

namespace strata::shape {
namespace {

// Values and their positions, of one shape.
template <class S>
Prepared<S> with_indices(Sizes<S> sizes, DType dtype) {
  Prepared<S> r(sizes, dtype);
  r.outputs.push_back({std::move(sizes), DType::I64});
  return r;
}

template <class S>
void check_not_empty(const char* op, const Geometry<S>& self, int64_t dim) {
  STRATA_CHECK_INDEX(self.dim() == 0 || self.sizes[size_t(dim)] > S(0), op, "(): Expected reduction dim ", dim,
                     " to have non-zero size.");
}

void check_ordered(const char* op, DType t) {
  STRATA_CHECK_NOT_IMPLEMENTED(!is_complex(t), "\"", op, "\" not implemented for '", scalar_type_name(t),
                               "': complex numbers have no order; take a real tensor such as .abs()");
}

// Positions share a word with keys of up to 32 bits.
template <class S>
void check_line(const char* op, const Geometry<S>& self, int64_t dim) {
  STRATA_CHECK(itemsize(self.dtype) == 8 || self.size_at(dim) <= S(int64_t(0xffffffff)) || self.numel() == S(0), op,
               ": expected at most 2^32 - 1 elements along dim, got ", self.size_at(dim), "; split the tensor");
}

// One value and one index per line; one number, or none, has any dtype.
template <class S>
Prepared<S> per_line(const char* op, const Geometry<S>& self, int64_t dim, bool keepdim) {
  if (self.dim() > 0 && is_complex(self.dtype) && !(self.numel() == S(0))) check_ordered(op, self.dtype);
  check_line(op, self, dim);
  Sizes<S> sizes(self.sizes);
  if (keepdim && self.dim() > 0) sizes[size_t(dim)] = S(1);
  if (!keepdim && self.dim() > 0) sizes.erase(size_t(dim));
  return with_indices<S>(std::move(sizes), self.dtype);
}

void check_not_bool(const char* kernel, DType t) {
  STRATA_CHECK_NOT_IMPLEMENTED(t != DType::Bool, "\"", kernel, "\" not implemented for 'Bool'");
}

}  // namespace

template <class S>
Prepared<S> sort(const Geometry<S>& self, int64_t dim) {
  dim = wrap_dim(dim, self.dim());
  STRATA_CHECK(!is_complex(self.dtype), "Sort does not support complex dtypes on CPU");
  check_line("sort", self, dim);
  return with_indices<S>(self.sizes, self.dtype);
}

template <class S>
Prepared<S> topk(const Geometry<S>& self, const S& k, int64_t dim) {
  dim = wrap_dim(dim, self.dim());
  STRATA_CHECK(k >= S(0) && k <= self.size_at(dim), "selected index k out of range");
  STRATA_CHECK(self.dtype != DType::Bool && !is_complex(self.dtype), "topk does not support ",
               is_complex(self.dtype) ? "complex" : "bool", " dtypes on CPU; convert self first");
  check_line("topk", self, dim);
  return with_indices<S>(with_dim(Sizes<S>(self.sizes), dim, k), self.dtype);
}

template <class S>
Prepared<S> kthvalue(const Geometry<S>& self, const S& k, int64_t dim, bool keepdim) {
  dim = wrap_dim(dim, self.dim());
  check_not_empty("kthvalue", self, dim);
  STRATA_CHECK(k >= S(1) && k <= self.size_at(dim), "kthvalue(): selected number k out of range for dimension ", dim);
  if (self.dim() > 0) {
    check_not_bool("kthvalue_cpu", self.dtype);
    check_ordered("kthvalue", self.dtype);
  }
  return per_line("kthvalue", self, dim, keepdim);
}

template <class S>
Prepared<S> median(const char* op, const Geometry<S>& self) {
  if (!(self.numel() == S(0))) {
    check_not_bool("median_cpu", self.dtype);
    check_ordered(op, self.dtype);
    STRATA_CHECK(itemsize(self.dtype) == 8 || self.numel() <= S(int64_t(0xffffffff)), op,
                 ": expected at most 2^32 - 1 elements, got ", self.numel(), "; split the tensor");
  }
  return {Sizes<S>(), self.dtype};
}

template <class S>
Prepared<S> median_of_lines(const char* op, const Geometry<S>& self, int64_t dim, bool keepdim) {
  dim = wrap_dim(dim, self.dim());
  check_not_empty(op, self, dim);
  check_not_bool("median_cpu", self.dtype);
  check_ordered(op, self.dtype);
  return per_line(op, self, dim, keepdim);
}

template <class S>
Prepared<S> mode(const Geometry<S>& self, int64_t dim, bool keepdim) {
  dim = wrap_dim(dim, self.dim());
  check_not_empty("mode", self, dim);
  return per_line("mode", self, dim, keepdim);
}

#define STRATA_RULES(S)                                                                 \
  template Prepared<S> sort(const Geometry<S>&, int64_t);                               \
  template Prepared<S> topk(const Geometry<S>&, const S&, int64_t);                     \
  template Prepared<S> kthvalue(const Geometry<S>&, const S&, int64_t, bool);           \
  template Prepared<S> median(const char*, const Geometry<S>&);                         \
  template Prepared<S> median_of_lines(const char*, const Geometry<S>&, int64_t, bool); \
  template Prepared<S> mode(const Geometry<S>&, int64_t, bool);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
