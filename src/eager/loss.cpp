// Losses per element, and their sums in one kernel.
#include "eager/loss.h"

#include <cmath>

#include "core/promote.h"
#include "eager/copy.h"
#include "strata/generated/eager_loss.h"
#include "strata/generated/kernel_ops.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/loss.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/vector_norm.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

Tensor apply_reduction(const Tensor& loss, int64_t reduction) {
  STRATA_CHECK_VALUE(reduction >= kNone && reduction <= kSum, reduction,
                     " is not a valid value for reduction; expected 0, 1 or 2");
  if (reduction == kMean) return ops::mean(loss);
  return reduction == kSum ? ops::sum(loss) : loss;
}

namespace {

struct Pair {
  Tensor self, target;
};

// Both operands in the common shape and dtype.
Pair broadcast(const Tensor& self, const Tensor& target) {
  ResultType type;
  type.add(self);
  type.add(target);
  DimVec sizes = broadcast_shapes(self.sizes(), target.sizes());
  auto fitted = [&](const Tensor& t) {
    Tensor x = as_dtype(t, type.get());
    return x.sizes() == IntArrayRef(sizes) ? x : ops::expand(x, sizes);
  };
  return {fitted(self), fitted(target)};
}

// The sum or mean of a loss over all elements, by its row kernel; `extra` are the scalars before the divisor.
Tensor reduced(const RowsOp& op, const Tensor& self, const Tensor& target, int64_t reduction,
               std::optional<double> extra = std::nullopt) {
  STRATA_CHECK_VALUE(reduction == kMean || reduction == kSum, reduction,
                     " is not a valid value for reduction; expected 0, 1 or 2");
  Pair p = broadcast(self, target);
  Scalar scalars[2] = {Scalar(extra.value_or(0)), Scalar(reduction == kMean ? double(p.self.numel()) : 1.0)};
  const Tensor* in[] = {&p.self, &p.target};
  Scalars used = extra ? Scalars(scalars, 2) : Scalars(scalars + 1, 1);
  return rows(op, {in, 2}, used, row_dims(p.self, OptIntArrayRef()), false)[0];
}

}  // namespace

Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduction == kNone ? ops::_squared_error(self, target)
                            : reduced(kernels::squared_error_rows, self, target, reduction);
}

Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return apply_reduction(ops::abs(ops::sub(self, target)), reduction);
}

Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  STRATA_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta, got ", beta);
  return reduction == kNone ? ops::_smooth_l1(self, target, Scalar(beta))
                            : reduced(kernels::smooth_l1_rows, self, target, reduction, beta);
}

Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  STRATA_CHECK(delta > 0, "huber_loss does not support non-positive values for delta, got ", delta);
  return reduction == kNone ? ops::_huber(self, target, Scalar(delta))
                            : reduced(kernels::huber_rows, self, target, reduction, delta);
}

Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction) {
  Tensor loss = ops::_bce(self, target);  // first, since it refuses dtypes
  if (!self.is_meta() && self.numel() > 0) {
    Tensor inside = ops::logical_and(ops::ge(self, Scalar(0)), ops::le(self, Scalar(1)));
    STRATA_CHECK(ops::item(ops::all(inside)).to_bool(),
                 "all elements of input should be between 0 and 1; binary_cross_entropy takes "
                 "probabilities, binary_cross_entropy_with_logits any number");
  }
  return apply_reduction(weight.defined() ? ops::mul(loss, weight) : loss, reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target, const Tensor& weight,
                                        const Tensor& pos_weight, int64_t reduction) {
  Tensor loss =
      pos_weight.defined() ? ops::_bce_logits_weighted(self, target, pos_weight) : ops::_bce_logits(self, target);
  return apply_reduction(weight.defined() ? ops::mul(loss, weight) : loss, reduction);
}

// ---- made of other operators

Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  STRATA_CHECK(!self.is_complex() && !target.is_complex(), "kl_div: Complex inputs not supported.");
  for (const Tensor* t : {&self, &target})
    STRATA_CHECK(!is_integral(t->dtype(), true), "kl_div: Integral inputs not supported.");
  Tensor loss = log_target ? ops::mul(ops::exp(target), ops::sub(target, self))
                           : ops::sub(ops::xlogy(target, target), ops::mul(target, self));
  return apply_reduction(loss, reduction);
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                        int64_t reduction) {
  Tensor loss = log_input ? ops::sub(ops::exp(input), ops::mul(target, input))
                          : ops::sub(input, ops::mul(target, ops::log(ops::add(input, Scalar(eps)))));
  if (full) {
    // Stirling: log(target!) for targets above 1.
    Tensor stirling = ops::add(ops::sub(ops::mul(target, ops::log(target)), target),
                               ops::mul(ops::log(ops::mul(target, Scalar(2 * M_PI))), Scalar(0.5)));
    loss = ops::add(loss, ops::where(ops::gt(target, Scalar(1)), stirling, ops::zeros_like(stirling)));
  }
  return apply_reduction(loss, reduction);
}

Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  for (const Tensor* t : {&self, &target})
    STRATA_CHECK(is_differentiable(t->dtype()), "soft_margin_loss: expected floating operands, got ", t->dtype(),
                 "; convert them with .to() first");
  return apply_reduction(ops::log1p(ops::exp(ops::mul(ops::neg(target), self))), reduction);
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                             int64_t reduction) {
  int64_t dims = target.dim();
  STRATA_CHECK(dims == 0 || dims == 1, "0D or 1D target tensor expected, multi-target not supported; got ", dims,
               " dims");
  const char* expected = dims ? "2D" : "1D";
  STRATA_CHECK(input1.dim() == dims + 1 && input2.dim() == dims + 1, dims, "D target tensor expects ", expected,
               " input tensors, but found inputs with sizes ", input1.sizes(), " and ", input2.sizes(), ".");
  const double epsilon = 1e-12;
  int64_t dim = dims;
  Tensor inner = ops::sum(ops::mul(input1, input2), IntArrayRef(dim));
  Tensor square1 = ops::add(ops::sum(ops::mul(input1, input1), IntArrayRef(dim)), Scalar(epsilon));
  Tensor square2 = ops::add(ops::sum(ops::mul(input2, input2), IntArrayRef(dim)), Scalar(epsilon));
  Tensor cosine = ops::div(inner, ops::sqrt(ops::mul(square1, square2)));
  Tensor zeros = ops::zeros_like(cosine);
  Tensor alike = ops::rsub(cosine, Scalar(1)), apart = ops::clamp_min(ops::sub(cosine, Scalar(margin)), Scalar(0));
  Tensor loss = ops::add(ops::where(ops::eq(target, Scalar(1)), alike, zeros),
                         ops::where(ops::eq(target, Scalar(-1)), apart, zeros));
  return apply_reduction(loss, reduction);
}

Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin, int64_t reduction) {
  // The margin takes the dtype of integers, as PyTorch's does.
  Scalar limit = is_integral(self.dtype(), true) ? Scalar(Scalar(margin).to_int()) : Scalar(margin);
  Tensor zeros = ops::zeros_like(self), distance = ops::rsub(self, limit);
  Tensor apart = ops::where(ops::ne(target, Scalar(1)), ops::clamp_min(distance, Scalar(0)), zeros);
  return apply_reduction(ops::add(apart, ops::where(ops::ne(target, Scalar(-1)), self, zeros)), reduction);
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                           int64_t reduction) {
  Tensor loss = ops::add(ops::mul(ops::neg(target), ops::sub(input1, input2)), Scalar(margin));
  return apply_reduction(ops::clamp_min(loss, Scalar(0)), reduction);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           double p, double eps, bool swap, int64_t reduction) {
  int64_t a = anchor.dim(), b = positive.dim(), c = negative.dim();
  STRATA_CHECK(a == b && b == c,
               "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but "
               "got: anchor ",
               a, "D, positive ", b, "D, and negative ", c, "D inputs");
  Tensor near = ops::pairwise_distance(anchor, positive, p, eps, false),
         far = ops::pairwise_distance(anchor, negative, p, eps, false);
  if (swap) far = ops::minimum(far, ops::pairwise_distance(positive, negative, p, eps, false));
  Tensor loss = ops::clamp_min(ops::sub(ops::add(near, Scalar(margin)), far), Scalar(0));
  return apply_reduction(loss, reduction);
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  int64_t dim = std::max(x1.dim(), x2.dim()) - 1;
  return ops::norm(ops::add(ops::sub(x1, x2), Scalar(eps)), Scalar(p), IntArrayRef(dim), keepdim);
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  ResultType type;
  type.add(x1);
  type.add(x2);
  STRATA_CHECK(is_float(type.get()),
               "cosine_similarity: expected common dtype to be floating point, yet common dtype is ", type.get());
  DimVec sizes = broadcast_shapes(x1.sizes(), x2.sizes());
  Tensor a = ops::expand(ops::to(x1, type.get()), sizes), b = ops::expand(ops::to(x2, type.get()), sizes);
  auto unit = [&](const Tensor& x) {
    Tensor length = ops::linalg_vector_norm(x, Scalar(2), OptIntArrayRef(IntArrayRef(dim)), true);
    // The bound takes no part in the derivative.
    Tensor bounded = ops::clone(length);
    copy_values(bounded.alias(), ops::clamp_min(length.alias(), Scalar(eps)));
    return ops::div(x, bounded);
  };
  return ops::sum(ops::mul(unit(a), unit(b)), IntArrayRef(dim));
}

}  // namespace strata::eager
