#include "device/nests.h"

#include <map>
#include <memory>
#include <mutex>

#include "lower/pass/grouped.h"

namespace strata::device {

namespace {
std::mutex& lock = *new std::mutex;
auto& known = *new std::map<std::string, std::unique_ptr<const KernelNest>>;
}  // namespace

const KernelNest* known_nest(const std::string& key) {
  std::lock_guard<std::mutex> hold(lock);
  const auto at = known.find(key);
  return at == known.end() ? nullptr : at->second.get();
}

const KernelNest& kernel_nest(const std::string& key, const std::function<lower::Nest()>& make, int group) {
  if (const KernelNest* there = known_nest(key)) return *there;
  // Two threads may make the same one; the first stays.
  auto made = std::make_unique<KernelNest>(KernelNest{key, make(), {}, {}, group});
  made->parameters = lower::entry_parameters(made->nest);
  if (!lower::grouped_ranges(made->nest)) made->group = 0;
  made->items = lower::item_ranges(made->nest, made->group != 0);
  std::lock_guard<std::mutex> hold(lock);
  return *known.try_emplace(key, std::move(made)).first->second;
}

}  // namespace strata::device
