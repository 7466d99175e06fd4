#include "device/launch.h"

#include <algorithm>
#include <cstring>

#include "core/promote.h"
#include "device/walk.h"
#include "jit/compile/piece.h"
#include "lower/pass/split_rows.h"
#include "run/copy.h"
#include "run/loop/cast.h"

namespace strata::device {

static std::string key_of(const lower::KernelDesc& desc, DType dtype, int kept, size_t elements) {
  return str_cat(desc.name, "/", traits(dtype).name, "/", kept, "/", elements);
}

// It computes random words itself.
const KernelNest& block_nest(const lower::KernelDesc& desc, DType dtype, int kept, size_t elements, int group) {
  return kernel_nest(
      key_of(desc, dtype, kept, elements) + (group ? str_cat("/", group) : ""),
      [&] { return lower::build_nest(desc, dtype, true, {std::max(kept, 1), int(elements)}); }, group);
}

int small_group(const Plugin& plugin) { return std::min(32, plugin.dialect.group); }

namespace {

using Tensors = ArrayRef<const Tensor*>;

const lower::KernelDesc* described(const char* kernel, DType dtype) {
  for (const lower::KernelDesc* d : jit::descriptions(kernel))
    if (d->dtypes >> int(dtype) & 1) return d;
  return nullptr;
}

// The operands as a kernel takes them: on the device, of its dtypes, none of them read elsewhere than it is written.
class Operands {
 public:
  Operands(Unit& unit, const lower::Nest& nest, Tensors outs, Tensors in) : unit_(unit), outs_(outs) {
    for (size_t k = 0; k < outs.size(); ++k)
      made_.push_back(outs[k]->dtype() == nest.operands[k].storage
                          ? *outs[k]
                          : make_tensor(outs[k]->sizes(), nest.operands[k].storage, unit.device()));
    for (size_t k = 0; k < in.size(); ++k) made_.push_back(taken(*in[k], nest.operands[outs.size() + k].storage));
    for (const Tensor& t : made_) list_.push_back(&t);
  }
  const Tensor& operator[](size_t k) const { return made_[k]; }
  Tensors list() const { return {list_.data(), list_.size()}; }
  // After the kernel: results go where they belong.
  void give() const {
    for (size_t k = 0; k < outs_.size(); ++k)
      if (!made_[k].is_same(*outs_[k])) copy(unit_, *outs_[k], made_[k]);
  }

 private:
  Tensor taken(const Tensor& t, DType wanted) const {
    Tensor given = t.device().is_cpu() ? moved(t, unit_.device()) : t;
    bool elsewhere = false;
    for (size_t k = 0; k < outs_.size(); ++k) {
      const Tensor& o = *outs_[k];
      const bool same = o.storage_offset() == given.storage_offset() && o.sizes() == given.sizes() &&
                        o.strides() == given.strides() && o.dtype() == given.dtype();
      elsewhere |= o.storage().get() == given.storage().get() && !same;
    }
    if (given.dtype() == wanted && !elsewhere) return given;
    Tensor fresh = make_tensor(given.sizes(), wanted, unit_.device());
    copy(unit_, fresh, given);
    return fresh;
  }

  Unit& unit_;
  Tensors outs_;
  std::vector<Tensor> made_;
  std::vector<const Tensor*> list_;
};

// Numbers in 16-byte slots.
struct Numbers {
  explicit Numbers(size_t count) : slots(2 * std::max<size_t>(count, 1)) {}
  void* at(size_t k) { return &slots[2 * k]; }
  std::vector<uint64_t> slots;
};

// Runs a kernel whose operands walk `rows` (none for elements alone) and then `elements`, or as many dims of them as
// the kernel says. `chunks`: of its last range, where it has one for them.
void run(Unit& unit, const KernelNest& kernel, Tensors operands, const Walk& rows, const Walk& elements,
         const Numbers& numbers, const char* op, int64_t chunks = 0) {
  std::vector<int64_t> offset, extent, stride;
  for (int64_t n : rows.sizes) extent.push_back(n);
  for (int64_t n : elements.sizes) extent.push_back(n);
  for (size_t k = 0; k < kernel.nest.operands.size(); ++k) {
    offset.push_back(operands[k]->storage_offset() * operands[k]->itemsize());
    const size_t dims = kernel.nest.operands[k].dims.size();
    for (size_t d = 0; d < dims; ++d)
      stride.push_back(d < rows.sizes.size() ? rows.strides[k][d] : elements.strides[k][d - rows.sizes.size()]);
  }
  if (chunks) extent.push_back(chunks);
  std::vector<const Storage*> memory;
  for (const Tensor* t : operands) memory.push_back(t->storage().get());
  // Carries repeat over ranges of their own, which nobody asks for.
  extent.resize(std::max(extent.size(), kernel.nest.ranges.size()));
  unit.launch(kernel, {{memory.data(), memory.size()}, offset, extent, stride, numbers.slots.data()}, op);
}

}  // namespace

int group_for(const Unit& unit, int64_t rows, int64_t elements) {
  constexpr int kShort = 1024, kMany = 4096;
  const int most = unit.plugin().dialect.group, small = small_group(unit.plugin());
  if (elements < small / 4) return 0;
  return elements <= most || (elements <= kShort && rows >= kMany) ? small : most;
}

namespace {

// Few long rows: groups reduce a chunk each, then items fold the chunks of a row. False where the kernel is not one of
// such rows.
bool run_split(Unit& unit, const lower::KernelDesc& desc, DType dtype, const Operands& operands, size_t outs,
               const Walk& rows, const Walk& elements, const Numbers& numbers, const char* op) {
  constexpr int64_t kBusy = 256;  // rows that keep a device busy by themselves
  const int64_t chunks = (elements.count() + lower::kChunk - 1) / lower::kChunk;
  if (rows.count() == 0 || rows.count() >= kBusy || chunks < 2 || !unit.plugin().dialect.group) return false;
  const KernelNest& whole = block_nest(desc, dtype, int(rows.sizes.size()), elements.sizes.size());
  const std::optional<lower::SplitRows> split = lower::split_rows(whole.nest);
  if (!split) return false;
  const std::string key = key_of(desc, dtype, int(rows.sizes.size()), elements.sizes.size());
  const KernelNest& parts = kernel_nest(key + "/parts", [&] { return split->parts; }, unit.plugin().dialect.group);
  const KernelNest& fold = kernel_nest(key + "/fold", [&] { return split->fold; }, unit.plugin().dialect.group);
  DimVec sizes = rows.sizes, strides(rows.sizes.size() + 1);
  sizes.push_back(chunks);
  for (size_t d = sizes.size(), n = 1; d-- > 0; n *= size_t(sizes[d])) strides[d] = int64_t(n);
  std::vector<Tensor> made;
  for (const lower::NestOperand& o : parts.nest.operands)
    if (o.output) made.push_back(make_tensor(sizes, o.storage, unit.device()));
  // What the chunks gave lies by row and chunk.
  std::vector<const Tensor*> first, second = {operands.list().begin(), operands.list().end()};
  Walk first_rows{rows.sizes, {}}, first_elements{elements.sizes, {}}, second_rows = rows, second_elements = elements;
  const DimVec by_row(IntArrayRef(strides.data(), strides.size() - 1)), by_chunk = {1};
  for (const Tensor& t : made) {
    first.push_back(&t);
    second.push_back(&t);
    for (Walk* w : {&first_rows, &second_rows}) w->strides.push_back(by_row);
    for (Walk* w : {&first_elements, &second_elements}) w->strides.push_back(by_chunk);
  }
  for (size_t k = outs; k < operands.list().size(); ++k) {
    first.push_back(&operands[k]);
    first_rows.strides.push_back(rows.strides[k]);
    first_elements.strides.push_back(elements.strides[k]);
  }
  run(unit, parts, {first.data(), first.size()}, first_rows, first_elements, numbers, op, chunks);
  run(unit, fold, {second.data(), second.size()}, second_rows, second_elements, numbers, op, chunks);
  return true;
}

const lower::KernelDesc& kernel_of(const char* kernel, const char* op, DType dtype) {
  const lower::KernelDesc* desc = described(kernel, dtype);
  STRATA_CHECK_NOT_IMPLEMENTED(desc, "\"", op, "\" not implemented for '", scalar_type_name(dtype), "'");
  return *desc;
}

// Over the elements of `sizes`, each operand broadcast to it.
void over_elements(Unit& unit, const lower::KernelDesc& desc, DType dtype, IntArrayRef sizes, Tensors outs, Tensors in,
                   const Numbers& numbers, const char* op) {
  // The operands first: what they lie like decides how many dims there are, and the nest says their dtypes.
  const lower::Nest& types = block_nest(desc, dtype, 0, 1).nest;
  const Operands operands(unit, types, outs, in);
  Walk walk{DimVec(sizes), {}};
  for (const Tensor* t : operands.list()) walk.strides.push_back(strides_over(*t, sizes));
  walk.join();
  run(unit, block_nest(desc, dtype, 0, walk.sizes.size()), operands.list(), {}, walk, numbers, op);
  operands.give();
}

}  // namespace

void pointwise(Unit& unit, const eager::PointwiseOp& op, DType dtype, Tensors outs, Tensors in,
               ArrayRef<Scalar> scalars) {
  const lower::KernelDesc& desc = kernel_of(op.kernel, op.name, dtype);
  Numbers numbers(scalars.size());
  for (size_t i = 0; i < scalars.size(); ++i) {
    if (op.checked >> i & 1) check_fits(scalars[i], op.narrow >> i & 1 ? dtype : traits(dtype).compute);
    eager::store_scalar(scalars[i], traits(dtype).compute, numbers.at(i));
  }
  over_elements(unit, desc, dtype, outs[0]->sizes(), outs, in, numbers, op.name);
}

void rows(Unit& unit, const eager::RowsOp& op, DType dtype, Tensors outs, Tensors in, ArrayRef<Scalar> scalars,
          const DimVec& dims) {
  const lower::KernelDesc& desc = kernel_of(op.kernel, op.name, dtype);
  Numbers numbers(scalars.size());
  for (size_t i = 0; i < scalars.size(); ++i) eager::store_scalar(scalars[i], traits(dtype).compute, numbers.at(i));
  const lower::Nest& types = block_nest(desc, dtype, 1, 1).nest;
  const Operands operands(unit, types, outs, in);
  const IntArrayRef sizes = in[0]->sizes();
  std::vector<char> reduced(sizes.size());
  for (int64_t d : dims) reduced[size_t(d)] = true;
  Walk row, elements;
  DimVec kept_sizes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    (reduced[d] ? elements : row).sizes.push_back(sizes[d]);
    if (!reduced[d]) kept_sizes.push_back(sizes[d]);
  }
  for (size_t k = 0; k < types.operands.size(); ++k) {
    const Tensor& t = operands[k];
    const bool per_row = types.operands[k].dims.size() == 1;
    DimVec kept, inner;
    if (per_row && t.sizes() == IntArrayRef(kept_sizes)) {
      kept = DimVec(t.strides());
      inner = DimVec(dims.size(), 0);
    } else {
      const DimVec all = strides_over(t, sizes);
      for (size_t d = 0; d < sizes.size(); ++d)
        (reduced[d] ? inner : kept).push_back(reduced[d] && per_row ? 0 : all[d]);
    }
    row.strides.push_back(kept);
    elements.strides.push_back(inner);
  }
  row.join();
  elements.join();
  if (!run_split(unit, desc, dtype, operands, outs.size(), row, elements, numbers, op.name)) {
    const int group = group_for(unit, row.count(), elements.count());
    run(unit, block_nest(desc, dtype, int(row.sizes.size()), elements.sizes.size(), group), operands.list(), row,
        elements, numbers, op.name);
  }
  operands.give();
}

void draw(Unit& unit, const eager::DrawOp& op, DType dtype, const Tensor& out, Tensors operands,
          ArrayRef<eager::DrawNumber> given, PhiloxState state) {
  const lower::KernelDesc& desc = kernel_of(op.kernel.kernel, op.kernel.name, dtype);
  Numbers numbers(given.size() + 2);
  for (size_t k = 0; k < given.size(); ++k)
    eager::store_scalar(given[k].value, traits(given[k].dtype < 0 ? dtype : DType(given[k].dtype)).compute,
                        numbers.at(k));
  std::memcpy(numbers.at(given.size()), &state.seed, 8);
  std::memcpy(numbers.at(given.size() + 1), &state.offset, 8);
  const Tensor* outs = &out;
  over_elements(unit, desc, dtype, out.sizes(), {&outs, 1}, operands, numbers, op.kernel.name);
}

// ---- copies

namespace {

lower::KernelDesc made_desc(const char* name, const char* inputs, const char* scalars, const char* outputs,
                            const char* text, DType dtype) {
  return {name, "device",         lower::KernelKind::Pointwise, inputs, scalars, outputs,
          text, 1u << int(dtype), "a copy on a device"};
}

// Calls `use` with a description, whose texts live so long, and its dtype.
template <class Use>
void with_move(DType width, Use use) {
  use(made_desc("device_move", "self", "", "result", "self", width), width);
}
template <class Use>
void with_fill(DType width, Use use) {
  use(made_desc("device_fill", "", "value", "result", "value", width), width);
}
template <class Use>
void with_conversion(DType from, DType to, Use use) {
  const std::string word = traits(to).name, name = str_cat("device_convert_", traits(from).name, "_", word),
                    out = str_cat("result:", word);
  if (!is_complex(from) && !is_complex(to))
    return use(made_desc(name.c_str(), "self", "", out.c_str(), "self", from), from);
  // By way of parts: what a complex value becomes is said by its parts.
  const std::string input = str_cat("self:", traits(from).name);
  const char* text = !is_complex(from)   ? "complex(self, 0)"
                     : is_complex(to)    ? "complex(real(self), imag(self))"
                     : to == DType::Bool ? "real(self) != 0 || imag(self) != 0"
                                         : "real(self)";
  const DType kernel = is_complex(to) && (!is_complex(from) || to == DType::C128) ? to : from;
  use(made_desc(name.c_str(), input.c_str(), "", out.c_str(), text, kernel), kernel);
}

void elements_of(Unit& unit, const lower::KernelDesc& desc, DType dtype, const Tensor& to, const Tensor* from,
                 const Numbers& numbers) {
  const Tensor* outs = &to;
  const Tensor* ins[] = {from};
  over_elements(unit, desc, dtype, to.sizes(), {&outs, 1}, {ins, from ? 1u : 0u}, numbers, "copy");
}

// Of one dtype: elements are bits of a width.
void move_elements(Unit& unit, const Tensor& to, const Tensor& from) {
  const DType width = width_dtype(to.dtype());
  auto as = [&](const Tensor& t) {
    Tensor same = make_tensor_over(t.storage(), t.sizes(), t.strides(), t.storage_offset(), width);
    return same;
  };
  const Tensor wide_to = as(to), wide_from = as(from);
  with_move(width, [&](const lower::KernelDesc& desc, DType t) {
    elements_of(unit, desc, t, wide_to, &wide_from, Numbers(0));
  });
}

void convert_elements(Unit& unit, const Tensor& to, const Tensor& from) {
  with_conversion(from.dtype(), to.dtype(),
                  [&](const lower::KernelDesc& desc, DType t) { elements_of(unit, desc, t, to, &from, Numbers(0)); });
}

}  // namespace

void copy(Unit& unit, const Tensor& to, const Tensor& from) {
  if (to.numel() == 0) return;
  to.check_memory();
  from.check_memory();
  if (from.device().is_cpu()) {
    // Converted by the host, whose bytes are fewer then or as many.
    const Tensor host = eager::as_contiguous(eager::as_dtype(from, to.dtype()));
    if (to.is_contiguous() && to.sizes() == host.sizes())
      return unit.upload(*to.storage(), to.storage_offset() * to.itemsize(), host.bytes(), host.nbytes());
    return copy(unit, to, moved(host, unit.device()));
  }
  if (to.dtype() != from.dtype()) return convert_elements(unit, to, from);
  move_elements(unit, to, from);
}

void fill(Unit& unit, const Tensor& to, const Scalar& value) {
  if (to.numel() == 0) return;
  const Tensor one = eager::as_dtype(wrapped_number(value), to.dtype());
  const DType width = width_dtype(to.dtype());
  Numbers numbers(1);
  std::memcpy(numbers.at(0), one.bytes(), size_t(one.itemsize()));
  const Tensor wide = make_tensor_over(to.storage(), to.sizes(), to.strides(), to.storage_offset(), width);
  with_fill(width, [&](const lower::KernelDesc& desc, DType t) { elements_of(unit, desc, t, wide, nullptr, numbers); });
}

std::vector<const KernelNest*> copy_nests(DType dtype) {
  std::vector<const KernelNest*> out;
  auto add = [&](const lower::KernelDesc& desc, DType t) {
    for (size_t dims : {1, 2}) out.push_back(&block_nest(desc, t, 0, dims));
  };
  with_move(width_dtype(dtype), add);
  with_fill(width_dtype(dtype), add);
  for (int other = 0; other < kDTypeCount; ++other)
    if (DType(other) != dtype) with_conversion(dtype, DType(other), add), with_conversion(DType(other), dtype, add);
  return out;
}

Tensor moved(const Tensor& t, Device to, bool later) {
  const bool up = t.device().is_cpu(), across = !up && !to.is_cpu();
  Unit& there = unit(up ? to : t.device());
  if (!t.is_non_overlapping_and_dense()) {
    if (up) return moved(eager::contiguous_copy(t), to);
    const Tensor dense = make_tensor(t.sizes(), t.dtype(), t.device());
    copy(there, dense, t);
    return moved(dense, to, later);
  }
  const int64_t offset = t.storage_offset() * t.itemsize();
  if (across) {
    t.check_memory();
    Unit& target = unit(to);
    const Tensor made = make_tensor_strided(t.sizes(), t.strides(), t.dtype(), target.device());
    if (target.copy_from(there, *made.storage(), *t.storage(), offset, t.nbytes())) return made;
    return moved(moved(t, Device{}), to);
  }
  const bool pinned = later && !up && there.pinned().offered() && t.numel() > 0;
  const Tensor made =
      pinned ? make_tensor_over(Storage::make(there.pinned(), size_t(t.nbytes())), t.sizes(), t.strides(), 0, t.dtype())
             : make_tensor_strided(t.sizes(), t.strides(), t.dtype(), up ? there.device() : Device{});
  if (t.numel() == 0) return made;
  t.check_memory();
  if (up)
    there.upload(*made.storage(), 0, t.bytes(), t.nbytes(), later);
  else
    there.download(made.bytes(), *t.storage(), offset, t.nbytes(), later);
  return made;
}

}  // namespace strata::device
