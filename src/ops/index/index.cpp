// Advanced indexing: reading and writing through index tensors and masks.
#include <algorithm>

#include "base/checked.h"
#include "core/parallel.h"
#include "core/shape/index.h"
#include "run/index_args.h"
#include "run/loop/index_walk.h"
#include "run/view_rules.h"
#include "run/visit.h"
#include "strata/generated/by_hand/index.h"
#include "strata/generated/formulas.h"
#include "strata/generated/ops/copy.h"

namespace strata::eager {

namespace {

// An indexing made ready: `self` with indexed dims of masks merged where strides allow it.
struct Indexing {
  Tensor self;
  std::vector<Tensor> indices;  // one per dim of self; undefined: the whole dim
  DimVec broadcast;             // common shape of the indices
  DimVec sizes;                 // of the result
  shape::IndexedDims place;
};

bool is_mask(const Tensor& t) { return t.dtype() == DType::Bool || t.dtype() == DType::U8; }

// One index for the dims [d, d + mask.dim()) when their elements lie one step apart, else one index per dim.
void add_mask(Indexing& r, size_t d, const Tensor& mask) {
  Tensor flat = flat_nonzero(mask);
  size_t count = mask.dim();
  IntArrayRef sizes = r.self.sizes(), strides = r.self.strides();
  if (count > 1 && mask.numel() > 0) {
    std::optional<DimVec> merged =
        view_strides(sizes.slice(d, count), strides.slice(d, count), IntArrayRef(mask.numel()));
    if (merged) {
      DimVec s, t;
      for (size_t k = 0; k < sizes.size(); ++k) {
        if (k > d && k < d + count) continue;
        s.push_back(k == d ? mask.numel() : sizes[k]);
        t.push_back(k == d ? (*merged)[0] : strides[k]);
      }
      r.self = r.self.alias(s, t, r.self.storage_offset());
      r.indices.push_back(flat);
      return;
    }
  }
  for (Tensor& column : coordinate_columns(flat, mask.sizes())) r.indices.push_back(column);
}

Indexing prepare(const Tensor& self, TensorList indices) {
  Indexing r;
  r.self = self;
  int64_t used = 0;
  for (const Tensor& t : indices) {
    if (t.defined())
      STRATA_CHECK_INDEX(t.dtype() == DType::I64 || t.dtype() == DType::I32 || is_mask(t),
                         "tensors used as indices must be long, int, byte or bool tensors");
    used += t.defined() && is_mask(t) ? t.dim() : 1;
  }
  STRATA_CHECK_INDEX(used <= self.dim(), "too many indices for tensor of dimension ", self.dim());
  int64_t d = 0;  // dim of the given self, for messages
  for (const Tensor& t : indices) {
    if (!t.defined()) {
      r.indices.emplace_back();
      ++d;
    } else if (!is_mask(t)) {
      r.indices.push_back(as_dtype(t, DType::I64));
      ++d;
    } else {
      for (int64_t k = 0; k < t.dim(); ++k)
        STRATA_CHECK_INDEX(t.sizes()[k] == self.sizes()[d + k], "The shape of the mask ", t.sizes(), " at index ", k,
                           " does not match the shape of the indexed tensor ", self.sizes(), " at index ", d + k);
      // A mask without dims adds one, of size 1, in front of what follows.
      if (t.dim() == 0) {
        DimVec s(r.self.sizes()), st(r.self.strides());
        s.insert(r.indices.size(), 1);
        st.insert(r.indices.size(), 0);
        r.self = r.self.alias(s, st, r.self.storage_offset());
        r.indices.push_back(flat_nonzero(t));
      } else {
        add_mask(r, r.indices.size(), t);
      }
      d += t.dim();
    }
  }
  r.indices.resize(r.self.dim());
  SmallVec<char, 8> indexed;
  bool first = true;
  for (const Tensor& t : r.indices) {
    indexed.push_back(t.defined());
    if (!t.defined()) continue;
    bool fits = true;
    try {
      r.broadcast = first ? DimVec(t.sizes()) : broadcast_shapes(r.broadcast, t.sizes());
    } catch (const Error&) {
      fits = false;
    }
    if (!fits) {
      std::string shapes;
      for (const Tensor& u : r.indices)
        if (u.defined()) shapes += str_cat(shapes.empty() ? "" : ", ", u.sizes());
      throw_error(ErrorKind::Index,
                  "shape mismatch: indexing tensors could not be broadcast together with shapes " + shapes);
    }
    first = false;
  }
  STRATA_CHECK_INDEX(!first, "index: expected at least one index tensor, got none");
  r.place = shape::indexed_dims(indexed, r.self.dim());
  r.sizes = shape::index_sizes(DimVec(r.self.sizes()), indexed, r.broadcast);
  return r;
}

// For every position of the broadcast indices the offset in bytes from the first element of self.
Tensor byte_offsets(const Indexing& r) {
  Tensor offsets = new_tensor(r.self, r.broadcast, DType::I64);
  int64_t* out = offsets.data<int64_t>();
  int64_t n = offsets.numel();
  bool first = true;
  // As in PyTorch, indices that choose nothing may be anything.
  const bool empty = std::find(r.sizes.begin(), r.sizes.end(), 0) != r.sizes.end();
  if (empty) fill_values(offsets, Scalar(0));
  for (int64_t d = 0; d < r.self.dim(); ++d) {
    if (!r.indices[d].defined()) continue;
    int64_t size = r.self.sizes()[d], step = r.self.strides()[d] * r.self.itemsize();
    STRATA_CHECK_INDEX(size > 0 || n == 0, "index is out of bounds for dimension with size 0");
    if (empty) continue;
    if (std::optional<int64_t> bad = first_outside(r.indices[d], -size, size))
      throw_error(ErrorKind::Index,
                  str_cat("index ", *bad, " is out of bounds for dimension ", d, " with size ", size));
    auto [sizes, strides] = expanded(r.indices[d].sizes(), r.indices[d].strides(), r.broadcast);
    Tensor values = as_contiguous(r.indices[d].alias(sizes, strides, r.indices[d].storage_offset()));
    const int64_t* p = values.data<int64_t>();
    parallel_for(0, n, 65536, [&](int64_t b, int64_t e) {
      if (first)
        for (int64_t i = b; i < e; ++i) out[i] = (p[i] + (p[i] < 0 ? size : 0)) * step;
      else
        for (int64_t i = b; i < e; ++i) out[i] += (p[i] + (p[i] < 0 ? size : 0)) * step;
    });
    first = false;
  }
  return offsets;
}

// The loop over result positions; `other` has the result's sizes and its broadcast dims lie one step apart.
IndexWalk walk_of(const Indexing& r, const Tensor& offsets, const Tensor& other) {
  IndexWalk w;
  w.target = r.self.bytes();
  w.index = offsets.bytes();
  w.other = other.bytes();
  int64_t front = int64_t(r.place.first), count = int64_t(r.broadcast.size()), at = 0;
  for (int64_t d = 0; d < r.self.dim(); ++d) {
    if (r.indices[d].defined()) continue;
    if (at == front) at += count;
    w.dims.push_back(
        {r.self.sizes()[d], r.self.strides()[d] * r.self.itemsize(), 0, other.strides()[at] * other.itemsize()});
    ++at;
  }
  int64_t step = 0, n = offsets.numel();
  for (int64_t d = count; d-- > 0 && step == 0;)
    if (r.broadcast[d] != 1) step = other.strides()[front + d] * other.itemsize();
  w.along = {n, 1, n == 1 ? 0 : int64_t(sizeof(int64_t)), step};
  return w;
}

// Whether the dims [first, first + count) can be walked as one.
bool one_step(const Tensor& t, size_t first, size_t count) {
  int64_t n = 1;
  for (size_t d = 0; d < count; ++d) n *= t.sizes()[first + d];
  return count == 0 ||
         view_strides(t.sizes().slice(first, count), t.strides().slice(first, count), IntArrayRef(n)).has_value();
}

template <class T>
void add_indexed(const IndexWalk& walk) {
  walk([](const IndexRun& r) {
    for (int64_t i = 0; i < r.count; ++i) {
      int64_t at = *reinterpret_cast<const int64_t*>(r.index + i * r.index_step);
      T* to = reinterpret_cast<T*>(r.target + i * r.target_step + at * r.scale);
      *to = add_values(*to, *reinterpret_cast<const T*>(r.other + i * r.other_step));
    }
  });
}

}  // namespace

Tensor index(const Tensor& self, TensorList indices) {
  Indexing r = prepare(self, indices);
  Tensor out = new_tensor(self, r.sizes);
  Tensor offsets = byte_offsets(r);
  if (out.numel() == 0) return out;
  IndexWalk w = walk_of(r, offsets, out);
  w.reads = true;
  read_indexed(w, self.itemsize());
  return out;
}

void index_put_inplace(const Tensor& self, TensorList indices, const Tensor& given, bool accumulate) {
  const Tensor values =
      STRATA_LIKELY(self.dtype() == given.dtype()) ? given : formulas::put_values(self, indices, given, accumulate);
  check_apart("index_put_", self, {});
  Tensor source = overlap_between(self, values) == Overlap::None ? values : contiguous_copy(values);
  if (accumulate && is_half(self.dtype())) {
    Tensor wide = widened(self);
    index_put_inplace(wide, indices, widened(source), true);
    copy_values(self, wide);
    return;
  }
  Indexing r = prepare(self, indices);
  auto mismatch = [&] {
    return str_cat("shape mismatch: value tensor of shape ", values.sizes(),
                   " cannot be broadcast to indexing result of shape ", r.sizes);
  };
  size_t kept = source.dim();
  STRATA_CHECK(kept <= r.sizes.size(), mismatch());
  for (size_t d = 0; d < kept; ++d) {
    int64_t have = source.sizes()[d], want = r.sizes[r.sizes.size() - kept + d];
    STRATA_CHECK(have == want || have == 1, mismatch());
  }
  Tensor offsets = byte_offsets(r);
  auto [sizes, strides] = expanded(source.sizes(), source.strides(), r.sizes);
  Tensor from = source.alias(sizes, strides, source.storage_offset());
  if (from.numel() == 0) return;
  if (!one_step(from, r.place.first, r.broadcast.size())) from = contiguous_copy(from);
  IndexWalk w = walk_of(r, offsets, from);
  if (!accumulate) {
    write_indexed(w, self.itemsize());
    return;
  }
  visit_numbers(self.dtype(), "index_put_", [&](auto tag) { add_indexed<typename decltype(tag)::type>(w); });
}

Tensor index_put(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  Tensor out = ops::clone(self, MemoryFormat::Preserve);
  index_put_inplace(out, indices, values, accumulate);
  return out;
}

void add_rows(const Tensor& result, const Tensor& self, const Tensor& index, const Tensor& source) {
  const Tensor at = as_dtype(index, DType::I64), from = widened(source), to = contiguous_copy(widened(self));
  check_index_range(at, self.sizes()[0], 0, ErrorKind::Index);
  const IndexWalk walk = IndexWalk::along_rows(to, 0, at, from);
  visit_numbers(to.dtype(), "_add_rows", [&](auto tag) { add_indexed<typename decltype(tag)::type>(walk); });
  copy_values(result, to);
}

}  // namespace strata::eager
