#include "vendor/fourier_host.h"

#include <dlfcn.h>

#include "base/error.h"
#include "dispatch/seen.h"
#include "vendor/library_host.h"
#include "vendor/plugin.h"

namespace strata::eager {

namespace {

struct Found {
  const StrataFourier* table = nullptr;
  std::string report;
};

Found open_fourier() {
  OpenedPlugin plugin = open_plugin("fftw", "STRATA_FFTW");
  if (!plugin.handle) return {nullptr, plugin.why};
  auto entry = reinterpret_cast<StrataFourierEntry>(dlsym(plugin.handle, STRATA_FOURIER_SYMBOL));
  const StrataFourier* table = entry ? entry() : nullptr;
  if (!table) return {nullptr, "the library does not run on this machine"};
  if (table->major != STRATA_FOURIER_MAJOR || table->size < sizeof(StrataFourier))
    return {nullptr,
            str_cat("the library has interface version ", table->major, "; this core has ", STRATA_FOURIER_MAJOR)};
  return {table, str_cat(table->name, ' ', table->version)};
}

const Found& found() {
  static const Found f = open_fourier();
  return f;
}

}  // namespace

const StrataFourier* fourier() {
  if (!library_enabled()) return nullptr;
  check_seen("a library");
  return found().table;
}

std::string fourier_report() { return found().report; }

FourierPlan::FourierPlan(const StrataFourier& library, StrataFourierKind kind, bool precise, int64_t length,
                         int64_t count, const char* op)
    : library_(library) {
  const StrataFourierLines lines{sizeof lines, precise, kind, length, count};
  const int status = library.prepare(&lines, &plan_);
  if (status == STRATA_LIBRARY_OK) return;
  throw_error(status == STRATA_LIBRARY_MEMORY ? ErrorKind::OutOfMemory : ErrorKind::Runtime,
              str_cat(op, ": ", library.name, " failed: ", library.last_error(),
                      "; strata.backends.library(False) takes generated kernels"));
}

}  // namespace strata::eager
