// The fallback ledger: what ran on the CPU because a device lacks it, and what that cost. Process-wide.
#pragma once
#include <string>
#include <vector>

#include "device/twins.h"
#include "device/unit.h"
#include "dispatch/operator.h"

namespace strata::device {

struct FallbackRow {
  std::string op, device;
  int64_t calls = 0, bytes = 0;  // bytes that went either way
  double us = 0;                 // from the call to its results on the device
};
std::vector<FallbackRow> fallback_rows();  // the dearest first
void reset_fallbacks();
// Off: an operator that a device lacks raises NotImplementedError. On at first, unless STRATA_FALLBACK is 0.
void set_fallback(bool on);
bool fallback_on();
// Also what a device has and fails at: each operator is then waited for, and run on the CPU where it failed. Off at
// first.
void set_rescue(bool on);
bool rescues();
// At most so many microseconds from now on, then RuntimeError; less than 0: no limit.
void set_fallback_budget(double us);

// Runs the operator on copies on the CPU; the stack holds its arguments, then its results. Warns at the first call of
// each operator on each device. `refused`: over shapes it raised, as it does for arguments that are wrong.
void run_on_host(Unit& unit, Operator& op, Stack& stack, bool refused = false);
// The same on copies that were made before: `twins` made `copies` of the stack's arguments.
void run_on_host(Unit& unit, Operator& op, Stack& stack, Twins& twins, Stack copies);

}  // namespace strata::device
