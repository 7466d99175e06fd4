// What a view shows of its base, said by view operators: found from where both lie, so that a view costs nothing to
// make.
#pragma once
#include <optional>
#include <vector>

#include "core/tensor.h"

namespace strata {

struct Geometry {
  DimVec sizes, strides;
  int64_t offset = 0;
  bool complex = false;
  explicit Geometry(const Tensor& t);
  // That of view_as_real.
  Geometry parts() const;
};

class ViewPath {
 public:
  // None where select, slice, permute, unsqueeze, expand and one view do not say it: diagonals, windows that overlap.
  static std::optional<ViewPath> between(const Geometry& base, const Geometry& view);

  // What the view shows of a tensor of the base's sizes, which lies as it does.
  Tensor of(Tensor whole) const;
  // Its gradient: of a tensor like the view, one of the base's sizes.
  Tensor gradient(Tensor grad) const;

 private:
  struct Step {
    enum Kind { View, Select, Slice, Permute, Unsqueeze, Expand } kind;
    int64_t dim = 0, start = 0, end = 0, step = 1;
    DimVec list;    // the dims of Permute, the sizes of View and Expand
    DimVec before;  // sizes of what it is applied to
  };
  static std::optional<ViewPath> of_dims(const DimVec& sizes, const DimVec& strides, const Geometry& view,
                                         int64_t from);
  void add(Step step, DimVec& sizes);

  std::vector<Step> steps_;
};

}  // namespace strata
