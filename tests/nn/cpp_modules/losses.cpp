// Losses.
#include "harness.h"

void harness::losses() {
  using nn::Reduction;
  const char* two = "f:3,5 n:3,5";
  MODULE("nn.L1Loss()", two, nn::L1Loss());
  MODULE("nn.MSELoss()", two, nn::MSELoss());
  MODULE("nn.MSELoss(reduction='sum')", two, nn::MSELoss(nn::LossOptions{Reduction::Sum}));
  MODULE("nn.SmoothL1Loss()", two, nn::SmoothL1Loss());
  MODULE("nn.SmoothL1Loss(beta=0.5, reduction='none')", two,
         nn::SmoothL1Loss(nn::SmoothL1LossOptions{.beta = 0.5, .reduction = Reduction::None}));
  MODULE("nn.HuberLoss(delta=0.5)", two, nn::HuberLoss(nn::HuberLossOptions{.delta = 0.5}));
  MODULE("nn.NLLLoss()", "l:4,5 i5:4", nn::NLLLoss());
  MODULE("nn.NLLLoss(strata.arange(5.0), ignore_index=2, reduction='sum')", "l:4,5 i5:4",
         nn::NLLLoss(nn::NLLLossOptions{strata::arange(strata::Scalar(5.0)), Reduction::Sum, 2}));
  MODULE("nn.NLLLoss()", "f:4,5,2,3 i5:4,2,3", nn::NLLLoss());
  MODULE("nn.NLLLoss(reduction='none')", "f:4,5,2 i5:4,2",
         nn::NLLLoss(nn::NLLLossOptions{.reduction = Reduction::None}));
  MODULE("nn.CrossEntropyLoss(label_smoothing=0.1)", "f:4,5 i5:4",
         nn::CrossEntropyLoss(nn::functional::CrossEntropyOptions{.label_smoothing = 0.1}));
  MODULE("nn.CrossEntropyLoss(strata.arange(5.0))", "f:4,5,2 i5:4,2",
         nn::CrossEntropyLoss(nn::functional::CrossEntropyOptions{.weight = strata::arange(strata::Scalar(5.0))}));
  MODULE("nn.BCELoss()", "r:3,5 p:3,5", nn::BCELoss());
  MODULE("nn.BCELoss(strata.arange(5.0))", "r:3,5 p:3,5",
         nn::BCELoss(nn::WeightedLossOptions{.weight = strata::arange(strata::Scalar(5.0))}));
  MODULE("nn.BCEWithLogitsLoss(pos_weight=strata.arange(5.0))", "f:3,5 p:3,5",
         nn::BCEWithLogitsLoss(nn::BCEWithLogitsLossOptions{.pos_weight = strata::arange(strata::Scalar(5.0))}));
  MODULE("nn.KLDivLoss(reduction='batchmean')", "l:3,5 p:3,5",
         nn::KLDivLoss(nn::KLDivLossOptions{.reduction = Reduction::BatchMean}));
  MODULE("nn.KLDivLoss(reduction='sum', log_target=True)", "l:3,5 l:3,5",
         nn::KLDivLoss(nn::KLDivLossOptions{.log_target = true, .reduction = Reduction::Sum}));
  MODULE("nn.PoissonNLLLoss()", "f:3,5 p:3,5", nn::PoissonNLLLoss());
  MODULE("nn.PoissonNLLLoss(False, True, eps=1e-3)", "r:3,5 i9:3,5",
         nn::PoissonNLLLoss(nn::PoissonNLLLossOptions{.log_input = false, .full = true, .eps = 1e-3}));
  MODULE("nn.GaussianNLLLoss()", "f:3,5 n:3,5 r:3,5", nn::GaussianNLLLoss());
  MODULE("nn.GaussianNLLLoss(full=True, eps=0.5, reduction='sum')", "f:3,5 n:3,5 r:3",
         nn::GaussianNLLLoss(nn::GaussianNLLLossOptions{.full = true, .eps = 0.5, .reduction = Reduction::Sum}));
  MODULE("nn.HingeEmbeddingLoss(0.5)", "f:3,5 s:3,5",
         nn::HingeEmbeddingLoss(nn::HingeEmbeddingLossOptions{.margin = 0.5}));
  MODULE("nn.SoftMarginLoss()", "f:3,5 s:3,5", nn::SoftMarginLoss());
  MODULE("nn.MultiLabelSoftMarginLoss(strata.arange(5.0))", "f:3,5 p:3,5",
         nn::MultiLabelSoftMarginLoss(nn::WeightedLossOptions{.weight = strata::arange(strata::Scalar(5.0))}));
  MODULE_CALL("nn.MultiLabelMarginLoss()", "m(x[0], x[1] - 1)", "f:3,5 i6:3,5", m(x[0], x[1] - 1),
              nn::MultiLabelMarginLoss());
  MODULE("nn.MultiMarginLoss()", "f:3,5 i5:3", nn::MultiMarginLoss());
  MODULE("nn.MultiMarginLoss(2, 0.5, strata.arange(5.0), reduction='none')", "f:3,5 i5:3",
         nn::MultiMarginLoss(nn::MultiMarginLossOptions{2, 0.5, strata::arange(strata::Scalar(5.0)), Reduction::None}));
  MODULE("nn.CosineEmbeddingLoss(0.1)", "f:3,5 f:3,5 s:3",
         nn::CosineEmbeddingLoss(nn::MarginLossOptions{.margin = 0.1}));
  MODULE("nn.MarginRankingLoss(0.1)", "f:4 f:4 s:4", nn::MarginRankingLoss(nn::MarginLossOptions{.margin = 0.1}));
  MODULE("nn.TripletMarginLoss()", "f:3,5 f:3,5 f:3,5", nn::TripletMarginLoss());
  MODULE("nn.TripletMarginLoss(0.5, 1, 1e-3, True)", "f:3,5 f:3,5 f:3,5",
         nn::TripletMarginLoss(nn::TripletMarginLossOptions{0.5, 1, 1e-3, true}));
  MODULE("nn.TripletMarginWithDistanceLoss(swap=True)", "f:3,5 f:3,5 f:3,5",
         nn::TripletMarginWithDistanceLoss(nn::TripletMarginWithDistanceLossOptions{.swap = true}));
  MODULE_CALL("nn.CTCLoss()", "m(x[0], x[1] + 1, strata.tensor([6, 5]), strata.tensor([3, 2]))", "l:6,2,4 i3:2,3",
              m(x[0], x[1] + 1, strata::tensor<int64_t>({6, 5}), strata::tensor<int64_t>({3, 2})), nn::CTCLoss());
}
