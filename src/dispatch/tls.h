// What this thread adds to and takes from the keys of a call, and its gradient mode.
#pragma once
#include "core/keys.h"

namespace strata {

struct DispatchTls {
  KeySet include;
  KeySet exclude;  // asked for by guards
  KeySet mask;     // exclude, and Autograd while gradients are off
  bool grad_enabled = true;
  bool inference = false;
};

// constinit: else every use of it goes through a function that asks whether it has been made.
extern constinit thread_local DispatchTls dispatch_tls __attribute__((tls_model("initial-exec")));

inline void refresh_tls_mask() {
  DispatchTls& t = dispatch_tls;
  t.mask = t.grad_enabled ? t.exclude : t.exclude | KeySet(Key::Autograd);
}

// Restores the whole state at the end of its scope.
class TlsGuard {
 public:
  TlsGuard() : saved_(dispatch_tls) {}
  ~TlsGuard() { dispatch_tls = saved_; }
  TlsGuard(const TlsGuard&) = delete;

 private:
  DispatchTls saved_;
};

class ExcludeGuard : TlsGuard {
 public:
  explicit ExcludeGuard(KeySet keys) {
    dispatch_tls.exclude = dispatch_tls.exclude | keys;
    refresh_tls_mask();
  }
};

class IncludeGuard : TlsGuard {
 public:
  explicit IncludeGuard(KeySet keys) { dispatch_tls.include = dispatch_tls.include | keys; }
};

class GradModeGuard : TlsGuard {
 public:
  explicit GradModeGuard(bool enabled) {
    dispatch_tls.grad_enabled = enabled;
    refresh_tls_mask();
  }
};

inline bool grad_enabled() { return dispatch_tls.grad_enabled; }
inline void set_grad_enabled(bool enabled) {
  dispatch_tls.grad_enabled = enabled;
  refresh_tls_mask();
}

}  // namespace strata
