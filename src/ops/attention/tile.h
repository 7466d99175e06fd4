// What both directions of attention share: packed operands, products of tiles, row kernels over one tile, and the bias
// (mask and causality) of a row.
#pragma once
#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/call_memory.h"
#include "ops/attention/blocks.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/product.h"
#include "run/kernels.h"
#include "run/loop/cast.h"
#include "run/loop/rows_across.h"
#include "run/loop/transpose.h"

namespace strata::eager {

constexpr int64_t kGemmChain = 1024;

inline int64_t blocks_of(int64_t length) { return (length + kAttentionBlock - 1) / kAttentionBlock; }

// The matrices (length x width) of one operand's batches and heads, in elements of its storage.
struct Heads {
  const char* data;
  int64_t batch, head, row, col, bytes;
  explicit Heads(const Tensor& t)
      : data(t.bytes()),
        batch(t.strides()[0]),
        head(t.strides()[1]),
        row(t.strides()[2]),
        col(t.strides()[3]),
        bytes(t.itemsize()) {}
  const char* at(int64_t b, int64_t h, int64_t first = 0) const {
    return data + (b * batch + h * head + first * row) * bytes;
  }
};

// Products of packed operands of at most 64 rows, or k. A packed operand has, for each chain of k, its panels of mr
// rows (nr columns) one after another, `capacity` rows (columns) in all.
class TileProduct {
 public:
  // `stored`: the kernels of the operands' dtype; `compute`: those of the dtype in which products are made.
  TileProduct(const GemmKernel& stored, const GemmKernel& compute) : stored_(stored), compute_(compute) {}

  int64_t bytes() const { return compute_.compute_bytes; }
  int64_t columns_capacity(int64_t columns) const {
    return (columns + compute_.lanes - 1) / compute_.lanes * compute_.lanes;
  }
  int64_t rows_capacity(int64_t rows) const { return (rows + compute_.mr - 1) / compute_.mr * compute_.mr; }
  int64_t packed_bytes(int64_t capacity, int64_t k) const { return CallMemory::rounded(capacity * k * bytes()); }

  // Rows from memory as the left operand; `computed`: they are tiles that were computed here.
  void pack_rows(const void* from, int64_t rows, int64_t k, int64_t row_stride, int64_t k_stride, char* to,
                 bool computed) const {
    pack(computed ? compute_.pack_a : stored_.pack_a, computed ? bytes() : stored_.element_bytes, compute_.mr,
         kAttentionBlock, from, rows, k, row_stride, k_stride, to);
  }
  void pack_columns(const void* from, int64_t columns, int64_t k, int64_t column_stride, int64_t k_stride,
                    char* to) const {
    pack(stored_.pack_b, stored_.element_bytes, compute_.nr, columns_capacity(columns), from, columns, k, column_stride,
         k_stride, to);
  }
  // Whether add_rows() can have columns that lie so.
  bool reads_columns(DType stored, int64_t columns, int64_t column_stride) const {
    return itemsize(stored) == bytes() && column_stride == 1 && columns % compute_.lanes == 0;
  }
  // c (rows x columns, ld elements apart) = or += a times b, whose k are `step` elements apart; k is at most 64.
  void add_rows(const char* a, const char* b, int64_t step, int64_t rows, int64_t columns, int64_t k, char* c,
                int64_t ld, bool add) const {
    for (int64_t j = 0; j < columns; j += compute_.nr)
      for (int64_t i = 0; i < rows; i += compute_.mr)
        compute_.kernel(k, a + i * k * bytes(), b + j * bytes(), step, c + (i * ld + j) * bytes(), ld,
                        std::min(compute_.mr, rows - i), std::min(compute_.nr, columns - j), add);
  }
  // c (rows x columns, ld elements apart) = or += a times b.
  void operator()(const char* a, const char* b, int64_t rows, int64_t columns, int64_t k, char* c, int64_t ld,
                  bool add) const {
    if (k == 0 && !add)
      for (int64_t i = 0; i < rows; ++i) std::memset(c + i * ld * bytes(), 0, columns * bytes());
    const int64_t capacity = columns_capacity(columns);
    for (int64_t k0 = 0; k0 < k; k0 += kGemmChain) {
      const int64_t kc = std::min(kGemmChain, k - k0);
      for (int64_t j = 0; j < columns; j += compute_.nr) {
        const char* right = b + (capacity * k0 + j * kc) * bytes();
        for (int64_t i = 0; i < rows; i += compute_.mr) {
          const char* left = a + (kAttentionBlock * k0 + i * kc) * bytes();
          compute_.kernel(kc, left, right, 0, c + (i * ld + j) * bytes(), ld, std::min(compute_.mr, rows - i),
                          std::min(compute_.nr, columns - j), add || k0 > 0);
        }
      }
    }
  }

 private:
  using Pack = decltype(GemmKernel::pack_a);
  void pack(Pack pack, int64_t element, int64_t panel, int64_t capacity, const void* from, int64_t count, int64_t k,
            int64_t stride, int64_t k_stride, char* to) const {
    const char* p = static_cast<const char*>(from);
    for (int64_t k0 = 0; k0 < k; k0 += kGemmChain) {
      const int64_t kc = std::min(kGemmChain, k - k0);
      for (int64_t i = 0; i < count; i += panel)
        pack(kc, std::min(panel, count - i), p + (i * stride + k0 * k_stride) * element, stride, k_stride,
             to + (capacity * k0 + i * kc) * bytes());
    }
  }
  const GemmKernel& stored_;
  const GemmKernel& compute_;
};

// The kernel of the table that computes on `t`, with its scalar, if it has one.
class TileKernel {
 public:
  TileKernel(const char* name, DType t, const Scalar& scalar) : entry_(find_kernel(name, t)) {
    STRATA_CHECK_NOT_IMPLEMENTED(entry_, "scaled_dot_product_attention: no kernel ", name, " for ", t);
    store_scalar(scalar, t, params_);
  }

 protected:
  const StrataKernelEntry* entry_;
  alignas(16) char params_[16] = {};
};

// Of runs of 16 elements that lie side by side.
class RunKernel : TileKernel {
 public:
  RunKernel(const char* name, DType t) : TileKernel(name, t, Scalar(0.0)), bytes_(16 * itemsize(t)) {}
  void operator()(std::initializer_list<void*> operands, int64_t elements) const {
    char* ptr[4];
    std::transform(operands.begin(), operands.end(), ptr, [](void* p) { return static_cast<char*>(p); });
    const int64_t step[] = {bytes_, bytes_, bytes_, bytes_};
    int32_t status = 0;
    entry_->pointwise(ptr, step, params_, elements / 16, 0, &status);
  }

 private:
  int64_t bytes_;
};

// A row kernel over rows that one part holds.
class RowKernel : TileKernel {
 public:
  using TileKernel::TileKernel;
  int scratch_rows() const { return entry_->scratch_rows; }
  void operator()(char* const* ptr, char* scratch, int64_t count, int64_t scratch_bytes) const {
    alignas(16) char reduced[kMaxReductions * 16];
    char* rows[kMaxScratch];
    for (int i = 0; i < entry_->scratch_rows; ++i) rows[i] = scratch + i * scratch_bytes;
    int done = 0;
    for (int k = 0; k < entry_->passes; ++k) {
      const StrataRowPass& pass = entry_->pass[k];
      const bool whole = pass.reductions == 0 && !pass.elementwise;
      StrataRowArgs args{ptr, params_, reduced, rows, reduced + done * 16, whole ? 1 : count, 0, count, nullptr};
      pass.fn(&args);
      done += pass.reductions;
    }
  }

 private:
  static constexpr int kMaxReductions = 4, kMaxScratch = 8;
};

// A row kernel over a tile whose columns are the rows: at most 64 columns of at most 64 elements.
class ColumnKernel : TileKernel {
 public:
  ColumnKernel(const char* name, DType t, const Scalar& scalar)
      : TileKernel(name, t, scalar), by_row_(name, t, scalar), bytes_(itemsize(t)), has_across_(has_across(*entry_)) {}
  int64_t room() const {
    if (has_across_) return across_room(*entry_, kAttentionBlock, kAttentionBlock);
    return (entry_->outputs + entry_->inputs + entry_->scratch_rows) * line();
  }
  void operator()(AcrossPlaces& at, int64_t columns, int64_t count, char* room) const {
    if (has_across_) return pass_across(*entry_, params_, at, (columns + 15) / 16 * 16, count, room);
    // A set of one lane has no text for columns: each is brought to a line and back.
    const int operands = entry_->outputs + entry_->inputs;
    for (int64_t c = 0; c < columns; ++c) {
      char* lines[AcrossPlaces::kMost];
      auto move = [&](int o, bool in) {
        char *from = at.ptr[o] + c * bytes_, *to = lines[o];
        for (int64_t i = 0; i < (entry_->per_row[o] ? 1 : count); ++i, from += at.step[o], to += bytes_)
          in ? std::memcpy(to, from, size_t(bytes_)) : std::memcpy(from, to, size_t(bytes_));
      };
      for (int o = 0; o < operands; ++o) lines[o] = room + o * line();
      for (int o = entry_->outputs; o < operands; ++o) move(o, true);
      by_row_(lines, room + operands * line(), count, line());
      for (int o = 0; o < entry_->outputs; ++o) move(o, false);
    }
  }

 private:
  int64_t line() const { return CallMemory::rounded(kAttentionBlock * bytes_) + 64; }
  RowKernel by_row_;
  int64_t bytes_;
  bool has_across_;
};

// What is added to the scaled scores of a row: 0 or what the mask says for keys that the query sees, -inf for others.
template <class T>
class RowBias {
 public:
  RowBias(const Tensor& mask, bool causal) : mask_(mask), causal_(causal) {
    std::fill(edge_, edge_ + kAttentionBlock, T(0));
    std::fill(edge_ + kAttentionBlock, edge_ + 2 * kAttentionBlock, -std::numeric_limits<T>::infinity());
    if (mask.defined() && mask.dtype() != DType::Bool) cast_ = cast_fn(mask.dtype(), compute_dtype());
  }
  // For keys [key, key + count) and one query; valid until the next call.
  const T* row(int64_t b, int64_t h, int64_t query, int64_t key, int64_t count) {
    int64_t seen = causal_ ? std::clamp<int64_t>(query + 1 - key, 0, count) : count;
    if (!mask_.defined()) return edge_ + kAttentionBlock - seen;
    IntArrayRef s = mask_.strides();
    const int64_t bytes = mask_.itemsize();
    const char* p = mask_.bytes() + (b * s[0] + h * s[1] + query * s[2] + key * s[3]) * bytes;
    if (cast_)
      cast_(p, s[3] * bytes, reinterpret_cast<char*>(own_), sizeof(T), seen);
    else
      s[3] == 1 ? keep(p, std::integral_constant<int64_t, 1>(), seen) : keep(p, s[3], seen);
    std::copy_n(edge_ + kAttentionBlock, count - seen, own_ + seen);
    return own_;
  }
  static constexpr DType compute_dtype() { return sizeof(T) == 4 ? DType::F32 : DType::F64; }

 private:
  template <class Step>
  void keep(const char* p, Step step, int64_t seen) {
    for (int64_t i = 0; i < seen; ++i) own_[i] = p[i * step] ? T(0) : -std::numeric_limits<T>::infinity();
  }

  const Tensor& mask_;
  bool causal_;
  CastFn cast_ = nullptr;
  alignas(64) T edge_[2 * kAttentionBlock];  // a row that sees n keys begins n before the middle
  alignas(64) T own_[kAttentionBlock];
};

// The same for a tile whose lines are keys and whose columns are queries.
template <class T>
class ColumnBias {
 public:
  ColumnBias(const Tensor& mask, bool causal) : rows_(mask, causal), masked_(mask.defined()), causal_(causal) {
    std::fill(edge_, edge_ + kAttentionBlock, -std::numeric_limits<T>::infinity());
    std::fill(edge_ + kAttentionBlock, edge_ + 2 * kAttentionBlock, T(0));
  }
  // For `count` keys from `key` on and `rows` queries from `query` on, multiples of 64 both: the first key's line and
  // how many bytes the next one is away.
  std::pair<char*, int64_t> tile(int64_t b, int64_t h, int64_t query, int64_t rows, int64_t key, int64_t count) {
    constexpr int64_t bytes = sizeof(T), line = kAttentionBlock * bytes;
    if (masked_) {
      for (int64_t i = 0; i < rows; ++i)
        std::copy_n(rows_.row(b, h, query + i, key, count), count, by_row_ + i * kAttentionBlock);
      transpose(bytes, reinterpret_cast<char*>(by_row_), line, reinterpret_cast<char*>(by_column_), line, rows, count);
      return {reinterpret_cast<char*>(by_column_), line};
    }
    // On the diagonal the first key is seen by all queries, each one after it by one less.
    return {reinterpret_cast<char*>(edge_ + kAttentionBlock), causal_ && key == query ? -bytes : 0};
  }

 private:
  RowBias<T> rows_;
  bool masked_, causal_;
  alignas(64) T edge_[2 * kAttentionBlock];
  alignas(64) T by_row_[kAttentionBlock * kAttentionBlock] = {}, by_column_[kAttentionBlock * kAttentionBlock] = {};
};

}  // namespace strata::eager
