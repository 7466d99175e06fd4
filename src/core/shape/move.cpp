#include "core/shape/move.h"

#include <algorithm>

#include "base/checked.h"
#include "core/shape/arrange.h"
#include "core/shape/shape.h"
#include "core/shape/view.h"

namespace strata::shape {
namespace {

using Dims = SmallVec<int64_t, 3>;

}  // namespace

template <class S>
Prepared<S> flip(const Geometry<S>& self, ArrayRef<int64_t> dims) {
  Dims wrapped;
  for (int64_t d : dims) {
    const int64_t w = wrap_dim(d, self.dim());
    for (int64_t other : wrapped) STRATA_CHECK(other != w, "dim ", w, " appears multiple times in the list of dims");
    wrapped.push_back(w);
  }
  if (self.dim() == 0) wrapped.clear();
  std::sort(wrapped.begin(), wrapped.end());
  Prepared<S> r(self.sizes, self.dtype);
  r.place_groups({"f"}, std::move(wrapped), self.dim());
  return r;
}

template <class S>
Prepared<S> rot90(const Geometry<S>& self, int64_t k, ArrayRef<int64_t> dims) {
  STRATA_CHECK(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
  STRATA_CHECK(self.dim() >= 2, "expected total dims >= 2, but got total dims = ", self.dim());
  const auto apart = int64_t(uint64_t(dims[0]) - uint64_t(dims[1]));  // wraps for dims that are out of range anyway
  STRATA_CHECK(apart != 0 && apart != self.dim() && apart != -self.dim(),
               "expected rotation dims to be different, but got dim0 = ", dims[0], " and dim1 = ", dims[1]);
  const int64_t a = wrap_dim(dims[0], self.dim()), b = wrap_dim(dims[1], self.dim());
  Prepared<S> r(self.sizes, self.dtype);
  if (k % 2) std::swap(r.outputs[0].sizes[size_t(a)], r.outputs[0].sizes[size_t(b)]);
  for (const char* name : {"a", "i"}) r.place(name, a);
  for (const char* name : {"b", "j"}) r.place(name, b);
  r.value("turns", S(floor_mod(k, 4)));
  return r;
}

template <class S>
Prepared<S> roll(const Geometry<S>& self, ArrayRef<S> shifts, ArrayRef<int64_t> dims) {
  STRATA_CHECK(!shifts.empty(), "`shifts` required");
  Prepared<S> r(self.sizes, self.dtype);
  auto within = [](const S& shift, const S& n) { return n == S(0) ? S(0) : floor_mod(shift, n); };
  if (dims.empty() && shifts.size() == 1) {
    r.flat = 1 | 1 << 1;
    r.contiguous = true;
    r.value("by", within(shifts[0], self.numel()));
    r.place("f", 0);
    return r;
  }
  STRATA_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
               ", dims:", dims.size());
  Sizes<S> total(size_t(self.dim()), S(0));
  SmallVec<bool, 8> rolled(size_t(self.dim()), false);
  for (size_t k = 0; k < dims.size(); ++k) {
    STRATA_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dims[k], " but tensor has no dimensions");
    const auto d = size_t(wrap_dim(dims[k], self.dim()));
    total[d] = within(total[d] + within(shifts[k], self.sizes[d]), self.sizes[d]);
    rolled[d] = true;
  }
  Dims group;
  Sizes<S> by;
  for (size_t d = 0; d < total.size(); ++d)
    if (rolled[d]) group.push_back(int64_t(d)), by.push_back(total[d]);
  r.values.push_back({"by", std::move(by)});
  r.place_groups({"f"}, std::move(group), self.dim());
  return r;
}

template <class S>
Prepared<S> triangle(const Geometry<S>& self, const S& diagonal, const char* op) {
  STRATA_CHECK(self.dim() >= 2, op, ": input tensor must have at least 2 dimensions");
  Prepared<S> r(self.sizes, self.dtype);
  const S &rows = self.sizes[size_t(self.dim() - 2)], &columns = self.sizes[size_t(self.dim() - 1)];
  r.value("bound", larger(smaller(diagonal, columns), S(0) - rows));
  return r;
}

template <class S>
Prepared<S> diagonal_copy(const Geometry<S>& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t a = wrap_dim(dim1, self.dim()), b = wrap_dim(dim2, self.dim());
  STRATA_CHECK(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  Prepared<S> r(diagonal_sizes(Sizes<S>(self.sizes), offset, a, b), self.dtype);
  const bool some = r.outputs[0].sizes.back() > S(0);
  r.value("down", S(some && offset < 0 ? -offset : 0));
  r.value("right", S(some && offset > 0 ? offset : 0));
  r.place("i", a);
  r.place("j", b);
  return r;
}

namespace {

// The place of select(dim, index) in a tensor of `r`'s sizes, which must have the sizes of `part`.
template <class S>
void select_place(Prepared<S>& r, const char* op, const Geometry<S>& part, int64_t dim, const S& index) {
  const Sizes<S>& sizes = r.outputs[0].sizes;
  STRATA_CHECK_INDEX(sizes.size() > 0, "select() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, int64_t(sizes.size()));
  r.value("at", select_index<S>(sizes, dim, index));
  Sizes<S> wanted = sizes;
  wanted.erase(size_t(dim));
  STRATA_CHECK(ArrayRef<S>(wanted) == part.sizes, op,
               ": expected src to have a size equal to the slice of self. src size = ", part.sizes,
               ", slice size = ", wanted);
  r.place("i", dim);
}

}  // namespace

template <class S>
Prepared<S> select_scatter(const Geometry<S>& self, const Geometry<S>& src, int64_t dim, const S& index) {
  Prepared<S> r(self.sizes, self.dtype);
  select_place(r, "select_scatter", src, dim, index);
  return r;
}

template <class S>
Prepared<S> select_backward(const Geometry<S>& grad, ArrayRef<S> sizes, int64_t dim, const S& index) {
  for (const S& s : sizes) STRATA_CHECK(s >= S(0), "select_backward: expected sizes of 0 or more, got ", sizes);
  Prepared<S> r(sizes, grad.dtype);
  select_place(r, "select_backward", grad, dim, index);
  return r;
}

template <class S>
Prepared<S> repeat(const Geometry<S>& self, ArrayRef<S> repeats) {
  Prepared<S> r(repeated<S, Sizes<S>>(self.sizes, repeats), self.dtype);
  r.rank = int64_t(repeats.size());
  const size_t lead = repeats.size() - self.sizes.size();
  for (size_t d = lead; d < repeats.size(); ++d) {
    if (repeats[d] == S(1)) continue;
    const S& size = self.sizes[d - lead];
    r.splits.push_back({0, int64_t(d), {repeats[d], size}});
    r.splits.push_back({1, int64_t(d), {S(1), size}});
  }
  return r;
}

namespace {

template <class S>
const S& image_dim(const Geometry<S>& self, int64_t from_end) {
  return self.sizes[size_t(self.dim() - from_end)];
}

void check_image(const char* op, int64_t dims) {
  STRATA_CHECK(dims >= 3, op, " expects input to have at least 3 dimensions, but got input with ", dims,
               " dimension(s)");
}

// Sizes of the result, and the splits of the image (h and w by the factor) and of the channels.
template <class S>
Prepared<S> blocks(const Geometry<S>& self, const S& c, const S& h, const S& w, const S& side, int image, S wide_c,
                   S high, S wide) {
  const int64_t n = self.dim() - 3;
  Sizes<S> sizes(self.sizes.slice(0, size_t(n)));
  for (const S& s : image == 0 ? Sizes<S>{c, high, wide} : Sizes<S>{wide_c, h, w}) sizes.push_back(s);
  Prepared<S> r(std::move(sizes), self.dtype);
  r.splits.push_back({1 - image, n, {c, side, side}});
  r.splits.push_back({image, n + 1, {h, side}});
  r.splits.push_back({image, n + 2, {w, side}});
  r.contiguous = n != 1;
  return r;
}

}  // namespace

template <class S>
Prepared<S> pixel_shuffle(const Geometry<S>& self, int64_t factor) {
  check_image("pixel_shuffle", self.dim());
  STRATA_CHECK(factor > 0, "pixel_shuffle expects a positive upscale_factor, but got ", factor);
  const S area(checked_mul(factor, factor, "pixel_shuffle")), side(factor);
  const S &channels = image_dim(self, 3), &h = image_dim(self, 2), &w = image_dim(self, 1);
  const S c = floor_div(channels, area);
  STRATA_CHECK(c * area == channels,
               "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
               "but input.size(-3)=",
               channels, " is not divisible by ", area);
  return blocks<S>(self, c, h, w, side, 0, channels, times<S>(h, side), times<S>(w, side));
}

template <class S>
Prepared<S> pixel_unshuffle(const Geometry<S>& self, int64_t factor) {
  check_image("pixel_unshuffle", self.dim());
  STRATA_CHECK(factor > 0, "pixel_unshuffle expects a positive downscale_factor, but got ", factor);
  const S side(factor);
  const S &c = image_dim(self, 3), &high = image_dim(self, 2), &wide = image_dim(self, 1);
  const S h = floor_div(high, side), w = floor_div(wide, side);
  STRATA_CHECK(h * side == high && w * side == wide,
               "pixel_unshuffle expects height and width to be divisible by downscale_factor, but got a ", high, " x ",
               wide, " input and downscale_factor=", factor);
  return blocks<S>(self, c, h, w, side, 1, times<S>(times<S>(c, side), side), high, wide);
}

#define STRATA_RULES(S)                                                                           \
  template Prepared<S> flip(const Geometry<S>&, ArrayRef<int64_t>);                               \
  template Prepared<S> rot90(const Geometry<S>&, int64_t, ArrayRef<int64_t>);                     \
  template Prepared<S> roll(const Geometry<S>&, ArrayRef<S>, ArrayRef<int64_t>);                  \
  template Prepared<S> triangle(const Geometry<S>&, const S&, const char*);                       \
  template Prepared<S> diagonal_copy(const Geometry<S>&, int64_t, int64_t, int64_t);              \
  template Prepared<S> select_scatter(const Geometry<S>&, const Geometry<S>&, int64_t, const S&); \
  template Prepared<S> select_backward(const Geometry<S>&, ArrayRef<S>, int64_t, const S&);       \
  template Prepared<S> repeat(const Geometry<S>&, ArrayRef<S>);                                   \
  template Prepared<S> pixel_shuffle(const Geometry<S>&, int64_t);                                \
  template Prepared<S> pixel_unshuffle(const Geometry<S>&, int64_t);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
