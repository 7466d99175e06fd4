// Autocast: on a thread where it is on, operators that gain from a lower precision get their inputs in it, those that
// need float32 get float32, and those that mix dtypes get the widest. The table says which operator is which, by
// PyTorch's lists: that of the CPU, and that of accelerators, whose library kernels gain and lose elsewhere.
#pragma once
#include <string_view>

#include "dispatch/operator.h"

namespace strata {

enum class Autocast : uint8_t { Untouched, Lower, Float32, Promote };

// Printed by gen/ from `autocast:` in ops/*.yaml; ends with a null name.
struct AutocastPolicy {
  const char* op;  // "aten::mm"
  Autocast cpu, devices;
};
extern const AutocastPolicy autocast_policies[];

struct AutocastState {
  bool enabled = false;
  DType dtype = DType::BF16;
};

// State of this thread for a device type.
AutocastState autocast_state(int device_type);
void set_autocast_state(int device_type, AutocastState state);
bool autocast_cache_enabled();
void set_autocast_cache_enabled(bool enabled);
// Lower-precision copies of leaves that need gradients are kept until the outermost scope ends.
void clear_autocast_cache();

// A scope. Raises for dtypes that are no lower-precision floats when enabling.
void autocast_enter(int device_type, DType dtype, bool enabled, bool cache_enabled);
void autocast_exit();
int autocast_depth();

class AutocastGuard {
 public:
  explicit AutocastGuard(DType dtype = DType::BF16, bool enabled = true, int device_type = 0,
                         bool cache_enabled = true) {
    autocast_enter(device_type, dtype, enabled, cache_enabled);
  }
  ~AutocastGuard() { autocast_exit(); }
  AutocastGuard(const AutocastGuard&) = delete;
};

}  // namespace strata
