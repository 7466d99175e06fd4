// conv1d, conv2d, conv3d and their transposes: unbatched input, named padding.
#include <algorithm>
#include <string>

#include "core/shape/arithmetic.h"
#include "strata/generated/by_hand/conv.h"
#include "strata/generated/ops/conv.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

Tensor batched(int64_t spatial, const char* name, const Tensor& input, const Tensor& weight, bool* single) {
  STRATA_CHECK(input.dim() == spatial + 1 || input.dim() == spatial + 2, "Expected ", spatial + 1, "D (unbatched) or ",
               spatial + 2, "D (batched) input to ", name, ", but got input of size: ", input.sizes());
  STRATA_CHECK(weight.dim() == spatial + 2, name, ": expected a weight of ", spatial + 2, " dims, got shape ",
               weight.sizes());
  *single = input.dim() == spatial + 1;
  return *single ? ops::unsqueeze(input, 0) : input;
}

Tensor conv_nd(int64_t spatial, const char* name, const Tensor& input, const Tensor& weight, const Tensor& bias,
               IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, int64_t groups) {
  bool single;
  Tensor x = batched(spatial, name, input, weight, &single);
  DimVec none(spatial, 0);
  Tensor r = ops::convolution(x, weight, bias, stride, padding, dilation, false, none, groups);
  return single ? ops::squeeze(r, 0) : r;
}

Tensor conv_padded(int64_t spatial, const char* name, const Tensor& input, const Tensor& weight, const Tensor& bias,
                   IntArrayRef stride, std::string_view padding, IntArrayRef dilation, int64_t groups) {
  STRATA_CHECK(padding == "valid" || padding == "same", "Invalid padding string: '", padding,
               "'; expected 'valid' or 'same'");
  DimVec both(spatial, 0);
  if (padding == "valid") return conv_nd(spatial, name, input, weight, bias, stride, both, dilation, groups);
  STRATA_CHECK(dilation.size() == 1 || int64_t(dilation.size()) == spatial, name,
               ": expected dilation to be one int or ", spatial, ", got ", dilation);
  for (int64_t s : stride) STRATA_CHECK(s == 1, "padding='same' is not supported for strided convolutions");
  bool single;
  Tensor x = batched(spatial, name, input, weight, &single);
  // An odd total needs one more at the end than convolution itself can pad.
  DimVec extra(2 * spatial, 0);
  bool uneven = false;
  for (int64_t d = 0; d < spatial; ++d) {
    int64_t total = shape::kernel_reach(weight.sizes()[d + 2], dilation.size() == 1 ? dilation[0] : dilation[d]);
    both[d] = total / 2;
    if (total % 2) {
      extra[2 * (spatial - 1 - d) + 1] = 1;
      uneven = true;
    }
  }
  if (uneven) x = ops::constant_pad_nd(x, extra, Scalar(0));
  Tensor r = conv_nd(spatial, name, x, weight, bias, stride, both, dilation, groups);
  return single ? ops::squeeze(r, 0) : r;
}

Tensor conv_transpose_nd(int64_t spatial, const char* name, const Tensor& input, const Tensor& weight,
                         const Tensor& bias, IntArrayRef stride, IntArrayRef padding, IntArrayRef output_padding,
                         int64_t groups, IntArrayRef dilation) {
  bool single;
  Tensor x = batched(spatial, name, input, weight, &single);
  Tensor r = ops::convolution(x, weight, bias, stride, padding, dilation, true, output_padding, groups);
  return single ? ops::squeeze(r, 0) : r;
}

}  // namespace

#define STRATA_CONV(n)                                                                                                 \
  Tensor conv##n##d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,                 \
                    IntArrayRef padding, IntArrayRef dilation, int64_t groups) {                                       \
    return conv_nd(n, "conv" #n "d", input, weight, bias, stride, padding, dilation, groups);                          \
  }                                                                                                                    \
  Tensor conv##n##d_padding(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,         \
                            std::string_view padding, IntArrayRef dilation, int64_t groups) {                          \
    return conv_padded(n, "conv" #n "d", input, weight, bias, stride, padding, dilation, groups);                      \
  }                                                                                                                    \
  Tensor conv_transpose##n##d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,       \
                              IntArrayRef padding, IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) { \
    return conv_transpose_nd(n, "conv_transpose" #n "d", input, weight, bias, stride, padding, output_padding, groups, \
                             dilation);                                                                                \
  }
STRATA_CONV(1)
STRATA_CONV(2)
STRATA_CONV(3)
#undef STRATA_CONV

}  // namespace strata::eager
