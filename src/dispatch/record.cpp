#include "dispatch/record.h"

#include <mutex>

#include "core/watch.h"
#include "dispatch/seen.h"

namespace strata {

namespace {

thread_local Recording* current = nullptr;

const HostRead* find_read(const Operator& op) {
  static const auto* by_name = [] {
    auto* map = new std::unordered_map<std::string_view, const HostRead*>;
    for (const HostRead* r = host_reads; r->op; ++r) map->emplace(r->op, r);
    return map;
  }();
  auto at = by_name->find(op.name);
  return at == by_name->end() ? nullptr : at->second;
}

bool holds(const HostRead& read, const Stack& args) {
  if (read.when == HostRead::Always) return true;
  const IValue& v = args[read.argument];
  if (read.when == HostRead::None) return v.is_none();
  if (read.when == HostRead::Equal) return v.is<int64_t>() && v.get<int64_t>() == read.value;
  if (v.is_tensors())
    for (const Tensor& t : v.get<IValue::TensorVec>())
      if (t.defined() && (t.dtype() == DType::Bool || t.dtype() == DType::U8)) return true;
  return false;
}

void check_recordable(const Operator& op, const Stack& args) {
  const HostRead* read = find_read(op);
  if (STRATA_LIKELY(!read || !holds(*read, args))) return;
  STRATA_CHECK(
      !read->size, op.name,
      ": cannot be recorded: the size of its result depends on the values of tensors, and a recording is "
      "replayed with others. Use a form of fixed size (where with three arguments, a mask), or call it outside "
      "of what is recorded");
  refuse_reading(op.name.c_str());
}

bool writes_out(const Schema& schema) {
  for (const Argument& a : schema.args)
    if (a.type.written && a.keyword_only) return true;
  return false;
}

std::string describe(const IValue& value) {
  auto list = [](const auto& items) {
    std::string text = "[";
    for (size_t i = 0; i < items.size(); ++i) text += str_cat(i ? ", " : "", items[i]);
    return text + "]";
  };
  return std::visit(
      [&]<class T>(const T& v) -> std::string {
        if constexpr (std::is_same_v<T, std::monostate>) return "None";
        if constexpr (std::is_same_v<T, bool>) return v ? "True" : "False";
        if constexpr (std::is_same_v<T, std::string>) return "'" + v + "'";
        if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<double>> ||
                      std::is_same_v<T, std::vector<bool>>)
          return list(v);
        if constexpr (std::is_same_v<T, MemoryFormat>) return str_cat("memory_format ", int(v));
        if constexpr (std::is_same_v<T, Generator>) return "generator";
        if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double> || std::is_same_v<T, Scalar> ||
                      std::is_same_v<T, Device> || std::is_same_v<T, DType>)
          return str_cat(v);
        return "...";
      },
      value.value());
}

std::string name_of(int32_t number) { return number == Tape::kNone ? "None" : str_cat("%", number); }

std::string names_of(const std::vector<int32_t>& numbers) {
  std::string text;
  for (int32_t n : numbers) text += (text.empty() ? "" : ", ") + name_of(n);
  return text;
}

template <class F>
void each_tensor(const Stack& stack, F&& f) {
  for (const IValue& v : stack) {
    if (v.is_tensor()) f(v.get<Tensor>());
    if (v.is_tensors())
      for (const Tensor& t : v.get<IValue::TensorVec>()) f(t);
    if (v.is_none()) f(Tensor());
  }
}

}  // namespace

bool recording_here() {
  const DispatchTls& t = dispatch_tls;
  return t.include.has(Key::Tracer) && !t.mask.has(Key::Tracer);
}

void refuse_unseen(const char* what) {
  STRATA_INTERNAL(!recording_here(), what,
                  ": computes while operators are recorded, and no recorded operator asked for it");
}

void refuse_reading(const char* what) {
  STRATA_CHECK(!recording_here(), what,
               ": reads the values of a tensor while operators are recorded, and a recording is replayed with others. "
               "Keep them in tensors (strata.where chooses between two), or read them outside of what is recorded");
}

// ---- recording

Recording::Recording(TensorList inputs) : key_(KeySet(Key::Tracer)) {
  static std::once_flag once;
  std::call_once(once, [] {
    static const BoxedKernel kernel{&Recording::call, "the recorder"};
    OperatorTable::instance().fallback(Key::Tracer, &kernel);
    set_result_hook([] { check_seen("a kernel"); });
  });
  STRATA_CHECK(!current, "record: operators are recorded on this thread already");
  for (const Tensor& t : inputs) {
    STRATA_CHECK(t.defined(), "record: expected tensors as inputs, got None");
    tape_.inputs_.push_back({DimVec(t.sizes()), DimVec(t.strides()), t.dtype(), t.device()});
    add(t);
  }
  current = this;
  watch_results(true);
}

Recording::~Recording() {
  if (current != this) return;
  current = nullptr;
  watch_results(false);
}

Tape Recording::finish(TensorList outputs) {
  current = nullptr;
  watch_results(false);
  for (const Tensor& t : outputs) tape_.outputs_.push_back(number(t));
  return std::move(tape_);
}

int32_t Recording::add(const Tensor& t) {
  const int32_t n = tape_.count_++;
  numbers_[t.impl()] = n;
  kept_.push_back(t);
  return n;
}

int32_t Recording::number(const Tensor& t) {
  if (!t.defined()) return Tape::kNone;
  auto at = numbers_.find(t.impl());
  if (at != numbers_.end()) return at->second;
  if (!t.impl()->wrapped_number_) tape_.captured_.push_back(t);
  const int32_t n = add(t);
  tape_.known_.emplace_back(n, t);
  return n;
}

void Recording::call(Operator& op, Dispatch d, Stack& stack) {
  const bool decomposed = op.is_composite() && op.backend[d.device].empty() && !writes_out(op.schema());
  if (current) check_recordable(op, stack);
  if (decomposed) return redispatch_boxed(op, d.below(Key::Tracer), stack);
  if (current) return current->record(op, d, stack);
  ExcludeGuard below{KeySet(Key::Tracer)};
  redispatch_boxed(op, d.below(Key::Tracer), stack);
}

void Recording::record(Operator& op, Dispatch d, Stack& stack) {
  Tape::Step step{&op, {}, {}};
  for (const IValue& v : stack) {
    Tape::Operand o;
    if (v.is_tensor()) {
      o.tensors.push_back(number(v.get<Tensor>()));
    } else if (v.is_tensors()) {
      o.list = true;
      for (const Tensor& t : v.get<IValue::TensorVec>()) o.tensors.push_back(number(t));
    } else {
      o.constant = v;
    }
    step.args.push_back(std::move(o));
  }
  {
    ExcludeGuard at_work{KeySet(Key::Tracer)};
    redispatch_boxed(op, d.below(Key::Tracer), stack);
  }
  each_tensor(stack, [&](const Tensor& t) {
    auto at = t.defined() ? numbers_.find(t.impl()) : numbers_.end();
    step.results.push_back(!t.defined() ? Tape::kNone : at != numbers_.end() ? at->second : add(t));
  });
  tape_.steps_.push_back(std::move(step));
}

// ---- replay

std::vector<Tensor> Tape::replay(TensorList inputs) const {
  STRATA_CHECK_VALUE(inputs.size() == inputs_.size(), "replay: expected ", inputs_.size(), " inputs, got ",
                     inputs.size());
  std::vector<Tensor> values;
  values.resize(size_t(count_));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& in = inputs_[i];
    const Tensor& t = inputs[i];
    STRATA_CHECK_VALUE(t.defined() && t.sizes() == IntArrayRef(in.sizes) && t.strides() == IntArrayRef(in.strides) &&
                           t.dtype() == in.dtype && t.device() == in.device,
                       "replay: input ", i, ": expected a ", in.dtype, " tensor of shape ", IntArrayRef(in.sizes),
                       " and strides ", IntArrayRef(in.strides), " on ", in.device, ", as it was recorded, got ",
                       t.defined() ? str_cat(t.dtype(), " ", t.sizes(), " ", t.strides(), " on ", t.device()) : "None");
    values[i] = t;
  }
  for (const auto& [n, t] : known_) values[size_t(n)] = t;
  const KeySet all((1u << kKeyCount) - 1), kept = all.below(Key::Autograd);
  ExcludeGuard below((all - kept) | KeySet(Key::Tracer));
  GradModeGuard off(false);
  auto value = [&](int32_t n) { return n == kNone ? Tensor() : values[size_t(n)]; };
  for (const Step& s : steps_) {
    Stack stack;
    for (const Operand& o : s.args) {
      if (o.list) {
        IValue::TensorVec list;
        for (int32_t n : o.tensors) list.push_back(value(n));
        stack.push_back(IValue(std::move(list)));
      } else {
        stack.push_back(o.tensors.empty() ? o.constant : IValue(value(o.tensors[0])));
      }
    }
    call_boxed(*s.op, stack);
    size_t i = 0;
    each_tensor(stack, [&](const Tensor& t) {
      STRATA_INTERNAL(i < s.results.size() && t.defined() == (s.results[i] != kNone), s.op->name,
                      ": gave other results than when it was recorded");
      if (t.defined()) values[size_t(s.results[i])] = t;
      ++i;
    });
    STRATA_INTERNAL(i == s.results.size(), s.op->name, ": gave fewer results than when it was recorded");
  }
  std::vector<Tensor> outputs;
  for (int32_t n : outputs_) outputs.push_back(value(n));
  return outputs;
}

std::string Tape::text() const {
  std::vector<int32_t> inputs;
  for (size_t i = 0; i < inputs_.size(); ++i) inputs.push_back(int32_t(i));
  std::string text = "inputs " + names_of(inputs) + "\n";
  for (const auto& [n, t] : known_)
    text +=
        str_cat("%", n, " = constant ", t.dtype(), " ", t.sizes(), t.impl()->wrapped_number_ ? " number" : "", "\n");
  for (const Step& s : steps_) {
    if (!s.results.empty()) text += names_of(s.results) + " = ";
    text += s.op->name + "(";
    const Schema& schema = s.op->schema();
    for (size_t i = 0; i < s.args.size(); ++i) {
      const Operand& o = s.args[i];
      text += i ? ", " : "";
      if (i < schema.args.size() && schema.args[i].keyword_only) text += schema.args[i].name + "=";
      text += o.list ? "[" + names_of(o.tensors) + "]" : o.tensors.empty() ? describe(o.constant) : names_of(o.tensors);
    }
    text += ")\n";
  }
  return text + "outputs " + names_of(outputs_) + "\n";
}

}  // namespace strata
