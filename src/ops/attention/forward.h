// What attention of many and of few queries share.
#pragma once
#include "ops/attention/tile.h"

namespace strata::eager {

constexpr int64_t kFewQueries = 8;  // so many leave most lanes empty, if queries are columns

// attention_forward() of at most that many queries.
void attention_of_few(const AttentionCall& call, const Tensor& out, const Tensor& logsumexp);

template <class T>
struct AttentionForward {
  static constexpr DType kCompute = sizeof(T) == 4 ? DType::F32 : DType::F64;
  static constexpr const char* kName = "scaled_dot_product_attention";
  static constexpr int64_t kBlock = kAttentionBlock;

  AttentionForward(const AttentionCall& call, const Tensor& out, const Tensor& logsumexp)
      : c_(call),
        out_(out),
        logsumexp_(logsumexp),
        q_(call.query),
        k_(call.key),
        v_(call.value),
        product_(gemm_kernel(call.query.dtype(), kName), gemm_kernel(kCompute, kName)),
        heads_(call.query.sizes()[1]),
        kv_heads_(call.key.sizes()[1]),
        queries_(call.query.sizes()[2]),
        keys_(call.key.sizes()[2]),
        width_(call.query.sizes()[3]),
        value_width_(call.value.sizes()[3]) {
    if (out.dtype() != kCompute) narrow_ = cast_fn(kCompute, out.dtype());
  }

  char* row_at(int64_t b, int64_t h, int64_t query) const {
    IntArrayRef stride = out_.strides();
    return out_.bytes() + (b * stride[0] + h * stride[1] + query * stride[2]) * out_.itemsize();
  }
  int64_t row_bytes() const { return out_.strides()[2] * out_.itemsize(); }
  char* logsumexp_at(int64_t b, int64_t h, int64_t query) const {
    return logsumexp_.bytes() + ((b * heads_ + h) * queries_ + query) * int64_t(sizeof(T));
  }

  const AttentionCall& c_;
  const Tensor &out_, &logsumexp_;
  Heads q_, k_, v_;
  TileProduct product_;
  CastFn narrow_ = nullptr;  // to a result that is not of the compute dtype
  int64_t heads_, kv_heads_, queries_, keys_, width_, value_width_;
};

}  // namespace strata::eager
