// Scans along one dim. Order (contract 6): blocks of 1,024 elements are scanned from left to right, the blocks' totals
// are combined from left to right, and an element is the total before its block combined with its place in the block.
// float16 and bfloat16 are scanned in float32. cummax and cummin need no blocks, since their order cannot be seen.
// logcumsumexp combines by a printed kernel: scan_lanes.cpp.
#include <algorithm>
#include <memory>

#include "base/checked.h"
#include "core/parallel.h"
#include "ops/scan/scan.h"
#include "ops/sort/keys.h"
#include "run/index_args.h"
#include "run/loop/transpose.h"
#include "strata/generated/by_hand/scan.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/scan.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

constexpr int64_t kColumns = 64;  // neighbouring lines that are scanned side by side

// The lines of a tensor along one dim, as outer lines times a run of neighbouring ones. Tensors here are contiguous.
struct Scan {
  int64_t outer = 1, length = 1, inner = 1;
  Scan(const Tensor& t, int64_t dim) {
    for (int64_t d = 0; d < t.dim(); ++d) (d < dim ? outer : d == dim ? length : inner) *= t.sizes()[d];
  }
  int64_t blocks() const { return (length + kScanBlock - 1) / kScanBlock; }
};

// A block of `width` neighbouring lines, n elements of each, `inner` elements apart: out[i] = before (op) local scan.
// `total` takes the local total. Without `before` the local scan is all; without `out` (one line only) just the total.
struct Block {
  const void* in;
  void* out;
  int64_t n, inner, width;
  const void* before;
  void* total;
};
using BlockFn = void (*)(const Block& block);

// One function for each C++ type and combine, which drivers of bytes call.
template <class T, class Op>
void scan_block(const Block& b) {
  const T *in = static_cast<const T*>(b.in), *before = static_cast<const T*>(b.before);
  T *out = static_cast<T*>(b.out), *total = static_cast<T*>(b.total);
  if (b.width == 1) {
    T local = in[0], start = before ? before[0] : T();
    if (out) out[0] = before ? Op::of(start, local) : local;
    for (int64_t i = 1; i < b.n; ++i) {
      local = Op::of(local, in[i * b.inner]);
      if (out) out[i * b.inner] = before ? Op::of(start, local) : local;
    }
    total[0] = local;
    return;
  }
  T local[kColumns], start[kColumns];
  if (before) std::copy_n(before, b.width, start);
  for (int64_t c = 0; c < b.width; ++c) {
    local[c] = in[c];
    out[c] = before ? Op::of(start[c], local[c]) : local[c];
  }
  for (int64_t i = 1; i < b.n; ++i) {
    const T* row = in + i * b.inner;
    T* to = out + i * b.inner;
    if (before) {
      for (int64_t c = 0; c < b.width; ++c) to[c] = Op::of(start[c], local[c] = Op::of(local[c], row[c]));
    } else {
      for (int64_t c = 0; c < b.width; ++c) local[c] = Op::of(local[c], row[c]);
      std::copy_n(local, b.width, to);  // in the machine's widest stores
    }
  }
  std::copy_n(local, b.width, total);
}

// Some lines along memory, `apart` elements from each other, side by side: each is a chain of operations that wait for
// each other.
constexpr int64_t kBeside = 4;
template <class T, class Op>
void scan_beside(const void* from, void* to, int64_t length, int64_t apart) {
  T before[kBeside], local[kBeside];
  for (int64_t first = 0; first < length; first += kScanBlock) {
    const T* in = static_cast<const T*>(from) + first;
    T* out = static_cast<T*>(to) + first;
    const int64_t n = std::min(kScanBlock, length - first);
    auto row = [&](int64_t i, bool begins) {
      for (int64_t c = 0; c < kBeside; ++c) {
        const T value = in[i + c * apart];
        local[c] = begins ? value : Op::of(local[c], value);
        out[i + c * apart] = first ? Op::of(before[c], local[c]) : local[c];
      }
    };
    row(0, true);
    for (int64_t i = 1; i < n; ++i) row(i, false);
    for (int64_t c = 0; c < kBeside; ++c) before[c] = first ? Op::of(before[c], local[c]) : local[c];
  }
}
using BesideFn = void (*)(const void* from, void* to, int64_t length, int64_t apart);

struct ScanFns {
  BlockFn block;
  BesideFn beside;
};
template <class T, class Op>
constexpr ScanFns kScan = {scan_block<T, Op>, scan_beside<T, Op>};

struct Sum {
  template <class T>
  static T of(T a, T b) {
    return add_values(a, b);
  }
};
struct Product {
  template <class T>
  static T of(T a, T b) {
    return multiply_values(a, b);
  }
};

// Signed integers have the bits of unsigned ones.
template <class Op>
ScanFns scan_fns(DType t) {
  switch (t) {
    case DType::Bool:
      return kScan<bool, Op>;
    case DType::C64:
      return kScan<std::complex<float>, Op>;
    case DType::C128:
      return kScan<std::complex<double>, Op>;
    case DType::F32:
      return kScan<float, Op>;
    case DType::F64:
      return kScan<double, Op>;
    default:
      return visit_width(itemsize(t), [](auto tag) -> ScanFns {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_integral_v<T>)
          return kScan<T, Op>;
        else
          return {};
      });
  }
}

// All blocks of `width` neighbouring lines.
void scan_lines(const char* in, char* out, const Scan& s, int64_t width, int64_t item, BlockFn block) {
  // Room for kColumns of the widest: what came before the block, and its total.
  alignas(16) char before[kColumns * 16], total[kColumns * 16];
  for (int64_t b = 0; b < s.blocks(); ++b) {
    const int64_t at = b * kScanBlock * s.inner * item, n = std::min(kScanBlock, s.length - b * kScanBlock);
    block({in + at, out + at, n, s.inner, width, b ? before : nullptr, total});
    if (b == 0)
      std::copy_n(total, width * item, before);
    else if (b + 1 < s.blocks())  // before (op) total, as one more place of a block
      block({total, before, 1, 1, width, before, total});
  }
}

// One long line: totals of all blocks first, then the blocks side by side.
void scan_long(const char* in, char* out, const Scan& s, int64_t item, BlockFn block) {
  const int64_t blocks = s.blocks();
  std::unique_ptr<char[]> totals(new char[2 * blocks * item]);
  char *own = totals.get(), *before = own + blocks * item;  // of each block; of all up to it
  auto each = [&](bool write) {
    parallel_for(0, blocks, 8, [&](int64_t first, int64_t last) {
      alignas(16) char unused[16];
      for (int64_t b = first; b < last; ++b) {
        const int64_t at = b * kScanBlock * item, n = std::min(kScanBlock, s.length - b * kScanBlock);
        block({in + at, write ? out + at : nullptr, n, 1, 1, write && b ? before + (b - 1) * item : nullptr,
               write ? unused : own + b * item});
      }
    });
  };
  each(false);
  alignas(16) char unused[16];
  block({own, before, blocks, 1, 1, nullptr, unused});
  each(true);
}

// Short lines that lie along memory: some of them are turned, scanned side by side, and turned back.
void scan_turned(const char* in, char* out, const Scan& s, int64_t item, BlockFn block) {
  constexpr int64_t kBytes = 32 << 10;
  const int64_t width = std::clamp<int64_t>(kBytes / (s.length * item) / 16 * 16, 16, kColumns), line = s.length * item;
  parallel_for(0, s.outer, std::max<int64_t>(width, 16384 / s.length / width * width), [&](int64_t b, int64_t e) {
    const std::unique_ptr<char[]> room(new char[size_t(line * width + 64)]);
    alignas(16) char total[kColumns * 16];
    char* rows = room.get() + (64 - reinterpret_cast<uintptr_t>(room.get()) % 64) % 64;
    for (int64_t i = b; i < e; i += width) {
      const int64_t n = std::min(width, e - i);
      transpose(item, in + i * line, line, rows, n * item, n, s.length);
      block({rows, rows, s.length, n, n, nullptr, total});
      transpose(item, rows, n * item, out + i * line, line, s.length, n);
    }
  });
}

// Lines along memory, some at a time.
void scan_along(const char* in, char* out, const Scan& s, int64_t item, const ScanFns& fns) {
  const int64_t line = s.length * item, groups = s.outer / kBeside;
  parallel_for(0, groups, std::max<int64_t>(1, 16384 / (kBeside * s.length)), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) fns.beside(in + i * kBeside * line, out + i * kBeside * line, s.length, s.length);
  });
  for (int64_t o = groups * kBeside; o < s.outer; ++o) scan_lines(in + o * line, out + o * line, s, 1, item, fns.block);
}

void scan_tensor(const Tensor& in, const Tensor& out, int64_t dim, const ScanFns& fns) {
  constexpr int64_t kShort = 32;  // elements of a line, fewer of which are better turned
  const BlockFn block = fns.block;
  const Scan s(in, dim);
  const int64_t item = itemsize(in.dtype());
  const char* from = in.bytes();
  char* to = out.bytes();
  if (s.inner == 1 && s.length >= kShort && s.outer >= kBeside * num_threads())
    return scan_along(from, to, s, item, fns);
  if (s.inner == 1 && s.length <= kScanBlock && s.outer >= 16 && item <= 8)
    return scan_turned(from, to, s, item, block);
  if (s.outer * s.inner < num_threads() && s.inner == 1 && s.length > 16 * kScanBlock) {
    for (int64_t o = 0; o < s.outer; ++o)
      scan_long(from + o * s.length * item, to + o * s.length * item, s, item, block);
    return;
  }
  int64_t groups = (s.inner + kColumns - 1) / kColumns;
  parallel_for(0, s.outer * groups, std::max<int64_t>(1, 16384 / (s.length * std::min(s.inner, kColumns))),
               [&](int64_t b, int64_t e) {
                 for (int64_t i = b; i < e; ++i) {
                   const int64_t column = i % groups * kColumns;
                   const int64_t at = (i / groups * s.length * s.inner + column) * item;
                   scan_lines(from + at, to + at, s, std::min(kColumns, s.inner - column), item, block);
                 }
               });
}

// Contiguous operand in the dtype of the computation.
Tensor operand(const Tensor& self, DType t) { return as_contiguous(as_dtype(self, t)); }

// lines(in, out, dim) scans in the dtype of the computation.
template <class Lines>
void scan(const Tensor& out, const Tensor& self, int64_t dim, Lines lines) {
  const DType t = out.dtype(), wide = wide_dtype(t);
  // Elements of another dtype are rounded to the result's first, as on devices and in graphs.
  const Tensor in = operand(as_dtype(self, t), wide), to = wide == t ? out : new_tensor(out, out.sizes(), wide);
  lines(in, to, wrap_dim(dim, self.dim()));
  if (!to.is_same(out)) copy_values(out, to);
}

template <class Op>
void cumulated(const Tensor& out, const Tensor& self, int64_t dim) {
  scan(out, self, dim,
       [](const Tensor& in, const Tensor& to, int64_t dim) { scan_tensor(in, to, dim, scan_fns<Op>(in.dtype())); });
}

// out= decides the dtype of the computation where dtype does not.
template <class F>
void scan_out(F scan, const char* name, const Tensor& self, int64_t dim, std::optional<DType> dtype,
              const Tensor& out) {
  STRATA_CHECK(out.defined(), name, ": argument out: expected a tensor, got None");
  if (dtype) check_exact_dtype(out, *dtype, name);
  copy_to_out(out, scan(self, dim, out.dtype()), name);
}

void check_same_dtype(const Tensor& self, std::optional<DType> dtype) {
  STRATA_CHECK(!dtype || *dtype == self.dtype(), "Bad in-place call: input tensor dtype ", self.dtype(),
               " and output tensor dtype ", *dtype, " should match");
}

}  // namespace

void cumsum(const Tensor& result, const Tensor& self, int64_t dim, std::optional<DType>) {
  cumulated<Sum>(result, self, dim);
}

void cumprod(const Tensor& result, const Tensor& self, int64_t dim, std::optional<DType>) {
  cumulated<Product>(result, self, dim);
}

void cumsum_out(const Tensor& self, int64_t dim, std::optional<DType> dtype, const Tensor& out) {
  scan_out(ops::cumsum, "cumsum", self, dim, dtype, out);
}

void cumprod_out(const Tensor& self, int64_t dim, std::optional<DType> dtype, const Tensor& out) {
  scan_out(ops::cumprod, "cumprod", self, dim, dtype, out);
}

void cumsum_inplace(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  check_apart("cumsum_", self, {});
  check_same_dtype(self, dtype);
  check_apart("cumsum_", self, {});
  copy_result(self, ops::cumsum(self, dim, self.dtype()), "cumsum_");
}

void cumprod_inplace(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  check_apart("cumprod_", self, {});
  check_same_dtype(self, dtype);
  check_apart("cumprod_", self, {});
  copy_result(self, ops::cumprod(self, dim, self.dtype()), "cumprod_");
}

void logcumsumexp(const Tensor& result, const Tensor& self, int64_t dim) { scan(result, self, dim, scan_logaddexp); }

// ---- extremes so far

namespace {
void extremes(const char* name, bool larger, const Tensor& values, const Tensor& indices, const Tensor& given,
              int64_t dim) {
  const Tensor self = truths(given);
  if (self.dim() == 0) {
    copy_values(values, self);
    fill_values(indices, Scalar(0));
    return;
  }
  dim = wrap_dim(dim, self.dim());
  Lines in(self, dim), out(values, dim);
  visit_ordered(self.dtype(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, in.count, std::max<int64_t>(1, 16384 / in.length), [&](int64_t b, int64_t e) {
      // NaN stays; of equals, and of NaNs, the last one is named. Halves are compared by keys, of which NaN's is the
      // greatest.
      const auto rank = [&](T x) {
        if constexpr (std::is_arithmetic_v<T>) {
          return x;
        } else {
          const auto key = sort_key(x), nan = decltype(key)(~0);
          return larger || key == nan ? key : decltype(key)(~key);
        }
      };
      using Rank = decltype(rank(T()));
      const auto takes = [&](Rank x, Rank best) {
        if constexpr (std::is_arithmetic_v<T>) return bool((larger & (x >= best)) | (!larger & (x <= best)) | (x != x));
        return x >= best;
      };
      for (int64_t l = b, beside; l < e; l += beside) {
        const T* line = self.data<T>() + in.offset(l);
        T* v = values.data<T>() + out.offset(l);
        int64_t* p = indices.data<int64_t>() + out.offset(l);
        // Lines that are neighbours in memory, or one alone.
        for (beside = 1; beside < std::min(kColumns, e - l); ++beside)
          if (in.step == 1 || line + beside != self.data<T>() + in.offset(l + beside) ||
              v + beside != values.data<T>() + out.offset(l + beside))
            break;
        int64_t best[kColumns] = {};
        T value[kColumns];
        std::copy_n(line, beside, value);
        if (beside == 1) {
          int64_t place = 0;
          T found = value[0];
          Rank most = rank(found);
          for (int64_t i = 0; i < in.length; ++i) {
            const T x = line[i * in.step];
            const Rank here = rank(x);
            if (takes(here, most)) place = i, found = x, most = here;
            v[i * out.step] = found;
            p[i * out.step] = place;
          }
          continue;
        }
        for (int64_t i = 0; i < in.length; ++i, line += in.step, v += out.step, p += out.step) {
          for (int64_t c = 0; c < beside; ++c) {
            const bool changes = takes(rank(line[c]), rank(value[c]));
            best[c] = changes ? i : best[c];
            value[c] = changes ? line[c] : value[c];
          }
          std::copy_n(value, beside, v);
          std::copy_n(best, beside, p);
        }
      }
    });
  });
}
}  // namespace

void cummax(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  extremes("cummax", true, values, indices, self, dim);
}
void cummin(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim) {
  extremes("cummin", false, values, indices, self, dim);
}

// ---- s[i] = factor[i] * s[i - 1] + term[i]: derivatives of products without divisions. In order of i, not in blocks.

void linear_scan(const Tensor& out, const Tensor& factor, const Tensor& term, int64_t dim) {
  dim = wrap_dim(dim, term.dim());
  DType wide = wide_dtype(term.dtype());
  Tensor a = operand(factor, wide), b = operand(term, wide);
  Tensor to = wide == term.dtype() ? out : new_tensor(term, term.sizes(), wide);
  Scan s(to, dim);
  auto recur = [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, s.outer, std::max<int64_t>(1, 16384 / (s.length * s.inner)), [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o) {
        int64_t at = o * s.length * s.inner;
        const T *f = a.data<T>() + at, *t = b.data<T>() + at;
        T* y = to.data<T>() + at;
        for (int64_t c = 0; c < s.inner; ++c) y[c] = t[c];
        for (int64_t i = s.inner; i < s.length * s.inner; ++i)
          y[i] = add_values(multiply_values(f[i], y[i - s.inner]), t[i]);
      }
    });
  };
  if (wide == DType::F32) recur(Tag<float>());
  if (wide == DType::F64) recur(Tag<double>());
  if (wide == DType::C64) recur(Tag<std::complex<float>>());
  if (wide == DType::C128) recur(Tag<std::complex<double>>());
  if (!to.is_same(out)) copy_values(out, to);
}

// ---- differences of neighbours

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  STRATA_CHECK(self.dim() > 0, "diff expects input to be at least one-dimensional");
  STRATA_CHECK(n >= 0, "order must be non-negative but got ", n);
  for (const Tensor* t : {&prepend, &append})
    STRATA_CHECK(!t->defined() || t->dim() == self.dim(),
                 "diff expects prepend or append to be the same dimension as input");
  if (n == 0) return ops::clone(self);  // whatever dim, prepend and append are
  dim = wrap_dim(dim, self.dim());
  Tensor r = self;
  if (prepend.defined() || append.defined()) {
    std::vector<Tensor> parts;
    if (prepend.defined()) parts.push_back(prepend);
    parts.push_back(self);
    if (append.defined()) parts.push_back(append);
    r = ops::cat(parts, dim);
  }
  n = std::min(n, r.sizes()[dim]);
  for (int64_t i = 0; i < n; ++i) {
    int64_t length = std::max<int64_t>(r.sizes()[dim] - 1, 0), start = std::min<int64_t>(1, r.sizes()[dim]);
    Tensor high = ops::narrow(r, dim, start, length), low = ops::narrow(r, dim, 0, length);
    r = self.dtype() == DType::Bool ? ops::logical_xor(high, low) : ops::sub(high, low);
  }
  return r;
}

}  // namespace strata::eager
