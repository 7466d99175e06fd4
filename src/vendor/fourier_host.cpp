#include "vendor/fourier_host.h"

#include "base/error.h"
#include "dispatch/seen.h"
#include "vendor/library_host.h"
#include "vendor/plugin.h"

namespace strata::eager {

namespace {

const OpenedTable<StrataFourier>& found() {
  static const auto f = open_table<StrataFourier>("fftw", "STRATA_FFTW", STRATA_FOURIER_SYMBOL, STRATA_FOURIER_MAJOR,
                                                  "the library does not run on this machine");
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
