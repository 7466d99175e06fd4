// Measures the shared mathematics text against wider arithmetic.
//
// ulp [--all [--part I/N]] [--f32|--f64] [function...]: one line per function and type with the largest error in units
// in the last place, its argument, and the number of wrong special values (NaN, infinity, sign of zero). Status 1 past
// 2 ulp or with a wrong special. --all takes all 2^32 float32 arguments (2^26 pairs, 2^24 float64 arguments), or the
// I-th of N parts of them; the default samples.
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "kernels.h"

namespace strata::ulp {
namespace {

constexpr std::size_t block = 4096;

template <class T>
struct Traits;
template <>
struct Traits<float> {
  using Wide = double;
  using Bits = std::uint32_t;
  static constexpr int digits = 24, min_exponent = -126;
};
template <>
struct Traits<double> {
  using Wide = __float128;
  using Bits = std::uint64_t;
  static constexpr int digits = 53, min_exponent = -1022;
};

template <class T>
struct Worst {
  double ulp = 0;
  T a{}, b{};
  long wrong = 0, count = 0;
  T wrong_a{}, wrong_b{};
};

int exponent(double x) { return int((std::bit_cast<std::uint64_t>(x) >> 52) & 0x7ff) - 1023; }
int exponent(__float128 x) { return int((std::bit_cast<unsigned __int128>(x) >> 112) & 0x7fff) - 16383; }
double power(int e, double) { return std::bit_cast<double>(std::uint64_t(e + 1023) << 52); }
__float128 power(int e, __float128) { return std::bit_cast<__float128>((unsigned __int128)(e + 16383) << 112); }
template <class W>
bool negative(W x) {
  if constexpr (sizeof(W) == 8) return std::bit_cast<std::uint64_t>(x) >> 63;
  return std::bit_cast<unsigned __int128>(W(x)) >> 127;
}
template <>
bool negative(double x) {
  return std::signbit(x);
}

/// One result against the true value: an infinite result counts as the first power of two beyond the range.
template <class T>
void judge(Worst<T>& w, T a, T b, T got, typename Traits<T>::Wide want, double floor) {
  using W = typename Traits<T>::Wide;
  using Tr = Traits<T>;
  ++w.count;
  bool wrong = false;
  double ulp = 0;
  const W top = power(1 - Tr::min_exponent, W{}) * 2;
  const W size = want < 0 ? -want : want;
  if (want != want || got != got) {
    wrong = (want != want) != (got != got);
  } else if (got == 0 && std::signbit(got) != negative(want)) {
    wrong = true;
  } else {
    const W g = std::isinf(got) ? (got < 0 ? -top : top) : W(got);
    const W clipped = size > top ? (want < 0 ? -top : top) : want;
    int e = want == 0 ? Tr::min_exponent : std::max(exponent(clipped), Tr::min_exponent);
    if (floor > 0) e = std::max(e, exponent(floor));
    e = std::min(e, 1 - Tr::min_exponent);
    const W difference = (g < clipped ? clipped - g : g - clipped) / power(e - Tr::digits + 1, W{});
    ulp = difference > W(1e30) ? 1e30 : double(difference);
  }
  if (wrong && w.wrong++ == 0) w.wrong_a = a, w.wrong_b = b;
  if (ulp > w.ulp) w.ulp = ulp, w.a = a, w.b = b;
}

struct Random {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ul);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ul;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebul;
    return z ^ (z >> 31);
  }
  double unit() { return double(next() >> 11) * 0x1p-53; }
};

template <class T>
const std::vector<T>& specials() {
  using L = std::numeric_limits<T>;
  static const std::vector<T> values = [] {
    std::vector<T> v;
    for (T x : {T(0),
                L::denorm_min(),
                L::min(),
                L::max(),
                L::infinity(),
                L::epsilon(),
                T(0.5),
                T(1),
                T(1.5),
                T(2),
                T(3),
                T(4),
                T(5),
                T(0.25),
                T(100),
                T(1e10),
                T(101),
                std::nextafter(T(1), T(0)),
                std::nextafter(T(1), T(2)),
                std::nextafter(L::min(), T(0)),
                T(16777215),
                T(9007199254740991.0)})
      v.push_back(x), v.push_back(-x);
    v.push_back(L::quiet_NaN());
    return v;
  }();
  return values;
}

/// Mixed arguments: special values, any bits, moderate sizes, and the neighbourhoods of the given points.
template <class T>
T sample(Random& r, const std::vector<double>& points) {
  using B = typename Traits<T>::Bits;
  const std::uint64_t pick = r.next();
  const double sign = pick & 1 ? -1 : 1;
  switch ((pick >> 1) % 8) {
    case 0:
      if ((pick >> 8) % 64 == 0) return specials<T>()[(pick >> 16) % specials<T>().size()];
      return std::bit_cast<T>(B(r.next()));
    case 1:
      return std::bit_cast<T>(B(r.next()));
    case 2:
      return T(sign * std::ldexp(1 + r.unit(), int((pick >> 8) % 60) - 48));
    case 3:
      return T(sign * std::ldexp(1 + r.unit(), int((pick >> 8) % 14) - 6));
    case 4:
      return T(sign * r.unit() * (sizeof(T) == 4 ? 110 : 760));
    case 5:
      return T(sign * r.unit() * 4);
    default: {
      if (points.empty()) return T(sign * r.unit() * 30);
      const double p = points[(pick >> 16) % points.size()];
      return T(
          p + sign * std::ldexp((std::abs(p) + 0.1) * (1 + r.unit()), -1 - int((pick >> 8) % (Traits<T>::digits - 2))));
    }
  }
}

template <class T>
bool report(const char* name, const Worst<T>& w, bool two, double limit, double seconds) {
  char at[80] = "", wrong[80] = "";
  if (two) {
    std::snprintf(at, sizeof at, "%a, %a", double(w.a), double(w.b));
    std::snprintf(wrong, sizeof wrong, " first (%a, %a)", double(w.wrong_a), double(w.wrong_b));
  } else {
    std::snprintf(at, sizeof at, "%a", double(w.a));
    std::snprintf(wrong, sizeof wrong, " first (%a)", double(w.wrong_a));
  }
  const bool good = w.ulp <= limit && w.wrong == 0;
  std::printf("%-8s %s  %6.3f ulp at %-46s specials wrong %ld%s  [%ld in %.1f s]%s\n", name,
              sizeof(T) == 4 ? "f32" : "f64", w.ulp, at, w.wrong, w.wrong ? wrong : "", w.count, seconds,
              good ? "" : "  FAILS");
  std::fflush(stdout);
  return good;
}

template <class T, class One, class Two, class Wide1, class Wide2>
bool measure(const Function& f, One one, Two two, Wide1 wide1, Wide2 wide2, bool all, std::uint64_t part,
             std::uint64_t parts) {
  if (!one && !two) return true;
  const auto start = std::chrono::steady_clock::now();
  Worst<T> worst;
  std::vector<T> a(block), b(block), y(block);
  const auto run = [&](std::size_t n) {
    if (one)
      one(a.data(), y.data(), n);
    else
      two(a.data(), b.data(), y.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
      if (one)
        judge<T>(worst, a[i], T(0), y[i], wide1(a[i]), sizeof(T) == 8 ? f.floor64(a[i]) : 0);
      else
        judge<T>(worst, a[i], b[i], y[i], wide2(a[i], b[i]), 0);
    }
  };
  std::size_t filled = 0;
  const auto put = [&](T x, T z) {
    a[filled] = x, b[filled] = z;
    if (++filled == block) run(block), filled = 0;
  };
  if (sizeof(T) == 4 && one) {
    const std::uint64_t step = all ? parts : 641;
    for (std::uint64_t i = all ? part : 0; i < (1ul << 32); i += step)
      put(T(std::bit_cast<float>(std::uint32_t(i))), T(0));
  } else if (two) {
    for (T x : specials<T>())
      for (T z : specials<T>()) put(x, z);
  }
  Random random{12345 + part};
  const long samples =
      sizeof(T) == 4 ? (two && all ? (1l << 26) / long(parts) : 1l << 21) : (all ? (1l << 24) / long(parts) : 1l << 18);
  for (T x : specials<T>()) put(x, T(1));
  for (long i = 0; i < samples; ++i) {
    const T x = sample<T>(random, f.points);
    T z = two ? sample<T>(random, f.points) : T(0);
    if (f.name == "pow" && i % 2)
      z = T((random.unit() * 2 - 1) * 1.1 * (1 - Traits<T>::min_exponent) / std::log2(std::abs(double(x))));
    put(x, z);
  }
  run(filled);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return report(f.name.c_str(), worst, two != nullptr, sizeof(T) == 8 ? f.limit64 : 2, taken.count());
}

int main(int argc, char** argv) {
  bool all = false, want32 = true, want64 = true;
  std::uint64_t part = 0, parts = 1;
  std::set<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--all")
      all = true;
    else if (word == "--quick")
      all = false;
    else if (word == "--part" && i + 1 < argc)
      std::sscanf(argv[++i], "%lu/%lu", &part, &parts);
    else if (word == "--f32")
      want64 = false;
    else if (word == "--f64")
      want32 = false;
    else
      names.insert(word);
  }
  auto table = functions();
  fill_references(table);
  bool good = true;
  for (const auto& f : table) {
    if (!names.empty() && !names.contains(f.name)) continue;
    if (want32) good &= measure<float>(f, f.unary32, f.binary32, f.wide32, f.wide32_2, all, part, parts);
    if (want64) good &= measure<double>(f, f.unary64, f.binary64, f.wide64, f.wide64_2, all, part, parts);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace strata::ulp

int main(int argc, char** argv) { return strata::ulp::main(argc, argv); }
