#include "grad/engine/streams.h"

#include <mutex>
#include <unordered_map>

namespace strata::detail {

std::atomic<int64_t> noted_streams{0};

namespace {
struct Table {
  std::mutex lock;
  std::unordered_map<const Node*, int> streams;
};
Table& table() {
  static Table* t = new Table;
  return *t;
}
}  // namespace

void note_stream(const Node& node, Device device) {
  const int stream = device.index < 0 ? 0 : current_stream(device);
  if (stream == 0) return;
  Table& t = table();
  std::lock_guard<std::mutex> hold(t.lock);
  noted_streams += t.streams.try_emplace(&node, stream).second;
}

void forget_stream(const Node& node) {
  Table& t = table();
  std::lock_guard<std::mutex> hold(t.lock);
  noted_streams -= int64_t(t.streams.erase(&node));
}

int noted_stream(const Node& node) {
  Table& t = table();
  std::lock_guard<std::mutex> hold(t.lock);
  const auto at = t.streams.find(&node);
  return at == t.streams.end() ? 0 : at->second;
}

}  // namespace strata::detail
