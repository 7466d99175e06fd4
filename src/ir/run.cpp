#include <algorithm>

#include "base/error.h"
#include "dispatch/boxed.h"
#include "dispatch/info.h"
#include "ir/call.h"
#include "ir/graph.h"
#include "ir/sizes.h"

namespace strata::ir {

void read_slots(const Node& call, Stack& stack) {
  if (!has_slots(call)) return;
  const Schema& schema = call.op->schema();
  for (size_t i = 0; i < stack.size(); ++i) {
    if (schema.args[i].type.base != ArgType::Float || !stack[i].is_tensor()) continue;
    const Tensor t = stack[i].get<Tensor>();
    STRATA_CHECK_VALUE(is_slot(type_of(t)), "graph: expected one float64 in the place of a number, got ",
                       to_string(type_of(t)));
    stack[i] = *static_cast<const double*>(static_cast<const void*>(t.bytes()));
  }
}

bool checks_alone(const Operator& op, const Stack& args, const Stack& results) {
  bool empty = true, indices = false;
  each_tensor(results, [&](const Tensor& t) { empty = empty && (!t.defined() || t.numel() == 0); });
  if (!empty) return false;
  each_tensor(args, [&](const Tensor& t) {
    indices |= t.defined() && (t.dtype() == DType::I64 || t.dtype() == DType::I32) && t.numel() > 0;
  });
  if (!indices) return false;
  const std::optional<OpInfo> said = info(op);
  return said && said->kind != "pointwise" && said->acts.find("raises") != said->acts.npos;
}

IValue Interpreter::read(Id v) const { return v == kNone ? IValue(Tensor()) : values_[size_t(v)]; }

void Interpreter::give(const std::vector<Id>& to, const std::vector<IValue>& values) {
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] != kNone) values_[size_t(to[i])] = values[i];
}

std::vector<IValue> Interpreter::block(const Block& b) {
  for (const Node& n : b.nodes) node(n);
  std::vector<IValue> results;
  for (Id v : b.results) results.push_back(read(v));
  return results;
}

void Interpreter::call(const Node& node, Stack& stack) {
  if (grad_enabled() && node.gradient == Node::Saved) return stack.resize(1);
  const GradModeGuard mode(grad_enabled() && node.gradient != Node::Off && node.gradient != Node::Own);
  read_slots(node, stack);
  call_boxed(*node.op, stack);
}

namespace {

bool holds(const IValue& v) {
  if (v.is<bool>()) return v.get<bool>();
  const Tensor& t = v.get<Tensor>();
  STRATA_CHECK(t.numel() == 1 && t.dtype() == DType::Bool, "if: expected a bool of one element, got ", t.dtype(), " ",
               t.sizes());
  return *static_cast<const bool*>(static_cast<const void*>(t.bytes()));
}

}  // namespace

void Interpreter::branch(const Node& n) { give(n.results, block(n.blocks[holds(read(n.args[0].values[0])) ? 0 : 1])); }

void Interpreter::loop(const Node& n) {
  auto argument = [&](size_t i) {
    return n.args[i].kind == Arg::Constant ? n.args[i].constant : read(n.args[i].values[0]);
  };
  const int64_t count = argument(0).get<int64_t>();
  bool going = holds(argument(1));
  std::vector<IValue> carried;
  for (size_t i = 2; i < n.args.size(); ++i) carried.push_back(argument(i));
  for (int64_t turn = 0; turn < count && going; ++turn) {
    std::vector<IValue> given{IValue(turn)};
    given.insert(given.end(), carried.begin(), carried.end());
    give(n.blocks[0].params, given);
    std::vector<IValue> results = block(n.blocks[0]);
    going = holds(results[0]);
    carried.assign(results.begin() + 1, results.end());
  }
  give(n.results, carried);
}

int64_t Interpreter::size_of(Id value, int64_t dim) const {
  STRATA_CHECK_VALUE(value >= 0 && size_t(value) < values_.size() && values_[size_t(value)].is_tensor(), "graph: %",
                     value, " has no sizes");
  const Tensor& t = values_[size_t(value)].get<Tensor>();
  STRATA_CHECK_VALUE(t.defined() && dim >= 0 && dim < t.dim(), "graph: %", value, " has no dim ", dim);
  return t.sizes()[size_t(dim)];
}

void Interpreter::node(const Node& n) {
  const SizeOf size = [this](Id v, int64_t dim) { return size_of(v, dim); };
  if (n.kind == Node::Check) {
    const std::string& text = n.args[0].sizes[0];
    size_t left = text.size();
    for (const char* sign : {" == ", " != ", " <= ", " >= ", " < ", " > "}) left = std::min(left, text.rfind(sign));
    STRATA_CHECK_VALUE(evaluate_sizes(text, size), "Guard failed: ", text, "\nexported program: expected ", text,
                       ", got ", evaluate_sizes(std::string_view(text).substr(0, left), size),
                       n.span.empty() ? "" : " (" + n.span + ")");
    return;
  }
  if (std::any_of(n.args.begin(), n.args.end(), [](const Arg& a) { return !a.sizes.empty(); })) {
    Node plain = n;
    for (Arg& a : plain.args)
      if (!a.sizes.empty()) a = {Arg::Constant, evaluated(a, size), {}, {}};
    return node(plain);
  }
  if (n.kind == Node::If) return branch(n);
  if (n.kind == Node::Loop) return loop(n);
  if (n.kind == Node::Constant)
    return give(n.results, {n.constant.defined() ? IValue(n.constant) : n.args[0].constant});
  Stack stack = stack_of(n, [&](Id v) { return read(v); });
  call(n, stack);
  size_t i = 0;
  each_tensor(stack, [&](const Tensor& t) {
    STRATA_INTERNAL(i < n.results.size() && t.defined() == (n.results[i] != kNone), n.op->name,
                    ": gave other results than the graph says");
    if (t.defined()) {
      values_[size_t(n.results[i])] = IValue(t);
      check_result(n, n.results[i]);
    }
    ++i;
  });
  STRATA_INTERNAL(i == n.results.size(), n.op->name, ": gave fewer results than the graph says");
}

std::vector<Tensor> Interpreter::run(TensorList params) {
  for (size_t i = 0; i < params.size(); ++i) values_[size_t(graph_.body.params[i])] = IValue(params[i]);
  std::vector<Tensor> results;
  for (const IValue& v : block(graph_.body)) results.push_back(v.get<Tensor>());
  return results;
}

void check_inputs(const Graph& graph, TensorList inputs) {
  STRATA_CHECK_VALUE(inputs.size() == graph.inputs(), "graph: expected ", graph.inputs(), " inputs, got ",
                     inputs.size());
  for (size_t i = 0; i < graph.body.params.size(); ++i) {
    const Tensor& t = i < inputs.size() ? inputs[i] : graph.captured[i - inputs.size()];
    const auto& [type, name] = graph.values[size_t(graph.body.params[i])];
    STRATA_CHECK_VALUE(fits(t, type), "graph: input ", i, name.empty() ? "" : str_cat(", ", name), ": expected ",
                       to_string(type), ", as it was captured, got ", t.defined() ? to_string(type_of(t)) : "None");
  }
}

std::vector<Tensor> run(const Graph& graph, TensorList inputs) {
  check_inputs(graph, inputs);
  std::vector<Tensor> params(inputs.begin(), inputs.end());
  params.insert(params.end(), graph.captured.begin(), graph.captured.end());
  const BelowAutograd below;
  return Interpreter(graph).run(params);
}

}  // namespace strata::ir
