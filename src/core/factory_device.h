// Where a front end makes tensors unless it is told: any device. Factories themselves know of the CPU and meta alone
// (core/default_device.h); a front end hands them another one as their argument, so that it is also in recordings.
#pragma once
#include "core/device.h"

namespace strata {

Device factory_device();  // this thread's
// Of the CPU and meta the kernels' default, too.
void set_factory_device(Device device);

}  // namespace strata
