// SavedTensor: a tensor kept for backward. Unpacking checks that nobody has written to it since.
#pragma once
#include "grad/engine/node.h"

namespace strata {

// A pair of hooks that turn saved tensors into something else and back (saved_tensors_hooks).
struct SavedHooks {
  virtual ~SavedHooks() = default;
  struct Packed {
    virtual ~Packed() = default;
    virtual Tensor unpack() = 0;
  };
  virtual std::unique_ptr<Packed> pack(const Tensor& t) = 0;
};
void push_saved_hooks(std::shared_ptr<SavedHooks> hooks);
void pop_saved_hooks();
// While set, saving with hooks raises this text (saved_tensors_hooks disabled).
void set_saved_hooks_error(std::optional<std::string> text);
// While it lives, this thread has no such hooks but those that are pushed meanwhile.
class SavedHooksAside {
 public:
  SavedHooksAside();
  ~SavedHooksAside();
  SavedHooksAside(const SavedHooksAside&) = delete;

 private:
  std::vector<std::shared_ptr<SavedHooks>> hooks_;
};

class SavedTensor {
 public:
  SavedTensor() = default;
  // `is_output`: the tensor is an output of the node that saves it, so that no cycle is made.
  SavedTensor(const Tensor& t, bool is_output) { save(t, is_output); }
  void save(const Tensor& t, bool is_output);  // of one that holds nothing yet
  // Its sizes, strides, dtype and device alone, where no gradient that reads the values will be asked for.
  void save_geometry(const Tensor& t);
  // `owner` is the node that holds this. Raises after release and, where the values are used, after an in-place write.
  Tensor unpack(Node* owner, bool used = true) const;
  void release();
  // From now on it is what `hooks` made of it. Raises after release, and where hooks made it already.
  void pack(SavedHooks& hooks);
  bool defined() const { return (data_.defined() && !geometry_) || packed_; }

 private:
  Tensor data_;  // outputs: without history
  std::shared_ptr<SavedHooks::Packed> packed_;
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  bool is_output_ = false, is_leaf_ = false, requires_grad_ = false, released_ = false, geometry_ = false;
  Ref<NodeBase> grad_fn_;  // of an input that is packed or was saved as an alias
};

}  // namespace strata
