#include "core/shape/resample.h"

#include "core/promote.h"

namespace strata::shape {
namespace {

template <class S>
Sizes<S> checked_sizes(const char* op, int64_t rank, ArrayRef<S> input, ArrayRef<S> output) {
  STRATA_CHECK(int64_t(output.size()) == rank, op, ": It is expected output_size equals to ", rank, ", but got size ",
               output.size());
  STRATA_CHECK(int64_t(input.size()) == rank + 2, op, ": It is expected input_size equals to ", rank + 2,
               ", but got size ", input.size());
  Sizes<S> sizes(input);
  bool some = true;
  for (int64_t d = 0; d < rank; ++d) {
    some &= input[size_t(2 + d)] > S(0) && output[size_t(d)] > S(0);
    sizes[size_t(2 + d)] = output[size_t(d)];
  }
  STRATA_CHECK(some, op, ": Input and output sizes should be greater than 0, but got input ", input,
               " and output size ", output);
  return sizes;
}

template <class S>
Prepared<S> prepared(int64_t rank, ArrayRef<S> sizes, DType dtype) {
  Prepared<S> r(sizes, dtype);
  // Kernels of all ranks have three dims, but bilinear2d's.
  const char *inputs[] = {"d", "h", "w"}, *outputs[] = {"z", "y", "x"};
  for (int64_t d = 0; d < 3; ++d)
    for (const char* name : {inputs[d], outputs[d]}) r.place(name, d < 3 - rank ? -1 : rank - 1 + d);
  // A text may run over two positions of each dim.
  const char* places[] = {"i", "j", "k"};
  for (int64_t d = 0; d < 3; ++d) r.extents.push_back({places[d], {S(d < rank ? 2 : 1)}});
  return r;
}

}  // namespace

template <class S>
Prepared<S> resample(const char* op, int64_t rank, const Geometry<S>& self, ArrayRef<S> output_size) {
  const Sizes<S> sizes = checked_sizes(op, rank, self.sizes, output_size);
  STRATA_CHECK(self.sizes[1] != S(0), op, ": Non-empty ", rank + 2,
               "D data tensor expected but got a tensor with sizes ", self.sizes);
  STRATA_CHECK_NOT_IMPLEMENTED(is_float(self.dtype) || self.dtype == DType::U8, "\"", op, "\" not implemented for '",
                               scalar_type_name(self.dtype), "'; convert the input with .float() first");
  return prepared<S>(rank, sizes, self.dtype);
}

template <class S>
Prepared<S> resample_backward(const char* op, int64_t rank, const Geometry<S>& grad, ArrayRef<S> output_size,
                              ArrayRef<S> input_size) {
  const Sizes<S> sizes = checked_sizes(op, rank, input_size, output_size);
  STRATA_CHECK(grad.sizes == ArrayRef<S>(sizes), op, ": Expected grad_output to have the same shape as output, ",
               ArrayRef<S>(sizes), ", but got ", grad.sizes);
  Prepared<S> r = prepared<S>(rank, input_size, grad.dtype);
  return r;
}

#define STRATA_RULES(S)                                                                 \
  template Prepared<S> resample(const char*, int64_t, const Geometry<S>&, ArrayRef<S>); \
  template Prepared<S> resample_backward(const char*, int64_t, const Geometry<S>&, ArrayRef<S>, ArrayRef<S>);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
