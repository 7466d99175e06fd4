// Joining tensors and repeating one.
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checked.h"
#include "core/parallel.h"
#include "core/promote.h"
#include "core/shape/shape.h"
#include "run/copy.h"
#include "run/formulas.h"
#include "run/loop/cast.h"
#include "run/pointwise.h"
#include "run/prepare.h"
#include "strata/generated/by_hand/shape.h"
#include "strata/generated/ops/shape.h"
#include "strata/generated/ops/view.h"

namespace strata::eager {

namespace {

// PyTorch has always let empty 1-d tensors join anything.
bool skipped(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

struct Join {
  DimVec sizes;
  DType dtype;
  int64_t dim;
  const Tensor* first = nullptr;  // that is not skipped; null when all are
};

Join plan(TensorList tensors, int64_t dim) {
  STRATA_CHECK_VALUE(!tensors.empty(), "cat(): expected a non-empty list of Tensors");
  Join j;
  ResultType type;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    STRATA_CHECK_TYPE(t.defined(), "cat: argument tensors, element ", i, ": expected a tensor, got None");
    STRATA_CHECK(t.dim() > 0, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
    STRATA_CHECK(t.device() == tensors[0].device(),
                 "cat: Expected all tensors to be on the same device, but found at least "
                 "two devices, ",
                 tensors[0].device(), " and ", t.device(), "; move one with .to()");
    type.add(t);
    if (!j.first && !skipped(t)) j.first = &t;
  }
  j.dtype = type.get();
  if (!j.first) {
    j.dim = wrap_dim(dim, 1);
    j.sizes = {0};
    return j;
  }
  j.dim = wrap_dim(dim, j.first->dim());
  j.sizes = DimVec(j.first->sizes());
  j.sizes[j.dim] = 0;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!skipped(tensors[i])) shape::join(j.sizes, tensors[i].sizes(), j.dim, i);
  return j;
}

// Whole blocks of memory: what lies behind an index of the dims before `dim` is contiguous in every tensor.
void join_blocks(const Join& j, TensorList tensors, const Tensor& out) {
  int64_t outer = 1, inner = out.itemsize();
  for (int64_t d = 0; d < j.dim; ++d) outer *= j.sizes[d];
  for (int64_t d = j.dim + 1; d < out.dim(); ++d) inner *= j.sizes[d];
  struct Block {
    const char* from;
    int64_t bytes, at;
  };
  std::vector<Block> blocks;
  int64_t row = 0;
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    int64_t bytes = t.sizes()[j.dim] * inner;
    blocks.push_back({t.bytes(), bytes, row});
    row += bytes;
  }
  char* to = out.bytes();
  if (outer == 1) {
    // Few large blocks: threads share each.
    for (const Block& b : blocks)
      parallel_for(0, b.bytes, 1 << 20, [&](int64_t begin, int64_t end) {
        std::memcpy(to + b.at + begin, b.from + begin, size_t(end - begin));
      });
    return;
  }
  // Blocks as short as an element are moved as such, some of one tensor at a time.
  constexpr int64_t kTogether = 256;
  const auto is_element = [](const Block& b) { return b.bytes <= 16 && std::has_single_bit(uint64_t(b.bytes)); };
  const bool elements = std::ranges::all_of(blocks, is_element);
  parallel_for(0, outer, std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(row, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; elements && i < end; i += kTogether)
      for (const Block& b : blocks)
        move_fn(b.bytes)(b.from + i * b.bytes, b.bytes, to + i * row + b.at, row, std::min(kTogether, end - i));
    for (int64_t i = elements ? end : begin; i < end; ++i)
      for (const Block& b : blocks) std::memcpy(to + i * row + b.at, b.from + i * b.bytes, size_t(b.bytes));
  });
}

void join_into(const Join& j, TensorList tensors, const Tensor& out) {
  if (out.numel() == 0) return;
  bool plain = by_hand(out) && out.is_contiguous() && out.dtype() == j.dtype;
  for (const Tensor& t : tensors) plain &= skipped(t) || (t.is_contiguous() && t.dtype() == j.dtype);
  if (plain) return join_blocks(j, tensors, out);
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    if (skipped(t)) continue;
    DimVec sizes(t.sizes());
    copy_values(out.alias(sizes, out.strides(), out.storage_offset() + start * out.strides()[j.dim]), t);
    start += t.sizes()[j.dim];
  }
}

// A format that all the inputs have, as the result's.
MemoryFormat common_format(const Join& j, TensorList tensors) {
  if (!j.first) return MemoryFormat::Contiguous;
  const MemoryFormat f = suggested_format(*j.first);
  for (const Tensor& t : tensors)
    if (!skipped(t) && suggested_format(t) != f) return MemoryFormat::Contiguous;
  return f;
}

}  // namespace

Tensor cat(TensorList tensors, int64_t dim) {
  Join j = plan(tensors, dim);
  Device device = tensors[0].device();
  Tensor out = make_tensor_strided(j.sizes, strides_for(j.sizes, common_format(j, tensors)), j.dtype, device);
  join_into(j, tensors, out);
  return out;
}

void cat_out(TensorList tensors, int64_t dim, const Tensor& out) {
  Join j = plan(tensors, dim);
  STRATA_CHECK(out.defined(), "cat: argument out: expected a tensor, got None");
  STRATA_CHECK_TYPE(can_cast(j.dtype, out.dtype()), "cat(): input types can't be cast to the desired output type ",
                    scalar_type_name(out.dtype()));
  for (size_t i = 0; i < tensors.size(); ++i)
    STRATA_CHECK(overlap_between(out, tensors[i]) == Overlap::None,
                 "cat(): unsupported operation: the input tensors cannot refer to any of the output memory locations. "
                 "Found overlap in input tensor ",
                 i);
  STRATA_CHECK(!overlaps_itself(out),
               "cat: unsupported operation: more than one element of the written-to tensor refers to a "
               "single memory location. Please clone() the tensor before performing the operation.");
  check_same_device(out, tensors[0], "cat");
  for (const Tensor& t : tensors) check_memory({&t});
  resize_output(out, j.sizes, "cat");
  join_into(j, tensors, out);
}

namespace {

// What cat() joins for the operators that are named after the shape of their result.
struct Parts {
  std::vector<Tensor> list;
  int64_t dim;
};

Parts stack_parts(TensorList tensors, int64_t dim) {
  STRATA_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  STRATA_CHECK_TYPE(tensors[0].defined(), "stack: argument tensors, element 0: expected a tensor, got None");
  Parts p{{}, wrap_dim(dim, tensors[0].dim() + 1)};
  p.list.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    STRATA_CHECK_TYPE(t.defined(), "stack: argument tensors, element ", i, ": expected a tensor, got None");
    STRATA_CHECK(t.sizes() == tensors[0].sizes(), "stack expects each tensor to be equal size, but got ",
                 tensors[0].sizes(), " at entry 0 and ", t.sizes(), " at entry ", i);
    p.list.push_back(ops::unsqueeze(t, p.dim));
  }
  return p;
}

void check_list(const char* name, TensorList tensors) {
  STRATA_CHECK(!tensors.empty(), name, " expects a non-empty TensorList");
}

Parts hstack_parts(TensorList tensors) {
  check_list("hstack", tensors);
  std::vector<Tensor> r = ops::atleast_1d(tensors);
  const int64_t dim = r[0].dim() == 1 ? 0 : 1;
  return {std::move(r), dim};
}

Parts vstack_parts(TensorList tensors) {
  check_list("vstack", tensors);
  return {ops::atleast_2d(tensors), 0};
}

Parts dstack_parts(TensorList tensors) {
  check_list("dstack", tensors);
  return {ops::atleast_3d(tensors), 2};
}

Parts column_parts(TensorList tensors) {
  check_list("column_stack", tensors);
  Parts p{{}, 1};
  for (const Tensor& t : tensors) p.list.push_back(t.dim() <= 1 ? ops::reshape(t, {t.numel(), 1}) : t);
  return p;
}

Tensor joined(const Parts& p) { return ops::cat(p.list, p.dim); }
void joined(const Parts& p, const Tensor& out) { ops::cat_out(p.list, p.dim, out); }

}  // namespace

Tensor stack(TensorList tensors, int64_t dim) {
  Parts p = stack_parts(tensors, dim);
  return cat(p.list, p.dim);
}
void stack_out(TensorList tensors, int64_t dim, const Tensor& out) {
  Parts p = stack_parts(tensors, dim);
  cat_out(p.list, p.dim, out);
}

Tensor hstack(TensorList tensors) { return joined(hstack_parts(tensors)); }
Tensor vstack(TensorList tensors) { return joined(vstack_parts(tensors)); }
Tensor dstack(TensorList tensors) { return joined(dstack_parts(tensors)); }
Tensor column_stack(TensorList tensors) { return joined(column_parts(tensors)); }
void hstack_out(TensorList tensors, const Tensor& out) { joined(hstack_parts(tensors), out); }
void vstack_out(TensorList tensors, const Tensor& out) { joined(vstack_parts(tensors), out); }
void dstack_out(TensorList tensors, const Tensor& out) { joined(dstack_parts(tensors), out); }
void column_stack_out(TensorList tensors, const Tensor& out) { joined(column_parts(tensors), out); }

Tensor block_diag(TensorList tensors) {
  ResultType type;
  int64_t rows = 0, columns = 0;
  std::vector<Tensor> blocks;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    STRATA_CHECK_TYPE(t.defined(), "block_diag: argument tensors, element ", i, ": expected a tensor, got None");
    STRATA_CHECK(t.dim() <= 2, "block_diag: Input tensors must have 2 or fewer dimensions. Input ", i, " has ", t.dim(),
                 " dimensions");
    type.add(t);
    blocks.push_back(ops::atleast_2d(t));
    rows += blocks.back().sizes()[0];
    columns += blocks.back().sizes()[1];
  }
  if (tensors.empty()) return make_tensor({1, 0}, default_dtype());
  Tensor out = make_tensor({rows, columns}, type.get(), tensors[0].device());
  fill_values(out, Scalar(0));
  int64_t row = 0, column = 0;
  for (const Tensor& b : blocks) {
    copy_values(out.alias(b.sizes(), out.strides(), row * columns + column), b);
    row += b.sizes()[0];
    column += b.sizes()[1];
  }
  return out;
}

std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  DimVec shape;
  for (const Tensor& t : tensors) shape = broadcast_shapes(shape, t.sizes());
  std::vector<Tensor> r;
  for (const Tensor& t : tensors) r.push_back(t.sizes() == IntArrayRef(shape) ? t : ops::expand(t, shape));
  return r;
}

std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing) {
  STRATA_CHECK(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  STRATA_CHECK(indexing == "ij" || indexing == "xy",
               "meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
  std::vector<Tensor> in(tensors.begin(), tensors.end());
  // "xy": the first two vectors change places on the way in and on the way out.
  bool swap = indexing == "xy" && in.size() >= 2;
  if (swap) std::swap(in[0], in[1]);
  DimVec shape;
  for (const Tensor& t : in) {
    STRATA_CHECK(t.dim() <= 1, "meshgrid: Expected 0D or 1D tensor in the tensor list but got: ", t.dim(), "D");
    STRATA_CHECK(t.dtype() == in[0].dtype(), "meshgrid expects all tensors to have the same dtype");
    STRATA_CHECK(t.device() == in[0].device(), "meshgrid expects all tensors to have the same device");
    shape.push_back(t.numel());
  }
  std::vector<Tensor> r;
  for (size_t i = 0; i < in.size(); ++i) {
    DimVec view(in.size(), 1);
    view[i] = shape[i];
    r.push_back(ops::expand(ops::view(in[i], view), shape));
  }
  if (swap) std::swap(r[0], r[1]);
  return r;
}

Tensor cartesian_prod(TensorList tensors) {
  STRATA_CHECK(!tensors.empty(), "cartesian_prod: expected a non-empty list of vectors");
  for (const Tensor& t : tensors) STRATA_CHECK(t.dim() == 1, "Expect a 1D vector, but got shape ", t.sizes());
  if (tensors.size() == 1) return tensors[0];
  std::vector<Tensor> columns = ops::meshgrid(tensors, "ij");
  for (Tensor& t : columns) t = ops::flatten(t, 0, -1);
  return ops::stack(columns, 1);
}

// ---- repeats

Tensor tile(const Tensor& self, IntArrayRef dims) {
  DimVec repeats;
  for (int64_t i = int64_t(dims.size()); i < self.dim(); ++i) repeats.push_back(1);
  for (int64_t n : dims) repeats.push_back(n);
  return ops::repeat(self, repeats);
}

}  // namespace strata::eager

namespace strata::formulas {

DimVec joined_sizes(TensorList tensors, int64_t dim) { return eager::plan(tensors, dim).sizes; }

DimVec joined_strides(TensorList tensors, int64_t dim) {
  const eager::Join j = eager::plan(tensors, dim);
  return strides_for(j.sizes, eager::common_format(j, tensors));
}

DType joined_dtype(TensorList tensors) {
  ResultType type;
  for (const Tensor& t : tensors) type.add(t);
  return type.get();
}

}  // namespace strata::formulas
