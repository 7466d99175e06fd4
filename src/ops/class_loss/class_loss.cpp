// Losses over classes: one value per target in float32 (float64), then sums over tree T, rounded once.
#include <cmath>

#include "core/parallel.h"
#include "run/formulas.h"
#include "run/index_args.h"
#include "run/visit.h"
#include "strata/generated/by_hand/class_loss.h"
#include "strata/generated/kernel_calls.h"
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

void check_target(int64_t t, int64_t classes) {
  STRATA_CHECK_INDEX(t >= 0 && t < classes, "Target ", t, " is out of bounds; there are ", classes, " classes");
}

int64_t classes_dim(const Tensor& self) { return self.dim() == 1 ? 0 : 1; }

float widen(float v) { return v; }
double widen(double v) { return v; }
float widen(BFloat16 v) { return to_float(v); }
float widen(Half v) { return to_float(v); }
void narrow(float v, float& to) { to = v; }
void narrow(double v, double& to) { to = v; }
void narrow(float v, BFloat16& to) { to = to_bfloat16(v); }
void narrow(float v, Half& to) { to = to_half(v); }

// f with a null pointer to the type of t's elements.
template <class F>
void visit_floats(DType t, F&& f) {
  if (t == DType::F64) return f(static_cast<double*>(nullptr));
  if (t == DType::F16) return f(static_cast<Half*>(nullptr));
  if (t == DType::BF16) return f(static_cast<BFloat16*>(nullptr));
  f(static_cast<float*>(nullptr));
}

// Of (n, classes, later dims), or of one sample's classes.
struct Space {
  Space(const Tensor& self, const Tensor& targets, const Tensor& weights, int64_t ignored)
      : classes(self.sizes()[classes_dim(self)]),
        target(as_contiguous(as_dtype(targets, DType::I64))),
        weight(weights.defined() ? as_contiguous(widened(weights)) : weights),
        ignore(ignored) {
    for (int64_t d = 2; d < self.dim(); ++d) positions *= self.sizes()[d];
  }

  // f(its number, its class, the place of that class's element in a contiguous tensor) for each target that counts,
  // ignored(its number) for each other one.
  template <class F, class I>
  void each(F&& f, I&& ignored) const {
    const int64_t* of = target.data<int64_t>();
    parallel_for(0, target.numel(), 8192, [&](int64_t begin, int64_t end) {
      int64_t sample = begin / positions, p = begin % positions;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t c = of[i];
        if (c == ignore) {
          ignored(i);
        } else {
          check_target(c, classes);
          f(i, c, (sample * classes + c) * positions + p);
        }
        if (++p == positions) p = 0, ++sample;
      }
    });
  }

  int64_t classes, positions = 1;
  Tensor target, weight;  // contiguous; int64, and widened or undefined
  int64_t ignore;
};

std::tuple<Tensor, Tensor> forward(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                                   int64_t ignore) {
  formulas::check_reduction(reduction, kNone);
  formulas::check_nll(self, target, weight, classes_dim(self));
  const DType t = self.dtype(), wide = wide_dtype(t);
  Tensor total = new_tensor(self, DimVec());
  const Space s(self, target, weight, ignore);
  const Tensor input = as_contiguous(self), losses = new_tensor(self, target.sizes(), wide),
               weights = new_tensor(self, target.sizes(), wide);
  visit_floats(t, [&](auto* element) {
    using Element = std::remove_pointer_t<decltype(element)>;
    using T = decltype(widen(*element));
    const Element* x = input.data<Element>();
    const T* w = s.weight.defined() ? s.weight.data<T>() : nullptr;
    T* loss = losses.data<T>();
    T* scale = weights.data<T>();
    s.each(
        [&](int64_t i, int64_t c, int64_t place) {
          scale[i] = w ? w[c] : T(1);
          loss[i] = -widen(x[place]) * scale[i];
        },
        [&](int64_t i) { loss[i] = scale[i] = 0; });
  });
  if (reduction == kNone) {
    fill_values(total, Scalar(0));
    return {as_dtype(losses, t), total};
  }
  Tensor sum = ops::sum(losses), count = ops::sum(weights);
  if (reduction == kMean) sum = ops::div(sum, count);
  return {as_dtype(sum, t), as_dtype(count, t)};
}

// to(the target's number, its place, the derivative by the element there) for each target that counts.
template <class Element, class F, class I>
void each_derivative(Element* element, const Space& s, const Tensor& grad, int64_t reduction, const Tensor& total,
                     F&& to, I&& ignored) {
  using T = decltype(widen(*element));
  const DType wide = sizeof(T) == 8 ? DType::F64 : DType::F32;
  const Tensor from = as_contiguous(as_dtype(grad, wide)), whole = as_dtype(total, wide);
  const T* w = s.weight.defined() ? s.weight.data<T>() : nullptr;
  const T* g = from.data<T>();
  const T divisor = reduction == kMean ? *whole.data<T>() : T(1);
  s.each(
      [&](int64_t i, int64_t c, int64_t place) {
        Element value;
        narrow(-g[reduction == kNone ? i : 0] / divisor * (w ? w[c] : T(1)), value);
        to(i, place, value);
      },
      ignored);
}

void check_shapes(const Tensor& self, const Tensor& target) {
  self.dim() == 4 ? formulas::check_nll2d_shapes(self, target) : formulas::check_nll_shapes(self, target);
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
  return forward(self, target, weight, reduction, ignore_index);
}

std::tuple<Tensor, Tensor> nll_loss2d_forward(const Tensor& self, const Tensor& target, const Tensor& weight,
                                              int64_t reduction, int64_t ignore_index) {
  formulas::check_nll2d_shapes(self, target);
  return forward(self, target, weight, reduction, ignore_index);
}

Tensor nll_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const Tensor& weight,
                         int64_t reduction, int64_t ignore_index, const Tensor& total_weight) {
  check_shapes(self, target);
  formulas::check_nll(self, target, weight, classes_dim(self));
  Tensor result = new_tensor(self, self.sizes());
  fill_values(result, Scalar(0));
  if (result.numel() == 0) return result;
  formulas::check_nll_grad(grad_output, target, reduction, total_weight);
  const Space s(self, target, weight, ignore_index);
  visit_floats(self.dtype(), [&](auto* element) {
    auto* to = result.data<std::remove_pointer_t<decltype(element)>>();
    each_derivative(
        element, s, grad_output, reduction, total_weight,
        [&](int64_t, int64_t place, auto value) { to[place] = value; }, [](int64_t) {});
  });
  return result;
}

// The elements at the targets' places apart from all others, which have 0 for their gradient.
Tensor nll_log_softmax_backward(const Tensor& grad_output, const Tensor& output, const Tensor& target,
                                const Tensor& weight, int64_t reduction, int64_t ignore_index,
                                const Tensor& total_weight) {
  check_shapes(output, target);
  const int64_t dim = classes_dim(output);
  formulas::check_nll(output, target, weight, dim);
  if (output.numel() == 0) return new_tensor(output, output.sizes());
  formulas::check_nll_grad(grad_output, target, reduction, total_weight);
  const DType t = output.dtype();
  const Space s(output, target, weight, ignore_index);
  const Tensor from = as_contiguous(output), values = new_tensor(output, target.sizes()),
               chosen = new_tensor(output, target.sizes()), none = new_tensor(output, DimVec());
  fill_values(none, Scalar(0));
  visit_floats(t, [&](auto* element) {
    using Element = std::remove_pointer_t<decltype(element)>;
    const Element* x = from.data<Element>();
    Element* value = values.data<Element>();
    Element* own = chosen.data<Element>();
    each_derivative(
        element, s, grad_output, reduction, total_weight,
        [&](int64_t i, int64_t place, Element v) {
          value[i] = v;
          own[i] = x[place];
        },
        [&](int64_t i) { value[i] = own[i] = Element{}; });
  });
  const Tensor total = s.classes > 1 ? ops::add(values, Scalar(0)) : values;
  DimVec sizes(output.sizes());
  sizes[dim] = 1;
  const Tensor result = calls::log_softmax_derivative(none, from, ops::reshape(total, sizes));
  const Tensor own = calls::log_softmax_derivative(values, chosen, total);
  visit_floats(t, [&](auto* element) {
    using Element = std::remove_pointer_t<decltype(element)>;
    const Element* v = own.data<Element>();
    Element* to = result.data<Element>();
    s.each([&](int64_t i, int64_t, int64_t place) { to[place] = v[i]; }, [](int64_t) {});
  });
  return result;
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
