// IValue: one boxed argument or result. A Stack of them is what boxed kernels (fallbacks, Python, tracing) see.
#pragma once
#include <complex>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/generator.h"
#include "core/tensor.h"

namespace strata {

// A Python object or another opaque value that only its maker can read.
struct Opaque {
  virtual ~Opaque() = default;
};

class IValue {
 public:
  using TensorVec = std::vector<Tensor>;
  using Value = std::variant<std::monostate, Tensor, int64_t, double, bool, Scalar, std::string, std::vector<int64_t>,
                             std::vector<double>, std::vector<bool>, TensorVec, Device, DType, MemoryFormat, Generator,
                             std::shared_ptr<Opaque>>;
  IValue() = default;
  template <class T>
    requires(!std::is_same_v<std::decay_t<T>, IValue>)
  IValue(T&& v) : value_(std::forward<T>(v)) {}

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value_);
  }
  template <class T>
  const T& get() const {
    const T* p = std::get_if<T>(&value_);
    if (STRATA_UNLIKELY(!p)) another_type();
    return *p;
  }
  bool is_tensor() const { return is<Tensor>(); }
  bool is_tensors() const { return is<TensorVec>(); }
  const Value& value() const { return value_; }

 private:
  [[noreturn]] void another_type() const;
  Value value_;
};

using Stack = std::vector<IValue>;

}  // namespace strata
