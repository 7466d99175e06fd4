// Value: what a saved file holds: nested lists, tuples and dicts of tensors and plain values. Code cannot be held.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor.h"

namespace strata::io {

struct Value;
struct List {
  std::vector<Value> items;
  bool tuple = false;
};
struct Dict {
  std::vector<std::pair<Value, Value>> items;  // in the order in which they were put
};

struct Value {
  std::variant<std::monostate, bool, int64_t, double, std::string, Tensor, DType, Device, std::shared_ptr<List>,
               std::shared_ptr<Dict>>
      v;
  template <class T>
  const T* get() const {
    return std::get_if<T>(&v);
  }
};

constexpr int kMaxDepth = 64;  // of nesting, read and written

}  // namespace strata::io
