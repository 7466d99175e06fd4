// convolution and its gradients: geometry, checks, and the choice between the library and the generated products.
#include <algorithm>
#include <string>

#include "base/checked.h"
#include "core/promote.h"
#include "core/shape/conv.h"
#include "ops/conv/generated.h"
#include "ops/matmul/product.h"
#include "run/copy.h"
#include "run/prepare.h"
#include "run/visit.h"
#include "strata/generated/by_hand/conv.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"
#include "vendor/library_host.h"

namespace strata::eager {

namespace {

// Up to this many multiplications a convolution takes the generated kernel even where a library is present.
constexpr double kSmallConvolution = 64.0 * 64 * 64;

struct Args {
  IntArrayRef stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
};

int64_t at(IntArrayRef list, size_t d) { return list.size() == 1 ? list[0] : list[d]; }

// The sizes of the result, after all checks.
DimVec output_sizes(const Tensor& input, const Tensor& weight, const Tensor& bias, const Args& a) {
  return shape::convolution<int64_t>(geometry(input), geometry(weight), geometry(bias), a.stride, a.padding, a.dilation,
                                     a.transposed, a.output_padding, a.groups);
}

Tensor dense_result(const Tensor& like, IntArrayRef sizes, bool last) {
  if (!last) return new_tensor(like, sizes);
  return make_tensor_strided_as(like, sizes, channels_last_strides(sizes), like.dtype());
}

// Geometry of the plain convolution from `x` (its input) to `y` (its output); a transposed one runs it backwards.
StrataConvolution geometry(const Tensor& x, const Tensor& y, const Tensor& weight, const Args& a) {
  StrataConvolution s{};
  s.size = sizeof s;
  s.dtype = library_type(x.dtype());
  s.spatial = weight.dim() - 2;
  s.batch = x.sizes()[0];
  s.groups = a.groups;
  s.in_channels = x.sizes()[1];
  s.out_channels = y.sizes()[1];
  for (int64_t d = 0; d < s.spatial; ++d) {
    s.input[d] = x.sizes()[d + 2];
    s.output[d] = y.sizes()[d + 2];
    s.kernel[d] = weight.sizes()[d + 2];
    s.stride[d] = at(a.stride, d);
    s.padding[d] = at(a.padding, d);
    s.dilation[d] = at(a.dilation, d);
  }
  for (int64_t d = 0; d < weight.dim(); ++d) {
    s.input_strides[d] = x.strides()[d];
    s.output_strides[d] = y.strides()[d];
    s.weight_strides[d] = weight.strides()[d];
  }
  return s;
}

double work_of(const StrataConvolution& s) {
  double w = double(s.batch) * double(s.out_channels) * double(s.in_channels) / double(s.groups);
  for (int64_t d = 0; d < s.spatial; ++d) w *= double(s.output[d]) * double(s.kernel[d]);
  return w;
}

// Whether the output's size is what a plain convolution of the input has; an output_padding from the stride on gives
// others.
bool follows(const StrataConvolution& s) {
  for (int d = 0; d < s.spatial; ++d) {
    const int64_t span = s.input[d] + 2 * s.padding[d] - s.dilation[d] * (s.kernel[d] - 1) - 1;
    if (span < 0 || span / s.stride[d] + 1 != s.output[d]) return false;
  }
  return true;
}

const StrataLibrary* library_for(const StrataConvolution& s) {
  return s.dtype >= 0 && s.batch > 0 && work_of(s) > kSmallConvolution && follows(s) ? library() : nullptr;
}

// The three passes. What is written is dense, so the generated kernels take it.
void run_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, const Args& a) {
  StrataConvolution s = geometry(x, y, weight, a);
  const void* b = bias.defined() ? bias.data_ptr() : nullptr;
  const StrataLibrary* lib = library_for(s);
  if (lib && library_done(lib->conv_forward(&s, x.data_ptr(), weight.data_ptr(), b, y.data_ptr()), *lib, "convolution"))
    return;
  bool done = conv_forward_generated(gemm_kernel(x.dtype(), "convolution"), s, x.data_ptr(), weight.data_ptr(), b,
                                     y.data_ptr(), gemm_threads());
  STRATA_INTERNAL(done, "convolution: the result has strides ", y.strides());
}

void run_data(const Tensor& dy, const Tensor& weight, const Tensor& dx, const Args& a) {
  StrataConvolution s = geometry(dx, dy, weight, a);
  const StrataLibrary* lib = library_for(s);
  if (lib &&
      library_done(lib->conv_backward_data(&s, dy.data_ptr(), weight.data_ptr(), dx.data_ptr()), *lib, "convolution"))
    return;
  bool done = conv_backward_data_generated(gemm_kernel(dy.dtype(), "convolution"), s, dy.data_ptr(), weight.data_ptr(),
                                           dx.data_ptr(), gemm_threads());
  STRATA_INTERNAL(done, "convolution: the gradient of the input has strides ", dx.strides());
}

// The gradient of the input of bfloat16 operands in float32, by the library; false where it takes none.
bool run_data_widening(const Tensor& dy, const Tensor& weight, const Tensor& dx, StrataConvolution s) {
  const StrataLibrary* lib = s.dtype == STRATA_LIBRARY_BF16 ? library_for(s) : nullptr;
  s.dtype = STRATA_LIBRARY_BF16_F32;
  return lib && library_done(lib->conv_backward_data(&s, dy.data_ptr(), weight.data_ptr(), dx.data_ptr()), *lib,
                             "convolution");
}

void run_weights(const Tensor& x, const Tensor& dy, const Tensor& dw, const Args& a) {
  StrataConvolution s = geometry(x, dy, dw, a);
  const StrataLibrary* lib = library_for(s);
  if (lib && library_done(lib->conv_backward_weights(&s, x.data_ptr(), dy.data_ptr(), dw.data_ptr(), nullptr), *lib,
                          "convolution"))
    return;
  bool done = conv_backward_weights_generated(gemm_kernel(x.dtype(), "convolution"), s, x.data_ptr(), dy.data_ptr(),
                                              dw.data_ptr(), gemm_threads());
  STRATA_INTERNAL(done, "convolution: the gradient of the weight has strides ", dw.strides());
}

Tensor per_channel(const Tensor& bias, int64_t dims) {
  DimVec sizes(dims, 1);
  sizes[1] = bias.numel();
  return ops::reshape(bias, sizes);
}

// Part by part where it is complex: add() multiplies by its alpha, and 1 times an infinity has a NaN there.
Tensor add_bias(const Tensor& out, const Tensor& bias) {
  const Tensor b = per_channel(bias, out.dim());
  if (!out.is_complex()) return ops::add_(out, b);
  ops::add_(ops::view_as_real(out), ops::view_as_real(b));
  return out;
}

// Dense in one of the two orders that results take; other strides are copied.
Tensor dense(const Tensor& t) {
  const auto last = t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  return t.is_contiguous() || t.is_contiguous(last) ? t : contiguous_copy(t);
}

}  // namespace

Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                   int64_t groups) {
  Args a{stride, padding, dilation, output_padding, transposed, groups};
  auto lies_last = [](const Tensor& t) { return suggested_format(t) != MemoryFormat::Contiguous; };
  const bool last = lies_last(input) || lies_last(weight);
  Tensor out = dense_result(input, output_sizes(input, weight, bias, a), last);
  if (out.numel() == 0) return out;
  if (last && out.is_complex()) {
    copy_values(out, convolution(as_contiguous(input), as_contiguous(weight), bias, stride, padding, dilation,
                                 transposed, output_padding, groups));
    return out;
  }
  gemm_kernel(out.dtype(), "convolution");  // for its error
  if (input.numel() == 0 || weight.numel() == 0) {
    fill_values(out, Scalar(0));
    return bias.defined() ? add_bias(out, bias) : out;
  }
  Tensor b = bias.defined() ? as_contiguous(bias) : bias, x = dense(input), w = dense(weight);
  if (!transposed) {
    run_forward(x, w, b, out, a);
    return out;
  }
  if (b.defined() && is_half(out.dtype())) {
    // Rounded once, after the bias.
    Tensor wide = dense_result(as_dtype(out, DType::F32), out.sizes(), last);
    if (!run_data_widening(x, w, wide, geometry(out, x, w, a)))
      run_data(as_dtype(x, DType::F32), as_dtype(w, DType::F32), wide, a);
    return as_dtype(add_bias(wide, as_dtype(b, DType::F32)), out.dtype());
  }
  run_data(x, w, out, a);
  return b.defined() ? add_bias(out, b) : out;
}

void convolve(const Tensor& result, const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
              IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  copy_values(result, convolution(input, weight, bias, stride, padding, dilation, false, {}, groups));
}

void convolve_back(const Tensor& result, const Tensor& input, const Tensor& weight, const Tensor& bias,
                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, IntArrayRef output_padding,
                   int64_t groups) {
  copy_values(result, convolution(input, weight, bias, stride, padding, dilation, true, output_padding, groups));
}

void convolution_backward(const Tensor& dx, const Tensor& dw, const Tensor& db, const Tensor& grad_output,
                          const Tensor& input, const Tensor& weight, OptIntArrayRef, IntArrayRef stride,
                          IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                          int64_t groups, const BoolVec&) {
  const Args a{stride, padding, dilation, output_padding, transposed, groups};
  const bool empty = input.numel() == 0 || weight.numel() == 0 || grad_output.numel() == 0;
  Tensor dy = dense(grad_output), w = ops::_conjugate(weight), x = ops::_conjugate(input);
  if (dx.defined()) {
    if (empty)
      fill_values(dx, Scalar(0));
    else if (transposed)
      run_forward(dy, dense(w), {}, dx, a);
    else
      run_data(dy, dense(w), dx, a);
  }
  if (dw.defined()) {
    if (empty)
      fill_values(dw, Scalar(0));
    else if (transposed)
      run_weights(dy, dense(x), dw, a);
    else
      run_weights(dense(x), dy, dw, a);
  }
  if (db.defined()) {
    DimVec dims{0};
    for (int64_t d = 2; d < grad_output.dim(); ++d) dims.push_back(d);
    copy_values(db, ops::sum(grad_output, OptIntArrayRef(dims)));
  }
}

}  // namespace strata::eager
