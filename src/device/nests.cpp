#include "device/nests.h"

#include <map>
#include <memory>
#include <mutex>

#include "lower/pass/grouped.h"

namespace strata::device {

namespace {
std::mutex& lock = *new std::mutex;
auto& known = *new std::map<std::string, std::unique_ptr<const KernelNest>>;
// An item has a row whole: one that shared it would reduce what another one has written in place already.
void keep_rows(lower::Nest& nest) {
  for (const lower::Reduction& r : nest.reductions)
    for (size_t k = 0; k < nest.ranges.size(); ++k)
      if ((r.over & nest.loops()) >> k & 1) nest.ranges[k].whole = true;
}
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
  if (!made->group) keep_rows(made->nest);
  made->items = lower::item_ranges(made->nest, made->group != 0);
  std::lock_guard<std::mutex> hold(lock);
  return *known.try_emplace(key, std::move(made)).first->second;
}

}  // namespace strata::device
