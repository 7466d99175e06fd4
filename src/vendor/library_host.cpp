#include <dlfcn.h>

#include <atomic>
#include <mutex>

#include "base/error.h"
#include "core/parallel.h"
#include "dispatch/seen.h"
#include "vendor/library_host.h"
#include "vendor/plugin.h"

namespace strata::eager {

namespace {

std::atomic<bool> enabled{true};
std::atomic<int> told_threads{-1};

// The file of the OpenMP runtime that serves this library, brought into the global scope: a library that was linked
// with another runtime then binds to this one.
std::string publish_runtime() {
  void* symbol = dlsym(RTLD_DEFAULT, "__kmpc_fork_call");
  Dl_info info;
  const char* file = symbol && dladdr(symbol, &info) ? info.dli_fname : "libomp.so.5";
  return dlopen(file, RTLD_NOW | RTLD_GLOBAL) ? file : "";
}

OpenedTable<StrataLibrary> open_library() {
  std::string runtime = publish_runtime();
  if (runtime.empty()) return {nullptr, str_cat("the OpenMP runtime could not be made global: ", dlerror())};
  auto f = open_table<StrataLibrary>("onednn", "STRATA_LIBRARY", STRATA_LIBRARY_SYMBOL, STRATA_LIBRARY_MAJOR,
                                     "the library does not run on this machine");
  if (!f.table) return f;
  const char* other = f.table->openmp_runtime();
  if (other != runtime)
    return {nullptr, str_cat("the library runs on the OpenMP runtime ", other, ", the core on ", runtime,
                             "; two of them in one process hang after a fork")};
  f.report += str_cat(" (", f.table->instruction, ')');
  return f;
}

const OpenedTable<StrataLibrary>& found() {
  static const auto f = open_library();
  return f;
}

}  // namespace

const StrataLibrary* library() {
  if (!enabled.load(std::memory_order_relaxed)) return nullptr;
  check_seen("a library");
  const StrataLibrary* table = found().table;
  int threads = num_threads();
  if (table && told_threads.load(std::memory_order_relaxed) != threads) {
    table->set_threads(threads);
    told_threads.store(threads, std::memory_order_relaxed);
  }
  return table;
}

void prepare_library() {
  if (const StrataLibrary* table = library()) table->prepare();
}

bool set_library_enabled(bool on) { return enabled.exchange(on); }
bool library_enabled() { return enabled.load(); }
std::string library_report() { return found().report; }

bool library_done(int status, const StrataLibrary& library, const char* op) {
  if (status == STRATA_LIBRARY_OK) return true;
  if (status == STRATA_LIBRARY_UNSUPPORTED) return false;
  if (status == STRATA_LIBRARY_MEMORY)
    throw_error(ErrorKind::OutOfMemory, str_cat(op, ": ", library.name, " ran out of memory: ", library.last_error()));
  throw_error(ErrorKind::Runtime, str_cat(op, ": ", library.name, " failed: ", library.last_error(),
                                          "; strata.backends.library(False) takes the generated kernels"));
}

}  // namespace strata::eager
