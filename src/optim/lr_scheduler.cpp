#include "strata/optim/lr_scheduler.h"

#include <cmath>

namespace strata::optim {

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  STRATA_CHECK_VALUE(step_size > 0, "StepLR: expected a positive step_size, got ", step_size);
  go_to(0);
}

double StepLR::rate(int64_t epoch, double base) const {
  double rate = base;  // by factors, as Python's chained form has it
  for (int64_t k = step_size_; k <= epoch; k += step_size_) rate *= gamma_;
  return rate;
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, double max_lr, int64_t total_steps, OneCycleOptions options)
    : LRScheduler(optimizer), max_lr_(max_lr), total_steps_(total_steps), options_(options) {
  STRATA_CHECK_VALUE(total_steps > 0, "OneCycleLR: expected a positive number of steps, got ", total_steps);
  STRATA_CHECK_VALUE(options.pct_start >= 0 && options.pct_start <= 1,
                     "OneCycleLR: expected pct_start from 0 to 1, got ", options.pct_start);
  go_to(0);
}

double OneCycleLR::rate(int64_t epoch, double) const {
  STRATA_CHECK_VALUE(epoch <= total_steps_, "OneCycleLR: step ", epoch, " of ", total_steps_,
                     "; make the schedule for all steps");
  const double initial = max_lr_ / options_.div_factor, least = initial / options_.final_div_factor;
  const double top = options_.pct_start * double(total_steps_) - 1, last = double(total_steps_ - 1), at = double(epoch);
  auto between = [](double start, double end, double share) {
    return end + (start - end) / 2.0 * (1 + std::cos(M_PI * share));
  };
  if (at <= top) return between(initial, max_lr_, at / top);
  return between(max_lr_, least, (at - top) / (last - top));
}

}  // namespace strata::optim
