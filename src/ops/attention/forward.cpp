#include "core/parallel.h"
#include "ops/attention/tile.h"
#include "run/copy.h"

namespace strata::eager {

namespace {

template <class T>
class Forward {
 public:
  Forward(const AttentionCall& call, const Tensor& out, const Tensor& logsumexp)
      : c_(call),
        out_(out),
        logsumexp_(logsumexp),
        q_(call.query),
        k_(call.key),
        v_(call.value),
        product_(gemm_kernel(call.query.dtype(), kName), gemm_kernel(kCompute, kName)),
        weights_("attention_rows", kCompute, Scalar(call.scale)),
        rescale_("attention_rescale", kCompute),
        end_("attention_end", kCompute) {
    heads_ = c_.query.sizes()[1];
    kv_heads_ = c_.key.sizes()[1];
    queries_ = c_.query.sizes()[2];
    keys_ = c_.key.sizes()[2];
    width_ = c_.query.sizes()[3];
    value_width_ = c_.value.sizes()[3];
    if (out.dtype() != kCompute) narrow_ = cast_fn(kCompute, out.dtype());
  }

  void run() {
    const int64_t batch = c_.query.sizes()[0], blocks = blocks_of(keys_);
    key_bytes_ = product_.packed_bytes(product_.columns_capacity(kAttentionBlock), width_);
    value_bytes_ = product_.packed_bytes(product_.columns_capacity(value_width_), kAttentionBlock);
    packed_ = new_tensor(out_, {batch * kv_heads_ * blocks * (key_bytes_ + value_bytes_) + 1}, DType::U8);
    parallel_for(0, batch * kv_heads_ * blocks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) pack(i / blocks / kv_heads_, i / blocks % kv_heads_, i % blocks);
    });
    const int64_t query_blocks = blocks_of(queries_);
    parallel_for(0, batch * heads_ * query_blocks, 1, [&](int64_t begin, int64_t end) {
      CallMemory memory(task_bytes());
      Space s(memory, *this);
      RowBias<T> bias(c_.mask, c_.causal);
      for (int64_t i = begin; i < end; ++i) {
        // First and last blocks take turns, so that causal heads are even work for contiguous pieces.
        int64_t turn = i % query_blocks, block = turn % 2 ? query_blocks - 1 - turn / 2 : turn / 2;
        int64_t head = i / query_blocks % heads_;
        attend(i / query_blocks / heads_, head, block * kBlock, s, bias);
      }
    });
  }

 private:
  static constexpr DType kCompute = sizeof(T) == 4 ? DType::F32 : DType::F64;
  static constexpr const char* kName = "scaled_dot_product_attention";
  static constexpr int64_t kBlock = kAttentionBlock;

  int64_t sums_bytes() const { return CallMemory::rounded(kBlock * value_width_ * sizeof(T)); }
  int64_t line_bytes() const { return CallMemory::rounded(std::max(kBlock, value_width_) * sizeof(T)) + 64; }
  int64_t scratch_lines() const {
    return std::max({weights_.scratch_rows(), rescale_.scratch_rows(), end_.scratch_rows()});
  }
  int64_t task_bytes() const {
    return product_.packed_bytes(kBlock, width_) + 2 * product_.packed_bytes(kBlock, kBlock) + sums_bytes() +
           (scratch_lines() + 1) * line_bytes();
  }

  // Of one task: the packed queries, scores and weights of a block, and what its queries have added up.
  struct Space {
    char *query, *weights, *packed_weights, *sums, *line, *scratch;
    // Twice, because a kernel may not write what it reads.
    alignas(64) T top[2][kBlock], total[2][kBlock], factor[kBlock];
    Space(CallMemory& m, const Forward& f) {
      query = m.take(f.product_.packed_bytes(kBlock, f.width_));
      weights = m.take(f.product_.packed_bytes(kBlock, kBlock));
      packed_weights = m.take(f.product_.packed_bytes(kBlock, kBlock));
      sums = m.take(f.sums_bytes());
      line = m.take(f.line_bytes());
      scratch = m.take(f.scratch_lines() * f.line_bytes());
    }
  };

  char* packed_key(int64_t b, int64_t kv, int64_t block) const {
    return packed_.bytes() + ((b * kv_heads_ + kv) * blocks_of(keys_) + block) * (key_bytes_ + value_bytes_);
  }

  void pack(int64_t b, int64_t kv, int64_t block) const {
    const int64_t first = block * kBlock, count = std::min(kBlock, keys_ - first);
    char* to = packed_key(b, kv, block);
    product_.pack_columns(k_.at(b, kv, first), count, width_, k_.row, k_.col, to);
    product_.pack_columns(v_.at(b, kv, first), value_width_, count, v_.col, v_.row, to + key_bytes_);
  }

  void attend(int64_t b, int64_t h, int64_t first, Space& s, RowBias<T>& bias) const {
    const int64_t rows = std::min(kBlock, queries_ - first), kv = h / (heads_ / kv_heads_);
    product_.pack_rows(q_.at(b, h, first), rows, width_, q_.row, q_.col, s.query, false);
    std::fill(s.top[0], s.top[0] + rows, -std::numeric_limits<T>::infinity());
    std::fill(s.total[0], s.total[0] + rows, T(0));
    int now = 0;
    const int64_t seen = c_.causal ? std::min(keys_, first + rows) : keys_;
    if (seen == 0) std::memset(s.sums, 0, rows * value_width_ * sizeof(T));
    for (int64_t key = 0; key < seen; key += kBlock) {
      const int64_t count = std::min(kBlock, keys_ - key);
      const char* packed = packed_key(b, kv, key / kBlock);
      product_(s.query, packed, rows, count, width_, s.weights, kBlock, false);
      for (int64_t i = 0; i < rows; ++i) {
        char* p = s.weights + i * kBlock * sizeof(T);
        const T* row_bias = bias.row(b, h, first + i, key, count);
        char* ptr[] = {p,
                       at(s.top[1 - now], i),
                       at(s.total[1 - now], i),
                       at(s.factor, i),
                       p,
                       reinterpret_cast<char*>(const_cast<T*>(row_bias)),
                       at(s.top[now], i),
                       at(s.total[now], i)};
        weights_(ptr, s.scratch, count, line_bytes());
        if (key > 0 && s.factor[i] != T(1)) {
          char* sum = s.sums + i * value_width_ * sizeof(T);
          char* scaled[] = {sum, sum, at(s.factor, i)};
          rescale_(scaled, s.scratch, value_width_, line_bytes());
        }
      }
      product_.pack_rows(s.weights, rows, count, kBlock, 1, s.packed_weights, true);
      product_(s.packed_weights, packed + key_bytes_, rows, value_width_, count, s.sums, value_width_, key > 0);
      now = 1 - now;
    }
    finish(b, h, first, rows, s, now);
  }

  void finish(int64_t b, int64_t h, int64_t first, int64_t rows, Space& s, int now) const {
    IntArrayRef stride = out_.strides();
    for (int64_t i = 0; i < rows; ++i) {
      char* to = out_.bytes() + (b * stride[0] + h * stride[1] + (first + i) * stride[2]) * out_.itemsize();
      char* lse = logsumexp_.bytes() + ((b * heads_ + h) * queries_ + first + i) * sizeof(T);
      char* ptr[] = {narrow_ ? s.line : to, lse, s.sums + i * value_width_ * sizeof(T), at(s.top[now], i),
                     at(s.total[now], i)};
      end_(ptr, s.scratch, value_width_, line_bytes());
      if (narrow_) narrow_(s.line, sizeof(T), to, out_.itemsize(), value_width_);
    }
  }

  static char* at(T* values, int64_t i) { return reinterpret_cast<char*>(values + i); }

  const AttentionCall& c_;
  const Tensor& out_;
  const Tensor& logsumexp_;
  Heads q_, k_, v_;
  TileProduct product_;
  RowKernel weights_, rescale_, end_;
  CastFn narrow_ = nullptr;
  Tensor packed_;
  int64_t heads_, kv_heads_, queries_, keys_, width_, value_width_, key_bytes_ = 0, value_bytes_ = 0;
};

}  // namespace

void attention_forward(const AttentionCall& call, const Tensor& out, const Tensor& logsumexp) {
  if (logsumexp.numel() == 0) return;
  if (logsumexp.dtype() == DType::F64)
    Forward<double>(call, out, logsumexp).run();
  else
    Forward<float>(call, out, logsumexp).run();
}

}  // namespace strata::eager
