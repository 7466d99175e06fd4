// Steps by the fused operators of the table.
#include <cmath>
#include <limits>

#include "strata/optim/optim.h"

namespace strata::optim {

namespace {
void not_negative(const char* name, double value) {
  STRATA_CHECK_VALUE(value >= 0, "Invalid ", name, " value: ", value);
}
template <class Options>
void check_betas(const Options& o) {
  for (double beta : {o.beta1, o.beta2})
    STRATA_CHECK_VALUE(beta >= 0 && beta < 1, "Invalid beta parameter: expected 0 to below 1, got ", beta);
  not_negative("epsilon", o.eps);
  not_negative("weight_decay", o.weight_decay);
}
Tensor count(double value, const Tensor& like) { return ops::full({}, value, DType::F32, like.device()); }
}  // namespace

// What a class keeps of a parameter.
#define KEEPS(NAME, ...)                                                                                      \
  std::vector<const char*> NAME::buffers([[maybe_unused]] size_t g, [[maybe_unused]] const Tensor& p) const { \
    return __VA_ARGS__;                                                                                       \
  }

// ---- SGD and its kin

void check(const SGDOptions& o) {
  not_negative("momentum", o.momentum);
  not_negative("weight_decay", o.weight_decay);
  STRATA_CHECK_VALUE(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
                     "Nesterov momentum requires a momentum and zero dampening");
}
KEEPS(SGD, {options(g).momentum == 0 ? "" : "momentum_buffer"})
void SGD::update(size_t group, const Lists& l) {
  const SGDOptions& o = options(group);
  ops::_fused_sgd_(l.params, l.grads, l.buffers[0], o.weight_decay, o.momentum, l.lr, o.dampening, o.nesterov,
                   o.maximize, o.momentum != 0 && l.first, {}, {});
}

void check(const ASGDOptions& o) { not_negative("weight_decay", o.weight_decay); }
KEEPS(ASGD, {"ax", "eta", "mu"})
Tensor ASGD::new_buffer(size_t group, const std::string& name, const Tensor& p) const {
  return name == "eta" ? count(lr(group), p) : name == "mu" ? count(1, p) : ops::zeros_like(p);
}
void ASGD::update(size_t group, const Lists& l) {
  const ASGDOptions& o = options(group);
  ops::_fused_asgd_(l.params, l.grads, l.buffers[0], l.buffers[1], l.buffers[2], l.steps, wrapped_number(l.lr), o.lambd,
                    o.alpha, o.t0, o.weight_decay, o.maximize);
}

void check(const RpropOptions& o) {
  STRATA_CHECK_VALUE(o.shrink > 0 && o.shrink < 1 && o.grow > 1, "Invalid eta values: ", o.shrink, ", ", o.grow);
}
KEEPS(Rprop, {"prev", "step_size"})
Tensor Rprop::new_buffer(size_t group, const std::string& name, const Tensor& p) const {
  const Tensor t = ops::zeros_like(p);
  if (name == "step_size") ops::fill_(is_complex(p.dtype()) ? ops::view_as_real(t) : t, lr(group));
  return t;
}
void Rprop::update(size_t group, const Lists& l) {
  const RpropOptions& o = options(group);
  ops::_fused_rprop_(l.params, l.grads, l.buffers[0], l.buffers[1], l.steps, o.shrink, o.grow, o.least, o.largest,
                     o.maximize);
}

void check(const MuonOptions& o) {
  not_negative("momentum", o.momentum);
  not_negative("weight_decay", o.weight_decay);
}
std::vector<const char*> Muon::buffers(size_t, const Tensor& p) const {
  STRATA_CHECK_VALUE(p.dim() == 2,
                     "Muon only supports 2D parameters whereas we found a parameter with size: ", p.sizes());
  return {"momentum_buffer"};
}
void Muon::update(size_t group, const Lists& l) {
  const MuonOptions& o = options(group);
  ops::_fused_muon_(l.params, l.grads, l.buffers[0], wrapped_number(l.lr), o.weight_decay, o.momentum, o.nesterov,
                    {o.ns_coefficients.data(), 3}, o.eps, o.ns_steps, o.match_rms_adamw);
}

// ---- Adam and its kin

void check(const AdamOptions& o) { check_betas(o); }
void check(const AdamWOptions& o) { check_betas(o); }
KEEPS(Adam, {"exp_avg", "exp_avg_sq", options(g).amsgrad ? "max_exp_avg_sq" : ""})
KEEPS(AdamW, {"exp_avg", "exp_avg_sq", options(g).amsgrad ? "max_exp_avg_sq" : ""})
void Adam::update(size_t group, const Lists& l) {
  const AdamOptions& o = options(group);
  ops::_fused_adam_(l.params, l.grads, l.buffers[0], l.buffers[1], l.buffers[2], l.steps, l.lr, o.beta1, o.beta2,
                    o.weight_decay, o.eps, o.amsgrad, o.maximize, {}, {});
}
void AdamW::update(size_t group, const Lists& l) {
  const AdamWOptions& o = options(group);
  ops::_fused_adamw_(l.params, l.grads, l.buffers[0], l.buffers[1], l.buffers[2], l.steps, l.lr, o.beta1, o.beta2,
                     o.weight_decay, o.eps, o.amsgrad, o.maximize, {}, {});
}

void check(const AdamaxOptions& o) { check_betas(o); }
KEEPS(Adamax, {"exp_avg", "exp_inf"})
void Adamax::update(size_t group, const Lists& l) {
  const AdamaxOptions& o = options(group);
  ops::_fused_adamax_(l.params, l.grads, l.buffers[0], l.buffers[1], l.steps, wrapped_number(l.lr), o.beta1, o.beta2,
                      o.weight_decay, o.eps, o.maximize);
}

void check(const NAdamOptions& o) {
  check_betas(o);
  not_negative("momentum_decay", o.momentum_decay);
}
KEEPS(NAdam, {"mu_product", "exp_avg", "exp_avg_sq"})
Tensor NAdam::new_buffer(size_t, const std::string& name, const Tensor& p) const {
  return name == "mu_product" ? count(1, p) : ops::zeros_like(p);
}
void NAdam::update(size_t group, const Lists& l) {
  const NAdamOptions& o = options(group);
  ops::_fused_nadam_(l.params, l.grads, l.buffers[0], l.buffers[1], l.buffers[2], l.steps, wrapped_number(l.lr),
                     o.beta1, o.beta2, o.weight_decay, o.eps, o.momentum_decay, o.decoupled_weight_decay, o.maximize);
}

void check(const RAdamOptions& o) { check_betas(o); }
KEEPS(RAdam, {"exp_avg", "exp_avg_sq"})
void RAdam::update(size_t group, const Lists& l) {
  const RAdamOptions& o = options(group);
  ops::_fused_radam_(l.params, l.grads, l.buffers[0], l.buffers[1], l.steps, wrapped_number(l.lr), o.beta1, o.beta2,
                     o.weight_decay, o.eps, o.decoupled_weight_decay, o.maximize);
}

// ---- rates by the size of past gradients

void check(const AdagradOptions& o) {
  not_negative("lr_decay", o.lr_decay);
  not_negative("weight_decay", o.weight_decay);
  not_negative("initial_accumulator_value", o.initial_accumulator_value);
  not_negative("epsilon", o.eps);
}
KEEPS(Adagrad, {"sum"})
Tensor Adagrad::new_buffer(size_t group, const std::string&, const Tensor& p) const {
  const Tensor t = ops::zeros_like(p);
  ops::fill_(is_complex(p.dtype()) ? ops::view_as_real(t) : t, options(group).initial_accumulator_value);
  return t;
}
void Adagrad::update(size_t group, const Lists& l) {
  const AdagradOptions& o = options(group);
  ops::_fused_adagrad_(l.params, l.grads, l.buffers[0], l.steps, l.lr, o.lr_decay, o.weight_decay, o.eps, o.maximize,
                       {}, {});
}

void check(const AdadeltaOptions& o) {
  not_negative("epsilon", o.eps);
  not_negative("weight_decay", o.weight_decay);
  STRATA_CHECK_VALUE(o.rho >= 0 && o.rho <= 1, "Invalid rho value: ", o.rho);
}
KEEPS(Adadelta, {"square_avg", "acc_delta"})
void Adadelta::update(size_t group, const Lists& l) {
  const AdadeltaOptions& o = options(group);
  ops::_fused_adadelta_(l.params, l.grads, l.buffers[0], l.buffers[1], l.steps, wrapped_number(l.lr), o.rho, o.eps,
                        o.weight_decay, o.maximize);
}

void check(const RMSpropOptions& o) {
  not_negative("epsilon", o.eps);
  not_negative("momentum", o.momentum);
  not_negative("weight_decay", o.weight_decay);
  not_negative("alpha", o.alpha);
}
KEEPS(RMSprop, {"square_avg", options(g).centered ? "grad_avg" : "", options(g).momentum > 0 ? "momentum_buffer" : ""})
void RMSprop::update(size_t group, const Lists& l) {
  const RMSpropOptions& o = options(group);
  ops::_fused_rmsprop_(l.params, l.grads, l.buffers[0], l.buffers[1], l.buffers[2], l.steps, wrapped_number(l.lr),
                       o.alpha, o.eps, o.weight_decay, o.momentum, o.centered, o.maximize);
}

void check(const AdafactorOptions& o) {
  not_negative("weight_decay", o.weight_decay);
  STRATA_CHECK_VALUE(o.beta2_decay <= 0, "beta2_decay should be <= 0 but is: ", o.beta2_decay);
  STRATA_CHECK_VALUE(o.eps1.value_or(0) >= 0, "epsilon1 should be >= 0 but is: ", *o.eps1);
  STRATA_CHECK_VALUE(o.eps2 >= 0, "epsilon2 should be >= 0 but is: ", o.eps2);
  STRATA_CHECK_VALUE(o.d >= 1, "Clipping threshold d should be >= 1 but is: ", o.d);
}
std::vector<const char*> Adafactor::buffers(size_t, const Tensor& p) const {
  STRATA_CHECK(!is_complex(p.dtype()), "Adafactor does not support complex parameters");
  return p.dim() < 2 ? std::vector<const char*>{"variance", ""} : std::vector<const char*>{"row_var", "col_var"};
}
Tensor Adafactor::new_buffer(size_t, const std::string& name, const Tensor& p) const {
  std::vector<int64_t> sizes = p.sizes().vec();
  if (name == "row_var") sizes.back() = 1;
  if (name == "col_var") sizes[sizes.size() - 2] = 1;
  return ops::zeros(sizes, p.dtype(), p.device());
}
void Adafactor::update(size_t group, const Lists& l) {
  const AdafactorOptions& o = options(group);
  double least = std::numeric_limits<float>::epsilon();
  switch (l.params[0].dtype()) {
    case DType::F64:
      least = std::numeric_limits<double>::epsilon();
      break;
    case DType::F16:
      least = std::ldexp(1.0, -10);
      break;
    case DType::BF16:
      least = std::ldexp(1.0, -7);
      break;
    default:
      break;
  }
  ops::_fused_adafactor_(l.params, l.grads, l.buffers[0], l.buffers[1], l.steps, wrapped_number(l.lr), o.beta2_decay,
                         o.eps1.value_or(least), o.eps2, o.d, o.weight_decay, o.maximize);
}

}  // namespace strata::optim
