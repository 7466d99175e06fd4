// Losses over classes: one value per target in float32 (float64), then sums over tree T, rounded once.
#include <cmath>

#include "core/parallel.h"
#include "run/formulas.h"
#include "run/index_args.h"
#include "run/visit.h"
#include "strata/generated/by_hand/class_loss.h"
#include "strata/generated/ops/class_loss.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/index.h"
#include "strata/generated/ops/norm.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/reduce.h"
#include "strata/generated/ops/scatter.h"
#include "strata/generated/ops/unary.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

template <class F>
void visit_floats(DType t, F&& f) {
  t == DType::F64 ? f(Tag<double>()) : f(Tag<float>());
}

// (n, classes, positions), with what lies where. A single sample has n = 1.
struct Space {
  int64_t samples, classes, positions;
  Tensor input, target, weight;  // contiguous; 16-bit dtypes widened, targets int64, weight may be undefined
};

Space space_of(const Tensor& self, const Tensor& target, const Tensor& weight, bool single) {
  Space s;
  s.samples = single ? 1 : self.sizes()[0];
  s.classes = self.sizes()[single ? 0 : 1];
  s.positions = 1;
  for (int64_t d = 2; d < self.dim(); ++d) s.positions *= self.sizes()[d];
  s.input = as_contiguous(widened(self));
  s.target = as_contiguous(as_dtype(target, DType::I64));
  s.weight = weight.defined() ? as_contiguous(widened(weight)) : weight;
  return s;
}

void check_target(int64_t t, int64_t classes) {
  STRATA_CHECK_INDEX(t >= 0 && t < classes, "Target ", t, " is out of bounds; there are ", classes, " classes");
}

std::tuple<Tensor, Tensor> forward(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                                   int64_t ignore, bool single) {
  formulas::check_reduction(reduction, kNone);
  formulas::check_nll(self, target, weight, single ? 0 : 1);
  const DType t = self.dtype(), wide = wide_dtype(t);
  Tensor total = new_tensor(self, DimVec());
  Space s = space_of(self, target, weight, single);
  Tensor losses = new_tensor(self, target.sizes(), wide), weights = new_tensor(self, target.sizes(), wide);
  visit_floats(wide, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = s.input.data<T>();
    const T* w = s.weight.defined() ? s.weight.data<T>() : nullptr;
    const int64_t* targets = s.target.data<int64_t>();
    T* loss = losses.data<T>();
    T* scale = weights.data<T>();
    parallel_for(0, s.samples * s.positions, 8192, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t c = targets[i];
        loss[i] = scale[i] = 0;
        if (c == ignore) continue;
        check_target(c, s.classes);
        scale[i] = w ? w[c] : T(1);
        loss[i] = -x[(i / s.positions * s.classes + c) * s.positions + i % s.positions] * scale[i];
      }
    });
  });
  if (reduction == kNone) {
    fill_values(total, Scalar(0));
    return {as_dtype(losses, t), total};
  }
  Tensor sum = ops::sum(losses), count = ops::sum(weights);
  if (reduction == kMean) sum = ops::div(sum, count);
  return {as_dtype(sum, t), as_dtype(count, t)};
}

Tensor backward(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignore, const Tensor& total, bool single) {
  formulas::check_nll(self, target, weight, single ? 0 : 1);
  const DType wide = wide_dtype(self.dtype());
  Tensor out = new_tensor(self, self.sizes(), wide);
  fill_values(out, Scalar(0));
  if (out.numel() == 0) return as_dtype(out, self.dtype());
  formulas::check_nll_grad(grad, target, reduction, total);
  Space s = space_of(self, target, weight, single);
  Tensor g = as_contiguous(as_dtype(grad, wide)), whole = as_dtype(total, wide);
  visit_floats(wide, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* w = s.weight.defined() ? s.weight.data<T>() : nullptr;
    const T* from = g.data<T>();
    const int64_t* targets = s.target.data<int64_t>();
    T* to = out.data<T>();
    T divisor = reduction == kMean ? *whole.data<T>() : T(1);
    parallel_for(0, s.samples * s.positions, 8192, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t c = targets[i];
        if (c == ignore) continue;
        check_target(c, s.classes);
        to[(i / s.positions * s.classes + c) * s.positions + i % s.positions] =
            -from[reduction == kNone ? i : 0] / divisor * (w ? w[c] : T(1));
      }
    });
  });
  return as_dtype(out, self.dtype());
}

}  // namespace

void of_classes(const Tensor& result, const Tensor& self, int64_t dim, const Tensor& target) {
  const int64_t d = wrap_dim(dim, self.dim()), classes = self.sizes()[d];
  const Tensor index = as_dtype(target, DType::I64);
  if (const auto bad = first_outside(index, 0, classes)) check_target(*bad, classes);
  copy_values(result, ops::squeeze(ops::gather(self, d, ops::unsqueeze(index, d)), d));
}

std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target, const Tensor& weight,
                                            int64_t reduction, int64_t ignore_index) {
  formulas::check_nll_shapes(self, target);
  return forward(self, target, weight, reduction, ignore_index, self.dim() == 1);
}

std::tuple<Tensor, Tensor> nll_loss2d_forward(const Tensor& self, const Tensor& target, const Tensor& weight,
                                              int64_t reduction, int64_t ignore_index) {
  formulas::check_nll2d_shapes(self, target);
  return forward(self, target, weight, reduction, ignore_index, false);
}

Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const Tensor& weight,
                         int64_t reduction, int64_t ignore_index, const Tensor& total_weight) {
  self.dim() == 4 ? formulas::check_nll2d_shapes(self, target) : formulas::check_nll_shapes(self, target);
  return backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, self.dim() == 1);
}

Tensor nll_loss_nd(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                   int64_t ignore_index) {
  STRATA_CHECK_VALUE(self.dim() >= 1, "Expected 1 or more dimensions (got ", self.dim(), ")");
  STRATA_CHECK_VALUE(self.dim() == 1 || target.dim() == 0 || self.sizes()[0] == target.sizes()[0],
                     "Expected input batch_size (", self.sizes()[0], ") to match target batch_size (",
                     target.dim() ? target.sizes()[0] : 0, ").");
  if (self.dim() <= 2) return ops::nll_loss(self, target, weight, reduction, ignore_index);
  if (self.dim() == 4) return ops::nll_loss2d(self, target, weight, reduction, ignore_index);
  // Later dims become one.
  int64_t n = self.sizes()[0], c = self.sizes()[1], rest = 1;
  DimVec sizes{n};
  for (int64_t d = 2; d < self.dim(); ++d) {
    sizes.push_back(self.sizes()[d]);
    rest *= self.sizes()[d];
  }
  STRATA_CHECK(target.sizes() == IntArrayRef(sizes), "Expected target size ", sizes, ", got ", target.sizes());
  Tensor x = ops::reshape(self, {n, c, 1, rest}), t = ops::reshape(target, {n, 1, rest});
  Tensor loss = ops::nll_loss2d(x, t, weight, reduction, ignore_index);
  return reduction == kNone ? ops::reshape(loss, sizes) : loss;
}

namespace {

Tensor along_classes(const Tensor& weight, const Tensor& like, int64_t dim) {
  DimVec sizes(like.dim(), 1);
  sizes[dim] = weight.numel();
  return ops::reshape(weight, sizes);
}

Tensor probability_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                        double smoothing, int64_t dim) {
  STRATA_CHECK(target.is_floating_point(), "Expected floating point type for target with class probabilities, got ",
               target.dtype());
  int64_t classes = self.sizes()[dim];
  STRATA_CHECK(!weight.defined() || (weight.dim() == 1 && weight.numel() == classes),
               "cross_entropy: weight tensor should be defined "
               "either for all ",
               classes, " classes or no classes but got weight tensor of shape: ", weight.sizes());
  Tensor input = ops::log_softmax(self, dim), wanted = target;
  if (smoothing > 0) wanted = ops::add(ops::mul(target, Scalar(1 - smoothing)), Scalar(smoothing / double(classes)));
  Tensor terms = ops::mul(input, wanted);
  if (weight.defined()) terms = ops::mul(terms, along_classes(weight, self, dim));
  if (reduction == kNone) return ops::neg(ops::sum(terms, IntArrayRef(dim)));
  Tensor sum = ops::neg(ops::sum(terms));
  if (reduction == kSum) return sum;
  STRATA_CHECK_VALUE(reduction == kMean, "Invalid reduction type encountered in cross_entropy: ", reduction);
  return ops::div(sum, Scalar(double(std::max<int64_t>(input.numel(), 0)) / double(classes)));
}

Tensor smoothed_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, int64_t ignore,
                     double smoothing, int64_t dim) {
  int64_t classes = self.sizes()[dim];
  Tensor input = ops::log_softmax(self, dim);
  Tensor chosen = ops::nll_loss_nd(input, target, weight, reduction, ignore);
  Tensor terms = weight.defined() ? ops::mul(input, along_classes(weight, self, dim)) : input;
  Tensor uniform = ops::neg(ops::sum(terms, IntArrayRef(dim)));
  Tensor ignored = ops::eq(target, Scalar(static_cast<long>(ignore)));
  uniform = ops::masked_fill(uniform, ignored, Scalar(0));
  if (reduction == kMean) {
    Tensor count;
    if (weight.defined()) {
      Tensor classes_of = ops::masked_fill(target, ignored, Scalar(0));
      Tensor each =
          ops::reshape(ops::index_select(weight, 0, ops::reshape(classes_of, {classes_of.numel()})), target.sizes());
      count = ops::sum(ops::masked_fill(each, ignored, Scalar(0)));
    } else {
      count = ops::to(ops::sum(ops::logical_not(ignored)), self.dtype());
    }
    uniform = ops::div(ops::sum(uniform), count);
  } else if (reduction == kSum) {
    uniform = ops::sum(uniform);
  }
  return ops::add(ops::mul(chosen, Scalar(1 - smoothing)), ops::mul(uniform, Scalar(smoothing / double(classes))));
}

}  // namespace

Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                          int64_t ignore_index, double label_smoothing) {
  STRATA_CHECK(self.dim() >= 1, "cross_entropy: expected an input of 1 dim or more, got a 0-dim tensor");
  int64_t dim = self.dim() == 1 ? 0 : 1;
  STRATA_CHECK(label_smoothing >= 0 && label_smoothing <= 1,
               "label_smoothing must be between 0.0 and 1.0. Got: ", label_smoothing);
  if (self.sizes() == target.sizes()) {
    STRATA_CHECK(ignore_index < 0, "ignore_index is not supported for floating point target");
    return probability_loss(self, target, weight, reduction, label_smoothing, dim);
  }
  if (label_smoothing > 0) return smoothed_loss(self, target, weight, reduction, ignore_index, label_smoothing, dim);
  return ops::nll_loss_nd(ops::log_softmax(self, dim), target, weight, reduction, ignore_index);
}

}  // namespace strata::eager
