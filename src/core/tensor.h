// Tensor: a counted handle of a TensorImpl, which holds the header (sizes, strides and autograd links inline) and
// shares a Storage. A default-made Tensor is undefined and stands for `None`.
#pragma once
#include <complex>
#include <cstring>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/array_ref.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/generator.h"
#include "core/keys.h"
#include "core/memory_format.h"
#include "core/scalar.h"
#include "core/storage.h"

namespace strata {

class Tensor;
using TensorList = ArrayRef<Tensor>;
using OptIntArrayRef = std::optional<IntArrayRef>;

// What a tensor must know of autograd, which stands above this layer.
class NodeBase {
 public:
  void incref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void decref() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  // Takes a reference unless the object is already dying.
  bool try_incref() {
    int32_t n = refs_.load(std::memory_order_relaxed);
    while (n > 0)
      if (refs_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
    return false;
  }
  int use_count() const { return refs_.load(std::memory_order_relaxed); }

 protected:
  virtual ~NodeBase() = default;
  virtual void destroy() { delete this; }

 private:
  std::atomic<int32_t> refs_{0};
};

class AutogradMetaBase {
 public:
  virtual ~AutogradMetaBase() = default;
};

class TensorImpl {
 public:
  static constexpr int kInlineDims = 5;
  static constexpr int kMaxDims = 64;

  TensorImpl(Ref<Storage> storage, DType dtype, KeySet keys, Device device)
      : dtype_(dtype), device_(device), keys_(keys), storage_(std::move(storage)) {}
  ~TensorImpl();

  // Sets the geometry; strides are those of a contiguous tensor when none are given.
  void set_geometry(IntArrayRef sizes, int64_t offset);
  void set_geometry(IntArrayRef sizes, IntArrayRef strides, int64_t offset);

  // That of a contiguous tensor of the same sizes.
  void copy_contiguous_geometry(const TensorImpl& o) {
    if (STRATA_UNLIKELY(o.heap_capacity_ != 0)) return set_geometry(o.sizes(), 0);
    std::memcpy(inline_dims_, o.inline_dims_, sizeof inline_dims_);
    ndim_ = o.ndim_;
    numel_ = o.numel_;
  }

  IntArrayRef sizes() const { return {dims(), size_t(ndim_)}; }
  IntArrayRef strides() const { return {dims() + capacity(), size_t(ndim_)}; }

  void incref() { refs_.up(); }
  void decref();  // called: in place of a call its text is 20 KB of the library
  int use_count() const { return refs_.get(); }
  Writes& writes() const { return STRATA_UNLIKELY(bool(writes_)) ? *writes_ : storage_->writes(); }
  // Other memory; the count goes on.
  void take_storage(Ref<Storage> storage);
  static void* operator new(size_t);
  static void operator delete(void* p);

  // Fields are open to the core; users see them through Tensor.
  RefCount refs_;
  DType dtype_;
  uint8_t ndim_ = 0;
  uint8_t heap_capacity_ = 0;  // of `heap_dims_`; 0: dims are inline
  bool contiguous_ : 1 = true;
  bool requires_grad_ : 1 = false;    // asked for by the user; meaningful on leaves
  bool inference_ : 1 = false;        // made in inference mode
  bool wrapped_number_ : 1 = false;   // a Python number: takes part in promotion as one
  bool unrecorded_view_ : 1 = false;  // a view that was made while gradients were off
  bool function_view_ : 1 = false;    // a view that a custom function gave, or of one: its history is not its base's
  bool turned_ : 1 = false;           // took other sizes or strides unrecorded, while views of it may live
  bool py_owned_ : 1 = false;         // this object keeps its Python object alive, not the other way round
  Device device_;
  KeySet keys_;
  uint32_t output_nr_ = 0;
  int64_t offset_ = 0;
  int64_t numel_ = 0;
  Ref<Storage> storage_;
  Ref<OwnWrites> writes_;  // of `.data`, and of what was given other memory; else the storage's count
  Ref<NodeBase> grad_fn_;
  AutogradMetaBase* autograd_ = nullptr;  // owned; leaves' gradient, hooks
  TensorImpl* base_ = nullptr;            // owned reference: what this is a view of
  void* pyobj_ = nullptr;
  uint32_t view_version_ = 0;  // the version when grad_fn_ was made, for views
  union {
    int64_t inline_dims_[2 * kInlineDims];
    int64_t* heap_dims_;
  };

 private:
  int capacity() const { return heap_capacity_ ? heap_capacity_ : kInlineDims; }
  int64_t* dims() { return heap_capacity_ ? heap_dims_ : inline_dims_; }
  const int64_t* dims() const { return heap_capacity_ ? heap_dims_ : inline_dims_; }
  void reserve_dims(size_t n);
  void release();
};

// Called with a Python object that a dying tensor owned.
extern void (*release_python_object)(void* object);

struct TensorOptions {
  std::optional<DType> dtype;
  std::optional<Device> device;
  std::optional<MemoryFormat> memory_format;
  bool requires_grad = false;
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(std::nullptr_t) {}
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return bool(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  bool is_same(const Tensor& o) const { return impl_.get() == o.impl_.get(); }
  void reset() { impl_.reset(); }

  int64_t dim() const { return impl_->ndim_; }
  IntArrayRef sizes() const { return impl_->sizes(); }
  IntArrayRef strides() const { return impl_->strides(); }
  int64_t size(int64_t d) const;  // raises IndexError outside [-dim, dim)
  int64_t stride(int64_t d) const;
  int64_t numel() const { return impl_->numel_; }
  DType dtype() const { return impl_->dtype_; }
  DType scalar_type() const { return impl_->dtype_; }
  Device device() const { return impl_->device_; }
  KeySet keys() const { return impl_->keys_; }
  int64_t itemsize() const { return strata::itemsize(dtype()); }
  int64_t nbytes() const { return numel() * itemsize(); }
  int64_t storage_offset() const { return impl_->offset_; }
  const Ref<Storage>& storage() const { return impl_->storage_; }
  bool is_meta() const { return impl_->keys_.has(Key::Meta); }
  // The device type whose functions fill it: that of meta, which do nothing, where it has a shape alone.
  int filled_by() const { return is_meta() ? 1 : device().type; }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  bool is_complex() const { return strata::is_complex(dtype()); }
  bool is_floating_point() const { return strata::is_float(dtype()); }
  // Strides are a permutation of a contiguous tensor's, without overlap.
  bool is_non_overlapping_and_dense() const;
  TensorOptions options() const { return {dtype(), device(), {}, false}; }

  char* bytes() const {
    char* data = static_cast<char*>(impl_->storage_->data());
    if (STRATA_UNLIKELY(!data)) return check_without_memory(), nullptr;
    return data + impl_->offset_ * itemsize();
  }
  void* data_ptr() const { return bytes(); }
  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(bytes());
  }

  // A view of what requires a gradient does, too, where it was made unrecorded and its gradient leads nowhere.
  bool requires_grad() const {
    const TensorImpl* base = impl_->base_;
    return impl_->requires_grad_ || impl_->grad_fn_ || (base && (base->requires_grad_ || base->grad_fn_));
  }
  bool is_leaf() const { return !impl_->grad_fn_; }
  bool is_view() const { return impl_->base_ != nullptr; }
  // Raises where the memory was given back.
  void check_memory() const {
    if (!is_meta() && !impl_->storage_->handle()) bytes();
  }
  // Before an operator writes: raises where the memory is read-only, and for inference tensors outside of their mode.
  void check_writable(const char* op) const {
    if (STRATA_UNLIKELY(impl_->storage_->read_only() || impl_->inference_)) check_write(op);
  }
  uint32_t version() const { return impl_->writes().count(); }
  void bump_version(const char* op) const { impl_->writes().note(op); }

  // A new header over the same storage, without autograd history.
  Tensor alias(IntArrayRef sizes, IntArrayRef strides, int64_t offset) const;
  Tensor alias() const { return alias(sizes(), strides(), storage_offset()); }

// Methods of operators, for programs; they are inline calls of ops::, defined in strata/generated/ops.h. The library's
// own code goes without them, so that a new operator does not build it anew.
#ifndef STRATA_BUILD
#include "strata/generated/tensor_methods.inc"
  // Of gradients; defined in strata/autograd.h.
  void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false) const;
  Tensor grad() const;
  const Tensor& requires_grad_(bool on = true) const;
#endif

 private:
  // Raises unless the tensor is empty.
  void check_without_memory() const;
  void check_write(const char* op) const;
  Ref<TensorImpl> impl_;
};

// A fresh tensor, contiguous unless strides are given. `like_meta` makes a shape-only one. Raises for negative or
// overflowing sizes; the content is not initialised.
Tensor make_tensor(IntArrayRef sizes, DType dtype, Device device = Device{0, -1}, bool meta = false);
// The same for the sizes of `shape_of`, a contiguous tensor that has been allocated on its device.
Tensor make_tensor_like(const TensorImpl& shape_of, DType dtype);
Tensor make_tensor_strided(IntArrayRef sizes, IntArrayRef strides, DType dtype, Device device = Device{0, -1},
                           bool meta = false);
// As `like`: on its device, and shape-only where it is.
Tensor make_tensor_as(const Tensor& like, IntArrayRef sizes, DType dtype);
Tensor make_tensor_strided_as(const Tensor& like, IntArrayRef sizes, IntArrayRef strides, DType dtype);
// Whether a result of these operands has a shape alone.
bool shape_only(ArrayRef<const Tensor*> operands);
Tensor make_tensor_over(Ref<Storage> storage, IntArrayRef sizes, IntArrayRef strides, int64_t offset, DType dtype);
// A 0-dim CPU tensor that promotes like a Python number.
Tensor wrapped_number(const Scalar& value);
// Bytes that a strided tensor spans from its first element. Raises on overflow.
int64_t strided_span(IntArrayRef sizes, IntArrayRef strides);

// Allocators by device type: `of` gives that of a device of the type; of number -1, of the current one. The CPU's is
// there.
void register_allocators(int device_type, Allocator& (*of)(int index));
Allocator& allocator_for(Device device);

// Shape-only execution: while one is alive on this thread, factories make tensors without memory.
class MetaGuard {
 public:
  MetaGuard();
  ~MetaGuard();
  static bool active();
};

// The same where `like` is shape-only: what factories make then goes together with it. A subclass that holds other
// tensors goes together with such as have memory.
class KindGuard {
 public:
  explicit KindGuard(const Tensor& like) {
    if (like.is_meta() && !like.keys().has(Key::Python)) guard_.emplace();
  }

 private:
  std::optional<MetaGuard> guard_;
};

// While set on this thread, fresh tensors are inference tensors: never recorded, and written under the same mode alone.
void set_inference_tensors(bool on);

}  // namespace strata
