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

detail::ObserverScope::ObserverScope(Operator& op) : observer_(call_observer.load(std::memory_order_relaxed)), op_(op) {
  if (observer_) observer_->begin(op_);
}

void detail::ObserverScope::show(const Shown* args, size_t count) const {
  if (!observer_ || !observer_->argument) return;
  for (size_t i = 0; i < count; ++i) observer_->argument(args[i].tensors, args[i].count, args[i].list);
}

detail::ObserverScope::~ObserverScope() {
  if (observer_) observer_->end(op_);
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

void call_boxed(Operator& op, Stack& stack) {
  if (STRATA_LIKELY(call_observer.load(std::memory_order_relaxed) == nullptr))
    return redispatch_boxed(op, dispatch_of_stack(stack), stack);
  detail::ObserverScope observe(op);
  std::vector<detail::Shown> shown;
  for (const IValue& v : stack) shown.push_back(detail::shown(v));
  observe.show(shown.data(), shown.size());
  redispatch_boxed(op, dispatch_of_stack(stack), stack);
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
  Operator& op = OperatorTable::instance().define(lasting_text(schema_text));
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
