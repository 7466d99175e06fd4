// Connectionist temporal classification (Graves et al., 2006). Of a target of L labels, state 2 i + 1 stands for label
// i and the even ones for the blanks around them: 2 L + 1 states. Computed in float64, rounded where it is stored. The
// states of one place of time are independent of each other: printed kernels make them 16 at a time.
#include <algorithm>
#include <limits>
#include <vector>

#include "core/math.h"
#include "core/parallel.h"
#include "run/copy.h"
#include "run/kernels.h"
#include "strata/generated/by_hand/ctc.h"

namespace strata::eager {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr int64_t kGrain = 1000;  // states, a few microseconds each dozen

// exp(x), at once where it is 1 or nothing.
double share_of(double x) { return x == 0 ? 1 : x == kNever ? 0 : math::exp(x); }

// log(exp(a) + exp(b) + exp(c)); of three kNever itself.
double log_sum(double a, double b, double c) {
  const double top = std::max(std::max(a, b), c);
  if (top == kNever) return top;
  const double sum = share_of(a - top) + share_of(b - top) + share_of(c - top);
  return sum == 1 ? top : math::log(sum) + top;
}

// One sample: its states' classes, and where its values lie.
struct Sample {
  int64_t time;                // places that count
  std::vector<int64_t> label;  // of each state
  int64_t first;               // of its states in a row of log_alpha
  int64_t states() const { return int64_t(label.size()); }
  // Whether a state is reached from the one two before it: a blank between two labels may be left out where they
  // differ.
  bool skips(int64_t s) const { return s > 1 && label[size_t(s)] != label[size_t(s - 2)]; }
};

struct Problem {
  int64_t time, batch, classes, width;  // width: states in a row of log_alpha
  bool rows;
  Tensor log_probs, targets;
  std::vector<int64_t> input_lengths, target_lengths;
};

std::vector<int64_t> values(const Tensor& lengths) {
  const Tensor t = as_contiguous(as_dtype(lengths, DType::I64));
  return std::vector<int64_t>(t.data<int64_t>(), t.data<int64_t>() + t.numel());
}

void check_lengths(const char* name, const std::vector<int64_t>& lengths, int64_t most) {
  for (int64_t n : lengths)
    STRATA_CHECK(0 <= n && n <= most, "ctc_loss: expected ", name, " to have values from 0 to ", most, ", but got ", n);
}

Problem problem(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths) {
  Problem p{log_probs.sizes()[0], log_probs.sizes()[1], log_probs.sizes()[2], 0, targets.dim() == 2};
  p.log_probs = as_contiguous(log_probs);
  p.targets = as_contiguous(as_dtype(targets, DType::I64));
  p.input_lengths = values(input_lengths);
  p.target_lengths = values(target_lengths);
  const int64_t longest = targets.sizes()[targets.dim() - 1];
  p.width = 2 * longest + (p.rows ? 1 : p.batch);
  check_lengths("input_lengths", p.input_lengths, p.time);
  check_lengths("target_lengths", p.target_lengths, longest);
  int64_t sum = 0;
  for (int64_t n : p.target_lengths) sum += n;
  STRATA_CHECK(p.rows || sum == longest, "ctc_loss: expected targets to have size ", sum,
               ", the sum of target_lengths, at dimension 0, but got size ", longest);
  return p;
}

std::vector<Sample> samples(const Problem& p, int64_t blank) {
  std::vector<Sample> all;
  const int64_t* targets = p.targets.data<int64_t>();
  int64_t before = 0;  // targets of the samples before
  for (int64_t n = 0; n < p.batch; ++n) {
    const int64_t count = p.target_lengths[size_t(n)];
    const int64_t* mine = targets + (p.rows ? n * p.targets.sizes()[1] : before);
    Sample s{p.input_lengths[size_t(n)], std::vector<int64_t>(size_t(2 * count + 1), blank),
             p.rows ? n * p.time * p.width : 2 * before + n};
    for (int64_t i = 0; i < count; ++i) {
      STRATA_CHECK(mine[i] >= 0 && mine[i] < p.classes, "ctc_loss: expected targets from 0 to ", p.classes - 1,
                   ", the classes of log_probs, but got ", mine[i]);
      s.label[size_t(2 * i + 1)] = mine[i];
    }
    before += count;
    all.push_back(std::move(s));
  }
  return all;
}

int64_t grain(const Problem& p) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, p.time * p.width)); }

// A row of float64 in whole blocks of a kernel, between values that no kernel writes: before and after it there are two
// states that nothing reaches.
class Row {
 public:
  explicit Row(int64_t count, double value = kNever)
      : values_(size_t(blocks_of(count) * kBlock + 2 * kEdge), value), count_(count) {}
  static int64_t blocks_of(int64_t count) { return (count + kBlock - 1) / kBlock; }
  int64_t blocks() const { return blocks_of(count_); }
  double* data() { return values_.data() + kEdge; }
  double& operator[](int64_t k) { return data()[k]; }
  void swap(Row& other) { values_.swap(other.values_); }

 private:
  static constexpr int64_t kBlock = 16, kEdge = 2;
  std::vector<double> values_;
  int64_t count_;
};

// A kernel of the table over rows of one length.
class RowsKernel {
 public:
  explicit RowsKernel(const char* name, double scalar = 0) : entry_(find_kernel(name, DType::F64)), params_{scalar, 0} {
    STRATA_INTERNAL(entry_, "no kernel ", name);
  }
  template <class... Inputs>
  void operator()(Row& out, const Inputs*... in) const {
    char* ptr[] = {bytes(out.data()), bytes(in)...};
    int64_t step[1 + sizeof...(in)];
    std::fill(std::begin(step), std::end(step), int64_t(16 * sizeof(double)));
    int32_t status = 0;
    entry_->pointwise(ptr, step, params_, out.blocks(), 0, &status);
  }

 private:
  static char* bytes(const double* p) { return reinterpret_cast<char*>(const_cast<double*>(p)); }
  const StrataKernelEntry* entry_;
  alignas(16) double params_[2];
};

template <class T>
double forward(const Problem& p, const Sample& s, int64_t n, T* log_alpha) {
  const T* logs = p.log_probs.data<T>() + n * p.classes;
  const int64_t states = s.states(), step = p.batch * p.classes;
  if (s.time == 0) return states == 1 ? 0 : -kNever;
  const RowsKernel reach("ctc_step");
  Row now(states), next(states), log(states), skips(states, 0);
  for (int64_t k = 0; k < states; ++k) skips[k] = s.skips(k);
  for (int64_t k = 0; k < std::min<int64_t>(2, states); ++k) now[k] = double(logs[s.label[size_t(k)]]);
  for (int64_t t = 0;; ++t) {
    for (int64_t k = 0; k < states; ++k) log_alpha[t * p.width + k] = T(now[k]);
    if (t + 1 == s.time) break;
    logs += step;
    for (int64_t k = 0; k < states; ++k) log[k] = double(logs[s.label[size_t(k)]]);
    reach(next, now.data(), now.data() - 1, now.data() - 2, skips.data(), log.data());
    now.swap(next);
  }
  return -log_sum(now[states - 1], now[states - 2], kNever);
}

template <class T>
void backward(const Problem& p, const Sample& s, int64_t n, double loss, double grad, const T* log_alpha, T* out) {
  const int64_t states = s.states(), step = p.batch * p.classes;
  const T* all = p.log_probs.data<T>() + n * p.classes;
  const RowsKernel reach("ctc_step"), share("ctc_share", loss), gradient("ctc_gradient", grad);
  Row now(states), next(states), log(states), skips(states, 0), alpha(states), through(states);
  Row class_log(p.classes), weight(p.classes, 0), result(p.classes);
  for (int64_t k = 2; k < states; ++k) skips[k - 2] = s.skips(k);
  for (int64_t t = s.time; t-- > 0;) {
    const T* logs = all + t * step;
    // What all alignments through a class weigh; no number where the loss or the class is infinite.
    for (int64_t c = 0; c < p.classes; ++c) {
      class_log[c] = double(logs[c]);
      weight[c] = loss == -kNever || class_log[c] == kNever ? std::numeric_limits<double>::quiet_NaN() : 0;
    }
    for (int64_t k = 0; k < states; ++k) {
      log[k] = class_log[s.label[size_t(k)]];
      alpha[k] = double(log_alpha[t * p.width + k]);
    }
    if (t == s.time - 1)
      for (int64_t k = std::max<int64_t>(0, states - 2); k < states; ++k) next[k] = log[k];
    else
      reach(next, now.data(), now.data() + 1, now.data() + 2, skips.data(), log.data());
    share(through, alpha.data(), next.data(), log.data());
    for (int64_t k = states; k-- > 0;) weight[s.label[size_t(k)]] += through[k];
    now.swap(next);
    gradient(result, class_log.data(), weight.data());
    for (int64_t c = 0; c < p.classes; ++c) out[t * step + c] = T(result[c]);
  }
}

template <class F>
void visit_dtype(DType t, F&& f) {
  t == DType::F64 ? f(double()) : f(float());
}

}  // namespace

void ctc_loss(const Tensor& losses, const Tensor& log_alpha, const Tensor& log_probs, const Tensor& targets,
              const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank, bool) {
  const Problem p = problem(log_probs, targets, input_lengths, target_lengths);
  const std::vector<Sample> all = samples(p, blank);
  visit_dtype(p.log_probs.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* alpha = log_alpha.data<T>();
    std::fill_n(alpha, log_alpha.numel(), T(kNever));  // states that a target lacks, and time after the input's end
    parallel_for(0, p.batch, grain(p), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n)
        losses.data<T>()[n] = T(forward<T>(p, all[size_t(n)], n, alpha + all[size_t(n)].first));
    });
  });
}

void ctc_loss_backward(const Tensor& result, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                       const Tensor& input_lengths, const Tensor& target_lengths, const Tensor& neg_log_likelihood,
                       const Tensor& log_alpha, int64_t blank, bool zero_infinity) {
  const Problem p = problem(log_probs, targets, input_lengths, target_lengths);
  const std::vector<Sample> all = samples(p, blank);
  const Tensor grads = as_contiguous(grad), losses = as_contiguous(neg_log_likelihood),
               alpha = as_contiguous(log_alpha);
  visit_dtype(p.log_probs.dtype(), [&](auto tag) {
    using T = decltype(tag);
    std::fill_n(result.data<T>(), result.numel(), T(0));
    parallel_for(0, p.batch, grain(p), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const double loss = double(losses.data<T>()[n]);
        if (zero_infinity && loss == -kNever) continue;
        backward<T>(p, all[size_t(n)], n, loss, double(grads.data<T>()[n]), alpha.data<T>() + all[size_t(n)].first,
                    result.data<T>() + n * p.classes);
      }
    });
  });
}

}  // namespace strata::eager
