// What both directions of attention share: packed operands, products of tiles, row kernels over one tile, and the bias
// (mask and causality) of a row.
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/call_memory.h"
#include "ops/attention/blocks.h"
#include "ops/matmul/gemm.h"
#include "ops/matmul/product.h"
#include "run/kernels.h"
#include "run/loop/cast.h"

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

// Products of tiles of at most 64 rows of packed operands. A packed operand has, for each chain of k, its panels of
// mr rows (nr columns) one after another, `capacity` rows (columns) in all.
class TileProduct {
 public:
  // `stored`: the kernels of the operands' dtype; `compute`: those of the dtype in which products are made.
  TileProduct(const GemmKernel& stored, const GemmKernel& compute) : stored_(stored), compute_(compute) {}

  int64_t bytes() const { return compute_.compute_bytes; }
  int64_t columns_capacity(int64_t columns) const {
    return (columns + compute_.lanes - 1) / compute_.lanes * compute_.lanes;
  }
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

// A row kernel over rows that one part holds.
class RowKernel {
 public:
  RowKernel(const char* name, DType t, const Scalar& scalar = Scalar(0.0)) {
    entry_ = find_kernel(name, t);
    STRATA_CHECK_NOT_IMPLEMENTED(entry_, "scaled_dot_product_attention: no kernel ", name, " for ", t);
    store_scalar(scalar, t, params_);
  }
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
  const StrataKernelEntry* entry_;
  alignas(16) char params_[16] = {};
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
      for (int64_t i = 0; i < seen; ++i) own_[i] = p[i * s[3]] ? T(0) : -std::numeric_limits<T>::infinity();
    std::copy_n(edge_ + kAttentionBlock, count - seen, own_ + seen);
    return own_;
  }
  static constexpr DType compute_dtype() { return sizeof(T) == 4 ? DType::F32 : DType::F64; }

 private:
  const Tensor& mask_;
  bool causal_;
  CastFn cast_ = nullptr;
  alignas(64) T edge_[2 * kAttentionBlock];  // a row that sees n keys begins n before the middle
  alignas(64) T own_[kAttentionBlock];
};

}  // namespace strata::eager
