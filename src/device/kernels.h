// The kernels of one device: printed in its dialect and compiled when they are first asked for, unless the disk has
// them. From any thread; two that ask for the same one compile it once, and nobody waits for another one's compiler.
#pragma once
#include <mutex>

#include "device/kernel_files.h"
#include "device/nests.h"
#include "device/once.h"

namespace strata::device {

struct KernelStats {
  int64_t compiled = 0;  // kernels whose text was compiled
  int64_t loaded = 0;    // kernels that were on disk
  int64_t modules = 0;   // texts that were compiled: of one kernel or many
  int64_t refused = 0;   // modules on disk that the device did not take, removed
  double compile_ms = 0, load_ms = 0;
};

class Kernels {
 public:
  Kernels(const Plugin& plugin, int device) : plugin_(plugin), device_(device), files_(plugin, device) {}
  StrataKernel get(const KernelNest& nest);
  // All at once: those that are new here and not on disk are compiled as one module. `compiled`: how many these were.
  std::vector<StrataKernel> get(const std::vector<const KernelNest*>& nests, int64_t* compiled = nullptr);
  // Compiles those that are not on disk as one module, and keeps it there. Gives how many they were.
  int64_t warm(const std::vector<const KernelNest*>& nests);
  bool keeps() const { return files_.on(); }
  KernelStats stats();

 private:
  StrataKernel made(const KernelNest& nest);
  struct Batch;
  StrataKernel on_disk(const KernelNest& nest, const std::string& text);
  StrataModule compiled(const std::string& text, size_t kernels, const std::string& what);
  void keep(StrataModule module, const std::string& module_text, const std::vector<std::string>& texts,
            const std::vector<std::string>& entries);
  bool binaries() const { return plugin_.table->module_binary && plugin_.table->load; }

  const Plugin& plugin_;
  const int device_;
  const KernelFiles files_;
  OnceMap<const KernelNest*, StrataKernel> all_;
  OnceMap<std::string, StrataModule> modules_;  // from disk; null: it can't be used
  std::mutex lock_;
  KernelStats stats_;
};

}  // namespace strata::device
