// Losses, as compositions of operators where no operator is the whole of one.
#include <cmath>

#include "strata/nn/loss.h"

namespace strata::nn::functional {

namespace {
int64_t number(Reduction reduction) {
  STRATA_CHECK_VALUE(reduction != Reduction::BatchMean, "Reduction::BatchMean is KLDivLoss's alone");
  return int64_t(reduction);
}

Tensor reduced(const Tensor& loss, Reduction reduction) {
  const int64_t n = number(reduction);
  return n == 0 ? loss : n == 2 ? ops::sum(loss) : ops::mean(loss);
}

void check_margin(double margin) { STRATA_CHECK_VALUE(margin > 0, "margin must be greater than 0, got ", margin); }
}  // namespace

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o) {
  return ops::cross_entropy_loss(input, target, o.weight, number(o.reduction), o.ignore_index, o.label_smoothing);
}

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  return ops::mse_loss(input, target, number(reduction));
}

Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  return ops::l1_loss(input, target, number(reduction));
}

Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossOptions& o) {
  if (o.beta == 0) return l1_loss(input, target, o.reduction);
  return ops::smooth_l1_loss(input, target, number(o.reduction), o.beta);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossOptions& o) {
  return ops::huber_loss(input, target, number(o.reduction), o.delta);
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossOptions& o) {
  const int64_t reduction = number(o.reduction);
  if (input.dim() == 1 || input.dim() == 2) return ops::nll_loss(input, target, o.weight, reduction, o.ignore_index);
  if (input.dim() == 4) return ops::nll_loss2d(input, target, o.weight, reduction, o.ignore_index);
  bool fits = input.dim() == target.dim() + 1 && input.dim() > 1 && input.size(0) == target.size(0);
  for (int64_t d = 1; fits && d < target.dim(); ++d) fits = input.size(d + 1) == target.size(d);
  STRATA_CHECK_VALUE(fits, "nll_loss: expected input (N, C, d1, ...) and target (N, d1, ...), but got input ",
                     input.sizes(), " and target ", target.sizes());
  const Tensor loss =
      ops::nll_loss2d(ops::reshape(input, {input.size(0), input.size(1), 1, -1}),
                      ops::reshape(target, {input.size(0), 1, -1}), o.weight, reduction, o.ignore_index);
  return reduction == 0 ? ops::reshape(loss, target.sizes()) : loss;
}

Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const WeightedLossOptions& o) {
  STRATA_CHECK_VALUE(target.sizes() == input.sizes(), "binary_cross_entropy: expected a target of the input's size, ",
                     input.sizes(), ", got ", target.sizes());
  const Tensor weight = o.weight.defined() ? ops::expand_as(o.weight, target) : o.weight;
  return ops::binary_cross_entropy(input, target, weight, number(o.reduction));
}

Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target, const BCEWithLogitsLossOptions& o) {
  STRATA_CHECK_VALUE(target.sizes() == input.sizes(), "Target size (", target.sizes(),
                     ") must be the same as input size (", input.sizes(), ")");
  return ops::binary_cross_entropy_with_logits(input, target, o.weight, o.pos_weight, number(o.reduction));
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivLossOptions& o) {
  const bool by_batch = o.reduction == Reduction::BatchMean;
  const Tensor loss = ops::kl_div(input, target, by_batch ? 2 : number(o.reduction), o.log_target);
  return by_batch && input.dim() != 0 ? loss / input.size(0) : loss;
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNLLLossOptions& o) {
  return ops::poisson_nll_loss(input, target, o.log_input, o.full, o.eps, number(o.reduction));
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& given,
                         const GaussianNLLLossOptions& o) {
  STRATA_CHECK_VALUE(!item<bool>(ops::any(ops::lt(given, Scalar(0)))), "var has negative entry/entries");
  Tensor var = given;
  if (var.sizes() != input.sizes()) {
    bool fits = var.dim() == input.dim();
    for (int64_t d = 0; fits && d < var.dim(); ++d) fits = var.size(d) == 1 || var.size(d) == input.size(d);
    bool leads = var.dim() == input.dim() - 1;
    for (int64_t d = 0; leads && d < var.dim(); ++d) leads = var.size(d) == input.size(d);
    STRATA_CHECK_VALUE(fits || leads, "var is of incorrect size");
    if (leads) var = ops::unsqueeze(var, -1);
  }
  var = ops::clone(var);
  {
    const NoGradGuard off;  // the limit is a guard, not part of the function that is differentiated
    ops::clamp_(var, Scalar(o.eps));
  }
  Tensor loss = 0.5 * (ops::log(var) + ops::pow(input - target, 2) / var);
  if (o.full) loss = loss + 0.5 * std::log(2 * M_PI);
  return reduced(loss, o.reduction);
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, const HingeEmbeddingLossOptions& o) {
  return ops::hinge_embedding_loss(input, target, o.margin, number(o.reduction));
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  return ops::soft_margin_loss(input, target, number(reduction));
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const WeightedLossOptions& o) {
  Tensor loss = -(target * ops::log_sigmoid(input) + ops::rsub(target, 1) * ops::log_sigmoid(-input));
  if (o.weight.defined()) loss = loss * o.weight;
  return reduced(ops::mean(loss, IntArrayRef(-1)), o.reduction);
}

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  return ops::multilabel_margin_loss(input, target, number(reduction));
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginLossOptions& o) {
  return ops::multi_margin_loss(input, target, o.p, o.margin, o.weight, number(o.reduction));
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const MarginLossOptions& o) {
  return ops::cosine_embedding_loss(input1, input2, target, o.margin, number(o.reduction));
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginLossOptions& o) {
  STRATA_CHECK(input1.dim() == input2.dim() && input1.dim() == target.dim(),
               "margin_ranking_loss: expected inputs and target of the same number of dims, got sizes ", input1.sizes(),
               ", ", input2.sizes(), " and ", target.sizes());
  return ops::margin_ranking_loss(input1, input2, target, o.margin, number(o.reduction));
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& o) {
  check_margin(o.margin);
  return ops::triplet_margin_loss(anchor, positive, negative, o.margin, o.p, o.eps, o.swap, number(o.reduction));
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossOptions& o) {
  check_margin(o.margin);
  STRATA_CHECK(
      anchor.dim() == positive.dim() && anchor.dim() == negative.dim(),
      "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
      "anchor ",
      anchor.dim(), "D, positive ", positive.dim(), "D, and negative ", negative.dim(), "D inputs");
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return o.distance_function ? o.distance_function(a, b) : ops::linalg_vector_norm(a - b + 1e-6, 2, IntArrayRef(-1));
  };
  const Tensor to_positive = distance(anchor, positive);
  Tensor to_negative = distance(anchor, negative);
  if (o.swap) to_negative = ops::minimum(to_negative, distance(positive, negative));
  return reduced(ops::clamp_min(o.margin + to_positive - to_negative, Scalar(0)), o.reduction);
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossOptions& o) {
  return ops::ctc_loss(log_probs, targets, input_lengths, target_lengths, o.blank, number(o.reduction),
                       o.zero_infinity);
}

}  // namespace strata::nn::functional
