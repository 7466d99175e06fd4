#include "vendor/plugin.h"

#include <dlfcn.h>

#include "base/env.h"
#include "base/error.h"

namespace strata::eager {

namespace {

std::string own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&open_plugin), &info) || !info.dli_fname) return "";
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash);
}

}  // namespace

OpenedPlugin open_plugin(const std::string& name, const char* variable) {
  std::string wanted = env_text(variable);
  if (wanted == "off") return {nullptr, str_cat("switched off by ", variable)};
  std::string folder = own_folder(), file = str_cat("libstrata_", name, ".so");
  const std::string places[] = {wanted, str_cat(folder, '/', file), str_cat(folder, "/plugins/", name, '/', file)};
  std::string why;
  for (const std::string& place : places) {
    if (place.empty()) continue;
    if (void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return {handle, ""};
    why += str_cat(why.empty() ? "" : "; ", dlerror());
  }
  return {nullptr, why};
}

}  // namespace strata::eager
