#include "core/device.h"

#include <atomic>
#include <charconv>
#include <mutex>

#include "base/error.h"
#include "core/default_device.h"
#include "core/factory_device.h"

namespace strata {

namespace {
struct Names {
  std::mutex lock;
  std::string names[kMaxDeviceTypes] = {"cpu", "meta"};
  bool offered[kMaxDeviceTypes] = {true, true};
  int count = 2;

  bool has(std::string_view name, bool absent) const {
    for (int i = 0; i < count; ++i)
      if (names[i] == name) return offered[i] || absent;
    return false;
  }
};
Names& names() {
  static Names* n = new Names;  // lives as long as the process: tensors may die late
  return *n;
}
}  // namespace

const std::string& device_type_name(int type) { return names().names[type]; }

int intern_device_type(const std::string& name, bool offered) {
  constexpr int kKept = 2;  // places for plugins
  Names& n = names();
  std::lock_guard<std::mutex> hold(n.lock);
  for (int i = 0; i < n.count; ++i)
    if (n.names[i] == name) {
      n.offered[i] |= offered;
      return i;
    }
  STRATA_CHECK(n.count < kMaxDeviceTypes - (offered ? 0 : kKept), "device: expected at most ", kMaxDeviceTypes,
               " device types in a process, got ", name, " as one more");
  n.offered[n.count] = offered;
  n.names[n.count] = name;
  return n.count++;
}

namespace {
std::atomic<void (*)()> device_finder{nullptr};
}

void set_device_finder(void (*find)()) { device_finder = find; }

Device parse_device(std::string_view text, bool absent) {
  size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  Names& n = names();
  std::unique_lock<std::mutex> hold(n.lock);
  std::string known;
  if (void (*find)() = device_finder; find && !n.has(name, absent)) {
    hold.unlock();
    find();
    hold.lock();
  }
  for (int i = 0; i < n.count; ++i) {
    if (!n.offered[i] && !absent) continue;
    known += (i ? ", " : "") + n.names[i];
    if (n.names[i] != name) continue;
    Device d{int8_t(i), -1};
    if (colon != std::string_view::npos) {
      std::string_view digits = text.substr(colon + 1);
      int index = -1;
      auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
      STRATA_CHECK(error == std::errc() && end == digits.data() + digits.size() && index >= 0 && index < 127,
                   "device: Invalid device string: '", text, "'; expected a number of 0 or more after the colon");
      d.index = int8_t(index);
    }
    return d;
  }
  throw_error(ErrorKind::Runtime,
              str_cat("device: expected one of ", known, " device type at start of device string, got '", text,
                      "'; load the plugin that offers it first"));
}

namespace {
thread_local Device default_device_, factory_device_;
}

Device default_device() { return default_device_; }

void set_default_device(Device device) {
  STRATA_CHECK_NOT_IMPLEMENTED(device.is_cpu() || device.is_meta(),
                               "set_default_device: factories make tensors on the ", "CPU or on meta; pass device='",
                               device, "' to each of them");
  default_device_ = device;
}

Device factory_device() { return factory_device_; }

void set_factory_device(Device device) {
  set_default_device(device.is_meta() ? device : Device{});
  factory_device_ = device;
}

std::string to_string(Device d) {
  std::string s = device_type_name(d.type);
  if (d.index >= 0) s += ":" + std::to_string(d.index);
  return s;
}

}  // namespace strata
