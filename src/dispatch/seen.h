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

// What a recording notes of the gradient of operators that are called while one lives.
class GradientNote {
 public:
  enum What : uint8_t {
    Theirs,  // it is the operators' own
    Given,   // somebody gave one (autograd.Function), so that theirs would be another
    Saved,   // they alias what is saved for a backward, which reads it with its history
    Sum,     // they add two gradients of one value, as a backward comes by
    Total,   // the same of a value whose gradient is asked for
    Back     // they are somebody's own backward, or a hook of one
  };
  explicit GradientNote(What what);
  ~GradientNote();
  GradientNote(const GradientNote&) = delete;
  static What here();

 private:
  What before_;
};

}  // namespace strata
