// Blocking. One operand is shared: its panels for 1,024 k (one chain) are packed once, by all threads, into a buffer of
// the calling thread. The other is private: each task packs a block of it into its own thread's buffer, small enough
// for the second-level cache, and runs it against the shared panels. The smaller operand is the shared one.
#include "ops/matmul/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "dispatch/seen.h"

namespace strata::eager {
namespace {

constexpr int64_t chain = 1024;
constexpr int64_t private_bytes = 512 << 10;
constexpr int64_t shared_bytes = 8 << 20;
constexpr int64_t kept_bytes = 32 << 20;         // a larger buffer is given back after the product
constexpr int64_t tile_bytes = 4096;             // at least mr * nr accumulators
constexpr double serial_work = 40. * 40 * 40;    // up to here starting threads costs more than the product
constexpr double line_work = 1 << 21;            // the same of a vector: reading the matrix is all the work
constexpr double split_work = 256. * 256 * 256;  // up to here threads share nothing, since lines move slowly
constexpr int64_t direct_bytes = 64 << 10;       // a b of this size is read in place by any number of rows

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A buffer that keeps its memory between products, so that small ones allocate nothing.
class Buffer {
 public:
  ~Buffer() { std::free(base_); }
  char* at_least(int64_t bytes) {
    if (bytes > size_) {
      std::free(base_);
      size_ = 0;
      int64_t rounded = (bytes + 4095) & ~int64_t{4095};
      base_ = static_cast<char*>(std::aligned_alloc(4096, rounded));
      if (!base_) throw std::bad_alloc();
      size_ = rounded;
    }
    return base_;
  }
  void settle() {
    if (size_ <= kept_bytes) return;
    std::free(base_);
    base_ = nullptr;
    size_ = 0;
  }

 private:
  char* base_ = nullptr;
  int64_t size_ = 0;
};

struct Buffers {
  Buffer shared, own, sums, gathered;
};
thread_local Buffers buffers;

template <class Body>
void run_parallel(const GemmThreads& threads, int64_t count, Body&& body) {
  if (threads.count <= 1 || !threads.parallel_for || count <= 1) {
    body(0, count);
    return;
  }
  auto call = [](void* ctx, int64_t begin, int64_t end) {
    (*static_cast<std::remove_reference_t<Body>*>(ctx))(begin, end);
  };
  threads.parallel_for(0, count, 1, call, &body);
}

class Engine {
 public:
  Engine(const GemmKernel& kernel, const PanelProduct& product, const GemmThreads& threads)
      : kernel_(kernel), p_(product), threads_(threads) {
    a_panels_ = ceil_div(p_.m, kernel.mr);
    segment_panels_ = ceil_div(p_.columns, kernel.nr);
    b_panels_ = segment_panels_ * p_.segments;
  }

  void run() {
    const bool share_b = p_.m > p_.columns * p_.segments;
    const int64_t kc = std::clamp<int64_t>(p_.k, 1, chain);  // without k there may still be a bias
    const int64_t a_bytes = kc * kernel_.mr * kernel_.compute_bytes, b_bytes = kc * kernel_.nr * kernel_.compute_bytes;
    const int64_t shared_panel = share_b ? b_bytes : a_bytes;
    const int64_t shared_count = share_b ? b_panels_ : a_panels_;
    const int64_t at_once = std::clamp<int64_t>(shared_bytes / shared_panel, 1, shared_count);
    // With few rows there is little to gain from copying b first.
    const bool few_rows = !share_b && a_panels_ <= 3, near = p_.k * p_.b_row * kernel_.compute_bytes <= direct_bytes;
    direct_ = p_.b_direct && (few_rows || near);

    char* shared = buffers.shared.at_least(at_once * shared_panel);
    own_at_once_ = std::max<int64_t>(1, private_bytes / (share_b ? a_bytes : b_bytes));
    // Results that are rounded once keep their sums aside when there is more than one chain.
    const int64_t chains = ceil_div(p_.k, chain) + (p_.last_a != nullptr);
    if (kernel_.round && chains > 1) {
      sums_ = buffers.sums.at_least(p_.m * p_.columns * p_.segments * kernel_.compute_bytes);
    }
    for (int64_t s0 = 0; s0 < shared_count; s0 += at_once) {
      int64_t s1 = std::min(s0 + at_once, shared_count);
      for (int64_t i = 0; i < chains; ++i) {
        const bool bias = i * chain >= p_.k;
        step_ = {share_b,
                 i == 0,
                 i + 1 == chains,
                 i * chain,
                 bias ? 1 : std::min(chain, p_.k - i * chain),
                 bias ? p_.last_a : p_.a,
                 bias ? p_.last_b : p_.b,
                 s0,
                 s1,
                 shared,
                 a_bytes,
                 b_bytes};
        run_parallel(threads_, s1 - s0, [&](int64_t begin, int64_t end) {
          for (int64_t s = begin; s < end; ++s) pack(share_b, s0 + s, shared + s * shared_panel);
        });
        run_units();
      }
    }
    buffers.sums.settle();
  }

 private:
  // One chain's worth of k against one stretch of shared panels.
  struct Step {
    bool share_b, first, last;
    int64_t k0, kc;
    const PanelSource *a, *b;
    int64_t s0, s1;
    char* shared;
    int64_t a_bytes, b_bytes;  // of a packed panel
  };

  struct Columns {
    int64_t segment, first, count;
  };
  Columns columns_of(int64_t b_panel) const {
    int64_t segment = b_panel / segment_panels_, first = (b_panel % segment_panels_) * kernel_.nr;
    return {segment, first, std::min(kernel_.nr, p_.columns - first)};
  }

  void pack(bool b, int64_t panel, char* to) const {
    if (b) {
      if (reads_in_place(panel)) return;
      Columns cols = columns_of(panel);
      step_.b->pack(*step_.b, cols.segment, cols.first, cols.count, step_.k0, step_.kc, to);
    } else {
      int64_t first = panel * kernel_.mr;
      step_.a->pack(*step_.a, 0, first, std::min(kernel_.mr, p_.m - first), step_.k0, step_.kc, to);
    }
  }

  // A unit is one private panel against one stretch of shared ones. Units lie on a line, panel after panel, each as
  // long as its panel is high or wide; a thread gets a piece of the line and takes the units that begin there. So work
  // is even although panels at the edge are small, and a thread shares at most its first and last panel with a
  // neighbour.
  void run_units() {
    const bool own_a = step_.share_b;
    const int64_t full = own_a ? kernel_.mr : kernel_.nr, length = own_a ? p_.m : p_.columns;
    const int64_t per_segment = own_a ? a_panels_ : segment_panels_, own_count = own_a ? a_panels_ : b_panels_;
    const int64_t last_size = length - (per_segment - 1) * full;
    const int64_t shared_count = step_.s1 - step_.s0;
    const int64_t wanted = threads_.count > 1 ? 16 * threads_.count : 1;
    const int64_t stretches = std::clamp<int64_t>(ceil_div(wanted, own_count), 1, shared_count);
    const int64_t segment_line = length * stretches, line = segment_line * (own_count / per_segment);
    // The number of the first unit that begins at or after a point of the line.
    auto unit_at = [&](int64_t point) {
      int64_t segment = point / segment_line, rest = point % segment_line;
      int64_t panel = std::min(rest / (full * stretches), per_segment - 1);
      int64_t size = panel == per_segment - 1 ? last_size : full;
      int64_t inside = ceil_div(rest - panel * full * stretches, size);
      return (segment * per_segment + panel) * stretches + inside;
    };
    run_parallel(threads_, line, [&](int64_t from, int64_t to) {
      int64_t begin = unit_at(from), end = unit_at(to);
      while (begin < end) {
        int64_t panel = begin / stretches, stretch = begin % stretches;
        if (stretch > 0 || end - begin < stretches) {  // part of one panel's units
          int64_t last = std::min(stretches, stretch + end - begin);
          run_block(panel, panel + 1, step_.s0 + shared_count * stretch / stretches,
                    step_.s0 + shared_count * last / stretches);
          begin += last - stretch;
        } else {
          int64_t panels = (end - begin) / stretches;
          for (int64_t o = panel; o < panel + panels; o += own_at_once_) {
            run_block(o, std::min(o + own_at_once_, panel + panels), step_.s0, step_.s1);
          }
          begin += panels * stretches;
        }
      }
    });
  }

  void run_block(int64_t own0, int64_t own1, int64_t s0, int64_t s1) const {
    const Step& st = step_;
    const int64_t own_panel = st.share_b ? st.a_bytes : st.b_bytes;
    const int64_t shared_panel = st.share_b ? st.b_bytes : st.a_bytes;
    char* own = buffers.own.at_least((own1 - own0) * own_panel);
    for (int64_t o = own0; o < own1; ++o) {
      pack(!st.share_b, o, own + (o - own0) * own_panel);
    }
    for (int64_t s = s0; s < s1; ++s) {
      const char* shared = st.shared + (s - st.s0) * shared_panel;
      for (int64_t o = own0; o < own1; ++o) {
        const char* mine = own + (o - own0) * own_panel;
        if (st.share_b)
          tile(o, mine, s, shared);
        else
          tile(s, shared, o, mine);
      }
    }
  }

  bool reads_in_place(int64_t b_panel) const {
    return direct_ && step_.b == p_.b && columns_of(b_panel).count % kernel_.lanes == 0;
  }

  void tile(int64_t a_panel, const char* a, int64_t b_panel, const char* b) const {
    Columns cols = columns_of(b_panel);
    int64_t first = a_panel * kernel_.mr, rows = std::min(kernel_.mr, p_.m - first), b_step = 0;
    if (reads_in_place(b_panel)) {
      b = static_cast<const char*>(p_.b_direct) + (step_.k0 * p_.b_row + cols.first) * kernel_.element_bytes;
      b_step = p_.b_row;
    }
    char* c = static_cast<char*>(p_.c) +
              (cols.segment * p_.c_segment + first * p_.c_row + cols.first) * kernel_.element_bytes;
    if (!kernel_.round) {
      kernel_.kernel(step_.kc, a, b, b_step, c, p_.c_row, rows, cols.count, !step_.first);
      return;
    }
    alignas(64) char one_tile[tile_bytes];
    char* sums = one_tile;
    int64_t ld = kernel_.nr;
    if (sums_) {
      ld = p_.columns * p_.segments;
      sums = sums_ + (first * ld + cols.segment * p_.columns + cols.first) * kernel_.compute_bytes;
    }
    kernel_.kernel(step_.kc, a, b, b_step, sums, ld, rows, cols.count, !step_.first);
    if (step_.last) kernel_.round(rows, cols.count, sums, ld, c, p_.c_row);
  }

  const GemmKernel& kernel_;
  const PanelProduct& p_;
  GemmThreads threads_;
  int64_t a_panels_, segment_panels_, b_panels_;
  bool direct_ = false;
  char* sums_ = nullptr;
  int64_t own_at_once_ = 1;
  Step step_{};
};

struct Matrix : PanelSource {
  void (*pack_panel)(int64_t, int64_t, const void*, int64_t, int64_t, void*);
  const char* data;
  int64_t count_stride, k_stride, bytes;
};

void pack_matrix(const PanelSource& self, int64_t, int64_t first, int64_t count, int64_t k0, int64_t kc, void* to) {
  const auto& m = static_cast<const Matrix&>(self);
  const char* from = m.data + (first * m.count_stride + k0 * m.k_stride) * m.bytes;
  m.pack_panel(kc, count, from, m.count_stride, m.k_stride, to);
}

void one_product(const GemmKernel& kernel, const GemmCall& call, int64_t index, const GemmThreads& threads) {
  const int64_t bytes = kernel.element_bytes;
  const char* a_data = static_cast<const char*>(call.a) + index * call.a_batch * bytes;
  const char* b_data = static_cast<const char*>(call.b) + index * call.b_batch * bytes;
  Matrix a{{pack_matrix}, kernel.pack_a, a_data, call.a_row, call.a_col, bytes};
  Matrix b{{pack_matrix}, kernel.pack_b, b_data, call.b_col, call.b_row, bytes};
  PanelProduct p{};
  p.m = call.m;
  p.k = call.k;
  p.segments = 1;
  p.columns = call.n;
  p.a = &a;
  p.b = &b;
  if (call.b_col == 1 && kernel.plain && call.b_row > 0) {  // a step of 0 means packed panels
    p.b_direct = b_data;
    p.b_row = call.b_row;
  }
  Matrix ones{{pack_matrix}, kernel.pack_a, static_cast<const char*>(kernel.one), 0, 0, bytes};
  Matrix bias{{pack_matrix}, kernel.pack_b, static_cast<const char*>(call.bias), 1, 0, bytes};
  if (call.bias) {
    p.last_a = &ones;
    p.last_b = &bias;
  }
  p.c = static_cast<char*>(call.c) + index * call.c_batch * bytes;
  p.c_row = call.c_row;
  panel_product(kernel, p, threads);
}

// A batch of rows times columns, the first of each: the diagonals of products of several rows with several columns,
// since a panel of one column would be packed among zeros and its chain would wait for itself.
void diagonals(const GemmKernel& kernel, const GemmCall& call, const GemmThreads& threads) {
  constexpr int64_t most = 16;
  constexpr int64_t widest = 16;  // bytes of an element
  const int64_t group = std::min(kernel.lanes, most), bytes = kernel.element_bytes;
  run_parallel(threads, ceil_div(call.batch, group), [&](int64_t begin, int64_t end) {
    alignas(64) char made[most * most * widest];
    for (int64_t first = begin * group; first < std::min(end * group, call.batch); first += group) {
      GemmCall part = call;
      part.m = part.n = std::min(group, call.batch - first);
      part.a = static_cast<const char*>(call.a) + first * call.a_batch * bytes;
      part.b = static_cast<const char*>(call.b) + first * call.b_batch * bytes;
      part.a_row = call.a_batch, part.b_col = call.b_batch;
      part.c = made, part.c_row = group;
      one_product(kernel, part, 0, {});
      for (int64_t i = 0; i < part.m; ++i)
        std::memcpy(static_cast<char*>(call.c) + (first + i) * call.c_batch * bytes, made + i * (group + 1) * bytes,
                    size_t(bytes));
    }
  });
}

}  // namespace

void panel_product(const GemmKernel& kernel, const PanelProduct& product, const GemmThreads& threads) {
  check_seen("a product");
  if (product.m <= 0 || product.columns <= 0 || product.segments <= 0) return;
  if (product.k <= 0 && !product.last_a) {
    for (int64_t s = 0; s < product.segments; ++s) {
      for (int64_t i = 0; i < product.m; ++i) {
        char* row = static_cast<char*>(product.c) + (s * product.c_segment + i * product.c_row) * kernel.element_bytes;
        std::memset(row, 0, product.columns * kernel.element_bytes);
      }
    }
    return;
  }
  Engine(kernel, product, threads).run();
}

char* gather_buffer(int64_t bytes) { return buffers.gathered.at_least(bytes); }

void gemm(const GemmKernel& kernel, const GemmCall& call, const GemmThreads& threads) {
  check_seen("a product");
  const bool is_complex = !kernel.plain && !kernel.round;
  if (call.n == 1 && call.m > 1 && call.c_row == 1 && !call.bias && !is_complex) {
    // A column that lies like a row: vectors go along it.
    GemmCall turned = call;
    turned.m = 1, turned.n = call.m;
    turned.a = call.b, turned.a_row = call.b_col, turned.a_col = call.b_row, turned.a_batch = call.b_batch;
    turned.b = call.a, turned.b_row = call.a_col, turned.b_col = call.a_row, turned.b_batch = call.a_batch;
    turned.c_row = call.m;
    return gemm(kernel, turned, threads);
  }
  if (call.m * call.n <= 4 && call.batch >= 4 && kernel.lanes >= 4 && !call.bias) {
    const bool small = double(call.batch) * double(call.k) <= serial_work;
    const int64_t bytes = kernel.element_bytes;
    for (int64_t i = 0; i < call.m; ++i)
      for (int64_t j = 0; j < call.n; ++j) {
        GemmCall one = call;
        one.a = static_cast<const char*>(call.a) + i * call.a_row * bytes;
        one.b = static_cast<const char*>(call.b) + j * call.b_col * bytes;
        one.c = static_cast<char*>(call.c) + (i * call.c_row + j) * bytes;
        diagonals(kernel, one, small ? GemmThreads{} : threads);
      }
    return;
  }
  // Many products: one thread each. Few: all threads work on one after the other.
  if (call.batch >= 2 * threads.count && threads.count > 1) {
    run_parallel(threads, call.batch, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) one_product(kernel, call, i, {});
    });
    return;
  }
  const double work = double(call.m) * double(call.n) * double(call.k);
  if (threads.count == 1 || work <= (call.m == 1 || call.n == 1 ? line_work : serial_work)) {
    for (int64_t i = 0; i < call.batch; ++i) one_product(kernel, call, i, {});
  } else if (work <= split_work) {
    // Threads take rows or columns, whichever there are more of, as products of their own.
    const bool rows = call.m >= call.n;
    const int64_t unit = rows ? kernel.mr : kernel.lanes, length = rows ? call.m : call.n;
    const int64_t bytes = kernel.element_bytes;
    run_parallel(threads, ceil_div(length, unit), [&](int64_t begin, int64_t end) {
      GemmCall part = call;
      int64_t first = begin * unit, count = std::min(end * unit, length) - first;
      (rows ? part.m : part.n) = count;
      part.a = static_cast<const char*>(call.a) + (rows ? first * call.a_row : 0) * bytes;
      part.b = static_cast<const char*>(call.b) + (rows ? 0 : first * call.b_col) * bytes;
      part.c = static_cast<char*>(call.c) + first * (rows ? call.c_row : 1) * bytes;
      if (call.bias && !rows) part.bias = static_cast<const char*>(call.bias) + first * bytes;
      for (int64_t i = 0; i < call.batch; ++i) one_product(kernel, part, i, {});
    });
  } else {
    for (int64_t i = 0; i < call.batch; ++i) one_product(kernel, call, i, threads);
  }
}

}  // namespace strata::eager
