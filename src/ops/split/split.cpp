// Lists of views of one tensor.
#include <algorithm>

#include "base/checked.h"
#include "core/promote.h"
#include "core/shape/view.h"
#include "run/copy.h"
#include "strata/generated/by_hand/split.h"
#include "strata/generated/ops/copy.h"
#include "strata/generated/ops/split.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {
// The part [start, start + length) of a dim.
Tensor part_of(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  DimVec sizes(self.sizes());
  sizes[dim] = length;
  return self.alias(sizes, self.strides(), self.storage_offset() + start * self.strides()[dim]);
}
}  // namespace

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  STRATA_CHECK_INDEX(self.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  dim = wrap_dim(dim, self.dim());
  int64_t n = self.sizes()[dim], step = self.strides()[dim];
  DimVec sizes(self.sizes()), strides(self.strides());
  sizes.erase(dim);
  strides.erase(dim);
  std::vector<Tensor> r;
  r.reserve(n);
  for (int64_t i = 0; i < n; ++i) r.push_back(self.alias(sizes, strides, self.storage_offset() + i * step));
  return r;
}

namespace {
// So many views are a mistake, and their list would take the memory of the machine before it failed.
void check_count(const char* op, int64_t parts) {
  STRATA_CHECK(parts <= int64_t(1) << 24, op, ": expected at most ", int64_t(1) << 24, " parts, got ", parts);
}
}  // namespace

std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  STRATA_CHECK(self.dim() > 0, "split expects at least a 1-dimensional tensor");
  dim = wrap_dim(dim, self.dim());
  int64_t size = self.sizes()[dim], count = shape::parts(size, split_size);
  std::vector<Tensor> r;
  r.reserve(count);
  for (int64_t i = 0; i < count; ++i)
    r.push_back(part_of(self, dim, i * split_size, i + 1 < count ? split_size : size - i * split_size));
  return r;
}

std::vector<Tensor> split_with_sizes(const Tensor& self, IntArrayRef split_sizes, int64_t dim) {
  STRATA_CHECK(self.dim() > 0, "split expects at least a 1-dimensional tensor");
  dim = wrap_dim(dim, self.dim());
  shape::check_split_sizes(split_sizes, self.sizes()[dim], dim);
  std::vector<Tensor> r;
  r.reserve(split_sizes.size());
  int64_t start = 0;
  for (int64_t n : split_sizes) {
    r.push_back(part_of(self, dim, start, n));
    start += n;
  }
  return r;
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  STRATA_CHECK(self.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  STRATA_CHECK(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  dim = wrap_dim(dim, self.dim());
  int64_t size = self.sizes()[dim], each = size == 0 ? 0 : (size - 1) / chunks + 1;
  if (each == 0) check_count("chunk", chunks);
  if (each == 0) return ops::split_with_sizes(self, DimVec(chunks, 0), dim);
  return ops::split(self, each, dim);
}

std::vector<Tensor> tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  STRATA_CHECK(self.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ",
               self.dim(), " dims");
  dim = wrap_dim(dim, self.dim());
  STRATA_CHECK(sections > 0, "number of sections must be larger than 0, got ", sections);
  check_count("tensor_split", sections);
  int64_t size = self.sizes()[dim], small = size / sections, larger = size % sections, start = 0;
  std::vector<Tensor> r;
  for (int64_t i = 0; i < sections; ++i) {
    int64_t n = small + (i < larger);
    r.push_back(ops::slice(self, dim, start, start + n, 1));
    start += n;
  }
  return r;
}

std::vector<Tensor> tensor_split(const Tensor& self, IntArrayRef indices, int64_t dim) {
  STRATA_CHECK(self.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ",
               self.dim(), " dims");
  dim = wrap_dim(dim, self.dim());
  std::vector<Tensor> r;
  int64_t start = 0;
  for (int64_t end : indices) {
    r.push_back(ops::slice(self, dim, start, end, 1));
    start = end;
  }
  r.push_back(ops::slice(self, dim, start, self.sizes()[dim], 1));
  return r;
}

std::vector<Tensor> tensor_split(const Tensor& self, const Tensor& where, int64_t dim) {
  STRATA_CHECK(where.defined() && where.dtype() == DType::I64,
               "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ",
               where.defined() ? scalar_type_name(where.dtype()) : "None");
  STRATA_CHECK(where.dim() <= 1,
               "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
               "one-dimensional tensor, but got a tensor with ",
               where.dim(), " dims");
  if (where.dim() == 0) return tensor_split(self, ops::item(where).to_int(), dim);
  DimVec indices;  // by operators: a handler of tensors without memory is asked for them
  for (int64_t i = 0; i < where.numel(); ++i) indices.push_back(ops::item(ops::select(where, 0, i)).to_int());
  return tensor_split(self, indices, dim);
}

namespace {
void check_splits(const char* name, const Tensor& self, int64_t dims) {
  STRATA_CHECK(self.dim() >= dims, name, " requires a tensor with at least ", dims,
               " dimension, but got a tensor with ", self.dim(), " dimensions!");
}

std::vector<Tensor> equal_parts(const char* name, const Tensor& self, int64_t sections, int64_t dim) {
  STRATA_CHECK(sections != 0 && self.sizes()[dim] % sections == 0, name, " attempted to split along dimension ", dim,
               ", but the size of the dimension ", self.sizes()[dim], " is not divisible by the split_size ", sections,
               "!");
  return ops::tensor_split(self, sections, dim);
}
}  // namespace

namespace {
std::vector<Tensor> copies_of(std::vector<Tensor> parts, MemoryFormat format = MemoryFormat::Preserve) {
  for (Tensor& t : parts) t = ops::clone(t, format);
  return parts;
}
}  // namespace

std::vector<Tensor> unsafe_split(const Tensor& self, int64_t size, int64_t dim) {
  return copies_of(ops::split(self, size, dim));
}
std::vector<Tensor> unsafe_split_with_sizes(const Tensor& self, IntArrayRef sizes, int64_t dim) {
  return copies_of(ops::split_with_sizes(self, sizes, dim));
}
std::vector<Tensor> unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  return copies_of(ops::chunk(self, chunks, dim));
}

std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntArrayRef sizes, int64_t dim) {
  return copies_of(ops::split_with_sizes(self, sizes, dim), MemoryFormat::Contiguous);
}
std::vector<Tensor> unbind_copy(const Tensor& self, int64_t dim) {
  return copies_of(ops::unbind(self, dim), MemoryFormat::Contiguous);
}

std::vector<Tensor> hsplit(const Tensor& self, int64_t sections) {
  check_splits("hsplit", self, 1);
  return equal_parts("hsplit", self, sections, self.dim() == 1 ? 0 : 1);
}
std::vector<Tensor> hsplit(const Tensor& self, IntArrayRef indices) {
  check_splits("hsplit", self, 1);
  return ops::tensor_split(self, indices, self.dim() == 1 ? 0 : 1);
}
std::vector<Tensor> vsplit(const Tensor& self, int64_t sections) {
  check_splits("vsplit", self, 2);
  return equal_parts("vsplit", self, sections, 0);
}
std::vector<Tensor> vsplit(const Tensor& self, IntArrayRef indices) {
  check_splits("vsplit", self, 2);
  return ops::tensor_split(self, indices, 0);
}
std::vector<Tensor> dsplit(const Tensor& self, int64_t sections) {
  check_splits("dsplit", self, 3);
  return equal_parts("dsplit", self, sections, 2);
}
std::vector<Tensor> dsplit(const Tensor& self, IntArrayRef indices) {
  check_splits("dsplit", self, 3);
  return ops::tensor_split(self, indices, 2);
}

}  // namespace strata::eager
