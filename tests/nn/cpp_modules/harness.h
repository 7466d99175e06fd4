// Runs one case after the other and prints what it computes. A case is the text of Python's expression beside C++'s
// own: the test reads the text from the output, evaluates it and compares.
#pragma once
#include <strata/strata.h>

#include <functional>
#include <string>

namespace harness {

namespace nn = strata::nn;
namespace optim = strata::optim;
using strata::Tensor;
using Tensors = std::vector<Tensor>;

// Name, sizes and a checksum of the bytes.
void put(const std::string& name, const Tensor& t);

inline void flatten(const Tensor& t, Tensors& out) {
  if (t.defined()) out.push_back(t);
}
template <class... T>
void flatten(const std::tuple<T...>& all, Tensors& out) {
  std::apply([&](const auto&... each) { (flatten(each, out), ...); }, all);
}
template <class A, class B>
void flatten(const std::pair<A, B>& all, Tensors& out) {
  flatten(all.first, out);
  flatten(all.second, out);
}

// Inputs by text, with blanks between: KIND:SIZES with KIND f (normal, learns), n (normal), r (uniform, learns),
// p (uniform), l (log-probabilities, learns), s (1 or -1), b (true or false), iN (integers below N).
Tensors drawn(const std::string& text);

struct Made {
  std::shared_ptr<nn::Module> module;
  std::function<Tensors(const Tensors&)> call;
};
// Parameters, results, gradients and buffers in training, then results in evaluation.
void module_case(const char* python, const char* call, const char* inputs, const std::function<Made()>& make);

template <class M, class... Argument>
concept Takes = requires(M& m, const Argument&... t) { m.forward(t...); };

template <class M>
Tensors call(const M& m, const Tensors& x) {
  using H = typename M::Held;
  Tensors out;
  if constexpr (Takes<H, Tensor>)
    if (x.size() == 1) flatten(m(x[0]), out);
  if constexpr (Takes<H, Tensor, Tensor>)
    if (x.size() == 2) flatten(m(x[0], x[1]), out);
  if constexpr (Takes<H, Tensor, Tensor, Tensor>)
    if (x.size() == 3) flatten(m(x[0], x[1], x[2]), out);
  if constexpr (Takes<H, Tensor, Tensor, Tensor, Tensor>)
    if (x.size() == 4) flatten(m(x[0], x[1], x[2], x[3]), out);
  return out;
}

// An optimiser takes five steps; then its rates go through what a schedule makes of them in twenty.
using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const Tensors&)>;
void optimizer_case(const char* python, const MakeOptimizer& make);
using MakeSchedule = std::function<std::function<void(int)>(optim::Optimizer&)>;
void schedule_case(const char* python, const MakeSchedule& make);

void layers();
void images();
void losses();
void sequences();
void optimizers();

}  // namespace harness

// The module, which is called with its inputs in their order.
#define MODULE(PYTHON, INPUTS, ...)                                                                \
  harness::module_case(PYTHON, "m(*x)", INPUTS, [] {                                               \
    auto m = __VA_ARGS__;                                                                          \
    return harness::Made{m.ptr(), [m](const harness::Tensors& x) { return harness::call(m, x); }}; \
  })
// The module `m`, the texts of a call with the inputs `x` in Python and in C++.
#define MODULE_CALL(PYTHON, PYTHON_CALL, INPUTS, CALL, ...)        \
  harness::module_case(PYTHON, PYTHON_CALL, INPUTS, [] {           \
    auto m = __VA_ARGS__;                                          \
    return harness::Made{m.ptr(), [m](const harness::Tensors& x) { \
                           harness::Tensors out;                   \
                           harness::flatten(CALL, out);            \
                           return out;                             \
                         }};                                       \
  })
