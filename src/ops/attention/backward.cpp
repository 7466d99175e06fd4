#include "core/parallel.h"
#include "ops/attention/tile.h"
#include "run/copy.h"

namespace strata::eager {

namespace {

// A range of blocks.
struct Blocks {
  int64_t begin, end;
};

template <class T>
class Backward {
 public:
  Backward(const AttentionCall& call, const Tensor& grad, const Tensor& logsumexp, const Tensor& delta,
           const Tensor& grad_query, const Tensor& grad_key, const Tensor& grad_value)
      : c_(call),
        logsumexp_(logsumexp),
        delta_(delta),
        grad_query_(grad_query),
        grad_key_(grad_key),
        grad_value_(grad_value),
        q_(call.query),
        k_(call.key),
        v_(call.value),
        g_(grad),
        product_(gemm_kernel(call.query.dtype(), kName), gemm_kernel(kCompute, kName)),
        weights_("attention_backward_rows", kCompute, Scalar(call.scale)),
        sums_("attention_delta_rows", kCompute, Scalar(call.scale)) {
    heads_ = c_.query.sizes()[1];
    kv_heads_ = c_.key.sizes()[1];
    queries_ = c_.query.sizes()[2];
    keys_ = c_.key.sizes()[2];
    width_ = c_.query.sizes()[3];
    value_width_ = c_.value.sizes()[3];
    width_columns_ = product_.packed_bytes(product_.columns_capacity(width_), kBlock);
    width_lines_ = product_.packed_bytes(product_.rows_capacity(width_), kBlock);
    value_lines_ = product_.packed_bytes(product_.rows_capacity(value_width_), kBlock);
    width_rows_ = product_.packed_bytes(kBlock, width_);
    value_rows_ = product_.packed_bytes(kBlock, value_width_);
  }

  // delta from the weights: the result times grad would have the error of the result's rounding.
  void sum_delta() {
    const int64_t blocks = blocks_of(queries_);
    parallel_for(0, c_.query.sizes()[0] * heads_ * blocks, 1, [&](int64_t begin, int64_t end) {
      const int64_t tile = product_.packed_bytes(kBlock, kBlock), wide = product_.columns_capacity(kBlock);
      const int64_t key = product_.packed_bytes(wide, width_), value = product_.packed_bytes(wide, value_width_);
      CallMemory memory(query_bytes() + key + value + 2 * tile + (sums_.scratch_rows() + 1) * line_bytes());
      Space s{};
      s.queries = memory.take(query_bytes());
      s.key = memory.take(key);
      s.value = memory.take(value);
      s.weights = memory.take(tile);
      s.scores = memory.take(tile);
      s.scratch = memory.take(sums_.scratch_rows() * line_bytes());
      RowBias<T> bias(c_.mask, c_.causal);
      for (int64_t i = begin; i < end; ++i)
        sum_rows(i / blocks / heads_, i / blocks % heads_, i % blocks * kBlock, s, bias);
    });
  }

  void run() {
    const int64_t groups = c_.query.sizes()[0] * kv_heads_, query_blocks = blocks_of(queries_),
                  key_blocks = blocks_of(keys_);
    const bool by_query = grad_query_.defined(), by_key = grad_key_.defined();
    if (groups >= num_threads() || in_parallel_region()) {
      parallel_for(0, groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) one(i, {0, query_blocks}, {0, key_blocks}, by_query, by_key);
      });
      return;
    }
    // Few heads: stretches of keys and then of queries, at the price of computing the weights twice.
    if (by_key) split(groups, key_blocks, [&](int64_t i, Blocks b) { one(i, {0, query_blocks}, b, false, true); });
    if (by_query) split(groups, query_blocks, [&](int64_t i, Blocks b) { one(i, b, {0, key_blocks}, true, false); });
  }

 private:
  static constexpr DType kCompute = sizeof(T) == 4 ? DType::F32 : DType::F64;
  static constexpr const char* kName = "scaled_dot_product_attention_backward";
  static constexpr int64_t kBlock = kAttentionBlock;

  template <class F>
  void split(int64_t groups, int64_t blocks, F&& f) const {
    const int64_t pieces = std::clamp<int64_t>(2 * num_threads() / groups, 1, blocks);
    parallel_for(0, groups * pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t piece = i % pieces;
        f(i / pieces, Blocks{blocks * piece / pieces, blocks * (piece + 1) / pieces});
      }
    });
  }

  int64_t line_bytes() const { return CallMemory::rounded(kBlock * sizeof(T)) + 64; }
  int64_t query_bytes() const { return width_rows_ + value_rows_ + width_lines_ + value_lines_; }

  static constexpr int64_t kLine = kBlock * int64_t(sizeof(T));
  int64_t sums_bytes() const { return (value_width_ + width_) * kLine; }

  // Of one task: all of its packed query blocks, one packed key block, a tile, and the gradients of all key blocks.
  struct Space {
    char *queries, *key, *value, *key_columns, *weights, *scores, *packed, *sums, *scratch;
  };

  // The heads of query that share one of key and value, query blocks `qs` by key blocks `ks`.
  void one(int64_t group, Blocks qs, Blocks ks, bool by_query, bool by_key) const {
    const int64_t b = group / kv_heads_, kv = group % kv_heads_, shared = heads_ / kv_heads_;
    const int64_t tile = product_.packed_bytes(kBlock, kBlock), wide = product_.columns_capacity(kBlock);
    const int64_t key = product_.packed_bytes(wide, width_), value = product_.packed_bytes(wide, value_width_);
    const int64_t sums = by_key ? (ks.end - ks.begin) * sums_bytes() : 0;
    CallMemory memory((qs.end - qs.begin) * query_bytes() + key + value + width_columns_ + 3 * tile + sums +
                      (weights_.scratch_rows() + 1) * line_bytes());
    Space s;
    s.queries = memory.take((qs.end - qs.begin) * query_bytes());
    s.key = memory.take(key);
    s.value = memory.take(value);
    s.key_columns = memory.take(width_columns_);
    s.weights = memory.take(tile);
    s.scores = memory.take(tile);
    s.packed = memory.take(tile);
    s.sums = memory.take(sums);
    s.scratch = memory.take(weights_.scratch_rows() * line_bytes());
    std::memset(s.sums, 0, size_t(sums));
    RowBias<T> bias(c_.mask, c_.causal);
    for (int64_t h = kv * shared; h < (kv + 1) * shared; ++h) {
      for (int64_t i = qs.begin; i < qs.end; ++i) pack_queries(b, h, i, s.queries + (i - qs.begin) * query_bytes());
      for (int64_t j = ks.begin; j < ks.end; ++j) {
        const int64_t first = j * kBlock, count = std::min(kBlock, keys_ - first);
        product_.pack_columns(k_.at(b, kv, first), count, width_, k_.row, k_.col, s.key);
        product_.pack_columns(v_.at(b, kv, first), count, value_width_, v_.row, v_.col, s.value);
        product_.pack_columns(k_.at(b, kv, first), width_, count, k_.col, k_.row, s.key_columns);
        for (int64_t i = qs.begin; i < qs.end; ++i) {
          if (c_.causal && (i + 1) * kBlock <= first) continue;
          add_tile(b, h, i, j, s.queries + (i - qs.begin) * query_bytes(), s, bias, by_query,
                   by_key ? s.sums + (j - ks.begin) * sums_bytes() : nullptr);
        }
      }
    }
    for (int64_t j = ks.begin; by_key && j < ks.end; ++j) {
      const char* sums = s.sums + (j - ks.begin) * sums_bytes();
      const int64_t first = j * kBlock, count = std::min(kBlock, keys_ - first);
      turn(sums, value_width_, count, row_of(grad_value_, b, kv, first), grad_value_);
      turn(sums + value_width_ * kLine, width_, count, row_of(grad_key_, b, kv, first), grad_key_);
    }
  }

  void pack_queries(int64_t b, int64_t h, int64_t block, char* to) const {
    const int64_t first = block * kBlock, count = std::min(kBlock, queries_ - first);
    product_.pack_rows(q_.at(b, h, first), count, width_, q_.row, q_.col, to, false);
    to += width_rows_;
    product_.pack_rows(g_.at(b, h, first), count, value_width_, g_.row, g_.col, to, false);
    to += value_rows_;
    product_.pack_rows(q_.at(b, h, first), width_, count, q_.col, q_.row, to, false);
    product_.pack_rows(g_.at(b, h, first), value_width_, count, g_.col, g_.row, to + width_lines_, false);
  }

  // `sums`: of the key block's gradients, by value and then by key, width by key; null where they are not wanted.
  void add_tile(int64_t b, int64_t h, int64_t i, int64_t j, const char* packed, Space& s, RowBias<T>& bias,
                bool by_query, char* sums) const {
    const int64_t query = i * kBlock, key = j * kBlock;
    const int64_t rows = std::min(kBlock, queries_ - query), count = std::min(kBlock, keys_ - key);
    product_(packed, s.key, rows, count, width_, s.weights, kBlock, false);
    product_(packed + width_rows_, s.value, rows, count, value_width_, s.scores, kBlock, false);
    const int64_t at = ((b * heads_ + h) * queries_ + query) * int64_t(sizeof(T));
    for (int64_t r = 0; r < rows; ++r) {
      char *p = s.weights + r * kBlock * sizeof(T), *d = s.scores + r * kBlock * sizeof(T);
      const T* row_bias = bias.row(b, h, query + r, key, count);
      char* ptr[] = {p,
                     d,
                     p,
                     d,
                     reinterpret_cast<char*>(const_cast<T*>(row_bias)),
                     logsumexp_.bytes() + at + r * sizeof(T),
                     delta_.bytes() + at + r * sizeof(T)};
      weights_(ptr, s.scratch, count, line_bytes());
    }
    if (sums) {
      const char *query_lines = packed + width_rows_ + value_rows_, *grad_lines = query_lines + width_lines_;
      product_.add_rows(grad_lines, s.weights, kBlock, value_width_, count, rows, sums, kBlock, true);
      char* by_key = sums + value_width_ * kLine;
      product_.add_rows(query_lines, s.scores, kBlock, width_, count, rows, by_key, kBlock, true);
    }
    if (by_query) {
      product_.pack_rows(s.scores, rows, count, kBlock, 1, s.packed, true);
      product_(s.packed, s.key_columns, rows, width_, count, row_of(grad_query_, b, h, query), grad_query_.strides()[2],
               true);
    }
  }

  void sum_rows(int64_t b, int64_t h, int64_t query, Space& s, RowBias<T>& bias) const {
    const int64_t rows = std::min(kBlock, queries_ - query), kv = h / (heads_ / kv_heads_);
    const int64_t seen = c_.causal ? std::min(keys_, query + rows) : keys_;
    const int64_t at = ((b * heads_ + h) * queries_ + query) * int64_t(sizeof(T));
    pack_queries(b, h, query / kBlock, s.queries);
    for (int64_t key = 0; key < seen; key += kBlock) {
      const int64_t count = std::min(kBlock, keys_ - key);
      product_.pack_columns(k_.at(b, kv, key), count, width_, k_.row, k_.col, s.key);
      product_.pack_columns(v_.at(b, kv, key), count, value_width_, v_.row, v_.col, s.value);
      product_(s.queries, s.key, rows, count, width_, s.weights, kBlock, false);
      product_(s.queries + width_rows_, s.value, rows, count, value_width_, s.scores, kBlock, false);
      for (int64_t r = 0; r < rows; ++r) {
        char* sum = delta_.bytes() + at + r * sizeof(T);
        alignas(16) char before[16];
        std::memcpy(before, sum, sizeof(T));
        const T* row_bias = bias.row(b, h, query + r, key, count);
        char* ptr[] = {sum,
                       s.weights + r * kBlock * sizeof(T),
                       s.scores + r * kBlock * sizeof(T),
                       reinterpret_cast<char*>(const_cast<T*>(row_bias)),
                       logsumexp_.bytes() + at + r * sizeof(T),
                       before};
        sums_(ptr, s.scratch, count, line_bytes());
      }
    }
  }

  static void turn(const char* sums, int64_t width, int64_t keys, char* to, const Tensor& grad) {
    transpose(sizeof(T), sums, kLine, to, grad.strides()[2] * int64_t(sizeof(T)), width, keys);
  }

  static char* row_of(const Tensor& t, int64_t b, int64_t h, int64_t row) {
    IntArrayRef s = t.strides();
    return t.bytes() + (b * s[0] + h * s[1] + row * s[2]) * int64_t(sizeof(T));
  }

  const AttentionCall& c_;
  const Tensor &logsumexp_, &delta_, &grad_query_, &grad_key_, &grad_value_;
  Heads q_, k_, v_, g_;
  TileProduct product_;
  RowKernel weights_, sums_;
  int64_t heads_, kv_heads_, queries_, keys_, width_, value_width_;
  int64_t width_columns_, width_rows_, value_rows_, width_lines_, value_lines_;
};

}  // namespace

void attention_backward_blocks(const AttentionCall& call, const Tensor& grad, const Tensor& logsumexp,
                               const Tensor& delta, const Tensor& grad_query, const Tensor& grad_key,
                               const Tensor& grad_value) {
  if (logsumexp.numel() == 0) return;
  if (logsumexp.dtype() == DType::F64) {
    Backward<double>(call, grad, logsumexp, delta, grad_query, grad_key, grad_value).run();
    return;
  }
  Backward<float> work(call, grad, logsumexp, delta, grad_query, grad_key, grad_value);
  if (call.query.dtype() != DType::F32) work.sum_delta();
  work.run();
}

}  // namespace strata::eager
