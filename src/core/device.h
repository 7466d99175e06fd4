// Device handles: a type interned at run time and an index. The core knows type 0, `cpu`, and type 1, `meta`, on which
// tensors have shapes but no memory.
#pragma once
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace strata {

constexpr int kMaxDeviceTypes = 12;

struct Device {
  int8_t type = 0;
  int8_t index = -1;  // -1: the current one of its type
  bool operator==(const Device&) const = default;
  bool is_cpu() const { return type == 0; }
  bool is_meta() const { return type == 1; }
};

const std::string& device_type_name(int type);
// Adds the name when it is new; raises past kMaxDeviceTypes. What is not `offered` by anyone has a name alone, and
// leaves room for some that are.
int intern_device_type(const std::string& name, bool offered = true);
// Called once for a name that nobody knows: it may add names (plugins that were not loaded yet).
void set_device_finder(void (*find)());
// "cpu", "cpu:0", "name:1". Raises a Runtime error that lists the names that are offered; with `absent` it takes others
// that have been added, too.
Device parse_device(std::string_view text, bool absent = false);
std::string to_string(Device device);
inline std::ostream& operator<<(std::ostream& out, Device d) { return out << to_string(d); }

}  // namespace strata
