#include "run/index_args.h"

#include <algorithm>
#include <atomic>

#include "core/parallel.h"
#include "core/promote.h"
#include "run/copy.h"

namespace strata::eager {

std::optional<int64_t> first_outside(const Tensor& index, int64_t low, int64_t high) {
  if (index.is_meta() || index.numel() == 0) return std::nullopt;
  // Repeated values need one look.
  DimVec sizes(index.sizes());
  for (int64_t d = 0; d < index.dim(); ++d)
    if (index.strides()[d] == 0) sizes[d] = 1;
  Tensor values = as_contiguous(index.alias(sizes, index.strides(), index.storage_offset()));
  const int64_t* p = values.data<int64_t>();
  std::atomic<int64_t> at{INT64_MAX};
  parallel_for(0, values.numel(), 65536, [&](int64_t b, int64_t e) {
    uint64_t span = uint64_t(high) - uint64_t(low);
    bool bad = false;
    for (int64_t i = b; i < e; ++i) bad |= uint64_t(p[i]) - uint64_t(low) >= span;
    if (!bad) return;
    while (p[b] >= low && p[b] < high) ++b;
    int64_t seen = at.load();
    while (b < seen && !at.compare_exchange_weak(seen, b)) {
    }
  });
  if (at.load() == INT64_MAX) return std::nullopt;
  return p[at.load()];
}

void check_index_range(const Tensor& index, int64_t size, int64_t dim, ErrorKind kind, const char* prefix) {
  if (std::optional<int64_t> bad = first_outside(index, 0, size))
    throw_error(kind, str_cat(prefix, "index ", *bad, " is out of bounds for dimension ", dim, " with size ", size));
}

void check_apart(const char* name, const Tensor& self, std::initializer_list<const Tensor*> read) {
  STRATA_CHECK(
      !overlaps_itself(self), name,
      ": unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
      "Please clone() the tensor before performing the operation.");
  for (const Tensor* t : read)
    STRATA_CHECK(
        !t->defined() || overlap_between(self, *t) == Overlap::None, name,
        ": unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
        "memory location. Please clone() the tensor before performing the operation.");
}

void check_has_values(const char* name, const Tensor& t) {
  STRATA_CHECK_NOT_IMPLEMENTED(
      !t.is_meta(), name,
      ": the shape of the result depends on values, which shape-only tensors do not have; run it on "
      "real tensors");
}

Tensor flat_nonzero(const Tensor& t) {
  Tensor mask = as_contiguous(as_dtype(t, DType::Bool));
  const uint8_t* m = mask.data<uint8_t>();
  int64_t n = mask.numel();
  constexpr int64_t kChunk = 16384;
  int64_t chunks = (n + kChunk - 1) / kChunk;
  std::vector<int64_t> first(chunks + 1);
  parallel_for(0, chunks, 1, [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c) {
      int64_t count = 0;
      for (int64_t i = c * kChunk; i < std::min(n, (c + 1) * kChunk); ++i) count += m[i] != 0;
      first[c + 1] = count;
    }
  });
  for (int64_t c = 0; c < chunks; ++c) first[c + 1] += first[c];
  Tensor flat = new_tensor(t, IntArrayRef(first[chunks]), DType::I64);
  int64_t* out = flat.data<int64_t>();
  parallel_for(0, chunks, 1, [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c) {
      int64_t* at = out + first[c];
      int64_t* end = out + first[c + 1];
      for (int64_t i = c * kChunk; at < end; ++i) {
        *at = i;  // overwritten unless it counts
        at += m[i] != 0;
      }
    }
  });
  return flat;
}

namespace {
// Writes coordinate d of position i at out[i * row + d * column].
void write_coordinates(const Tensor& flat, IntArrayRef sizes, int64_t* out, int64_t row, int64_t column) {
  const int64_t* p = flat.data<int64_t>();
  int64_t nd = int64_t(sizes.size());
  parallel_for(0, flat.numel(), 8192, [&](int64_t b, int64_t e) {
    DimVec at(nd);
    int64_t base = -1;  // flat position of the first element of the current innermost line
    for (int64_t i = b; i < e; ++i) {
      if (base < 0 || p[i] - base >= sizes[nd - 1]) {
        int64_t rest = p[i];
        for (int64_t d = nd; d-- > 0;) {
          at[d] = rest % sizes[d];
          rest /= sizes[d];
        }
        base = p[i] - at[nd - 1];
      }
      at[nd - 1] = p[i] - base;
      for (int64_t d = 0; d < nd; ++d) out[i * row + d * column] = at[d];
    }
  });
}
}  // namespace

Tensor coordinates(const Tensor& flat, IntArrayRef sizes) {
  int64_t nd = int64_t(sizes.size());
  Tensor out = new_tensor(flat, {flat.numel(), nd});
  if (nd > 0 && flat.numel() > 0) write_coordinates(flat, sizes, out.data<int64_t>(), nd, 1);
  return out;
}

std::vector<Tensor> coordinate_columns(const Tensor& flat, IntArrayRef sizes) {
  int64_t nd = int64_t(sizes.size()), n = flat.numel();
  if (nd == 1) return {flat};
  Tensor out = new_tensor(flat, {nd, n});
  if (nd > 0 && n > 0) write_coordinates(flat, sizes, out.data<int64_t>(), 1, n);
  std::vector<Tensor> columns;
  for (int64_t d = 0; d < nd; ++d) columns.push_back(out.alias(IntArrayRef(n), IntArrayRef(int64_t(1)), d * n));
  return columns;
}

}  // namespace strata::eager
