// Losses. Each holds its options; weights among them are buffers.
#pragma once
#include <functional>

#include "strata/nn/module.h"

namespace strata::nn {

// BatchMean, the sum divided by the first size, is KLDivLoss's alone.
enum class Reduction { None = 0, Mean = 1, Sum = 2, BatchMean = 3 };

struct LossOptions {
  Reduction reduction = Reduction::Mean;
};
struct WeightedLossOptions {
  Tensor weight = {};
  Reduction reduction = Reduction::Mean;
};
struct NLLLossOptions {
  Tensor weight = {};  // of each class
  Reduction reduction = Reduction::Mean;
  int64_t ignore_index = -100;
};
struct BCEWithLogitsLossOptions {
  Tensor weight = {}, pos_weight = {};
  Reduction reduction = Reduction::Mean;
};
struct SmoothL1LossOptions {
  double beta = 1;
  Reduction reduction = Reduction::Mean;
};
struct HuberLossOptions {
  double delta = 1;
  Reduction reduction = Reduction::Mean;
};
struct KLDivLossOptions {
  bool log_target = false;
  Reduction reduction = Reduction::Mean;
};
struct PoissonNLLLossOptions {
  bool log_input = true, full = false;
  double eps = 1e-8;
  Reduction reduction = Reduction::Mean;
};
struct GaussianNLLLossOptions {
  bool full = false;
  double eps = 1e-6;
  Reduction reduction = Reduction::Mean;
};
struct HingeEmbeddingLossOptions {
  double margin = 1;
  Reduction reduction = Reduction::Mean;
};
struct MarginLossOptions {
  double margin = 0;
  Reduction reduction = Reduction::Mean;
};
struct CTCLossOptions {
  int64_t blank = 0;
  Reduction reduction = Reduction::Mean;
  bool zero_infinity = false;
};
struct MultiMarginLossOptions {
  int64_t p = 1;
  double margin = 1;
  Tensor weight = {};
  Reduction reduction = Reduction::Mean;
};
struct TripletMarginLossOptions {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
  Reduction reduction = Reduction::Mean;
};
struct TripletMarginWithDistanceLossOptions {
  std::function<Tensor(const Tensor&, const Tensor&)> distance_function;  // the 2-norm unless given
  double margin = 1;
  bool swap = false;
  Reduction reduction = Reduction::Mean;
};

namespace functional {

struct CrossEntropyOptions {
  Tensor weight = {};  // of each class
  Reduction reduction = Reduction::Mean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;
};
// Of scores (N, C, *) and classes (N, *), or probabilities like the scores.
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& options = {});
Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor l1_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossOptions& options = {});
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossOptions& options = {});
// Of log-probabilities (C), (N, C) or (N, C, d1, ...) and classes.
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossOptions& options = {});
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target, const WeightedLossOptions& options = {});
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BCEWithLogitsLossOptions& options = {});
Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivLossOptions& options = {});
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNLLLossOptions& options = {});
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNLLLossOptions& options = {});
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, const HingeEmbeddingLossOptions& options = {});
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const WeightedLossOptions& options = {});
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const MultiMarginLossOptions& options = {});
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const MarginLossOptions& options = {});
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginLossOptions& options = {});
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossOptions& options = {});
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossOptions& options = {});
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossOptions& options = {});

}  // namespace functional

template <class Options>
class LossBase : public Module {
 public:
  const Options options;

 protected:
  explicit LossBase(Options given) : options(std::move(given)) {
    if constexpr (requires(Options& o) { o.weight; }) register_buffer("weight", options.weight);
    if constexpr (requires(Options& o) { o.pos_weight; }) register_buffer("pos_weight", options.pos_weight);
    if constexpr (requires(Options& o) { o.swap; })
      STRATA_CHECK_VALUE(options.margin > 0, "expected margin to be greater than 0, got ", options.margin, " instead");
    if constexpr (std::is_same_v<Options, MultiMarginLossOptions>) {
      STRATA_CHECK_VALUE(options.p == 1 || options.p == 2, "only p == 1 and p == 2 supported");
      STRATA_CHECK_VALUE(!options.weight.defined() || options.weight.dim() == 1,
                         "MultiMarginLoss: expected weight to be none or a 1D tensor");
    }
  }
};

// What a loss takes is written in brackets, then what it gives.
#define STRATA_LOSS(NAME, OPTIONS, ARGUMENTS, RESULT)                           \
  class NAME##Impl : public LossBase<OPTIONS> {                                 \
   public:                                                                      \
    using Module::forward;                                                      \
    explicit NAME##Impl(OPTIONS options = {}) : LossBase(std::move(options)) {} \
    Tensor forward ARGUMENTS { return functional::RESULT; }                     \
  };                                                                            \
  STRATA_MODULE(NAME)
#define STRATA_OF_TWO (const Tensor& input, const Tensor& target)
#define STRATA_OF_THREE (const Tensor& input1, const Tensor& input2, const Tensor& target)
#define STRATA_OF_TRIPLETS (const Tensor& anchor, const Tensor& positive, const Tensor& negative)
#define STRATA_OF_SEQUENCES \
  (const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths)

STRATA_LOSS(L1Loss, LossOptions, STRATA_OF_TWO, l1_loss(input, target, options.reduction));
STRATA_LOSS(MSELoss, LossOptions, STRATA_OF_TWO, mse_loss(input, target, options.reduction));
STRATA_LOSS(SmoothL1Loss, SmoothL1LossOptions, STRATA_OF_TWO, smooth_l1_loss(input, target, options));
STRATA_LOSS(HuberLoss, HuberLossOptions, STRATA_OF_TWO, huber_loss(input, target, options));
STRATA_LOSS(NLLLoss, NLLLossOptions, STRATA_OF_TWO, nll_loss(input, target, options));
STRATA_LOSS(CrossEntropyLoss, functional::CrossEntropyOptions, STRATA_OF_TWO, cross_entropy(input, target, options));
STRATA_LOSS(BCELoss, WeightedLossOptions, STRATA_OF_TWO, binary_cross_entropy(input, target, options));
STRATA_LOSS(BCEWithLogitsLoss, BCEWithLogitsLossOptions, STRATA_OF_TWO,
            binary_cross_entropy_with_logits(input, target, options));
STRATA_LOSS(KLDivLoss, KLDivLossOptions, STRATA_OF_TWO, kl_div(input, target, options));
STRATA_LOSS(PoissonNLLLoss, PoissonNLLLossOptions, STRATA_OF_TWO, poisson_nll_loss(input, target, options));
STRATA_LOSS(GaussianNLLLoss, GaussianNLLLossOptions, (const Tensor& input, const Tensor& target, const Tensor& var),
            gaussian_nll_loss(input, target, var, options));
STRATA_LOSS(HingeEmbeddingLoss, HingeEmbeddingLossOptions, STRATA_OF_TWO, hinge_embedding_loss(input, target, options));
STRATA_LOSS(SoftMarginLoss, LossOptions, STRATA_OF_TWO, soft_margin_loss(input, target, options.reduction));
STRATA_LOSS(MultiLabelSoftMarginLoss, WeightedLossOptions, STRATA_OF_TWO,
            multilabel_soft_margin_loss(input, target, options));
STRATA_LOSS(MultiLabelMarginLoss, LossOptions, STRATA_OF_TWO, multilabel_margin_loss(input, target, options.reduction));
STRATA_LOSS(MultiMarginLoss, MultiMarginLossOptions, STRATA_OF_TWO, multi_margin_loss(input, target, options));
STRATA_LOSS(CosineEmbeddingLoss, MarginLossOptions, STRATA_OF_THREE,
            cosine_embedding_loss(input1, input2, target, options));
STRATA_LOSS(MarginRankingLoss, MarginLossOptions, STRATA_OF_THREE,
            margin_ranking_loss(input1, input2, target, options));
STRATA_LOSS(TripletMarginLoss, TripletMarginLossOptions, STRATA_OF_TRIPLETS,
            triplet_margin_loss(anchor, positive, negative, options));
STRATA_LOSS(TripletMarginWithDistanceLoss, TripletMarginWithDistanceLossOptions, STRATA_OF_TRIPLETS,
            triplet_margin_with_distance_loss(anchor, positive, negative, options));
STRATA_LOSS(CTCLoss, CTCLossOptions, STRATA_OF_SEQUENCES,
            ctc_loss(log_probs, targets, input_lengths, target_lengths, options));
#undef STRATA_LOSS
#undef STRATA_OF_TWO
#undef STRATA_OF_THREE
#undef STRATA_OF_TRIPLETS
#undef STRATA_OF_SEQUENCES

}  // namespace strata::nn
