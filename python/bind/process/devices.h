// Devices of plugins in Python.
#pragma once
#include <Python.h>

#include "device/unit.h"

namespace strata::py {

// Raises ValueError for a device of no plugin.
device::Unit& unit_of(PyObject* device);
void init_streams(PyObject* module);

}  // namespace strata::py
