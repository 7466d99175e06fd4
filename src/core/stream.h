// Queues of a device's work, by number: 0 is there from the start, others are a program's. Each thread has a current
// one of each device, where its operators run.
#pragma once
#include "core/device.h"

namespace strata {

constexpr int kMaxStreams = 33;  // of a device

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
