#include "core/promote.h"

#include <algorithm>

namespace strata {

void ResultType::add(const Tensor& t) {
  if (!t.defined()) return;
  DType d = t.dtype();
  if (t.impl()->wrapped_number_) {
    if (is_complex(d)) d = default_complex_dtype();
    if (is_float(d)) d = default_dtype();
    wrapped_ = join(wrapped_, d);
  } else if (t.dim() > 0) {
    dim_ = join(dim_, d);
  } else {
    zero_ = join(zero_, d);
  }
}

ResultType::Maybe ResultType::combine(Maybe higher, Maybe lower) {
  if (!higher) return lower;
  if (!lower || is_complex(*higher)) return higher;
  if (is_float(*higher)) return is_complex(*lower) ? to_complex(*higher) : *higher;
  if (*higher == DType::Bool || is_float(*lower) || is_complex(*lower)) return promote_types(*higher, *lower);
  return higher;
}

DType ResultType::get() const {
  Maybe r = combine(dim_, combine(zero_, wrapped_));
  STRATA_CHECK(r, "result_type: expected at least one tensor or number, got none");
  return *r;
}

bool ResultType::is_complex_half() const {
  const Maybe lower = combine(zero_, wrapped_);
  const bool half = zero_ == DType::F16 && wrapped_ && is_complex(*wrapped_);
  if (!dim_ || is_complex(*dim_)) return !dim_ && half;
  return is_float(*dim_) ? dim_ == DType::F16 && lower && is_complex(*lower) : half;
}

const char* scalar_type_name(DType t) {
  static constexpr const char* names[kDTypeCount] = {"Bool",     "Byte",  "Char",   "UInt16",       "Short",
                                                     "UInt32",   "Int",   "UInt64", "Long",         "Half",
                                                     "BFloat16", "Float", "Double", "ComplexFloat", "ComplexDouble"};
  return names[static_cast<int>(t)];
}

DimVec broadcast_shapes(IntArrayRef a, IntArrayRef b) {
  size_t n = std::max(a.size(), b.size());
  DimVec out(n);
  for (size_t i = n; i-- > 0;) {
    int64_t x = i < n - a.size() ? 1 : a[i - (n - a.size())];
    int64_t y = i < n - b.size() ? 1 : b[i - (n - b.size())];
    STRATA_CHECK(x == y || x == 1 || y == 1, "The size of tensor a (", x, ") must match the size of tensor b (", y,
                 ") at non-singleton dimension ", i);
    out[i] = x == 1 ? y : x;
  }
  return out;
}

void check_same_device(const Tensor& a, const Tensor& b, const char* op) {
  // Shapes stand for tensors of a plugin's device while an operator is prepared.
  auto place = [](const Tensor& t) {
    return t.is_meta() && t.device().type <= 1 ? std::string("meta") : to_string(t.device());
  };
  STRATA_CHECK(a.device() == b.device() && a.is_meta() == b.is_meta(), op,
               ": Expected all tensors to be on the same device, but found at least two devices, ", place(a), " and ",
               place(b), "; move one with .to()");
}

void check_operand_device(const Tensor& out, const Tensor& operand, const char* op) {
  if (operand.dim() > 0 || operand.is_meta()) check_same_device(out, operand, op);
}

void refuse_no_data(const char* op, Device device) {
  throw_error(ErrorKind::NotImplemented,
              str_cat(op, ": Cannot copy out of meta tensor; no data! Make the tensor anew on ", device,
                      " (strata.empty_like, or Module.to_empty for a module)"));
}

bool overlaps_itself(const Tensor& t) {
  if (t.numel() == 0 || t.is_contiguous()) return false;
  SmallVec<int64_t, 8> order;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.sizes()[d] > 1) order.push_back(d);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return t.strides()[a] < t.strides()[b]; });
  int64_t reach = 0;  // the largest offset of the dims so far
  for (int64_t d : order) {
    if (t.strides()[d] <= reach) return t.strides()[d] == 0;  // interleaved strides: too hard to tell, as in PyTorch
    reach += (t.sizes()[d] - 1) * t.strides()[d];
  }
  return false;
}

Overlap overlap_between(const Tensor& a, const Tensor& b) {
  if (a.impl() == b.impl()) return Overlap::Full;
  if (a.numel() == 0 || b.numel() == 0 || a.storage().get() != b.storage().get()) return Overlap::None;
  if (!a.is_non_overlapping_and_dense() || !b.is_non_overlapping_and_dense()) {
    // As PyTorch does: only dense tensors are judged, and equal geometry is full overlap.
    return a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() && a.strides() == b.strides()
               ? Overlap::Full
               : Overlap::None;
  }
  const int64_t ab = a.storage_offset() * a.itemsize(), ae = ab + a.nbytes();
  const int64_t bb = b.storage_offset() * b.itemsize(), be = bb + b.nbytes();
  if (ab == bb && ae == be && a.strides() == b.strides()) return Overlap::Full;
  return ab < be && bb < ae ? Overlap::Partial : Overlap::None;
}

}  // namespace strata
