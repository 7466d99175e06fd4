// Value: what a saved file holds: nested lists, tuples, dicts and sets of tensors and plain values. Code cannot be
// held. Copies of a Value share its containers and tensors, and files keep that: what is one object when saved is one
// object when loaded. Containers must not contain themselves.
#pragma once
#include <complex>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor.h"

namespace strata::io {

struct List;
struct Dict;
struct TensorItem;
// A reader's own object, which its result may not hold.
struct Opaque {
  virtual ~Opaque() = default;
};
struct BigInt {
  std::string bytes;  // of a whole number beyond 64 bits: two's complement, lowest byte first
};
struct Bytes {
  std::string data;
  bool array = false;  // may be changed: Python's bytearray
};
struct StridedLayout {};

using Str = std::shared_ptr<const std::string>;

struct Value {
  std::variant<std::monostate, bool, int64_t, double, std::complex<double>, DType, Device, StridedLayout, Str,
               std::shared_ptr<const BigInt>, std::shared_ptr<const Bytes>, std::shared_ptr<TensorItem>,
               std::shared_ptr<List>, std::shared_ptr<Dict>, std::shared_ptr<Opaque>>
      v;
  bool is_none() const { return v.index() == 0; }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&v);
  }
  const std::string* str() const { return get<Str>() ? get<Str>()->get() : nullptr; }
  const List* list() const { return pointee<List>(); }
  const Dict* dict() const { return pointee<Dict>(); }
  const TensorItem* tensor() const { return pointee<TensorItem>(); }
  const Opaque* opaque() const { return pointee<Opaque>(); }

 private:
  template <class T>
  const T* pointee() const {
    auto* p = get<std::shared_ptr<T>>();
    return p ? p->get() : nullptr;
  }
};

struct List {
  enum Kind : uint8_t { Plain, Tuple, Size, Set, FrozenSet };
  Kind kind = Plain;
  std::vector<Value> items;
};

struct Dict {
  enum Kind : uint8_t { Plain, Ordered, Counter };
  Kind kind = Plain;
  std::vector<std::pair<Value, Value>> items;     // in the order in which they were put; of equal keys the last counts
  std::vector<std::pair<Str, Value>> attributes;  // of an Ordered one: a state_dict's `_metadata`
};

struct TensorItem {
  enum Kind : uint8_t { Plain, Parameter, Buffer };
  Tensor tensor;
  Kind kind = Plain;
  bool requires_grad = false;  // the reader of the Value sets it on the tensor: autograd is not known here
  std::vector<std::pair<Str, Value>> attributes;
};

constexpr int kMaxDepth = 64;  // of nesting, read and written

inline Value make_str(std::string text) { return {std::make_shared<const std::string>(std::move(text))}; }
inline Value make_tensor_value(Tensor t) {
  auto item = std::make_shared<TensorItem>();
  item->tensor = std::move(t);
  return {item};
}

// Owns what a reader makes. A file can describe containers that hold themselves or are nested without end; ending their
// lives one inside the other would overrun the stack, so this takes them apart one by one.
class Keeper {
 public:
  std::shared_ptr<List> list(List::Kind kind = List::Plain);
  std::shared_ptr<Dict> dict(Dict::Kind kind = Dict::Plain);
  std::shared_ptr<TensorItem> tensor();
  // The result of reading: checks that nesting ends within kMaxDepth, that no container holds itself, that keys are
  // plain values, that nothing opaque is left. `refuse` must throw.
  Value finish(Value root, const std::function<void(const std::string&)>& refuse);
  ~Keeper();

 private:
  std::vector<std::shared_ptr<List>> lists_;
  std::vector<std::shared_ptr<Dict>> dicts_;
  std::vector<std::shared_ptr<TensorItem>> tensors_;
  std::unordered_map<const void*, int> height_;  // of what the result holds
  bool finished_ = false;
  friend class TreeCheck;
};

}  // namespace strata::io
