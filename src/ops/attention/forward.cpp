#include "ops/attention/forward.h"
#include "core/parallel.h"
#include "run/copy.h"

namespace strata::eager {

namespace {

// The tiles of a mask that heads, batches or queries share are made once, where they are not too many.
template <class T>
class SharedBias {
 public:
  SharedBias(const AttentionCall& call, const Tensor& like) {
    if (!call.mask.defined()) return;
    constexpr int64_t kMostBytes = 64 << 20;
    IntArrayRef stride = call.mask.strides(), sizes = call.query.sizes();
    const int64_t queries = blocks_of(sizes[2]), keys = call.key.sizes()[2];
    const int64_t batches = stride[0] == 0 ? 1 : sizes[0];
    queries_ = stride[2] == 0 && !call.causal ? 1 : queries;
    keys_ = blocks_of(keys);
    one_batch_ = batches == 1;
    const int64_t lines = batches * queries_, bytes = lines * keys_ * kTile;
    if (stride[1] != 0 || 2 * lines > sizes[0] * sizes[1] * queries || bytes > kMostBytes) return;
    tiles_ = new_tensor(like, {bytes}, DType::U8);
    parallel_for(0, lines, 1, [&](int64_t begin, int64_t end) {
      ColumnBias<T> bias(call.mask, call.causal);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t query = i % queries_ * kAttentionBlock, rows = std::min(kAttentionBlock, sizes[2] - query);
        for (int64_t key = 0; key < keys; key += kAttentionBlock) {
          const int64_t count = std::min(kAttentionBlock, keys - key);
          std::memcpy(at(i / queries_, query, key), bias.tile(i / queries_, 0, query, rows, key, count).first, kTile);
        }
      }
    });
  }
  bool ready() const { return tiles_.defined(); }
  // Its first key's line; the next one is kLine bytes away.
  char* at(int64_t b, int64_t query, int64_t key) const {
    const int64_t line = (one_batch_ ? 0 : b * queries_) + (queries_ == 1 ? 0 : query / kAttentionBlock);
    return tiles_.bytes() + (line * keys_ + key / kAttentionBlock) * kTile;
  }
  static constexpr int64_t kLine = kAttentionBlock * int64_t(sizeof(T)), kTile = kAttentionBlock * kLine;

 private:
  Tensor tiles_;
  int64_t queries_ = 0, keys_ = 0;
  bool one_batch_ = false;
};

// Queries in blocks: they are columns, a lane has one from its scores to its result.
template <class T>
class Forward : AttentionForward<T> {
 public:
  Forward(const AttentionCall& call, const Tensor& out, const Tensor& logsumexp)
      : AttentionForward<T>(call, out, logsumexp),
        weights_("attention_rows", kCompute, Scalar(call.scale)),
        rescale_("mul_Tensor", kCompute),
        end_("attention_end", kCompute),
        end_sums_("attention_logsumexp", kCompute) {}

  void run() {
    const int64_t batch = c_.query.sizes()[0], blocks = blocks_of(keys_);
    key_bytes_ = product_.packed_bytes(kBlock, width_);
    value_bytes_ = product_.packed_bytes(product_.rows_capacity(value_width_), kBlock);
    packed_ = new_tensor(this->out_, {batch * kv_heads_ * blocks * (key_bytes_ + value_bytes_) + 1}, DType::U8);
    parallel_for(0, batch * kv_heads_ * blocks, 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) pack(i / blocks / kv_heads_, i / blocks % kv_heads_, i % blocks);
    });
    const int64_t query_blocks = blocks_of(queries_);
    const SharedBias<T> shared(c_, this->out_);
    parallel_for(0, batch * heads_ * query_blocks, 1, [&](int64_t begin, int64_t end) {
      CallMemory memory(task_bytes());
      Space s(memory, *this);
      Bias bias{shared, {c_.mask, c_.causal}};
      for (int64_t i = begin; i < end; ++i) {
        // First and last blocks take turns, so that causal heads are even work for contiguous pieces.
        int64_t turn = i % query_blocks, block = turn % 2 ? query_blocks - 1 - turn / 2 : turn / 2;
        int64_t head = i / query_blocks % heads_;
        attend(i / query_blocks / heads_, head, block * kBlock, s, bias);
      }
    });
  }

 private:
  using Base = AttentionForward<T>;
  using Base::c_, Base::q_, Base::k_, Base::v_, Base::product_, Base::kCompute, Base::kBlock, Base::narrow_;
  using Base::heads_, Base::kv_heads_, Base::queries_, Base::keys_, Base::width_, Base::value_width_;
  // Tiles have 64 columns, whether there are so many queries or not.
  static constexpr int64_t kLine = kBlock * int64_t(sizeof(T));
  int64_t query_bytes() const { return product_.packed_bytes(product_.columns_capacity(kBlock), width_); }
  int64_t sums_bytes() const { return value_width_ * kLine; }
  int64_t task_bytes() const { return query_bytes() + kBlock * kLine + 2 * sums_bytes() + weights_.room(); }

  // Of one task: the packed queries, weights of a block, what its queries have added up (width by query), results.
  struct Space {
    char *query, *weights, *sums, *results, *room;
    // Twice, because a kernel may not write what it reads.
    alignas(64) T top[2][kBlock] = {}, total[2][kBlock] = {}, factor[kBlock] = {}, logsumexp[kBlock];
    Space(CallMemory& m, const Forward& f) {
      query = m.take(f.query_bytes());
      weights = m.take(kBlock * kLine);
      sums = m.take(f.sums_bytes());
      results = m.take(f.sums_bytes());
      room = m.take(f.weights_.room());
      std::memset(weights, 0, kBlock * kLine);
    }
  };

  struct Bias {
    const SharedBias<T>& shared;
    ColumnBias<T> own;
    std::pair<char*, int64_t> tile(int64_t b, int64_t h, int64_t query, int64_t rows, int64_t key, int64_t count) {
      if (shared.ready()) return {shared.at(b, query, key), kLine};
      return own.tile(b, h, query, rows, key, count);
    }
  };

  char* packed_key(int64_t b, int64_t kv, int64_t block) const {
    return packed_.bytes() + ((b * kv_heads_ + kv) * blocks_of(keys_) + block) * (key_bytes_ + value_bytes_);
  }

  void pack(int64_t b, int64_t kv, int64_t block) const {
    const int64_t first = block * kBlock, count = std::min(kBlock, keys_ - first);
    char* to = packed_key(b, kv, block);
    product_.pack_rows(k_.at(b, kv, first), count, width_, k_.row, k_.col, to, false);
    product_.pack_rows(v_.at(b, kv, first), value_width_, count, v_.col, v_.row, to + key_bytes_, false);
  }

  void attend(int64_t b, int64_t h, int64_t first, Space& s, Bias& bias) const {
    const int64_t rows = std::min(kBlock, queries_ - first), kv = h / (heads_ / kv_heads_);
    product_.pack_columns(q_.at(b, h, first), rows, width_, q_.row, q_.col, s.query);
    std::fill(s.top[0], s.top[0] + kBlock, -std::numeric_limits<T>::infinity());
    std::fill(s.total[0], s.total[0] + kBlock, T(0));
    int now = 0;
    const int64_t seen = c_.causal ? std::min(keys_, first + rows) : keys_;
    if (seen == 0) std::memset(s.sums, 0, sums_bytes());
    for (int64_t key = 0; key < seen; key += kBlock) {
      const int64_t count = std::min(kBlock, keys_ - key);
      const char* packed = packed_key(b, kv, key / kBlock);
      product_(packed, s.query, count, rows, width_, s.weights, kBlock, false);
      const auto [line, step] = bias.tile(b, h, first, rows, key, count);
      AcrossPlaces at{{s.weights, bytes(s.top[1 - now]), bytes(s.total[1 - now]), bytes(s.factor), s.weights, line,
                       bytes(s.top[now]), bytes(s.total[now])},
                      {kLine, 0, 0, 0, kLine, step, 0, 0}};
      weights_(at, rows, count, s.room);
      if (key > 0 && std::any_of(s.factor, s.factor + rows, [](T f) { return f != T(1); }))
        for (char* sum = s.sums; sum < s.sums + sums_bytes(); sum += kLine) rescale_({sum, sum, s.factor}, kBlock);
      product_.add_rows(packed + key_bytes_, s.weights, kBlock, value_width_, rows, count, s.sums, kBlock, key > 0);
      now = 1 - now;
    }
    finish(b, h, first, rows, s, now);
  }

  void finish(int64_t b, int64_t h, int64_t first, int64_t rows, Space& s, int now) const {
    for (char* sum = s.sums; sum < s.sums + sums_bytes(); sum += kLine) end_({sum, sum, s.total[now]}, kBlock);
    end_sums_({s.logsumexp, s.top[now], s.total[now]}, kBlock);
    std::memcpy(this->logsumexp_at(b, h, first), s.logsumexp, size_t(rows) * sizeof(T));
    const int64_t row = this->row_bytes(), own_row = value_width_ * int64_t(sizeof(T));
    char* to = this->row_at(b, h, first);
    transpose(sizeof(T), s.sums, kLine, narrow_ ? s.results : to, narrow_ ? own_row : row, value_width_, rows);
    for (int64_t i = 0; narrow_ && i < rows; ++i)
      narrow_(s.results + i * own_row, sizeof(T), to + i * row, this->out_.itemsize(), value_width_);
  }

  static char* bytes(T* values) { return reinterpret_cast<char*>(values); }

  ColumnKernel weights_;
  RunKernel rescale_, end_, end_sums_;
  Tensor packed_;
  int64_t key_bytes_ = 0, value_bytes_ = 0;
};

}  // namespace

void attention_forward(const AttentionCall& call, const Tensor& out, const Tensor& logsumexp) {
  if (logsumexp.numel() == 0) return;
  if (call.query.sizes()[2] <= kFewQueries) return attention_of_few(call, out, logsumexp);
  if (logsumexp.dtype() == DType::F64)
    Forward<double>(call, out, logsumexp).run();
  else
    Forward<float>(call, out, logsumexp).run();
}

}  // namespace strata::eager
