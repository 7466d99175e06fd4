// scatter: an index tensor with as many dims as self names the place along one dim.
#include "base/checked.h"
#include "core/parallel.h"
#include "eager/index_args.h"
#include "eager/index_walk.h"
#include "eager/visit.h"
#include "strata/generated/eager_scatter.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/create.h"
#include "strata/generated/ops/pointwise.h"

namespace strata::eager {

namespace {

enum class Reduce { Put, Add, Multiply, Mean, Max, Min };

// A 0-dim tensor as one of one element, so that every operand has the indexed dim.
Tensor with_dims(const Tensor& t) {
  return t.dim() ? t : t.alias(IntArrayRef(int64_t(1)), IntArrayRef(int64_t(1)), t.storage_offset());
}

// The index as int64, with as many dims as self.
Tensor index_like(const Tensor& self, const Tensor& index, const char* name) {
  STRATA_CHECK(index.numel() == 0 || index.dtype() == DType::I64 || index.dtype() == DType::I32, name,
               "(): Expected dtype int32/int64 for index");
  Tensor at = with_dims(as_dtype(index, DType::I64)), to = with_dims(self);
  STRATA_CHECK(index.numel() == 0 || at.dim() == to.dim(),
               "Index tensor must have the same number of dimensions as input tensor");
  return at;
}

Tensor checked_index(const Tensor& self, int64_t dim, const Tensor& index, const char* name) {
  Tensor at = index_like(self, index, name);
  if (!self.is_meta()) check_index_range(at, with_dims(self).sizes()[dim], dim, ErrorKind::Runtime);
  return at;
}

void check_scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, const char* name) {
  STRATA_CHECK(self.dtype() == src.dtype(), name, "(): Expected self.dtype to be equal to src.dtype");
  if (index.numel() == 0) return;
  Tensor at = with_dims(index), to = with_dims(self), from = with_dims(src);
  STRATA_CHECK(at.dim() == to.dim(), "Index tensor must have the same number of dimensions as self tensor");
  STRATA_CHECK(at.dim() == from.dim(), "Index tensor must have the same number of dimensions as src tensor");
  bool fits = true;
  for (int64_t d = 0; d < at.dim(); ++d)
    fits &= (d == dim || at.sizes()[d] <= to.sizes()[d]) && at.sizes()[d] <= from.sizes()[d];
  STRATA_CHECK(fits, "Expected index ", index.sizes(), " to be no larger than self ", self.sizes(),
               " apart from dimension ", dim, " and to be no larger size than src ", src.sizes());
}

template <class T, class F>
void combine(const IndexWalk& walk, F f) {
  walk([f](const IndexRun& r) {
    for (int64_t i = 0; i < r.count; ++i) {
      int64_t at = *reinterpret_cast<const int64_t*>(r.index + i * r.index_step);
      T* to = reinterpret_cast<T*>(r.target + i * r.target_step + at * r.scale);
      *to = f(*to, *reinterpret_cast<const T*>(r.other + i * r.other_step));
    }
  });
}

// self[index] op= src, in ascending order of the position along dim; self holds the compute dtype.
void reduce_into(const IndexWalk& w, DType t, Reduce op, const char* name) {
  auto arithmetic = [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (op == Reduce::Multiply)
      combine<T>(w, [](T a, T b) { return multiply_values(a, b); });
    else
      combine<T>(w, [](T a, T b) { return add_values(a, b); });
  };
  if (op == Reduce::Add || op == Reduce::Multiply || op == Reduce::Mean) return visit_numbers(t, name, arithmetic);
  visit_reals(t, name, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (op == Reduce::Max)
      combine<T>(w, [](T a, T b) { return is_nan(a) || a > b ? a : b; });
    else
      combine<T>(w, [](T a, T b) { return is_nan(a) || a < b ? a : b; });
  });
}

// The value that an operation starts from.
Scalar identity(Reduce op, DType t) {
  double inf = std::numeric_limits<double>::infinity();
  if (op == Reduce::Multiply) return Scalar(1);
  if (op != Reduce::Max && op != Reduce::Min) return Scalar(0);
  if (!is_integral(t, true)) return Scalar(op == Reduce::Max ? -inf : inf);
  int bits = traits(t).bits;
  bool is_signed = traits(t).kind == DKind::Signed;
  if (t == DType::Bool) return Scalar(op == Reduce::Min);
  if (op == Reduce::Max) return is_signed ? Scalar(long(uint64_t(-1) << (bits - 1))) : Scalar(0);
  int value_bits = is_signed ? bits - 1 : bits;
  return Scalar::from_u64(value_bits == 64 ? ~uint64_t(0) : (uint64_t(1) << value_bits) - 1);
}

// One value with the sizes of the index.
Tensor broadcast_value(const Scalar& value, DType t, const Tensor& index) {
  Tensor one = make_tensor({}, t);
  fill_values(one, value);
  return one.alias(index.sizes(), DimVec(index.dim(), 0), 0);
}

void scatter_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, Reduce op,
                  const char* name) {
  dim = wrap_dim(dim, self.dim());
  check_scatter(self, dim, index, src, name);
  Tensor at = checked_index(self, dim, index, name);
  check_apart(name, self, {&index, &src});
  if (self.is_meta() || index.numel() == 0) return;
  Tensor to = with_dims(self), from = with_dims(src);
  if (op == Reduce::Put) return write_indexed(IndexWalk::along_dim(to, dim, at, from), self.itemsize());
  Tensor wide = widened(to);
  Tensor wide_src = widened(from);
  reduce_into(IndexWalk::along_dim(wide, dim, at, wide_src), wide.dtype(), op, name);
  if (!wide.is_same(to)) copy_values(to, wide);
}

void scatter_value_into(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, Reduce op,
                        const char* name) {
  scatter_into(self, dim, index, broadcast_value(value, self.dtype(), index), op, name);
}

Reduce named(std::string_view reduce) {
  if (reduce == "add") return Reduce::Add;
  STRATA_CHECK(reduce == "multiply", "reduce argument must be either add or multiply.");
  return Reduce::Multiply;
}

Tensor copy_of(const Tensor& self) { return ops::clone(self, MemoryFormat::Preserve); }

}  // namespace

void scatter_named_inplace(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                           std::string_view reduce) {
  scatter_into(self, dim, index, src, named(reduce), "scatter");
}
Tensor scatter_named(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce) {
  Tensor out = copy_of(self);
  scatter_named_inplace(out, dim, index, src, reduce);
  return out;
}

void scatter_value_named_inplace(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                                 std::string_view reduce) {
  scatter_value_into(self, dim, index, value, named(reduce), "scatter");
}
Tensor scatter_value_named(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                           std::string_view reduce) {
  Tensor out = copy_of(self);
  scatter_value_named_inplace(out, dim, index, value, reduce);
  return out;
}

// ---- scatter_reduce

void scatter_reduce_inplace(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                            std::string_view reduce, bool include_self) {
  Reduce op = reduce == "sum"    ? Reduce::Add
              : reduce == "prod" ? Reduce::Multiply
              : reduce == "mean" ? Reduce::Mean
              : reduce == "amax" ? Reduce::Max
              : reduce == "amin" ? Reduce::Min
                                 : Reduce::Put;
  STRATA_CHECK(op != Reduce::Put, "reduce argument must be either sum, prod, mean, amax or amin, got ", reduce);
  STRATA_CHECK_NOT_IMPLEMENTED(
      op != Reduce::Mean || self.dtype() != DType::Bool,
      "\"scatter_reduce_mean\" not implemented for 'Bool'; convert the operands with .to() first");
  STRATA_CHECK_NOT_IMPLEMENTED(!self.is_complex() || (op != Reduce::Max && op != Reduce::Min),
                               "\"scatter_reduce_\" not implemented for '", scalar_type_name(self.dtype()),
                               "': complex numbers have no order; take a real tensor such as .abs()");
  dim = wrap_dim(dim, self.dim());
  check_scatter(self, dim, index, src, "scatter");
  Tensor at = checked_index(self, dim, index, "scatter");
  check_apart("scatter_reduce_", self, {&index, &src});
  if (self.is_meta() || index.numel() == 0) return;
  Tensor to = with_dims(self);
  Tensor wide = is_half(self.dtype()) || !include_self ? contiguous_copy(widened(to)) : to;
  Tensor from = widened(with_dims(src));
  if (!include_self)
    write_indexed(IndexWalk::along_dim(wide, dim, at, broadcast_value(identity(op, wide.dtype()), wide.dtype(), at)),
                  wide.itemsize());
  reduce_into(IndexWalk::along_dim(wide, dim, at, from), wide.dtype(), op, "scatter_reduce_");
  if (op == Reduce::Mean) {
    Tensor count = ops::full(wide.sizes(), Scalar(include_self ? 1 : 0), DType::I64);
    reduce_into(IndexWalk::along_dim(count, dim, at, broadcast_value(Scalar(1), DType::I64, at)), DType::I64,
                Reduce::Add, "scatter_reduce_");
    count = ops::maximum(count, wrapped_number(Scalar(1)));
    Tensor mean = is_integral(wide.dtype(), true) ? ops::floor_divide(wide, count) : ops::div(wide, count);
    copy_values(to, mean);
    return;
  }
  if (!wide.is_same(to)) copy_values(to, wide);
}

Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, std::string_view reduce,
                      bool include_self) {
  Tensor out = copy_of(self);
  scatter_reduce_inplace(out, dim, index, src, reduce, include_self);
  return out;
}

}  // namespace strata::eager
