#include "device/nests.h"

#include <map>
#include <memory>
#include <mutex>

#include "lower/pass/grouped.h"

namespace strata::device {

const KernelNest& kernel_nest(const std::string& key, const std::function<lower::Nest()>& make, int group) {
  static auto& lock = *new std::mutex;
  static auto& known = *new std::map<std::string, std::unique_ptr<const KernelNest>>;
  {
    std::lock_guard<std::mutex> hold(lock);
    if (const auto at = known.find(key); at != known.end()) return *at->second;
  }
  // Two threads may make the same one; the first stays.
  auto made = std::make_unique<KernelNest>(KernelNest{key, make(), {}, {}, group});
  made->parameters = lower::entry_parameters(made->nest);
  if (!lower::grouped_ranges(made->nest)) made->group = 0;
  made->items = lower::item_ranges(made->nest, made->group != 0);
  std::lock_guard<std::mutex> hold(lock);
  return *known.try_emplace(key, std::move(made)).first->second;
}

}  // namespace strata::device
