#include "core/tensor.h"

#include <algorithm>
#include <atomic>

#include "base/checked.h"
#include "core/watch.h"

namespace strata {

void (*release_python_object)(void* object) = nullptr;

void* TensorImpl::operator new(size_t) { return Pool<sizeof(TensorImpl), 2048>::take(); }
void TensorImpl::operator delete(void* p) { Pool<sizeof(TensorImpl), 2048>::give(p); }

TensorImpl::~TensorImpl() {
  if (heap_capacity_) ::operator delete(heap_dims_);
  delete autograd_;
  if (base_) base_->decref();
}

void TensorImpl::decref() {
  if (refs_.down()) release();
}

void TensorImpl::release() {
  if (STRATA_UNLIKELY(py_owned_ && pyobj_)) {
    // The Python object dies with us; its own finaliser must find a live header.
    void* object = pyobj_;
    refs_.set(1);
    py_owned_ = false;
    release_python_object(object);  // drops the reference that we hold to it, and with it the one it holds to us
    return;
  }
  delete this;
}

void TensorImpl::take_storage(Ref<Storage> storage) {
  if (storage == storage_) return;
  if (!writes_) writes_ = Ref<OwnWrites>::adopt(new OwnWrites(writes().count()));
  storage_ = std::move(storage);
}

void TensorImpl::reserve_dims(size_t n) {
  if (n <= size_t(capacity())) return;
  STRATA_CHECK(n <= kMaxDims, "tensor: expected at most ", kMaxDims, " dims, got ", n);
  auto* fresh = static_cast<int64_t*>(::operator new(2 * n * sizeof(int64_t)));
  if (heap_capacity_) ::operator delete(heap_dims_);
  heap_dims_ = fresh;
  heap_capacity_ = uint8_t(n);
}

namespace {

[[gnu::noinline]] void check_steps(IntArrayRef sizes) {
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 1;) step = checked_step(step, sizes[i], sizes);
}

}  // namespace

void TensorImpl::set_geometry(IntArrayRef sizes, int64_t offset) {
  size_t n = sizes.size();
  reserve_dims(n);
  ndim_ = uint8_t(n);
  int64_t* d = dims();
  int64_t* s = d + capacity();
  // Unsigned: what does not fit is found below, of empty tensors alone; others were counted by who made their memory.
  uint64_t step = 1;
  bool empty = false;
  for (size_t i = n; i-- > 0;) {
    d[i] = sizes[i];
    s[i] = int64_t(step);
    if (STRATA_LIKELY(sizes[i] > 1))
      step *= uint64_t(sizes[i]);
    else
      empty |= sizes[i] == 0;
  }
  if (STRATA_UNLIKELY(empty)) {
    check_steps(sizes);
    step = 0;
  }
  numel_ = int64_t(step);
  contiguous_ = true;
  offset_ = offset;
}

void TensorImpl::set_geometry(IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  size_t n = sizes.size();
  reserve_dims(n);
  ndim_ = uint8_t(n);
  int64_t* d = dims();
  int64_t* s = d + capacity();
  numel_ = 1;
  bool wide = false, empty = false;
  for (size_t i = 0; i < n; ++i) {
    d[i] = sizes[i];
    s[i] = strides[i];
    wide |= __builtin_mul_overflow(numel_, sizes[i], &numel_);
    empty |= sizes[i] == 0;
  }
  STRATA_CHECK(!wide || empty, "size: the number of elements of shape ", sizes, " does not fit in 64 bits");
  bool contiguous = true;
  int64_t step = 1;
  if (numel_ != 0)
    for (size_t i = n; i-- > 0;) {
      if (d[i] == 1) continue;
      contiguous &= s[i] == step;
      step *= d[i];
    }
  contiguous_ = contiguous;
  offset_ = offset;
}

DimVec contiguous_strides(IntArrayRef sizes) {
  DimVec s(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    s[i] = step;
    if (i > 0) step = checked_step(step, sizes[i], sizes);
  }
  return s;
}

DimVec channels_last_strides(IntArrayRef sizes) {
  size_t n = sizes.size();
  STRATA_CHECK(n == 4 || n == 5, "memory_format: expected ", "4 dims for channels_last or 5 for channels_last_3d, got ",
               n);
  DimVec s(n);
  int64_t step = 1;
  s[1] = 1;
  step = std::max<int64_t>(sizes[1], 1);
  for (size_t i = n; i-- > 2;) {
    s[i] = step;
    step = checked_step(step, sizes[i], sizes);
  }
  s[0] = step;
  return s;
}

DimVec strides_for(IntArrayRef sizes, MemoryFormat format) {
  if (format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d) {
    size_t wanted = format == MemoryFormat::ChannelsLast ? 4 : 5;
    STRATA_CHECK(sizes.size() == wanted, "memory_format: required rank ", wanted, " tensor to use channels_last",
                 wanted == 5 ? "_3d" : "", " format, got rank ", sizes.size());
    return channels_last_strides(sizes);
  }
  return contiguous_strides(sizes);
}

namespace {
int64_t existing_dim(int64_t d, int64_t n) {
  STRATA_CHECK_INDEX(n > 0, "Dimension specified as ", d, " but tensor has no dimensions");
  return wrap_dim(d, n);
}
}  // namespace

int64_t Tensor::size(int64_t d) const { return sizes()[existing_dim(d, dim())]; }
int64_t Tensor::stride(int64_t d) const { return strides()[existing_dim(d, dim())]; }

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) return impl_->contiguous_;
  if (dim() != (format == MemoryFormat::ChannelsLast ? 4 : 5)) return false;
  int64_t step = 1;
  auto fits = [&](int64_t d) {
    if (sizes()[d] != 1 && strides()[d] != step) return false;
    // Beyond the range for empty tensors alone, whose steps nobody takes.
    if (__builtin_mul_overflow(step, std::max<int64_t>(sizes()[d], 1), &step)) step = INT64_MAX;
    return true;
  };
  if (!fits(1)) return false;
  for (int64_t d = dim(); d-- > 2;)
    if (!fits(d)) return false;
  return fits(0);
}

bool Tensor::is_non_overlapping_and_dense() const {
  if (impl_->contiguous_) return true;
  SmallVec<int64_t, 8> order;
  for (int64_t d = 0; d < dim(); ++d)
    if (sizes()[d] != 1) order.push_back(d);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return strides()[a] < strides()[b]; });
  int64_t step = 1;
  for (int64_t d : order) {
    if (strides()[d] != step) return false;
    step *= sizes()[d];
  }
  return true;
}

void Tensor::check_without_memory() const {
  if (numel() == 0) return;
  STRATA_CHECK(
      !is_meta(),
      "The tensor has a shape only and no values (meta execution), where values are read, as Tensor.item() and "
      "operands with values do; make all operands on one device");
  STRATA_CHECK(device().type <= 1 || !storage()->handle(), "The host can't read the memory of a tensor on ", device(),
               "; copy it with .to(\"cpu\") first");
  throw_error(
      ErrorKind::Runtime,
      "The tensor has a non-zero number of elements, but its data is not allocated: its storage was resized to 0 "
      "bytes; give the storage its length back first");
}

Tensor Tensor::alias(IntArrayRef sizes, IntArrayRef strides, int64_t offset) const {
  TensorImpl* old = impl_.get();
  Tensor t(Ref<TensorImpl>::adopt(
      new TensorImpl(old->storage_, old->dtype_, old->keys_ - KeySet(Key::Autograd), old->device_)));
  t.impl_->set_geometry(sizes, strides, offset);
  t.impl_->inference_ = old->inference_;
  if (STRATA_UNLIKELY(bool(old->writes_))) t.impl_->writes_ = old->writes_;
  return t;
}

int64_t strided_span(IntArrayRef sizes, IntArrayRef strides) {
  for (int64_t n : sizes)
    if (n == 0) return 0;
  int64_t span = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    span = checked_add(span, checked_mul(sizes[i] - 1, strides[i], "strides"), "strides");
  }
  return span;
}

namespace {
std::atomic<Allocator& (*)(int)> allocators[kMaxDeviceTypes];
// Bit 0: results are watched; above it, how many MetaGuards there are.
thread_local int modes STRATA_HOT_TLS = 0;
void (*result_hook)() = nullptr;
thread_local bool inference_tensors STRATA_HOT_TLS = false;
}  // namespace

void register_allocators(int device_type, Allocator& (*of)(int index)) { allocators[device_type] = of; }

Allocator& allocator_for(Device device) {
  if (device.is_cpu() || device.is_meta()) return cpu_allocator();  // nothing is allocated for the latter
  Allocator& (*of)(int) = allocators[device.type];
  STRATA_CHECK(of, "device: no allocator for ", device, "; load the plugin that offers it");
  return of(device.index);
}

MetaGuard::MetaGuard() { modes += 2; }
MetaGuard::~MetaGuard() { modes -= 2; }
bool MetaGuard::active() { return modes > 1; }

void set_result_hook(void (*hook)()) { result_hook = hook; }
void watch_results(bool on) { modes = on ? modes | 1 : modes & ~1; }

void set_inference_tensors(bool on) { inference_tensors = on; }

void Tensor::check_write(const char* op) const {
  STRATA_CHECK(!impl_->storage_->read_only(), op,
               ": expected a tensor that may be written, got the result of conj(), adjoint(), mH or H of a complex "
               "tensor: it is a copy, so that a write would not reach the tensor it was made from; write to its "
               "clone(), or use conj_physical()");
  STRATA_CHECK(!impl_->inference_ || inference_tensors,
               "Inplace update to inference tensor outside InferenceMode is not allowed: ", op,
               " writes one; write to its clone(), which is a normal tensor");
}

namespace {
// Of memory, or without it.
[[gnu::noinline, gnu::cold]] Ref<Storage> storage_elsewhere(Device device, size_t bytes, bool meta) {
  Allocator& own = allocator_for(device);
  return meta ? Storage::make(own, bytes, false) : Storage::away(own, bytes);
}
[[gnu::always_inline]] inline Ref<Storage> fresh_storage(Device device, int64_t bytes, bool meta) {
  if (STRATA_UNLIKELY(device.type > 1)) return storage_elsewhere(device, size_t(bytes), meta);
  return Storage::make(cpu_allocator(), size_t(bytes), !meta);
}

// `device`: with its number, where it is a plugin's.
Tensor fresh_tensor(Ref<Storage> storage, DType dtype, bool meta, Device device) {
  KeySet keys = Key::Backend | Key::InplaceOrView;
  if (meta) keys = keys | KeySet(Key::Meta);
  Tensor t(Ref<TensorImpl>::adopt(new TensorImpl(std::move(storage), dtype, keys, device)));
  t.impl()->inference_ = inference_tensors;
  return t;
}
}  // namespace

Tensor make_tensor(IntArrayRef sizes, DType dtype, Device device, bool meta) {
  meta |= MetaGuard::active() || device.is_meta();
  int64_t bytes = checked_bytes(checked_numel(sizes, "empty"), itemsize(dtype), "empty");
  Ref<Storage> storage = fresh_storage(device, bytes, meta);
  if (STRATA_UNLIKELY(device.type > 1)) device = storage->device();
  Tensor t = fresh_tensor(std::move(storage), dtype, meta, device);
  t.impl()->set_geometry(sizes, 0);
  return t;
}

Tensor make_tensor_like(const TensorImpl& shape_of, DType dtype) {
  if (STRATA_UNLIKELY(modes != 0)) {
    if (modes & 1) result_hook();
    if (MetaGuard::active()) return make_tensor(shape_of.sizes(), dtype, shape_of.device_, true);
  }
  Tensor t = fresh_tensor(fresh_storage(shape_of.device_, shape_of.numel_ * itemsize(dtype), false), dtype, false,
                          shape_of.device_);
  t.impl()->copy_contiguous_geometry(shape_of);
  return t;
}

Tensor make_tensor_strided(IntArrayRef sizes, IntArrayRef strides, DType dtype, Device device, bool meta) {
  meta |= MetaGuard::active() || device.is_meta();
  checked_numel(sizes, "empty_strided");
  int64_t bytes = checked_bytes(strided_span(sizes, strides), itemsize(dtype), "empty_strided");
  Ref<Storage> storage = fresh_storage(device, bytes, meta);
  if (STRATA_UNLIKELY(device.type > 1)) device = storage->device();
  Tensor t = fresh_tensor(std::move(storage), dtype, meta, device);
  t.impl()->set_geometry(sizes, strides, 0);
  return t;
}

Tensor make_tensor_as(const Tensor& like, IntArrayRef sizes, DType dtype) {
  return make_tensor(sizes, dtype, like.device(), like.is_meta());
}

Tensor make_tensor_strided_as(const Tensor& like, IntArrayRef sizes, IntArrayRef strides, DType dtype) {
  return make_tensor_strided(sizes, strides, dtype, like.device(), like.is_meta());
}

bool shape_only(ArrayRef<const Tensor*> operands) {
  for (const Tensor* t : operands)
    if (t->is_meta()) return true;
  return false;
}

Tensor make_tensor_over(Ref<Storage> storage, IntArrayRef sizes, IntArrayRef strides, int64_t offset, DType dtype) {
  Device device = storage->device();
  Tensor t = fresh_tensor(std::move(storage), dtype, false, device);
  t.impl()->set_geometry(sizes, strides, offset);
  return t;
}

Tensor wrapped_number(const Scalar& value) {
  DType dtype = value.dtype();
  if (value.is_float()) dtype = DType::F64;
  if (value.is_complex()) dtype = DType::C128;
  // With memory under a MetaGuard, too: a number is known.
  Tensor t = make_tensor_over(Storage::make(cpu_allocator(), size_t(itemsize(dtype))), {}, {}, 0, dtype);
  switch (dtype) {
    case DType::Bool:
      *t.data<bool>() = value.to_bool();
      break;
    case DType::I64:
      if (value.is_unsigned64()) return wrapped_number(Scalar(value.to_double()));
      *t.data<int64_t>() = value.to_int();
      break;
    case DType::F64:
      *t.data<double>() = value.to_double();
      break;
    default:
      *t.data<std::complex<double>>() = value.to_complex();
  }
  t.impl()->wrapped_number_ = true;
  return t;
}

std::ostream& operator<<(std::ostream& out, const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool:
      return out << (s.to_bool() ? "True" : "False");
    case Scalar::Kind::Int:
      if (s.is_unsigned64()) return out << uint64_t(s.to_int());
      return out << s.to_int();
    case Scalar::Kind::Float:
      return out << s.to_double();
    default:
      return out << '(' << s.to_complex().real() << '+' << s.to_complex().imag() << "j)";
  }
}

const char* key_name(Key key) {
  static constexpr const char* names[kKeyCount] = {"Backend",  "Meta",     "Tracer", "Functionalize", "InplaceOrView",
                                                   "Autograd", "Autocast", "Vmap",   "User0",         "User1",
                                                   "User2",    "User3",    "Python"};
  return names[static_cast<int>(key)];
}

}  // namespace strata
