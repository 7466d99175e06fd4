#include "core/shape/scan.h"

#include "base/checked.h"
#include "core/promote.h"

namespace strata::shape {
namespace {

template <class S>
Prepared<S> along(const Geometry<S>& self, int64_t dim, DType dtype) {
  Prepared<S> r(self.sizes, dtype);
  r.place("i", wrap_dim(dim, self.dim()));
  r.rank = 1;
  return r;
}

}  // namespace

template <class S>
Prepared<S> scan_sum(const char* op, const Geometry<S>& self, int64_t dim, std::optional<DType> dtype) {
  STRATA_CHECK_NOT_IMPLEMENTED(dtype != DType::Bool, "\"", op,
                               "\" not implemented for 'Bool'; give dtype=int64 or convert the result");
  return along(self, dim, dtype ? *dtype : is_integral(self.dtype, true) ? DType::I64 : self.dtype);
}

template <class S>
Prepared<S> scan(const Geometry<S>& self, int64_t dim) {
  return along(self, dim, self.dtype);
}

template <class S>
Prepared<S> extremes_so_far(const char* op, const Geometry<S>& self, int64_t dim) {
  Prepared<S> r = along(self, dim, self.dtype);
  STRATA_CHECK_NOT_IMPLEMENTED(!is_complex(self.dtype) || self.dim() == 0 || self.numel() == S(0), "\"", op,
                               "\" not implemented for '", scalar_type_name(self.dtype),
                               "'; take real() or abs() first");
  r.outputs.push_back({r.outputs[0].sizes, DType::I64});
  return r;
}

template <class S>
Prepared<S> linear_scan(const Geometry<S>& factor, const Geometry<S>& term, int64_t dim) {
  STRATA_CHECK(factor.sizes == term.sizes && factor.dtype == term.dtype,
               "linear_scan: expected operands of one shape and dtype, got ", factor.sizes, " of ", factor.dtype,
               " and ", term.sizes, " of ", term.dtype);
  return along(term, dim, term.dtype);
}

#define STRATA_RULES(S)                                                                          \
  template Prepared<S> scan_sum(const char*, const Geometry<S>&, int64_t, std::optional<DType>); \
  template Prepared<S> scan(const Geometry<S>&, int64_t);                                        \
  template Prepared<S> extremes_so_far(const char*, const Geometry<S>&, int64_t);                \
  template Prepared<S> linear_scan(const Geometry<S>&, const Geometry<S>&, int64_t);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
