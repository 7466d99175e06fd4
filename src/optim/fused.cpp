// The fused optimiser steps of the table.
#include <cmath>

#include "core/math.h"
#include "eager/copy.h"
#include "eager/pointwise.h"
#include "grad/variable.h"
#include "optim/step.h"
#include "strata/generated/eager_optim.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

using optim::ListStep;

// Shape-only tensors have no values, and nothing follows from them.
double number(const Tensor& t) { return t.is_meta() ? 0.0 : ops::item(t).to_double(); }

void check_list(const char* op, const char* what, TensorList list, size_t n) {
  STRATA_CHECK(list.size() == n, op, ": expected ", what, " to have as many tensors as self, ", n, ", got ",
               list.size());
}

void check_writable(const char* op, TensorList list) {
  for (const Tensor& t : list) {
    STRATA_CHECK(t.defined(), op, ": expected a list of tensors, got None in it");
    check_inplace(t, op);
    check_no_overlap(op, t, {});
    if (!t.is_meta()) t.bytes();  // which raises where there is no memory
  }
}

// Calls apply(tensor, index) for the tensors of a list, which writes them in place. An error comes before the first is
// written: a tensor that apply() may refuse is given to it as a copy first.
template <class Sure, class F>
void on_each(const char* op, TensorList self, Sure sure, F apply) {
  check_writable(op, self);
  for (size_t i = 0; i < self.size(); ++i)
    if (!is_float(self[i].dtype()) || !sure(i)) apply(ops::clone(ops::detach(self[i]), std::nullopt), i);
  for (size_t i = 0; i < self.size(); ++i) apply(self[i], i);
}

template <class F>
void on_pairs(const char* op, TensorList self, TensorList other, F apply) {
  check_list(op, "other", other, self.size());
  auto alike = [&](size_t i) {
    return other[i].defined() && other[i].sizes() == self[i].sizes() && other[i].dtype() == self[i].dtype();
  };
  on_each(op, self, alike, apply);
}

template <class F>
void with_scalar(const char* op, TensorList self, const Scalar& scalar, F apply) {
  on_each(op, self, [&](size_t) { return !scalar.is_complex(); }, apply);
}

bool skips(const Tensor& found_inf) { return found_inf.defined() && number(found_inf) == 1.0; }

// Gradients lose their loss scale in place.
void unscale(const char* op, TensorList grads, const Tensor& grad_scale) {
  if (!grad_scale.defined()) return;
  double scale = number(grad_scale);
  check_writable(op, grads);
  for (const Tensor& g : grads) ops::div_(g, Scalar(scale));
}

struct AdamLists {
  TensorList self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps;
};

void adam(const char* op, const AdamLists& l, double lr, double beta1, double beta2, double weight_decay, double eps,
          bool amsgrad, bool maximize, const Tensor& grad_scale, const Tensor& found_inf, bool decoupled) {
  size_t n = l.self.size();
  check_list(op, "grads", l.grads, n);
  check_list(op, "exp_avgs", l.exp_avgs, n);
  check_list(op, "exp_avg_sqs", l.exp_avg_sqs, n);
  check_list(op, "state_steps", l.state_steps, n);
  if (amsgrad) check_list(op, "max_exp_avg_sqs", l.max_exp_avg_sqs, n);
  if (skips(found_inf)) return;
  ListStep step(amsgrad ? kernels::adam_step_max : kernels::adam_step, op);
  double count = NAN, correction1 = 0, correction2 = 0;  // most lists have one count
  for (size_t i = 0; i < n; ++i) {
    if (const double now = number(l.state_steps[i]); now != count) {
      count = now;
      correction1 = 1 - math::pow(beta1, count);
      correction2 = 1 - math::pow(beta2, count);
    }
    std::vector<Scalar> scalars{Scalar(maximize ? -1.0 : 1.0),
                                Scalar(decoupled ? 0.0 : weight_decay),
                                Scalar(decoupled ? lr * weight_decay : 0.0),
                                Scalar(1 - beta1),
                                Scalar(beta2),
                                Scalar(1 - beta2),
                                Scalar(lr / correction1),
                                Scalar(1 / std::sqrt(correction2)),
                                Scalar(eps)};
    std::vector<Tensor> outs{l.self[i], l.exp_avgs[i], l.exp_avg_sqs[i]},
        in{l.self[i], l.grads[i], l.exp_avgs[i], l.exp_avg_sqs[i]};
    if (amsgrad) {
      outs.push_back(l.max_exp_avg_sqs[i]);
      in.push_back(l.max_exp_avg_sqs[i]);
    }
    step.add(std::move(outs), std::move(in), std::move(scalars));
  }
  unscale(op, l.grads, grad_scale);
  step.run();
}

}  // namespace

void fused_adam(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1, double beta2,
                double weight_decay, double eps, bool amsgrad, bool maximize, const Tensor& grad_scale,
                const Tensor& found_inf) {
  adam("_fused_adam_", {self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps}, lr, beta1, beta2,
       weight_decay, eps, amsgrad, maximize, grad_scale, found_inf, false);
}
void fused_adam_tensor_lr(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                          TensorList max_exp_avg_sqs, TensorList state_steps, const Tensor& lr, double beta1,
                          double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                          const Tensor& grad_scale, const Tensor& found_inf) {
  fused_adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, number(lr), beta1, beta2, weight_decay,
             eps, amsgrad, maximize, grad_scale, found_inf);
}
void fused_adamw(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                 TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1, double beta2,
                 double weight_decay, double eps, bool amsgrad, bool maximize, const Tensor& grad_scale,
                 const Tensor& found_inf) {
  adam("_fused_adamw_", {self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps}, lr, beta1, beta2,
       weight_decay, eps, amsgrad, maximize, grad_scale, found_inf, true);
}
void fused_adamw_tensor_lr(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                           TensorList max_exp_avg_sqs, TensorList state_steps, const Tensor& lr, double beta1,
                           double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                           const Tensor& grad_scale, const Tensor& found_inf) {
  fused_adamw(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, number(lr), beta1, beta2, weight_decay,
              eps, amsgrad, maximize, grad_scale, found_inf);
}

void fused_sgd(TensorList self, TensorList grads, TensorList buffers, double weight_decay, double momentum, double lr,
               double dampening, bool nesterov, bool maximize, bool is_first_step, const Tensor& grad_scale,
               const Tensor& found_inf) {
  const char* op = "_fused_sgd_";
  check_list(op, "grads", grads, self.size());
  bool moving = momentum != 0;
  if (moving) check_list(op, "momentum_buffer_list", buffers, self.size());
  if (skips(found_inf)) return;
  Scalar sign(maximize ? -1.0 : 1.0);
  ListStep step(moving ? kernels::sgd_step_momentum : kernels::sgd_step, op);
  for (size_t i = 0; i < self.size(); ++i) {
    if (moving)
      step.add({self[i], buffers[i]}, {self[i], grads[i], buffers[i]},
               {sign, Scalar(weight_decay), Scalar(lr), Scalar(momentum), Scalar(1 - dampening),
                Scalar(is_first_step ? 1.0 : 0.0), Scalar(nesterov ? 1.0 : 0.0)});
    else
      step.add({self[i]}, {self[i], grads[i]}, {sign, Scalar(weight_decay), Scalar(lr)});
  }
  unscale(op, grads, grad_scale);
  step.run();
}
void fused_sgd_tensor_lr(TensorList self, TensorList grads, TensorList buffers, double weight_decay, double momentum,
                         const Tensor& lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
                         const Tensor& grad_scale, const Tensor& found_inf) {
  fused_sgd(self, grads, buffers, weight_decay, momentum, number(lr), dampening, nesterov, maximize, is_first_step,
            grad_scale, found_inf);
}

void fused_rmsprop(TensorList self, TensorList grads, TensorList square_avgs, TensorList grad_avgs, TensorList buffers,
                   TensorList, double lr, double alpha, double eps, double weight_decay, double momentum, bool centered,
                   bool maximize) {
  const char* op = "_fused_rmsprop_";
  check_list(op, "grads", grads, self.size());
  check_list(op, "square_avgs", square_avgs, self.size());
  bool moving = momentum > 0;
  if (centered) check_list(op, "grad_avgs", grad_avgs, self.size());
  if (moving) check_list(op, "momentum_buffers", buffers, self.size());
  ListStep step(centered ? (moving ? kernels::rmsprop_step_centred_momentum : kernels::rmsprop_step_centred)
                         : (moving ? kernels::rmsprop_step_momentum : kernels::rmsprop_step),
                op);
  for (size_t i = 0; i < self.size(); ++i) {
    std::vector<Tensor> outs{self[i], square_avgs[i]}, in{self[i], grads[i], square_avgs[i]};
    std::vector<Scalar> scalars{
        Scalar(maximize ? -1.0 : 1.0), Scalar(weight_decay), Scalar(lr), Scalar(alpha), Scalar(1 - alpha), Scalar(eps)};
    if (centered) {
      outs.push_back(grad_avgs[i]);
      in.push_back(grad_avgs[i]);
    }
    if (moving) {
      outs.push_back(buffers[i]);
      in.push_back(buffers[i]);
      scalars.push_back(Scalar(momentum));
    }
    step.add(std::move(outs), std::move(in), std::move(scalars));
  }
  step.run();
}
void fused_rmsprop_tensor_lr(TensorList self, TensorList grads, TensorList square_avgs, TensorList grad_avgs,
                             TensorList buffers, TensorList state_steps, const Tensor& lr, double alpha, double eps,
                             double weight_decay, double momentum, bool centered, bool maximize) {
  fused_rmsprop(self, grads, square_avgs, grad_avgs, buffers, state_steps, number(lr), alpha, eps, weight_decay,
                momentum, centered, maximize);
}

// ---- lists

void foreach_add_scalar(TensorList self, const Scalar& scalar) {
  with_scalar("_foreach_add_", self, scalar, [&](const Tensor& t, size_t) { ops::add_(t, scalar); });
}
void foreach_add_list(TensorList self, TensorList other, const Scalar& alpha) {
  on_pairs("_foreach_add_", self, other, [&](const Tensor& t, size_t i) { ops::add_(t, other[i], alpha); });
}
void foreach_sub_scalar(TensorList self, const Scalar& scalar) {
  with_scalar("_foreach_sub_", self, scalar, [&](const Tensor& t, size_t) { ops::sub_(t, scalar); });
}
void foreach_sub_list(TensorList self, TensorList other, const Scalar& alpha) {
  on_pairs("_foreach_sub_", self, other, [&](const Tensor& t, size_t i) { ops::sub_(t, other[i], alpha); });
}
void foreach_mul_scalar(TensorList self, const Scalar& scalar) {
  with_scalar("_foreach_mul_", self, scalar, [&](const Tensor& t, size_t) { ops::mul_(t, scalar); });
}
void foreach_mul_tensor(TensorList self, const Tensor& other) {
  auto sure = [&](size_t) { return other.dim() == 0 && is_float(other.dtype()); };
  on_each("_foreach_mul_", self, sure, [&](const Tensor& t, size_t) { ops::mul_(t, other); });
}

// ---- loss scaling

void amp_unscale(TensorList self, const Tensor& found_inf, const Tensor& inv_scale) {
  STRATA_CHECK(found_inf.numel() == 1 && found_inf.dtype() == DType::F32,
               "found_inf must be a 1-element float tensor.");
  STRATA_CHECK(inv_scale.numel() == 1 && inv_scale.dtype() == DType::F32,
               "inv_scale must be a 1-element float tensor.");
  for (const Tensor& t : self)
    STRATA_CHECK_NOT_IMPLEMENTED(t.is_floating_point(), "\"_amp_foreach_non_finite_check_and_unscale_\" not ",
                                 "implemented for '", t.dtype(), "'; gradients are floating-point tensors");
  check_writable("_amp_foreach_non_finite_check_and_unscale_", self);
  double scale = number(inv_scale);
  bool bad = false;
  for (const Tensor& t : self) {
    if (t.numel() == 0 || t.is_meta()) continue;
    const Tensor* in[] = {&t};
    bad |= ops::item(rows(kernels::not_finite, {in, 1}, {}, row_dims(t, OptIntArrayRef()), false)[0]).to_bool();
    if (scale != 1.0) ops::mul_(t, Scalar(scale));
  }
  if (bad) fill_values(found_inf, Scalar(1));
}

Tensor amp_update_scale(const Tensor& self, const Tensor& growth_tracker, const Tensor& found_inf, double growth_factor,
                        double backoff_factor, int64_t growth_interval) {
  STRATA_CHECK(growth_tracker.numel() == 1 && growth_tracker.dtype() == DType::I32,
               "growth_tracker must be a 1-element int tensor.");
  STRATA_CHECK(self.numel() == 1 && self.dtype() == DType::F32, "current_scale must be a 1-element float tensor.");
  STRATA_CHECK(found_inf.numel() == 1 && found_inf.dtype() == DType::F32,
               "found_inf must be a 1-element float tensor.");
  if (self.is_meta()) return self;
  int64_t steps = 0;
  if (number(found_inf) != 0) {
    fill_values(self, Scalar(number(self) * backoff_factor));
  } else {
    steps = int64_t(number(growth_tracker)) + 1;
    if (steps == growth_interval) {
      float grown = float(number(self) * growth_factor);
      if (std::isfinite(grown)) fill_values(self, Scalar(double(grown)));
      steps = 0;
    }
  }
  fill_values(growth_tracker, Scalar(static_cast<long>(steps)));
  return self;
}

}  // namespace strata::eager
