// What a node saved of its own result, where another node runs it.
#pragma once
#include <functional>

#include "grad/engine/node.h"

namespace strata {

// While one lives on this thread, results that `node` saved are unpacked with a history that `history` makes.
class SavedResultOf {
 public:
  SavedResultOf(const Node* node, std::function<Ref<Node>()> history);
  ~SavedResultOf();
  SavedResultOf(const SavedResultOf&) = delete;
  SavedResultOf& operator=(const SavedResultOf&) = delete;

  // The history of results that `node` saved: null where it is `node` itself.
  static Ref<Node> history_of(const Node* node);

 private:
  const Node* node_;
  std::function<Ref<Node>()> history_;
  SavedResultOf* outer_;
};

}  // namespace strata
