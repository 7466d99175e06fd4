// Plugins of devices: shared objects behind include/strata/sdk/device.h.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "core/device.h"
#include "lower/print/dialect.h"
#include "strata/sdk/device.h"

namespace strata::device {

struct Plugin {
  const StrataDevice* given;  // the plugin's own table
  const StrataDevice* table;  // the same as this version knows it: fields that the plugin's lacks are null
  std::string path;
  int type;  // of its devices (core/device.h)
  lower::Dialect dialect;
};

// Opens the file and makes its device known under its name. A file that is open already is the same plugin. Raises
// Runtime for what is no plugin, for another version, and for a name that is taken.
const Plugin& load(const std::string& path);
// Loads those that STRATA_PLUGINS names (files, with colons between) and those that `source` gives, each once: what is
// done for a device that nobody knows. A plugin that can't be loaded is a warning.
void load_known();
void set_plugin_source(std::vector<std::string> (*source)());
// Called after a plugin was loaded for the first time, on the thread that did it: a front end knows the name then.
void set_plugin_watcher(void (*watch)(const Plugin& plugin));
const Plugin* plugin_of(int device_type);  // null where no plugin has the type
std::vector<const Plugin*> plugins();
// Raises for any status but OK: what was tried, and the plugin's words.
void check(const Plugin& plugin, StrataStatus status, const std::string& what);

}  // namespace strata::device
