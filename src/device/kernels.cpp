#include "device/kernels.h"

#include <chrono>
#include <map>
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

// Kernels of one text, which have different names there.
struct Kernels::Batch {
  std::vector<lower::Nest> nests;
  std::vector<std::string> texts, entries;
  std::vector<int> groups;
  std::vector<const KernelNest*> of;

  void add(const KernelNest& n, std::string text) {
    nests.push_back(n.nest);
    nests.back().name += str_cat("_", nests.size());  // the forms of a kernel share its name
    entries.push_back(str_cat("run_", nests.size()));
    groups.push_back(n.group);
    texts.push_back(std::move(text));
    of.push_back(&n);
  }
  std::string what() const { return str_cat(nests.size(), " kernels from ", nests[0].symbol()); }
};

int64_t Kernels::warm(const std::vector<const KernelNest*>& nests) {
  std::set<std::string> there, seen;
  Batch b;
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
    b.add(*n, std::move(text));
  }
  if (b.nests.empty()) return 0;
  const std::string text = lower::print_entries(b.nests, plugin_.dialect, b.entries, b.groups);
  const StrataModule module = compiled(text, b.nests.size(), b.what());
  keep(module, text, b.texts, b.entries);
  check(plugin_, plugin_.table->module_release(module), "the release of a module");
  return int64_t(b.nests.size());
}

std::vector<StrataKernel> Kernels::get(const std::vector<const KernelNest*>& nests, int64_t* made) {
  Batch b;
  std::map<const KernelNest*, StrataKernel> known;
  for (const KernelNest* n : nests) {
    if (known.count(n) || (known[n] = all_.find(n))) continue;
    std::string text = lower::print_entry(n->nest, plugin_.dialect, "run", n->group);
    if (StrataKernel kept = on_disk(*n, text))
      known[n] = all_.get(n, [&] { return kept; });
    else
      b.add(*n, std::move(text));
  }
  if (made) *made = int64_t(b.nests.size());
  if (b.nests.size() == 1) {
    known[b.of[0]] = get(*b.of[0]);
  } else if (!b.nests.empty()) {
    const std::string text = lower::print_entries(b.nests, plugin_.dialect, b.entries, b.groups);
    const StrataModule module = compiled(text, b.nests.size(), b.what());
    for (size_t k = 0; k < b.of.size(); ++k) {
      StrataKernel kernel = nullptr;
      check(plugin_, plugin_.table->kernel(module, b.entries[k].c_str(), &kernel),
            str_cat("the entry point of ", b.of[k]->key));
      known[b.of[k]] = all_.get(b.of[k], [&] { return kernel; });
    }
    keep(module, text, b.texts, b.entries);
  }
  std::vector<StrataKernel> out;
  for (const KernelNest* n : nests) out.push_back(known.at(n));
  return out;
}

KernelStats Kernels::stats() {
  std::lock_guard<std::mutex> hold(lock_);
  return stats_;
}

}  // namespace strata::device
