// Opens a library of src/vendor/library.h the way the product has to: the OpenMP runtime of the process first and
// globally, so that a library linked with another one is served by it.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "vendor/library.h"

inline const StrataLibrary* open_library(const char* path) {
  const char* runtimes[] = {"libomp.so.5", "libomp.so", "libomp5.so"};
  void* runtime = nullptr;
  for (const char* name : runtimes) {
    if (!runtime) runtime = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  }
  if (!runtime) std::fprintf(stderr, "LLVM's OpenMP runtime was not found: %s\n", dlerror());
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
  auto entry = reinterpret_cast<StrataLibraryEntry>(dlsym(handle, STRATA_LIBRARY_SYMBOL));
  const StrataLibrary* library = entry ? entry() : nullptr;
  if (!library || library->major != STRATA_LIBRARY_MAJOR) {
    std::fprintf(stderr, "%s: no table of version %d\n", path, STRATA_LIBRARY_MAJOR);
    std::exit(2);
  }
  std::printf("%s %s, %s, OpenMP from %s\n", library->name, library->version, library->instruction,
              library->openmp_runtime());
  return library;
}
