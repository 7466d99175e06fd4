// Times small calls from C++: one source for both libraries, so that both sides do the same. Compiled with
// -DPEER_TORCH it uses PyTorch's. Reads names from standard input and answers with seconds per call; with arguments
// NAME COUNT it makes that many calls and ends (for counting instructions).
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#ifdef PEER_TORCH
#include <ATen/ATen.h>
namespace lib = at;
using at::Tensor;
static Tensor leaf() { return at::ones({2, 2}).requires_grad_(true); }
#else
#include "grad/engine/variable.h"
#include "strata/generated/ops.h"
namespace lib = strata::ops;
using strata::Tensor;
static Tensor leaf() {
  Tensor t = lib::ones({2, 2});
  strata::set_requires_grad(t, true);
  return t;
}
#endif

namespace {

template <class F>
void repeat(int64_t n, F&& f) {
  for (int64_t i = 0; i < n; ++i) f();
}

using Work = void (*)(int64_t);
const std::map<std::string, Work> work = {
    {"add",
     [](int64_t n) {
       Tensor a = lib::ones({2, 2}), b = lib::ones({2, 2});
       repeat(n, [&] { Tensor c = lib::add(a, b); });
     }},
    {"add_grad",
     [](int64_t n) {
       Tensor a = leaf(), b = lib::ones({2, 2});
       repeat(n, [&] { Tensor c = lib::add(a, b); });
     }},
    {"view",
     [](int64_t n) {
       Tensor a = lib::ones({2, 2});
       repeat(n, [&] { Tensor c = a.view({4}); });
     }},
    {"empty", [](int64_t n) { repeat(n, [] { Tensor c = lib::empty({2, 2}); }); }},
};

}  // namespace

int main(int count, char** args) {
  if (count == 3) {
    work.at(args[1])(std::atoll(args[2]));
    return 0;
  }
  std::string name;
  while (std::cin >> name) {
    auto found = work.find(name);
    if (found == work.end()) {
      std::cerr << "calls: no workload " << name << "\n";
      return 1;
    }
    constexpr int64_t n = 50000;
    found->second(n / 10);
    auto start = std::chrono::steady_clock::now();
    found->second(n);
    std::cout << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / n << std::endl;
  }
}
