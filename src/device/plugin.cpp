#include "device/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>

#include "base/env.h"
#include "device/operators.h"
#include "jit/service/compile.h"
#include "run/isa.h"

namespace strata::device {

namespace {

// ---- what a plugin may call

void say(char* error, uint64_t room, const char* text) {
  if (room == 0) return;
  const size_t n = std::min<size_t>(std::strlen(text), room - 1);
  std::memcpy(error, text, n);
  error[n] = 0;
}

StrataStatus compile_on_host(const char* text, void** program, char* error, uint64_t room) {
  try {
    *program = new jit::ProgramRef(jit::compile({text, lower::Isa(eager::current_isa())}));
    return STRATA_OK;
  } catch (const Error& e) {
    say(error, room, e.what());
    return e.kind() == ErrorKind::NotImplemented ? STRATA_UNSUPPORTED : STRATA_INVALID;
  } catch (const std::exception& e) {
    say(error, room, e.what());
    return STRATA_FAILED;
  }
}

void* symbol_on_host(void* program, const char* name) {
  try {
    return (*static_cast<jit::ProgramRef*>(program))->symbol(name);
  } catch (const std::exception&) {
    return nullptr;
  }
}

void release_on_host(void* program) { delete static_cast<jit::ProgramRef*>(program); }

const StrataHost host = {sizeof(StrataHost), STRATA_SDK_MAJOR, STRATA_SDK_MINOR,
                         compile_on_host,    symbol_on_host,   release_on_host};

// ---- plugins

struct Known {
  std::recursive_mutex lock;
  std::vector<std::unique_ptr<const Plugin>> all;  // for ever: their tensors may die late
};
Known& known() {
  static Known* k = new Known;
  return *k;
}

lower::Dialect dialect_of(const StrataDialect& d) {
  lower::Dialect made;
  made.name = d.name;
  made.head = d.head;
  made.function = d.function;
  made.memory = d.memory;
  made.helper = d.helper;
  std::memcpy(made.real, d.real, sizeof made.real);
  std::memcpy(made.infinity, d.infinity, sizeof made.infinity);
  std::memcpy(made.nan, d.nan, sizeof made.nan);
  made.entry = d.entry;
  made.slots = d.slots;
  made.first_item = d.first_item;
  made.item_step = d.item_step;
  made.or_status = d.or_status;
  made.each_lane = d.unroll;
  made.each_item = d.unroll_items;
  made.apart = d.apart;
  made.group = int(d.group);
  if (!d.group) return made;
  made.group_entry = d.group_entry;
  made.local = d.local;
  made.barrier = d.barrier;
  made.group_memory = d.group_memory;
  made.first_group = d.first_group;
  made.group_step = d.group_step;
  made.lane = d.lane;
  return made;
}

const StrataDevice* table_of(void* handle, const std::string& path) {
  auto* entry = reinterpret_cast<StrataDeviceEntry>(dlsym(handle, STRATA_DEVICE_SYMBOL));
  STRATA_CHECK(entry, "load_device: ", path, ": expected a plugin with the symbol ", STRATA_DEVICE_SYMBOL,
               ", got a library without it; it was built for another version of the SDK, or is no device");
  char error[1024] = "it gave no reason";
  const StrataDevice* table = entry(&host, error, sizeof error);
  STRATA_CHECK(table, "load_device: ", path, ": the device can't be used: ", error);
  STRATA_CHECK(table->size >= offsetof(StrataDevice, name) && table->major == STRATA_SDK_MAJOR &&
                   table->minor == STRATA_SDK_MINOR && table->size >= offsetof(StrataDevice, identity),
               "load_device: ", path, ": expected a plugin for version ", STRATA_SDK_MAJOR, ".", STRATA_SDK_MINOR,
               " of the SDK, got one for ", table->major, ".", table->minor, " with a table of ", table->size,
               " bytes; build it anew against this version's headers");
  const std::string name = table->name ? table->name : "";
  STRATA_CHECK(
      !name.empty() && std::all_of(name.begin(), name.end(),
                                   [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; }),
      "load_device: ", path, ": expected a name of lower case letters, got '", name, "'");
  STRATA_CHECK(table->dialect && table->dialect->size >= sizeof(StrataDialect), "load_device: ", path,
               ": expected a dialect of ", sizeof(StrataDialect), " bytes");
  const uint32_t group = table->dialect->group;
  STRATA_CHECK(group == 0 || (group >= 16 && group <= 1024 && (group & (group - 1)) == 0), "load_device: ", path,
               ": expected groups of a power of two from 16 to 1024 items, or 0, got ", group);
  return table;
}

std::atomic<void (*)(const Plugin&)> plugin_watcher{nullptr};

// Lives for ever, as the plugin does.
const StrataDevice* as_known(const StrataDevice& given) {
  auto* known = new StrataDevice{};
  std::memcpy(known, &given, std::min<size_t>(given.size, sizeof *known));
  return known;
}

// Whether it is new, beside it.
std::pair<const Plugin*, bool> load_once(const std::string& path) {
  Known& k = known();
  std::lock_guard<std::recursive_mutex> hold(k.lock);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  STRATA_CHECK(handle, "load_device: expected a shared object, got ", dlerror());
  const StrataDevice* table = table_of(handle, path);
  for (const auto& p : k.all) {
    if (p->given == table) return {p.get(), false};
    STRATA_CHECK(std::strcmp(p->table->name, table->name) != 0, "load_device: ", path, ": the device '", table->name,
                 "' is there already, from ", p->path, "; two plugins can't share a name");
  }
  for (const char* own : {"cpu", "meta"})
    STRATA_CHECK(std::strcmp(table->name, own) != 0, "load_device: ", path, ": '", own, "' is the core's own");
  k.all.push_back(std::make_unique<const Plugin>(
      Plugin{table, as_known(*table), path, intern_device_type(table->name), dialect_of(*table->dialect)}));
  register_operators(*k.all.back());
  return {k.all.back().get(), true};
}

}  // namespace

const Plugin& load(const std::string& path) {
  const auto [plugin, fresh] = load_once(path);
  // Without the lock: a front end may wait for one of its own.
  if (auto* watch = plugin_watcher.load(); watch && fresh) watch(*plugin);
  return *plugin;
}

void set_plugin_watcher(void (*watch)(const Plugin& plugin)) { plugin_watcher = watch; }

namespace {
std::atomic<std::vector<std::string> (*)()> plugin_source{nullptr};
[[maybe_unused]] const bool finds = (set_device_finder(load_known), true);
}  // namespace

void set_plugin_source(std::vector<std::string> (*source)()) { plugin_source = source; }

void load_known() {
  static std::mutex* lock = new std::mutex;
  static auto* tried = new std::set<std::string>;
  std::vector<std::string> files;
  std::stringstream named(env_text("STRATA_PLUGINS"));
  for (std::string file; std::getline(named, file, ':');) files.push_back(file);
  if (auto* source = plugin_source.load())
    for (std::string& file : source()) files.push_back(std::move(file));
  for (const std::string& file : files) {
    {
      std::lock_guard<std::mutex> hold(*lock);
      if (file.empty() || tried->count(file)) continue;
    }
    std::string failure;
    try {
      load(file);
    } catch (const Error& e) {
      failure = e.message();
    }
    // Only now: another thread that names the device meanwhile must not go on without it.
    std::unique_lock<std::mutex> hold(*lock);
    const bool first = tried->insert(file).second;
    hold.unlock();
    if (first && !failure.empty()) warn(failure);
  }
}

const Plugin* plugin_of(int device_type) {
  Known& k = known();
  std::lock_guard<std::recursive_mutex> hold(k.lock);
  for (const auto& p : k.all)
    if (p->type == device_type) return p.get();
  return nullptr;
}

std::vector<const Plugin*> plugins() {
  Known& k = known();
  std::lock_guard<std::recursive_mutex> hold(k.lock);
  std::vector<const Plugin*> all;
  for (const auto& p : k.all) all.push_back(p.get());
  return all;
}

void check(const Plugin& plugin, StrataStatus status, const std::string& what) {
  if (STRATA_LIKELY(status == STRATA_OK)) return;
  const char* why = plugin.table->last_error();
  const std::string text = str_cat(plugin.table->name, ": ", what, ": ", why && *why ? why : "no reason given");
  if (status == STRATA_OUT_OF_MEMORY) throw_error(ErrorKind::OutOfMemory, text);
  if (status == STRATA_UNSUPPORTED) throw_error(ErrorKind::NotImplemented, text);
  throw_error(ErrorKind::Runtime, text);
}

}  // namespace strata::device
