#include "core/shape/pad.h"

#include "base/checked.h"
#include "core/shape/shape.h"

namespace strata::shape {
namespace {

constexpr int64_t kMost = int64_t(1) << 61;  // sums of a few of them fit

// The padded dims in ascending order.
template <class S>
SmallVec<int64_t, 3> padded_dims(ArrayRef<S> pad, int64_t ndim) {
  SmallVec<int64_t, 3> dims;
  for (size_t i = pad.size() / 2; i-- > 0;)
    if (pad[2 * i] != S(0) || pad[2 * i + 1] != S(0)) dims.push_back(ndim - 1 - int64_t(i));
  return dims;
}

// What of(before, after, d) gives for each padded dim, as the list `name`.
template <class S, class F>
void add_list(Prepared<S>& r, const char* name, ArrayRef<S> pad, const SmallVec<int64_t, 3>& dims, int64_t ndim, F of) {
  Sizes<S> list;
  for (int64_t d : dims) {
    const auto i = size_t(ndim - 1 - d);
    list.push_back(of(pad[2 * i], pad[2 * i + 1], size_t(d)));
  }
  r.values.push_back({name, std::move(list)});
}

enum class Mode { Reflect, Replicate, Circular };

const char* name_of(Mode mode) {
  return mode == Mode::Reflect ? "reflection_pad" : mode == Mode::Replicate ? "replication_pad" : "circular_pad";
}

// One dim with `before` and `after` more places, for the modes that continue what is there.
template <class S>
S continued(Mode mode, ArrayRef<S> sizes, size_t d, const S& before, const S& after) {
  const S& size = sizes[d];
  for (const S& p : {before, after})
    STRATA_CHECK(p > S(-kMost) && p < S(kMost), name_of(mode), ": padding ", p, " does not fit; use a smaller one");
  if (mode == Mode::Reflect)
    STRATA_CHECK(before < size && after < size,
                 "Padding size should be less than the corresponding input dimension, but got: padding (", before, ", ",
                 after, ") at dimension ", d, " of input ", sizes);
  if (mode == Mode::Circular)
    STRATA_CHECK(before <= size && after <= size, "Padding value causes wrapping around more than once.");
  const S out = plus<S>(size, before + after);
  if (mode == Mode::Circular)
    STRATA_CHECK(out >= S(0), "Negative padding value is resulting in an empty dimension");
  else
    STRATA_CHECK(out >= S(1), "input is too small for this padding: calculated output size ", out, " at dimension ", d,
                 " of input ", sizes);
  return out;
}

template <class S>
Prepared<S> continued(Mode mode, const Geometry<S>& self, ArrayRef<S> pad, int64_t count) {
  const int64_t n = self.dim();
  auto check_dims = [&](bool good) {
    STRATA_CHECK(good, name_of(mode), count, "d: Expected ", count + 1, "D or ", count + 2,
                 "D tensor with possibly 0 batch size and other non-zero dimensions for input, but got: ", self.sizes);
  };
  check_dims(n == count + 1 || n == count + 2);
  for (int64_t d = n - count - 1; d < n; ++d) check_dims(self.sizes[size_t(d)] != S(0));
  Prepared<S> r(self.sizes, self.dtype);
  for (int64_t i = 0; i < count; ++i) {
    const auto d = size_t(n - 1 - i), k = size_t(2 * i);
    r.outputs[0].sizes[d] = continued(mode, self.sizes, d, pad[k], pad[k + 1]);
  }
  return r;
}

template <class S>
Prepared<S> mirrored(Mode mode, const Geometry<S>& self, ArrayRef<S> pad, int64_t count) {
  STRATA_CHECK(int64_t(pad.size()) == 2 * count, name_of(mode), count, "d: padding size is expected to be ", 2 * count,
               ", but got: ", pad.size());
  Prepared<S> r = continued(mode, self, pad, count);
  STRATA_CHECK_NOT_IMPLEMENTED(self.dtype != DType::Bool, "\"", name_of(mode), count,
                               "d\" not implemented for 'Bool'; convert the input first");
  SmallVec<int64_t, 3> dims = padded_dims(pad, self.dim());
  add_list(r, "before", pad, dims, self.dim(), [](const S& before, const S&, size_t) { return before; });
  r.place_groups({"f", "g"}, std::move(dims), self.dim());
  return r;
}

}  // namespace

template <class S>
Prepared<S> constant_pad(const Geometry<S>& self, ArrayRef<S> pad) {
  Prepared<S> r(padded<S, Sizes<S>>(self.sizes, pad), self.dtype);
  SmallVec<int64_t, 3> dims = padded_dims(pad, self.dim());
  // Beyond these ends nothing of self is inside: nearer ones do as well.
  add_list(r, "before", pad, dims, self.dim(), [&](const S& before, const S&, size_t d) {
    return larger(smaller(before, r.outputs[0].sizes[d]), S(0) - self.sizes[d]);
  });
  r.place_groups({"f", "g"}, std::move(dims), self.dim());
  return r;
}

template <class S>
Prepared<S> reflection_pad(const Geometry<S>& self, ArrayRef<S> pad, int64_t count) {
  return mirrored(Mode::Reflect, self, pad, count);
}

template <class S>
Prepared<S> replication_pad(const Geometry<S>& self, ArrayRef<S> pad, int64_t count) {
  return mirrored(Mode::Replicate, self, pad, count);
}

template <class S>
Prepared<S> circular_pad(const Geometry<S>& self, ArrayRef<S> pad) {
  STRATA_CHECK(pad.size() % 2 == 0, "circular_pad: padding size is expected to be even, but got: ", pad.size());
  Prepared<S> r = continued(Mode::Circular, self, pad, int64_t(pad.size()) / 2);
  SmallVec<int64_t, 3> dims = padded_dims(pad, self.dim());
  const S none(0);
  add_list(r, "skip", pad, dims, self.dim(), [&](const S& before, const S&, size_t) { return larger(before, none); });
  // What negative padding takes away does not come back around.
  add_list(r, "first", pad, dims, self.dim(),
           [&](const S& before, const S&, size_t) { return larger(S(0) - before, none); });
  add_list(r, "period", pad, dims, self.dim(), [&](const S& before, const S& after, size_t d) {
    const S period = self.sizes[d] - larger(S(0) - before, none) - larger(S(0) - after, none);
    STRATA_CHECK(period > S(0) || r.outputs[0].sizes[d] == S(0), "circular_pad: padding (", before, ", ", after,
                 ") takes all of dimension ", d, " of input ", self.sizes, " away: nothing is left to repeat");
    return period;
  });
  if (dims.empty()) r.values.back().values.push_back(S(1));  // of the one place that stands for none
  r.place_groups({"f", "g"}, std::move(dims), self.dim());
  return r;
}

namespace {

// What the rule of a padding of self gives, for a result of self's sizes.
template <class S>
Prepared<S> pad_backward(const Geometry<S>& grad, ArrayRef<S> sizes, Prepared<S> r) {
  STRATA_CHECK(grad.sizes == ArrayRef<S>(r.outputs[0].sizes), "pad: the derivative: expected a gradient of shape ",
               ArrayRef<S>(r.outputs[0].sizes), ", got ", grad.sizes);
  STRATA_CHECK_NOT_IMPLEMENTED(r.places[0].dims.size() <= 3,
                               "pad: the derivative of more than three padded dims at once");
  r.outputs[0] = {sizes, grad.dtype};
  return r;
}

}  // namespace

template <class S>
Prepared<S> reflection_pad_backward(const Geometry<S>& grad, const Geometry<S>& self, ArrayRef<S> pad, int64_t count) {
  return pad_backward(grad, self.sizes, reflection_pad(self, pad, count));
}

template <class S>
Prepared<S> replication_pad_backward(const Geometry<S>& grad, const Geometry<S>& self, ArrayRef<S> pad, int64_t count) {
  return pad_backward(grad, self.sizes, replication_pad(self, pad, count));
}

template <class S>
Prepared<S> circular_pad_backward(const Geometry<S>& grad, ArrayRef<S> sizes, ArrayRef<S> pad) {
  for (const S& s : sizes) STRATA_CHECK(s >= S(0), "pad: the derivative: expected sizes of 0 or more, got ", sizes);
  const Geometry<S> self{sizes, {}, grad.dtype, grad.device, true};
  return pad_backward(grad, sizes, circular_pad(self, pad));
}

#define STRATA_RULES(S)                                                                                        \
  template Prepared<S> constant_pad(const Geometry<S>&, ArrayRef<S>);                                          \
  template Prepared<S> reflection_pad(const Geometry<S>&, ArrayRef<S>, int64_t);                               \
  template Prepared<S> replication_pad(const Geometry<S>&, ArrayRef<S>, int64_t);                              \
  template Prepared<S> circular_pad(const Geometry<S>&, ArrayRef<S>);                                          \
  template Prepared<S> reflection_pad_backward(const Geometry<S>&, const Geometry<S>&, ArrayRef<S>, int64_t);  \
  template Prepared<S> replication_pad_backward(const Geometry<S>&, const Geometry<S>&, ArrayRef<S>, int64_t); \
  template Prepared<S> circular_pad_backward(const Geometry<S>&, ArrayRef<S>, ArrayRef<S>);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
