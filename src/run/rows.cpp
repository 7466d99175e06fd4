#include "run/rows.h"

#include <algorithm>
#include <string_view>

#include "base/checked.h"
#include "core/promote.h"
#include "dispatch/seen.h"
#include "run/copy.h"
#include "run/kernels.h"
#include "run/launch.h"
#include "run/loop/cast.h"
#include "run/loop/count.h"
#include "run/loop/half_operands.h"
#include "run/loop/rows_loop.h"
#include "run/observe.h"

namespace strata::eager {

DimVec row_dims(int64_t ndim, OptIntArrayRef dims) {
  DimVec wrapped;
  if (!dims || dims->empty()) {
    for (int64_t d = 0; d < ndim; ++d) wrapped.push_back(d);
    return wrapped;
  }
  for (int64_t d : *dims) {
    int64_t w = wrap_dim(d, ndim);
    STRATA_CHECK(std::find(wrapped.begin(), wrapped.end(), w) == wrapped.end(), "dim ", w,
                 " appears multiple times in the list of dims");
    wrapped.push_back(w);
  }
  if (ndim == 0) wrapped.clear();  // 0 and -1 name the only place, which is no dim
  std::sort(wrapped.begin(), wrapped.end());
  return wrapped;
}

DimVec row_dims(const Tensor& self, IntArrayRef dims) { return row_dims(self.dim(), OptIntArrayRef(dims)); }

DimVec row_dims(const Tensor& self, Listed list) {
  if (list.dims && list.dims->empty()) return {};
  return row_dims(self, list.dims);
}

DimVec row_dims(const Tensor& self, int64_t dim) { return row_dims(self, IntArrayRef(dim)); }

DimVec last_dims(const Tensor& self, int64_t count) {
  DimVec dims;
  for (int64_t d = self.dim() - count; d < self.dim(); ++d) dims.push_back(d);
  return dims;
}

namespace {

struct Shapes {
  DimVec kept, reduced;   // sizes
  DimVec kept_dims;       // dims of self that are kept
  DimVec reduced_result;  // sizes of a result with one value per row
};

Shapes shapes_of(const Tensor& self, const DimVec& dims, bool keepdim) {
  Shapes s;
  for (int64_t d = 0; d < self.dim(); ++d) {
    bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (reduced) {
      s.reduced.push_back(self.sizes()[d]);
      if (keepdim) s.reduced_result.push_back(1);
    } else {
      s.kept.push_back(self.sizes()[d]);
      s.kept_dims.push_back(d);
      s.reduced_result.push_back(self.sizes()[d]);
    }
  }
  return s;
}

// Byte strides of `t` for the dims of self, broadcast from the right.
DimVec strides_like(const Tensor& t, const Tensor& self, const char* name) {
  int64_t lead = self.dim() - t.dim();
  STRATA_CHECK(lead >= 0, name, ": expected an operand of at most ", self.dim(), " dims, got shape ", t.sizes());
  DimVec s(self.dim());
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d < lead || t.sizes()[d - lead] == 1) continue;
    STRATA_CHECK(t.sizes()[d - lead] == self.sizes()[d], name, ": expected an operand that broadcasts to ",
                 self.sizes(), ", got shape ", t.sizes());
    if (t.numel()) s[d] = t.strides()[d - lead] * t.itemsize();  // an empty tensor's may be beyond the range
  }
  return s;
}

RowOperand make_operand(const Tensor& t, const Tensor& self, const Shapes& s, const DimVec& dims, DType kernel,
                        bool output, bool per_row, const char* name) {
  RowOperand o;
  static char nothing[16];
  o.base = t.numel() ? t.bytes() : nothing;  // so that no address is worked out from a null pointer
  o.dtype = t.dtype();
  o.kernel = kernel;
  o.output = output;
  o.per_row = per_row;
  if (per_row && t.dim() == int64_t(s.kept.size()) && t.sizes() == IntArrayRef(s.kept)) {
    for (int64_t st : t.strides()) o.kept.push_back(st * t.itemsize());
    o.reduced.resize(s.reduced.size(), 0);
    return o;
  }
  DimVec all = strides_like(t, self, name);
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) != dims.end())
      o.reduced.push_back(per_row ? 0 : all[d]);
    else
      o.kept.push_back(all[d]);
  }
  return o;
}

const StrataKernelEntry& entry_for(const RowsOp& op, DType t) {
  const StrataKernelEntry* e = find_kernel(op.kernel, t);
  STRATA_CHECK_NOT_IMPLEMENTED(e, "\"", op.name, "\" not implemented for '", scalar_type_name(t),
                               "'; convert the operands with .to() first");
  return *e;
}

// The real and the imaginary parts of a complex sum are two sums by the same tree, of rows side by side; they are taken
// where rows lie along memory, or whole lines of them across it.
bool has_parts(const RowsLoop& loop) {
  constexpr int64_t kLongLine = 256;
  for (const RowOperand& o : loop.operands)
    if (!is_complex(o.kernel) || o.dtype != o.kernel) return false;
  const RowOperand& in = loop.operands.back();
  const int64_t width = itemsize(in.kernel);
  if (in.reduced.empty()) return false;
  for (size_t d = 0; d + 1 < in.reduced.size(); ++d)
    if (in.reduced[d] != 0) return false;
  const int64_t step = in.reduced.back();
  if (step == width || step == 0 || in.kept.empty()) return true;
  for (size_t d = 0; d < in.kept.size(); ++d)
    if (in.kept[d] == width || (std::abs(in.kept[d]) < std::abs(step) && loop.kept_sizes[d] >= kLongLine)) return true;
  return false;
}

void sum_parts(const RowsOp& op, RowsLoop& loop) {
  if (!has_parts(loop)) return;
  const DType part = traits(loop.operands[0].kernel).component;
  loop.entry = find_kernel(op.kernel, part);
  loop.compute = part;
  loop.kept_sizes.push_back(2);
  for (RowOperand& o : loop.operands) {
    o.dtype = o.kernel = part;
    o.kept.push_back(itemsize(part));
  }
  loop.merge_dims();
}

void launch(const RowsOp& op, const StrataKernelEntry& entry, DType t, Inputs in, Scalars scalars, const Shapes& s,
            const DimVec& dims, ArrayRef<Tensor> outs) {
  check_seen(op.name);
  if (!eager::has_elements_in_memory(outs[0])) {
    if (LaunchObserver* o = observer_of(outs[0])) o->rows(op, t, outs, in, scalars, dims);
    return;
  }
  // More only an expanded tensor has, and no machine's lifetime would do; what counts them stays within 64 bits.
  constexpr int64_t kMost = int64_t(1) << 60;
  STRATA_CHECK(in[0]->numel() <= kMost, op.name, ": expected at most 2^60 elements, got a tensor of shape ",
               in[0]->sizes(), "; use a smaller one");
  if (entry.dtype != uint8_t(t)) {
    SmallVec<const Tensor*, 8> out_list;
    for (const Tensor& o : outs) out_list.push_back(&o);
    HalfOperands halves(entry, t, op.fixed, {out_list.data(), out_list.size()}, in);
    if (halves.differ()) {
      std::vector<Tensor> made;
      for (const Tensor* o : halves.outs()) made.push_back(*o);
      launch(op, entry, t, halves.in(), scalars, s, dims, made);
      return halves.give();
    }
  }
  alignas(16) char params[16 * 16];
  const DType compute = traits(t).compute, kernel = static_cast<DType>(entry.dtype);
  for (size_t i = 0; i < scalars.size(); ++i) store_scalar(scalars[i], compute, params + 16 * i);
  RowsLoop loop;
  loop.entry = &entry;
  loop.params = params;
  loop.compute = compute;
  loop.kept_sizes = s.kept;
  loop.reduced_sizes = s.reduced;
  for (size_t i = 0; i < outs.size(); ++i)
    loop.operands.push_back(make_operand(outs[i], *in[0], s, dims, static_cast<DType>(entry.output_dtype[i]), true,
                                         entry.per_row[i], op.name));
  for (size_t i = 0; i < in.size(); ++i)
    loop.operands.push_back(make_operand(*in[i], *in[0], s, dims, op.fixed >> i & 1 ? op.fixed_dtype : kernel, false,
                                         entry.per_row[outs.size() + i], op.name));
  loop.merge_dims();
  if (std::string_view(op.name) == "sum") {
    if (count_truths(loop)) return;
    sum_parts(op, loop);
  }
  raise_status(loop.run(), op.name);
}

void check(const RowsOp& op, Inputs in) {
  for (size_t i = 0; i < in.size(); ++i)
    STRATA_CHECK(in[i]->defined(), op.name, ": argument ", i + 1, ": expected a tensor, got None");
}

DType kernel_dtype(const RowsOp& op, Inputs in, std::optional<DType> dtype) {
  if (!dtype) return compute_dtype(op.name, op.promote, op.fixed, in, {});
  STRATA_CHECK(op.promote != Promote::Floating || !is_integral(*dtype, true), op.name,
               "(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: ",
               scalar_type_name(*dtype));
  return *dtype;
}

// Maxima have no identity: a reduction of nothing is an error.
void check_identity(const RowsOp& op, const StrataKernelEntry& e, const Shapes& s) {
  bool empty = false, rows = true;
  for (int64_t n : s.reduced) empty |= n == 0;
  for (int64_t n : s.kept) rows &= n > 0;
  if (!empty || !rows) return;
  for (int i = 0; i < e.reductions; ++i) {
    uint8_t c = e.reduction[i].combine;
    STRATA_CHECK_INDEX(
        c == STRATA_COMBINE_ADD || c == STRATA_COMBINE_MUL || c == STRATA_COMBINE_OR || c == STRATA_COMBINE_AND,
        op.name,
        ": Expected reduction dim to be specified for input.numel() == 0 and to have non-zero size. "
        "Specify the reduction dim with the 'dim' argument.");
  }
}

}  // namespace

std::vector<Tensor> rows(const RowsOp& op, Inputs in, Scalars scalars, const DimVec& dims, bool keepdim,
                         std::optional<DType> dtype, std::optional<DType> stored) {
  check(op, in);
  DType t = kernel_dtype(op, in, dtype);
  const StrataKernelEntry& entry = entry_for(op, t);
  Shapes s = shapes_of(*in[0], dims, keepdim);
  check_identity(op, entry, s);
  const bool meta = shape_only(in);
  std::vector<Tensor> outs;
  for (int i = 0; i < entry.outputs; ++i) {
    DType result = result_dtype(entry, i, t);
    if (entry.per_row[i])
      outs.push_back(make_tensor(s.reduced_result, result, in[0]->device(), meta));
    else
      outs.push_back(make_tensor_strided(in[0]->sizes(), result_strides(op.strides, in[0]->sizes(), {in.data(), 1}),
                                         stored.value_or(result), in[0]->device(), meta));
  }
  launch(op, entry, t, in, scalars, s, dims, outs);
  return outs;
}

void rows_out(const RowsOp& op, Inputs in, Scalars scalars, const DimVec& dims, bool keepdim,
              std::optional<DType> dtype, ArrayRef<Tensor> outs, bool resize) {
  check(op, in);
  if (!dtype && op.promote == Promote::Sum && outs[0].defined()) dtype = outs[0].dtype();
  DType t = kernel_dtype(op, in, dtype);
  const StrataKernelEntry& entry = entry_for(op, t);
  Shapes s = shapes_of(*in[0], dims, keepdim);
  check_memory(in);
  check_identity(op, entry, s);
  bool apart = entry.sets_status;  // a kernel that may fail writes nothing that is anybody's
  for (int i = 0; i < entry.outputs; ++i) {
    DType result = result_dtype(entry, i, t);
    STRATA_CHECK(outs[i].defined(), op.name, ": argument out: expected a tensor, got None");
    STRATA_CHECK(can_cast(result, outs[i].dtype()), "result type ", scalar_type_name(result),
                 " can't be cast to the desired output type ", scalar_type_name(outs[i].dtype()));
    if (resize && op.exact_out) check_exact_dtype(outs[i], result, op.name);
    check_same_device(outs[i], *in[0], op.name);
    IntArrayRef shape = entry.per_row[i] ? IntArrayRef(s.reduced_result) : in[0]->sizes();
    if (!resize)
      STRATA_CHECK(outs[i].sizes() == shape, "output with shape ", outs[i].sizes(), " doesn't match the result shape ",
                   shape);
    else
      check_resize(outs[i], shape, op.name);
    if (outs[i].sizes() == shape) check_no_overlap(op.name, outs[i], {});            // before another is resized
    for (const Tensor* x : in) apart |= x->is_same(outs[i]) && x->sizes() != shape;  // written while it is read
  }
  if (apart) {
    std::vector<Tensor> results = rows(op, in, scalars, dims, keepdim, t);
    for (size_t i = 0; i < results.size(); ++i) {
      resize_output(outs[i], results[i].sizes(), op.name);
      check_no_overlap(op.name, outs[i], {});
      copy_values(outs[i], results[i]);
    }
    return;
  }
  for (int i = 0; i < entry.outputs; ++i) {
    if (resize) resize_output(outs[i], entry.per_row[i] ? IntArrayRef(s.reduced_result) : in[0]->sizes(), op.name);
    check_no_overlap(op.name, outs[i], in);
  }
  launch(op, entry, t, in, scalars, s, dims, outs);
}

void launch(const RowsOp& op, DType dtype, ArrayRef<Tensor> outs, Inputs in, Scalars scalars, const DimVec& dims) {
  launch(op, entry_for(op, dtype), dtype, in, scalars, shapes_of(*in[0], dims, false), dims, outs);
}

}  // namespace strata::eager
