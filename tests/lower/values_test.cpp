// Values of printed kernels against plain C++: integers in 128 bits, conversions through core/, tree T by its
// definition.
#include <cmath>
#include <complex>
#include <functional>

#include "harness.h"
#include "lower/expr/build.h"

namespace strata::lower::test {
namespace {

using Wide = __int128;
constexpr DType kIntTypes[] = {DType::U8,  DType::I8,  DType::U16, DType::I16,
                               DType::U32, DType::I32, DType::U64, DType::I64};
constexpr DType kFloatTypes[] = {DType::F16, DType::BF16, DType::F32, DType::F64};
const std::vector<int64_t> kLengths = {1, 15, 16, 17, 1000, 1024, 1025, 4096, 65536 + 77, 3 * 65536 + 5};

Wide wide(const Buffer& b, int64_t i) {
  if (b.type == DType::U64) return reinterpret_cast<const uint64_t*>(b.data())[i];
  if (b.type == DType::I64) return reinterpret_cast<const int64_t*>(b.data())[i];
  return Wide(get(b, i));
}

Wide wrap(DType t, Wide v) {
  int bits = traits(t).bits;
  Wide m = v & ((Wide(1) << bits) - 1);
  return traits(t).kind == DKind::Signed && (m >> (bits - 1) & 1) ? m - (Wide(1) << bits) : m;
}

struct Tester {
  const std::vector<Library>& libs;
  std::mt19937_64 rng{11};

  const Library& any(DType t, const char* name) const {  // the last that has it: the widest vectors
    const Library* found = &libs[0];
    for (const Library& l : libs)
      if (l.kernels.count({name, t})) found = &l;
    return *found;
  }

  void integers(const char* name, std::vector<std::function<Wide(DType, Wide, Wide)>> want) {
    for (DType t : kIntTypes) {
      Call c = make_call(find_desc(name), t, 4096, rng, false);
      int32_t status = 0;
      std::vector<Buffer> got = run(any(t, name), c, 4096, &status);
      for (size_t o = 0; o < want.size(); ++o)
        for (int64_t i = 0; i < 4096; ++i) {
          Wide a = wide(c.inputs[0], i), b = wide(c.inputs[1], i), w = wrap(t, want[o](t, a, b));
          if (wide(got[o], i) == w) continue;
          check(false, std::string(name) + " " + traits(t).cname + " of " + std::to_string(int64_t(a)) + ", " +
                           std::to_string(int64_t(b)) + ": got " + std::to_string(int64_t(wide(got[o], i))) +
                           ", expected " + std::to_string(int64_t(w)));
          break;
        }
      if (std::string(name) == "floor_divide") check(status == 1, "floordiv by zero sets status bit 1");
    }
  }

  // want(a, b) in the compute type; rounded to the storage type here.
  template <class T>
  void floats(const char* name, DType t, size_t output, std::function<T(T, T)> want, double alpha = 0) {
    Call c = make_call(find_desc(name), t, 4096, rng, false, {alpha});
    std::vector<Buffer> got = run(any(t, name), c, 4096);
    Buffer expect(got[output].type, 4096);
    for (int64_t i = 0; i < 4096; ++i) {
      T v = want(T(get(c.inputs[0], i)), c.inputs.size() > 1 ? T(get(c.inputs[1], i)) : T(0));
      char* p = expect.data() + i * itemsize(expect.type);
      auto put = [&](auto x) { std::memcpy(p, &x, sizeof x); };
      if (expect.type == DType::F16) put(to_half(float(v)));
      if (expect.type == DType::BF16) put(to_bfloat16(float(v)));
      if (expect.type == DType::F32 || expect.type == DType::F64) put(v);
      if (expect.type == DType::Bool) put(uint8_t(v != 0));
    }
    std::string text = differ(expect, got[output]);
    if (!text.empty())
      check(false, std::string(name) + " " + traits(t).cname + " output " + std::to_string(output) + ": " + text);
  }

  template <class T>
  void float_kernels(DType t) {
    using F = std::function<T(T, T)>;
    auto mod = [](T a, T b) {
      T m = std::fmod(a, b);
      return m != 0 && (b < 0) != (m < 0) ? m + b : m;
    };
    auto floor_divide = [](T a, T b) {
      if (b == 0) return a / b;
      T m = std::fmod(a, b), d = (a - m) / b;
      if (m != 0 && (b < 0) != (m < 0)) d -= 1;
      if (d == 0) return std::copysign(T(0), a / b);
      T f = std::floor(d);
      return d - f > T(0.5) ? f + 1 : f;
    };
    floats<T>("add", t, 0, F([](T a, T b) {
                T m = T(1.7f) * b;
                return a + m;
              }),
              1.7f);
    floats<T>("div", t, 0, F([](T a, T b) { return a / b; }));
    floats<T>("less", t, 0, F([](T a, T b) { return T(a < b); }));
    floats<T>("remainder", t, 0, F(mod));
    floats<T>("floor_divide", t, 0, F(floor_divide));
    floats<T>("truncdiv", t, 0, F([t](T a, T b) {  // the quotient is rounded to the dtype first
                if (t == DType::F16) return T(std::trunc(to_float(to_half(float(a / b)))));
                if (t == DType::BF16) return T(std::trunc(to_float(to_bfloat16(float(a / b)))));
                return std::trunc(a / b);
              }));
    floats<T>("truncdiv", t, 1, F([](T a, T b) { return std::fmod(a, b); }));
    floats<T>("extrema", t, 0, F([](T a, T b) { return a != a ? a : a > b ? a : b; }));
    floats<T>("extrema", t, 1, F([](T a, T b) { return a != a ? a : a < b ? a : b; }));
    floats<T>("extrema", t, 2, F([](T a, T b) { return b != b ? a : a > b ? a : b; }));
    floats<T>("extrema", t, 3, F([](T a, T b) { return b != b ? a : a < b ? a : b; }));
    floats<T>("round", t, 0, F([](T a, T) { return std::floor(a); }));
    floats<T>("round", t, 1, F([](T a, T) { return std::ceil(a); }));
    floats<T>("round", t, 2, F([](T a, T) { return std::trunc(a); }));
    floats<T>("round", t, 3, F([](T a, T) { return std::nearbyint(a); }));
    floats<T>("classify", t, 0, F([](T a, T) { return T(std::isnan(a)); }));
    floats<T>("classify", t, 1, F([](T a, T) { return T(std::isinf(a)); }));
    floats<T>("classify", t, 2, F([](T a, T) { return T(std::isfinite(a)); }));
    floats<T>("classify", t, 4, F([](T a, T) { return T(T(0 < a) - T(a < 0)); }));
  }

  void casts(DType from) {
    Call c = make_call(find_desc("casts"), from, 4096, rng, false);
    std::vector<Buffer> got = run(any(from, "casts"), c, 4096);
    for (Buffer& g : got)
      for (int64_t i = 0; i < 4096; ++i) {
        long double v =
            is_integral(from, true) ? (long double)(wide(c.inputs[0], i)) : (long double)(get(c.inputs[0], i));
        bool ok = true;
        if (g.type == DType::Bool) {
          ok = get(g, i) == (v != 0);
        } else if (is_integral(g.type)) {
          bool is_signed = traits(g.type).kind == DKind::Signed;
          long double low = is_signed ? -std::ldexp(1.0L, traits(g.type).bits - 1) : 0;
          long double top = std::ldexp(1.0L, traits(g.type).bits - is_signed) - 1;
          Wide want = is_float(from) ? (v != v    ? 0
                                        : v < low ? Wide(low)
                                        : v > top ? Wide(top)
                                                  : Wide(v))
                                     : wrap(g.type, wide(c.inputs[0], i));
          ok = wide(g, i) == want;
        } else {
          float f = float(v);
          double want = g.type == DType::F32   ? f
                        : g.type == DType::F16 ? to_float(to_half(f))
                                               : to_float(to_bfloat16(f)),
                 is = get(g, i);
          ok = (want == is && std::signbit(want) == std::signbit(is)) || (want != want && is != is);
        }
        if (ok) continue;
        check(false, std::string("cast ") + traits(from).cname + " to " + traits(g.type).cname + " of " +
                         std::to_string(v) + " gives " + std::to_string(get(g, i)));
        break;
      }
  }
};

// Tree T, word for word.
template <class T, class F>
T tree(const std::vector<T>& v, F op) {
  std::vector<T> chunks;
  for (size_t first = 0; first < v.size(); first += 65536) {
    std::vector<T> position;
    size_t n = std::min<size_t>(65536, v.size() - first);
    for (size_t i = 0; i < n; ++i) {
      if (i < 1024)
        position.push_back(v[first + i]);
      else
        position[i % 1024] = op(position[i % 1024], v[first + i]);
    }
    for (int bit : {4, 5, 6, 7, 8, 9, 3, 2, 1, 0}) {
      size_t w = size_t(1) << bit;
      for (size_t p = 0; p + w < position.size(); ++p)
        if (!(p & w)) position[p] = op(position[p], position[p + w]);
    }
    chunks.push_back(position[0]);
  }
  for (size_t w = 1; w < chunks.size(); w *= 2)
    for (size_t k = 0; k + w < chunks.size(); k += 2 * w) chunks[k] = op(chunks[k], chunks[k + w]);
  return chunks[0];
}

double round_to(DType t, double v) {
  return t == DType::F16 ? to_float(to_half(float(v))) : t == DType::BF16 ? to_float(to_bfloat16(float(v))) : v;
}

bool same(double a, double b) { return (a == b && std::signbit(a) == std::signbit(b)) || (a != a && b != b); }

template <class T>
void float_rows(Tester& x, DType t) {
  auto add = [](T a, T b) { return T(a + b); };
  auto mul = [](T a, T b) { return T(a * b); };
  auto expect = [&](const char* name, int64_t n, const Buffer& got, int64_t i, double want, bool free_zero = false) {
    if (!same(get(got, i) + (want == 0 && free_zero ? 0.0 : -0.0), round_to(t, want)))
      check(false, std::string(name) + " " + traits(t).cname + " of " + std::to_string(n) + ": got " +
                       std::to_string(get(got, i)) + ", expected " + std::to_string(want));
  };
  for (int64_t n : kLengths) {
    for (bool tame : {true, false}) {
      auto values = [&](const Call& c, size_t k) {
        std::vector<T> v;
        for (int64_t i = 0; i < n; ++i) v.push_back(T(get(c.inputs[k], i)));
        return v;
      };
      auto make = [&](const char* name) { return make_call(find_desc(name), t, n, x.rng, tame); };
      auto go = [&](const Call& c) { return run(x.any(t, c.desc->name), c, n); };
      Call c = make("sum");
      expect("sum", n, go(c)[0], 0, tree(values(c, 0), add));
      c = make("mean");
      expect("mean", n, go(c)[0], 0, tree(values(c, 0), add) / T(n));
      c = make("prod");
      expect("prod", n, go(c)[0], 0, tree(values(c, 0), mul));
      c = make("max");
      std::vector<Buffer> got = go(c);
      // + 0: the sign of a zero among zeros is anyone's.
      expect("max", n, got[0], 0, tree(values(c, 0), [](T a, T b) { return a != a || a > b ? a : b; }) + 0, true);
      expect("min", n, got[1], 0, tree(values(c, 0), [](T a, T b) { return a != a || a < b ? a : b; }) + 0, true);
      c = make("argmax");
      got = go(c);
      std::vector<T> v = values(c, 0);
      int64_t top = 0, low = 0;
      for (int64_t i = 1; i < n; ++i) {
        if (v[i] > v[top] || (v[i] != v[i] && v[top] == v[top])) top = i;
        if (v[i] < v[low] || (v[i] != v[i] && v[low] == v[low])) low = i;
      }
      check(get(got[0], 0) == double(top) && get(got[1], 0) == double(low),
            std::string("argmax ") + traits(t).cname + " of " + std::to_string(n));
      c = make("var");
      set_scalar(c, 0, 1);
      got = go(c);
      v = values(c, 0);
      T mean = tree(v, add) / T(n);
      for (T& e : v) e = (e - mean) * (e - mean);
      T below = T(n) - 1;
      expect("var", n, got[0], 0, tree(v, add) / (below > 0 ? below : T(0)));
      c = make("layer_norm");
      set_scalar(c, 0, 1e-5);
      got = go(c);
      v = values(c, 0);
      std::vector<T> w = values(c, 1), b = values(c, 2), squares;
      mean = tree(v, add) / T(n);
      for (T& e : v) squares.push_back((e - mean) * (e - mean));
      T rstd = T(1) / std::sqrt(T(tree(squares, add) / T(n)) + T(sizeof(T) == 4 ? 1e-5f : 1e-5));
      expect("layer_norm mean", n, got[1], 0, mean);
      expect("layer_norm rstd", n, got[2], 0, rstd);
      for (int64_t i = 0; i < n; ++i) {
        T d = (v[i] - mean) * rstd;
        d = d * w[i];
        expect("layer_norm", n, got[0], i, d + b[i]);
      }
      if (!tame) continue;
      c = make("softmax");
      got = go(c);
      v = values(c, 0);
      double largest = *std::max_element(v.begin(), v.end()), sum = 0,
             eps = t == DType::F16    ? 2e-3
                   : t == DType::BF16 ? 1e-2
                                      : 1e-5;
      for (T e : v) sum += std::exp(double(e) - largest);
      for (int64_t i = 0; i < n; ++i) {
        double want = std::exp(double(v[i]) - largest) / sum;
        if (std::abs(get(got[0], i) - want) > eps * want + 1e-7) {
          check(false, std::string("softmax ") + traits(t).cname + " of " + std::to_string(n));
          break;
        }
      }
      c = make("nll");
      double want = -get(c.inputs[0], int64_t(get(c.inputs[1], 0)));
      if (n == 1) expect("nll", n, go(c)[0], 0, want);
    }
  }
}

template <class T>
void complex_kernels(Tester& x, DType t) {
  using C = std::complex<double>;
  double eps = sizeof(T) == 4 ? 4e-6 : 1e-14;
  auto at = [](const Buffer& b, int64_t i) { return C(get(b, i, 0), get(b, i, 1)); };
  auto functions = [&](const char* name, std::vector<std::function<C(C, C)>> want) {
    Call c = make_call(find_desc(name), t, 4096, x.rng, true);
    std::vector<Buffer> got = run(x.libs[0], c, 4096);
    for (size_t o = 0; o < want.size(); ++o) {
      double worst = 0;
      std::string text;
      for (int64_t i = 0; i < 4096; ++i) {
        C a = at(c.inputs[0], i), b = c.inputs.size() > 1 ? at(c.inputs[1], i) : C(0), w = want[o](a, b),
          is = at(got[o], i);
        double error = std::abs(is - w) / std::abs(w);
        if (!(error > worst) && error == error) continue;
        worst = error;
        text = str_cat(name, " output ", o, " ", traits(t).cname, " of ", a.real(), ",", a.imag(), ": got ", is.real(),
                       ",", is.imag(), " expected ", w.real(), ",", w.imag());
      }
      check(worst < eps, text);
    }
  };
  auto one = [](C (*f)(const C&)) { return [f](C a, C) { return f(a); }; };
  functions("cfun", {one(std::exp), one(std::log), one(std::sqrt), [](C a, C b) { return std::pow(a, b); }});
  functions("ctrig",
            {one(std::sin), one(std::cos), one(std::tan), one(std::sinh), one(std::cosh), one(std::tanh),
             one(std::asin), one(std::acos), one(std::atan), one(std::asinh), one(std::acosh), one(std::atanh)});
  functions("cother",
            {[](C a, C) { return 1.0 / a; }, [](C a, C) { return 1.0 / std::sqrt(a); },
             [](C a, C) { return std::abs(a) < 1e-2 ? a + a * a / 2.0 + a * a * a / 6.0 : std::exp(a) - 1.0; },
             [](C a, C) { return std::abs(a) < 1e-2 ? a - a * a / 2.0 + a * a * a / 3.0 : std::log(1.0 + a); },
             [](C a, C) { return std::log(a) / std::log(2.0); }, [](C a, C) { return std::log10(a); },
             [](C a, C) { return a / std::abs(a); }, [](C a, C) { return 1.0 / (1.0 + std::exp(-a)); }});
  functions("cabs", {});
  Call c;
  std::vector<Buffer> got;
  c = make_call(find_desc("cmul"), t, 4096, x.rng, true);
  got = run(x.libs[0], c, 4096);
  Call d = make_call(find_desc("div"), t, 4096, x.rng, true);
  std::vector<Buffer> quotient = run(x.libs[0], d, 4096);
  for (int64_t i = 0; i < 4096; ++i) {
    T a = T(get(c.inputs[0], i, 0)), b = T(get(c.inputs[0], i, 1)), e = T(get(c.inputs[1], i, 0)),
      f = -T(get(c.inputs[1], i, 1));
    T re = a * e - b * f, im = a * f + b * e;
    check(same(get(got[0], i, 0), re) && same(get(got[0], i, 1), im),
          std::string("complex product ") + traits(t).cname);
    C q = at(d.inputs[0], i) / at(d.inputs[1], i);
    check(std::abs(at(quotient[0], i) - q) <= eps * (1 + std::abs(q)),
          std::string("complex quotient ") + traits(t).cname);
  }
  for (int64_t n : kLengths) {
    c = make_call(find_desc("sum"), t, n, x.rng, true);
    got = run(x.libs[0], c, n);
    for (int p = 0; p < 2; ++p) {
      std::vector<T> v;
      for (int64_t i = 0; i < n; ++i) v.push_back(T(get(c.inputs[0], i, p)));
      check(same(get(got[0], 0, p), tree(v, [](T a, T b) { return T(a + b); })), "complex sum of " + std::to_string(n));
    }
    c = make_call(find_desc("prod"), t, n, x.rng, true);
    got = run(x.libs[0], c, n);
    std::vector<std::array<T, 2>> v;
    for (int64_t i = 0; i < n; ++i) v.push_back({T(get(c.inputs[0], i, 0)), T(get(c.inputs[0], i, 1))});
    auto product = tree(v, [](std::array<T, 2> a, std::array<T, 2> b) {
      return std::array<T, 2>{a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]};
    });
    check(same(get(got[0], 0, 0), product[0]) && same(get(got[0], 0, 1), product[1]),
          "complex product of a row of " + std::to_string(n));
  }
}

}  // namespace

void test_values(const std::vector<Library>& libs) {
  Tester x{libs};
  auto floor_quotient = [](Wide a, Wide b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); };
  x.integers("floor_divide", {[&](DType, Wide a, Wide b) { return b == 0 ? 0 : floor_quotient(a, b); }});
  x.integers("remainder", {[&](DType, Wide a, Wide b) { return b == 0 ? 0 : a - b * floor_quotient(a, b); }});
  x.integers("truncdiv", {[](DType, Wide a, Wide b) { return b == 0 ? 0 : a / b; },
                          [](DType, Wide a, Wide b) { return b == 0 ? 0 : a % b; }});
  auto outside = [](DType t, Wide b) { return b < 0 || b >= traits(t).bits; };
  x.integers("shifts", {[&](DType t, Wide a, Wide b) { return outside(t, b) ? 0 : Wide(uint64_t(a) << int(b)); },
                        [&](DType t, Wide a, Wide b) { return outside(t, b) ? (a < 0 ? -1 : 0) : a >> int(b); }});
  x.integers("int_pow", {[](DType t, Wide a, Wide b) {
               if (b < 0) return Wide(a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0);
               Wide r = 1;
               for (; b; b >>= 1, a = wrap(t, Wide(uint64_t(a) * uint64_t(a))))
                 if (b & 1) r = wrap(t, Wide(uint64_t(r) * uint64_t(a)));
               return r;
             }});
  x.integers("extrema", {[](DType, Wide a, Wide b) { return a > b ? a : b; },
                         [](DType, Wide a, Wide b) { return a < b ? a : b; }});
  x.integers("logic", {[](DType, Wide a, Wide b) { return a & b; }, [](DType, Wide a, Wide b) { return a | b; },
                       [](DType, Wide a, Wide b) { return a ^ b; }, [](DType, Wide a, Wide) { return ~a; }});
  x.integers("mul", {[](DType, Wide a, Wide b) { return Wide(uint64_t(a) * uint64_t(b)); }});
  for (DType t : kFloatTypes) {
    if (t == DType::F64) {
      x.float_kernels<double>(t);
      float_rows<double>(x, t);
    } else {
      x.float_kernels<float>(t);
      float_rows<float>(x, t);
    }
    x.casts(t);
  }
  for (DType t : kIntTypes) {
    x.casts(t);
    for (int64_t n : kLengths) {
      Call c = make_call(find_desc("int_sum"), t, n, x.rng, false);
      std::vector<Buffer> got = run(x.any(t, "int_sum"), c, n);
      Wide sum = 0, product = 1;
      for (int64_t i = 0; i < n; ++i)
        sum += wide(c.inputs[0], i), product = Wide(uint64_t(product) * uint64_t(wide(c.inputs[0], i)));
      check(wide(got[0], 0) == wrap(DType::I64, sum) && wide(got[1], 0) == wrap(DType::I64, product),
            std::string("int_sum ") + traits(t).cname);
    }
  }
  x.casts(DType::Bool);
  for (int64_t n : kLengths) {
    Call c = make_call(find_desc("ones"), DType::F32, n, x.rng, true);
    std::vector<Buffer> got = run(x.any(DType::F32, "ones"), c, n);
    check(get(got[0], 0) == double(n) && get(got[1], 0) == double(n), "sum of ones");
  }
  complex_kernels<float>(x, DType::C64);
  complex_kernels<double>(x, DType::C128);
}

namespace {
void expect_error(const char* text, const char* part, DType t = DType::F32, const char* inputs = "a b") {
  KernelDesc d{"bad", "f", KernelKind::Pointwise, inputs, "", "result", text, 0, "test"};
  try {
    build_kernel(d, t);
    check(false, std::string("no error for: ") + text);
  } catch (const Error& e) {
    check(e.message().find(part) != std::string::npos && e.kind() == ErrorKind::Value,
          std::string(text) + ": " + e.message());
  }
}
}  // namespace

void test_structure(const std::vector<Library>& libs) {
  KernelInfo softmax = describe(find_desc("softmax"), DType::BF16);
  check(softmax.passes.size() == 3 && softmax.reductions.size() == 2 && softmax.scratch.size() == 1,
        "softmax: 3 passes, exp kept in a scratch row");
  check(softmax.reductions[0].combine == Combine::Max && softmax.reductions[1].accumulator == DType::F32,
        "softmax: reductions");
  KernelInfo norm = describe(find_desc("layer_norm"), DType::F32);
  check(norm.passes.size() == 3 && norm.scratch.empty() && norm.outputs[1].per_row && norm.passes[2].elementwise,
        "layer_norm: passes");
  check(!describe(find_desc("var"), DType::F32).passes[2].elementwise, "var: the last pass has one value per row");
  Kernel k = build_kernel(find_desc("sincos"), DType::F32);
  size_t rare = 0;
  for (const Node& n : k.passes[0].nodes) rare += n.op == Op::Rare;
  check(rare <= 2, "sin and cos of one argument share their range reduction");
  check(dump(k).find("kernel sincos f32 pointwise") == 0, "dump");

  std::mt19937_64 rng(5);
  // An operand with step 0 is the same 16 values for every block. Nests have strides of their own.
  for (const Library& lib : libs) {
    if (lib.kernels.empty()) continue;
    Call c = make_call(find_desc("add"), DType::F32, 4096, rng, true);
    for (int64_t i = 16; i < 4096; ++i) c.inputs[1].as<float>()[i] = c.inputs[1].as<float>()[i % 16];
    std::vector<Buffer> whole = run(lib, c, 4096);
    Buffer out(DType::F32, 4096);
    char* ptr[] = {out.data(), c.inputs[0].data(), c.inputs[1].data()};
    int64_t step[] = {64, 64, 0};
    lib.kernels.at({"add", DType::F32})->pointwise(ptr, step, c.params.data(), 256, 0, nullptr);
    check(differ(whole[0], out).empty(), "step 0, " + lib.name);
  }
}

// A row's division by zero is told, wherever it is, and lanes beyond the end of the row tell nothing.
void test_row_status(const std::vector<Library>& libs) {
  std::mt19937_64 rng(7);
  for (const Library& lib : libs)
    for (DType t : {DType::I64, DType::U8}) {
      if (!lib.kernels.count({"row_div", t})) continue;
      for (int64_t n : {1, 15, 16, 17, 31, 130, 1029, 65537}) {
        Call c = make_call(find_desc("row_div"), t, n, rng, false);
        Buffer& divisor = c.inputs[1];
        std::memset(divisor.data(), 0x11, size_t(n * itemsize(t)));
        int32_t status = 0;
        run(lib, c, n, &status);
        check(status == 0, "row_div without a zero, " + lib.name);
        for (int64_t at : {int64_t(0), n / 2, n - 1}) {
          Call zero = c;
          std::memset(zero.inputs[1].data() + at * itemsize(t), 0, size_t(itemsize(t)));
          status = 0;
          run(lib, zero, n, &status);
          check(status == 1, "row_div with a zero, " + lib.name);
        }
      }
    }
  check(libs[0].kernels.at({"row_div", DType::I64})->sets_status == 1, "row_div says that it sets the status");
  check(libs[0].kernels.at({"sum", DType::F32})->sets_status == 0, "sum says that it does not");
}

void test_errors() {
  expect_error("a +", "line 1, column 4: expected a value");
  expect_error("a + c", "line 1, column 5: unknown name 'c'");
  expect_error("x = a\nresult = a $ b", "line 2, column 12: unexpected character '$'");
  expect_error("(a + b", "expected ')'");
  expect_error("frob(a)", "unknown function 'frob'");
  expect_error("exp(a, b)", "there is exp(");
  expect_error("floor(a, b)", "floor takes 1 arguments, got 2");
  expect_error("sum(a)", "only kernels of kind Rows");
  expect_error("a + b", "only inputs of Rows kernels are shared", DType::F32, "a b:shared");
  expect_error("x = a", "no line assigns output 'result'");
  expect_error("a & b", "takes integers");
  expect_error("a < b", "takes no complex numbers", DType::C64);
  expect_error("remainder(a, 1)", "takes real numbers", DType::C128);
  expect_error("99999999999999999999", "does not fit");
}

}  // namespace strata::lower::test
