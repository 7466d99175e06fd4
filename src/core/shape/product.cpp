#include "core/shape/product.h"

#include "core/promote.h"

namespace strata::shape {
namespace {

template <class S>
void check_dtypes(const char* op, const char* first, const Geometry<S>& a, const char* second, const Geometry<S>& b) {
  STRATA_CHECK(a.dtype == b.dtype, "expected ", first, " and ", second, " to have the same dtype, but ", op,
               " got: ", scalar_type_name(a.dtype), " != ", scalar_type_name(b.dtype), "; convert one with .to()");
}

// Raises where the dtype has no products; `empty`: there are none to compute.
void check_products(const char* op, DType dtype, bool empty) {
  const bool has = dtype != DType::Bool && dtype != DType::U16 && dtype != DType::U32 && dtype != DType::U64;
  STRATA_CHECK_NOT_IMPLEMENTED(has || empty, "\"", op, "\" not implemented for '", scalar_type_name(dtype),
                               "'; convert the operands with .to() first");
}

template <class S>
bool is_empty(const Sizes<S>& sizes) {
  for (const S& s : sizes)
    if (s == S(0)) return true;
  return false;
}

template <class S>
Prepared<S> product(const char* op, const char* first, const Geometry<S>& a, const char* second, const Geometry<S>& b) {
  STRATA_CHECK(a.dim() == 2, first, " must be a matrix: ", op, " expected 2 dims, got ", a.dim(), "-D tensor");
  STRATA_CHECK(b.dim() == 2, second, " must be a matrix: ", op, " expected 2 dims, got ", b.dim(), "-D tensor");
  STRATA_CHECK(a.sizes[1] == b.sizes[0], "mat1 and mat2 shapes cannot be multiplied (", a.sizes[0], "x", a.sizes[1],
               " and ", b.sizes[0], "x", b.sizes[1], ")");
  check_dtypes(op, first, a, second, b);
  return Prepared<S>({a.sizes[0], b.sizes[1]}, a.dtype);
}

template <class S>
Prepared<S> batch(const char* op, const Geometry<S>& a, const Geometry<S>& b) {
  STRATA_CHECK(a.dim() == 3, op, ": batch1 must be a 3D tensor, got ", a.dim(), "-D");
  STRATA_CHECK(b.dim() == 3, op, ": batch2 must be a 3D tensor, got ", b.dim(), "-D");
  STRATA_CHECK(a.sizes[0] == b.sizes[0] && a.sizes[2] == b.sizes[1],
               "Expected size for first two dimensions of batch2 tensor to be: [", a.sizes[0], ", ", a.sizes[2],
               "] but got: [", b.sizes[0], ", ", b.sizes[1], "] (", op, ").");
  check_dtypes(op, "batch1", a, "batch2", b);
  return Prepared<S>({a.sizes[0], a.sizes[1], b.sizes[2]}, a.dtype);
}

template <class S>
Prepared<S> by_vector(const char* op, const Geometry<S>& mat, const Geometry<S>& vec) {
  STRATA_CHECK(mat.dim() == 2 && vec.dim() == 1, op, ": vector + matrix @ vector expected, got a matrix of ", mat.dim(),
               " dims and a vector of ", vec.dim());
  STRATA_CHECK(mat.sizes[1] == vec.sizes[0], "size mismatch, got input (", mat.sizes[0], "), mat (", mat.sizes[0], "x",
               mat.sizes[1], "), vec (", vec.sizes[0], ")");
  check_dtypes(op, "mat", mat, "vec", vec);
  return Prepared<S>({mat.sizes[0]}, mat.dtype);
}

// Self, the first operand, is added to the product.
template <class S>
void add(Prepared<S>& r, const char* op, const Geometry<S>& self) {
  const Sizes<S>& to = r.outputs[0].sizes;
  STRATA_CHECK(self.dtype == r.outputs[0].dtype, "expected self and the matrices to have the same dtype, but ", op,
               " got: ", scalar_type_name(self.dtype), " != ", scalar_type_name(r.outputs[0].dtype),
               "; convert one with .to()");
  STRATA_CHECK(to.size() >= self.sizes.size(), "expand(", self.sizes, ", size=", ArrayRef<S>(to),
               "): the number of sizes provided (", to.size(),
               ") must be greater or equal to the number of dimensions in the tensor (", self.sizes.size(), ")");
  const size_t lead = to.size() - self.sizes.size();
  for (size_t d = to.size(); d-- > lead;)
    STRATA_CHECK(self.sizes[d - lead] == to[d] || self.sizes[d - lead] == S(1), "The expanded size of the tensor (",
                 to[d], ") must match the existing size (", self.sizes[d - lead], ") at non-singleton dimension ", d,
                 ".  Target sizes: ", ArrayRef<S>(to), ".  Tensor sizes: ", self.sizes);
  check_products(op, self.dtype, is_empty(to));
  r.spread = 1 << 1;
}

}  // namespace

template <class S>
Prepared<S> mm(const Geometry<S>& self, const Geometry<S>& mat2) {
  Prepared<S> r = product("mm", "self", self, "mat2", mat2);
  check_products("mm", self.dtype, self.sizes[1] == S(0) || is_empty(r.outputs[0].sizes));
  return r;
}

template <class S>
Prepared<S> bmm(const Geometry<S>& self, const Geometry<S>& mat2) {
  Prepared<S> r = batch("bmm", self, mat2);
  check_products("bmm", self.dtype, self.sizes[2] == S(0) || is_empty(r.outputs[0].sizes));
  return r;
}

template <class S>
Prepared<S> mv(const Geometry<S>& self, const Geometry<S>& vec) {
  Prepared<S> r = by_vector("mv", self, vec);
  check_products("mv", self.dtype, vec.sizes[0] == S(0) || is_empty(r.outputs[0].sizes));
  return r;
}

template <class S>
Prepared<S> addmm(const Geometry<S>& self, const Geometry<S>& mat1, const Geometry<S>& mat2) {
  Prepared<S> r = product("addmm", "mat1", mat1, "mat2", mat2);
  add(r, "addmm", self);
  return r;
}

template <class S>
Prepared<S> baddbmm(const Geometry<S>& self, const Geometry<S>& batch1, const Geometry<S>& batch2) {
  Prepared<S> r = batch("baddbmm", batch1, batch2);
  add(r, "baddbmm", self);
  return r;
}

template <class S>
Prepared<S> addmv(const Geometry<S>& self, const Geometry<S>& mat, const Geometry<S>& vec) {
  Prepared<S> r = by_vector("addmv", mat, vec);
  STRATA_CHECK(self.dim() <= 1 && (self.numel() == S(1) || self.numel() == mat.sizes[0]),
               "addmv: size mismatch, got input (", self.sizes, "), mat (", mat.sizes[0], "x", mat.sizes[1], "), vec (",
               vec.sizes[0], ")");
  add(r, "addmv", self);
  return r;
}

#define STRATA_RULES(S)                                                                     \
  template Prepared<S> mm(const Geometry<S>&, const Geometry<S>&);                          \
  template Prepared<S> bmm(const Geometry<S>&, const Geometry<S>&);                         \
  template Prepared<S> mv(const Geometry<S>&, const Geometry<S>&);                          \
  template Prepared<S> addmm(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&);   \
  template Prepared<S> baddbmm(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&); \
  template Prepared<S> addmv(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
