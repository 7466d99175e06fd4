// Opens the shared libraries that some operators need and the core does not: the plugins.
#pragma once
#include <cstdint>
#include <string>

#include "base/error.h"

namespace strata::eager {

struct OpenedPlugin {
  void* symbol(const char* name) const;  // null where it has none of that name

  void* handle = nullptr;
  std::string why;  // there is none
};

// Opens libstrata_<name>.so: the file that environment variable `variable` names, or else the one beside this library,
// or that of the build. The variable's value "off" means none. Plugins stay open until the process ends.
OpenedPlugin open_plugin(const std::string& name, const char* variable);

// The table of C functions that a plugin's one symbol gives.
template <class Table>
struct OpenedTable {
  const Table* table = nullptr;
  std::string report;  // the library's name and version, or why there is none
};
// `refused`: what it means where the symbol gives none.
template <class Table>
OpenedTable<Table> open_table(const std::string& name, const char* variable, const char* symbol, uint32_t major,
                              const char* refused) {
  const OpenedPlugin plugin = open_plugin(name, variable);
  if (!plugin.handle) return {nullptr, plugin.why};
  const auto entry = reinterpret_cast<const Table* (*)()>(plugin.symbol(symbol));
  const Table* table = entry ? entry() : nullptr;
  if (!table) return {nullptr, refused};
  if (table->major != major || table->size < sizeof(Table))
    return {nullptr, str_cat("the library has interface version ", table->major, "; this core has ", major)};
  return {table, str_cat(table->name, ' ', table->version)};
}

// The file that it would open first, without opening it; empty where there is none.
std::string plugin_file(const std::string& name, const char* variable);

}  // namespace strata::eager
