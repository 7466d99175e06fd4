#include "jit/service/debugger.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <mutex>

#include "base/env.h"
#include "base/error.h"

// GDB's interface, by names and layouts that debuggers know. Protected: other libraries (LLVM) bring the same names,
// and a debugger reads each one's list.
extern "C" {

enum StrataJitAction : uint32_t { kJitNone, kJitRegister, kJitUnregister };
struct StrataJitEntry {
  StrataJitEntry *next, *before;
  const char* object;
  uint64_t bytes;
};
struct StrataJitDescriptor {
  uint32_t version;
  uint32_t action;
  StrataJitEntry *entry, *first;
};

__attribute__((visibility("protected"), used)) StrataJitDescriptor __jit_debug_descriptor = {1, kJitNone, nullptr,
                                                                                             nullptr};
// Debuggers stop here.
__attribute__((visibility("protected"), noinline, used)) void __jit_debug_register_code() { __asm__ volatile(""); }
}

namespace strata::jit {

namespace {

std::mutex& list_lock() {
  static auto* lock = new std::mutex;  // kernels may live while the process ends
  return *lock;
}

void tell(StrataJitAction action, StrataJitEntry* entry) {
  __jit_debug_descriptor.action = action;
  __jit_debug_descriptor.entry = entry;
  __jit_debug_register_code();
  __jit_debug_descriptor.action = kJitNone;
  __jit_debug_descriptor.entry = nullptr;
}

}  // namespace

struct DebuggerEntry::Entry : StrataJitEntry {
  std::string text;
};

DebuggerEntry::DebuggerEntry(std::string object) : entry_(new Entry) {
  entry_->text = std::move(object);
  entry_->object = entry_->text.data();
  entry_->bytes = entry_->text.size();
  std::lock_guard<std::mutex> hold(list_lock());
  entry_->before = nullptr;
  entry_->next = __jit_debug_descriptor.first;
  if (entry_->next) entry_->next->before = entry_;
  __jit_debug_descriptor.first = entry_;
  tell(kJitRegister, entry_);
}

DebuggerEntry::~DebuggerEntry() {
  {
    std::lock_guard<std::mutex> hold(list_lock());
    if (entry_->next) entry_->next->before = entry_->before;
    (entry_->before ? entry_->before->next : __jit_debug_descriptor.first) = entry_->next;
    tell(kJitUnregister, entry_);
  }
  delete entry_;
}

bool profiled() {
  static const bool on = [] {
    const std::string wanted = env_text("STRATA_PERF_MAP");
    STRATA_CHECK_VALUE(wanted.empty() || wanted == "0" || wanted == "1", "STRATA_PERF_MAP: expected 0 or 1, got ",
                       wanted);
    return wanted == "1";
  }();
  return on;
}

void tell_profiler(const std::vector<LoadedFunction>& functions, std::string_view title) {
  std::lock_guard<std::mutex> hold(list_lock());
  const std::string path = str_cat("/tmp/perf-", getpid(), ".map");
  std::FILE* file = std::fopen(path.c_str(), "a");
  if (!file) return;
  for (const LoadedFunction& f : functions)
    std::fprintf(file, "%" PRIxPTR " %zx %s%s%.*s\n", reinterpret_cast<uintptr_t>(f.at), f.bytes, f.name.c_str(),
                 title.empty() ? "" : " of ", int(title.size()), title.data());
  std::fclose(file);
}

}  // namespace strata::jit
