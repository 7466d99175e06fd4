// Times the generated matrix products beside a library in the same process, alternating blocks, medians.
// Usage: bench_gemm kernels.so level(v3, v4, base) [libstrata_onednn.so] [threads]
// kernels.so is the printed text of lower/print/gemm.h, compiled; gemm_check leaves such files in its work folder.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "open_library.h"
#include "ops/conv/generated.h"
#include "ops/matmul/gemm.h"

namespace {

using namespace strata::eager;
using Clock = std::chrono::steady_clock;

void omp_parallel_for(int64_t begin, int64_t end, int64_t grain, void (*body)(void*, int64_t, int64_t), void* ctx) {
  int64_t pieces = (end - begin + grain - 1) / grain;
#pragma omp parallel
  {
    int64_t team = omp_get_num_threads(), me = omp_get_thread_num();
    int64_t first = pieces * me / team, last = pieces * (me + 1) / team;
    if (first < last) body(ctx, begin + first * grain, std::min(begin + last * grain, end));
  }
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

template <class F>
double block(F&& f, int calls) {
  auto start = Clock::now();
  for (int i = 0; i < calls; ++i) f();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / calls;
}

struct Case {
  int64_t m, n, k;
  bool ta, tb;
  int64_t batch = 1;
};

void compare(const GemmKernel& kernel, const char* dtype, const Case& q, const StrataLibrary* lib, int threads) {
  int64_t bytes = kernel.element_bytes, na = q.m * q.k, nb = q.k * q.n, nc = q.m * q.n;
  std::mt19937 generator(5);
  std::normal_distribution<float> normal;
  auto fill = [&](int64_t n) {
    std::vector<char> v(n * bytes + 64);
    for (int64_t i = 0; i < n; ++i) {
      float x = normal(generator);
      double d = x;
      if (bytes == 2)
        std::memcpy(&v[i * 2], reinterpret_cast<char*>(&x) + 2, 2);
      else if (bytes == 4)
        std::memcpy(&v[i * 4], &x, 4);
      else
        std::memcpy(&v[i * 8], &d, 8);
    }
    return v;
  };
  std::vector<char> a = fill(na * q.batch), b = fill(nb * q.batch), c = fill(nc * q.batch), d = c;
  GemmCall call{};
  call.m = q.m, call.n = q.n, call.k = q.k, call.batch = q.batch;
  call.a = a.data(), call.a_row = q.ta ? 1 : q.k, call.a_col = q.ta ? q.m : 1, call.a_batch = na;
  call.b = b.data(), call.b_row = q.tb ? 1 : q.n, call.b_col = q.tb ? q.k : 1, call.b_batch = nb;
  call.c = c.data(), call.c_row = q.n, call.c_batch = nc;
  GemmThreads team{threads, omp_parallel_for};
  auto ours = [&] { gemm(kernel, call, team); };

  StrataMatmul p{};
  p.size = sizeof p, p.dtype = bytes == 2, p.batch = q.batch, p.m = q.m, p.n = q.n, p.k = q.k, p.alpha = 1;
  p.a = a.data(), p.a_row = call.a_row, p.a_col = call.a_col, p.a_batch = na;
  p.b = b.data(), p.b_row = call.b_row, p.b_col = call.b_col, p.b_batch = nb;
  p.c = d.data(), p.c_row = q.n, p.c_batch = nc;
  auto theirs = [&] { lib->matmul(&p); };
  bool both = lib && bytes <= 4;

  ours();
  if (both) theirs();
  int calls = std::clamp(static_cast<int>(2e4 / block(ours, 1)), 1, 5000);
  std::vector<double> mine, other;
  for (int round = 0; round < 11; ++round) {
    mine.push_back(block(ours, calls));
    if (both) other.push_back(block(theirs, calls));
  }
  double us = median(mine), flops = 2.0 * q.batch * q.m * q.n * q.k;
  std::printf("%-4s %4ld x (%5ld,%5ld,%5ld) %c%c  generated %10.2f us %7.1f GFLOP/s", dtype, q.batch, q.m, q.n, q.k,
              "NT"[q.ta], "NT"[q.tb], us, flops / us * 1e-3);
  if (both) std::printf("   library %10.2f us   speed ratio %.2f", median(other), median(other) / us);
  std::printf("\n");
  std::fflush(stdout);
}

void compare_conv(const GemmKernel& kernel, const StrataLibrary* lib, int threads, char pass, bool last, int64_t batch,
                  int64_t in, int64_t size, int64_t out, int64_t window, int64_t stride) {
  int64_t pad = window / 2, result = (size + 2 * pad - window) / stride + 1;
  StrataConvolution s{};
  s.size = sizeof s, s.spatial = 2, s.batch = batch, s.groups = 1, s.in_channels = in, s.out_channels = out;
  for (int d = 0; d < 2; ++d) {
    s.input[d] = size, s.output[d] = result, s.kernel[d] = window, s.stride[d] = stride;
    s.padding[d] = pad, s.dilation[d] = 1;
  }
  auto strides = [last](int64_t* to, int64_t c, int64_t side) {
    to[0] = c * side * side, to[1] = last ? 1 : side * side;
    to[2] = last ? side * c : side, to[3] = last ? c : 1;
  };
  strides(s.input_strides, in, size);
  strides(s.output_strides, out, result);
  strides(s.weight_strides, in, window);
  std::vector<float> x(batch * in * size * size, 0.5f), w(out * in * window * window, 0.25f),
      y(batch * out * result * result, 1);
  GemmThreads team{threads, omp_parallel_for};
  auto ours = [&] {
    if (pass == 'f') conv_forward_generated(kernel, s, x.data(), w.data(), nullptr, y.data(), team);
    if (pass == 'd') conv_backward_data_generated(kernel, s, y.data(), w.data(), x.data(), team);
    if (pass == 'w') conv_backward_weights_generated(kernel, s, x.data(), y.data(), w.data(), team);
  };
  auto theirs = [&] {
    if (!lib) return;
    if (pass == 'f') lib->conv_forward(&s, x.data(), w.data(), nullptr, y.data());
    if (pass == 'd') lib->conv_backward_data(&s, y.data(), w.data(), x.data());
    if (pass == 'w') lib->conv_backward_weights(&s, x.data(), y.data(), w.data(), nullptr);
  };
  ours();
  theirs();
  int calls = std::clamp(static_cast<int>(2e4 / block(ours, 1)), 1, 1000);
  std::vector<double> mine, other;
  for (int round = 0; round < 9; ++round) {
    mine.push_back(block(ours, calls));
    other.push_back(block(theirs, calls));
  }
  double us = median(mine), flops = 2.0 * batch * out * result * result * in * window * window;
  std::printf("conv %c %s %ld x %ld x %ld -> %ld window %ld stride %ld  generated %10.2f us %7.1f GFLOP/s", pass,
              last ? "last " : "plain", batch, in, size, out, window, stride, us, flops / us * 1e-3);
  if (lib) std::printf("   library %10.2f us   speed ratio %.2f", median(other), median(other) / us);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_gemm kernels.so level [library] [threads]\n");
    return 2;
  }
  int threads = argc > 4 ? std::atoi(argv[4]) : 2;
  omp_set_num_threads(threads);
  const StrataLibrary* lib = argc > 3 && *argv[3] ? open_library(argv[3]) : nullptr;
  if (lib) lib->set_threads(threads);
  void* handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  std::vector<Case> cases = {
      {1024, 1024, 1024, 0, 0}, {1024, 1024, 1024, 1, 1}, {2048, 2048, 2048, 0, 0}, {1000, 1000, 1000, 0, 0},
      {512, 512, 512, 0, 0},    {256, 256, 256, 0, 0},    {64, 512, 784, 0, 0},     {64, 512, 784, 0, 1},
      {784, 512, 64, 1, 0},     {128, 768, 3072, 0, 1},   {64, 10, 512, 0, 1},      {1, 1000, 2048, 0, 1},
      {1, 1000, 2048, 0, 0},    {1000, 1, 1000, 0, 0},    {2048, 50, 2048, 0, 0},   {512, 64, 512, 0, 1, 12},
      {4, 4, 4, 0, 0},          {8, 8, 8, 0, 0},          {16, 16, 16, 0, 0},       {16, 16, 16, 0, 1},
      {32, 32, 32, 0, 0},       {64, 64, 64, 0, 0},       {64, 64, 64, 0, 1},       {128, 128, 128, 0, 0}};
  for (const char* dtype : {"f32", "bf16", "f64"}) {
    std::string name = std::string("gemm_") + dtype + "_" + argv[2];
    const auto* kernel = static_cast<const GemmKernel*>(dlsym(handle, name.c_str()));
    if (!kernel) continue;
    for (const Case& q : cases) compare(*kernel, dtype, q, lib, threads);
  }
  std::string name = std::string("gemm_f32_") + argv[2];
  const auto& f32 = *static_cast<const GemmKernel*>(dlsym(handle, name.c_str()));
  for (char pass : {'f', 'd', 'w'}) {
    for (bool last : {false, true}) {
      compare_conv(f32, lib, threads, pass, last, 8, 64, 56, 64, 3, 1);
      compare_conv(f32, lib, threads, pass, last, 1, 512, 7, 512, 3, 1);
      compare_conv(f32, lib, threads, pass, last, 8, 128, 56, 128, 3, 2);
      compare_conv(f32, lib, threads, pass, last, 4, 256, 28, 512, 1, 1);
    }
  }
  return 0;
}
