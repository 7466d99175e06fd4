// Schedules of the learning rate: each sets the rate of the first step when it is made, and that of the next one by
// step().
#pragma once
#include "strata/optim/optimizer.h"

namespace strata::optim {

class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  void step() { go_to(last_epoch_ + 1); }
  int64_t last_epoch() const { return last_epoch_; }

 protected:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(optimizer), base_(optimizer.lr()) {}
  // Of step number `epoch`, from 0; `base` is the rate that the optimiser had.
  virtual double rate(int64_t epoch, double base) const = 0;
  void go_to(int64_t epoch) {
    optimizer_.set_lr(rate(epoch, base_));
    last_epoch_ = epoch;
  }

 private:
  Optimizer& optimizer_;
  const double base_;
  int64_t last_epoch_ = -1;
};

// Times gamma every step_size steps.
class StepLR final : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 private:
  double rate(int64_t epoch, double base) const override;
  const int64_t step_size_;
  const double gamma_;
};

struct OneCycleOptions {
  double pct_start = 0.3, div_factor = 25, final_div_factor = 1e4;
};

// From max_lr / div_factor up to max_lr, then down to the initial rate / final_div_factor, by cosines (Smith and Topin,
// arXiv:1708.07120). More steps than total_steps raise Value.
class OneCycleLR final : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, double max_lr, int64_t total_steps, OneCycleOptions options = {});

 private:
  double rate(int64_t epoch, double base) const override;
  const double max_lr_;
  const int64_t total_steps_;
  const OneCycleOptions options_;
};

}  // namespace strata::optim
