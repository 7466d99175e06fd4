#include "run/prepare.h"

#include <cstring>

#include "base/checked.h"
#include "core/promote.h"
#include "run/copy.h"
#include "run/index_args.h"
#include "run/loop/cast.h"
#include "run/view_rules.h"

namespace strata::eager {
namespace {

using Prepared = shape::Prepared<int64_t>;
constexpr size_t kMaxOperands = 6, kMaxNumbers = 6;

// `t` with dims of size 1 in front, so that it has `rank`.
Tensor with_dims(const Tensor& t, int64_t rank) {
  const size_t lead = size_t(rank - t.dim());
  DimVec sizes(lead, 1), strides(lead, 0);
  for (int64_t d = 0; d < t.dim(); ++d) {
    sizes.push_back(t.sizes()[size_t(d)]);
    strides.push_back(t.strides()[size_t(d)]);
  }
  return t.alias(sizes, strides, t.storage_offset());
}

Tensor as_line(const Tensor& t) {
  const Tensor c = as_contiguous(t);
  return c.alias(IntArrayRef(c.numel()), IntArrayRef(int64_t(1)), c.storage_offset());
}

// The tensors as the kernel takes them. Those that need no other header are passed on.
struct Operands {
  const Tensor* list[kMaxOperands];
  Tensor made[6];  // those with other headers
  size_t count = 0, others = 0;

  const Tensor& last() const { return *list[count - 1]; }
  void add(const Tensor& t) { list[count++] = &t; }
  void change(Tensor t) {
    STRATA_INTERNAL(others < 6, "more than six operands change");
    made[others] = std::move(t);
    list[count - 1] = &made[others++];
  }
};

// `t` with some dims taken as several each.
Tensor with_splits(const Tensor& t, size_t operand, const Prepared& p) {
  DimVec sizes, strides;
  int64_t next = 0;
  auto keep_to = [&](int64_t d) {
    for (; next < d; ++next) sizes.push_back(t.sizes()[size_t(next)]), strides.push_back(t.strides()[size_t(next)]);
  };
  for (const auto& split : p.splits) {
    if (size_t(split.operand) != operand) continue;
    keep_to(split.dim);
    const size_t first = strides.size();
    int64_t step = t.strides()[size_t(next++)];
    for (int64_t size : split.sizes) sizes.push_back(size), strides.push_back(0);
    for (size_t k = sizes.size(); k-- > first; step *= sizes[k])
      if (sizes[k] != 1) strides[k] = step;
  }
  keep_to(t.dim());
  return t.alias(sizes, strides, t.storage_offset());
}

// The step of a join's dims taken as one; none where they do not follow one another.
std::optional<int64_t> joined_step(const Tensor& t, const shape::Join& join) {
  int64_t step = 0;
  std::optional<int64_t> next;  // what the next outer dim has to step
  for (int64_t d = join.dim + join.count; d-- > join.dim;) {
    const int64_t size = t.sizes()[size_t(d)], stride = t.strides()[size_t(d)];
    if (size == 1) continue;
    if (next && stride != *next) return std::nullopt;
    if (!next) step = stride;
    next = stride * size;
  }
  return step;
}

// `t` with a join's dims as one.
Tensor with_join(Tensor t, const shape::Join& join) {
  std::optional<int64_t> step = joined_step(t, join);
  if (!step) {
    t = contiguous_copy(t);
    step = joined_step(t, join);
  }
  DimVec sizes, strides;
  int64_t n = 1;
  for (int64_t d = 0; d <= t.dim(); ++d) {
    if (d == join.dim + join.count) sizes.push_back(n), strides.push_back(*step);
    if (d == t.dim()) break;
    if (d >= join.dim && d < join.dim + join.count)
      n *= t.sizes()[size_t(d)];
    else
      sizes.push_back(t.sizes()[size_t(d)]), strides.push_back(t.strides()[size_t(d)]);
  }
  return t.alias(sizes, strides, t.storage_offset());
}

// The last operand as the kernel takes it: as one line, with the dims that its pattern has at least, with split dims
// and joined ones.
void fit(Operands& o, int dims, const Prepared& p) {
  const size_t k = o.count - 1;
  if (STRATA_UNLIKELY(p.flat >> k & 1)) o.change(as_line(o.last()));
  if (STRATA_UNLIKELY(p.spread >> k & 1)) {
    const auto [sizes, strides] = expanded(o.last().sizes(), o.last().strides(), p.outputs[0].sizes);
    return o.change(o.last().alias(sizes, strides, o.last().storage_offset()));
  }
  const int64_t wanted = dims < 0 ? p.rank : dims;
  if (STRATA_UNLIKELY(o.last().dim() < wanted)) o.change(with_dims(o.last(), wanted));
  if (STRATA_UNLIKELY(!p.splits.empty())) o.change(with_splits(o.last(), k, p));
  for (const shape::Join& join : p.joins)
    if (size_t(join.operand) == k) o.change(with_join(o.last(), join));
}

// A number as the kernel of a result of `dtype` takes it.
void store_number(const SpaceInfo& info, const SpaceScalar& s, DType dtype, eager::Slot& slot) {
  DType as = DType(s.dtype);
  // Elements are the kernel's own type, or bits to be moved.
  if (s.dtype == SpaceScalar::kElement) as = info.width ? dtype : traits(dtype).compute;
  if (s.dtype == SpaceScalar::kWidest) as = is_integral(dtype, true) ? DType::I64 : DType::F64;
  store_scalar(*s.number, as, slot.bytes);
}

[[noreturn]] void refuse(const SpaceInfo& info, int64_t value, const Prepared& p) {
  std::string text = info.outside;
  const std::pair<const char*, int64_t> holes[] = {{"{value}", value}, {"{dim}", p.dim}, {"{size}", p.size}};
  for (const auto& [hole, number] : holes)
    if (const size_t at = text.find(hole); at != std::string::npos)
      text.replace(at, std::strlen(hole), std::to_string(number));
  throw_error(info.kind, text);
}

void check_indices(const SpaceInfo& info, const Tensor& index, const Prepared& p) {
  if (const auto bad = first_outside(as_dtype(index, DType::I64), info.wraps ? -p.size : 0, p.size))
    refuse(info, *bad, p);
}

}  // namespace

void check_operands(const SpaceInfo& info, ArrayRef<const Tensor*> ins) {
  for (size_t k = 0; k < ins.size(); ++k) {
    STRATA_CHECK(ins[k]->defined(), info.name, ": argument ", info.inputs[k].name, ": expected a tensor, got None");
    if (k > 0) check_same_device(*ins[0], *ins[k], info.name);
  }
}

void check_operand(const char* op, const char* name, const Tensor& t, const Tensor& first) {
  STRATA_CHECK(t.defined(), op, ": argument ", name, ": expected a tensor, got None");
  if (!t.is_same(first)) check_same_device(first, t, op);
}

void check_dtype(const SpaceInfo& info, const Tensor& t) {
  STRATA_CHECK_NOT_IMPLEMENTED(info.dtypes >> int(t.dtype()) & 1, "\"", info.name, "\" not implemented for '",
                               scalar_type_name(t.dtype()), "'; convert the input with .to() first");
}

Tensor new_result(const Tensor& like, const shape::Output<int64_t>& output, ResultStrides strides) {
  switch (strides) {
    case ResultStrides::Contiguous:
      return new_tensor(like, output.sizes, output.dtype);
    case ResultStrides::Suggested: {
      // One channel, or one place, is the same in both formats: then the plain one's strides.
      bool one_place = true;
      for (size_t d = 2; d < output.sizes.size(); ++d) one_place &= output.sizes[d] == 1;
      const bool same = output.sizes.size() < 2 || output.sizes[1] == 1 || one_place;
      return new_tensor(like, output.sizes, output.dtype, same ? MemoryFormat::Contiguous : suggested_format(like));
    }
    default:
      return make_tensor_strided_as(like, output.sizes, like_strides(like), output.dtype);
  }
}

Tensor new_result(const Tensor& like, const Prepared& prepared, size_t k, ResultStrides strides) {
  if (prepared.absent >> k & 1) return {};
  const shape::Output<int64_t>& output = prepared.outputs[k];
  if (k < prepared.strides.size() && !prepared.strides[k].empty())
    return make_tensor_strided_as(like, output.sizes, prepared.strides[k], output.dtype);
  return new_result(like, output, strides);
}

Tensor new_result(Device device, const shape::Output<int64_t>& output) {
  return make_tensor(output.sizes, output.dtype, device);
}

namespace {
bool stays_meta(const Tensor& like, const std::optional<Device>& device) {
  return (!device || *device == like.device()) && shape_only(&like);
}
}  // namespace

Tensor new_result(const Tensor& like, const std::optional<Device>& device, const shape::Output<int64_t>& output) {
  return make_tensor(output.sizes, output.dtype, device.value_or(like.device()), stays_meta(like, device));
}

Tensor allocate_in(const shape::Layout<int64_t>& layout, Device device, bool meta, const Tensor* like) {
  if (layout.strided) return make_tensor_strided(layout.sizes, layout.strides, layout.dtype, device, meta);
  if (layout.format == MemoryFormat::Contiguous) return make_tensor(layout.sizes, layout.dtype, device, meta);
  if (layout.format == MemoryFormat::Preserve)
    return make_tensor_strided(layout.sizes, like_strides(*like), layout.dtype, device, meta);
  checked_numel(layout.sizes, "empty");
  return make_tensor_strided(layout.sizes, strides_for(layout.sizes, layout.format), layout.dtype, device, meta);
}

Tensor allocate(const shape::Layout<int64_t>& layout, const Tensor& like, const std::optional<Device>& device) {
  return allocate_in(layout, device.value_or(like.device()), stays_meta(like, device), &like);
}

Tensor new_result(const Tensor& like, const shape::Output<int64_t>& output, std::optional<MemoryFormat> format,
                  const std::optional<Device>& device) {
  const Device place = device.value_or(like.device());
  const bool meta = stays_meta(like, device);
  if (!format || *format == MemoryFormat::Preserve)
    return make_tensor_strided(output.sizes, like_strides(like), output.dtype, place, meta);
  return allocate_in({output.sizes, output.dtype, *format}, place, meta, &like);
}

void refuse_format(const std::optional<MemoryFormat>& format, const char* name) {
  STRATA_CHECK(!format, name, ": 'memory_format' argument is incompatible with 'out' tensor argument");
}

namespace {

// In another dtype, and in the order of memory that it has: a kernel walks the one as well as the other.
Tensor converted(const Tensor& t, DType dtype) {
  const Tensor out = make_tensor_strided_as(t, t.sizes(), like_strides(t), dtype);
  copy_values(out, t);
  return out;
}

// `type`: of the operator's elements; a scatter may write wider ones.
void launch_as(DType type, const SpaceInfo& info, std::initializer_list<const Tensor*> outs,
               ArrayRef<const Tensor*> ins, const Prepared& prepared, ArrayRef<SpaceScalar> scalars) {
  const Tensor& out = **outs.begin();
  // A kernel that runs over nothing checks nothing.
  if (out.numel() == 0) {
    if (info.index >= 0) check_indices(info, *ins[size_t(info.index)], prepared);
    return;
  }
  Operands o;
  for (const Tensor* t : outs) {
    o.add(*t);
    fit(o, info.output_dims, prepared);
  }
  for (size_t k = 0; k < ins.size(); ++k) {
    const SpaceInput& in = info.inputs[k];
    o.add(*ins[k]);
    const DType wanted = in.as == SpaceInput::kSame || (info.wide && in.as < 0) ? type
                         : in.as < 0                                            ? ins[k]->dtype()
                                                                                : DType(in.as);
    if (STRATA_UNLIKELY(ins[k]->dtype() != wanted)) o.change(converted(*ins[k], wanted));
    // What is written in place elsewhere than it is read.
    if (STRATA_UNLIKELY(o.last().storage().get() == out.storage().get() &&
                        overlap_between(out, o.last()) == Overlap::Partial))
      o.change(contiguous_copy(o.last()));
    fit(o, in.dims, prepared);
  }
  InlineVec<eager::Slot, 4> slots;
  SmallVec<uint8_t, 4> lists;
  for (const SpaceScalar& s : scalars) {
    if (s.number) {
      slots.push_back({});
      store_number(info, s, type, slots.back());
      lists.push_back(1);
      continue;
    }
    const shape::Value<int64_t>* found = nullptr;
    for (const shape::Value<int64_t>& v : prepared.values)
      if (std::strcmp(v.name, s.name) == 0) found = &v;
    STRATA_INTERNAL(found, info.name, ": the shape rule gives no value of the name ", s.name);
    for (const int64_t& v : found->values) {
      slots.push_back({});
      std::memcpy(slots.back().bytes, &v, sizeof v);
    }
    lists.push_back(uint8_t(found->values.size()));
  }
  const DType dtype = info.width ? width_dtype(type) : type;
  const int32_t status = eager::launch({info.op,
                                        info.name,
                                        dtype,
                                        {o.list, outs.size()},
                                        {o.list + outs.size(), o.count - outs.size()},
                                        {prepared.places.data(), prepared.places.size()},
                                        {slots.data(), slots.size()},
                                        lists,
                                        {prepared.extents.data(), prepared.extents.size()},
                                        info.index,
                                        info.kind});
  if (STRATA_UNLIKELY(status != 0)) {
    check_indices(info, *ins[size_t(info.index)], prepared);
    STRATA_INTERNAL(false, info.name, ": status ", status, " without an index outside");
  }
}

// Whether the kernel can write `t` itself: what it takes as one line, or joins, must lie so.
bool fits_as(const Tensor& t, const Prepared& p) {
  if (p.flat & 1) return t.is_contiguous();
  for (const shape::Join& join : p.joins)
    if (join.operand == 0 && !joined_step(t, join)) return false;
  return true;
}

}  // namespace

void launch_factory(const SpaceInfo& info, const Tensor& out, ArrayRef<SpaceScalar> scalars) {
  if (out.numel() == 0) return;
  eager::Slot slots[kMaxNumbers];
  STRATA_INTERNAL(scalars.size() <= kMaxNumbers, info.name, ": more than ", kMaxNumbers, " numbers");
  for (size_t k = 0; k < scalars.size(); ++k) store_number(info, scalars[k], out.dtype(), slots[k]);
  const DType dtype = info.width ? width_dtype(out.dtype()) : out.dtype();
  const Tensor* outs[] = {&out};
  eager::launch({info.op, info.name, dtype, {outs, 1}, {}, {}, {slots, scalars.size()}, {}, {}});
}

void launch_space(const SpaceInfo& info, std::initializer_list<const Tensor*> outs, ArrayRef<const Tensor*> ins,
                  const Prepared& prepared, ArrayRef<SpaceScalar> scalars) {
  launch_as(info.fixed ? ins[0]->dtype() : (*outs.begin())->dtype(), info, outs, ins, prepared, scalars);
}

void scatter_space(const SpaceInfo& info, const Tensor& result, const Tensor* start, ArrayRef<const Tensor*> ins,
                   const Prepared& prepared, ArrayRef<SpaceScalar> scalars) {
  const bool in_place = start && start->is_same(result);
  bool empty = false;  // then no kernel looks at the indices
  for (const Tensor* t : ins) empty |= t->numel() == 0;
  if (info.index >= 0 && (in_place || empty)) check_indices(info, *ins[size_t(info.index)], prepared);
  if (empty && in_place) return;
  const DType wide = info.wide ? traits(result.dtype()).compute : result.dtype();
  const bool fits = fits_as(result, prepared), direct = wide == result.dtype() && fits;
  const Tensor to = direct ? result
                    : fits ? make_tensor_strided_as(result, result.sizes(), like_strides(result), wide)
                           : new_tensor(result, result.sizes(), wide);
  if (!start)
    fill_values(to, Scalar(0));
  else if (!to.is_same(*start))
    copy_values(to, *start);
  // Sums of half types are float32's, over converted operands.
  if (!empty) launch_as(wide, info, {&to}, ins, prepared, scalars);
  if (!direct) copy_values(result, to);
}

}  // namespace strata::eager
