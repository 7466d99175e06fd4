#include "core/shape/attention.h"

#include "core/shape/strides.h"

namespace strata::shape {
namespace {

constexpr const char* kOp = "_scaled_dot_product_flash_attention_for_cpu";

template <class S>
const S& from_end(const Geometry<S>& t, size_t d) {
  return t.sizes[t.sizes.size() - d];
}

DType computed(DType t) { return traits(t).compute; }

template <class S>
Strided<S> in_order_of(const Geometry<S>& like, const Sizes<S>& sizes, DType t) {
  Sizes<S> strides = result_strides<S>(sizes, {like});
  if (sizes[3] > S(1) && !(strides[3] == S(1))) return {sizes, t};
  return {sizes, t, std::move(strides)};
}

template <class S>
void check_call(const Geometry<S>& query, const Geometry<S>& key, const Geometry<S>& value, double dropout_p,
                const Geometry<S>& mask) {
  check_attention(query, key, value, mask);
  STRATA_CHECK(query.dim() == 4 && key.dim() == 4 && value.dim() == 4, kOp,
               ": expected query, key and value of 4 dims (batch, heads, length, width), got ", query.sizes, ", ",
               key.sizes, " and ", value.sizes);
  const S &heads = query.sizes[1], &shared = key.sizes[1];
  STRATA_CHECK(query.sizes[0] == key.sizes[0] && query.sizes[0] == value.sizes[0] && shared == value.sizes[1] &&
                   (shared == S(0) ? heads == S(0) : floor_mod(heads, shared) == S(0)),
               kOp, ": expected one batch size, and heads of key and value that divide those of query, got ",
               query.sizes, ", ", key.sizes, " and ", value.sizes);
  STRATA_CHECK(dropout_p == 0.0, kOp, ": expected dropout_p = 0, got ", dropout_p,
               "; use scaled_dot_product_attention, which has dropout");
  if (!mask.defined) return;
  const Sizes<S> full{query.sizes[0], heads, query.sizes[2], key.sizes[2]};
  STRATA_CHECK(mask.dim() <= 4, "expand(", mask.sizes, ", size=", ArrayRef<S>(full),
               "): the number of sizes provided (4) must be greater or equal to the number of dimensions in the "
               "tensor (",
               mask.dim(), ")");
  for (size_t d = mask.sizes.size(), lead = 4 - d; d-- > 0;)
    STRATA_CHECK(mask.sizes[d] == full[lead + d] || mask.sizes[d] == S(1), "The expanded size of the tensor (",
                 full[lead + d], ") must match the existing size (", mask.sizes[d], ") at non-singleton dimension ",
                 lead + d, ".  Target sizes: ", ArrayRef<S>(full), ".  Tensor sizes: ", mask.sizes);
}

}  // namespace

template <class S>
void check_attention(const Geometry<S>& query, const Geometry<S>& key, const Geometry<S>& value,
                     const Geometry<S>& mask) {
  STRATA_CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2,
               "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: ", query.dim(),
               " key.dim: ", key.dim(), " and value.dim: ", value.dim(), " instead.");
  STRATA_CHECK(query.dtype == key.dtype && query.dtype == value.dtype,
               "Expected query, key, and value to have the same dtype, but got query.dtype: ", query.dtype,
               " key.dtype: ", key.dtype, " and value.dtype: ", value.dtype, " instead.");
  STRATA_CHECK_NOT_IMPLEMENTED(!is_complex(query.dtype), "scaled_dot_product_attention: softmax has no meaning for ",
                               query.dtype, "; expected a floating dtype");
  STRATA_CHECK(is_float(query.dtype), "scaled_dot_product_attention: expected a floating dtype, got ", query.dtype,
               "; convert the operands with .to() first");
  STRATA_CHECK(from_end(query, 1) == from_end(key, 1),
               "scaled_dot_product_attention: expected query and key of one size in the last dim, got ", query.sizes,
               " and ", key.sizes);
  STRATA_CHECK(from_end(key, 2) == from_end(value, 2),
               "scaled_dot_product_attention: expected key and value of one length (the last dim but one), got ",
               key.sizes, " and ", value.sizes);
  STRATA_CHECK(!mask.defined || mask.dtype == DType::Bool || mask.dtype == DType::F32 || mask.dtype == query.dtype,
               "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: ",
               mask.dtype, " and  query.dtype: ", query.dtype, " instead.");
}

template <class S>
Prepared<S> attention(const Geometry<S>& query, const Geometry<S>& key, const Geometry<S>& value, double dropout_p,
                      const Geometry<S>& mask) {
  check_call(query, key, value, dropout_p, mask);
  Sizes<S> sizes(query.sizes);
  sizes[3] = value.sizes[3];
  Prepared<S> r;
  r.add(in_order_of(query, sizes, query.dtype));
  sizes.pop_back();
  r.add({std::move(sizes), computed(query.dtype)});
  return r;
}

template <class S>
Prepared<S> attention_backward(const Geometry<S>& grad, const Geometry<S>& query, const Geometry<S>& key,
                               const Geometry<S>& value, const Geometry<S>& out, const Geometry<S>& logsumexp,
                               double dropout_p, const Geometry<S>& mask) {
  check_call(query, key, value, dropout_p, mask);
  STRATA_CHECK(grad.sizes == out.sizes, kOp, "_backward: expected grad_out and out of one shape, got ", grad.sizes,
               " and ", out.sizes);
  const DType t = query.dtype, wide = computed(t);
  STRATA_CHECK(grad.dtype == t && out.dtype == t, kOp, "_backward: expected grad_out and out of query's dtype ", t,
               ", got ", grad.dtype, " and ", out.dtype);
  Sizes<S> full(query.sizes);
  full.pop_back();
  STRATA_CHECK(logsumexp.sizes == ArrayRef<S>(full) && logsumexp.dtype == wide, kOp,
               "_backward: expected logsumexp of shape ", ArrayRef<S>(full), " and dtype ", wide, ", got ",
               logsumexp.sizes, " and ", logsumexp.dtype);
  full.push_back(value.sizes[3]);
  STRATA_CHECK(out.sizes == ArrayRef<S>(full), kOp, "_backward: expected out of shape ", ArrayRef<S>(full), ", got ",
               out.sizes);
  Prepared<S> r;
  // Halves are added up in float32 and rounded into plain results.
  for (const Geometry<S>* like : {&query, &key, &value}) {
    const Sizes<S> sizes(like->sizes);
    r.add(t == wide ? in_order_of(*like, sizes, t) : Strided<S>{sizes, t});
  }
  return r;
}

#define STRATA_RULES(S)                                                                                          \
  template void check_attention(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&, const Geometry<S>&); \
  template Prepared<S> attention(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&, double,             \
                                 const Geometry<S>&);                                                            \
  template Prepared<S> attention_backward(const Geometry<S>&, const Geometry<S>&, const Geometry<S>&,            \
                                          const Geometry<S>&, const Geometry<S>&, const Geometry<S>&, double,    \
                                          const Geometry<S>&);
STRATA_RULES(int64_t)
STRATA_RULES(SymInt)
#undef STRATA_RULES

}  // namespace strata::shape
