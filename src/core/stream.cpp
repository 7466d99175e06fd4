#include "core/stream.h"

#include <atomic>
#include <memory>
#include <vector>

#include "base/error.h"

namespace strata {

namespace {
// Those that are not 0: few, on few threads.
struct Current {
  Device device;
  int stream;
};
thread_local std::unique_ptr<std::vector<Current>> current;  // a pointer: room for thread-local data is short
thread_local int8_t current_devices[kMaxDeviceTypes];
std::atomic<void (*)(Device, int, int)> wait_of_devices{nullptr};
}  // namespace

int current_device(int type) { return current_devices[type]; }
void set_current_device(Device device) { current_devices[device.type] = device.index; }

int current_stream(Device device) {
  STRATA_INTERNAL(device.index >= 0, "a device without a number: ", device);
  if (STRATA_LIKELY(!current)) return 0;
  for (const Current& c : *current)
    if (c.device == device) return c.stream;
  return 0;
}

void set_current_stream(Device device, int stream) {
  STRATA_INTERNAL(device.index >= 0 && stream >= 0 && stream < kMaxStreams, "stream ", stream, " of ", device);
  if (!current) {
    if (stream == 0) return;
    current = std::make_unique<std::vector<Current>>();
  }
  std::erase_if(*current, [&](const Current& c) { return c.device == device; });
  if (stream) current->push_back({device, stream});
}

void wait_stream(Device device, int waiting, int waited) {
  if (auto* wait = wait_of_devices.load()) wait(device, waiting, waited);
}

void set_stream_wait(void (*wait)(Device device, int waiting, int waited)) { wait_of_devices = wait; }

}  // namespace strata
