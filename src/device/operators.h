// Operators on the devices of plugins. An operator runs over the shapes of its arguments, and what it would launch runs
// on the device (device/launch.h); where its launches are not the whole of it, it runs on the CPU and its results go
// back (device/fallback.h).
#pragma once
#include "device/plugin.h"

namespace strata::device {

void register_operators(const Plugin& plugin);

}  // namespace strata::device
