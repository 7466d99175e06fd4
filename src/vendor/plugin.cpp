#include "vendor/plugin.h"

#include <dlfcn.h>
#include <unistd.h>

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

// Where the plugin may be, the first one first; empty names among them.
struct Places {
  std::string file[3];
  bool off = false;
};
Places places(const std::string& name, const char* variable) {
  std::string wanted = env_text(variable), folder = own_folder(), file = str_cat("libstrata_", name, ".so");
  return {{wanted, str_cat(folder, '/', file), str_cat(folder, "/plugins/", name, '/', file)}, wanted == "off"};
}

}  // namespace

void* OpenedPlugin::symbol(const char* name) const { return dlsym(handle, name); }

OpenedPlugin open_plugin(const std::string& name, const char* variable) {
  const Places all = places(name, variable);
  if (all.off) return {nullptr, str_cat("switched off by ", variable)};
  std::string why;
  for (const std::string& place : all.file) {
    if (place.empty()) continue;
    if (void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return {handle, ""};
    why += str_cat(why.empty() ? "" : "; ", dlerror());
  }
  return {nullptr, why};
}

std::string plugin_file(const std::string& name, const char* variable) {
  const Places all = places(name, variable);
  if (!all.off)
    for (const std::string& place : all.file)
      if (!place.empty() && access(place.c_str(), R_OK) == 0) return place;
  return "";
}

}  // namespace strata::eager
