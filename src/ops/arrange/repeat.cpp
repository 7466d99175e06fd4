// repeat_interleave and one_hot.
#include "base/checked.h"
#include "core/parallel.h"
#include "run/index_args.h"
#include "run/visit.h"
#include "strata/generated/by_hand/arrange.h"
#include "strata/generated/ops/arrange.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

Tensor repeat_positions(const Tensor& repeats, std::optional<int64_t> output_size) {
  STRATA_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  STRATA_CHECK_NOT_IMPLEMENTED(repeats.dtype() == DType::I64 || repeats.dtype() == DType::I32,
                               "repeats has to be Long or Int tensor, got ", repeats.dtype());
  Tensor counts = as_contiguous(as_dtype(repeats, DType::I64));
  const int64_t* p = counts.data<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    STRATA_CHECK(p[i] >= 0, "repeats can not be negative");
    total = checked_add(total, p[i], "repeat_interleave");
  }
  STRATA_CHECK(!output_size || *output_size == total, "allocated size does not match required size");
  Tensor out = new_tensor(repeats, IntArrayRef(total), DType::I64);
  int64_t* at = out.data<int64_t>();
  for (int64_t i = 0; i < counts.numel(); ++i)
    for (int64_t k = 0; k < p[i]; ++k) *at++ = i;
  return as_dtype(out, repeats.dtype());
}

Tensor repeat_interleave_tensor(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                                std::optional<int64_t> output_size) {
  STRATA_CHECK_INDEX(!dim || self.dim() > 0, "repeat_interleave: dim ", *dim, " is given, but the tensor has no dims");
  Tensor input = dim ? self : ops::reshape(self, {-1});
  int64_t d = wrap_dim(dim.value_or(0), input.dim());
  STRATA_CHECK(repeats.dim() <= 1, "repeats must be 0-dim or 1-dim tensor");
  Tensor counts = repeats;
  if (repeats.numel() == 1 && (repeats.dim() == 0 || input.sizes()[d] != 1)) {
    counts = ops::expand(ops::reshape(repeats, {1}), IntArrayRef(input.sizes()[d]));
  } else {
    STRATA_CHECK(repeats.dim() == 1 && repeats.sizes()[0] == input.sizes()[d],
                 "repeats must have the same size as input along dim, but got repeats.size(0) = ", repeats.sizes()[0],
                 " and input.size(", d, ") = ", input.sizes()[d]);
  }
  return ops::index_select(input, d, ops::repeat_interleave(counts, output_size));
}

Tensor repeat_interleave_int(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                             std::optional<int64_t> output_size) {
  STRATA_CHECK_INDEX(!dim || self.dim() > 0, "repeat_interleave: dim ", *dim, " is given, but the tensor has no dims");
  Tensor input = dim ? self : ops::reshape(self, {-1});
  int64_t d = wrap_dim(dim.value_or(0), input.dim());
  STRATA_CHECK(repeats >= 0, "Repeats must be non-negative");
  DimVec sizes(input.sizes()), wide(sizes);
  int64_t total = checked_mul(sizes[d], repeats, "repeat_interleave");
  STRATA_CHECK(!output_size || *output_size == total, "repeat_interleave: Invalid output_size, expected ", total,
               " but got ", *output_size);
  wide.insert(d + 1, repeats);
  sizes[d] = total;
  return ops::view(ops::clone(ops::expand(ops::unsqueeze(input, d + 1), wide), MemoryFormat::Contiguous), sizes);
}

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  STRATA_CHECK(self.dtype() == DType::I64, "one_hot is only applicable to index tensor of type LongTensor.");
  STRATA_CHECK(num_classes == -1 || num_classes >= 0, "num_classes should be positive or -1, got ", num_classes);
  Tensor index = as_contiguous(self);
  int64_t n = index.numel(), classes = num_classes;
  if (n == 0) STRATA_CHECK(classes > 0, "Can not infer total number of classes from empty tensor.");
  const int64_t* p = index.data<int64_t>();
  STRATA_CHECK(!first_outside(index, 0, INT64_MAX), "Class values must be non-negative.");
  if (classes == -1)
    for (int64_t i = 0; i < n; ++i) classes = std::max(classes, p[i] + 1);
  else
    STRATA_CHECK(!first_outside(index, 0, classes), "Class values must be smaller than num_classes.");
  DimVec sizes(self.sizes());
  sizes.push_back(classes);
  Tensor out = new_tensor(self, sizes);
  fill_values(out, Scalar(0));
  int64_t* o = out.data<int64_t>();
  parallel_for(0, n, 16384, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) o[i * classes + p[i]] = 1;
  });
  return out;
}

}  // namespace strata::eager
