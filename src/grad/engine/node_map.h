// State of each node during one backward run: a hash table from node to index by open addressing.
#pragma once
#include <cstdint>
#include <vector>

#include "grad/engine/node.h"

namespace strata {

struct NodeState {
  Node* node = nullptr;
  int32_t dependencies = 0;
  bool needed = true;  // on a path to an input that is asked for
  bool has_captures = false;
  Grads buffer;  // one gradient per output of the node's call
};

class NodeMap {
 public:
  NodeMap() : slots_(64, -1) {}
  // Index of the node's state; `fresh` tells whether it was made now. Indices stay, references do not.
  int32_t index(Node* node, bool* fresh) {
    if (states_.size() * 2 >= slots_.size()) grow();
    size_t at = hash(node);
    while (slots_[at] >= 0) {
      if (states_[slots_[at]].node == node) {
        *fresh = false;
        return slots_[at];
      }
      at = (at + 1) & (slots_.size() - 1);
    }
    *fresh = true;
    slots_[at] = int32_t(states_.size());
    states_.emplace_back();
    states_.back().node = node;
    return slots_[at];
  }
  NodeState* find(Node* node) {
    size_t at = hash(node);
    while (slots_[at] >= 0) {
      if (states_[slots_[at]].node == node) return &states_[slots_[at]];
      at = (at + 1) & (slots_.size() - 1);
    }
    return nullptr;
  }
  NodeState& operator[](int32_t i) { return states_[i]; }
  size_t size() const { return states_.size(); }

 private:
  size_t hash(Node* node) const {
    return (reinterpret_cast<uintptr_t>(node) * 0x9E3779B97F4A7C15ull >> 20) & (slots_.size() - 1);
  }
  void grow() {
    slots_.assign(slots_.size() * 2, -1);
    for (size_t i = 0; i < states_.size(); ++i) {
      size_t at = hash(states_[i].node);
      while (slots_[at] >= 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = int32_t(i);
    }
  }
  std::vector<int32_t> slots_;
  std::vector<NodeState> states_;
};

}  // namespace strata
