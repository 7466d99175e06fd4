#include "lower/added.h"

#include <map>
#include <mutex>

namespace strata::lower {

namespace {
struct Added {
  std::mutex lock;
  std::map<std::string_view, const KernelDesc*> all;
};
Added& added() {
  static Added* a = new Added;
  return *a;
}
}  // namespace

void add_description(const KernelDesc& desc) {
  std::lock_guard<std::mutex> hold(added().lock);
  added().all[desc.name] = &desc;
}

ArrayRef<const KernelDesc*> added_descriptions(std::string_view name) {
  std::lock_guard<std::mutex> hold(added().lock);
  const auto at = added().all.find(name);
  if (at == added().all.end()) return {};
  return {&at->second, 1};
}

}  // namespace strata::lower
