// Checks a library of matrix products and convolutions against loops in double precision: odd sizes, transposed and
// padded operands, batches, fused bias bits, empty sizes, convolutions with groups, strides, dilation and both memory
// orders, errors as codes, many threads at once, and work in a forked child.
// Usage: library_check libstrata_onednn.so ; exit code 0 when everything agrees.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "open_library.h"

namespace {

const StrataLibrary* lib;
int failures = 0;
std::mt19937 generator(7);

void expect(bool ok, const std::string& what) {
  if (ok) return;
  ++failures;
  std::printf("FAILED %s [%s]\n", what.c_str(), lib->last_error());
}

uint16_t to_bf16(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
float from_bf16(uint16_t x) {
  uint32_t u = uint32_t{x} << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

// A buffer of either dtype, read and written as float.
struct Buffer {
  int dtype;
  std::vector<float> f;
  std::vector<uint16_t> h;
  Buffer(int type, int64_t n, bool fill = true) : dtype(type) {
    std::uniform_real_distribution<float> values(-1, 1);
    if (type == STRATA_LIBRARY_F32)
      f.resize(n + 1);
    else
      h.resize(n + 1);
    for (int64_t i = 0; fill && i < n; ++i) set(i, values(generator));
  }
  void set(int64_t i, float x) {
    if (dtype == STRATA_LIBRARY_F32)
      f[i] = x;
    else
      h[i] = to_bf16(x);
  }
  double at(int64_t i) const { return dtype == STRATA_LIBRARY_F32 ? f[i] : from_bf16(h[i]); }
  void* data() { return dtype == STRATA_LIBRARY_F32 ? static_cast<void*>(f.data()) : h.data(); }
};

bool close(int dtype, double got, double want, double size) {
  double tolerance = dtype == STRATA_LIBRARY_F32 ? 4e-6 * size : std::abs(want) * 0.005 + 1e-5 * size;
  return std::abs(got - want) <= tolerance + 1e-6;
}

struct Case {
  int64_t batch, m, n, k;
  bool ta, tb, shared_b = false;
  int pad = 0;
  float alpha = 1;
  bool accumulate = false, bias = false;
};

void check_matmul(int dtype, const Case& q) {
  int64_t lda = (q.ta ? q.m : q.k) + q.pad, ldb = (q.tb ? q.k : q.n) + q.pad, ldc = q.n + q.pad;
  int64_t sa = lda * (q.ta ? q.k : q.m), sb = q.shared_b ? 0 : ldb * (q.tb ? q.n : q.k), sc = ldc * q.m;
  const bool widens = dtype == STRATA_LIBRARY_BF16_F32;
  const int in = widens ? STRATA_LIBRARY_BF16 : dtype, out = widens ? STRATA_LIBRARY_F32 : dtype;
  Buffer a(in, sa * q.batch), b(in, ldb * (q.tb ? q.n : q.k) * (q.shared_b ? 1 : q.batch));
  Buffer c(out, sc * q.batch), bias(out, q.n);
  Buffer before = c;
  StrataMatmul p{};
  p.size = sizeof p, p.dtype = dtype, p.batch = q.batch, p.m = q.m, p.n = q.n, p.k = q.k;
  p.a = a.data(), p.a_row = q.ta ? 1 : lda, p.a_col = q.ta ? lda : 1, p.a_batch = sa;
  p.b = b.data(), p.b_row = q.tb ? 1 : ldb, p.b_col = q.tb ? ldb : 1, p.b_batch = sb;
  p.c = c.data(), p.c_row = ldc, p.c_batch = sc;
  p.bias = q.bias ? bias.data() : nullptr, p.alpha = q.alpha, p.accumulate = q.accumulate;
  char name[160];
  std::snprintf(name, sizeof name, "matmul dtype %d, %ld x (%ld,%ld,%ld) %c%c shared %d pad %d alpha %g acc %d bias %d",
                dtype, q.batch, q.m, q.n, q.k, "NT"[q.ta], "NT"[q.tb], q.shared_b, q.pad, q.alpha, q.accumulate,
                q.bias);
  int status = lib->matmul(&p);
  if (status == STRATA_LIBRARY_UNSUPPORTED) {
    std::printf("unsupported: %s (%s)\n", name, lib->last_error());
    return;
  }
  expect(status == STRATA_LIBRARY_OK, name);
  if (status != STRATA_LIBRARY_OK) return;
  int bad = 0;
  for (int64_t i = 0; i < q.batch; ++i) {
    for (int64_t r = 0; r < q.m; ++r) {
      for (int64_t s = 0; s < q.n; ++s) {
        double sum = 0;
        for (int64_t t = 0; t < q.k; ++t) {
          sum += a.at(i * sa + r * p.a_row + t * p.a_col) * b.at(i * sb + t * p.b_row + s * p.b_col);
        }
        int64_t at = i * sc + r * ldc + s;
        double want = q.alpha * sum + (q.accumulate ? before.at(at) : 0) + (q.bias ? bias.at(s) : 0);
        bad += !close(out, c.at(at), want, std::sqrt(double(q.k)) + 1);
      }
      for (int64_t s = q.n; s < ldc; ++s) bad += c.at(i * sc + r * ldc + s) != before.at(i * sc + r * ldc + s);
    }
  }
  expect(bad == 0, std::string(name) + ": " + std::to_string(bad) + " values off");
  if (q.bias && dtype == STRATA_LIBRARY_F32) {  // the bits of a separate addition
    Buffer fused = c;
    p.bias = nullptr;
    lib->matmul(&p);
    int64_t different = 0;
    for (int64_t i = 0; i < q.batch * q.m; ++i) {
      for (int64_t s = 0; s < q.n; ++s) {
        float want = c.f[i * ldc + s] + bias.f[s];
        different += std::memcmp(&want, &fused.f[i * ldc + s], 4) != 0;
      }
    }
    expect(different == 0, std::string(name) + ": bias changes " + std::to_string(different) + " bits");
  }
}

void check_products() {
  std::vector<Case> cases = {{1, 1, 1, 1, 0, 0},    {1, 7, 5, 3, 0, 0},       {1, 7, 5, 3, 1, 0},
                             {1, 7, 5, 3, 0, 1},    {1, 7, 5, 3, 1, 1},       {1, 33, 65, 129, 0, 0, 0, 3},
                             {1, 1, 50, 70, 0, 1},  {1, 1, 50, 70, 0, 0},     {1, 50, 1, 70, 0, 0},
                             {1, 50, 1, 70, 1, 1},  {1, 64, 48, 0, 0, 0},     {1, 0, 4, 4, 0, 0},
                             {0, 4, 4, 4, 0, 0},    {3, 17, 19, 23, 0, 0},    {3, 17, 19, 23, 1, 1},
                             {3, 17, 19, 23, 0, 1}, {3, 17, 19, 23, 0, 0, 1}, {3, 17, 19, 23, 1, 0, 1},
                             {12, 1, 64, 40, 0, 1}, {12, 40, 1, 64, 0, 0},    {2, 130, 70, 90, 0, 0, 0, 5}};
  for (int dtype : {STRATA_LIBRARY_F32, STRATA_LIBRARY_BF16, STRATA_LIBRARY_BF16_F32}) {
    for (Case q : cases) {
      check_matmul(dtype, q);
      q.accumulate = true;
      check_matmul(dtype, q);
      q.alpha = 0.375f;
      check_matmul(dtype, q);
      q.accumulate = false;
      check_matmul(dtype, q);
      q.alpha = 1, q.bias = dtype != STRATA_LIBRARY_BF16_F32;
      check_matmul(dtype, q);
    }
  }
  for (Case q : {Case{1, 64, 512, 784, 0, 1}, Case{1, 200, 300, 2500, 0, 0}, Case{1, 31, 10, 5000, 0, 1},
                 Case{1, 257, 129, 1025, 1, 0}, Case{1, 1, 300, 3000, 0, 1}}) {
    q.bias = true;
    check_matmul(STRATA_LIBRARY_F32, q);
  }
}

struct Conv {
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

void check_conv(int dtype, const Conv& q, bool last, bool with_bias) {
  StrataConvolution s{};
  s.size = sizeof s, s.dtype = dtype, s.spatial = q.spatial, s.batch = q.batch, s.groups = q.groups;
  s.in_channels = q.in, s.out_channels = q.out;
  int64_t size[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  for (int d = 0; d < q.spatial; ++d) {
    size[d] = s.input[d] = q.size[d], kernel[d] = s.kernel[d] = q.kernel[d], s.stride[d] = q.stride[d];
    s.padding[d] = q.padding[d], s.dilation[d] = q.dilation[d];
    int64_t span = size[d] + 2 * q.padding[d] - q.dilation[d] * (kernel[d] - 1) - 1;
    out[d] = s.output[d] = span / q.stride[d] + 1;
  }
  int rank = static_cast<int>(q.spatial) + 2;
  int64_t ig = q.in / q.groups, og = q.out / q.groups;
  int64_t x_sizes[5] = {q.batch, q.in, size[0], size[1], size[2]};
  int64_t y_sizes[5] = {q.batch, q.out, out[0], out[1], out[2]};
  int64_t w_sizes[5] = {q.out, ig, kernel[0], kernel[1], kernel[2]};
  strides_of(rank, x_sizes, last, s.input_strides);
  strides_of(rank, y_sizes, last, s.output_strides);
  strides_of(rank, w_sizes, last, s.weight_strides);
  auto count = [](const int64_t* n) { return n[0] * n[1] * n[2] * n[3] * n[4]; };
  int64_t nx = count(x_sizes), ny = count(y_sizes), nw = count(w_sizes);
  Buffer x(dtype, nx), w(dtype, nw), b(dtype, q.out), y(dtype, ny, false), dy(dtype, ny), dx(dtype, nx, false);
  Buffer dw(dtype, nw, false), db(dtype, q.out, false);
  std::vector<double> y_want(ny), dx_want(nx), dw_want(nw), db_want(q.out);

  for (int64_t n = 0; n < q.batch; ++n) {
    for (int64_t o = 0; o < q.out; ++o) {
      for (int64_t p = 0; p < out[0] * out[1] * out[2]; ++p) {
        int64_t at[3] = {p / (out[1] * out[2]), p / out[2] % out[1], p % out[2]};
        int64_t yi = n * s.output_strides[0] + o * s.output_strides[1];
        for (int d = 0; d < q.spatial; ++d) yi += at[d] * s.output_strides[d + 2];
        double sum = 0;
        db_want[o] += dy.at(yi);
        for (int64_t c = 0; c < ig; ++c) {
          for (int64_t t = 0; t < kernel[0] * kernel[1] * kernel[2]; ++t) {
            int64_t tap[3] = {t / (kernel[1] * kernel[2]), t / kernel[2] % kernel[1], t % kernel[2]};
            int64_t xi = n * s.input_strides[0] + (o / og * ig + c) * s.input_strides[1];
            int64_t wi = o * s.weight_strides[0] + c * s.weight_strides[1];
            bool inside = true;
            for (int d = 0; d < q.spatial; ++d) {
              int64_t pos = at[d] * q.stride[d] - q.padding[d] + tap[d] * q.dilation[d];
              inside = inside && pos >= 0 && pos < size[d];
              xi += pos * s.input_strides[d + 2];
              wi += tap[d] * s.weight_strides[d + 2];
            }
            if (!inside) continue;
            sum += x.at(xi) * w.at(wi);
            dx_want[xi] += dy.at(yi) * w.at(wi);
            dw_want[wi] += dy.at(yi) * x.at(xi);
          }
        }
        y_want[yi] = sum + (with_bias ? b.at(o) : 0);
      }
    }
  }
  char name[200];
  std::snprintf(name, sizeof name,
                "conv dtype %d %ldd batch %ld groups %ld %ld->%ld size %ld kernel %ld last %d bias %d", dtype,
                q.spatial, q.batch, q.groups, q.in, q.out, q.size[0], q.kernel[0], last, with_bias);
  auto compare = [&](const char* what, int status, const Buffer& got, const std::vector<double>& want, double terms) {
    if (status == STRATA_LIBRARY_UNSUPPORTED) {
      std::printf("unsupported: %s %s (%s)\n", name, what, lib->last_error());
      return;
    }
    int64_t bad = 0;
    for (size_t i = 0; i < want.size(); ++i) bad += !close(dtype, got.at(i), want[i], std::sqrt(terms) + 1);
    expect(status == 0 && bad == 0, std::string(name) + " " + what + ": " + std::to_string(bad) + " values off");
  };
  double taps = double(kernel[0] * kernel[1] * kernel[2]);
  compare("forward", lib->conv_forward(&s, x.data(), w.data(), with_bias ? b.data() : nullptr, y.data()), y, y_want,
          ig * taps);
  compare("data", lib->conv_backward_data(&s, dy.data(), w.data(), dx.data()), dx, dx_want, og * taps);
  int status = lib->conv_backward_weights(&s, x.data(), dy.data(), dw.data(), with_bias ? db.data() : nullptr);
  compare("weights", status, dw, dw_want, double(ny) / q.out);
  if (with_bias) compare("bias", status, db, db_want, double(ny) / q.out);
}

void check_convolutions() {
  std::vector<Conv> cases = {
      {2, 2, 1, 3, 8, {9, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {2, 2, 1, 16, 32, {14, 14}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
      {2, 1, 1, 5, 7, {8, 8}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
      {2, 1, 1, 64, 32, {10, 10}, {1, 1}, {2, 2}, {0, 0}, {1, 1}},
      {2, 2, 1, 24, 40, {5, 7}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
      {1, 3, 1, 24, 1, {9}, {1}, {1}, {0}, {1}},
      {2, 1, 1, 8, 9, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
      {2, 2, 4, 16, 8, {10, 10}, {3, 2}, {1, 2}, {1, 0}, {2, 1}},
      {2, 2, 16, 16, 16, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {2, 1, 6, 6, 12, {9, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
      {2, 1, 1, 3, 16, {23, 23}, {7, 7}, {2, 2}, {3, 3}, {1, 1}},
      {1, 2, 1, 6, 10, {33}, {5}, {2}, {2}, {1}},
      {1, 2, 2, 6, 10, {33}, {4}, {1}, {0}, {3}},
      {3, 1, 1, 4, 6, {6, 7, 8}, {3, 3, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}},
  };
  for (int dtype : {STRATA_LIBRARY_F32, STRATA_LIBRARY_BF16}) {
    for (const Conv& q : cases) {
      for (bool last : {false, true}) {
        for (bool bias : {false, true}) check_conv(dtype, q, last, bias);
      }
    }
  }
}

void check_errors() {
  StrataMatmul p{};
  expect(lib->matmul(nullptr) == STRATA_LIBRARY_INVALID, "null call");
  p.size = 8;
  expect(lib->matmul(&p) == STRATA_LIBRARY_INVALID, "short struct");
  p.size = sizeof p, p.dtype = 77;
  expect(lib->matmul(&p) == STRATA_LIBRARY_UNSUPPORTED, "unknown dtype");
  p.dtype = 0, p.batch = 1, p.m = -1;
  expect(lib->matmul(&p) == STRATA_LIBRARY_INVALID && std::strstr(lib->last_error(), "negative"), "negative size");
  float buffer[64] = {};
  p.m = p.n = p.k = 2, p.alpha = 1, p.a = p.b = buffer, p.c = buffer + 32, p.c_row = 2;
  p.a_row = 4, p.a_col = 2, p.b_row = 2, p.b_col = 1;
  expect(lib->matmul(&p) == STRATA_LIBRARY_UNSUPPORTED, "no unit stride");
  StrataConvolution s{};
  s.size = sizeof s, s.spatial = 4;
  expect(lib->conv_forward(&s, buffer, buffer, nullptr, buffer) == STRATA_LIBRARY_INVALID, "four dimensions");
}

void check_cache() {
  StrataLibraryCache info{};
  info.size = sizeof info;
  lib->cache_resize(4);
  check_matmul(0, {1, 20, 20, 20, 0, 0});
  lib->cache_info(&info);
  expect(info.entries <= 4 && info.capacity == 4, "cache_resize bounds the table");
  lib->cache_resize(512);
  int64_t hits = info.hits;
  check_matmul(0, {1, 20, 20, 20, 0, 0});
  lib->cache_info(&info);
  expect(info.hits == hits + 1, "a repeated shape is a hit");
}

void check_prepare() {
  StrataLibraryCache before{}, after{};
  before.size = after.size = sizeof before;
  lib->cache_info(&before);
  expect(lib->prepare() == STRATA_LIBRARY_OK && lib->prepare() == STRATA_LIBRARY_OK, "prepare, and again");
  lib->cache_info(&after);
  expect(after.entries == before.entries && after.misses == before.misses, "prepare leaves no plan");
  check_matmul(0, {1, 20, 20, 20, 0, 0});
}

void check_threads() {
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, 0);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t, &wrong] {
      for (int round = 0; round < 40; ++round) {
        int64_t n = 16 + (round * 7 + t) % 24;
        std::vector<float> a(n * n, 1.0f), b(n * n, float(t + 1)), c(n * n);
        StrataMatmul p{};
        p.size = sizeof p, p.batch = 1, p.m = p.n = p.k = n, p.alpha = 1;
        p.a = a.data(), p.b = b.data(), p.c = c.data();
        p.a_row = p.b_row = p.c_row = n, p.a_col = p.b_col = 1;
        wrong[t] += lib->matmul(&p) != 0;
        for (float x : c) wrong[t] += x != float(n * (t + 1));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int w : wrong) expect(w == 0, "calls from many threads");
}

void check_fork() {
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int before = failures;
    check_matmul(0, {1, 200, 200, 200, 0, 0});
    _exit(failures != before);
  }
  int status = 0;
  waitpid(child, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a product in a forked child");
}

}  // namespace

int main(int argc, char** argv) {
  lib = open_library(argc > 1 ? argv[1] : "./libstrata_onednn.so");
  for (int threads : {2, 1}) {
    lib->set_threads(threads);
    check_products();
    check_convolutions();
  }
  lib->set_threads(2);
  check_errors();
  check_prepare();
  check_cache();
  check_threads();
  check_fork();
  StrataLibraryCache info{};
  info.size = sizeof info;
  lib->cache_info(&info);
  std::printf("%d failures; cache: %ld entries of %ld, %ld hits, %ld misses\n", failures, info.entries, info.capacity,
              info.hits, info.misses);
  return failures != 0;
}
