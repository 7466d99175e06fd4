// A device's compiled modules on disk, among the CPU's kernels (jit/service/disk_cache.h), under the plugin, its file
// and what it says its compiler is. A module holds one kernel or many; each kernel's file, found by its text, says
// which module has it under which entry point.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "device/plugin.h"
#include "jit/service/disk_cache.h"

namespace strata::device {

class KernelFiles {
 public:
  KernelFiles(const Plugin& plugin, int device);
  // Whether anything is kept: the plugin says what its compiler is, and there is a folder.
  bool on() const { return !maker_.empty() && disk_.on(); }

  struct Place {
    std::string module, entry;
  };
  // Where the kernel of that text is.
  std::optional<Place> find(const std::string& text) const;
  // The module's bytes.
  std::optional<std::string> module(const std::string& module) const;
  void remove(const std::string& module) const;
  // `texts`, `entries`: of each kernel of the module, alone.
  void store(const std::string& module_text, const std::string& bytes, const std::vector<std::string>& texts,
             const std::vector<std::string>& entries) const;

 private:
  std::string maker_;
  const jit::DiskCache disk_;
};

}  // namespace strata::device
