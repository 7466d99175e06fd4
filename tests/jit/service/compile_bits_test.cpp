// Kernels of the table, printed and compiled when the test runs, give the bits of those that the build has linked: by
// the plugin and by the system's compiler, at every instruction set of the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/env.h"
#include "core/tensor.h"
#include "kit.h"
#include "run/kernels.h"

namespace strata::jit::test {
namespace {

using lower::Isa;
constexpr int64_t kCount = 208;  // elements: 13 blocks

// Float16 is float32's kernel between conversions: no kernel of its own.
const StrataKernelEntry* linked(const char* name, DType dtype, Isa isa) {
  eager::set_cpu_isa(lower::isa_name(isa));
  const StrataKernelEntry* e = eager::find_kernel(name, dtype);
  return e && e->dtype == int(dtype) && (e->pointwise || e->pass) ? e : nullptr;
}

struct Memory {
  explicit Memory(size_t bytes) : words(bytes / 8 + 32) {}
  char* data() { return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(words.data()) + 63) & ~uintptr_t{63}); }
  std::vector<uint64_t> words;
};

// Small numbers, with some of the extremes between them.
double number(std::mt19937& random, DType t) {
  const uint32_t r = random();
  if (!is_float(t) && !is_complex(t)) return t == DType::Bool ? r & 1 : double(r % 90) + 1;
  static const double odd[] = {0., -0., INFINITY, -INFINITY, NAN, 1e-40, 3e38, 0.5};
  return r % 16 == 0 ? odd[(r >> 8) % std::size(odd)] : std::uniform_real_distribution<double>(-6, 6)(random);
}
void fill(char* to, DType t, int64_t count, std::mt19937& random) {
  const DType part = traits(t).component;
  const int64_t n = is_complex(t) ? 2 * count : count;
  for (int64_t i = 0; i < n; ++i) {
    const double x = number(random, part);
    switch (part) {
      case DType::F64:
        std::memcpy(to + 8 * i, &x, 8);
        break;
      case DType::F32: {
        auto v = float(x);
        std::memcpy(to + 4 * i, &v, 4);
        break;
      }
      case DType::BF16: {
        auto v = to_bfloat16(float(x));
        std::memcpy(to + 2 * i, &v, 2);
        break;
      }
      case DType::F16: {
        auto v = to_half(float(x));
        std::memcpy(to + 2 * i, &v, 2);
        break;
      }
      default: {
        auto v = int64_t(x);
        std::memcpy(to + itemsize(part) * i, &v, size_t(itemsize(part)));
      }
    }
  }
}

// Bytes that stand for a value: every NaN is one, since compilers may take either operand's.
std::string plain(const char* from, DType t, int64_t count) {
  const DType part = traits(t).component;
  const int64_t n = is_complex(t) ? 2 * count : count, size = itemsize(part);
  std::string out(from, size_t(n * size));
  for (int64_t i = 0; i < n && is_float(part); ++i) {
    char* p = out.data() + i * size;
    bool nan = false;
    if (part == DType::F64) {
      double v;
      std::memcpy(&v, p, 8);
      nan = v != v;
    }
    if (part == DType::F32) {
      float v;
      std::memcpy(&v, p, 4);
      nan = v != v;
    }
    if (part == DType::BF16) {
      BFloat16 v;
      std::memcpy(&v, p, 2);
      nan = std::isnan(to_float(v));
    }
    if (part == DType::F16) {
      Half v;
      std::memcpy(&v, p, 2);
      nan = std::isnan(to_float(v));
    }
    if (nan) std::memset(p, 0x7f, size_t(size));
  }
  return out;
}

// Everything that a kernel writes, for inputs that the seed makes.
std::string results(const StrataKernelEntry& e, const lower::KernelInfo& info, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Memory> memory, scratch;
  std::vector<char*> ptr, rows;
  std::vector<int64_t> step;
  auto add = [&](const lower::Operand& o, bool filled) {
    memory.emplace_back(size_t(kCount * 16));
    if (filled) fill(memory.back().data(), o.storage, kCount, random);
    step.push_back(16 * itemsize(o.storage));
  };
  for (const lower::Operand& o : info.outputs) add(o, false);
  for (const lower::Operand& o : info.inputs) add(o, true);
  for (Memory& m : memory) ptr.push_back(m.data());
  for (size_t k = 0; k < info.scratch.size(); ++k) scratch.emplace_back(size_t(kCount * 16));
  for (Memory& m : scratch) rows.push_back(m.data());
  Memory params(16 * (info.scalars.size() + 1)), reduced(16 * 16), partial(16 * 16);
  for (size_t k = 0; k < info.scalars.size(); ++k) fill(params.data() + 16 * k, info.scalars[k].type, 1, random);
  int32_t status = 0;
  std::string out;
  if (e.pointwise) {
    e.pointwise(ptr.data(), step.data(), params.data(), kCount / 16, 0, &status);
  } else {
    size_t known = 0;
    for (int p = 0; p < e.passes; ++p) {
      StrataRowArgs args{ptr.data(),  params.data(),  reduced.data(),
                         rows.data(), partial.data(), e.pass[p].elementwise || e.pass[p].reductions ? kCount - 3 : 1,
                         0,           kCount - 3,     &status};
      e.pass[p].fn(&args);
      // One part is the whole row: its partial results are the results.
      for (int r = 0; r < e.pass[p].reductions; ++r, ++known)
        std::memcpy(reduced.data() + 16 * known, partial.data() + 16 * r, 16);
    }
  }
  for (size_t k = 0; k < info.outputs.size(); ++k)
    out += plain(ptr[k], info.outputs[k].storage, info.outputs[k].per_row ? 1 : e.pointwise ? kCount : kCount - 3);
  return out + char('0' + status);
}

// Number of kernels compared.
int compare(Compiler& compiler, const lower::KernelDesc& desc, DType dtype, Isa isa) {
  const StrataKernelEntry* of_build = linked(desc.name, dtype, isa);
  if (!of_build) return 0;
  const Request request{lower::print_kernel(desc, dtype, isa), isa};
  Program program(request, compiler.name(), compiler.object(request));
  const auto* file = static_cast<const StrataKernelFile*>(
      program.symbol(str_cat("strata_kernels_", lower::isa_name(isa), '_', desc.name)));
  const lower::KernelInfo info = lower::describe(desc, dtype);
  EXPECT_EQ(file->count, 1);
  EXPECT_EQ(results(file->entries[0], info, 11), results(*of_build, info, 11))
      << desc.name << ' ' << dtype << ' ' << lower::isa_name(isa) << " by " << compiler.name();
  return 1;
}

const char* const kFew[] = {"silu", "softmax_rows", "lgamma", "norm_rows", "dot_rows"};

// Of all kernels of the table one in so many, another choice each day; STRATA_TEST_ALL takes all.
int sample(Compiler& compiler, int one_in) {
  if (!env_text("STRATA_TEST_ALL").empty()) one_in = 1;
  std::mt19937 random(uint32_t(std::strtoul(env_text("STRATA_TEST_SEED", "1").c_str(), nullptr, 10)));
  int compared = 0;
  for (int64_t k = 0; k < lower::table_kernel_count; ++k) {
    const lower::KernelDesc& desc = lower::table_kernels[k];
    if (desc.kind == lower::KernelKind::Space) continue;
    const bool always = std::find(std::begin(kFew), std::end(kFew), std::string(desc.name)) != std::end(kFew);
    for (int t = 0; t < kDTypeCount; ++t)
      for (Isa isa : {Isa::Base, Isa::V3, Isa::V4}) {
        const bool drawn = random() % uint32_t(one_in) == 0;
        if ((desc.dtypes >> t & 1) && machine_has(isa) && (drawn || (always && t == int(DType::F32) && one_in < 100)))
          compared += compare(compiler, desc, DType(t), isa);
      }
  }
  return compared;
}

TEST(Bits, ThePluginGivesThoseOfTheBuild) {
  std::string why;
  auto compiler = clang_compiler(&why);
  if (!compiler || !(why = compiler->open()).empty()) GTEST_SKIP() << why;
  EXPECT_GT(sample(*compiler, 25), 20);
}

TEST(Bits, TheSystemsCompilerGivesThoseOfTheBuild) {
  std::string why;
  auto compiler = system_compiler(&why);
  if (!compiler) GTEST_SKIP() << why;
  int compared = sample(*compiler, 150);
  for (Isa isa : {Isa::Base, Isa::V3, Isa::V4})
    if (machine_has(isa))
      for (const char* name : {"silu", "softmax_rows"})
        compared += compare(*compiler, table_kernel(name), DType::F32, isa);
  EXPECT_GT(compared, 5);
}

// Masked logic of three operands, one of them a constant, which LLVM 19 gets wrong for AVX-512.
TEST(Bits, SignsUnderAMask) {
  const char* const text = R"(
typedef float vf32 __attribute__((vector_size(64)));
typedef int vi32 __attribute__((vector_size(64)));
void signs(float* p, const float* t, const float* a, const float* e) {
  for (long i = 0; i < 64; i += 16) {
    const vi32 b = *(const vi32*)(t + i), m = *(const vf32*)(e + i) < 0.0f;
    const vi32 o = (*(const vi32*)(a + i) & 2147483647) | (b & (-2147483647 - 1));
    *(vi32*)(p + i) = (o & m) | (b & ~m);
  }
}
)";
  std::string why;
  std::unique_ptr<Compiler> compilers[] = {clang_compiler(&why), system_compiler(&why)};
  alignas(64) float p[64], t[64], a[64], e[64];
  for (int i = 0; i < 64; ++i)
    t[i] = float(i % 3 ? i + 1 : -i - 1), a[i] = float(i % 5 ? 100 + i : -100 - i), e[i] = i % 7 ? 1 : -1;
  for (const auto& compiler : compilers)
    for (Isa isa : {Isa::Base, Isa::V3, Isa::V4})
      if (compiler && compiler->open().empty() && machine_has(isa)) {
        Program program({text, isa}, compiler->name(), compiler->object({text, isa}));
        reinterpret_cast<void (*)(float*, const float*, const float*, const float*)>(program.symbol("signs"))(p, t, a,
                                                                                                              e);
        for (int i = 0; i < 64; ++i)
          EXPECT_EQ(p[i], e[i] < 0 ? std::copysign(a[i], t[i]) : t[i])
              << compiler->name() << ' ' << lower::isa_name(isa);
      }
}

}  // namespace
}  // namespace strata::jit::test
