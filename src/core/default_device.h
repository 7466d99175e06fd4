// Where this thread's factories make tensors unless they are told: the CPU, or `meta` for shapes without memory.
#pragma once
#include "core/device.h"

namespace strata {

Device default_device();
// NotImplementedError for devices of plugins: their factories need to be told.
void set_default_device(Device device);

}  // namespace strata
