#include "device/operators.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/fallback.h"
#include "device/launch.h"
#include "device/library.h"
#include "device/twins.h"
#include "dispatch/boxed.h"
#include "dispatch/info.h"
#include "ir/call.h"
#include "run/copy.h"

namespace strata::device {

namespace {

// The launches of an operator, told while it runs over shapes. They run afterwards: an operator whose launches are not
// all told has changed nothing then.
class Told final : public eager::LaunchObserver {
 public:
  // `given`: the arguments, which have values; `twins` stand for the device's tensors. Watches until it is stopped.
  Told(Unit& unit, Twins& twins, const Stack& given) : unit_(unit), twins_(twins) {
    watch();
    ir::each_tensor(given, [&](const Tensor& t) {
      if (t.defined()) known_.push_back(t.storage().get());
    });
  }
  bool whole = true;    // nothing but launches, of what has values
  bool failed = false;  // what it raised is the device's

  void pointwise(const eager::PointwiseOp& op, DType dtype, ArrayRef<const Tensor*> outs, ArrayRef<const Tensor*> in,
                 ArrayRef<Scalar> scalars) override {
    auto o = kept(outs), i = kept(in);
    add(o, i, [=, &op, s = scalars.vec()](Unit& unit, Twins& twins) {
      const Operands out(twins, o), given(twins, i);
      device::pointwise(unit, op, dtype, out.list(), given.list(), s);
    });
  }
  void rows(const eager::RowsOp& op, DType dtype, ArrayRef<Tensor> outs, ArrayRef<const Tensor*> in,
            ArrayRef<Scalar> scalars, const DimVec& dims) override {
    std::vector<Tensor> o(outs.begin(), outs.end()), i = kept(in);
    add(o, i, [=, &op, s = scalars.vec()](Unit& unit, Twins& twins) {
      const Operands out(twins, o), given(twins, i);
      device::rows(unit, op, dtype, out.list(), given.list(), s, dims);
    });
  }
  void space(const eager::SpaceCall& c) override {
    if (!can_run(c.op) || asks_nobody(c)) return other();
    auto o = kept(c.outs), i = kept(c.ins);
    add(o, i,
        [=, &op = c.op, name = c.name, dtype = c.dtype, index = c.index, outside = c.outside,
         places = std::vector<eager::Place>(c.places.begin(), c.places.end()),
         scalars = std::vector<eager::Slot>(c.scalars.begin(), c.scalars.end()),
         lists = std::vector<uint8_t>(c.lists.begin(), c.lists.end()),
         extents = std::vector<eager::Extent>(c.extents.begin(), c.extents.end())](Unit& unit, Twins& twins) {
          const Operands out(twins, o), given(twins, i);
          device::space(unit,
                        {op, name, dtype, out.list(), given.list(), places, scalars, lists, extents, index, outside});
        });
  }
  void draw(const eager::DrawOp& op, DType dtype, const Tensor& out, TensorList operands,
            ArrayRef<eager::DrawNumber> numbers, const Generator& generator) override {
    std::vector<Tensor> o{out}, i(operands.begin(), operands.end());
    add(o, i,
        [=, &op, own = generator, n = std::vector<eager::DrawNumber>(numbers.begin(), numbers.end())](Unit& unit,
                                                                                                      Twins& twins) {
          const Operands to(twins, o), given(twins, i);
          const Tensor& made = *to.list()[0];
          const int64_t words = made.numel() * eager::words_each(op, dtype);
          Generator from = own.defined() ? own : default_generator(unit.device());
          device::draw(unit, op, dtype, made, given.list(), n, from.reserve(words));
        });
  }
  void copy(const Tensor& to, const Tensor& from) override {
    std::vector<Tensor> o{to}, i{from};
    add(o, i, [=](Unit& unit, Twins& twins) {
      const Operands out(twins, o), given(twins, i);
      device::copy(unit, *out.list()[0], *given.list()[0]);
    });
  }
  void fill(const Tensor& to, const Scalar& value) override {
    std::vector<Tensor> o{to};
    add(o, {}, [=](Unit& unit, Twins& twins) { device::fill(unit, *Operands(twins, o).list()[0], value); });
  }
  void other() override { whole = false; }
  // What was done for a value has written nothing that was given: the operator may still turn out to be another's.
  bool has_values() const override { return whole && !writes_given_; }
  std::optional<bool> truth(const Tensor& one) override {
    stop();
    std::optional<bool> value;
    if (has_values() && knows(one) && one.dtype() == DType::Bool && !MetaGuard::active()) {
      failed = true;  // or somebody's work that is waited for here
      run();
      bool read = false;
      const Tensor real = twins_.back(one);
      unit_.download(&read, *real.storage(), real.storage_offset(), 1);
      value = read;
      failed = false;
    }
    watch();
    return value;
  }
  void watch() {
    observed_.emplace(*this);
    shapes_.emplace();
  }
  void stop() {
    shapes_.reset();
    observed_.reset();
  }

  bool empty() const { return launches_.empty(); }

  bool fills(const Tensor& t) const {
    return std::find(filled_.begin(), filled_.end(), t.storage().get()) != filled_.end();
  }
  // Memory that was given back is seen before anything is written.
  void run() {
    for (const Tensor& t : used_) twins_.back(t).check_memory();
    while (done_ < launches_.size()) launches_[done_++](unit_, twins_);
  }

 private:
  using Run = std::function<void(Unit&, Twins&)>;

  // The device's tensors for those that were told.
  class Operands {
   public:
    Operands(Twins& twins, const std::vector<Tensor>& told) {
      for (const Tensor& t : told) real_.push_back(twins.back(t));
      for (const Tensor& t : real_) list_.push_back(&t);
    }
    ArrayRef<const Tensor*> list() const { return {list_.data(), list_.size()}; }

   private:
    std::vector<Tensor> real_;
    std::vector<const Tensor*> list_;
  };

  static std::vector<Tensor> kept(ArrayRef<const Tensor*> list) {
    std::vector<Tensor> out;
    for (const Tensor* t : list) out.push_back(*t);
    return out;
  }
  // Whether indices are to be checked and no item of a kernel would.
  static bool asks_nobody(const eager::SpaceCall& c) {
    return c.index >= 0 && c.ins[size_t(c.index)]->numel() > 0 && c.outs[0]->numel() == 0;
  }
  bool knows(const Tensor& t) const {
    return !t.is_meta() || t.numel() == 0 || fills(t) ||
           std::find(known_.begin(), known_.end(), t.storage().get()) != known_.end();
  }
  void add(const std::vector<Tensor>& outs, const std::vector<Tensor>& ins, Run run) {
    for (const Tensor& t : ins) whole = whole && knows(t);
    for (const auto* list : {&outs, &ins})
      for (const Tensor& t : *list)
        if (std::find(known_.begin(), known_.end(), t.storage().get()) != known_.end()) used_.push_back(t);
    for (const Tensor& t : outs) {
      if (!t.is_meta()) whole = false;  // a result on the CPU
      writes_given_ |= std::find(known_.begin(), known_.end(), t.storage().get()) != known_.end();
      filled_.push_back(t.storage().get());
      alive_.push_back(t);
    }
    launches_.push_back(std::move(run));
  }

  Unit& unit_;
  Twins& twins_;
  std::optional<eager::LaunchObserver::Scope> observed_;
  std::optional<MetaGuard> shapes_;
  std::vector<Run> launches_;
  size_t done_ = 0;
  bool writes_given_ = false;
  std::vector<const Storage*> known_, filled_;
  std::vector<Tensor> used_;   // of what was given
  std::vector<Tensor> alive_;  // an address stays one storage's
};

const Device* device_argument(const IValue& v) { return v.is<Device>() ? &v.get<Device>() : nullptr; }

// The first device of the type among tensors and devices.
Device device_of(const Stack& args, int type) {
  Device found{int8_t(type), -1};
  auto see = [&](Device d) {
    if (d.type == type && found.index < 0) found = d;
  };
  ir::each_tensor(args, [&](const Tensor& t) {
    if (t.defined()) see(t.device());
  });
  for (const IValue& v : args)
    if (const Device* d = device_argument(v)) see(*d);
  return found;
}

// Whether it runs over shapes: some tensor has no memory, or nothing has.
bool over_shapes(const Stack& args) {
  bool some = MetaGuard::active();
  ir::each_tensor(args, [&](const Tensor& t) { some |= t.defined() && t.is_meta(); });
  return some;
}

void on_cpu_code(Operator& op, Dispatch d, Stack& stack) {
  void* typed = op.backend[0].typed.load(std::memory_order_acquire);
  if (typed) return op.call_typed_boxed(typed, d, stack);
  const BoxedKernel* boxed = op.backend[0].boxed.load(std::memory_order_acquire);
  STRATA_CHECK_NOT_IMPLEMENTED(boxed, op.name, ": no kernel for the CPU");
  boxed->fn(op, d, stack);
}

// Values that the launches do not fill are nobody's but of what allocates or gives views.
bool is_filled(const Operator& op, const Told& told, const Stack& args, const Stack& results) {
  const std::optional<OpInfo> said = info(op);
  if (said && (said->kind == "allocate" || said->kind == "header" || said->kind == "view")) return true;
  bool all = true;
  ir::each_tensor(results, [&](const Tensor& t) {
    if (!t.defined() || t.numel() == 0) return;
    bool given = false;
    ir::each_tensor(args, [&](const Tensor& a) { given |= a.defined() && a.storage().get() == t.storage().get(); });
    all &= given || told.fills(t);
  });
  const Schema& schema = op.schema();
  // A text over lists writes some of them under conditions: gradients where there is a scale.
  const bool lists = said && said->kind == "plan" && !told.empty();
  for (size_t i = 0; i < args.size(); ++i)
    if (schema.args[i].type.written && !(lists && args[i].is_tensors()))
      ir::each_tensor({args[i]}, [&](const Tensor& t) { all &= !t.defined() || t.numel() == 0 || told.fills(t); });
  return all;
}

// True where the operator ran on the device, by its library or by printed kernels.
bool run_there(Unit& unit, Operator& op, Dispatch d, Stack& stack, bool* refused = nullptr) {
  const bool offered = unit.offers(op.name), library = has_library(unit, op);
  if (!offered && !library) return false;
  Twins twins(unit, Twins::Shapes);
  const Stack given = twins.of(stack);
  Told told(unit, twins, given);
  Stack results = given;
  try {
    const ir::BelowAutograd below;
    on_cpu_code(op, d, results);
    told.stop();
  } catch (const Error& e) {
    told.stop();
    // It asks for values, or its arguments are wrong, which the CPU's call says as well; but for tensors elsewhere,
    // which it would find beside it.
    bool apart = told.failed || e.kind() == ErrorKind::OutOfMemory;
    ir::each_tensor(stack,
                    [&](const Tensor& t) { apart |= t.defined() && t.dim() > 0 && !(t.device() == unit.device()); });
    if (apart) throw;
    if (refused) *refused = true;
    return false;
  }
  if (library && library_takes(unit, op, given, results)) {
    ir::each_tensor(stack, [&](const Tensor& t) {
      if (t.defined()) t.check_memory();
    });
    Stack made = twins.back(results);
    run_library(unit, op, stack, made);
    stack = std::move(made);
    return true;
  }
  if (!offered) return false;
  if (!told.whole || !is_filled(op, told, given, results) || (told.empty() && ir::checks_alone(op, given, results)))
    return false;
  twins.carry_over(op.schema(), stack);
  told.run();
  stack = twins.back(results);
  return true;
}

// Waits for the operator; where the device fails, it runs on the CPU from copies of what it was given.
void run_rescued(Unit& unit, Operator& op, Dispatch d, Stack& stack) {
  unit.synchronize();
  Twins twins(unit, Twins::Copies);
  const Stack given = stack;
  Stack copies = twins.of(given);
  // What the device drew before it failed, the CPU draws again.
  std::vector<std::pair<Generator, PhiloxState>> generators;
  auto note = [&](const Generator& g) { generators.emplace_back(g, g.state()); };
  note(default_generator(unit.device()));
  for (const IValue& v : given)
    if (v.is<Generator>() && v.get<Generator>().defined()) note(v.get<Generator>());
  try {
    if (run_there(unit, op, d, stack)) return unit.synchronize();
  } catch (const Error&) {
    stack = given;
    for (auto& [generator, state] : generators) generator.set_state(state);
  }
  run_on_host(unit, op, stack, twins, std::move(copies));
}

// Whether a copy goes from a device to another, or a result like a tensor shall lie elsewhere: by way of the CPU.
bool crosses(const Stack& stack) {
  if (stack.empty() || !stack[0].is_tensor()) return false;
  std::optional<Device> first;
  bool differ = false;
  auto see = [&](Device d) {
    d = numbered(d);
    differ |= first && !(*first == d);
    if (!first) first = d;
  };
  see(stack[0].get<Tensor>().device());
  for (const IValue& v : stack) {
    if (v.is_tensor()) see(v.get<Tensor>().device());
    if (const Device* d = device_argument(v)) see(*d);
  }
  return differ;
}

Tensor on(const Tensor& t, Device device, bool later = false) {
  if (is_at(t.device(), device)) return t;
  return moved(t, device, later);
}

// aten::copy_(Tensor self, Tensor src, bool non_blocking)
void call_copy(Operator& op, Stack& stack) {
  const Tensor self = stack[0].get<Tensor>(), from = stack[1].get<Tensor>();
  const bool later = stack[2].get<bool>();
  if (later && self.device().is_cpu() && self.is_contiguous() && from.is_contiguous() && self.dtype() == from.dtype() &&
      self.sizes() == from.sizes()) {
    self.check_memory();
    from.check_memory();
    unit(from.device())
        .download(self.bytes(), *from.storage(), from.storage_offset() * from.itemsize(), from.nbytes(), true);
    stack = {IValue(self)};
    return;
  }
  stack[1] = IValue(on(from, self.device(), later && !self.device().is_cpu()));
  redispatch_boxed(op, dispatch_of_stack(stack), stack);
}

// aten::_to_copy(Tensor self, *, ScalarType? dtype, Device? device, bool non_blocking, MemoryFormat? memory_format):
// converted where it is, but on the CPU of the two.
void call_to_copy(Operator& op, Stack& stack) {
  const Device to = *device_argument(stack[2]);
  const Tensor self = stack[0].get<Tensor>();
  const bool same_dtype = stack[1].is_none() || stack[1].get<DType>() == self.dtype();
  const bool same_order = stack[4].is_none() || stack[4].get<MemoryFormat>() == MemoryFormat::Preserve;
  if ((stack[3].get<bool>() || self.device().type == to.type) && same_dtype && same_order &&
      self.is_non_overlapping_and_dense()) {
    stack = {IValue(moved(self, to, stack[3].get<bool>()))};
    return;
  }
  stack[0] = IValue(on(self, Device{}));
  stack[2] = IValue();
  redispatch_boxed(op, dispatch_of_stack(stack), stack);
  stack[0] = IValue(on(stack[0].get<Tensor>(), to));
}

// A new tensor like one elsewhere.
void call_like(Operator& op, Stack& stack) {
  for (IValue& v : stack)
    if (v.is_tensor()) v = IValue(on(v.get<Tensor>(), Device{}));
  redispatch_boxed(op, dispatch_of_stack(stack), stack);
}

// Tensors of one device, and of the CPU: which of these an operator takes, it says itself.
void check_one_device(const Operator& op, Device there, const Stack& stack) {
  ir::each_tensor(stack, [&](const Tensor& t) {
    STRATA_CHECK(!t.defined() || t.device().is_cpu() || t.device() == there, op.name,
                 ": Expected all tensors to be on the same device, but found at least two devices, ", there, " and ",
                 t.device(), "; move one with .to()");
  });
}

void run(Operator& op, Dispatch d, Stack& stack) {
  if (over_shapes(stack)) return on_cpu_code(op, d, stack);
  const ir::BelowAutograd below;
  if (op.name == "aten::copy_" && crosses(stack)) return call_copy(op, stack);
  if (op.name == "aten::_to_copy" && crosses(stack)) return call_to_copy(op, stack);
  const bool placed = std::any_of(stack.begin(), stack.end(), [](const IValue& v) { return device_argument(v); });
  if (placed && !stack.empty() && stack[0].is_tensor() && stack[0].get<Tensor>().device().type > 1 && crosses(stack))
    return call_like(op, stack);
  Unit& there = unit(device_of(stack, d.device));
  check_one_device(op, there.device(), stack);
  if (rescues()) return run_rescued(there, op, d, stack);
  bool refused = false;
  if (!run_there(there, op, d, stack, &refused)) run_on_host(there, op, stack, refused);
}

Allocator& allocator_of_type(int type, int index) { return unit({int8_t(type), int8_t(index)}); }

template <int Type>
Allocator& allocator_at(int index) {
  return allocator_of_type(Type, index);
}

template <size_t... Type>
void give_allocators(int type, std::index_sequence<Type...>) {
  static constexpr Allocator& (*by_type[])(int) = {allocator_at<int(Type)>...};
  register_allocators(type, by_type[type]);
}

}  // namespace

void register_operators(const Plugin& plugin) {
  give_allocators(plugin.type, std::make_index_sequence<kMaxDeviceTypes>());
  OperatorTable::instance().device(
      plugin.type, new BoxedKernel{[](Operator& op, Dispatch d, Stack& stack) { run(op, d, stack); }, plugin.path});
}

}  // namespace strata::device
