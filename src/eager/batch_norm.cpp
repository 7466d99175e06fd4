// Normalisation of channels (dim 1) over the batch and all later dims.
#include "strata/generated/ops/batch_norm.h"
#include "base/checked.h"
#include "core/promote.h"
#include "eager/norm_common.h"
#include "eager/pointwise.h"
#include "strata/generated/eager_batch_norm.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

void check_float(const Tensor& input) {
  STRATA_CHECK_NOT_IMPLEMENTED(input.is_floating_point(), "\"batch_norm\" not implemented for '",
                               scalar_type_name(input.dtype()), "'; convert the input with .to() first");
}

// Everything but the channels.
DimVec summed_dims(const Tensor& t) {
  DimVec dims;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (d != 1) dims.push_back(d);
  return dims;
}

// A vector of channels against the dims of `like`.
Tensor along_channels(const Tensor& v, const Tensor& like, DType t, double absent) {
  DimVec sizes(like.dim(), 1);
  sizes[1] = like.sizes()[1];
  Tensor values = v.defined() ? as_contiguous(as_dtype(v, t)) : constant(like, DimVec{like.sizes()[1]}, t, absent);
  return values.alias(sizes, contiguous_strides(sizes), values.storage_offset());
}

void check_channels(const char* what, const Tensor& t, int64_t channels) {
  STRATA_CHECK(!t.defined() || t.numel() == channels, what, " should contain ", channels, " elements not ", t.numel());
}

void move_running(const Tensor& running, const Tensor& value, double momentum, double scale) {
  if (!running.defined()) return;
  Scalar scalars[] = {Scalar(momentum), Scalar(scale)};
  const Tensor* outs[] = {&running};
  const Tensor* in[] = {&running, &value};
  pointwise_into(kernels::moving_average, {outs, 1}, {in, 2}, Scalars(scalars, 2));
}

Tensor reciprocal_deviation(const Tensor& variance, double eps) {
  Scalar e(eps);
  const Tensor* in[] = {&variance};
  return pointwise(kernels::reciprocal_deviation, {in, 1}, Scalars(&e, 1));
}

// In the memory order of the input.
Tensor result_like(const Tensor& input) {
  const Tensor* in[] = {&input};
  return make_tensor_strided(input.sizes(), result_strides(input.sizes(), {in, 1}), input.dtype(), input.device(),
                             input.is_meta());
}

Tensor empty_vector(const Tensor& like, DType t) { return new_tensor(like, {0}, t); }

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, bool training, double momentum, double eps, bool) {
  if (input.numel() == 0) {  // of any dims and dtype, as PyTorch has it
    Tensor out = ops::clone(input);
    for (const Tensor* t : {&weight, &bias}) {
      if (!t->defined()) continue;
      Tensor first = ops::select(*t, 0, 0);
      out = t == &weight ? ops::mul(out, first) : ops::add(out, first);
    }
    return out;
  }
  return std::get<0>(ops::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

namespace {

/// A batch's normalisation and what its running statistics shall move towards: they move last, after every refusal.
struct Normalised {
  Tensor out, saved_mean, saved_rstd;
  Tensor mean, var;  // of the batch; undefined in evaluation mode
  double unbiased = 1;

  void move(const Tensor& running_mean, const Tensor& running_var, double momentum) const {
    if (!mean.defined() || out.is_meta()) return;
    move_running(running_mean, mean, momentum, 1.0);
    move_running(running_var, var, momentum, unbiased);
  }
};

Normalised normalised(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                      const Tensor& running_var, bool training, double eps) {
  STRATA_CHECK(input.dim() >= 2, "batch_norm: expected an input of 2 dims or more, got shape ", input.sizes());
  check_float(input);
  int64_t channels = input.sizes()[1];
  check_channels("running_mean", running_mean, channels);
  check_channels("running_var", running_var, channels);
  check_channels("weight", weight, channels);
  check_channels("bias", bias, channels);
  if (training)
    for (const Tensor* running : {&running_mean, &running_var})
      if (running->defined()) kernel_for(kernels::moving_average, running->dtype());
  STRATA_CHECK(training || (running_mean.defined() && running_var.defined()),
               running_mean.defined() ? "running_var" : "running_mean", " must be defined in evaluation mode");

  DType t = accumulator_of(input.dtype());
  DType saved = weight.defined() ? weight.dtype() : running_mean.defined() ? running_mean.dtype() : input.dtype();
  Normalised r;
  r.out = result_like(input);
  r.saved_mean = r.saved_rstd = empty_vector(input, saved);
  Tensor mean, rstd;
  if (training) {
    int64_t count = channels ? input.numel() / channels : 0;
    STRATA_CHECK_VALUE(channels == 0 || count > 0,
                       "batch_norm: Expected more than 0 values per channel when training, got input size ",
                       input.sizes());
    Tensor x = as_dtype(input, t);
    const Tensor* in[] = {&x};
    std::vector<Tensor> stats = rows(kernels::channel_stats, {in, 1}, {}, summed_dims(x), false);
    mean = r.mean = stats[0];
    r.var = stats[1];
    r.unbiased = count > 1 ? double(count) / double(count - 1) : 1.0 / 0.0;
    rstd = reciprocal_deviation(r.var, eps);
    r.saved_mean = as_dtype(mean, saved);
    r.saved_rstd = as_dtype(rstd, saved);
  } else {
    mean = as_dtype(running_mean, t);
    rstd = reciprocal_deviation(as_dtype(running_var, t), eps);
  }
  if (r.out.is_meta() || r.out.numel() == 0) return r;
  Tensor m = along_channels(mean, input, t, 0), d = along_channels(rstd, input, t, 1),
         w = along_channels(weight, input, t, 1), b = along_channels(bias, input, t, 0);
  const Tensor* in[] = {&m, &input, &d, &w, &b};
  const Tensor* outs[] = {&r.out};
  pointwise_into(kernels::channel_apply, {outs, 1}, {in, 5}, {});
  return r;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                                     const Tensor& running_mean, const Tensor& running_var,
                                                     bool training, double momentum, double eps) {
  Normalised r = normalised(input, weight, bias, running_mean, running_var, training, eps);
  r.move(running_mean, running_var, momentum);
  return {r.out, r.saved_mean, r.saved_rstd};
}

void native_batch_norm_out(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                           const Tensor& running_var, bool training, double momentum, double eps, const Tensor& out,
                           const Tensor& save_mean, const Tensor& save_invstd) {
  Normalised r = normalised(input, weight, bias, running_mean, running_var, training, eps);
  const std::pair<const Tensor&, const Tensor&> results[] = {
      {out, r.out}, {save_mean, r.saved_mean}, {save_invstd, r.saved_rstd}};
  for (auto& [to, from] : results) {
    check_exact_dtype(to, from.dtype(), "native_batch_norm");
    check_out(to, from, "native_batch_norm");
  }
  r.move(running_mean, running_var, momentum);
  for (auto& [to, from] : results) copy_to_out(to, from, "native_batch_norm");
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_backward(const Tensor& grad, const Tensor& input,
                                                              const Tensor& weight, const Tensor& running_mean,
                                                              const Tensor& running_var, const Tensor& save_mean,
                                                              const Tensor& save_invstd, bool train, double eps,
                                                              const BoolVec& mask) {
  STRATA_CHECK(input.dim() >= 2 && grad.sizes() == input.sizes(),
               "native_batch_norm_backward: expected a gradient of the shape of an input of 2 dims or more, got ",
               grad.sizes(), " and ", input.sizes());
  check_float(input);
  STRATA_CHECK_NOT_IMPLEMENTED(input.is_floating_point(), "\"batch_norm_backward\" not implemented for '",
                               scalar_type_name(input.dtype()), "'; convert the input with .to() first");
  DType t = accumulator_of(input.dtype());
  int64_t channels = input.sizes()[1];
  for (const Tensor* stat : {train ? &save_mean : &running_mean, train ? &save_invstd : &running_var})
    STRATA_CHECK(stat->defined() && stat->numel() == channels, "native_batch_norm_backward: expected ",
                 train ? "save_mean and save_invstd" : "running_mean and running_var", " with one value for each of ",
                 channels, " channels");
  Tensor mean = as_dtype(train ? save_mean : running_mean, t);
  Tensor rstd = train ? as_dtype(save_invstd, t) : reciprocal_deviation(as_dtype(running_var, t), eps);
  DType affine = weight.defined() ? weight.dtype() : input.dtype();
  std::tuple<Tensor, Tensor, Tensor> r;
  if (mask[0]) std::get<0>(r) = result_like(input);
  if (input.numel() == 0 || input.is_meta()) {
    if (mask[1]) std::get<1>(r) = constant(input, DimVec{channels}, affine, 0);
    if (mask[2]) std::get<2>(r) = constant(input, DimVec{channels}, affine, 0);
    return r;
  }
  Tensor plain, centred;
  if (train || mask[1] || mask[2]) {
    Tensor x = as_dtype(input, t), dy = as_dtype(grad, t);
    const Tensor* in[] = {&x, &dy, &mean};
    std::vector<Tensor> sums = rows(kernels::channel_grad_sums, {in, 3}, {}, summed_dims(x), false);
    plain = sums[0];
    centred = sums[1];
  }
  if (mask[0]) {
    const Tensor* outs[] = {&std::get<0>(r)};
    Tensor s = along_channels(rstd, input, t, 1), w = along_channels(weight, input, t, 1);
    if (train) {
      Tensor m = along_channels(mean, input, t, 0), p = along_channels(plain, input, t, 0),
             c = along_channels(centred, input, t, 0);
      Scalar count(double(input.numel() / channels));
      const Tensor* in[] = {&m, &input, &grad, &s, &w, &p, &c};
      pointwise_into(kernels::channel_backward, {outs, 1}, {in, 7}, Scalars(&count, 1));
    } else {
      const Tensor* in[] = {&s, &grad, &w};
      pointwise_into(kernels::channel_backward_fixed, {outs, 1}, {in, 3}, {});
    }
  }
  if (mask[1]) std::get<1>(r) = as_dtype(ops::mul(centred, rstd), affine);
  if (mask[2]) std::get<2>(r) = as_dtype(plain, affine);
  return r;
}

Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                     const Tensor& running_var, bool use_input_stats, double momentum, double eps, bool flag) {
  STRATA_CHECK(use_input_stats || (running_mean.defined() && running_var.defined()),
               "Expected running_mean and running_var to be defined when use_input_stats is false");
  STRATA_CHECK(input.dim() >= 2, "instance_norm: expected an input of 2 dims or more, got shape ", input.sizes());
  int64_t n = input.sizes()[0], c = input.sizes()[1];
  DimVec shape{1, n * c};
  for (int64_t d = 2; d < input.dim(); ++d) shape.push_back(input.sizes()[d]);
  auto repeated = [&](const Tensor& v) {
    return v.defined() ? ops::reshape(ops::expand(ops::unsqueeze(v, 0), {n, c}), {n * c}) : v;
  };
  // Each sample's channels are channels of their own; the running statistics take the mean over samples.
  auto copied = [&](const Tensor& v) { return v.defined() ? ops::clone(repeated(v.alias())) : v; };
  Tensor mean = copied(running_mean), var = copied(running_var);
  Tensor r = ops::batch_norm(ops::reshape(input, shape), repeated(weight), repeated(bias), mean, var, use_input_stats,
                             momentum, eps, flag);
  auto take_back = [&](const Tensor& running, const Tensor& values) {
    if (!running.defined() || !use_input_stats) return;
    Tensor average = ops::div(ops::sum(values.alias({n, c}, {c, 1}, values.storage_offset()), IntArrayRef(int64_t(0))),
                              Scalar(double(n)));
    copy_values(running, average);
  };
  take_back(running_mean, mean);
  take_back(running_var, var);
  return ops::reshape(r, input.sizes());
}

}  // namespace strata::eager
