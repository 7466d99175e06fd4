#include "dispatch/boxed.h"

#include <mutex>
#include <unordered_set>

#include "dispatch/call.h"

namespace strata {

void IValue::another_type() const {
  throw_error(ErrorKind::Type, str_cat("boxed value: expected another type than alternative ", value_.index()));
}

Stack detail::take(Stack& stack, size_t wanted) {
  STRATA_CHECK_TYPE(stack.size() == wanted, "boxed call: expected ", wanted, " arguments, got ", stack.size());
  return std::exchange(stack, {});
}

const Tensor& detail::unboxed_tensor(const IValue& value) {
  static const Tensor undefined;
  return value.is_none() ? undefined : value.get<Tensor>();
}

void detail::check_results(size_t given, size_t wanted) {
  STRATA_INTERNAL(given == wanted, "a boxed kernel left ", given, " results; expected ", wanted);
}

Operator& define_with(const char* schema_text, const char* record, void (*call_typed_boxed)(void*, Dispatch, Stack&)) {
  Operator& op = OperatorTable::instance().define(schema_text);
  if (record) op.record = record;
  op.call_typed_boxed = call_typed_boxed;
  return op;
}

Dispatch dispatch_of_stack(const Stack& args) {
  Dispatch d{KeySet(Key::Backend), 0};
  for (const IValue& v : args) {
    if (v.is_tensor())
      detail::collect(d, v.get<Tensor>());
    else if (v.is_tensors())
      detail::collect(d, TensorList(v.get<IValue::TensorVec>()));
    else if (v.is<Device>())
      detail::collect(d, std::optional<Device>(v.get<Device>()));
  }
  d.keys = (d.keys | dispatch_tls.include) - dispatch_tls.mask;
  return d;
}

namespace {

// While a profiler runs: begin, the arguments, end.
class ObserverScope {
 public:
  explicit ObserverScope(Operator& op) : observer_(call_observer.load(std::memory_order_relaxed)), op_(op) {
    if (observer_) observer_->begin(op_);
  }
  ~ObserverScope() {
    if (observer_) observer_->end(op_);
  }
  void show(const Stack& args) const {
    if (!observer_ || !observer_->argument) return;
    for (const IValue& v : args) {
      if (v.is_tensor())
        observer_->argument(&v.get<Tensor>(), 1, false);
      else if (v.is_tensors())
        observer_->argument(v.get<IValue::TensorVec>().data(), v.get<IValue::TensorVec>().size(), true);
      else
        observer_->argument(nullptr, 0, false);
    }
  }

 private:
  const CallObserver* observer_;
  Operator& op_;
};

void observed(Operator& op, Dispatch d, Stack& stack) {
  ObserverScope observe(op);
  observe.show(stack);
  redispatch_boxed(op, d, stack);
}

const BoxedKernel observed_kernel{observed, "src/dispatch/boxed.cpp"};

}  // namespace

const Slot detail::observed_slot{nullptr, &observed_kernel};

void call_boxed(Operator& op, Stack& stack) {
  if (STRATA_LIKELY(call_observer.load(std::memory_order_relaxed) == nullptr))
    return redispatch_boxed(op, dispatch_of_stack(stack), stack);
  observed(op, dispatch_of_stack(stack), stack);
}

void redispatch_boxed(Operator& op, Dispatch d, Stack& stack) {
  d.keys = d.keys & KeySet(op.handled.load(std::memory_order_relaxed));
  const Slot& slot = op.find(d);
  if (void* typed = slot.typed.load(std::memory_order_acquire))
    op.call_typed_boxed(typed, d, stack);
  else
    slot.boxed.load(std::memory_order_acquire)->fn(op, d, stack);
}

bool run_saved(Operator& op, const OperatorTable::Saved& kernel, Dispatch d, Stack& stack) {
  if (kernel.typed)
    op.call_typed_boxed(kernel.typed, d, stack);
  else if (kernel.boxed)
    kernel.boxed->fn(op, d, stack);
  else
    return false;
  return true;
}

namespace {
void no_typed_kernel(void*, Dispatch, Stack&) {
  throw_error(ErrorKind::Internal, "a typed kernel was registered for an operator without a C++ signature");
}
}  // namespace

Operator& define_boxed(const std::string& schema_text) {
  std::string name = parse_schema(schema_text).full_name();
  STRATA_CHECK(!OperatorTable::instance().find(name), "define: operator ", name, " exists already with the schema ",
               OperatorTable::instance().find(name)->schema_text, "; use another name or overload");
  return define_untyped(lasting_text(schema_text));
}

Operator& define_untyped(const char* schema_text) {
  Operator& op = OperatorTable::instance().define(schema_text);
  op.call_typed_boxed = &no_typed_kernel;
  return op;
}

const char* lasting_text(const std::string& text) {
  static std::mutex* lock = new std::mutex;
  static auto* texts = new std::unordered_set<std::string>;
  std::lock_guard<std::mutex> hold(*lock);
  return texts->insert(text).first->c_str();
}

std::vector<Tensor> written_tensors(const Schema& schema, const Stack& args) {
  std::vector<Tensor> found;
  for (size_t i = 0; i < schema.args.size() && i < args.size(); ++i) {
    if (!schema.args[i].type.written) continue;
    if (args[i].is_tensor()) found.push_back(args[i].get<Tensor>());
    if (args[i].is_tensors())
      for (const Tensor& t : args[i].get<IValue::TensorVec>()) found.push_back(t);
  }
  return found;
}

}  // namespace strata
