// Compares the generated convolutions with scalar chains in the stated order, bit for bit: 1 to 3 dimensions, groups,
// strides, padding, dilation, plain and channels-last tensors on every side, one and two threads.
// Usage: conv_generated_check kernels.so level ; kernels.so comes from gemm_check. Exit code 0 when all bits agree.
#include "ops/conv/generated.h"

#include <dlfcn.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace strata::eager;
std::mt19937 generator(5);
int64_t checked = 0, wrong = 0;

void two_threads(int64_t begin, int64_t end, int64_t, void (*body)(void*, int64_t, int64_t), void* ctx) {
  int64_t middle = begin + (end - begin) / 2;
  std::thread other([&] { body(ctx, begin, middle); });
  body(ctx, middle, end);
  other.join();
}

struct Bf16 {
  uint16_t bits = 0;
  Bf16() = default;
  explicit Bf16(float x) {
    uint32_t u;
    std::memcpy(&u, &x, 4);
    bits = static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
  }
  operator float() const {
    uint32_t u = uint32_t{bits} << 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
  }
};

template <class E>
struct Sum {
  using Type = E;
  static E step(E a, E b, E c) { return std::fma(a, b, c); }
};
template <>
struct Sum<Bf16> {
  using Type = float;
  static float step(Bf16 a, Bf16 b, float c) { return std::fma(float(a), float(b), c); }
};
template <>
struct Sum<int32_t> {
  using Type = uint32_t;
  static uint32_t step(int32_t a, int32_t b, uint32_t c) { return uint32_t(a) * uint32_t(b) + c; }
};
template <>
struct Sum<std::complex<float>> {
  using Type = std::complex<float>;
  static Type step(Type a, Type b, Type c) {
    return {std::fma(-a.imag(), b.imag(), std::fma(a.real(), b.real(), c.real())),
            std::fma(a.imag(), b.real(), std::fma(a.real(), b.imag(), c.imag()))};
  }
};

template <class E>
E random_value() {
  return E(static_cast<float>(std::normal_distribution<float>(0, 3)(generator)));
}

// Chains over terms that are handed in one by one.
template <class E>
struct Chains {
  typename Sum<E>::Type chain{}, total{};
  int64_t count = 0;
  bool have = false;
  void close() {
    if (count == 0) return;
    total = have ? typename Sum<E>::Type(total + chain) : chain;
    have = true, chain = {}, count = 0;
  }
  void add(E a, E b) {
    chain = Sum<E>::step(a, b, chain);
    if (++count == 1024) close();
  }
  E done() {
    close();
    return E(total);
  }
};

struct Case {
  int64_t spatial, batch, groups, in, out;
  int64_t size[3], kernel[3], stride[3], padding[3], dilation[3];
};

void strides_of(int rank, const int64_t* sizes, bool last, int64_t* out) {
  int64_t step = 1;
  if (last) out[1] = 1, step = sizes[1];
  for (int i = rank - 1; i >= 0; --i) {
    if (last && i == 1) continue;
    out[i] = step;
    step *= sizes[i];
  }
}

template <class E>
void compare(const char* what, const char* name, const std::vector<E>& got, const std::vector<E>& want) {
  int64_t bad = 0;
  for (size_t i = 0; i < want.size(); ++i) bad += std::memcmp(&got[i], &want[i], sizeof(E)) != 0;
  checked += static_cast<int64_t>(want.size());
  wrong += bad;
  if (bad) std::printf("%s %s: %ld of %zu differ\n", name, what, bad, want.size());
}

template <class E>
void check(const GemmKernel& kernel, const char* dtype, const Case& q, int layout, bool complex) {
  StrataConvolution s{};
  s.size = sizeof s, s.spatial = q.spatial, s.batch = q.batch, s.groups = q.groups;
  s.in_channels = q.in, s.out_channels = q.out;
  int64_t size[3] = {1, 1, 1}, out[3] = {1, 1, 1}, tap_count[3] = {1, 1, 1};
  for (int d = 0; d < q.spatial; ++d) {
    size[d] = s.input[d] = q.size[d], tap_count[d] = s.kernel[d] = q.kernel[d], s.stride[d] = q.stride[d];
    s.padding[d] = q.padding[d], s.dilation[d] = q.dilation[d];
    out[d] = s.output[d] = (size[d] + 2 * q.padding[d] - q.dilation[d] * (q.kernel[d] - 1) - 1) / q.stride[d] + 1;
  }
  int rank = static_cast<int>(q.spatial) + 2;
  int64_t ig = q.in / q.groups, og = q.out / q.groups;
  int64_t taps = tap_count[0] * tap_count[1] * tap_count[2], spots = out[0] * out[1] * out[2];
  int64_t pixels = size[0] * size[1] * size[2];
  int64_t xs[5] = {q.batch, q.in, size[0], size[1], size[2]}, ys[5] = {q.batch, q.out, out[0], out[1], out[2]};
  int64_t ws[5] = {q.out, ig, tap_count[0], tap_count[1], tap_count[2]};
  strides_of(rank, xs, layout & 1, s.input_strides);
  strides_of(rank, ys, layout & 2, s.output_strides);
  strides_of(rank, ws, layout & 4, s.weight_strides);
  std::vector<E> x(q.batch * q.in * pixels), y(q.batch * q.out * spots), w(q.out * ig * taps), b(q.out);
  for (auto* v : {&x, &y, &w, &b}) {
    for (E& e : *v) e = random_value<E>();
  }
  auto at = [](int64_t n, int64_t c, const int64_t* pos, int d, const int64_t* strides) {
    int64_t i = n * strides[0] + c * strides[1];
    for (int k = 0; k < d; ++k) i += pos[k] * strides[k + 2];
    return i;
  };
  auto split = [](int64_t p, const int64_t* n, int64_t* to) {
    to[2] = p % n[2], to[1] = p / n[2] % n[1], to[0] = p / (n[2] * n[1]);
  };
  // Strides are listed from the first real dimension, coordinates too: 1- and 2-d cases have trailing ones.
  int d = static_cast<int>(q.spatial);
  std::vector<E> y_want(y.size()), yb_want(y.size()), dx_want(x.size()), dw_want(w.size());
  auto input_at = [&](const int64_t* spot, const int64_t* tap, int64_t* to) {
    bool inside = true;
    for (int k = 0; k < 3; ++k) {
      to[k] = k < d ? spot[k] * q.stride[k] - q.padding[k] + tap[k] * q.dilation[k] : 0;
      inside = inside && to[k] >= 0 && to[k] < size[k];
    }
    return inside;
  };
  int64_t spot[3], tap[3], from[3];
  for (int64_t n = 0; n < q.batch; ++n) {
    for (int64_t o = 0; o < q.out; ++o) {
      for (int64_t p = 0; p < spots; ++p) {
        split(p, out, spot);
        Chains<E> sum;
        for (int64_t c = 0; c < ig; ++c) {
          for (int64_t t = 0; t < taps; ++t) {
            split(t, tap_count, tap);
            bool inside = input_at(spot, tap, from);
            E v = inside ? x[at(n, o / og * ig + c, from, d, s.input_strides)] : E{};
            E u = w[at(o, c, tap, d, s.weight_strides)];
            // Rows are channels in the plain form: complex terms keep the order of the product's operands.
            bool rows_are_channels = !(layout & 2);
            if (complex && !rows_are_channels)
              sum.add(v, u);
            else
              sum.add(u, v);
          }
        }
        int64_t i = at(n, o, spot, d, s.output_strides);
        y_want[i] = sum.done();
        sum.close();
        yb_want[i] = E(typename Sum<E>::Type(sum.total + typename Sum<E>::Type(b[o])));
      }
    }
    for (int64_t c = 0; c < q.in; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        int64_t pixel[3];
        split(p, size, pixel);
        Chains<E> sum;
        for (int64_t o = 0; o < og; ++o) {
          for (int64_t t = 0; t < taps; ++t) {
            split(t, tap_count, tap);
            bool met = true;
            for (int k = 0; k < 3; ++k) {
              int64_t z = k < d ? pixel[k] + q.padding[k] - tap[k] * q.dilation[k] : 0;
              int64_t step = k < d ? q.stride[k] : 1;
              met = met && z >= 0 && z % step == 0 && z / step < out[k];
              from[k] = z / step;
            }
            int64_t channel = c / ig * og + o;
            E v = met ? y[at(n, channel, from, d, s.output_strides)] : E{};
            E u = w[at(channel, c % ig, tap, d, s.weight_strides)];
            if (complex && (layout & 1))
              sum.add(v, u);
            else
              sum.add(u, v);
          }
        }
        dx_want[at(n, c, pixel, d, s.input_strides)] = sum.done();
      }
    }
  }
  for (int64_t o = 0; o < q.out; ++o) {
    for (int64_t c = 0; c < ig; ++c) {
      for (int64_t t = 0; t < taps; ++t) {
        split(t, tap_count, tap);
        Chains<E> sum;
        for (int64_t n = 0; n < q.batch; ++n) {
          for (int64_t p = 0; p < spots; ++p) {
            split(p, out, spot);
            bool inside = input_at(spot, tap, from);
            sum.add(y[at(n, o, spot, d, s.output_strides)],
                    inside ? x[at(n, o / og * ig + c, from, d, s.input_strides)] : E{});
          }
        }
        dw_want[at(o, c, tap, d, s.weight_strides)] = sum.done();
      }
    }
  }
  char name[160];
  std::snprintf(name, sizeof name, "%s %ldd batch %ld groups %ld %ld->%ld size %ld kernel %ld layout %d", dtype,
                q.spatial, q.batch, q.groups, q.in, q.out, q.size[0], q.kernel[0], layout);
  for (const GemmThreads& threads : {GemmThreads{}, GemmThreads{2, two_threads}}) {
    std::vector<E> got(y.size());
    // The order of complex factors matters, so channels-last results, products turned round, are the caller's to copy.
    const bool taken = !complex || !(layout & 3);
    bool ok = conv_forward_generated(kernel, s, x.data(), w.data(), nullptr, got.data(), threads) == taken;
    if (taken) {
      compare("forward", name, got, y_want);
      ok &= conv_forward_generated(kernel, s, x.data(), w.data(), b.data(), got.data(), threads);
      compare("forward with bias", name, got, yb_want);
    }
    got.assign(x.size(), E{});
    ok &= conv_backward_data_generated(kernel, s, y.data(), w.data(), got.data(), threads) == taken;
    if (taken) compare("data", name, got, dx_want);
    got.assign(w.size(), E{});
    ok &= conv_backward_weights_generated(kernel, s, x.data(), y.data(), got.data(), threads);
    compare("weights", name, got, dw_want);
    if (!ok) std::printf("%s: layouts are taken or declined otherwise than they should be\n", name), ++wrong;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  void* handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    std::printf("%s\n", dlerror());
    return 2;
  }
  std::vector<Case> cases = {
      {2, 2, 1, 3, 8, {9, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {2, 2, 1, 16, 17, {14, 13}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
      {2, 1, 1, 5, 7, {8, 8}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
      {2, 3, 1, 6, 9, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
      {2, 1, 1, 130, 12, {10, 10}, {3, 3}, {2, 1}, {0, 2}, {1, 1}},
      {2, 2, 4, 16, 8, {10, 10}, {3, 2}, {1, 2}, {1, 0}, {2, 1}},
      {2, 2, 6, 6, 12, {9, 9}, {3, 3}, {2, 3}, {1, 1}, {1, 1}},
      {2, 3, 1, 3, 10, {23, 23}, {7, 7}, {2, 2}, {3, 3}, {1, 1}},
      {1, 2, 1, 6, 10, {33}, {5}, {2}, {2}, {1}},
      {1, 2, 2, 6, 10, {33}, {4}, {1}, {0}, {3}},
      {3, 1, 1, 4, 6, {6, 7, 8}, {3, 3, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}},
  };
  std::string level = argv[2];
  auto kernel = [&](const char* dtype) {
    return static_cast<const GemmKernel*>(dlsym(handle, (std::string("gemm_") + dtype + "_" + level).c_str()));
  };
  for (const Case& q : cases) {
    for (int layout = 0; layout < 8; ++layout) {
      check<float>(*kernel("f32"), "f32", q, layout, false);
      check<Bf16>(*kernel("bf16"), "bf16", q, layout, false);
      if (layout != 0 && layout != 7) continue;
      check<double>(*kernel("f64"), "f64", q, layout, false);
      check<int32_t>(*kernel("i32"), "i32", q, layout, false);
      bool one_spot = q.size[0] == 1;  // both layouts are one there
      if (!one_spot) check<std::complex<float>>(*kernel("c64"), "c64", q, layout, true);
    }
  }
  std::printf("%s: %ld values, %ld wrong\n", level.c_str(), checked, wrong);
  return wrong != 0;
}
