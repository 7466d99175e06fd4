#include "strata/optim/lr_scheduler.h"

#include <algorithm>
#include <cmath>

namespace strata::optim {

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  for (size_t g = 0; g < optimizer.num_groups(); ++g) base_.push_back(optimizer.initial_lr(g));
}

void LRScheduler::begin() {
  initial_ = true;
  move_to(last_epoch_ + 1, false);
  initial_ = false;
}

void LRScheduler::move_to(int64_t epoch, bool closed) {
  last_epoch_ = epoch;
  std::vector<double> rates;
  for (size_t g = 0; g < base_.size(); ++g) {
    const double present = optimizer_.lr(g);
    rates.push_back(closed ? closed_rate(present, base_[g], g) : rate(present, base_[g], g));
  }
  for (size_t g = 0; g < base_.size(); ++g) optimizer_.set_lr(g, rates[g]);
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  STRATA_CHECK_VALUE(step_size > 0, "StepLR: expected a positive step_size, got ", step_size);
  begin();
}
double StepLR::rate(double present, double, size_t) {
  return last_epoch_ == 0 || last_epoch_ % step_size_ != 0 ? present : present * gamma_;
}
double StepLR::closed_rate(double, double base, size_t) {
  return base * std::pow(gamma_, double(last_epoch_ / step_size_));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  begin();
}
double MultiStepLR::rate(double present, double, size_t) {
  const auto count = std::count(milestones_.begin(), milestones_.end(), last_epoch_);
  return count == 0 ? present : present * std::pow(gamma_, double(count));
}
double MultiStepLR::closed_rate(double, double base, size_t) {
  const auto passed =
      std::count_if(milestones_.begin(), milestones_.end(), [this](int64_t m) { return m <= last_epoch_; });
  return base * std::pow(gamma_, double(passed));
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : LRScheduler(optimizer), factor_(factor), total_iters_(total_iters) {
  STRATA_CHECK_VALUE(factor >= 0 && factor <= 1, "Constant multiplicative factor expected to be between 0 and 1, got ",
                     factor);
  begin();
}
double ConstantLR::rate(double present, double, size_t) {
  if (last_epoch_ == 0) return present * factor_;
  return last_epoch_ == total_iters_ ? present * (1.0 / factor_) : present;
}
double ConstantLR::closed_rate(double, double base, size_t) {
  return base * (last_epoch_ >= total_iters_ ? 1.0 : factor_);
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : LRScheduler(optimizer), start_factor_(start_factor), end_factor_(end_factor), total_iters_(total_iters) {
  STRATA_CHECK_VALUE(start_factor > 0 && start_factor <= 1,
                     "Starting multiplicative factor expected to be greater than 0 and less or equal to 1, got ",
                     start_factor);
  STRATA_CHECK_VALUE(end_factor >= 0 && end_factor <= 1,
                     "Ending multiplicative factor expected to be between 0 and 1, got ", end_factor);
  begin();
}
double LinearLR::rate(double present, double, size_t) {
  if (last_epoch_ == 0) return present * start_factor_;
  if (initial_ || last_epoch_ > total_iters_) return present;
  const double rise = end_factor_ - start_factor_;
  return present * (1.0 + rise / (double(total_iters_) * start_factor_ + double(last_epoch_ - 1) * rise));
}
double LinearLR::closed_rate(double, double base, size_t) {
  const double rise = end_factor_ - start_factor_;
  return base * (start_factor_ + rise * double(std::min(total_iters_, last_epoch_)) / double(total_iters_));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) { begin(); }
double ExponentialLR::rate(double present, double, size_t) { return initial_ ? present : present * gamma_; }
double ExponentialLR::closed_rate(double, double base, size_t) { return base * std::pow(gamma_, double(last_epoch_)); }

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : LRScheduler(optimizer), total_iters_(total_iters), power_(power) {
  begin();
}
double PolynomialLR::rate(double present, double, size_t) {
  if (initial_ || last_epoch_ > total_iters_) return present;
  const double now = 1.0 - double(last_epoch_) / double(total_iters_);
  const double before = 1.0 - double(last_epoch_ - 1) / double(total_iters_);
  return present * std::pow(now / before, power_);
}
double PolynomialLR::closed_rate(double, double base, size_t) {
  return base * std::pow(1.0 - double(std::min(total_iters_, last_epoch_)) / double(total_iters_), power_);
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min)
    : LRScheduler(optimizer), period_(T_max), least_(eta_min) {
  begin();
}
double CosineAnnealingLR::rate(double present, double base, size_t) {
  if (initial_) return present;
  const double period = double(period_), epoch = double(last_epoch_);
  if ((last_epoch_ - 1 - period_) % (2 * period_) == 0)  // the recursion below would divide by zero after a minimum
    return present + (base - least_) * ((1 - std::cos(M_PI / period)) / 2);
  const double ratio = (1 + std::cos(M_PI * epoch / period)) / (1 + std::cos(M_PI * (epoch - 1) / period));
  return ratio * (present - least_) + least_;
}
double CosineAnnealingLR::closed_rate(double, double base, size_t) {
  return least_ + (base - least_) * ((1 + std::cos(M_PI * double(last_epoch_) / double(period_))) / 2);
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult,
                                                         double eta_min)
    : LRScheduler(optimizer), first_(T_0), times_(T_mult), least_(eta_min) {
  STRATA_CHECK_VALUE(T_0 > 0, "Expected positive integer T_0, but got ", T_0);
  STRATA_CHECK_VALUE(T_mult >= 1, "Expected integer T_mult >= 1, but got ", T_mult);
  begin();
}
double CosineAnnealingWarmRestarts::rate(double, double base, size_t) {
  int64_t at = last_epoch_, period = first_;
  while (at >= period) {
    at -= period;
    period *= times_;
  }
  return least_ + (base - least_) * ((1 + std::cos(M_PI * double(at) / double(period))) / 2);
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> lr_lambda)
    : LRScheduler(optimizer), lr_lambda_(std::move(lr_lambda)) {
  begin();
}
double LambdaLR::rate(double, double base, size_t) { return base * lr_lambda_(last_epoch_); }

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::function<double(int64_t)> lr_lambda)
    : LRScheduler(optimizer), lr_lambda_(std::move(lr_lambda)) {
  begin();
}
double MultiplicativeLR::rate(double present, double, size_t) {
  return initial_ ? present : present * lr_lambda_(last_epoch_);
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, double max_lr, int64_t total_steps, OneCycleOptions options)
    : LRScheduler(optimizer), max_lr_(max_lr), total_steps_(total_steps), options_(options) {
  STRATA_CHECK_VALUE(total_steps > 0, "OneCycleLR: expected a positive number of steps, got ", total_steps);
  STRATA_CHECK_VALUE(options.pct_start >= 0 && options.pct_start <= 1,
                     "OneCycleLR: expected pct_start from 0 to 1, got ", options.pct_start);
  begin();
}
double OneCycleLR::rate(double, double, size_t) {
  STRATA_CHECK_VALUE(last_epoch_ <= total_steps_, "OneCycleLR: step ", last_epoch_, " of ", total_steps_,
                     "; make the schedule for all steps");
  const double initial = max_lr_ / options_.div_factor, least = initial / options_.final_div_factor;
  const double steps = double(total_steps_), at = double(last_epoch_), last = double(total_steps_ - 1);
  const double top = options_.pct_start * steps - 1, back = 2 * options_.pct_start * steps - 2;
  const auto between = [&](double from, double to, double start, double end) {
    const double share = (at - from) / (to - from);
    if (options_.linear) return (end - start) * share + start;
    return end + (start - end) / 2.0 * (1 + std::cos(M_PI * share));
  };
  if (at <= top) return between(0, top, initial, max_lr_);
  if (!options_.three_phase) return between(top, last, max_lr_, least);
  return at <= back ? between(top, back, max_lr_, initial) : between(back, last, initial, least);
}

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  STRATA_CHECK_VALUE(!schedulers_.empty(), "SequentialLR expects at least one scheduler, but got no scheduler.");
  STRATA_CHECK_VALUE(milestones_.size() + 1 == schedulers_.size(),
                     "SequentialLR: expected one milestone fewer than schedulers, got ", milestones_.size(), " for ",
                     schedulers_.size());
  last_epoch_ = 0;
  // Every member has stepped once when it was made: undo that, then let the first one begin.
  for (size_t g = 0; g < optimizer.num_groups(); ++g) optimizer.set_lr(g, optimizer.initial_lr(g));
  for (const auto& member : schedulers_) {
    STRATA_CHECK_VALUE(&member->optimizer() == &optimizer, "SequentialLR expects all schedulers of one optimizer");
    --member->last_epoch_;
  }
  schedulers_[size_t(std::upper_bound(milestones_.begin(), milestones_.end(), 0) - milestones_.begin())]->begin();
}

void SequentialLR::step() {
  ++last_epoch_;
  const auto turn = size_t(std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_) - milestones_.begin());
  if (turn > 0 && milestones_[turn - 1] == last_epoch_)
    schedulers_[turn]->move_to(0, true);
  else
    schedulers_[turn]->step();
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options)
    : optimizer_(optimizer), options_(options), best_(options.max ? -INFINITY : INFINITY) {
  STRATA_CHECK_VALUE(options.factor < 1, "Factor should be < 1.0, got ", options.factor);
}

void ReduceLROnPlateau::step(double metric) {
  const ReduceLROnPlateauOptions& o = options_;
  const double sign = o.max ? 1 : -1;
  const double bound = o.absolute ? best_ + sign * o.threshold : best_ * (1.0 + sign * o.threshold);
  if (o.max ? metric > bound : metric < bound) {
    best_ = metric;
    bad_ = 0;
  } else {
    ++bad_;
  }
  if (waiting_ > 0) {
    --waiting_;
    bad_ = 0;
  }
  if (bad_ <= o.patience) return;
  for (size_t g = 0; g < optimizer_.num_groups(); ++g) {
    const double old = optimizer_.lr(g), rate = std::max(old * o.factor, o.min_lr);
    if (old - rate > o.eps) optimizer_.set_lr(g, rate);
  }
  waiting_ = o.cooldown;
  bad_ = 0;
}

}  // namespace strata::optim
