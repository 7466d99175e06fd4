#include "run/copy.h"

#include "core/promote.h"
#include "core/shape/strides.h"
#include "dispatch/seen.h"
#include "dispatch/tls.h"
#include "run/launch.h"
#include "run/loop/cast.h"
#include "run/loop/copy_strided.h"
#include "run/pointwise.h"
#include "strata/generated/ops/copy.h"

namespace strata::eager {

// Of a device, where what is composed of operators copies, such as an out= form.
[[gnu::cold, gnu::noinline]] static void copy_elsewhere(const Tensor& dst, const Tensor& src) {
  const GradModeGuard unrecorded(false);
  ops::copy_(dst, src);
}

void copy_values(const Tensor& dst, const Tensor& src) {
  check_seen("a copy");
  if (!eager::has_elements_in_memory(dst)) {
    if (LaunchObserver* o = observer_of(dst)) o->copy(dst, src);
    return;
  }
  if (STRATA_UNLIKELY(dst.device().type > 1)) return copy_elsewhere(dst, src);
  const int64_t n = dst.dim(), lead = n - src.dim();
  DimVec to, from;
  for (int64_t d = 0; d < n; ++d) {
    to.push_back(dst.strides()[d] * dst.itemsize());
    from.push_back(d < lead || src.sizes()[d - lead] == 1 ? 0 : src.strides()[d - lead] * src.itemsize());
  }
  copy_strided(src.dtype(), src.bytes(), from, dst.dtype(), dst.bytes(), to, dst.sizes());
}

void fill_values(const Tensor& dst, const Scalar& value) {
  check_fits(value, dst.dtype());
  check_seen("a fill");
  if (!eager::has_elements_in_memory(dst)) {
    if (LaunchObserver* o = observer_of(dst)) o->fill(dst, value);
    return;
  }
  Tensor one = make_tensor({}, dst.dtype());
  store_scalar(value, dst.dtype(), one.bytes());
  copy_values(dst, one);
}

Tensor contiguous_copy(const Tensor& t) {
  Tensor out = new_tensor(t, t.sizes());
  copy_values(out, t);
  return out;
}

Tensor as_contiguous(const Tensor& t) { return t.is_contiguous() ? t : contiguous_copy(t); }

Tensor as_dtype(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return t;
  Tensor out = new_tensor(t, t.sizes(), dtype);
  copy_values(out, t);
  return out;
}

Tensor truths(const Tensor& t) {
  if (t.dtype() != DType::Bool || !t.numel()) return t;
  const Tensor made = new_tensor(t, t.sizes());
  copy_strided(DType::U8, t.bytes(), DimVec(t.strides()), DType::Bool, made.bytes(), DimVec(made.strides()), t.sizes());
  return made;
}

void check_result(const Tensor& self, const Tensor& result, const char* name) {
  STRATA_CHECK(self.sizes() == result.sizes(), name, ": output with shape ", self.sizes(),
               " doesn't match the broadcast shape ", result.sizes());
  STRATA_CHECK(can_cast(result.dtype(), self.dtype()), "result type ", scalar_type_name(result.dtype()),
               " can't be cast to the desired output type ", scalar_type_name(self.dtype()));
  STRATA_CHECK(!overlaps_itself(self), name,
               ": unsupported operation: more than one element of the written-to tensor refers to a single memory "
               "location. Please clone() the tensor before performing the operation.");
}

void copy_result(const Tensor& self, const Tensor& result, const char* name) {
  check_result(self, result, name);
  copy_values(self, result);
}

void check_unrecorded(const Tensor& result, const char* name) {
  STRATA_CHECK(!result.requires_grad(), name,
               "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
               "requires grad. Call it under no_grad(), or without out=");
}

void check_given(const Tensor& out, const char* name) {
  STRATA_CHECK(out.defined(), name, ": argument out: expected a tensor, got None");
}

void check_out(const Tensor& out, const Tensor& result, const char* name) {
  check_given(out, name);
  check_same_device(out, result, name);
  out.check_writable(name);
  STRATA_CHECK(can_cast(result.dtype(), out.dtype()), "result type ", scalar_type_name(result.dtype()),
               " can't be cast to the desired output type ", scalar_type_name(out.dtype()));
  STRATA_CHECK(!overlaps_itself(out), name,
               ": unsupported operation: more than one element of the written-to tensor refers to a single memory "
               "location. Please clone() the tensor before performing the operation.");
  check_resize(out, result.sizes(), name);
}

void copy_to_out(const Tensor& out, const Tensor& result, const char* name) {
  check_out(out, result, name);
  resize_output(out, result.sizes(), name);
  copy_values(out, result);
}

Tensor output_in_order(const Tensor& out, IntArrayRef sizes, const char* name) {
  if (out.sizes() == sizes || out.numel() != checked_numel(sizes)) {
    resize_output(out, sizes, name);
    return out;
  }
  return out.is_contiguous() ? out.alias(sizes, contiguous_strides(sizes), out.storage_offset())
                             : new_tensor(out, sizes);
}

void taken_in_order(const Tensor& out, const Tensor& values) {
  if (values.storage() == out.storage()) return;
  copy_values(out, values.alias(out.sizes(), contiguous_strides(out.sizes()), values.storage_offset()));
}

void copy_to_outs(TensorList outs, TensorList results, bool exact, const char* name) {
  STRATA_CHECK(outs.size() == results.size(), name, ": expected an out= argument of size ", results.size(),
               ", got size ", outs.size());
  for (size_t i = 0; i < outs.size(); ++i) {
    check_unrecorded(results[i], name);
    if (exact) check_exact_dtype(outs[i], results[i].dtype(), name);
    check_out(outs[i], results[i], name);
  }
  for (size_t i = 0; i < outs.size(); ++i) copy_to_out(outs[i], results[i], name);
}

void check_exact_dtype(const Tensor& out, DType result, const char* name) {
  STRATA_CHECK(out.defined(), name, ": argument out: expected a tensor, got None");
  STRATA_CHECK(out.dtype() == result, name, ": argument out: expected dtype ", result, ", got ", out.dtype());
}

Tensor new_tensor(const Tensor& like, IntArrayRef sizes, DType dtype) { return make_tensor_as(like, sizes, dtype); }
Tensor new_tensor(const Tensor& like, IntArrayRef sizes) { return new_tensor(like, sizes, like.dtype()); }
Tensor new_tensor(const Tensor& like, IntArrayRef sizes, DType dtype, MemoryFormat format) {
  if (format == MemoryFormat::Contiguous) return new_tensor(like, sizes, dtype);
  return make_tensor_strided_as(like, sizes, strides_for(sizes, format), dtype);
}

DimVec like_strides(const Tensor& self, std::optional<MemoryFormat> format) {
  MemoryFormat f = format.value_or(MemoryFormat::Preserve);
  if (f != MemoryFormat::Preserve) return strides_for(self.sizes(), f);
  if (self.is_non_overlapping_and_dense()) return DimVec(self.strides());
  const Tensor* in[] = {&self};
  return result_strides(self.sizes(), {in, 1});
}

MemoryFormat suggested_format(const Tensor& t) {
  if (!shape::lies_channels_last<int64_t>({t.sizes(), t.strides(), t.dtype(), t.device(), true}))
    return MemoryFormat::Contiguous;
  return t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

Tensor laid_out(const Tensor& result, std::initializer_list<const Tensor*> operands) {
  bool plain = result.numel() == 0;
  for (const Tensor* t : operands) plain |= t->is_contiguous() && t->sizes() == result.sizes();
  if (plain) return result;
  DimVec strides = result_strides(result.sizes(), Inputs(operands.begin(), operands.size()));
  if (result.strides() == IntArrayRef(strides)) return result;
  Tensor out = make_tensor_strided_as(result, result.sizes(), strides, result.dtype());
  copy_values(out, result);
  return out;
}

Tensor in_format(const Tensor& t, MemoryFormat format) {
  if (t.is_contiguous(format)) return t;
  Tensor out = new_tensor(t, t.sizes(), t.dtype(), format);
  copy_values(out, t);
  return out;
}

}  // namespace strata::eager
