// index_add, index_copy and index_fill: one 1-d index stands for one dim.
#include "base/checked.h"
#include "core/shape/index.h"
#include "eager/index_args.h"
#include "eager/index_walk.h"
#include "eager/visit.h"
#include "strata/generated/eager_index.h"
#include "strata/generated/ops/copy.h"

namespace strata::eager {

namespace {

// A 0-dim operand as one row of a vector.
Tensor as_vector(const Tensor& t) {
  return t.dim() ? t : t.alias(IntArrayRef(int64_t(1)), IntArrayRef(int64_t(1)), t.storage_offset());
}

template <class T>
T scalar_as(const Scalar& s) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return T(s.to_complex());
  } else if constexpr (std::is_floating_point_v<T>) {
    return T(s.to_double());
  } else {
    return T(s.to_int());
  }
}

}  // namespace

// ---- index_add

namespace {
void check_rows(const char* name, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  STRATA_CHECK_INDEX(index.dim() <= 1, name, ": Index is supposed to be a vector, but got dim: ", index.dim(),
                     " with type: ", scalar_type_name(index.dtype()), " and size: ", index.sizes());
  STRATA_CHECK(source.dtype() == self.dtype(), name, ": self (", scalar_type_name(self.dtype()), ") and source (",
               scalar_type_name(source.dtype()), ") must have the same scalar type");
  int64_t rows = source.dim() ? source.sizes()[dim < source.dim() ? dim : 0] : 1;
  STRATA_CHECK(dim == 0 || dim < source.dim(), name, ": Indexing dim ", dim,
               " is out of bounds of the source tensor with dim ", source.dim());
  STRATA_CHECK(index.numel() == rows, name, ": Number of indices (", index.numel(),
               ") should be equal to source.size(dim): (", rows, "), for dim: ", dim);
  Tensor a = as_vector(self), b = as_vector(source);
  bool same = self.dim() == source.dim();
  for (int64_t d = 0; same && d < a.dim(); ++d) same = d == dim || a.sizes()[d] == b.sizes()[d];
  STRATA_CHECK(same,
               "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ",
               self.sizes(), " source.shape = ", source.sizes());
}
}  // namespace

void index_add_inplace(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                       const Scalar& alpha) {
  dim = wrap_dim(dim, self.dim());
  check_rows("index_add_()", self, dim, index, source);
  STRATA_CHECK(!(alpha.is_complex() && !self.is_complex()) && !(alpha.is_float() && is_integral(self.dtype(), true)),
               "For integral input tensors, argument alpha must not be a floating point number.");
  check_fits(alpha, self.dtype());
  Tensor at = index_int64(index, "index_add_()");
  check_apart("index_add_", self, {&index, &source});
  if (self.is_meta()) return;
  Tensor to = as_vector(self);
  check_index_range(at, to.sizes()[dim], dim, ErrorKind::Runtime);
  if (source.numel() == 0) return;
  if (is_half(self.dtype())) {
    Tensor wide = widened(to);
    index_add_inplace(wide, dim, at, widened(as_vector(source)), alpha);
    copy_values(to, wide);
    return;
  }
  IndexWalk w = IndexWalk::along_rows(to, dim, at, as_vector(source));
  visit_numbers(self.dtype(), "index_add_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T scale = scalar_as<T>(alpha);
    w([scale](const IndexRun& r) {
      auto add = [&](char* to, const char* from) {
        T* t = reinterpret_cast<T*>(to);
        *t = add_values(*t, multiply_values(scale, *reinterpret_cast<const T*>(from)));
      };
      auto place = [&](int64_t i) { return *reinterpret_cast<const int64_t*>(r.index + i * r.index_step) * r.scale; };
      if (r.index_step == 0 && r.target_step == sizeof(T) && r.other_step == sizeof(T)) {
        T* t = reinterpret_cast<T*>(r.target + place(0));
        const T* f = reinterpret_cast<const T*>(r.other);
        for (int64_t i = 0; i < r.count; ++i) t[i] = add_values(t[i], multiply_values(scale, f[i]));
        return;
      }
      for (int64_t i = 0; i < r.count; ++i) add(r.target + i * r.target_step + place(i), r.other + i * r.other_step);
    });
  });
}

Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  Tensor out = ops::clone(self, MemoryFormat::Preserve);
  index_add_inplace(out, dim, index, source, alpha);
  return out;
}

// ---- index_copy

void index_copy_inplace(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  dim = wrap_dim(dim, self.dim());
  STRATA_CHECK_INDEX(index.dim() <= 1, "index_copy_(): Index should have dimension 1 or 0 (got ", index.dim(), ")");
  STRATA_CHECK(index.dtype() == DType::I64, "index_copy_(): Expected a long tensor for index, but got ",
               scalar_type_name(index.dtype()));
  STRATA_CHECK(self.dtype() == source.dtype(),
               "index_copy_(): self and source expected to have the same dtype, but got (self) ",
               scalar_type_name(self.dtype()), " and (source) ", scalar_type_name(source.dtype()));
  STRATA_CHECK_INDEX(source.dim() > 0 || index.numel() == 1,
                     "index_copy_(): When source is scalar, index should have one element (got ", index.numel(), ")");
  STRATA_CHECK_INDEX(
      source.dim() == self.dim() || source.dim() == 0 || self.dim() == 0,
      "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
      "dimensionality (",
      source.dim(), "), destination dimensionality (", self.dim(), ")");
  Tensor to = as_vector(self), from = as_vector(source);
  auto slice = [&](const Tensor& t) {
    DimVec s(t.sizes());
    s.erase(dim < t.dim() ? dim : 0);
    return s;
  };
  STRATA_CHECK(slice(to) == slice(from),
               "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: ",
               slice(to), " at dimension ", dim, " and source slice shape: ", slice(from), " at dimension 0.");
  STRATA_CHECK_INDEX(index.numel() == from.sizes()[dim], "index_copy_(): Number of indices (", index.numel(),
                     ") should be equal to source.size(dim) (", from.sizes()[dim], ")");
  check_apart("index_copy_", self, {&index, &source});
  if (self.is_meta()) return;
  check_index_range(index, to.sizes()[dim], dim, ErrorKind::Index, "index_copy_(): ");
  if (from.numel() == 0) return;
  write_indexed(IndexWalk::along_rows(to, dim, index, from), self.itemsize());
}

Tensor index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  Tensor out = ops::clone(self, MemoryFormat::Preserve);
  index_copy_inplace(out, dim, index, source);
  return out;
}

// ---- index_fill

void index_fill_scalar_inplace(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  dim = wrap_dim(dim, self.dim());
  STRATA_CHECK_INDEX(index.dtype() == DType::I64, "index_fill_(): Expected dtype int64 for index.");
  STRATA_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  STRATA_CHECK(!value.is_complex() || self.is_complex(),
               "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  check_fits(value, self.dtype());
  check_apart("index_fill_", self, {&index});
  if (self.is_meta()) return;
  Tensor to = as_vector(self);
  Tensor at = wrapped_index(index, to.sizes()[dim], dim);
  if (at.numel() == 0 || to.numel() == 0) return;
  Tensor one = make_tensor({}, self.dtype());
  fill_values(one, value);
  DimVec sizes = shape::with_dim(DimVec(to.sizes()), dim, at.numel());
  write_indexed(IndexWalk::along_rows(to, dim, at, one.alias(sizes, DimVec(sizes.size(), 0), 0)), self.itemsize());
}

Tensor index_fill_scalar(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  Tensor out = ops::clone(self, MemoryFormat::Preserve);
  index_fill_scalar_inplace(out, dim, index, value);
  return out;
}

namespace {
Scalar fill_value(const Tensor& value) {
  STRATA_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
               value.dim(), " dimension(s).");
  return value.is_meta() ? Scalar(0) : ops::item(value);
}
}  // namespace

void index_fill_tensor_inplace(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  index_fill_scalar_inplace(self, dim, index, fill_value(value));
}

Tensor index_fill_tensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  return index_fill_scalar(self, dim, index, fill_value(value));
}

}  // namespace strata::eager
