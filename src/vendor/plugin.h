// Opens the shared libraries that some operators need and the core does not: the plugins.
#pragma once
#include <string>

namespace strata::eager {

struct OpenedPlugin {
  void* handle = nullptr;  // for dlsym
  std::string why;         // there is none
};

// Opens libstrata_<name>.so: the file that environment variable `variable` names, or else the one beside this library,
// or that of the build. The variable's value "off" means none. Plugins stay open until the process ends.
OpenedPlugin open_plugin(const std::string& name, const char* variable);
// The file that it would open first, without opening it; empty where there is none.
std::string plugin_file(const std::string& name, const char* variable);

}  // namespace strata::eager
