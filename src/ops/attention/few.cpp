// Attention of few queries, as when text is made token by token: keys and values are gone over once for all heads that
// share them, and a vector has keys of one query.
#include "core/parallel.h"
#include "ops/attention/forward.h"
#include "run/copy.h"

namespace strata::eager {

namespace {

template <class T>
class Few : AttentionForward<T> {
 public:
  Few(const AttentionCall& call, const Tensor& out, const Tensor& logsumexp)
      : AttentionForward<T>(call, out, logsumexp),
        weights_("attention_rows", kCompute, Scalar(call.scale)),
        rescale_("mul_Tensor", kCompute),
        end_("attention_end", kCompute),
        end_sums_("attention_logsumexp", kCompute) {
    shared_ = heads_ / kv_heads_;
    seen_ = call.causal ? std::min(keys_, queries_) : keys_;
    in_place_ = product_.reads_columns(call.value.dtype(), value_width_, v_.col);
  }

  void run() {
    const int64_t groups = c_.query.sizes()[0] * kv_heads_;
    const int64_t pieces = std::clamp<int64_t>(num_threads() / groups, 1, shared_);
    parallel_for(0, groups * pieces, 1, [&](int64_t begin, int64_t end) {
      const int64_t heads = (shared_ + pieces - 1) / pieces;
      CallMemory memory(key_bytes() + value_bytes() + 2 * tile_bytes() + scratch_bytes() + 2 * line_bytes() +
                        heads * head_bytes());
      Space s(memory, *this, heads);
      RowBias<T> bias(c_.mask, c_.causal);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i / pieces, piece = i % pieces, kv = group % kv_heads_;
        attend(group / kv_heads_, kv, kv * shared_ + shared_ * piece / pieces,
               kv * shared_ + shared_ * (piece + 1) / pieces, s, bias);
      }
    });
  }

 private:
  using Base = AttentionForward<T>;
  using Base::c_, Base::q_, Base::k_, Base::v_, Base::product_, Base::kCompute, Base::kBlock, Base::narrow_;
  using Base::heads_, Base::kv_heads_, Base::queries_, Base::keys_, Base::width_, Base::value_width_;

  int64_t key_bytes() const { return product_.packed_bytes(product_.columns_capacity(kBlock), width_); }
  int64_t value_bytes() const { return product_.packed_bytes(product_.columns_capacity(value_width_), kBlock); }
  int64_t tile_bytes() const { return product_.packed_bytes(kBlock, kBlock); }
  int64_t row_width() const { return (std::max(kBlock, value_width_) + 15) / 16 * 16; }
  int64_t line_bytes() const { return CallMemory::rounded(row_width() * sizeof(T)) + 64; }
  int64_t scratch_bytes() const { return weights_.scratch_rows() * line_bytes(); }
  int64_t query_bytes() const { return product_.packed_bytes(kBlock, width_); }
  int64_t head_bytes() const { return query_bytes() + kFewQueries * line_bytes() + CallMemory::rounded(sizeof(State)); }

  // Of one query's keys so far; twice, because a kernel may not write what it reads.
  struct State {
    T top[2][kFewQueries], total[2][kFewQueries];
  };

  // Of one task: packed keys and values of a block, weights of one head; and of each head its packed queries, and what
  // they have added up.
  struct Space {
    char *key, *value, *weights, *packed, *scratch, *line, *factor, *heads;
    Space(CallMemory& m, const Few& f, int64_t count) {
      key = m.take(f.key_bytes());
      value = m.take(f.value_bytes());
      weights = m.take(f.tile_bytes());
      packed = m.take(f.tile_bytes());
      scratch = m.take(f.scratch_bytes());
      line = m.take(f.line_bytes());
      factor = m.take(f.line_bytes());
      heads = m.take(count * f.head_bytes());
    }
  };
  struct Head {
    char *query, *sums;
    State* state;
  };
  Head head(const Space& s, int64_t i) const {
    char* p = s.heads + i * head_bytes();
    return {p, p + query_bytes(), reinterpret_cast<State*>(p + query_bytes() + kFewQueries * line_bytes())};
  }

  // Of heads [first, end), which share keys and values.
  void attend(int64_t b, int64_t kv, int64_t first, int64_t end, const Space& s, RowBias<T>& bias) const {
    for (int64_t h = first; h < end; ++h) {
      const Head own = head(s, h - first);
      product_.pack_rows(q_.at(b, h), queries_, width_, q_.row, q_.col, own.query, false);
      std::fill_n(own.state->top[0], kFewQueries, -std::numeric_limits<T>::infinity());
      std::fill_n(own.state->total[0], kFewQueries, T(0));
      if (seen_ == 0) std::memset(own.sums, 0, size_t(queries_ * line_bytes()));
    }
    int now = 0;
    for (int64_t key = 0; key < seen_; key += kBlock, now = 1 - now) {
      const int64_t count = std::min(kBlock, keys_ - key);
      product_.pack_columns(k_.at(b, kv, key), count, width_, k_.row, k_.col, s.key);
      if (!in_place_) product_.pack_columns(v_.at(b, kv, key), value_width_, count, v_.col, v_.row, s.value);
      for (int64_t h = first; h < end; ++h) add_block(b, h, kv, key, count, now, head(s, h - first), s, bias);
    }
    for (int64_t h = first; h < end; ++h) finish(b, h, head(s, h - first), now, s);
  }

  void add_block(int64_t b, int64_t h, int64_t kv, int64_t key, int64_t count, int now, const Head& own, const Space& s,
                 RowBias<T>& bias) const {
    product_(own.query, s.key, queries_, count, width_, s.weights, kBlock, false);
    State& state = *own.state;
    for (int64_t i = 0; i < queries_; ++i) {
      char* p = s.weights + i * kBlock * int64_t(sizeof(T));
      T factor;
      char* ptr[] = {p,
                     bytes(&state.top[1 - now][i]),
                     bytes(&state.total[1 - now][i]),
                     bytes(&factor),
                     p,
                     bytes(const_cast<T*>(bias.row(b, h, i, key, count))),
                     bytes(&state.top[now][i]),
                     bytes(&state.total[now][i])};
      weights_(ptr, s.scratch, count, line_bytes());
      if (key > 0 && factor != T(1)) run(rescale_, own.sums + i * line_bytes(), factor, s);
    }
    product_.pack_rows(s.weights, queries_, count, kBlock, 1, s.packed, true);
    const int64_t row = line_bytes() / int64_t(sizeof(T));
    if (in_place_)
      product_.add_rows(s.packed, v_.at(b, kv, key), v_.row, queries_, value_width_, count, own.sums, row, key > 0);
    else
      product_(s.packed, s.value, queries_, value_width_, count, own.sums, row, key > 0);
  }

  // A row and one number.
  void run(const RunKernel& kernel, char* row, T number, const Space& s) const {
    std::fill_n(reinterpret_cast<T*>(s.factor), row_width(), number);
    kernel({row, row, s.factor}, (value_width_ + 15) / 16 * 16);
  }

  void finish(int64_t b, int64_t h, const Head& own, int now, const Space& s) const {
    alignas(64) T logsumexp[16], top[16] = {}, total[16] = {};
    std::copy_n(own.state->top[now], queries_, top);
    std::copy_n(own.state->total[now], queries_, total);
    end_sums_({logsumexp, top, total}, 16);
    std::memcpy(this->logsumexp_at(b, h, 0), logsumexp, size_t(queries_) * sizeof(T));
    for (int64_t i = 0; i < queries_; ++i) {
      char *sums = own.sums + i * line_bytes(), *to = this->row_at(b, h, i);
      run(end_, sums, total[i], s);
      if (narrow_)
        narrow_(sums, sizeof(T), to, this->out_.itemsize(), value_width_);
      else
        std::memcpy(to, sums, size_t(value_width_) * sizeof(T));
    }
  }

  static char* bytes(T* values) { return reinterpret_cast<char*>(values); }

  RowKernel weights_;
  RunKernel rescale_, end_, end_sums_;
  int64_t shared_, seen_;
  bool in_place_;  // values are read where they lie
};

}  // namespace

void attention_of_few(const AttentionCall& call, const Tensor& out, const Tensor& logsumexp) {
  if (logsumexp.dtype() == DType::F64)
    Few<double>(call, out, logsumexp).run();
  else
    Few<float>(call, out, logsumexp).run();
}

}  // namespace strata::eager
