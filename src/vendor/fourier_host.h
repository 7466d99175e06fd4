// The core's side of fourier.h: opens the library of Fourier transforms at first use.
#pragma once
#include <string>

#include "vendor/fourier.h"

namespace strata::eager {

// Null where there is none, and under strata.backends.library(False).
const StrataFourier* fourier();
// "FFTW 3.3.10", or why there is none.
std::string fourier_report();

// A plan for as long as it is at hand.
class FourierPlan {
 public:
  FourierPlan(const StrataFourier& library, StrataFourierKind kind, bool precise, int64_t length, int64_t count,
              const char* op);
  ~FourierPlan() { library_.release(plan_); }
  FourierPlan(const FourierPlan&) = delete;
  FourierPlan& operator=(const FourierPlan&) = delete;

  void run(void* in, void* out) const { library_.run(plan_, in, out); }

 private:
  const StrataFourier& library_;
  const StrataFourierPlan* plan_ = nullptr;
};

}  // namespace strata::eager
