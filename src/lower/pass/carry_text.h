// The texts of a space kernel that hand values along a dim, as a carry (ir/carry.h):
//   - recurrence(i, x, x0, x1) along the dim i of the outputs, their last: x0 at index 0, elsewhere x1, where x is the
//     value at the index before.
//   - scan(i, a, b, combined, element): the elements up to the index combined by an associative expression of a and b.
// A start that is a plain number is of the kernel's compute type; a value has the type of its start. (repeat() is of
// all kernels: build_repeat.cpp.)
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "lower/expr/build.h"

namespace strata::lower {

// Whether the text carries along a dim: then that is the innermost loop.
bool carries_along(const KernelDesc& desc);

class CarryTexts {
 public:
  std::function<int(const Expr&)> range_of;  // of the dim that an expression names

  // Of a call of these, or a name that one of them gives a meaning.
  bool value(Builder& b, const Expr& e, Value& out);

 private:
  struct Given {
    std::string name;
    Value value;
  };
  Value along(Builder& b, const Expr& e, Carry::Kind kind);

  std::vector<Given> given_;  // of the texts at hand, the innermost last
};

}  // namespace strata::lower
