// Times a library of src/vendor/library.h beside PyTorch on the same shapes: two processes, alternating blocks,
// medians. Usage: bench_library libstrata_onednn.so [python with torch] [threads] [conv] Each block of one side starts
// when the other's worker threads have gone to sleep, so neither spins into the other.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "open_library.h"

namespace {

using Clock = std::chrono::steady_clock;

// Reads "kind dtype sizes...", answers with the microseconds of one block of calls.
const char* peer_program = R"(
import sys, time, torch
torch.set_num_threads(int(sys.argv[1]))
cache = {}
def make(kind, dtype, *n):
    dtype = {'f32': torch.float32, 'bf16': torch.bfloat16}[dtype]
    if kind in ('mm', 'mm_nt'):
        m, k, c = n[0], n[2], n[1]
        a = torch.randn(m, k).to(dtype)
        b = torch.randn(k, c).to(dtype) if kind == 'mm' else torch.randn(c, k).to(dtype).t()
        out = torch.empty(m, c, dtype=dtype)
        return lambda: torch.mm(a, b, out=out)
    batch, cin, size, cout, kernel, stride = n
    fmt = torch.channels_last if kind.endswith('_last') else torch.contiguous_format
    x = torch.randn(batch, cin, size, size).to(dtype).contiguous(memory_format=fmt)
    w = torch.randn(cout, cin, kernel, kernel).to(dtype).contiguous(memory_format=fmt)
    pad = kernel // 2
    forward = lambda: torch.nn.functional.conv2d(x, w, stride=stride, padding=pad)
    if kind.startswith('conv'):
        return forward
    g = torch.randn_like(forward())
    mask = [kind.startswith('data'), kind.startswith('weights'), False]
    op = torch.ops.aten.convolution_backward
    return lambda: op(g, x, w, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, mask)
with torch.no_grad():
    for line in sys.stdin:
        spec, calls = line.rsplit(None, 1)
        if spec not in cache:
            cache.clear()
            kind, dtype, *sizes = spec.split()
            cache[spec] = make(kind, dtype, *map(int, sizes))
            for _ in range(3):
                cache[spec]()
        f = cache[spec]
        f()
        start = time.perf_counter()
        for _ in range(int(calls)):
            f()
        print((time.perf_counter() - start) * 1e6 / int(calls), flush=True)
)";

class Peer {
 public:
  Peer(const std::string& python, int threads) {
    int to[2], from[2];
    if (pipe(to) || pipe(from)) std::exit(2);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to[0], 0);
      dup2(from[1], 1);
      close(to[1]);
      close(from[0]);
      execl(python.c_str(), python.c_str(), "-c", peer_program, std::to_string(threads).c_str(), nullptr);
      _exit(2);
    }
    close(to[0]);
    close(from[1]);
    out_ = fdopen(to[1], "w");
    in_ = fdopen(from[0], "r");
  }
  ~Peer() {
    std::fclose(out_);
    waitpid(pid_, nullptr, 0);
  }
  double block(const std::string& spec, int calls) {
    std::fprintf(out_, "%s %d\n", spec.c_str(), calls);
    std::fflush(out_);
    double us = 0;
    if (std::fscanf(in_, "%lf", &us) != 1) std::exit(2);
    return us;
  }

 private:
  pid_t pid_;
  FILE *in_, *out_;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

std::vector<char> random_values(int64_t n, bool bf16) {
  static std::mt19937 generator(3);
  std::normal_distribution<float> normal;
  std::vector<char> bytes(n * (bf16 ? 2 : 4));
  for (int64_t i = 0; i < n; ++i) {
    float x = normal(generator);
    if (bf16)
      std::memcpy(&bytes[i * 2], reinterpret_cast<char*>(&x) + 2, 2);
    else
      std::memcpy(&bytes[i * 4], &x, 4);
  }
  return bytes;
}

struct Work {
  std::string spec;
  double flops;
  std::function<int()> call;
};

Work product(const StrataLibrary* lib, bool bf16, int64_t m, int64_t n, int64_t k, bool transposed) {
  auto a = std::make_shared<std::vector<char>>(random_values(m * k, bf16));
  auto b = std::make_shared<std::vector<char>>(random_values(k * n, bf16));
  auto c = std::make_shared<std::vector<char>>(random_values(m * n, bf16));
  StrataMatmul p{};
  p.size = sizeof p, p.dtype = bf16, p.batch = 1, p.m = m, p.n = n, p.k = k, p.alpha = 1;
  p.a_row = k, p.a_col = 1, p.b_row = transposed ? 1 : n, p.b_col = transposed ? k : 1, p.c_row = n;
  std::string spec = std::string(transposed ? "mm_nt " : "mm ") + (bf16 ? "bf16" : "f32");
  for (int64_t s : {m, n, k}) spec += " " + std::to_string(s);
  return {spec, 2.0 * m * n * k, [=]() mutable {
            p.a = a->data(), p.b = b->data(), p.c = c->data();
            return lib->matmul(&p);
          }};
}

Work convolution(const StrataLibrary* lib, const char* kind, bool bf16, bool last, int64_t batch, int64_t in,
                 int64_t size, int64_t out, int64_t kernel, int64_t stride) {
  int64_t pad = kernel / 2, result = (size + 2 * pad - kernel) / stride + 1;
  StrataConvolution s{};
  s.size = sizeof s, s.dtype = bf16, s.spatial = 2, s.batch = batch, s.groups = 1;
  s.in_channels = in, s.out_channels = out;
  for (int d = 0; d < 2; ++d) {
    s.input[d] = size, s.output[d] = result, s.kernel[d] = kernel, s.stride[d] = stride;
    s.padding[d] = pad, s.dilation[d] = 1;
  }
  auto strides = [last](int64_t* to, int64_t c, int64_t side) {
    to[0] = c * side * side, to[1] = last ? 1 : side * side;
    to[2] = last ? side * c : side, to[3] = last ? c : 1;
  };
  strides(s.input_strides, in, size);
  strides(s.output_strides, out, result);
  strides(s.weight_strides, in, kernel);
  auto x = std::make_shared<std::vector<char>>(random_values(batch * in * size * size, bf16));
  auto w = std::make_shared<std::vector<char>>(random_values(out * in * kernel * kernel, bf16));
  auto y = std::make_shared<std::vector<char>>(random_values(batch * out * result * result, bf16));
  std::string spec = std::string(kind) + (last ? "_last " : " ") + (bf16 ? "bf16" : "f32");
  for (int64_t n : {batch, in, size, out, kernel, stride}) spec += " " + std::to_string(n);
  char pass = *kind;
  return {spec, 2.0 * batch * out * result * result * in * kernel * kernel, [=] {
            if (pass == 'c') return lib->conv_forward(&s, x->data(), w->data(), nullptr, y->data());
            if (pass == 'd') return lib->conv_backward_data(&s, y->data(), w->data(), x->data());
            return lib->conv_backward_weights(&s, x->data(), y->data(), w->data(), nullptr);
          }};
}

double own_block(const Work& work, int calls) {
  work.call();
  auto start = Clock::now();
  for (int i = 0; i < calls; ++i) work.call();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / calls;
}

void compare(const StrataLibrary* lib, const Work& work, Peer* peer) {
  if (work.call() != STRATA_LIBRARY_OK) {
    std::printf("%-40s %s\n", work.spec.c_str(), lib->last_error());
    return;
  }
  work.call();
  int calls = std::clamp(static_cast<int>(3e4 / own_block(work, 1)), 1, 2000);
  std::vector<double> own, other;
  for (int round = 0; round < 9; ++round) {
    if (peer) other.push_back(peer->block(work.spec, calls));
    usleep(20000);
    own.push_back(own_block(work, calls));
    if (peer) usleep(30000);
  }
  double us = median(own);
  std::printf("%-40s %10.2f us %7.1f GFLOP/s", work.spec.c_str(), us, work.flops / us * 1e-3);
  if (peer) std::printf("   torch %10.2f us   speed ratio %.2f", median(other), median(other) / us);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int threads = argc > 3 ? std::atoi(argv[3]) : 2;
  std::string count = std::to_string(threads);
  setenv("OMP_NUM_THREADS", count.c_str(), 1);
  setenv("KMP_BLOCKTIME", "10", 0);  // ms; short of a block's pause, so that this side sleeps while the peer runs
  Peer* peer = argc > 2 ? new Peer(argv[2], threads) : nullptr;
  const StrataLibrary* lib = open_library(argc > 1 ? argv[1] : "./libstrata_onednn.so");
  bool only_convolutions = argc > 4 && std::strcmp(argv[4], "conv") == 0;
  for (auto [m, n, k, nt] : std::vector<std::array<int64_t, 4>>{{1024, 1024, 1024, 0},
                                                                {2048, 2048, 2048, 0},
                                                                {1000, 1000, 1000, 0},
                                                                {64, 512, 784, 0},
                                                                {64, 512, 784, 1},
                                                                {128, 3072, 768, 1},
                                                                {1, 1000, 2048, 1},
                                                                {64, 10, 512, 1},
                                                                {32, 32, 32, 0},
                                                                {4, 4, 4, 0}}) {
    if (only_convolutions) break;
    for (bool bf16 : {false, true}) compare(lib, product(lib, bf16, m, n, k, nt != 0), peer);
  }
  for (bool bf16 : {false, true}) {
    for (bool last : {false, true}) {
      for (const char* kind : {"conv", "data", "weights"}) {
        compare(lib, convolution(lib, kind, bf16, last, 8, 64, 56, 64, 3, 1), peer);
      }
    }
  }
  for (bool last : {false, true}) {
    compare(lib, convolution(lib, "conv", false, last, 1, 64, 56, 256, 1, 1), peer);
    compare(lib, convolution(lib, "conv", false, last, 1, 512, 7, 512, 3, 1), peer);
    compare(lib, convolution(lib, "conv", false, last, 1, 3, 224, 64, 7, 2), peer);
    compare(lib, convolution(lib, "conv", false, last, 1, 256, 14, 256, 3, 1), peer);
    for (const char* kind : {"conv", "data", "weights"}) {
      compare(lib, convolution(lib, kind, false, last, 1, 2048, 7, 512, 1, 1), peer);
      compare(lib, convolution(lib, kind, false, last, 8, 512, 28, 1024, 1, 2), peer);
    }
  }
  delete peer;
  return 0;
}
