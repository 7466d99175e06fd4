#include "core/shape/conv.h"

#include <string>

#include "core/promote.h"
#include "core/shape/strides.h"

namespace strata::shape {
namespace {

template <class S>
const S& at(ArrayRef<S> list, int64_t d) {
  return list.size() == 1 ? list[0] : list[size_t(d)];
}

template <class S>
void check_list(const char* what, ArrayRef<S> list, int64_t spatial, int64_t least) {
  STRATA_CHECK(int64_t(list.size()) == spatial || list.size() == 1, "convolution: expected ", what,
               " to be a single integer value or a list of ", spatial,
               " values to match the convolution dimensions, but got ", what, "=", list);
  for (const S& v : list)
    STRATA_CHECK(v >= S(least), least == 0 ? "negative " : "non-positive ", what, " is not supported: convolution got ",
                 what, "=", list);
}

// What the numbers of the lists and the sizes decide; spatial sizes apart.
template <class S>
void check_convolution(const Geometry<S>& input, const Geometry<S>& weight, const Geometry<S>& bias, ArrayRef<S> stride,
                       ArrayRef<S> padding, ArrayRef<S> dilation, bool transposed, ArrayRef<S> output_padding,
                       const S& groups) {
  const int64_t k = weight.dim(), spatial = k - 2;
  STRATA_CHECK(k >= 3 && k <= 5, "convolution: expected a weight of 3 to 5 dims, got shape ", weight.sizes);
  STRATA_CHECK(input.dtype == weight.dtype, "Input type (", input.dtype, ") and weight type (", weight.dtype,
               ") should be the same; convert one with .to()");
  STRATA_CHECK(!bias.defined || bias.dtype == input.dtype, "Input type (", input.dtype, ") and bias type (", bias.dtype,
               ") should be the same; convert one with .to()");
  check_list("stride", stride, spatial, 1);
  check_list("padding", padding, spatial, 0);
  check_list("dilation", dilation, spatial, 1);
  if (transposed) check_list("output_padding", output_padding, spatial, 0);
  for (int64_t d = 0; d < spatial && transposed; ++d)
    STRATA_CHECK(at(output_padding, d) < at(stride, d) || at(output_padding, d) < at(dilation, d),
                 "output padding must be smaller than either stride or dilation, but convolution got output_padding=",
                 output_padding, ", stride=", stride, ", dilation=", dilation);
  STRATA_CHECK(groups > S(0), "non-positive groups is not supported, got groups=", groups);
  const S& first = weight.sizes[0];
  STRATA_CHECK(first >= groups, "Given groups=", groups, ", expected weight to be at least ", groups,
               " at dimension 0, but got weight of size ", weight.sizes, " instead");
  STRATA_CHECK(first / groups * groups == first, "Given groups=", groups, ", expected weight to be divisible by ",
               groups, " at dimension 0, but got weight of size [", weight.sizes, "] instead");
  STRATA_CHECK(input.dim() == k, "Expected ", k, "-dimensional input for ", k, "-dimensional weight ", weight.sizes,
               ", but got ", input.dim(), "-dimensional input of size ", input.sizes, " instead");
  const S channels = transposed ? first : times(weight.sizes[1], groups);
  STRATA_CHECK(input.sizes[1] == channels, "Given ",
               transposed ? std::string("transposed=1") : str_cat("groups=", groups), ", weight of size ", weight.sizes,
               ", expected input", input.sizes, " to have ", channels, " channels, but got ", input.sizes[1],
               " channels instead");
  const S out = transposed ? times(weight.sizes[1], groups) : first;
  STRATA_CHECK(!bias.defined || (bias.dim() == 1 && bias.sizes[0] == out), "Given ", transposed ? "transposed=1, " : "",
               "weight of size ", weight.sizes, ", expected bias to be 1-dimensional with ", out,
               " elements, but got bias of size ", bias.sizes, " instead");
}

template <class S>
Value<S> listed(const char* name, ArrayRef<S> list, int64_t spatial) {
  Value<S> v{name, {}};
  for (int64_t d = 0; d < spatial; ++d) v.values.push_back(at(list, d));
  return v;
}

template <class S>
Prepared<S> windows(Sizes<S> sizes, DType dtype, int64_t spatial, ArrayRef<S> stride, ArrayRef<S> padding,
                    ArrayRef<S> dilation) {
  Prepared<S> r(sizes, dtype);
  r.values.push_back(listed("step", stride, spatial));
  r.values.push_back(listed("pad", padding, spatial));
  r.values.push_back(listed("apart", dilation, spatial));
  Place f{"f", {}};  // which dims they are the pattern says; how many, this
  for (int64_t d = 0; d < spatial; ++d) f.dims.push_back(d + 2);
  r.places.push_back(std::move(f));
  return r;
}

}  // namespace

template <class S>
Sizes<S> convolution(const Geometry<S>& input, const Geometry<S>& weight, const Geometry<S>& bias, ArrayRef<S> stride,
                     ArrayRef<S> padding, ArrayRef<S> dilation, bool transposed, ArrayRef<S> output_padding,
                     const S& groups) {
  check_convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
  const int64_t spatial = weight.dim() - 2;
  bool fits = true;
  auto padded = [&](int64_t d) { return plus(input.sizes[size_t(d) + 2], times(S(2), at(padding, d))); };
  auto kernel = [&](int64_t d) { return plus(kernel_reach(weight.sizes[size_t(d) + 2], at(dilation, d)), S(1)); };
  for (int64_t d = 0; d < spatial && !transposed; ++d) fits = fits && padded(d) >= kernel(d);
  if (!fits) {
    std::string have, reach;
    for (int64_t d = 0; d < spatial; ++d) {
      have += str_cat(d ? " x " : "", padded(d));
      reach += str_cat(d ? " x " : "", kernel(d));
    }
    STRATA_CHECK(false, "Calculated padded input size per channel: (", have, "). Kernel size: (", reach,
                 "). Kernel size can't be greater than actual input size");
  }
  Sizes<S> sizes;
  sizes.push_back(input.sizes[0]);
  sizes.push_back(transposed ? times(weight.sizes[1], groups) : weight.sizes[0]);
  for (int64_t d = 0; d < spatial; ++d) {
    const S &n = input.sizes[size_t(d) + 2], &k = weight.sizes[size_t(d) + 2];
    sizes.push_back(
        transposed ? conv_transpose_size(n, k, at(stride, d), at(padding, d), at(dilation, d), at(output_padding, d))
                   : conv_size(n, k, at(stride, d), at(padding, d), at(dilation, d)));
    STRATA_CHECK(sizes.back() >= S(transposed && n > S(0)), "convolution: the output would have size ", sizes.back(),
                 " in dim ", d + 2, " for input ", input.sizes, " and weight ", weight.sizes,
                 ". Output size is too small");
  }
  return sizes;
}

template <class S>
Prepared<S> convolve(const Geometry<S>& input, const Geometry<S>& weight, const Geometry<S>& bias, ArrayRef<S> stride,
                     ArrayRef<S> padding, ArrayRef<S> dilation, const S& groups) {
  Prepared<S> r = windows(convolution(input, weight, bias, stride, padding, dilation, false, {}, groups), input.dtype,
                          weight.dim() - 2, stride, padding, dilation);
  r.value("per", weight.sizes[0] / groups);
  return r;
}

template <class S>
Prepared<S> convolve_back(const Geometry<S>& input, const Geometry<S>& weight, const Geometry<S>& bias,
                          ArrayRef<S> stride, ArrayRef<S> padding, ArrayRef<S> dilation, ArrayRef<S> output_padding,
                          const S& groups) {
  Prepared<S> r = windows(convolution(input, weight, bias, stride, padding, dilation, true, output_padding, groups),
                          input.dtype, weight.dim() - 2, stride, padding, dilation);
  r.extents.push_back({"c", {weight.sizes[0] / groups}});
  return r;
}

namespace {

template <class S>
Strided<S> gradient_of(const Geometry<S>& t, bool channels_last) {
  Sizes<S> strides;
  if (channels_last) {
    strides.resize(t.sizes.size(), S(1));
    S step(1);
    auto next = [&](int64_t d) {
      strides[size_t(d)] = step;
      step = times(step, larger(t.sizes[size_t(d)], S(1)));
    };
    next(1);
    for (int64_t d = t.dim(); d-- > 2;) next(d);
    next(0);
  }
  return {t.sizes, t.dtype, std::move(strides)};
}

}  // namespace

template <class S>
Prepared<S> convolution_backward(const Geometry<S>& grad, const Geometry<S>& input, const Geometry<S>& weight,
                                 ArrayRef<S> stride, ArrayRef<S> padding, ArrayRef<S> dilation, bool transposed,
                                 ArrayRef<S> output_padding, const S& groups, const BoolVec& mask) {
  const Sizes<S> sizes =
      convolution<S>(input, weight, {}, stride, padding, dilation, transposed, output_padding, groups);
  STRATA_CHECK(mask.size() == 3, "convolution_backward: expected output_mask of 3 values, got ", mask.size());
  STRATA_CHECK(grad.dtype == input.dtype, "convolution_backward: expected grad_output of dtype ", input.dtype,
               " as the input, got ", grad.dtype, "; convert it with .to()");
  STRATA_CHECK(grad.sizes == ArrayRef<S>(sizes), "convolution_backward: expected grad_output of shape ",
               ArrayRef<S>(sizes), ", got ", grad.sizes);
  const bool last = !is_complex(input.dtype) && (lies_channels_last(input) || lies_channels_last(weight));
  Prepared<S> r;
  r.add(gradient_of(input, last));
  r.add(gradient_of(weight, last));
  r.add({{sizes[1]}, is_integral(grad.dtype, true) ? DType::I64 : grad.dtype});
  for (size_t k = 0; k < 3; ++k)
    if (!mask[k]) r.absent |= 1u << k;
  return r;
}

#define STRATA_RULES(S)                                                                                               \
  template Sizes<S> convolution(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&, ArrayRef<S>, ArrayRef<S>, \
                                ArrayRef<S>, bool, ArrayRef<S>, const S&);                                            \
  template Prepared<S> convolve(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&, ArrayRef<S>, ArrayRef<S>, \
                                ArrayRef<S>, const S&);                                                               \
  template Prepared<S> convolve_back(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&, ArrayRef<S>,         \
                                     ArrayRef<S>, ArrayRef<S>, ArrayRef<S>, const S&);                                \
  template Prepared<S> convolution_backward(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&, ArrayRef<S>,  \
                                            ArrayRef<S>, ArrayRef<S>, bool, ArrayRef<S>, const S&, const BoolVec&);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
