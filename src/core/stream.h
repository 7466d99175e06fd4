// What is current in a thread: a device of each type, and a queue of each device, where its operators run. Queues of a
// device's work have numbers: 0 is there from the start, others are a program's.
#pragma once
#include "core/device.h"

namespace strata {

constexpr int kMaxStreams = 33;  // of a device

// The number of this thread's current device of a type; 0 at first. `device` of the other one has a number that there
// is.
int current_device(int type);
void set_current_device(Device device);
// With a number, where devices of its type have some.
inline Device numbered(Device d) {
  if (d.type > 1 && d.index < 0) d.index = int8_t(current_device(d.type));
  return d;
}

// Whether a tensor that lies `there` is where `asked` says.
inline bool is_at(Device there, Device asked) { return there == numbered(asked) || (there.is_cpu() && asked.is_cpu()); }

// `device` has a number.
int current_stream(Device device);
void set_current_stream(Device device, int stream);

class StreamGuard {
 public:
  StreamGuard(Device device, int stream) : device_(device), before_(current_stream(device)) {
    set_current_stream(device, stream);
  }
  ~StreamGuard() { set_current_stream(device_, before_); }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  const Device device_;
  const int before_;
};

// What queue `waiting` is given from now on runs after all that `waited` has been given. The layer that has devices
// says how.
void wait_stream(Device device, int waiting, int waited);
void set_stream_wait(void (*wait)(Device device, int waiting, int waited));

}  // namespace strata
