// Operators of a device's own library (operator_find and operator_run of the SDK), which run in the place of printed
// kernels where the library takes the case, unless libraries are switched off (vendor/library_host.h): their bits are
// their own.
#pragma once
#include "device/unit.h"
#include "dispatch/ivalue.h"
#include "dispatch/operator.h"

namespace strata::device {

// Whether the library has it, and may be used.
bool has_library(Unit& unit, const Operator& op);
// Whether it takes the case: arguments and results may be shapes alone.
bool library_takes(Unit& unit, const Operator& op, const Stack& args, const Stack& results);
// Runs a case that it takes, on the current queue.
void run_library(Unit& unit, const Operator& op, const Stack& args, const Stack& results);

}  // namespace strata::device
