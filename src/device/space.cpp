// Space kernels on a device: operands bound as on the CPU (run/space_launch.h), to nests that are built when they are
// first asked for.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "core/promote.h"
#include "device/launch.h"
#include "jit/compile/piece.h"
#include "lower/pass/space_nest.h"
#include "run/space_launch.h"

namespace strata::device {

namespace {

constexpr int64_t kChain = 1024;  // contributions of a chain

// What run/ knows of a form of a kernel, made from its nest.
struct Form {
  const KernelNest* kernel;
  std::vector<StrataSpaceRange> ranges;
  std::vector<StrataSpaceOperand> operands;
  std::vector<std::vector<uint8_t>> dims;
  StrataSpaceEntry entry{};
};

const lower::KernelDesc* described(const char* kernel, DType dtype) {
  for (const lower::KernelDesc* d : jit::descriptions(kernel))
    if (d->kind == lower::KernelKind::Space && (d->dtypes >> int(dtype) & 1)) return d;
  return nullptr;
}

std::unique_ptr<const Form> make_form(const lower::KernelDesc& desc, DType dtype, lower::SpaceForm form,
                                      const std::string& key) {
  auto f = std::make_unique<Form>();
  f->kernel = &kernel_nest(key, [&] { return lower::build_space(desc, dtype, form); });
  const lower::Nest& n = f->kernel->nest;
  for (size_t k = 0; k < n.ranges.size(); ++k) {
    const lower::NestRange& r = n.ranges[k];
    const int runs = !(n.loops() >> k & 1) ? 0 : r.whole ? 3 : 1 + r.ordered;
    f->ranges.push_back({r.of.c_str(), uint8_t(r.kind), r.component, uint8_t(runs)});
  }
  for (const lower::NestOperand& o : n.operands) f->dims.emplace_back(o.dims.begin(), o.dims.end());
  for (size_t k = 0; k < n.operands.size(); ++k)
    f->operands.push_back(
        {uint8_t(n.operands[k].storage), n.operands[k].output, uint8_t(f->dims[k].size()), f->dims[k].data()});
  const bool products = form.chained && n.stores[0].into == lower::NestStore::Mul;
  f->entry = {desc.name,
              uint8_t(dtype),
              uint8_t(form.rank),
              form.inner,
              uint8_t(form.chained ? 1 + products : 0),
              uint8_t(n.ranges.size()),
              uint8_t(n.operands.size()),
              uint8_t(n.scalars.size()),
              f->ranges.data(),
              f->operands.data(),
              nullptr};
  return f;
}

// Null where the kernel has no such form.
const Form* form_of(const char* kernel, DType dtype, int rank, bool inner, bool chained) {
  static auto& lock = *new std::mutex;
  static auto& known = *new std::map<std::string, std::unique_ptr<const Form>>;
  std::string key =
      str_cat(kernel, "/", traits(dtype).name, "/", rank, inner ? "/inner" : "", chained ? "/chained" : "");
  std::lock_guard<std::mutex> hold(lock);
  if (const auto at = known.find(key); at != known.end()) return at->second.get();
  std::unique_ptr<const Form> made;
  if (const lower::KernelDesc* desc = described(kernel, dtype))
    for (const lower::SpaceForm& f : lower::space_forms(*desc, dtype))
      if (f.rank == rank && f.inner == inner && f.chained == chained) made = make_form(*desc, dtype, f, key);
  return known.emplace(std::move(key), std::move(made)).first->second.get();
}

class DeviceLaunch final : public eager::SpaceLaunch {
 public:
  DeviceLaunch(const Form& form, const eager::SpaceArgs& args) : SpaceLaunch(form.entry, args), form_of_(form) {
    for (const auto& list : {args.outs, args.ins})
      for (const Tensor* t : list) tensors_.push_back(t), memory_.push_back(t->storage().get());
  }
  int plain() const { return plain_; }

  void run(Unit& unit, const void* scalars, const Blame& by) {
    int64_t stride[kMaxOperands * kMaxRanges];
    lay_out(stride);
    size_t strides = 0;
    for (const StrataSpaceOperand& o : form_of_.operands) strides += o.dims;
    const int walked = std::max(outer(), 0);
    int64_t times = 1;
    for (int d = 0; d < walked; ++d) times *= plain_size_[d];
    std::vector<int64_t> offset(tensors_.size());
    for (int64_t turn = 0; turn < times; ++turn) {
      for (size_t k = 0; k < tensors_.size(); ++k) offset[k] = tensors_[k]->storage_offset() * operand_[k].width;
      int64_t rest = turn;
      for (int d = walked; d-- > 0; rest /= plain_size_[d])
        for (size_t k = 0; k < tensors_.size(); ++k)
          offset[k] += rest % plain_size_[d] * operand_[k].plain[d] * operand_[k].width;
      unit.launch(*form_of_.kernel,
                  {{memory_.data(), memory_.size()}, offset, {extent_, form_.ranges}, {stride, strides}, scalars}, by);
    }
  }

 private:
  const Form& form_of_;
  std::vector<const Tensor*> tensors_;
  std::vector<const Storage*> memory_;
};

void run_form(Unit& unit, const Form& form, const eager::SpaceArgs& args, const Blame& by) {
  DeviceLaunch launch(form, args);
  launch.order_plain();
  const Form* inner = launch.plain() > 1 || launch.wants_inner()
                          ? form_of(args.op.name, args.dtype, form.entry.rank, true, form.entry.chained != 0)
                          : nullptr;
  if (!inner) return launch.run(unit, args.scalars, by);
  DeviceLaunch within(*inner, args);
  within.order_plain();
  if (within.plain() == 0) return launch.run(unit, args.scalars, by);
  within.run(unit, args.scalars, by);
}

// Contributions in chains, then the sums of each element's chains.
void in_chains(Unit& unit, const Form& form, const eager::SpaceArgs& args, const Blame& by) {
  static const eager::SpaceOp sums{"fold_chain_sums"}, products{"fold_chain_products"};
  const Tensor& result = *args.outs[0];
  const int64_t span = strided_span(result.sizes(), result.strides());
  auto like_result = [&](DType t) {
    return make_tensor(IntArrayRef(span), t, unit.device()).alias(result.sizes(), result.strides(), 0);
  };
  const Tensor total = like_result(result.dtype()), count = like_result(DType::U32);
  fill(unit, count, Scalar(0));
  const Tensor* outs[] = {&result, &total, &count};
  eager::SpaceArgs chained = args;
  chained.outs = {outs, 3};
  run_form(unit, form, chained, by);
  const eager::SpaceOp& fold = form.entry.chained == 1 ? sums : products;
  run_form(unit, *form_of(fold.name, result.dtype(), 0, false, false), {fold, result.dtype(), {outs, 1}, {outs, 3}},
           by);
}

}  // namespace

std::vector<const KernelNest*> space_nests(const lower::KernelDesc& desc, DType dtype) {
  std::vector<const KernelNest*> out;
  for (const lower::SpaceForm& f : lower::space_forms(desc, dtype))
    if (const Form* form = form_of(desc.name, dtype, f.rank, f.inner, f.chained)) out.push_back(form->kernel);
  return out;
}

bool can_run(const eager::SpaceOp& op) { return !jit::descriptions(op.name).empty(); }

void space(Unit& unit, const eager::SpaceCall& call) {
  // Numbers may lie on the CPU.
  std::vector<Tensor> up;
  std::vector<const Tensor*> ins(call.ins.begin(), call.ins.end());
  up.reserve(ins.size());
  for (const Tensor*& t : ins)
    if (t->device().is_cpu()) up.push_back(moved(*t, unit.device())), t = &up.back();
  const eager::SpaceArgs args{call.op,     call.dtype,          call.outs,    {ins.data(), ins.size()},
                              call.places, call.scalars.data(), call.extents, call.index};
  const Blame by(call.name, call.outside);
  size_t rank = 0;
  for (const eager::Place& p : args.places) rank = std::max(rank, p.dims.size());
  const Form* form = form_of(args.op.name, args.dtype, int(rank), false, false);
  if (!form) form = form_of(args.op.name, args.dtype, 0, false, false);
  STRATA_CHECK_NOT_IMPLEMENTED(form, "\"", call.name, "\" not implemented for '", scalar_type_name(call.dtype), "'");
  if (const Form* chained = form_of(args.op.name, args.dtype, form->entry.rank, false, true))
    if (DeviceLaunch(*form, args).contributions() > kChain) return in_chains(unit, *chained, args, by);
  run_form(unit, *form, args, by);
}

}  // namespace strata::device
