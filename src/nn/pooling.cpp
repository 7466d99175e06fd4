// Pooling.
#include "strata/nn/pooling.h"

#include <cmath>

namespace strata::nn {

namespace {
// The operator of N spatial dims.
template <size_t N, class One, class Two, class Three>
auto of_rank(One&& one, Two&& two, Three&& three) {
  if constexpr (N == 1) return one();
  if constexpr (N == 2) return two();
  if constexpr (N == 3) return three();
}

template <size_t N>
Tensor max_pool(const Tensor& x, const PerDim<N>& kernel, const PerDim<N>& stride, const PerDim<N>& padding,
                const PerDim<N>& dilation, bool ceil_mode) {
  return of_rank<N>([&] { return ops::max_pool1d(x, kernel, stride, padding, dilation, ceil_mode); },
                    [&] { return ops::max_pool2d(x, kernel, stride, padding, dilation, ceil_mode); },
                    [&] { return ops::max_pool3d(x, kernel, stride, padding, dilation, ceil_mode); });
}

template <size_t N>
Tensor avg_pool(const Tensor& x, const PerDim<N>& kernel, const PerDim<N>& stride, const PerDim<N>& padding,
                bool ceil_mode, bool count_pad, std::optional<int64_t> divisor) {
  return of_rank<N>([&] { return ops::avg_pool1d(x, kernel, stride, padding, ceil_mode, count_pad); },
                    [&] { return ops::avg_pool2d(x, kernel, stride, padding, ceil_mode, count_pad, divisor); },
                    [&] { return ops::avg_pool3d(x, kernel, stride, padding, ceil_mode, count_pad, divisor); });
}

// -1 keeps the input's size.
template <size_t N>
PerDim<N> sizes_of(const Tensor& input, PerDim<N> wanted) {
  STRATA_CHECK_VALUE(input.dim() > int64_t(N), "Input dimension should be at least ", N + 1, ", got ", input.dim());
  for (size_t d = 0; d < N; ++d)
    if (wanted[d] == -1) wanted[d] = input.size(int64_t(d) - int64_t(N));
  return wanted;
}
}  // namespace

template <size_t N>
Tensor MaxPoolImpl<N>::forward(const Tensor& input) {
  const MaxPoolOptions<N>& o = options;
  return max_pool<N>(input, kernel_size, o.stride.value_or(kernel_size), o.padding, o.dilation, o.ceil_mode);
}

template <size_t N>
std::tuple<Tensor, Tensor> MaxPoolImpl<N>::forward_with_indices(const Tensor& input) {
  const MaxPoolOptions<N>& o = options;
  const PerDim<N> stride = o.stride.value_or(kernel_size);
  if constexpr (N == 1) {  // a window of height 1
    const auto [values, indices] =
        ops::max_pool2d_with_indices(ops::unsqueeze(input, -2), {1, kernel_size[0]}, {1, stride[0]}, {0, o.padding[0]},
                                     {1, o.dilation[0]}, o.ceil_mode);
    return {ops::squeeze(values, -2), ops::squeeze(indices, -2)};
  }
  if constexpr (N == 2)
    return ops::max_pool2d_with_indices(input, kernel_size, stride, o.padding, o.dilation, o.ceil_mode);
  if constexpr (N == 3)
    return ops::max_pool3d_with_indices(input, kernel_size, stride, o.padding, o.dilation, o.ceil_mode);
}

template <size_t N>
Tensor MaxUnpoolImpl<N>::forward(const Tensor& input, const Tensor& indices, const std::vector<int64_t>& output_size) {
  STRATA_CHECK(input.dim() > int64_t(N), "max_unpool", N, "d: expected input of ", N + 1, " or ", N + 2,
               " dims, got shape ", input.sizes());
  STRATA_CHECK_VALUE(output_size.empty() || output_size.size() == N || output_size.size() == N + 2, "max_unpool", N,
                     "d: expected an output_size of ", N, " or ", N + 2, " numbers, got ", output_size.size());
  DimVec sizes;
  for (size_t d = 0; d < N; ++d) {
    const int64_t usual = (input.size(int64_t(d) - int64_t(N)) - 1) * stride[d] + kernel_size[d] - 2 * padding[d];
    const int64_t size = output_size.empty() ? usual : output_size[output_size.size() - N + d];
    STRATA_CHECK_VALUE(output_size.empty() || (size > usual - stride[d] && size < usual + stride[d]), "max_unpool", N,
                       "d: output size ", size, " of dim ", d, " must lie within a stride of ", usual);
    sizes.push_back(size);
  }
  if constexpr (N == 1) {  // planes of one column
    sizes.push_back(1);
    return ops::squeeze(ops::max_unpool2d(ops::unsqueeze(input, -1), ops::unsqueeze(indices, -1), sizes), -1);
  }
  if constexpr (N == 2) return ops::max_unpool2d(input, indices, sizes);
  if constexpr (N == 3) return ops::max_unpool3d(input, indices, sizes, stride, padding);
}

template <size_t N>
AvgPoolImpl<N>::AvgPoolImpl(PerDim<N> kernel_size, AvgPoolOptions<N> given) : kernel_size(kernel_size), options(given) {
  STRATA_CHECK_VALUE(N > 1 || !options.divisor_override, "AvgPool1d takes no divisor_override");
}

template <size_t N>
Tensor AvgPoolImpl<N>::forward(const Tensor& input) {
  const AvgPoolOptions<N>& o = options;
  return avg_pool<N>(input, kernel_size, o.stride.value_or(kernel_size), o.padding, o.ceil_mode, o.count_include_pad,
                     o.divisor_override);
}

template <size_t N>
Tensor LPPoolImpl<N>::forward(const Tensor& input) {
  const PerDim<N> step = stride.value_or(kernel_size);
  if (norm_type == INFINITY) return max_pool<N>(ops::abs(input), kernel_size, step, 0, 1, ceil_mode);
  const Tensor means = avg_pool<N>(ops::pow(input, norm_type), kernel_size, step, 0, ceil_mode, true, std::nullopt);
  int64_t elements = 1;
  for (int64_t k : kernel_size) elements *= k;
  const Tensor sums = ops::mul(means, elements);
  const Tensor nothing =
      ops::eq(ops::detach(sums), Scalar(0));  // where the slope of the root is infinite: no gradient there
  return ops::where(nothing, Scalar(0), ops::pow(ops::where(nothing, Scalar(1), sums), 1.0 / norm_type));
}

template <size_t N>
Tensor AdaptiveAvgPoolImpl<N>::forward(const Tensor& input) {
  const PerDim<N> sizes = sizes_of<N>(input, output_size);
  return of_rank<N>([&] { return ops::adaptive_avg_pool1d(input, sizes); },
                    [&] { return ops::adaptive_avg_pool2d(input, sizes); },
                    [&] { return ops::adaptive_avg_pool3d(input, sizes); });
}

template <size_t N>
std::tuple<Tensor, Tensor> AdaptiveMaxPoolImpl<N>::forward_with_indices(const Tensor& input) {
  const PerDim<N> sizes = sizes_of<N>(input, output_size);
  return of_rank<N>([&] { return ops::adaptive_max_pool1d(input, sizes); },
                    [&] { return ops::adaptive_max_pool2d(input, sizes); },
                    [&] { return ops::adaptive_max_pool3d(input, sizes); });
}

template <size_t N>
FractionalMaxPoolImpl<N>::FractionalMaxPoolImpl(PerDim<N> kernel_size, FractionalMaxPoolOptions<N> given)
    : kernel_size(kernel_size), options(given) {
  STRATA_CHECK_VALUE(options.output_size || options.output_ratio, "FractionalMaxPool", N,
                     "d requires specifying either an output size, or a pooling ratio");
  STRATA_CHECK_VALUE(!options.output_size || !options.output_ratio,
                     "only one of output_size and output_ratio may be specified");
  if (options.output_ratio)
    for (double ratio : *options.output_ratio)
      STRATA_CHECK_VALUE(ratio > 0 && ratio < 1, "output_ratio must be between 0 and 1 (got ", ratio, ")");
}

template <size_t N>
std::tuple<Tensor, Tensor> FractionalMaxPoolImpl<N>::forward_with_indices(const Tensor& input) {
  PerDim<N> sizes = options.output_size.value_or(0);
  if (options.output_ratio)
    for (size_t d = 0; d < N; ++d)
      sizes[d] = int64_t(double(input.size(int64_t(d) - int64_t(N))) * (*options.output_ratio)[d]);
  const int64_t batch = input.dim() == int64_t(N) + 1 ? 1 : input.size(0);
  const Tensor samples = ops::rand({batch, input.size(-int64_t(N) - 1), int64_t(N)}, input.dtype(), input.device());
  if constexpr (N == 2) return ops::fractional_max_pool2d(input, kernel_size, sizes, samples);
  if constexpr (N == 3) return ops::fractional_max_pool3d(input, kernel_size, sizes, samples);
}

#define STRATA_POOLS(N)                  \
  template class MaxPoolImpl<N>;         \
  template class MaxUnpoolImpl<N>;       \
  template class AvgPoolImpl<N>;         \
  template class LPPoolImpl<N>;          \
  template class AdaptiveAvgPoolImpl<N>; \
  template class AdaptiveMaxPoolImpl<N>
STRATA_POOLS(1);
STRATA_POOLS(2);
STRATA_POOLS(3);
template class FractionalMaxPoolImpl<2>;
template class FractionalMaxPoolImpl<3>;

}  // namespace strata::nn
