// Custom autograd functions written in Python: the node that calls `backward`, and the state of its ctx.
#pragma once
#include <unordered_map>

#include "bind/autograd/node.h"
#include "grad/engine/saved_tensor.h"

namespace strata::py {

// The Python side of a ctx; lives and dies with the ctx object. All members are owned references or null.
struct FunctionState {
  PyObject* cls = nullptr;  // the user's Function
  PyObject* to_save = nullptr;
  PyObject* dirty = nullptr;
  PyObject* non_differentiable = nullptr;
  PyObject* needs_input_grad = nullptr;
  bool materialize_grads = true;
};

class PyFunctionNode final : public Node {
 public:
  explicit PyFunctionNode(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  Grads apply(Grads&& grads) override;
  void release_saved() override {
    for (SavedTensor& t : saved) t.release();
  }

  std::vector<SavedTensor> saved;
  std::vector<bool> input_is_tensor;   // by argument of forward
  std::vector<bool> output_is_tensor;  // by output of forward

 private:
  std::string name_;
};

Own make_ctx(PyTypeObject* type, const Ref<PyFunctionNode>& node, PyObject* cls);
FunctionState& state_of(PyObject* ctx);
PyFunctionNode& function_node(PyObject* ctx);

// Gives forward's outputs their history. `raw` is what forward returned; the result has the same form.
Own finish_outputs(PyObject* ctx, PyObject* raw, const std::unordered_map<TensorImpl*, int>& inputs, bool record);

void init_ctx(PyObject* module);

}  // namespace strata::py
