#include "run/pointwise.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "core/parallel.h"
#include "core/promote.h"
#include "core/shape/strides.h"
#include "dispatch/seen.h"
#include "run/copy.h"
#include "run/kernels.h"
#include "run/launch.h"
#include "run/loop/cast.h"
#include "run/loop/half_operands.h"
#include "run/loop/pointwise_loop.h"
#include "run/observe.h"

namespace strata::eager {

const StrataKernelEntry& kernel_for(const PointwiseOp& op, DType t) {
  uint32_t now = isa_generation();
  if (STRATA_UNLIKELY(op.generation.load(std::memory_order_relaxed) != now)) {
    for (auto& c : op.cache) c.store(nullptr, std::memory_order_relaxed);
    op.generation.store(now, std::memory_order_relaxed);
  }
  auto& cached = op.cache[static_cast<int>(t)];
  const StrataKernelEntry* e = cached.load(std::memory_order_relaxed);
  if (STRATA_UNLIKELY(!e)) {
    e = find_kernel(op.kernel, t);
    STRATA_CHECK_NOT_IMPLEMENTED(e, "\"", op.name, "\" not implemented for '", scalar_type_name(t),
                                 "'; convert the operands with .to() first");
    cached.store(e, std::memory_order_relaxed);
  }
  return *e;
}

namespace {

bool scalar_fits(const Scalar& s, DType t) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      return true;
    case Scalar::Kind::Int:
      return t != DType::Bool;
    case Scalar::Kind::Float:
      return is_float(t) || is_complex(t);
    default:
      return is_complex(t);
  }
}

DType compute_dtype(const PointwiseOp& op, Inputs in, Scalars scalars) {
  return eager::compute_dtype(op.name, op.promote, op.fixed, in, scalars, op.unpromoted);
}

[[gnu::noinline]] void check_param(const PointwiseOp& op, size_t i, const Scalar& value, DType t) {
  check_fits(value, op.narrow >> i & 1 ? t : traits(t).compute);
}

void fill_params(const PointwiseOp& op, Scalars scalars, DType t, char* params) {
  DType c = traits(t).compute;
  for (size_t i = 0; i < scalars.size(); ++i) {
    // Every integer fits float32 and wider, so that the common alpha=1 costs nothing.
    if (STRATA_UNLIKELY(t < DType::F32 || !scalars[i].is_integral(true)))
      if (op.checked >> i & 1) check_param(op, i, scalars[i], t);
    store_scalar(scalars[i], c, params + 16 * i);
  }
}

constexpr size_t kMaxScalars = 16;

void check_defined(const PointwiseOp& op, Inputs in) {
  for (size_t i = 0; i < in.size(); ++i)
    STRATA_CHECK(in[i]->defined(), op.name, ": argument ", i + 1, ": expected a tensor, got None");
}

Device common_device(const char* name, Inputs in) {
  Device d = in[0]->device();
  for (const Tensor* t : in)
    if (t->device() != d) {
      if (d.is_cpu() && in[0]->dim() == 0) d = t->device();
      STRATA_CHECK(t->device() == d || t->dim() == 0, name,
                   ": Expected all tensors to be on the same device, but found at least two devices, ", d, " and ",
                   t->device(), "; move one with .to()");
    }
  return d;
}

DimVec broadcast_all(Inputs in) {
  DimVec shape(in[0]->sizes());
  for (size_t i = 1; i < in.size(); ++i)
    if (!(in[i]->sizes() == IntArrayRef(shape))) shape = broadcast_shapes(shape, in[i]->sizes());
  return shape;
}

// The general case: any strides, dtypes and number of outputs.
void run(const PointwiseOp& op, const StrataKernelEntry& entry, DType t, ArrayRef<const Tensor*> outs, Inputs in,
         Scalars scalars) {
  check_seen(op.name);
  if (!eager::has_elements_in_memory(*outs[0])) {
    if (LaunchObserver* o = observer_of(*outs[0])) {
      for (size_t i = 0; i < scalars.size(); ++i)
        if (op.checked >> i & 1) check_param(op, i, scalars[i], t);
      o->pointwise(op, t, outs, in, scalars);
    }
    return;
  }
  if (STRATA_UNLIKELY(entry.dtype != uint8_t(t))) {
    HalfOperands halves(entry, t, op.fixed, outs, in);
    if (halves.differ()) {
      run(op, entry, t, halves.outs(), halves.in(), scalars);
      return halves.give();
    }
  }
  alignas(16) char params[16 * kMaxScalars];
  fill_params(op, scalars, t, params);
  const DType kernel = static_cast<DType>(entry.dtype);
  PointwiseLoop loop(outs[0]->sizes());
  for (size_t i = 0; i < outs.size(); ++i) loop.add_output(*outs[i], static_cast<DType>(entry.output_dtype[i]));
  for (size_t i = 0; i < in.size(); ++i) loop.add_input(*in[i], op.fixed >> i & 1 ? op.fixed_dtype : kernel);
  raise_status(loop.run(entry, params), op.name);
}

}  // namespace

void launch(const PointwiseOp& op, DType dtype, ArrayRef<const Tensor*> outs, Inputs in, Scalars scalars) {
  run(op, kernel_for(op, dtype), dtype, outs, in, scalars);
}

DType compute_dtype(const char* name, Promote promote, uint32_t fixed, Inputs in, Scalars scalars,
                    uint32_t unpromoted) {
  if (promote == Promote::First) return in[0]->dtype();
  ResultType r;
  for (size_t i = 0; i < in.size(); ++i)
    if (!(fixed >> i & 1)) r.add(*in[i]);
  for (size_t i = 0; i < scalars.size(); ++i)
    if (!(unpromoted >> i & 1)) r.add(scalars[i]);
  DType t = r.get();
  if (promote == Promote::Float && is_integral(t, true)) return default_dtype();
  if (promote == Promote::Sum && is_integral(t, true)) return DType::I64;
  STRATA_CHECK(promote != Promote::Floating || !is_integral(t, true), name,
               "(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: ",
               scalar_type_name(t));
  return t;
}

// complex64 would be another dtype than PyTorch's without a word.
static void refuse_complex_half(const PointwiseOp& op, Inputs in, Scalars scalars) {
  if (op.promote == Promote::First) return;
  ResultType r;
  for (size_t i = 0; i < in.size(); ++i)
    if (!(op.fixed >> i & 1)) r.add(*in[i]);
  for (size_t i = 0; i < scalars.size(); ++i)
    if (!(op.unpromoted >> i & 1)) r.add(scalars[i]);
  STRATA_CHECK_NOT_IMPLEMENTED(!r.is_complex_half(), "\"", op.name,
                               "\" not implemented for 'ComplexHalf': float16 and complex operands give complex32, "
                               "which has no storage here; convert the float16 tensor with .float() first");
}

DimVec result_strides(IntArrayRef sizes, Inputs in) {
  // Contiguous operands of one shape say nothing else, whatever strides those without elements have.
  if (std::all_of(in.begin(), in.end(), [&](const Tensor* t) { return t->is_contiguous() && t->sizes() == sizes; }))
    return contiguous_strides(sizes);
  return shape::result_strides(sizes, in.size(), [&](size_t k, int64_t d) -> int64_t {
    const Tensor& t = *in[k];
    const int64_t at = d - (int64_t(sizes.size()) - t.dim());
    return at < 0 || t.sizes()[size_t(at)] == 1 ? 0 : t.strides()[size_t(at)];
  });
}

DimVec result_strides(ResultStrides rule, IntArrayRef sizes, Inputs in) {
  if (rule == ResultStrides::Preserve) return result_strides(sizes, in);
  if (rule == ResultStrides::Suggested)
    for (const Tensor* t : in)
      if (t->sizes() == sizes) return strides_for(sizes, suggested_format(*t));
  return contiguous_strides(sizes);
}

// Whether the strides are those of a fresh tensor: a contiguous one may have others where a size is 0 or 1.
static bool has_own_strides(const TensorImpl& t) {
  int64_t step = 1;
  for (int64_t d = int64_t(t.sizes().size()); d-- > 0;) {
    if (t.strides()[d] != step) return false;
    // Beyond the range for empty tensors alone, whose steps nobody takes.
    if (__builtin_mul_overflow(step, std::max<int64_t>(t.sizes()[d], 1), &step)) step = INT64_MAX;
  }
  return true;
}

// Operands that are to be broadcast, converted or promoted.
static Tensor general(const PointwiseOp& op, Inputs in, Scalars scalars, std::optional<DType> dtype,
                      std::optional<DType> stored) {
  Device device = common_device(op.name, in);
  const DType t = dtype ? *dtype : compute_dtype(op, in, scalars);
  DimVec shape = broadcast_all(in);
  const StrataKernelEntry& entry = kernel_for(op, t);
  const DType result = result_dtype(entry, 0, t);
  if (STRATA_UNLIKELY(result == DType::C64)) refuse_complex_half(op, in, scalars);
  Tensor out = make_tensor_strided(shape, result_strides(op.strides, shape, in), stored.value_or(result), device,
                                   shape_only(in));
  const Tensor* outs[1] = {&out};
  run(op, entry, t, {outs, 1}, in, scalars);
  return out;
}

Tensor pointwise(const PointwiseOp& op, Inputs in, Scalars scalars) {
  check_defined(op, in);
  // Fast path: one dtype, one contiguous shape, nothing to promote.
  const TensorImpl* first = in[0]->impl();
  DType t = first->dtype_;
  bool plain = first->contiguous_ && !op.fixed && !first->wrapped_number_ && !first->keys_.has(Key::Meta);
  for (size_t i = 1; plain && i < in.size(); ++i) {
    const TensorImpl* other = in[i]->impl();
    plain = other->dtype_ == t && other->contiguous_ && other->sizes() == first->sizes() &&
            other->device_ == first->device_ && !other->wrapped_number_ && !other->keys_.has(Key::Meta);
  }
  for (size_t i = 0; plain && i < scalars.size(); ++i) plain = scalar_fits(scalars[i], t);
  if (plain && (op.promote != Promote::Float || is_float(t) || strata::is_complex(t))) {
    const StrataKernelEntry& entry = kernel_for(op, t);
    DType result = result_dtype(entry, 0, t);
    // The first of these asks check_seen() where it costs nothing.
    Tensor out = has_own_strides(*first) ? make_tensor_like(*first, result)
                                         : (check_seen(op.name), make_tensor(first->sizes(), result, first->device_));
    const bool table = first->numel_ >= kTabled && entry.costly && itemsize(t) == 2;
    if (STRATA_UNLIKELY(table || entry.dtype != uint8_t(t) || !eager::has_elements_in_memory(out))) {
      const Tensor* outs[1] = {&out};
      run(op, entry, t, {outs, 1}, in, scalars);
      return out;
    }
    alignas(16) char params[16 * kMaxScalars];
    fill_params(op, scalars, t, params);
    char* ptr[1 + 8];
    int64_t size[1 + 8];
    ptr[0] = out.bytes();
    size[0] = out.itemsize();
    for (size_t i = 0; i < in.size(); ++i) {
      ptr[1 + i] = in[i]->bytes();
      size[1 + i] = itemsize(t);
    }
    int32_t status = run_contiguous(entry.pointwise, ptr, size, 1, int(in.size()), params, first->numel_);
    if (STRATA_UNLIKELY(status)) raise_status(status, op.name);
    return out;
  }
  return general(op, in, scalars, std::nullopt, std::nullopt);
}

namespace {
// Operands with headers in which vectors have dims of size 1 behind their own.
class Aligned {
 public:
  Aligned(Inputs in, int64_t along) {
    int64_t rank = 0;
    for (const Tensor* t : in) rank = std::max(rank, t->dim());
    for (const Tensor* t : in) {
      list_.push_back(t);
      if (t->dim() != 1 || rank <= along + 1) continue;
      DimVec sizes(size_t(rank - along), 1), strides(size_t(rank - along), 0);
      sizes[0] = t->sizes()[0];
      strides[0] = t->strides()[0];
      Tensor& made = made_[list_.size() - 1];
      made = t->alias(sizes, strides, t->storage_offset());
      list_.back() = &made;
    }
  }
  Inputs in() const { return {list_.data(), list_.size()}; }

 private:
  Tensor made_[kMaxOperands];
  SmallVec<const Tensor*, 8> list_;
};
}  // namespace

Tensor pointwise(const PointwiseOp& op, Inputs in, Scalars scalars, std::optional<DType> dtype,
                 std::optional<DType> stored, std::optional<int64_t> along) {
  if (along) return pointwise(op, Aligned(in, *along).in(), scalars, dtype, stored);
  check_defined(op, in);
  const bool computes = !dtype || (op.promote == Promote::First && *dtype == in[0]->dtype());  // so by itself
  if (computes && !stored) return pointwise(op, in, scalars);
  return general(op, in, scalars, dtype, stored);
}

// What would be refused once `out` has its new sizes is refused before: operands without memory, and those that it
// would overlap in part.
static void check_operands(const Tensor& out, IntArrayRef sizes, Inputs in, const char* name) {
  check_memory(in);
  if (out.sizes() == sizes) return;
  for (const Tensor* x : in)
    if (x->storage().get() == out.storage().get())
      check_no_overlap(name, out.alias(sizes, contiguous_strides(sizes), out.storage_offset()), in);
}

void check_memory(Inputs in) {
  for (const Tensor* x : in) x->check_memory();
}

void pointwise_out(const PointwiseOp& op, Inputs in, Scalars scalars, const Tensor& out, bool resize) {
  check_defined(op, in);
  STRATA_CHECK(out.defined(), op.name, ": argument out: expected a tensor, got None");
  DType t = compute_dtype(op, in, scalars);
  DimVec shape = broadcast_all(in);
  const StrataKernelEntry& entry = kernel_for(op, t);
  DType result = result_dtype(entry, 0, t);
  STRATA_CHECK(resize || out.sizes() == IntArrayRef(shape), "output with shape ", out.sizes(),
               " doesn't match the broadcast shape ", shape);
  STRATA_CHECK(can_cast(result, out.dtype()), "result type ", scalar_type_name(result),
               " can't be cast to the desired output type ", scalar_type_name(out.dtype()));
  common_device(op.name, in);
  for (const Tensor* x : in) check_operand_device(out, *x, op.name);
  STRATA_CHECK(resize || !is_complex(t) || is_complex(result) || result == DType::Bool, "In-place ", op.name,
               " is not supported for complex tensors.");
  if (resize && op.exact_out) check_exact_dtype(out, result, op.name);
  // A kernel that may fail writes nothing that is anybody's.
  Tensor apart;
  if (STRATA_UNLIKELY(entry.sets_status)) {
    apart = make_tensor_strided_as(out, shape, result_strides(shape, in), result);
    const Tensor* outs[1] = {&apart};
    run(op, entry, t, {outs, 1}, in, scalars);
  }
  if (resize) {
    alignas(16) char params[16 * kMaxScalars];
    fill_params(op, scalars, t, params);  // for its errors
    check_operands(out, shape, in, op.name);
    resize_output(out, shape, op.name);
  }
  check_no_overlap(op.name, out, in);
  if (STRATA_UNLIKELY(apart.defined())) return copy_values(out, apart);
  const Tensor* outs[1] = {&out};
  run(op, entry, t, {outs, 1}, in, scalars);
}

void pointwise_into(const PointwiseOp& op, ArrayRef<const Tensor*> outs, Inputs in, Scalars scalars,
                    std::optional<int64_t> along) {
  if (along) return pointwise_into(op, outs, Aligned(in, *along).in(), scalars);
  check_defined(op, in);
  DType t = compute_dtype(op, in, scalars);
  const StrataKernelEntry& entry = kernel_for(op, t);
  run(op, entry, t, outs, in, scalars);
}

void check_no_overlap(const char* name, const Tensor& out, Inputs in) {
  STRATA_CHECK(!overlaps_itself(out), name,
               ": unsupported operation: more than one element of the written-to tensor refers to a single memory "
               "location. Please clone() the tensor before performing the operation.");
  for (const Tensor* t : in)
    STRATA_CHECK(
        overlap_between(out, *t) != Overlap::Partial, name,
        ": unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
        "memory location. Please clone() the tensor before performing the operation.");
}

namespace {
// What a tensor needs of its storage in another shape.
int64_t bytes_of(const Tensor& t, IntArrayRef sizes) {
  return checked_bytes(checked_add(checked_numel(sizes, "resize_"), t.storage_offset(), "resize_"), t.itemsize(),
                       "resize_");
}
}  // namespace

void resize_tensor(const Tensor& t, IntArrayRef sizes) {
  int64_t bytes = bytes_of(t, sizes);
  if (bytes == 0) contiguous_strides(sizes);  // may refuse them, before anything is changed
  if (size_t(bytes) > t.storage()->bytes()) t.storage()->resize(bytes);
  t.impl()->set_geometry(sizes, t.storage_offset());
}

void check_resize(const Tensor& out, IntArrayRef sizes, const char* name) {
  if (out.sizes() == sizes) return;
  STRATA_CHECK(!out.requires_grad() || !out.is_leaf() || out.numel() == 0, name,
               ": cannot resize variables that require grad");
  const size_t bytes = size_t(bytes_of(out, sizes));
  STRATA_CHECK(bytes <= out.storage()->bytes() || out.storage()->can_resize(bytes), name,
               ": Trying to resize storage that is not resizable; give out= a tensor of shape ", sizes);
}

void resize_output(const Tensor& out, IntArrayRef sizes, const char* name) {
  if (out.sizes() == sizes) return;
  check_resize(out, sizes, name);
  if (out.numel() != 0)
    warn(str_cat("An output with one or more elements was resized since it had shape ", out.sizes(),
                 ", which does not match the required output shape ", sizes,
                 ". This behavior is deprecated, and in a future release outputs will not be resized unless they have "
                 "zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements "
                 "with t.resize_(0)."));
  resize_tensor(out, sizes);
}

}  // namespace strata::eager
