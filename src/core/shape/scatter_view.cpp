#include "core/shape/scatter_view.h"

#include "base/checked.h"
#include "core/shape/arrange.h"
#include "core/shape/view.h"

namespace strata::shape {
namespace {

template <class S>
void check_sizes(const char* op, ArrayRef<S> sizes) {
  for (const S& s : sizes) STRATA_CHECK(s >= S(0), op, ": expected sizes of 0 or more, got ", sizes);
}

template <class S>
void check_part(const char* op, const Geometry<S>& src, const Sizes<S>& wanted) {
  STRATA_CHECK(src.sizes == ArrayRef<S>(wanted), op,
               "expected src to have a size equal to the slice of self. src size = ", src.sizes,
               ", slice size = ", ArrayRef<S>(wanted));
}

template <class S>
Prepared<S> slice_of(const char* op, Prepared<S> r, const Geometry<S>& src, int64_t dim, const S& start, const S& end,
                     const S& step) {
  Sizes<S> wanted = r.outputs[0].sizes;
  STRATA_CHECK_INDEX(wanted.size() > 0, "slice() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, int64_t(wanted.size()));
  const Range<S> range = slice<S>(wanted[size_t(dim)], start, end, step);
  wanted[size_t(dim)] = range.length;
  check_part(op, src, wanted);
  r.value("at", range.start);
  r.value("by", step);
  r.place("n", dim);
  r.place("i", dim);
  return r;
}

template <class S>
Prepared<S> diagonal_of(Prepared<S> r, int64_t offset, int64_t a, int64_t b) {
  // As far away as may be, so that what it adds to stays within 64 bits, is beside every tensor.
  constexpr int64_t kFar = int64_t(1) << 62;
  offset = std::clamp(offset, -kFar, kFar);
  r.value("down", S(offset < 0 ? -offset : 0));
  r.value("right", S(offset > 0 ? offset : 0));
  r.place("a", a);
  r.place("b", b);
  return r;
}

}  // namespace

template <class S>
Prepared<S> slice_scatter(const Geometry<S>& self, const Geometry<S>& src, int64_t dim, const std::optional<S>& start,
                          const std::optional<S>& end, const S& step) {
  return slice_of("slice_scatter: ", Prepared<S>(self.sizes, self.dtype), src, dim, start.value_or(S(0)),
                  end.value_or(S(std::numeric_limits<int64_t>::max())), step);
}

template <class S>
Prepared<S> slice_backward(const Geometry<S>& grad, ArrayRef<S> sizes, int64_t dim, const S& start, const S& end,
                           const S& step) {
  check_sizes("slice_backward", sizes);
  return slice_of("slice_backward: ", Prepared<S>(sizes, grad.dtype), grad, dim, start, end, step);
}

template <class S>
Prepared<S> unfold_backward(const Geometry<S>& grad, ArrayRef<S> sizes, int64_t dim, int64_t size, int64_t step) {
  check_sizes("unfold_backward", sizes);
  const int64_t n = int64_t(sizes.size());
  dim = wrap_dim(dim, n);
  Sizes<S> wanted(sizes);
  const S count = windows<S>(n ? sizes[size_t(dim)] : S(1), dim, S(size), S(step));
  if (n) wanted[size_t(dim)] = count;
  wanted.push_back(S(size));
  STRATA_CHECK(grad.sizes == ArrayRef<S>(wanted), "unfold_backward: expected a gradient of shape ", ArrayRef<S>(wanted),
               ", got ", grad.sizes);
  Prepared<S> r(sizes, grad.dtype);
  r.place("n", n ? dim : -1);
  r.place("i", n ? dim : -1);
  return r;
}

template <class S>
Prepared<S> diagonal_scatter(const Geometry<S>& self, const Geometry<S>& src, int64_t offset, int64_t dim1,
                             int64_t dim2) {
  const int64_t a = wrap_dim(dim1, self.dim()), b = wrap_dim(dim2, self.dim());
  STRATA_CHECK(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  check_part("", src, diagonal_sizes(Sizes<S>(self.sizes), offset, a, b));
  return diagonal_of(Prepared<S>(self.sizes, self.dtype), offset, a, b);
}

template <class S>
Prepared<S> diag_embed(const Geometry<S>& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t nd = self.dim() + 1, a = wrap_dim(dim1, nd), b = wrap_dim(dim2, nd);
  STRATA_CHECK(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  STRATA_CHECK(self.dim() > 0, "diag_embed: expected a tensor with dims, got a 0-dim tensor");
  const int64_t beside = offset < 0 ? times<int64_t>(-1, offset) : offset;
  const S side = plus<S>(self.sizes[size_t(self.dim() - 1)], S(beside));
  Sizes<S> sizes;
  for (int64_t d = 0, k = 0; d < nd; ++d) {
    const bool is_side = d == a || d == b;
    sizes.push_back(is_side ? side : self.sizes[size_t(k)]);
    k += !is_side;
  }
  return diagonal_of(Prepared<S>(std::move(sizes), self.dtype), offset, a, b);
}

#define STRATA_RULES(S)                                                                                        \
  template Prepared<S> slice_scatter(const Geometry<S>&, const Geometry<S>&, int64_t, const std::optional<S>&, \
                                     const std::optional<S>&, const S&);                                       \
  template Prepared<S> slice_backward(const Geometry<S>&, ArrayRef<S>, int64_t, const S&, const S&, const S&); \
  template Prepared<S> unfold_backward(const Geometry<S>&, ArrayRef<S>, int64_t, int64_t, int64_t);            \
  template Prepared<S> diagonal_scatter(const Geometry<S>&, const Geometry<S>&, int64_t, int64_t, int64_t);    \
  template Prepared<S> diag_embed(const Geometry<S>&, int64_t, int64_t, int64_t);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
