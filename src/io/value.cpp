#include "io/value.h"

namespace strata::io {

std::shared_ptr<List> Keeper::list(List::Kind kind) {
  lists_.push_back(std::make_shared<List>());
  lists_.back()->kind = kind;
  return lists_.back();
}

std::shared_ptr<Dict> Keeper::dict(Dict::Kind kind) {
  dicts_.push_back(std::make_shared<Dict>());
  dicts_.back()->kind = kind;
  return dicts_.back();
}

std::shared_ptr<TensorItem> Keeper::tensor() {
  tensors_.push_back(std::make_shared<TensorItem>());
  return tensors_.back();
}

// Walks what is reachable, each container once.
class TreeCheck {
 public:
  TreeCheck(std::unordered_map<const void*, int>& height, const std::function<void(const std::string&)>& refuse)
      : height_(height), refuse_(refuse) {}

  // Levels of nesting below and with `v`; raises when `depth` plus these are too many.
  int visit(const Value& v, int depth) {
    if (v.opaque()) refuse_("holds a bare storage, type or function; only tensors and plain values are read");
    if (const List* list = v.list()) {
      return walk(list, depth, [&](auto&& below) {
        for (const Value& item : list->items) {
          if (list->kind >= List::Set) key(item);
          below(item);
        }
      });
    }
    if (const Dict* dict = v.dict()) {
      return walk(dict, depth, [&](auto&& below) {
        for (const auto& [k, item] : dict->items) {
          key(k);
          below(k);
          below(item);
        }
        for (const auto& [name, item] : dict->attributes) below(item);
      });
    }
    if (const TensorItem* t = v.tensor()) {
      return walk(t, depth, [&](auto&& below) {
        for (const auto& [name, item] : t->attributes) below(item);
      });
    }
    return 0;
  }

 private:
  template <class F>
  int walk(const void* container, int depth, F&& items) {
    auto [at, fresh] = height_.try_emplace(container, -1);
    if (!fresh && at->second < 0) refuse_("holds a container that contains itself");
    if (!fresh) {
      if (depth + at->second > kMaxDepth) too_deep();
      return at->second;
    }
    if (depth + 1 > kMaxDepth) too_deep();
    int most = 0;
    items([&](const Value& v) { most = std::max(most, visit(v, depth + 1)); });
    return height_[container] = most + 1;
  }

  void too_deep() { refuse_(str_cat("is nested deeper than ", kMaxDepth)); }

  // Keys are compared and hashed: large or shared nests of tuples would make that take for ever.
  void key(const Value& v) {
    int budget = 256;
    count_key(v, budget);
  }
  void count_key(const Value& v, int& budget) {
    const List* list = v.list();
    bool plain = !v.dict() && !v.tensor() &&
                 !(v.get<std::shared_ptr<const Bytes>>() && (*v.get<std::shared_ptr<const Bytes>>())->array);
    if (list) plain = list->kind == List::Tuple || list->kind == List::Size || list->kind == List::FrozenSet;
    if (!plain) refuse_("has a key of a dict, or an item of a set, that is no plain value");
    if (--budget < 0) refuse_("has a key of more than 256 values");
    if (list)
      for (const Value& item : list->items) count_key(item, budget);
  }

  std::unordered_map<const void*, int>& height_;
  const std::function<void(const std::string&)>& refuse_;
};

Value Keeper::finish(Value root, const std::function<void(const std::string&)>& refuse) {
  TreeCheck(height_, refuse).visit(root, 0);
  finished_ = true;
  return root;
}

Keeper::~Keeper() {
  auto loose = [&](const auto& container) { return !finished_ || !height_.count(container.get()); };
  for (auto& list : lists_)
    if (loose(list)) list->items.clear();
  for (auto& dict : dicts_)
    if (loose(dict)) {
      dict->items.clear();
      dict->attributes.clear();
    }
  for (auto& tensor : tensors_)
    if (loose(tensor)) tensor->attributes.clear();
}

}  // namespace strata::io
