// On which queue of its device a recorded call ran, where that is not the device's own: its derivative runs there, too.
// Few calls do, so that a table beside the nodes holds them.
#pragma once
#include <atomic>

#include "core/stream.h"
#include "grad/engine/node.h"

namespace strata {

namespace detail {
extern std::atomic<int64_t> noted_streams;  // entries of the table
void note_stream(const Node& node, Device device);
void forget_stream(const Node& node);
int noted_stream(const Node& node);
}  // namespace detail

// The thread's current one of a tensor's device.
inline void note_stream(const Node& node, const Tensor& t) {
  if (STRATA_UNLIKELY(t.device().type > 1)) detail::note_stream(node, t.device());
}
inline int stream_of(const Node& node) {
  return detail::noted_streams.load(std::memory_order_relaxed) == 0 ? 0 : detail::noted_stream(node);
}
// Of a node that dies.
inline void forget_stream(const Node& node) {
  if (STRATA_UNLIKELY(detail::noted_streams.load(std::memory_order_relaxed) != 0)) detail::forget_stream(node);
}

}  // namespace strata
