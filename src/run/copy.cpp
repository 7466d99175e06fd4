#include "run/copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/parallel.h"
#include "core/promote.h"
#include "core/shape/strides.h"
#include "dispatch/seen.h"
#include "dispatch/tls.h"
#include "run/launch.h"
#include "run/loop/cast.h"
#include "run/loop/transpose.h"
#include "run/pointwise.h"
#include "strata/generated/ops/copy.h"

namespace strata::eager {

namespace {

struct CopyDims {
  DimVec sizes, dst, src;  // strides in bytes
};

CopyDims copy_dims(const Tensor& dst, const Tensor& src) {
  CopyDims c;
  int64_t n = dst.dim(), lead = n - src.dim();
  SmallVec<int64_t, 8> order;
  for (int64_t d = 0; d < n; ++d)
    if (dst.sizes()[d] != 1) order.push_back(d);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return dst.strides()[a] != dst.strides()[b] ? dst.strides()[a] > dst.strides()[b] : a < b;
  });
  for (int64_t d : order) {
    int64_t ds = dst.strides()[d] * dst.itemsize();
    int64_t ss = d < lead || src.sizes()[d - lead] == 1 ? 0 : src.strides()[d - lead] * src.itemsize();
    if (ds == 0 && ss == 0) continue;  // one element into one place: once is enough
    size_t k = c.sizes.size();
    if (k && c.dst[k - 1] == ds * dst.sizes()[d] && c.src[k - 1] == ss * dst.sizes()[d]) {
      c.sizes[k - 1] *= dst.sizes()[d];
      c.dst[k - 1] = ds;
      c.src[k - 1] = ss;
    } else {
      c.sizes.push_back(dst.sizes()[d]);
      c.dst.push_back(ds);
      c.src.push_back(ss);
    }
  }
  if (c.sizes.empty()) {
    c.sizes.push_back(1);
    c.dst.push_back(0);
    c.src.push_back(0);
  }
  return c;
}

// A transposed copy in squares that stay in the cache. `width`: of elements to be moved as they are, or 0.
void copy_square(CastFn cast, int64_t width, const CopyDims& c, char* dst, const char* src, int64_t begin,
                 int64_t end) {
  size_t n = c.sizes.size();
  const int64_t inner = c.sizes[n - 1];
  const bool plain = width > 0 && c.src[n - 2] == width && c.dst[n - 1] == width;
  const int64_t side = plain && width <= 4 ? 64 : 32;
  for (int64_t i = begin; i < end; i += side)
    for (int64_t j = 0; j < inner; j += side)
      if (plain)
        transpose(width, src + i * width + j * c.src[n - 1], c.src[n - 1], dst + i * c.dst[n - 2] + j * width,
                  c.dst[n - 2], std::min(side, inner - j), std::min(side, end - i));
      else
        for (int64_t r = i; r < std::min(i + side, end); ++r)
          cast(src + r * c.src[n - 2] + j * c.src[n - 1], c.src[n - 1], dst + r * c.dst[n - 2] + j * c.dst[n - 1],
               c.dst[n - 1], std::min(side, inner - j));
}

constexpr int64_t kShortRow = 8;  // elements, to which a call for each row costs more than what it does
constexpr int64_t kRows = 256;    // that are copied together

// `rows` short rows, column by column.
void copy_columns(CastFn cast, const CopyDims& c, char* dst, const char* src, int64_t rows) {
  const size_t n = c.sizes.size();
  for (int64_t k = 0; k < c.sizes[n - 1]; ++k)
    cast(src + k * c.src[n - 1], c.src[n - 2], dst + k * c.dst[n - 1], c.dst[n - 2], rows);
}

}  // namespace

// Of a device, where what is composed of operators copies, such as an out= form.
[[gnu::cold, gnu::noinline]] static void copy_elsewhere(const Tensor& dst, const Tensor& src) {
  const GradModeGuard unrecorded(false);
  ops::copy_(dst, src);
}

void copy_values(const Tensor& dst, const Tensor& src) {
  check_seen("a copy");
  if (!eager::has_elements_in_memory(dst)) {
    if (LaunchObserver* o = observer_of(dst)) o->copy(dst, src);
    return;
  }
  if (STRATA_UNLIKELY(dst.device().type > 1)) return copy_elsewhere(dst, src);
  CastFn cast = cast_fn(src.dtype(), dst.dtype());
  CopyDims c = copy_dims(dst, src);
  size_t n = c.sizes.size();
  char* d = dst.bytes();
  const char* s = src.bytes();
  int64_t inner = c.sizes[n - 1], outer = 1;
  for (size_t i = 0; i + 1 < n; ++i) outer *= c.sizes[i];
  if (outer == 1) {
    parallel_for(0, inner, 65536, [&](int64_t b, int64_t e) {
      cast(s + b * c.src[n - 1], c.src[n - 1], d + b * c.dst[n - 1], c.dst[n - 1], e - b);
    });
    return;
  }
  const bool same = src.dtype() == dst.dtype();
  const int64_t near = std::abs(c.src[n - 2]);
  const bool square =
      near <= 16 && c.sizes[n - 2] >= 8 && inner >= 8 && std::abs(c.src[n - 1]) > (same ? near : int64_t(64));
  if (square && c.src[n - 2] < 0) {  // squares are read forwards
    s += (c.sizes[n - 2] - 1) * c.src[n - 2];
    d += (c.sizes[n - 2] - 1) * c.dst[n - 2];
    c.src[n - 2] = -c.src[n - 2];
    c.dst[n - 2] = -c.dst[n - 2];
  }
  int64_t rows = square ? c.sizes[n - 2] : 1, blocks = outer / rows;
  auto offsets = [&](int64_t index, size_t dims, int64_t* ds, int64_t* ss) {
    *ds = *ss = 0;
    for (size_t k = dims; k-- > 0;) {
      *ds += index % c.sizes[k] * c.dst[k];
      *ss += index % c.sizes[k] * c.src[k];
      index /= c.sizes[k];
    }
  };
  if (square) {
    const int64_t width = same ? itemsize(src.dtype()) : 0;
    int64_t grain = std::max<int64_t>(64, 65536 / std::max<int64_t>(inner, 1));
    int64_t per_block = (rows + grain - 1) / grain;
    parallel_for(0, blocks * per_block, 1, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        int64_t ds, ss;
        offsets(i / per_block, n - 2, &ds, &ss);
        int64_t first = i % per_block * grain;
        copy_square(cast, width, c, d + ds, s + ss, first, std::min(first + grain, rows));
      }
    });
    return;
  }
  int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(inner, 1));
  const int64_t width = itemsize(dst.dtype()), many = c.sizes[n - 2];
  const bool whole = same && c.src[n - 1] == width && c.dst[n - 1] == width;
  const bool across = inner <= kShortRow && many >= kShortRow;
  parallel_for(0, outer, grain, [&](int64_t b, int64_t e) {
    while (b < e) {
      const int64_t at = b % many, count = whole ? std::min(e - b, many - at) : std::min({e - b, many - at, kRows});
      int64_t ds, ss;
      offsets(b, n - 1, &ds, &ss);
      if (whole) {
        move_rows(inner * width, s + ss, c.src[n - 2], d + ds, c.dst[n - 2], count);
      } else if (across) {
        copy_columns(cast, c, d + ds, s + ss, count);
      } else {
        for (int64_t i = 0; i < count; ++i)
          cast(s + ss + i * c.src[n - 2], c.src[n - 1], d + ds + i * c.dst[n - 2], c.dst[n - 1], inner);
      }
      b += count;
    }
  });
}

void fill_values(const Tensor& dst, const Scalar& value) {
  check_fits(value, dst.dtype());
  check_seen("a fill");
  if (!eager::has_elements_in_memory(dst)) {
    if (LaunchObserver* o = observer_of(dst)) o->fill(dst, value);
    return;
  }
  Tensor one = make_tensor({}, dst.dtype());
  store_scalar(value, dst.dtype(), one.bytes());
  copy_values(dst, one);
}

Tensor contiguous_copy(const Tensor& t) {
  Tensor out = new_tensor(t, t.sizes());
  copy_values(out, t);
  return out;
}

Tensor as_contiguous(const Tensor& t) { return t.is_contiguous() ? t : contiguous_copy(t); }

Tensor as_dtype(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return t;
  Tensor out = new_tensor(t, t.sizes(), dtype);
  copy_values(out, t);
  return out;
}

void check_result(const Tensor& self, const Tensor& result, const char* name) {
  STRATA_CHECK(self.sizes() == result.sizes(), name, ": output with shape ", self.sizes(),
               " doesn't match the broadcast shape ", result.sizes());
  STRATA_CHECK(can_cast(result.dtype(), self.dtype()), "result type ", scalar_type_name(result.dtype()),
               " can't be cast to the desired output type ", scalar_type_name(self.dtype()));
  STRATA_CHECK(!overlaps_itself(self), name,
               ": unsupported operation: more than one element of the written-to tensor refers to a single memory "
               "location. Please clone() the tensor before performing the operation.");
}

void copy_result(const Tensor& self, const Tensor& result, const char* name) {
  check_result(self, result, name);
  copy_values(self, result);
}

void check_unrecorded(const Tensor& result, const char* name) {
  STRATA_CHECK(!result.requires_grad(), name,
               "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
               "requires grad. Call it under no_grad(), or without out=");
}

void check_given(const Tensor& out, const char* name) {
  STRATA_CHECK(out.defined(), name, ": argument out: expected a tensor, got None");
}

void check_out(const Tensor& out, const Tensor& result, const char* name) {
  check_given(out, name);
  check_same_device(out, result, name);
  out.check_writable(name);
  STRATA_CHECK(can_cast(result.dtype(), out.dtype()), "result type ", scalar_type_name(result.dtype()),
               " can't be cast to the desired output type ", scalar_type_name(out.dtype()));
  STRATA_CHECK(!overlaps_itself(out), name,
               ": unsupported operation: more than one element of the written-to tensor refers to a single memory "
               "location. Please clone() the tensor before performing the operation.");
  check_resize(out, result.sizes(), name);
}

void copy_to_out(const Tensor& out, const Tensor& result, const char* name) {
  check_out(out, result, name);
  resize_output(out, result.sizes(), name);
  copy_values(out, result);
}

Tensor output_in_order(const Tensor& out, IntArrayRef sizes, const char* name) {
  if (out.sizes() == sizes || out.numel() != checked_numel(sizes)) {
    resize_output(out, sizes, name);
    return out;
  }
  return out.is_contiguous() ? out.alias(sizes, contiguous_strides(sizes), out.storage_offset())
                             : new_tensor(out, sizes);
}

void taken_in_order(const Tensor& out, const Tensor& values) {
  if (values.storage() == out.storage()) return;
  copy_values(out, values.alias(out.sizes(), contiguous_strides(out.sizes()), values.storage_offset()));
}

void copy_to_outs(TensorList outs, TensorList results, bool exact, const char* name) {
  STRATA_CHECK(outs.size() == results.size(), name, ": expected an out= argument of size ", results.size(),
               ", got size ", outs.size());
  for (size_t i = 0; i < outs.size(); ++i) {
    check_unrecorded(results[i], name);
    if (exact) check_exact_dtype(outs[i], results[i].dtype(), name);
    check_out(outs[i], results[i], name);
  }
  for (size_t i = 0; i < outs.size(); ++i) copy_to_out(outs[i], results[i], name);
}

void check_exact_dtype(const Tensor& out, DType result, const char* name) {
  STRATA_CHECK(out.defined(), name, ": argument out: expected a tensor, got None");
  STRATA_CHECK(out.dtype() == result, name, ": argument out: expected dtype ", result, ", got ", out.dtype());
}

Tensor new_tensor(const Tensor& like, IntArrayRef sizes, DType dtype) { return make_tensor_as(like, sizes, dtype); }
Tensor new_tensor(const Tensor& like, IntArrayRef sizes) { return new_tensor(like, sizes, like.dtype()); }
Tensor new_tensor(const Tensor& like, IntArrayRef sizes, DType dtype, MemoryFormat format) {
  if (format == MemoryFormat::Contiguous) return new_tensor(like, sizes, dtype);
  return make_tensor_strided_as(like, sizes, strides_for(sizes, format), dtype);
}

DimVec like_strides(const Tensor& self, std::optional<MemoryFormat> format) {
  MemoryFormat f = format.value_or(MemoryFormat::Preserve);
  if (f != MemoryFormat::Preserve) return strides_for(self.sizes(), f);
  if (self.is_non_overlapping_and_dense()) return DimVec(self.strides());
  const Tensor* in[] = {&self};
  return result_strides(self.sizes(), {in, 1});
}

MemoryFormat suggested_format(const Tensor& t) {
  if (!shape::lies_channels_last<int64_t>({t.sizes(), t.strides(), t.dtype(), t.device(), true}))
    return MemoryFormat::Contiguous;
  return t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

Tensor laid_out(const Tensor& result, std::initializer_list<const Tensor*> operands) {
  bool plain = result.numel() == 0;
  for (const Tensor* t : operands) plain |= t->is_contiguous() && t->sizes() == result.sizes();
  if (plain) return result;
  DimVec strides = result_strides(result.sizes(), Inputs(operands.begin(), operands.size()));
  if (result.strides() == IntArrayRef(strides)) return result;
  Tensor out = make_tensor_strided_as(result, result.sizes(), strides, result.dtype());
  copy_values(out, result);
  return out;
}

Tensor in_format(const Tensor& t, MemoryFormat format) {
  if (t.is_contiguous(format)) return t;
  Tensor out = new_tensor(t, t.sizes(), t.dtype(), format);
  copy_values(out, t);
  return out;
}

}  // namespace strata::eager
