#include "core/shape/pool.h"

#include "core/promote.h"

namespace strata::shape {
namespace {

int64_t at(IntArrayRef list, size_t d) { return list.size() == 1 ? list[0] : list[d]; }

void check_list(const char* op, const char* what, int64_t rank, IntArrayRef list, bool may_be_empty) {
  STRATA_CHECK(list.size() == 1 || int64_t(list.size()) == rank || (may_be_empty && list.empty()), op, ": ", what,
               " must ", may_be_empty ? "either be omitted, " : "either be ", "a single int, or a tuple of ",
               rank == 2 ? "two" : "three", " ints; got ", list);
}

template <class S>
void check_input(const char* op, int64_t rank, const Geometry<S>& self) {
  const int64_t n = self.dim();
  STRATA_CHECK(n == rank + 1 || n == rank + 2, "non-empty ", rank + 1, "D or ", rank + 2,
               "D (batch mode) tensor expected for input of ", op, ", got ", self.sizes);
  bool fits = true;
  for (int64_t d = n == rank + 2 ? 1 : 0; d < n; ++d) fits &= self.sizes[size_t(d)] != S(0);
  STRATA_CHECK(fits, "Expected ", rank + 1, "D or ", rank + 2,
               "D (batch mode) tensor with optional 0 dim batch size for input, but got:", self.sizes, " (", op, ")");
}

template <class S>
Sizes<S> pooled_sizes(const Geometry<S>& self, const PoolAxes<S>& axes) {
  Sizes<S> sizes(self.sizes);
  for (size_t d = 0; d < axes.size(); ++d) sizes[sizes.size() - axes.size() + d] = axes[d].count;
  return sizes;
}

template <class S>
Prepared<S> prepared(const Geometry<S>& self, const PoolAxes<S>& axes) {
  const int64_t absent = 3 - int64_t(axes.size());
  Prepared<S> r(pooled_sizes(self, axes), self.dtype);
  for (const char* group : {"f", "g"}) {
    Place p{group, {}};
    for (int64_t c = 0; c < 3; ++c) p.dims.push_back(c < absent ? -1 : self.dim() - 3 + c);
    r.places.push_back(std::move(p));
  }
  return r;
}

// The lists of sliding windows, and how many elements a window has.
template <class S>
Prepared<S> sliding(const Geometry<S>& self, const PoolAxes<S>& axes) {
  Prepared<S> r = prepared(self, axes);
  auto list = [&](const char* name, int64_t PoolAxis<S>::* member, int64_t absent) {
    Value<S> v{name, {}};
    for (size_t c = axes.size(); c < 3; ++c) v.values.push_back(S(absent));
    for (const PoolAxis<S>& a : axes) v.values.push_back(S(a.*member));
    return v;
  };
  r.values.push_back(list("step", &PoolAxis<S>::stride, 1));
  r.values.push_back(list("pad", &PoolAxis<S>::padding, 0));
  r.values.push_back(list("apart", &PoolAxis<S>::dilation, 1));
  r.extents.push_back(list("k", &PoolAxis<S>::kernel, 1));
  return r;
}

// Windows that cover a dim evenly differ in size by one or two; those that have less leave elements out.
template <class S>
Prepared<S> even(const Geometry<S>& self, const PoolAxes<S>& axes) {
  Prepared<S> r = prepared(self, axes);
  Extent<S> most{"k", {}};
  for (size_t c = axes.size(); c < 3; ++c) most.values.push_back(S(1));
  for (const PoolAxis<S>& a : axes) {
    const S count = a.count == S(0) ? S(1) : a.count;
    most.values.push_back(a.size / count * count == a.size ? a.size / count : a.size / count + S(2));
  }
  r.extents.push_back(std::move(most));
  return r;
}

}  // namespace

template <class S>
PoolAxes<S> sliding_axes(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef kernel, IntArrayRef stride,
                         IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  check_list(op, "kernel_size", rank, kernel, false);
  check_list(op, "stride", rank, stride, true);
  check_list(op, "padding", rank, padding, false);
  check_list(op, "dilation", rank, dilation, false);
  check_input(op, rank, self);
  PoolAxes<S> axes;
  for (size_t d = 0; d < size_t(rank); ++d) {
    PoolAxis<S> a;
    a.size = self.sizes[size_t(self.dim() - rank) + d];
    a.kernel = at(kernel, d);
    a.stride = stride.empty() ? a.kernel : at(stride, d);
    a.padding = at(padding, d);
    a.dilation = at(dilation, d);
    STRATA_CHECK(a.kernel > 0, op, ": kernel size should be greater than zero, but got ", kernel);
    STRATA_CHECK(a.stride != 0, "stride should not be zero (", op, ")");
    STRATA_CHECK(a.stride > 0, op, ": stride should be greater than zero, but got ", stride);
    STRATA_CHECK(a.dilation > 0, op, ": dilation should be greater than zero, but got ", dilation);
    STRATA_CHECK(a.padding >= 0, "pad must be non-negative, but got pad: ", a.padding, " (", op, ")");
    const int64_t reach = kernel_reach<int64_t>(a.kernel, a.dilation);
    STRATA_CHECK(a.padding <= plus<int64_t>(reach, 1) / 2,
                 "pad should be at most half of effective kernel size, but got pad=", a.padding,
                 ", kernel_size=", a.kernel, " and dilation=", a.dilation);
    STRATA_CHECK(a.padding <= a.kernel / 2,
                 "pad should be smaller than or equal to half of kernel size, but got pad=", a.padding,
                 " and kernel_size=", a.kernel, " (", op, ")");
    const S span = plus(a.size, S(2 * a.padding)) - S(reach) - S(1);
    a.count = span < S(0) && !(ceil_mode && span > S(-a.stride))
                  ? S(0)
                  : pool_size(a.size, S(a.kernel), S(a.stride), S(a.padding), S(a.dilation), ceil_mode);
    axes.push_back(a);
  }
  for (const PoolAxis<S>& a : axes)
    STRATA_CHECK(a.count >= S(1), op, ": Given input size: ", self.sizes,
                 ". Calculated output size: ", ArrayRef<S>(pooled_sizes(self, axes)), ". Output size is too small");
  return axes;
}

template <class S>
PoolAxes<S> even_axes(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef output_size) {
  STRATA_CHECK(int64_t(output_size.size()) == rank, op, ": output_size must be ", rank, ", got ", output_size);
  check_input(op, rank, self);
  PoolAxes<S> axes;
  for (size_t d = 0; d < size_t(rank); ++d) {
    STRATA_CHECK(output_size[d] >= 0, op, ": elements of output_size must be greater than or equal to 0 but received ",
                 output_size);
    axes.push_back({self.sizes[size_t(self.dim() - rank) + d], S(output_size[d])});
  }
  return axes;
}

template <class S>
Prepared<S> max_pool(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  Prepared<S> r = sliding(self, sliding_axes(op, rank, self, kernel, stride, padding, dilation, ceil_mode));
  r.outputs.push_back({r.outputs[0].sizes, DType::I64});
  r.contiguous = self.dim() != rank + 2;
  return r;
}

template <class S>
Prepared<S> avg_pool(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding, bool ceil_mode, std::optional<int64_t> divisor) {
  STRATA_CHECK(!divisor || *divisor != 0, op, ": divisor must be not zero");
  const int64_t one = 1;
  const PoolAxes<S> axes = sliding_axes(op, rank, self, kernel, stride, padding, IntArrayRef(one), ceil_mode);
  for (const PoolAxis<S>& a : axes)
    STRATA_CHECK(rank < 3 || a.size >= S(a.kernel), op, ": input image ", self.sizes, " smaller than kernel size ",
                 kernel);
  Prepared<S> r = sliding(self, axes);
  r.contiguous = rank != 2 || self.dim() != 4;
  return r;
}

template <class S>
Prepared<S> adaptive_avg_pool(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef output_size) {
  Prepared<S> r = even(self, even_axes(op, rank, self, output_size));
  r.contiguous = rank != 2 || self.dim() != 4;
  return r;
}

template <class S>
Prepared<S> adaptive_max_pool(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef output_size) {
  Prepared<S> r = adaptive_avg_pool(op, rank, self, output_size);
  r.outputs.push_back({r.outputs[0].sizes, DType::I64});
  return r;
}

namespace {

// A gradient of windows of self: what the rule of the windows gives, for a result of self's sizes.
template <class S>
Prepared<S> windows_backward(const char* op, const Geometry<S>& grad, const Geometry<S>& self, Prepared<S> r) {
  STRATA_CHECK(grad.sizes == ArrayRef<S>(r.outputs[0].sizes), op, ": expected grad_output of shape ",
               ArrayRef<S>(r.outputs[0].sizes), ", got ", grad.sizes);
  STRATA_CHECK(grad.dtype == self.dtype, op, ": expected grad_output of dtype ", self.dtype, ", got ", grad.dtype);
  r.outputs[0].sizes = self.sizes;
  return r;
}

}  // namespace

template <class S>
Prepared<S> avg_pool_backward(const char* op, int64_t rank, const Geometry<S>& grad, const Geometry<S>& self,
                              IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                              std::optional<int64_t> divisor) {
  return windows_backward(op, grad, self, avg_pool(op, rank, self, kernel, stride, padding, ceil_mode, divisor));
}

template <class S>
Prepared<S> adaptive_avg_pool_backward(const char* op, int64_t rank, const Geometry<S>& grad, const Geometry<S>& self) {
  const int64_t n = grad.dim();
  STRATA_CHECK(n == self.dim() && n > rank, op, ": expected grad_output of ", self.dim(), " dims, got ", n);
  PoolAxes<S> axes;
  check_input(op, rank, self);
  for (int64_t d = n - rank; d < n; ++d) axes.push_back({self.sizes[size_t(d)], grad.sizes[size_t(d)]});
  Prepared<S> r = even(self, axes);
  r.contiguous = rank != 2 || self.dim() != 4;
  return windows_backward(op, grad, self, std::move(r));
}

template <class S>
Prepared<S> max_pool_backward(const char* op, int64_t rank, const Geometry<S>& grad, const Geometry<S>& self,
                              const Geometry<S>& indices) {
  const int64_t first = self.dim() - rank;
  STRATA_CHECK(grad.sizes == indices.sizes && grad.dim() == self.dim() && first >= 0, op,
               ": expected grad_output of the shape of indices, ", indices.sizes, ", got ", grad.sizes);
  STRATA_CHECK(grad.dtype == self.dtype, op, ": expected grad_output of dtype ", self.dtype, ", got ", grad.dtype);
  STRATA_CHECK(indices.dtype == DType::I64, op, ": expected indices of dtype int64, got ", indices.dtype);
  for (int64_t d = 0; d < first; ++d)
    STRATA_CHECK(grad.sizes[size_t(d)] == self.sizes[size_t(d)], op, ": expected grad_output and self to agree in dim ",
                 d, ", got shapes ", grad.sizes, " and ", self.sizes);
  Prepared<S> r(self.sizes, self.dtype);
  for (int operand = 0; operand < 3; ++operand) r.joins.push_back({operand, first, rank});
  r.place("n", first);
  r.place("i", first);
  r.size = S(1);
  for (int64_t d = first; d < self.dim(); ++d) r.size = r.size * self.sizes[size_t(d)];
  r.contiguous = self.dim() != rank + 2;
  return r;
}

template <class S>
Prepared<S> fractional_max_pool(const char* op, int64_t rank, const Geometry<S>& self, IntArrayRef kernel,
                                IntArrayRef output_size, const Geometry<S>& samples) {
  for (const auto& [what, list] : {std::pair("kernel_size", kernel), std::pair("output_size", output_size)})
    STRATA_CHECK(list.size() == 1 || int64_t(list.size()) == rank, op, ": ", what,
                 " must either be a single int or tuple of Ints; got ", list);
  const int64_t n = self.dim();
  STRATA_CHECK(n == rank + 1 || n == rank + 2, op, "(): Expected ", rank + 1, "D or ", rank + 2,
               "D tensor, but got: ", self.sizes);
  const bool batched = n == rank + 2;
  for (int64_t d = batched; d < n; ++d)
    STRATA_CHECK(self.sizes[size_t(d)] > S(0), op,
                 "(): Expected input to have non-zero size for non-batch dimensions, but got ", self.sizes,
                 " with dimension ", d, " being empty.");
  constexpr const char* names[] = {"time", "height", "width"};
  Sizes<S> sizes(self.sizes);
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t window = kernel[kernel.size() == 1 ? 0 : size_t(d)];
    const int64_t count = output_size[output_size.size() == 1 ? 0 : size_t(d)];
    S& size = sizes[size_t(n - rank + d)];
    STRATA_CHECK(window > 0 && count > 0, op, "(): kernel_size and output_size must be greater than 0, but got ",
                 kernel, " and ", output_size);
    // As PyTorch, which wants one element more of volumes than of planes.
    const S room = size - S(rank - 2);
    STRATA_CHECK(S(window) <= room && S(count) <= room - S(window) + S(1), op, "(): pool ", names[3 - rank + d], " (",
                 window, ") too large relative to input ", names[3 - rank + d], " (", size, ")");
    size = S(count);
  }
  STRATA_CHECK_NOT_IMPLEMENTED(is_float(self.dtype), "\"", op, "\" not implemented for '", scalar_type_name(self.dtype),
                               "'; convert the input with .to() first");
  STRATA_CHECK(samples.dtype == self.dtype, "Expect _random_samples to have the same dtype as input: ", op, " got ",
               samples.dtype, " for an input of ", self.dtype);
  STRATA_CHECK(samples.dim() == 3, "Expect _random_samples to have 3 dimensions, got ", samples.dim(), " (in ", op,
               ")");
  const S batch = batched ? self.sizes[0] : S(1), &channels = self.sizes[size_t(n - rank - 1)];
  STRATA_CHECK(samples.sizes[0] >= batch, "Expect _random_samples.size(0) no less then input batch size: ", op, " got ",
               samples.sizes[0], " for a batch of ", batch);
  STRATA_CHECK(samples.sizes[1] == channels, "Expect _random_samples.size(1) equals to input channel size: ", op,
               " got ", samples.sizes[1], " for ", channels, " channels");
  STRATA_CHECK(samples.sizes[2] == S(rank), "Expect _random_samples.size(2) equals to ", rank, "; got ",
               samples.sizes[2], " (in ", op, ")");
  Prepared<S> r(sizes, self.dtype);
  r.add({std::move(sizes), DType::I64});
  return r;
}

#define STRATA_RULES(S)                                                                                                \
  template PoolAxes<S> sliding_axes(const char*, int64_t, const Geometry<S>&, IntArrayRef, IntArrayRef, IntArrayRef,   \
                                    IntArrayRef, bool);                                                                \
  template PoolAxes<S> even_axes(const char*, int64_t, const Geometry<S>&, IntArrayRef);                               \
  template Prepared<S> max_pool(const char*, int64_t, const Geometry<S>&, IntArrayRef, IntArrayRef, IntArrayRef,       \
                                IntArrayRef, bool);                                                                    \
  template Prepared<S> avg_pool(const char*, int64_t, const Geometry<S>&, IntArrayRef, IntArrayRef, IntArrayRef, bool, \
                                std::optional<int64_t>);                                                               \
  template Prepared<S> adaptive_avg_pool(const char*, int64_t, const Geometry<S>&, IntArrayRef);                       \
  template Prepared<S> adaptive_max_pool(const char*, int64_t, const Geometry<S>&, IntArrayRef);                       \
  template Prepared<S> avg_pool_backward(const char*, int64_t, const Geometry<S>&, const Geometry<S>&, IntArrayRef,    \
                                         IntArrayRef, IntArrayRef, bool, std::optional<int64_t>);                      \
  template Prepared<S> adaptive_avg_pool_backward(const char*, int64_t, const Geometry<S>&, const Geometry<S>&);       \
  template Prepared<S> fractional_max_pool(const char*, int64_t, const Geometry<S>&, IntArrayRef, IntArrayRef,         \
                                           const Geometry<S>&);                                                        \
  template Prepared<S> max_pool_backward(const char*, int64_t, const Geometry<S>&, const Geometry<S>&,                 \
                                         const Geometry<S>&);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
