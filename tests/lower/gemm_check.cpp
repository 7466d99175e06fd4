// Prints the matrix-product kernels, compiles them with Clang and GCC for three instruction sets, and compares what the
// driver makes of them with scalar chains, bit for bit, for odd sizes, strides and one and two threads.
// Usage: gemm_check [work folder] [more]; exit code 0 when all bits agree. "more" adds the slow large sizes at base.
#include "lower/print/gemm.h"

#include <dlfcn.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ops/matmul/gemm.h"

namespace {

using strata::eager::GemmCall;
using strata::eager::GemmKernel;
using strata::eager::GemmThreads;
using strata::lower::GemmLevel;

std::mt19937_64 generator(11);

void two_threads(int64_t begin, int64_t end, int64_t, void (*body)(void*, int64_t, int64_t), void* ctx) {
  int64_t middle = begin + (end - begin) / 2;
  std::thread other([&] { body(ctx, begin, middle); });
  body(ctx, middle, end);
  other.join();
}

// ---- scalar references: each dtype's element, accumulator and conversions, written independently of the printer ----

uint16_t bf16_of(float x) {
  if (std::isnan(x)) return 0x7fc0;
  uint32_t u;
  std::memcpy(&u, &x, 4);
  uint32_t low = u & 0xffff, high = u >> 16;
  if (low > 0x8000 || (low == 0x8000 && (high & 1))) ++high;
  return static_cast<uint16_t>(high);
}
float of_bf16(uint16_t h) {
  uint32_t u = uint32_t{h} << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
uint16_t f16_of(float x) { return std::bit_cast<uint16_t>(static_cast<_Float16>(x)); }
float of_f16(uint16_t h) { return static_cast<float>(std::bit_cast<_Float16>(h)); }

template <class T, class Acc>
struct Plain {
  using Element = T;
  using Sum = Acc;
  static Acc step(T a, T b, Acc c) {
    if constexpr (std::is_floating_point_v<Acc>)
      return std::fma(a, b, c);
    else
      return static_cast<Acc>(static_cast<Acc>(a) * static_cast<Acc>(b) + c);
  }
  static T one() { return 1; }
  static T done(Acc c) { return static_cast<T>(c); }
  static bool same(T x, T y) { return (x != x && y != y) || std::memcmp(&x, &y, sizeof x) == 0; }
};
template <float (*From)(uint16_t), uint16_t (*To)(float)>
struct Half {
  using Element = uint16_t;
  using Sum = float;
  static float step(uint16_t a, uint16_t b, float c) { return std::fma(From(a), From(b), c); }
  static uint16_t one() { return To(1.0f); }
  static uint16_t done(float c) { return To(c); }
  static bool same(uint16_t x, uint16_t y) { return x == y || (std::isnan(From(x)) && std::isnan(From(y))); }
};
template <class R>
struct Complex {
  using Element = std::complex<R>;
  using Sum = std::complex<R>;
  static Sum step(Element a, Element b, Sum c) {
    R re = std::fma(-a.imag(), b.imag(), std::fma(a.real(), b.real(), c.real()));
    R im = std::fma(a.imag(), b.real(), std::fma(a.real(), b.imag(), c.imag()));
    return {re, im};
  }
  static Element one() { return 1; }
  static Element done(Sum c) { return c; }
  static bool same(Element x, Element y) {
    return Plain<R, R>::same(x.real(), y.real()) && Plain<R, R>::same(x.imag(), y.imag());
  }
};

template <class E>
E random_element() {
  if constexpr (std::is_floating_point_v<E>)
    return static_cast<E>(std::normal_distribution<double>()(generator));
  else
    return static_cast<E>(generator());
}
template <>
std::complex<float> random_element() {
  return {random_element<float>(), random_element<float>()};
}
template <>
std::complex<double> random_element() {
  return {random_element<double>(), random_element<double>()};
}

struct Size {
  int64_t m, n, k;
  bool ta, tb;
  int pad;
  int64_t batch = 1;
};

// Whether a bias is added: sizes without transposition and with odd k have one.
bool has_bias(const Size& q) { return !q.ta && !q.tb && q.k % 2 == 1; }

struct Report {
  int64_t checked = 0, wrong = 0;
};

// fill(i) makes element i of an operand.
template <class Type>
void check(const GemmKernel& kernel, const Size& q, const std::function<typename Type::Element()>& fill,
           Report& report) {
  using E = typename Type::Element;
  int64_t lda = (q.ta ? q.m : q.k) + q.pad, ldb = (q.tb ? q.k : q.n) + q.pad, ldc = q.n + q.pad;
  int64_t size_a = lda * (q.ta ? q.k : q.m), size_b = ldb * (q.tb ? q.n : q.k), size_c = ldc * q.m;
  std::vector<E> a(size_a * q.batch + 1), b(size_b * q.batch + 1), c(size_c * q.batch + 1);
  for (E& x : a) x = fill();
  for (E& x : b) x = fill();
  for (E& x : c) x = fill();
  const std::vector<E> before = c;
  std::vector<E> bias(q.n + 1);
  for (E& x : bias) x = fill();
  GemmCall call{};
  call.m = q.m, call.n = q.n, call.k = q.k, call.batch = q.batch;
  call.a = a.data(), call.a_row = q.ta ? 1 : lda, call.a_col = q.ta ? lda : 1, call.a_batch = size_a;
  call.b = b.data(), call.b_row = q.tb ? 1 : ldb, call.b_col = q.tb ? ldb : 1, call.b_batch = size_b;
  call.c_row = ldc, call.c_batch = size_c;
  call.bias = has_bias(q) ? bias.data() : nullptr;

  std::vector<E> want = before;
  for (int64_t t = 0; t < q.batch; ++t) {
    for (int64_t i = 0; i < q.m; ++i) {
      for (int64_t j = 0; j < q.n; ++j) {
        typename Type::Sum total{};
        for (int64_t k0 = 0; k0 < q.k; k0 += 1024) {
          typename Type::Sum chain{};
          for (int64_t k = k0; k < std::min<int64_t>(k0 + 1024, q.k); ++k) {
            chain = Type::step(a[t * size_a + i * call.a_row + k * call.a_col],
                               b[t * size_b + k * call.b_row + j * call.b_col], chain);
          }
          total = k0 == 0 ? chain : static_cast<typename Type::Sum>(total + chain);
        }
        if (has_bias(q)) total = static_cast<typename Type::Sum>(total + Type::step(Type::one(), bias[j], {}));
        want[t * size_c + i * ldc + j] = Type::done(total);
      }
    }
  }
  for (const GemmThreads& threads : {GemmThreads{}, GemmThreads{2, two_threads}, GemmThreads{7, two_threads}}) {
    c = before;
    call.c = c.data();
    strata::eager::gemm(kernel, call, threads);
    int64_t wrong = 0;
    for (size_t i = 0; i < c.size(); ++i) wrong += !Type::same(c[i], want[i]);
    report.checked += static_cast<int64_t>(c.size());
    report.wrong += wrong;
    if (wrong) {
      std::printf("  %ld x (%ld,%ld,%ld) %c%c pad %d, threads %d: %ld of %zu differ\n", q.batch, q.m, q.n, q.k,
                  "NT"[q.ta], "NT"[q.tb], q.pad, threads.count, wrong, c.size());
    }
  }
}

template <class Type>
void check_dtype(const GemmKernel& kernel, bool large, const std::function<typename Type::Element()>& fill,
                 Report& report) {
  std::vector<Size> sizes = {
      {1, 1, 1, 0, 0, 0},    {7, 5, 3, 0, 0, 0},       {0, 3, 4, 0, 0, 0},     {3, 0, 4, 0, 0, 0},
      {3, 4, 0, 0, 0, 2},    {4, 4, 4, 0, 0, 0},       {8, 48, 16, 0, 0, 0},   {9, 49, 17, 0, 0, 1},
      {17, 33, 5, 1, 0, 0},  {33, 17, 65, 0, 1, 3},    {31, 97, 66, 1, 1, 2},  {1, 100, 70, 0, 1, 0},
      {100, 1, 70, 0, 0, 0}, {2, 96, 130, 0, 0, 0, 3}, {20, 7, 9, 0, 1, 0, 5}, {3, 50, 1024, 0, 0, 0},
      {5, 3, 1025, 0, 1, 0}, {2, 17, 3000, 1, 0, 0},   {12, 96, 40, 0, 0, 5}};
  if (large) {
    for (bool ta : {false, true}) {
      for (bool tb : {false, true}) sizes.push_back({130, 150, 1100, ta, tb, 1});
    }
    sizes.push_back({65, 700, 129, 0, 0, 0});
    sizes.push_back({700, 65, 129, 0, 1, 0});
    sizes.push_back({600, 1, 2100, 0, 0, 0});
  }
  for (const Size& q : sizes) check<Type>(kernel, q, fill, report);
}

// Values that meet every branch of the conversions and of fma: zeros of both signs, subnormals, infinities, NaN.
template <class Type>
void check_special(const GemmKernel& kernel, Report& report) {
  check<Type>(kernel, {60, 70, 2, 0, 0, 0}, [] { return static_cast<typename Type::Element>(generator()); }, report);
  check<Type>(kernel, {300, 300, 1, 0, 1, 0}, [] { return static_cast<typename Type::Element>(generator()); }, report);
}

// Only the dtypes of contract 20 are printed at every level, but all must be right at all of them.
void check_all(const std::function<const GemmKernel*(const std::string&)>& kernel, bool large, Report& report) {
  auto one = [&]<class Type>(const char* name, Type, const std::function<typename Type::Element()>& fill) {
    const GemmKernel* k = kernel(name);
    Report own;
    if (k) check_dtype<Type>(*k, large, fill, own);
    if constexpr (std::is_same_v<typename Type::Element, uint16_t>) {
      if (k) check_special<Type>(*k, own);
    }
    if (!k || own.wrong) std::printf("  %s: %s\n", name, k ? "WRONG" : "no table");
    report.checked += own.checked;
    report.wrong += own.wrong + !k;
  };
  one("f32", Plain<float, float>(), random_element<float>);
  one("f64", Plain<double, double>(), random_element<double>);
  one("bf16", Half<of_bf16, bf16_of>(), [] { return bf16_of(random_element<float>()); });
  one("f16", Half<of_f16, f16_of>(), [] { return f16_of(random_element<float>()); });
  one("i64", Plain<int64_t, uint64_t>(), random_element<int64_t>);
  one("i32", Plain<int32_t, uint32_t>(), random_element<int32_t>);
  one("i16", Plain<int16_t, uint32_t>(), random_element<int16_t>);
  one("i8", Plain<int8_t, uint32_t>(), random_element<int8_t>);
  one("u8", Plain<uint8_t, uint32_t>(), random_element<uint8_t>);
  one("c64", Complex<float>(), random_element<std::complex<float>>);
  one("c128", Complex<double>(), random_element<std::complex<double>>);
}

bool runs_here(GemmLevel level) {
  __builtin_cpu_init();
  if (level == GemmLevel::v4) return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return level == GemmLevel::base || (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = argc > 1 ? argv[1] : ".";
  bool more = argc > 2 && std::strcmp(argv[2], "more") == 0;
  Report total;
  int missing = 0;
  for (GemmLevel level : {GemmLevel::base, GemmLevel::v3, GemmLevel::v4}) {
    std::string name = strata::lower::gemm_level_name(level);
    std::string source = folder + "/gemm_" + name + ".c";
    std::ofstream(source) << strata::lower::print_gemm(level, strata::lower::gemm_dtypes());
    for (const char* compiler : {"clang-19", "gcc"}) {
      std::string object = folder + "/gemm_" + name + "_" + compiler + ".so";
      std::string march = level == GemmLevel::base ? "x86-64" : "x86-64-" + name;
      std::string command = std::string(compiler) + " -std=c11 -O2 -march=" + march +
                            " -ffp-contract=off -fPIC -shared " + source + " -o " + object + " -lm";
      if (std::system(command.c_str()) != 0) {
        std::printf("%s does not compile %s\n", compiler, source.c_str());
        ++missing;
        continue;
      }
      if (!runs_here(level)) {
        std::printf("%s %s: this machine cannot run it\n", name.c_str(), compiler);
        continue;
      }
      void* handle = dlopen((object[0] == '/' ? object : "./" + object).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!handle) {
        std::printf("%s\n", dlerror());
        return 2;
      }
      Report report;
      check_all(
          [&](const std::string& dtype) {
            return static_cast<const GemmKernel*>(dlsym(handle, ("gemm_" + dtype + "_" + name).c_str()));
          },
          level != GemmLevel::base || more, report);
      std::printf("%s %s: %ld values, %ld differ\n", name.c_str(), compiler, report.checked, report.wrong);
      std::fflush(stdout);
      total.checked += report.checked;
      total.wrong += report.wrong;
    }
  }
  return total.wrong != 0 || missing != 0;
}
