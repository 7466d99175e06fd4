// What computes while operators are recorded (Key::Tracer): nothing but what a recorded operator asked for. Launches,
// copies and fills ask here, and what gives values of tensors to the host.
#pragma once
#include "base/error.h"
#include "dispatch/tls.h"

namespace strata {

// Whether operators are recorded on this thread and no recorded one is at work.
bool recording_here();
// An internal error there: `what` would be missing from the recording.
[[gnu::cold]] void refuse_unseen(const char* what);
inline void check_seen(const char* what) {
  if (STRATA_UNLIKELY(dispatch_tls.include.has(Key::Tracer))) refuse_unseen(what);
}
// A Runtime error there: a recording is replayed with other values than those that `what` would give to the host.
[[gnu::cold]] void refuse_reading(const char* what);
inline void check_reading(const char* what) {
  if (STRATA_UNLIKELY(dispatch_tls.include.has(Key::Tracer))) refuse_reading(what);
}

}  // namespace strata
