// What a shape rule reads of tensors and what it prepares: a rule checks arguments as far as sizes decide, raises the
// operator's errors, and gives the results' sizes and how the operator's kernel walks the tensors. Rules are templates
// over the size type S, instantiated for int64_t (eager; no heap for common ranks) and SymInt.
#pragma once
#include <type_traits>
#include <vector>

#include "base/array_ref.h"
#include "base/error.h"
#include "base/inline_vec.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/shape/arithmetic.h"
#include "core/sym.h"

namespace strata::shape {

template <class S>
using Sizes = SmallVec<S, 6>;

template <class S>
struct Geometry {
  ArrayRef<S> sizes, strides;
  DType dtype = DType::F32;
  Device device;
  bool defined = false;

  int64_t dim() const { return int64_t(sizes.size()); }
  // One of no dims is taken as a line of one element.
  S size_at(int64_t dim) const { return sizes.empty() ? S(1) : sizes[size_t(dim)]; }
  S numel() const {
    // The other sizes of an empty tensor may have no product in 64 bits; symbols need none of these guards.
    if constexpr (std::is_same_v<S, int64_t>)
      for (S s : sizes)
        if (s == 0) return 0;
    S n(1);
    for (const S& s : sizes) n = n * s;
    return n;
  }
};

// Where a named dim (or each dim of a computed group, in order) stands in the tensors that have a plain group beside
// it. What is not placed stands last, in the order of the pattern; dims that are left are the plain group's. A tensor
// without a plain group has its dims in the pattern's order.
struct Place {
  const char* name;
  SmallVec<int64_t, 3> dims;  // wrapped; -1 stands for a dim of size 1 that the tensors lack
};

template <class S>
struct Output {
  Sizes<S> sizes;
  DType dtype;
};

// A result whose strides the rule says; none: those that the entry states.
template <class S>
struct Strided {
  Sizes<S> sizes;
  DType dtype;
  Sizes<S> strides = {};
};

// A scalar of the kernel that the rule computes: one value, or one for each dim of a computed group.
template <class S>
struct Value {
  const char* name;
  Sizes<S> values;
};

// The sizes of a reduced dim, or of each dim of a reduced group.
template <class S>
using Extent = Value<S>;
// A dim of an operand that the kernel takes as several, outermost first. Those of size 1 stand for any number of equal
// places where the result has more.
template <class S>
struct Split {
  int operand;  // outputs first
  int64_t dim;
  Sizes<S> sizes;
};

// Neighbouring dims of an operand that the kernel takes as one; of none of them, a dim of size 1 there.
struct Join {
  int operand;  // outputs first
  int64_t dim, count;
};

template <class S>
struct Prepared {
  InlineVec<Output<S>, 1> outputs;
  InlineVec<Place, 2> places;
  InlineVec<Value<S>, 2> values;
  InlineVec<Extent<S>, 1> extents;
  InlineVec<Split<S>, 1> splits;  // of an operand in the order of its dims
  InlineVec<Join, 1> joins;       // at most one of an operand
  // Operands with a plain or computed group have dims of size 1 in front when they have fewer than this.
  int64_t rank = 0;
  uint32_t flat = 0;        // bit k: operand k, outputs first, is taken as one line of its elements in logical order
  uint32_t spread = 0;      // bit k: operand k, likewise, is broadcast to the sizes of the first result
  bool contiguous = false;  // the result is so, whatever strides the entry states
  std::vector<Sizes<S>> strides;  // of results that add() gave some, by their number
  uint32_t absent = 0;            // bit k: result k is None
  // For the error of a checked index: the dim that it is for, and what it stays below.
  int64_t dim = 0;
  S size{0};

  Prepared() = default;
  Prepared(ArrayRef<S> sizes, DType dtype) { outputs.emplace_back(sizes, dtype); }

  void add(Strided<S> result) {
    outputs.push_back({std::move(result.sizes), result.dtype});
    if (result.strides.empty()) return;
    strides.resize(outputs.size());
    strides.back() = std::move(result.strides);
  }
  void place(const char* name, int64_t dim) { places.push_back({name, {dim}}); }
  void value(const char* name, S v) { values.push_back({name, {std::move(v)}}); }
  // Computed groups over these dims of tensors with `ndim` of them. A group of no dims gets one of size 1, in front of
  // all, and 0 for its lists, which must be there already.
  void place_groups(std::initializer_list<const char*> names, SmallVec<int64_t, 3> dims, int64_t ndim) {
    if (dims.empty()) {
      rank = ndim + 1;
      dims.push_back(0);
      for (Value<S>& v : values)
        if (v.values.empty()) v.values.push_back(S(0));
    }
    for (const char* name : names) places.push_back({name, dims});
  }
};

}  // namespace strata::shape
