// What debuggers and profilers of this process are told of compiled kernels.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace strata::jit {

struct LoadedFunction {
  std::string name;
  const char* at;
  size_t bytes;
};

// An ELF object whose sections say where they lie, in the list that GDB and LLDB read (GDB's JIT interface), while this
// lives. A debugger that is attached stops at the registration and reads the object then.
class DebuggerEntry {
 public:
  explicit DebuggerEntry(std::string object);
  ~DebuggerEntry();
  DebuggerEntry(const DebuggerEntry&) = delete;
  DebuggerEntry& operator=(const DebuggerEntry&) = delete;

 private:
  struct Entry;
  Entry* entry_;
};

// Whether STRATA_PERF_MAP is 1: then /tmp/perf-PID.map, where perf finds names of compiled code, gets each function.
bool profiled();
void tell_profiler(const std::vector<LoadedFunction>& functions, std::string_view title);

}  // namespace strata::jit
