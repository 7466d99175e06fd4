// Speed of printed kernels on one thread, in L2: 256 KiB per buffer, or rows of 1,024.
#include <chrono>
#include <cstdio>

#include "harness.h"

namespace strata::lower::test {
namespace {

using Clock = std::chrono::steady_clock;

template <class F>
double best_seconds(F f) {
  double best = 1e9;
  for (int rep = 0; rep < 15; ++rep) {
    auto t = Clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - t).count());
  }
  return best;
}

void pointwise(const Library& lib, const char* name, DType t) {
  auto at = lib.kernels.find({name, t});
  if (at == lib.kernels.end()) return;
  const StrataKernelEntry& e = *at->second;
  std::mt19937_64 rng(3);
  int64_t n = 256 * 1024 / itemsize(t) / 16 * 16;
  Call c = make_call(find_desc(name), t, n, rng, true);
  std::vector<Buffer> out;
  for (int k = 0; k < e.outputs; ++k) out.emplace_back(DType(e.output_dtype[k]), n);
  std::vector<char*> ptr;
  std::vector<int64_t> step;
  for (Buffer& b : out) ptr.push_back(b.data()), step.push_back(16 * itemsize(b.type));
  for (Buffer& b : c.inputs) ptr.push_back(b.data()), step.push_back(16 * itemsize(b.type));
  int32_t status = 0;
  double s = best_seconds([&] {
    for (int k = 0; k < 20; ++k) e.pointwise(ptr.data(), step.data(), c.params.data(), n / 16, 0, &status);
  });
  std::printf("%-14s %-10s %-5s %7.2f Gelem/s\n", lib.name.c_str(), name, traits(t).cname, 20 * double(n) / s / 1e9);
}

// rows x 1024 with the passes row after row; `resident`: the same 64 rows again and again.
void rows(const Library& lib, const char* name, DType t, int64_t n, bool resident) {
  auto at = lib.kernels.find({name, t});
  if (at == lib.kernels.end()) return;
  const StrataKernelEntry& e = *at->second;
  std::mt19937_64 rng(3);
  int64_t count = 4096, kept = resident ? 64 : count;
  Call c = make_call(find_desc(name), t, n * kept, rng, true);
  std::vector<Buffer> out;
  for (int k = 0; k < e.outputs; ++k) out.emplace_back(DType(e.output_dtype[k]), n * kept);
  Buffer scratch(DType::C128, n);
  alignas(16) char slots[16 * 8];
  std::vector<char*> ptr(out.size() + c.inputs.size());
  double s = best_seconds([&] {
    for (int64_t r = 0; r < count; ++r) {
      int64_t first = r % kept * n;
      for (size_t k = 0; k < out.size(); ++k) ptr[k] = out[k].data() + first * itemsize(out[k].type);
      for (size_t k = 0; k < c.inputs.size(); ++k)
        ptr[out.size() + k] =
            c.inputs[k].data() + (c.info.inputs[k].name == "weight" || c.info.inputs[k].name == "bias" ? 0 : first) *
                                     itemsize(c.inputs[k].type);
      char* scratch_rows[] = {scratch.data(), scratch.data()};
      int done = 0;
      for (int p = 0; p < e.passes; ++p) {
        bool per_row = p + 1 == e.passes && !e.pass[p].elementwise;
        StrataRowArgs args{ptr.data(), c.params.data(), slots, scratch_rows, slots + 16 * done, per_row ? 1 : n, 0,
                           n,          nullptr};
        e.pass[p].fn(&args);
        done += e.pass[p].reductions;
      }
    }
  });
  std::printf("%-14s %-10s %-5s %7.2f Gelem/s  rows of %ld, %.2f ms, %s\n", lib.name.c_str(), name, traits(t).cname,
              double(n) * double(count) / s / 1e9, long(n), 1000 * s, resident ? "in L2" : "from memory");
}

}  // namespace

void bench(const std::vector<Library>& libs, const std::string& only) {
  for (const Library& lib : libs) {
    if (lib.name.find(only) == std::string::npos) continue;
    for (const char* name : {"add", "sigmoid", "sincos", "gelu", "adamw", "round"})
      for (DType t : {DType::F32, DType::BF16, DType::F64, DType::I64, DType::I32}) pointwise(lib, name, t);
    pointwise(lib, "casts", DType::F32);
    pointwise(lib, "floor_divide", DType::I64);
    for (const char* name : {"sum", "max", "argmax", "softmax", "log_softmax", "layer_norm"})
      for (DType t : {DType::F32, DType::BF16}) rows(lib, name, t, 1024, true);
    rows(lib, "sum", DType::F32, 1024, false);
    rows(lib, "sum", DType::F32, 64, true);
    rows(lib, "sum", DType::F32, 256, true);
    rows(lib, "softmax", DType::F32, 64, true);
  }
}

}  // namespace strata::lower::test
