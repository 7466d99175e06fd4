// Anomaly mode's view of the forward pass: which operator first made a NaN.
#pragma once
#include "bind/process/lock.h"
#include "dispatch/operator.h"

namespace strata::py {

// Whether this thread watches; Key::Python is included while it does.
bool watches_nan();
// Runs the rest of a call and notes it when a result has NaN that no argument had.
void run_watched(Operator& op, Dispatch d, Stack& stack);
// Where the NaN of `t` came from, as text for an error.
std::string nan_origin(const Tensor& t);
// Nothing is watched in its scope.
class NoWatch {
 public:
  NoWatch();
  ~NoWatch();

 private:
  bool before_;
};

// Key::Python is included while a mode or the watch asks for it.
void refresh_python_key();
int dispatch_mode_depth();

void init_anomaly(PyObject* module);

}  // namespace strata::py
