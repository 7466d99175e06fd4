#include "grad/engine/library.h"

#include <cctype>
#include <mutex>
#include <utility>

namespace strata {

namespace {

constexpr const char* kMadeHere = "strata.library: the operator's definition";

void each_tensor(const Stack& stack, std::vector<Tensor>& out) {
  for (const IValue& v : stack) {
    if (v.is_tensor()) out.push_back(v.get<Tensor>());
    if (v.is_tensors())
      for (const Tensor& t : v.get<IValue::TensorVec>()) out.push_back(t);
  }
}

// Autograd without a formula: results raise when they are differentiated.
void autograd_missing(Operator& op, Dispatch d, Stack& stack) {
  std::vector<Tensor> inputs;
  each_tensor(stack, inputs);
  bool record = grad_enabled() && needs_grad_list(inputs);
  if (record)
    for (const Tensor& t : written_tensors(op.schema(), stack)) check_inplace(t, op.name.c_str());
  {
    ExcludeGuard below{KeySet(Key::Autograd)};
    redispatch_boxed(op, d.below(Key::Autograd), stack);
  }
  if (!record) return;
  std::string text = str_cat("Trying to backward through ", op.name,
                             " but no autograd formula was registered. Use "
                             "strata.library.register_autograd to add one.");
  auto mark = [&](const Tensor& t) {
    if (!t.defined() || !is_differentiable(t.dtype())) return t;
    for (const Tensor& i : inputs)
      if (i.is_same(t)) return t;
    return with_error_node("NotImplemented", text, t, inputs)[0];
  };
  for (IValue& v : stack) {
    if (v.is_tensor()) {
      v = IValue(mark(v.get<Tensor>()));
    } else if (v.is_tensors()) {
      IValue::TensorVec list = v.get<IValue::TensorVec>();
      for (Tensor& t : list) t = mark(t);
      v = IValue(std::move(list));
    }
  }
}

// Version counters of what the schema says is written, and bases of what it says is a view.
void bookkeeping(Operator& op, Dispatch d, Stack& stack) {
  const Schema& schema = op.schema();
  Stack args = stack;
  redispatch_boxed(op, d.below(Key::InplaceOrView), stack);
  for (const Tensor& t : written_tensors(schema, args)) t.bump_version(op.name.c_str());
  for (size_t r = 0; r < schema.returns.size() && r < stack.size(); ++r) {
    const TypeSpec& type = schema.returns[r].type;
    if (type.alias.empty() || type.written || !stack[r].is_tensor()) continue;
    for (size_t i = 0; i < schema.args.size(); ++i)
      if (schema.args[i].type.alias == type.alias && args[i].is_tensor())
        mark_view(stack[r].get<Tensor>(), args[i].get<Tensor>());
  }
}

const BoxedKernel* autograd_kernel() {
  static const BoxedKernel kernel{autograd_missing, kMadeHere};
  return &kernel;
}
const BoxedKernel* bookkeeping_kernel() {
  static const BoxedKernel kernel{bookkeeping, kMadeHere};
  return &kernel;
}

class ErrorNode final : public Node {
 public:
  ErrorNode(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {}
  std::string name() const override { return name_; }
  Grads apply(Grads&&) override { throw_error(ErrorKind::Runtime, text_); }

 private:
  std::string name_, text_;
};

}  // namespace

std::vector<Tensor> with_error_node(const std::string& name, const std::string& text, TensorList tensors,
                                    TensorList inputs) {
  Ref<ErrorNode> node(make_node<ErrorNode>(name, text));
  for (const Tensor& t : inputs)
    if (t.defined() && needs_grad(t)) node->add_edge(t);
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) {
    out.push_back(recorded_alias(t));
    set_history(out.back(), Ref<Node>(node.get()));
  }
  return out;
}

Slot& slot_at(Operator& op, KeySlot s) {
  if (s.key != Key::Backend) return op.slots[static_cast<int>(s.key)];
  return s.device == kCompositeSlot ? op.composite : op.backend[s.device];
}

Operator& define_operator(const std::string& schema_text) {
  Operator& op = define_boxed(schema_text);
  OperatorTable& table = OperatorTable::instance();
  table.impl(op, Key::Autograd, 0, nullptr, autograd_kernel(), kMadeHere, true);
  bool aliases = op.schema().writes();
  for (const Argument& r : op.schema().returns) aliases |= !r.type.alias.empty();
  if (aliases) table.impl(op, Key::InplaceOrView, 0, nullptr, bookkeeping_kernel(), kMadeHere, true);
  return op;
}

OperatorTable::Saved give_kernel(Operator& op, KeySlot slot, const BoxedKernel* kernel, const char* source,
                                 bool quiet) {
  OperatorTable& table = OperatorTable::instance();
  quiet |= slot_at(op, slot).source == kMadeHere;
  if (slot.implicit && op.slots[static_cast<int>(Key::Autograd)].boxed.load() == autograd_kernel())
    table.restore(op, Key::Autograd, 0, {nullptr, nullptr, nullptr, false});
  return table.impl(op, slot.key, slot.device, nullptr, kernel, source, quiet);
}

KeySlot parse_key(std::string_view name) {
  static const std::pair<const char*, KeySlot> names[] = {
      {"CompositeImplicitAutograd", {Key::Backend, kCompositeSlot, true}},
      {"CompositeExplicitAutograd", {Key::Backend, kCompositeSlot}},
      {"Meta", {Key::Meta}},
      {"Tracer", {Key::Tracer}},
      {"Functionalize", {Key::Functionalize}},
      {"InplaceOrView", {Key::InplaceOrView}},
      {"ADInplaceOrView", {Key::InplaceOrView}},
      {"Autograd", {Key::Autograd}},
      {"AutogradCPU", {Key::Autograd}},
      {"Autocast", {Key::Autocast}},
      {"AutocastCPU", {Key::Autocast}},
      {"Vmap", {Key::Vmap}},
      {"User0", {Key::User0}},
      {"User1", {Key::User1}},
      {"User2", {Key::User2}},
      {"User3", {Key::User3}},
      {"Python", {Key::Python}},
  };
  for (const auto& [text, slot] : names)
    if (name == text) return slot;
  std::string lower(name), known;
  for (char& c : lower) c = char(std::tolower(static_cast<unsigned char>(c)));
  for (int i = 0; i < kMaxDeviceTypes && !device_type_name(i).empty(); ++i) {
    if (lower == device_type_name(i)) return {Key::Backend, i};
    known += ", " + device_type_name(i);
  }
  for (const auto& [text, slot] : names) known += str_cat(", ", text);
  throw_error(ErrorKind::Value,
              str_cat("library: expected a dispatch key, got '", name, "'; keys are ", known.substr(2)));
}

namespace {
struct Failures {
  std::mutex lock;
  std::vector<std::string> texts;
};
Failures& failures() {
  static Failures* all = new Failures;
  return *all;
}
}  // namespace

void note_failure(std::string text) {
  std::lock_guard<std::mutex> hold(failures().lock);
  failures().texts.push_back(std::move(text));
}

std::vector<std::string> library_failures() {
  std::lock_guard<std::mutex> hold(failures().lock);
  return std::exchange(failures().texts, {});
}

}  // namespace strata
