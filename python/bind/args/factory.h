// The device of a factory that Python calls.
#pragma once
#include "bind/args/args.h"

namespace strata::py {

// What the argument says; without one the thread's, where that is a plugin's (of the others kernels know themselves).
std::optional<Device> to_FactoryDevice(PyObject* o);

}  // namespace strata::py
