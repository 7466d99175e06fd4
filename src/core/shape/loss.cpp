#include "core/shape/loss.h"

#include "core/promote.h"

namespace strata::shape {

template <class S>
Prepared<S> ctc_loss(const Geometry<S>& log_probs, const Geometry<S>& targets, const Geometry<S>& input_lengths,
                     const Geometry<S>& target_lengths, int64_t blank) {
  STRATA_CHECK(log_probs.dim() == 3, "ctc_loss: expected log_probs of shape (T, N, C), got ", log_probs.sizes);
  STRATA_CHECK(log_probs.numel() != S(0), "ctc_loss: log_probs tensor must not be empty, got shape ", log_probs.sizes);
  const S &time = log_probs.sizes[0], &batch = log_probs.sizes[1];
  STRATA_CHECK_NOT_IMPLEMENTED(log_probs.dtype == DType::F32 || log_probs.dtype == DType::F64,
                               "\"ctc_loss\" not implemented for '", scalar_type_name(log_probs.dtype),
                               "'; convert log_probs with .float() first");
  for (const auto& [name, lengths] : {std::pair("input_lengths", input_lengths), {"target_lengths", target_lengths}}) {
    STRATA_CHECK(!is_float(lengths.dtype) && !is_complex(lengths.dtype), "ctc_loss: ", name,
                 " must be integral, got dtype ", lengths.dtype);
    STRATA_CHECK(lengths.numel() == batch, "ctc_loss: ", name, " must be of size batch_size, ", batch, ", got ",
                 lengths.sizes);
  }
  STRATA_CHECK(S(0) <= S(blank) && S(blank) < log_probs.sizes[2], "ctc_loss: blank must be in label range: below ",
               log_probs.sizes[2], ", got ", blank);
  STRATA_CHECK(targets.dim() == 1 || targets.dim() == 2, "ctc_loss: expected 1 to 2 dimensions of targets, got ",
               targets.sizes);
  const bool rows = targets.dim() == 2;
  STRATA_CHECK(!rows || targets.sizes[0] == batch, "ctc_loss: expected targets to have size ", batch,
               " at dimension 0, got ", targets.sizes);
  Prepared<S> r;
  r.add({Sizes<S>{batch}, log_probs.dtype});
  if (rows)
    r.add({Sizes<S>{batch, time, S(2) * targets.sizes[1] + S(1)}, log_probs.dtype});
  else
    r.add({Sizes<S>{S(1), time, S(2) * targets.sizes[0] + batch}, log_probs.dtype});
  return r;
}

template <class S>
Prepared<S> ctc_loss_backward(const Geometry<S>& grad, const Geometry<S>& log_probs, const Geometry<S>& targets,
                              const Geometry<S>& input_lengths, const Geometry<S>& target_lengths,
                              const Geometry<S>& losses, const Geometry<S>& log_alpha, int64_t blank) {
  const Prepared<S> made = ctc_loss<S>(log_probs, targets, input_lengths, target_lengths, blank);
  const auto check = [&](const char* name, const Geometry<S>& given, size_t k) {
    const ArrayRef<S> sizes = made.outputs[k].sizes;
    STRATA_CHECK(given.sizes == sizes && given.dtype == log_probs.dtype, "_ctc_loss_backward: expected ", name,
                 " of shape ", sizes, " and dtype ", log_probs.dtype, ", got ", given.sizes, " and ", given.dtype);
  };
  check("grad", grad, 0);
  check("neg_log_likelihood", losses, 0);
  check("log_alpha", log_alpha, 1);
  return Prepared<S>(log_probs.sizes, log_probs.dtype);
}

#define STRATA_RULES(S)                                                                                         \
  template Prepared<S> ctc_loss(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&, const Geometry<S>&, \
                                int64_t);                                                                       \
  template Prepared<S> ctc_loss_backward(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&,            \
                                         const Geometry<S>&, const Geometry<S>&, const Geometry<S>&,            \
                                         const Geometry<S>&, int64_t);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
