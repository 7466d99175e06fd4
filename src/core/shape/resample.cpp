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
  for (const char* name : {"u", "v"}) r.extents.push_back({name, {S(4)}});
  return r;
}

// Of images (n, c, s, 1) and what has the places' n and q beside them.
template <class S>
void check_places(const char* op, const Geometry<S>& image, const Geometry<S>& place) {
  STRATA_CHECK(image.dim() == 4 && image.sizes[3] == S(1) && place.dim() == 3 && image.sizes[0] == place.sizes[0], op,
               ": expected images (n, c, s, 1) and places (n, t, q), got ", image.sizes, " and ", place.sizes);
}

// Channels, and the last dim, are the plain group.
template <class S>
Prepared<S> at_places(const Geometry<S>& image, const S& size) {
  Prepared<S> r(Sizes<S>{image.sizes[0], image.sizes[1], size, S(1)}, image.dtype);
  r.place("n", 0);
  for (const char* name : {"s", "q"}) r.place(name, 2);
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

template <class S>
Prepared<S> weighted_gather(const Geometry<S>& self, const Geometry<S>& place, const Geometry<S>& weight) {
  check_places("_weighted_gather", self, place);
  STRATA_CHECK(weight.sizes == place.sizes, "_weighted_gather: expected weights of the places' shape ", place.sizes,
               ", got ", weight.sizes);
  return at_places<S>(self, place.sizes[2]);
}

template <class S>
Prepared<S> weighted_scatter(const Geometry<S>& grad, const Geometry<S>& place, const Geometry<S>& weight,
                             const S& size) {
  check_places("_weighted_scatter", grad, place);
  STRATA_CHECK(weight.sizes == place.sizes && grad.sizes[2] == place.sizes[2],
               "_weighted_scatter: expected places and weights (n, t, q) for a gradient (n, c, q, 1), got ",
               place.sizes, ", ", weight.sizes, " and ", grad.sizes);
  return at_places<S>(grad, size);
}

template <class S>
Prepared<S> gathered_products(const Geometry<S>& self, const Geometry<S>& place, const Geometry<S>& grad) {
  check_places("_gathered_products", self, place);
  check_places("_gathered_products", grad, place);
  STRATA_CHECK(grad.sizes[1] == self.sizes[1] && grad.sizes[2] == place.sizes[2],
               "_gathered_products: expected a gradient (n, c, q, 1) for images ", self.sizes, " and places ",
               place.sizes, ", got ", grad.sizes);
  return Prepared<S>(place.sizes, self.dtype);
}

template <class S>
Prepared<S> grid_bilinear(const Geometry<S>& self, const Geometry<S>& x, const Geometry<S>& y) {
  STRATA_CHECK(self.dim() == 4 && x.dim() == 2 && self.sizes[0] == x.sizes[0] && x.sizes == y.sizes,
               "_grid_bilinear: expected images (n, c, h, w) and points (n, q), got ", self.sizes, ", ", x.sizes,
               " and ", y.sizes);
  return Prepared<S>({self.sizes[0], self.sizes[1], x.sizes[1]}, self.dtype);
}

#define STRATA_RULES(S)                                                                                        \
  template Prepared<S> resample(const char*, int64_t, const Geometry<S>&, ArrayRef<S>);                        \
  template Prepared<S> resample_backward(const char*, int64_t, const Geometry<S>&, ArrayRef<S>, ArrayRef<S>);  \
  template Prepared<S> weighted_gather(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&);            \
  template Prepared<S> weighted_scatter(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&, const S&); \
  template Prepared<S> gathered_products(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&);          \
  template Prepared<S> grid_bilinear(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
