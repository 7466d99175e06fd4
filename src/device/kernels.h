// The kernels of one device: printed in its dialect and compiled when they are first asked for. From any thread; two
// that ask for the same one compile it once, and nobody waits for another one's compiler.
#pragma once
#include "device/nests.h"
#include "device/once.h"
#include "device/plugin.h"

namespace strata::device {

class Kernels {
 public:
  Kernels(const Plugin& plugin, int device) : plugin_(plugin), device_(device) {}
  StrataKernel get(const KernelNest& nest);

 private:
  StrataKernel made(const KernelNest& nest) const;

  const Plugin& plugin_;
  const int device_;
  OnceMap<const KernelNest*, StrataKernel> all_;
};

}  // namespace strata::device
