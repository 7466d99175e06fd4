// Views of another shape or dtype, and those that replace the geometry of the tensor itself.
#include <algorithm>

#include "base/checked.h"
#include "core/promote.h"
#include "dispatch/tls.h"
#include "run/copy.h"
#include "run/view_rules.h"
#include "strata/generated/by_hand/view.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

Tensor view_sizes(const Tensor& self, IntArrayRef size) {
  DimVec sizes = inferred_sizes(size, self.numel());
  std::optional<DimVec> strides = view_strides(self, sizes);
  STRATA_CHECK(strides,
               "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
               "two contiguous subspaces). Use .reshape(...) instead.");
  return self.alias(sizes, *strides, self.storage_offset());
}

Tensor unsafe_view(const Tensor& self, IntArrayRef size) { return view_sizes(self, size); }

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  start_dim = wrap_dim(start_dim, self.dim());
  end_dim = wrap_dim(end_dim, self.dim());
  STRATA_CHECK(start_dim <= end_dim, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (self.dim() == 0) return ops::reshape(self, {1});
  if (start_dim == end_dim) return self;
  DimVec sizes(self.sizes().slice(0, start_dim));
  int64_t n = 1;
  for (int64_t d = start_dim; d <= end_dim; ++d) n *= self.sizes()[d];
  sizes.push_back(n);
  for (int64_t d = end_dim + 1; d < self.dim(); ++d) sizes.push_back(self.sizes()[d]);
  return ops::reshape(self, sizes);
}

Tensor unflatten(const Tensor& self, int64_t dim, IntArrayRef sizes) {
  STRATA_CHECK(!sizes.empty(), "unflatten: sizes must be non-empty");
  dim = wrap_dim(dim, self.dim());
  int64_t known = 1, holes = 0;
  for (int64_t s : sizes) s == -1 ? ++holes : known = checked_mul(known, s, "unflatten");
  int64_t size = self.dim() ? self.sizes()[dim] : 1;
  STRATA_CHECK(holes <= 1, "only one dimension can be inferred");
  STRATA_CHECK(holes ? known > 0 && size % known == 0 : known == size, "unflatten: Provided sizes ", sizes,
               " don't multiply up to the size of dim ", dim, " (", size, ") in the input tensor");
  DimVec shape(self.sizes().slice(0, dim));
  for (int64_t s : sizes) shape.push_back(s == -1 ? size / known : s);
  for (int64_t d = dim + 1; d < self.dim(); ++d) shape.push_back(self.sizes()[d]);
  return ops::view(self, shape);
}

Tensor contiguous(const Tensor& self, MemoryFormat format) {
  STRATA_CHECK(format != MemoryFormat::Preserve, "preserve memory format is unsupported by the contiguous operator");
  return self.is_contiguous(format) ? self : ops::clone(self, format);
}

// ---- other dtypes

namespace {
// A header over the same storage with elements of another type; geometry counts those.
Tensor alias_as(const Tensor& self, DType dtype, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  Tensor t = self.alias();
  t.impl()->dtype_ = dtype;
  t.impl()->set_geometry(sizes, strides, offset);
  return t;
}
}  // namespace

Tensor view_dtype(const Tensor& self, DType dtype) {
  int64_t from = self.itemsize(), to = itemsize(dtype);
  if (from == to) return alias_as(self, dtype, self.sizes(), self.strides(), self.storage_offset());
  STRATA_CHECK(self.dim() > 0, "self.dim() cannot be 0 to view ", scalar_type_name(self.dtype()), " as ",
               scalar_type_name(dtype), " (different element sizes)");
  int64_t last = self.dim() - 1;
  STRATA_CHECK(self.strides()[last] == 1, "self.stride(-1) must be 1 to view ", scalar_type_name(self.dtype()), " as ",
               scalar_type_name(dtype), " (different element sizes), but got ", self.strides()[last]);
  DimVec sizes(self.sizes()), strides(self.strides());
  int64_t offset = self.storage_offset();
  if (from > to) {
    int64_t ratio = from / to;
    for (int64_t d = 0; d < last; ++d) strides[d] *= ratio;
    sizes[last] = checked_mul(sizes[last], ratio, "view");
    return alias_as(self, dtype, sizes, strides, offset * ratio);
  }
  int64_t ratio = to / from;
  STRATA_CHECK(sizes[last] % ratio == 0, "self.size(-1) must be divisible by ", ratio, " to view ",
               scalar_type_name(self.dtype()), " as ", scalar_type_name(dtype), " (different element sizes), but got ",
               sizes[last]);
  STRATA_CHECK(offset % ratio == 0, "self.storage_offset() must be divisible by ", ratio, " to view ",
               scalar_type_name(self.dtype()), " as ", scalar_type_name(dtype), " (different element sizes), but got ",
               offset);
  for (int64_t d = 0; d < last; ++d) {
    STRATA_CHECK(strides[d] % ratio == 0, "self.stride(", d, ") must be divisible by ", ratio, " to view ",
                 scalar_type_name(self.dtype()), " as ", scalar_type_name(dtype),
                 " (different element sizes), but got ", strides[d]);
    strides[d] /= ratio;
  }
  sizes[last] /= ratio;
  return alias_as(self, dtype, sizes, strides, offset / ratio);
}

Tensor view_as_real(const Tensor& self) {
  STRATA_CHECK(self.is_complex(), "view_as_real is only supported for complex tensors, got ", self.dtype());
  DimVec sizes(self.sizes()), strides(self.strides());
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return alias_as(self, traits(self.dtype()).component, sizes, strides, self.storage_offset() * 2);
}

Tensor view_as_complex(const Tensor& self) {
  STRATA_CHECK(self.dtype() == DType::F32 || self.dtype() == DType::F64,
               "view_as_complex is only supported for floating point tensors, but got a tensor of scalar type: ",
               scalar_type_name(self.dtype()),
               "; no other dtype than float32 and float64 has a complex one: convert with .float()");
  STRATA_CHECK(self.dim() > 0, "Input tensor must have one or more dimensions");
  int64_t last = self.dim() - 1;
  STRATA_CHECK(self.sizes()[last] == 2, "Tensor must have a last dimension of size 2");
  STRATA_CHECK(self.strides()[last] == 1, "Tensor must have a last dimension with stride 1");
  STRATA_CHECK(self.storage_offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
  DimVec sizes(self.sizes()), strides(self.strides());
  sizes.pop_back();
  strides.pop_back();
  for (int64_t& s : strides) {
    STRATA_CHECK(s % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension");
    s /= 2;
  }
  return alias_as(self, to_complex(self.dtype()), sizes, strides, self.storage_offset() / 2);
}

Tensor imag(const Tensor& self) {
  STRATA_CHECK(self.is_complex(), "imag is not implemented for tensors with non-complex dtypes.");
  return ops::select(ops::view_as_real(self), -1, 1);
}

// ---- at least so many dims

Tensor atleast_2d(const Tensor& self) {
  if (self.dim() == 0) return ops::reshape(self, {1, 1});
  return self.dim() == 1 ? ops::unsqueeze(self, 0) : self;
}

Tensor atleast_3d(const Tensor& self) {
  if (self.dim() == 0) return ops::reshape(self, {1, 1, 1});
  if (self.dim() == 1) return ops::unsqueeze(ops::unsqueeze(self, 0), -1);
  return self.dim() == 2 ? ops::unsqueeze(self, -1) : self;
}

namespace {
template <class F>
std::vector<Tensor> each(TensorList tensors, F f) {
  std::vector<Tensor> r;
  for (const Tensor& t : tensors) r.push_back(f(t));
  return r;
}
}  // namespace

std::vector<Tensor> atleast_1d(TensorList tensors) {
  return each(tensors, [](const Tensor& t) { return ops::atleast_1d(t); });
}
std::vector<Tensor> atleast_2d(TensorList tensors) {
  return each(tensors, [](const Tensor& t) { return ops::atleast_2d(t); });
}
std::vector<Tensor> atleast_3d(TensorList tensors) {
  return each(tensors, [](const Tensor& t) { return ops::atleast_3d(t); });
}

// ---- in place

Tensor become(const Tensor& self, const Tensor& view) {
  const int64_t elements = checked_add(view.storage_offset(), strided_span(view.sizes(), view.strides()), "_become");
  STRATA_CHECK(
      view.numel() == 0 || checked_bytes(elements, self.itemsize(), "_become") <= int64_t(self.storage()->bytes()),
      "_become: a tensor of sizes ", view.sizes(), ", strides ", view.strides(), " at offset ", view.storage_offset(),
      " does not fit into the storage of ", self.storage()->bytes(), " bytes");
  self.impl()->set_geometry(DimVec(view.sizes()), DimVec(view.strides()), view.storage_offset());
  return self;
}

namespace {
// `self` takes the geometry and the history of a view of it.
Tensor become_view(const Tensor& self, const Tensor& view, const char* op) {
  TensorImpl *to = self.impl(), *from = view.impl();
  STRATA_CHECK(!grad_enabled() || !to->requires_grad_ || to->grad_fn_, op,
               ": a leaf Variable that requires grad is being used in an in-place operation.");
  STRATA_CHECK(!to->inference_ || dispatch_tls.inference,
               "Inplace update to inference tensor outside InferenceMode is not allowed: ", op);
  const TensorImpl* base = to->base_;
  STRATA_CHECK(!grad_enabled() || !base || base->grad_fn_ || !(self.requires_grad() || base->requires_grad_), op,
               ": a view of a leaf Variable that requires grad is being used in an in-place operation.");
  {
    ExcludeGuard plain(Key::Autograd | Key::InplaceOrView);
    ops::_become(self, view);
  }
  self.bump_version(op);
  if (from->grad_fn_) {
    to->grad_fn_ = from->grad_fn_;
    to->output_nr_ = from->output_nr_;
    to->keys_ = to->keys_ | KeySet(Key::Autograd);
  }
  to->view_version_ = to->writes().count();
  if (base && !from->grad_fn_) {  // unrecorded: its node told of other sizes, and is made anew from the base's
    to->grad_fn_.reset();
    --to->view_version_;
  }
  if (!base && !from->grad_fn_) to->turned_ = true;
  return self;
}
}  // namespace

Tensor as_strided_inplace(const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> offset) {
  return become_view(self, ops::as_strided(self, size, stride, offset), "as_strided_");
}
Tensor transpose_inplace(const Tensor& self, int64_t dim0, int64_t dim1) {
  return become_view(self, ops::transpose(self, dim0, dim1), "transpose_");
}
Tensor t_inplace(const Tensor& self) { return become_view(self, ops::t(self), "t_"); }
Tensor squeeze_inplace(const Tensor& self) { return become_view(self, ops::squeeze(self), "squeeze_"); }
Tensor squeeze_inplace(const Tensor& self, int64_t dim) {
  return become_view(self, ops::squeeze(self, dim), "squeeze_");
}
Tensor squeeze_inplace(const Tensor& self, IntArrayRef dims) {
  return become_view(self, ops::squeeze(self, dims), "squeeze_");
}
Tensor unsqueeze_inplace(const Tensor& self, int64_t dim) {
  return become_view(self, ops::unsqueeze(self, dim), "unsqueeze_");
}

}  // namespace strata::eager
