#include "device/kernels.h"

#include <chrono>
#include <set>

namespace strata::device {

namespace {
using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}
}  // namespace

StrataKernel Kernels::get(const KernelNest& nest) {
  return all_.get(&nest, [&] { return made(nest); });
}

StrataKernel Kernels::made(const KernelNest& nest) {
  const std::string text = lower::print_entry(nest.nest, plugin_.dialect, "run", nest.group);
  if (StrataKernel kept = on_disk(nest, text)) return kept;
  const StrataModule module = compiled(text, 1, nest.key);
  StrataKernel kernel = nullptr;
  check(plugin_, plugin_.table->kernel(module, "run", &kernel), str_cat("the entry point of ", nest.key));
  // A text alone is compiled as quickly by a compiler that keeps its own.
  if (binaries()) keep(module, text, {text}, {"run"});
  return kernel;
}

StrataKernel Kernels::on_disk(const KernelNest& nest, const std::string& text) {
  const auto place = files_.find(text);
  if (!place) return nullptr;
  const auto start = Clock::now();
  const StrataDevice& device = *plugin_.table;
  const StrataModule module = modules_.get(place->module, [&]() -> StrataModule {
    const auto bytes = files_.module(place->module);
    if (!bytes) return nullptr;
    StrataModule loaded = nullptr;
    const StrataStatus status = binaries() ? device.load(device_, bytes->data(), bytes->size(), &loaded)
                                           : device.compile(device_, bytes->c_str(), &loaded);
    if (status == STRATA_OK) return loaded;
    files_.remove(place->module);
    std::lock_guard<std::mutex> hold(lock_);
    ++stats_.refused;
    return nullptr;
  });
  StrataKernel kernel = nullptr;
  if (!module || device.kernel(module, place->entry.c_str(), &kernel) != STRATA_OK) return nullptr;
  std::lock_guard<std::mutex> hold(lock_);
  ++stats_.loaded;
  stats_.load_ms += ms_since(start);
  return kernel;
}

StrataModule Kernels::compiled(const std::string& text, size_t kernels, const std::string& what) {
  const auto start = Clock::now();
  StrataModule module = nullptr;
  check(plugin_, plugin_.table->compile(device_, text.c_str(), &module), str_cat("compiling ", what));
  std::lock_guard<std::mutex> hold(lock_);
  ++stats_.modules;
  stats_.compiled += int64_t(kernels);
  stats_.compile_ms += ms_since(start);
  return module;
}

// A binary where the device gives them, else the text, which its compiler then finds by itself.
void Kernels::keep(StrataModule module, const std::string& module_text, const std::vector<std::string>& texts,
                   const std::vector<std::string>& entries) {
  if (!files_.on()) return;
  if (!binaries()) return files_.store(module_text, module_text, texts, entries);
  uint64_t bytes = 0;
  if (plugin_.table->module_binary(module, nullptr, 0, &bytes) != STRATA_OK || bytes == 0) return;
  std::string binary(bytes, '\0');
  if (plugin_.table->module_binary(module, binary.data(), binary.size(), &bytes) == STRATA_OK && bytes == binary.size())
    files_.store(module_text, binary, texts, entries);
}

int64_t Kernels::warm(const std::vector<const KernelNest*>& nests) {
  struct Batch {
    std::vector<lower::Nest> nests;
    std::vector<std::string> texts, entries;
  };
  std::set<std::string> there, seen;
  std::map<int, Batch> batches;  // by group: a text has one
  for (const KernelNest* n : nests) {
    std::string text = lower::print_entry(n->nest, plugin_.dialect, "run", n->group);
    if (!seen.insert(text).second) continue;
    if (const auto place = files_.find(text)) {
      if (there.count(place->module)) continue;
      if (files_.module(place->module)) {
        there.insert(place->module);
        continue;
      }
    }
    Batch& b = batches[n->group];
    b.nests.push_back(n->nest);
    b.nests.back().name += str_cat("_", b.nests.size());  // the forms of a kernel share its name
    b.entries.push_back(str_cat("run_", b.nests.size()));
    b.texts.push_back(std::move(text));
  }
  int64_t made = 0;
  for (const auto& [group, b] : batches) {
    const std::string text = lower::print_entries(b.nests, plugin_.dialect, b.entries, group);
    const StrataModule module =
        compiled(text, b.nests.size(), str_cat(b.nests.size(), " kernels from ", b.nests[0].symbol()));
    keep(module, text, b.texts, b.entries);
    check(plugin_, plugin_.table->module_release(module), "the release of a module");
    made += int64_t(b.nests.size());
  }
  return made;
}

KernelStats Kernels::stats() {
  std::lock_guard<std::mutex> hold(lock_);
  return stats_;
}

}  // namespace strata::device
