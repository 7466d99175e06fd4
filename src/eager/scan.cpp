// Scans along one dim. Order (contract 6): blocks of 1,024 elements are scanned from left to right, the blocks' totals
// are combined from left to right, and an element is the total before its block combined with its place in the block.
// float16 and bfloat16 are scanned in float32. cummax and cummin need no blocks, since their order cannot be seen.
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/checked.h"
#include "core/parallel.h"
#include "eager/index_args.h"
#include "eager/sort_keys.h"
#include "strata/generated/eager_scan.h"
#include "strata/generated/ops/compare.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/pointwise.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

constexpr int64_t kBlock = 1024;
constexpr int64_t kColumns = 64;  // neighbouring lines that are scanned side by side

// The lines of a tensor along one dim, as outer lines times a run of neighbouring ones. Tensors here are contiguous.
struct Scan {
  int64_t outer = 1, length = 1, inner = 1;
  Scan(const Tensor& t, int64_t dim) {
    for (int64_t d = 0; d < t.dim(); ++d) (d < dim ? outer : d == dim ? length : inner) *= t.sizes()[d];
  }
  int64_t blocks() const { return (length + kBlock - 1) / kBlock; }
};

// One block of `width` neighbouring lines; out[i] = before (op) local scan. Leaves the local total in `total`. Without
// `out` (one line only) there is just the total.
template <class T, class Op>
void scan_block(const T* in, T* out, int64_t n, int64_t inner, int64_t width, const T* before, T* total, Op op) {
  if (width == 1) {
    T local = in[0];
    if (out) out[0] = before ? op(before[0], local) : local;
    for (int64_t i = 1; i < n; ++i) {
      local = op(local, in[i * inner]);
      if (out) out[i * inner] = before ? op(before[0], local) : local;
    }
    total[0] = local;
    return;
  }
  T local[kColumns];
  for (int64_t c = 0; c < width; ++c) local[c] = in[c];
  for (int64_t i = 0; i < n; ++i) {
    const T* row = in + i * inner;
    T* to = out + i * inner;
    if (i > 0)
      for (int64_t c = 0; c < width; ++c) local[c] = op(local[c], row[c]);
    if (before)
      for (int64_t c = 0; c < width; ++c) to[c] = op(before[c], local[c]);
    else
      for (int64_t c = 0; c < width; ++c) to[c] = local[c];
  }
  for (int64_t c = 0; c < width; ++c) total[c] = local[c];
}

// All blocks of `width` neighbouring lines.
template <class T, class Op>
void scan_lines(const T* in, T* out, const Scan& s, int64_t width, Op op) {
  T before[kColumns], total[kColumns];
  for (int64_t b = 0; b < s.blocks(); ++b) {
    int64_t at = b * kBlock * s.inner, n = std::min(kBlock, s.length - b * kBlock);
    scan_block(in + at, out + at, n, s.inner, width, b ? before : nullptr, total, op);
    for (int64_t c = 0; c < width; ++c) before[c] = b ? op(before[c], total[c]) : total[c];
  }
}

// One long line: totals of all blocks first, then the blocks side by side.
template <class T, class Op>
void scan_long(const T* in, T* out, const Scan& s, Op op) {
  std::unique_ptr<T[]> before(new T[s.blocks() + 1]);
  auto length = [&](int64_t b) { return std::min(kBlock, s.length - b * kBlock); };
  parallel_for(0, s.blocks(), 8, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b)
      scan_block<T>(in + b * kBlock, nullptr, length(b), 1, 1, nullptr, &before[b + 1], op);
  });
  for (int64_t b = 1; b < s.blocks(); ++b) before[b + 1] = op(before[b], before[b + 1]);
  parallel_for(0, s.blocks(), 8, [&](int64_t first, int64_t last) {
    T total;
    for (int64_t b = first; b < last; ++b)
      scan_block(in + b * kBlock, out + b * kBlock, length(b), 1, 1, b ? &before[b] : nullptr, &total, op);
  });
}

template <class T, class Op>
void scan_tensor(const Tensor& in, const Tensor& out, int64_t dim, Op op) {
  Scan s(in, dim);
  const T* from = in.data<T>();
  T* to = out.data<T>();
  if (s.outer * s.inner < num_threads() && s.inner == 1 && s.length > 16 * kBlock) {
    for (int64_t o = 0; o < s.outer; ++o) scan_long(from + o * s.length, to + o * s.length, Scan(in, dim), op);
    return;
  }
  int64_t groups = (s.inner + kColumns - 1) / kColumns;
  parallel_for(0, s.outer * groups, std::max<int64_t>(1, 16384 / (s.length * std::min(s.inner, kColumns))),
               [&](int64_t b, int64_t e) {
                 for (int64_t i = b; i < e; ++i) {
                   int64_t at = i / groups * s.length * s.inner, column = i % groups * kColumns;
                   scan_lines(from + at + column, to + at + column, s, std::min(kColumns, s.inner - column), op);
                 }
               });
}

// Contiguous operand in the dtype of the computation.
Tensor operand(const Tensor& self, DType t) { return as_contiguous(as_dtype(self, t)); }

// make(tag) gives the operator for a C++ type; the result has dtype t.
template <class Visit, class Make>
Tensor scan(const Tensor& self, int64_t dim, DType t, const char* name, Visit visit, Make make) {
  dim = wrap_dim(dim, self.dim());
  Tensor out = new_tensor(self, self.sizes(), t);
  if (out.is_meta() || out.numel() == 0) return out;
  DType wide = wide_dtype(t);
  Tensor in = operand(self, wide), to = wide == t ? out : new_tensor(self, self.sizes(), wide);
  visit(wide, name, [&](auto tag) { scan_tensor<typename decltype(tag)::type>(in, to, dim, make(tag)); });
  if (!to.is_same(out)) copy_values(out, to);
  return out;
}

DType sum_dtype(const Tensor& self, std::optional<DType> dtype) {
  return dtype ? *dtype : is_integral(self.dtype(), true) ? DType::I64 : self.dtype();
}

auto numbers = [](DType t, const char* name, auto f) { visit_numbers(t, name, f); };

void check_not_bool(const char* name, std::optional<DType> dtype) {
  STRATA_CHECK_NOT_IMPLEMENTED(dtype != DType::Bool, "\"", name,
                               "\" not implemented for 'Bool'; give dtype=int64 or convert the result");
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

// log(exp(a) + exp(b)), the larger (by its real part) first.
template <class T>
T log_add_exp(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    T low = a < b ? a : b, high = a < b ? b : a;
    if (a != a || b != b) return a + b;
    // Equal infinities have no difference.
    if (low == high && std::isinf(low)) return high;
    return high + std::log1p(std::exp(low - high));
  } else if constexpr (std::is_integral_v<T>) {
    return a;  // refused before
  } else {
    T low = a.real() < b.real() ? a : b, high = a.real() < b.real() ? b : a;
    if (a != a || b != b) return a + b;
    if (std::isinf(high.real()) && low.real() == high.real()) {
      return high.real() < 0 ? low : std::log(std::exp(low) + std::exp(high));
    }
    T d = std::exp(low - high);
    return high + std::complex(std::log1p(d.real() * (2 + d.real()) + d.imag() * d.imag()) / 2,
                               std::atan2(d.imag(), 1 + d.real()));
  }
}

}  // namespace

Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  check_not_bool("cumsum", dtype);
  return scan(self, dim, sum_dtype(self, dtype), "cumsum", numbers, [](auto tag) {
    using T = typename decltype(tag)::type;
    return [](T a, T b) { return add_values(a, b); };
  });
}

Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  check_not_bool("cumprod", dtype);
  return scan(self, dim, sum_dtype(self, dtype), "cumprod", numbers, [](auto tag) {
    using T = typename decltype(tag)::type;
    return [](T a, T b) { return multiply_values(a, b); };
  });
}

void cumsum_out(const Tensor& self, int64_t dim, std::optional<DType> dtype, const Tensor& out) {
  scan_out(cumsum, "cumsum", self, dim, dtype, out);
}

void cumprod_out(const Tensor& self, int64_t dim, std::optional<DType> dtype, const Tensor& out) {
  scan_out(cumprod, "cumprod", self, dim, dtype, out);
}

void cumsum_inplace(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  check_apart("cumsum_", self, {});
  check_same_dtype(self, dtype);
  check_apart("cumsum_", self, {});
  copy_result(self, cumsum(self, dim, self.dtype()), "cumsum_");
}

void cumprod_inplace(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  check_apart("cumprod_", self, {});
  check_same_dtype(self, dtype);
  check_apart("cumprod_", self, {});
  copy_result(self, cumprod(self, dim, self.dtype()), "cumprod_");
}

Tensor logcumsumexp(const Tensor& self, int64_t dim) {
  STRATA_CHECK_NOT_IMPLEMENTED(is_differentiable(self.dtype()), "\"logcumsumexp\" not implemented for '",
                               scalar_type_name(self.dtype()), "'; convert it to a floating dtype first");
  return scan(self, dim, self.dtype(), "logcumsumexp", numbers, [](auto tag) {
    using T = typename decltype(tag)::type;
    return [](T a, T b) { return log_add_exp(a, b); };
  });
}

// ---- extremes so far

namespace {
template <bool larger>
std::tuple<Tensor, Tensor> extremes(const char* name, const Tensor& self, int64_t dim) {
  dim = wrap_dim(dim, self.dim());
  Tensor values = new_tensor(self, self.sizes()), indices = new_tensor(self, self.sizes(), DType::I64);
  if (values.numel() == 0) return {values, indices};
  if (self.dim() > 0) visit_ordered(self.dtype(), name, [](auto) {});  // refuses the others
  if (values.is_meta()) return {values, indices};
  if (self.dim() == 0) {
    copy_values(values, self);
    fill_values(indices, Scalar(0));
    return {values, indices};
  }
  Lines in(self, dim), out(values, dim);
  visit_ordered(self.dtype(), name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, in.count, std::max<int64_t>(1, 16384 / in.length), [&](int64_t b, int64_t e) {
      for (int64_t l = b; l < e; ++l) {
        const T* line = self.data<T>() + in.offset(l);
        T* v = values.data<T>() + out.offset(l);
        int64_t* p = indices.data<int64_t>() + out.offset(l);
        using Key = KeyBits<sizeof(T)>;
        // NaN has the greatest key and stays; of equals, and of NaNs, the last one is named.
        constexpr bool real = !std::is_integral_v<T>;
        int64_t best = 0;
        Key best_key = sort_key(line[0]);
        for (int64_t i = 0; i < in.length; ++i) {
          Key key = sort_key(line[i * in.step]);
          const bool stays = real && best_key == Key(~Key(0)), nan = real && key == Key(~Key(0));
          if (nan || (!stays && (larger ? key >= best_key : key <= best_key))) {
            best = i;
            best_key = key;
          }
          v[i * out.step] = line[best * in.step];
          p[i * out.step] = best;
        }
      }
    });
  });
  return {values, indices};
}
}  // namespace

std::tuple<Tensor, Tensor> cummax(const Tensor& self, int64_t dim) { return extremes<true>("cummax", self, dim); }
std::tuple<Tensor, Tensor> cummin(const Tensor& self, int64_t dim) { return extremes<false>("cummin", self, dim); }

// ---- s[i] = factor[i] * s[i - 1] + term[i]: derivatives of products without divisions. In order of i, not in blocks.

Tensor linear_scan(const Tensor& factor, const Tensor& term, int64_t dim) {
  STRATA_CHECK(factor.sizes() == term.sizes() && factor.dtype() == term.dtype(),
               "linear_scan: expected operands of one shape and dtype, got ", factor.sizes(), " of ", factor.dtype(),
               " and ", term.sizes(), " of ", term.dtype());
  dim = wrap_dim(dim, term.dim());
  Tensor out = new_tensor(term, term.sizes());
  if (out.is_meta() || out.numel() == 0) return out;
  DType wide = wide_dtype(term.dtype());
  Tensor a = operand(factor, wide), b = operand(term, wide);
  Tensor to = wide == term.dtype() ? out : new_tensor(term, term.sizes(), wide);
  Scan s(to, dim);
  visit_numbers(wide, "linear_scan", [&](auto tag) {
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
  });
  if (!to.is_same(out)) copy_values(out, to);
  return out;
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
