// Recording: while one lives on a thread, each operator that reaches Key::Tracer, below autograd and bookkeeping, is
// appended to a tape, and passed on with the key off, so that what it calls is not recorded again. Composite operators
// are decomposed; those with out=, whose bodies end in a copy, stay whole.
//
// A tape is a program: operators in the order in which they ran, over numbered tensors. A number stands for a tensor
// object, so writes in place and views are steps like others, and replaying them gives the same aliases. What is not a
// tensor is a constant. Gradients are part of it where they were computed meanwhile.
#pragma once
#include <unordered_map>

#include "dispatch/boxed.h"

namespace strata {

// Printed by gen/ from `reads:` and `size:` in ops/*.yaml: operators that a recording cannot hold. Ends with a null
// name.
struct HostRead {
  enum When : uint8_t { Always, None, Equal, Mask };  // of an argument: None, `value`, or a list with a mask in it
  const char* op;                                     // "aten::item"
  bool size;                                          // the size of a result is data; else values leave for the host
  When when;
  uint8_t argument;
  int64_t value;
};
extern const HostRead host_reads[];

class Tape {
 public:
  static constexpr int32_t kNone = -1;  // an undefined tensor
  struct Operand {
    IValue constant;
    std::vector<int32_t> tensors;  // numbers; empty of a constant
    bool list = false;
  };
  struct Step {
    Operator* op;
    std::vector<Operand> args;
    std::vector<int32_t> results;  // of all results and their lists in order
  };
  struct Input {
    DimVec sizes, strides;
    DType dtype;
    Device device;
  };

  // Runs the steps on other inputs of the same geometry, which they may write, and gives the outputs. Nothing is
  // recorded by autograd. Raises Value for inputs that do not fit.
  std::vector<Tensor> replay(TensorList inputs) const;
  // One line a step: `%3 = aten::add.Tensor(%0, %1, alpha=1)`.
  std::string text() const;

  const std::vector<Step>& steps() const { return steps_; }
  // Tensors that operators used and no recorded operator made. Their values are part of the tape.
  const std::vector<Tensor>& captured() const { return captured_; }

 private:
  friend class Recording;
  std::vector<Input> inputs_;
  std::vector<Step> steps_;
  std::vector<int32_t> outputs_;
  std::vector<Tensor> captured_;
  // Numbers of inputs come first; those of captured tensors and of Python numbers are listed.
  std::vector<std::pair<int32_t, Tensor>> known_;
  int32_t count_ = 0;
};

class Recording {
 public:
  // Raises where this thread records already.
  explicit Recording(TensorList inputs);
  ~Recording();
  Recording(const Recording&) = delete;
  Tape finish(TensorList outputs);

 private:
  static void call(Operator& op, Dispatch d, Stack& stack);
  void record(Operator& op, Dispatch d, Stack& stack);
  int32_t number(const Tensor& t);
  int32_t add(const Tensor& t);

  IncludeGuard key_;
  Tape tape_;
  std::unordered_map<const TensorImpl*, int32_t> numbers_;
  std::vector<Tensor> kept_;  // an address stays one tensor's
};

}  // namespace strata
