#include "device/kernel_files.h"

#include <atomic>

#include "jit/service/compilers.h"
#include "jit/service/gate.h"
#include "jit/service/hash.h"

namespace strata::device {

namespace {
// Modules are kept under the hash of their text: a kernel's file need not hold the text of the whole module.
std::string name_of(const std::string& module) { return str_cat("module ", module); }
}  // namespace

KernelFiles::KernelFiles(const Plugin& plugin, int device) : disk_(jit::DiskCache::of_environment()) {
  const StrataDevice& t = *plugin.table;
  const char* compiler = t.identity ? t.identity(device) : nullptr;
  if (compiler)
    maker_ = str_cat("device ", t.name, ' ', t.version, ' ', jit::file_identity(plugin.path), '\n', compiler);
}

std::optional<KernelFiles::Place> KernelFiles::find(const std::string& text) const {
  if (!on()) return {};
  const jit::AtWork at_work;
  const std::optional<std::string> said = disk_.load(maker_, text).object;
  const size_t blank = said ? said->find(' ') : std::string::npos;
  if (blank == std::string::npos) return {};
  return Place{said->substr(0, blank), said->substr(blank + 1)};
}

std::optional<std::string> KernelFiles::module(const std::string& module) const {
  const jit::AtWork at_work;
  return disk_.load(maker_, name_of(module)).object;
}

void KernelFiles::remove(const std::string& module) const {
  const jit::AtWork at_work;
  disk_.remove(maker_, name_of(module));
}

void KernelFiles::store(const std::string& module_text, const std::string& bytes, const std::vector<std::string>& texts,
                        const std::vector<std::string>& entries) const {
  static std::atomic<bool> warned{false};
  std::string why;
  {
    const jit::AtWork at_work;
    int64_t evicted = 0;
    const std::string module = jit::hex(jit::hash(module_text));
    why = disk_.store(maker_, name_of(module), bytes, &evicted);
    for (size_t k = 0; k < texts.size() && why.empty(); ++k)
      why = disk_.store(maker_, texts[k], str_cat(module, ' ', entries[k]), &evicted);
  }
  if (!why.empty() && !warned.exchange(true))
    warn(str_cat("kernels of devices: the cache folder ", disk_.folder(), " cannot be written (", why,
                 "): they will be compiled anew in each process. Set STRATA_CACHE_DIR to a folder that can be written, "
                 "or STRATA_CACHE_BYTES=0 to do without"));
}

}  // namespace strata::device
