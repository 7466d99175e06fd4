#include "ir/verify.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "dispatch/info.h"
#include "ir/effect.h"
#include "ir/rewrite.h"

namespace strata::ir {

namespace {

bool same(const SmallVec<SymInt, 5>& a, const SmallVec<SymInt, 5>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](const SymInt& x, const SymInt& y) { return x.hint() == y.hint(); });
}

// The kind of IValue that an argument of a schema is given.
bool holds(const IValue& v, const TypeSpec& t) {
  if (v.is_none()) return t.optional || t.base == ArgType::Generator || t.base == ArgType::Layout;
  switch (t.base) {
    case ArgType::Int:
    case ArgType::SymInt:
      return t.list ? v.is<std::vector<int64_t>>() : v.is<int64_t>();
    case ArgType::Float:
      return t.list ? v.is<std::vector<double>>() : v.is<double>();
    case ArgType::Bool:
      return t.list ? v.is<std::vector<bool>>() : v.is<bool>();
    case ArgType::Scalar:
      return v.is<Scalar>() && !t.list;
    case ArgType::Str:
      return v.is<std::string>() && !t.list;
    case ArgType::DType:
      return v.is<DType>() && !t.list;
    case ArgType::Device:
      return v.is<Device>() && !t.list;
    case ArgType::MemoryFormat:
      return v.is<MemoryFormat>() && !t.list;
    case ArgType::Generator:
      return v.is<Generator>() && !t.list;
    default:
      return false;
  }
}

// What an argument of a schema takes from a value; a kind that none has where it takes constants alone.
bool takes(const TypeSpec& t, Type::Kind kind) {
  switch (t.base) {
    case ArgType::Tensor:
      return kind == Type::Tensor;
    case ArgType::Int:
    case ArgType::SymInt:
      return kind == Type::Int;
    case ArgType::Float:
      return kind == Type::Float;
    case ArgType::Bool:
      return kind == Type::Bool;
    default:
      return false;
  }
}

// The parts are made where it does not hold.
#define VERIFY(holds, ...)                                                                 \
  do {                                                                                     \
    if (!(holds)) throw_error(ErrorKind::Value, str_cat("graph: ", where(), __VA_ARGS__)); \
  } while (0)

class Verifier {
 public:
  Verifier(const Graph& g, Stage stage) : g_(g), stage_(stage), defined_(g.values.size()), known_(g.values.size()) {}

  void graph() {
    for (size_t v = 0; v < g_.values.size(); ++v) {
      const Type& t = g_.values[v].type;
      VERIFY(t.kind != Type::Tensor || t.sizes.size() == t.strides.size(), "%", v, " has ", t.sizes.size(),
             " sizes and ", t.strides.size(), " strides");
    }
    const Block& b = g_.body;
    VERIFY(g_.captured.size() <= b.params.size(), "expected a parameter for each captured tensor");
    for (size_t i = 0; i < b.params.size(); ++i) {
      define(b.params[i]);
      const Type& t = type(b.params[i]);
      VERIFY(t.kind == Type::Tensor, "expected tensors as parameters, got ", name(b.params[i]), ": ", to_string(t));
      if (i < g_.inputs()) continue;
      const Tensor& given = g_.captured[i - g_.inputs()];
      VERIFY(fits(given, t), "captured tensor ", i - g_.inputs(), ": expected ", to_string(t), ", got ",
             given.defined() ? to_string(type_of(given)) : "None");
    }
    nodes(b);
    for (Id v : b.results) {
      use(v, "the body's result");
      VERIFY(v == kNone || type(v).kind == Type::Tensor, "expected tensors as results, got ", name(v), ": ",
             to_string(type(v)));
    }
    if (stage_ == Stage::Functional) functional();
  }

 private:
  std::string where() const {
    if (!node_) return {};
    return str_cat("node ", number_, ", ", what(*node_), node_->span.empty() ? "" : " (" + node_->span + ")", ": ");
  }
  static std::string what(const Node& n) {
    const char* words[] = {"", "constant", "if", "loop", "check"};
    return n.kind == Node::Call ? n.op ? n.op->name : "a call of nothing" : words[n.kind];
  }
  static std::string name(Id v) { return v == kNone ? "None" : str_cat("%", v); }
  const Type& type(Id v) const { return g_.values[size_t(v)].type; }

  void define(Id v) {
    VERIFY(v >= 0 && size_t(v) < g_.values.size(), "defines ", name(v), ", which the graph has no value for");
    VERIFY(!defined_[size_t(v)], "defines ", name(v), " a second time");
    defined_[size_t(v)] = known_[size_t(v)] = true;
    scope_.push_back(v);
  }
  void use(Id v, std::string_view as) const {
    if (v == kNone) return;
    VERIFY(v >= 0 && size_t(v) < g_.values.size() && known_[size_t(v)], as, ": ", name(v),
           " is not defined before, in this block or one around it");
  }

  void nodes(const Block& b) {
    for (const Node& n : b.nodes) {
      const auto outer = std::pair(node_, number_);
      node_ = &n;
      number_ = count_++;
      node(n);
      for (Id v : n.results)
        if (v != kNone) define(v);
      std::tie(node_, number_) = outer;
    }
  }

  void node(const Node& n) {
    for (const Arg& a : n.args)
      VERIFY(
          a.kind == Arg::Constant ? a.values.empty() == a.sizes.empty() : a.kind == Arg::List || a.values.size() == 1,
          "an argument holds neither a constant nor one value nor a list of them");
    for (size_t i = 0; i < n.args.size(); ++i)
      for (Id v : n.args[i].values) use(v, str_cat("argument ", i));
    VERIFY(n.kind == Node::Constant || !n.constant.defined(), "holds a tensor");
    switch (n.kind) {
      case Node::Call:
        return call(n);
      case Node::Constant:
        return constant(n);
      case Node::If:
        return branch(n);
      case Node::Loop:
        return loop(n);
      case Node::Check:
        VERIFY(n.args.size() == 1 && n.args[0].sizes.size() == 1 && n.results.empty(), "expected one expression");
        return;
    }
    VERIFY(false, "is of no kind");
  }

  void call(const Node& n) const {
    VERIFY(n.op, "expected an operator");
    VERIFY(n.blocks.empty(), "has blocks");
    const Schema& schema = n.op->schema();
    VERIFY(n.args.size() == schema.args.size(), "expected ", schema.args.size(), " arguments, got ", n.args.size(),
           "; the schema is ", n.op->schema_text);
    for (size_t i = 0; i < n.args.size(); ++i) argument(schema.args[i], n.args[i]);
    size_t results = 0;
    bool any = false;  // as many as there are in a list
    for (const Argument& r : schema.returns) {
      any |= r.type.is_tensor() && r.type.list;
      results += r.type.is_tensor() && !r.type.list;
    }
    VERIFY(any ? n.results.size() >= results : n.results.size() == results, "expected ", results,
           any ? " results or more, got " : " results, got ", n.results.size(), "; the schema is ", n.op->schema_text);
    for (Id v : n.results) VERIFY(v == kNone || kind_of(v) == Type::Tensor, "its result ", name(v), " is no tensor");
  }
  Type::Kind kind_of(Id v) const {
    VERIFY(v >= 0 && size_t(v) < g_.values.size(), "there is no ", name(v));
    return type(v).kind;
  }

  void argument(const Argument& a, const Arg& given) const {
    const TypeSpec& t = a.type;
    auto wrong = [&](const std::string& got) {
      VERIFY(false, "argument '", a.name, "': expected ", strata::to_string(t), ", got ", got);
    };
    switch (given.kind) {
      case Arg::Constant:
        if (!holds(given.constant, t)) wrong(print(given.constant));
        break;
      case Arg::One: {
        const Id v = given.values[0];
        if (v == kNone ? !t.optional || !t.is_tensor()
                       : t.list || !(takes(t, type(v).kind) || (t.base == ArgType::Float && is_slot(type(v)))))
          wrong(v == kNone ? "None" : name(v) + ": " + to_string(type(v)));
        break;
      }
      case Arg::List:
        if (!t.is_tensor() || !t.list) wrong("a list");
        for (Id v : given.values)
          if (v == kNone ? !t.optional_elements : type(v).kind != Type::Tensor) wrong("a list with " + name(v));
    }
  }

  void constant(const Node& n) const {
    VERIFY(n.args.size() == 1 && n.args[0].kind == Arg::Constant && n.results.size() == 1 && n.blocks.empty(),
           "expected one constant and one result");
    const Id v = n.results[0];
    const Type::Kind kind = kind_of(v);
    const IValue& c = n.args[0].constant;
    if (kind == Type::Tensor)
      VERIFY(n.constant.defined() && fits(n.constant, type(v)) && n.constant.impl()->wrapped_number_ &&
                 type(v).number && c.is<Scalar>(),
             "expected a number that ", to_string(type(v)), " can be");
    else
      VERIFY(!n.constant.defined() && (kind == Type::Int     ? c.is<int64_t>()
                                       : kind == Type::Float ? c.is<double>()
                                                             : c.is<bool>()),
             "expected a constant of type ", to_string(type(v)));
  }

  bool condition(Id v) const {
    if (v == kNone) return false;
    const Type& t = type(v);
    if (t.kind == Type::Bool) return true;
    return t.kind == Type::Tensor && t.dtype == DType::Bool && t.device.is_cpu() &&
           std::all_of(t.sizes.begin(), t.sizes.end(), [](const SymInt& n) { return n.hint() == 1; });
  }

  void branch(const Node& n) {
    VERIFY(n.args.size() == 1 && n.args[0].kind == Arg::One && condition(n.args[0].values[0]),
           "expected a condition: a bool, or a tensor of one on the CPU");
    VERIFY(n.blocks.size() == 2, "expected two blocks, got ", n.blocks.size());
    for (const Block& b : n.blocks) {
      VERIFY(b.params.empty(), "expected blocks without parameters");
      inner(b);
      VERIFY(b.results.size() == n.results.size(), "expected ", n.results.size(), " results of each block, got ",
             b.results.size());
      for (size_t i = 0; i < b.results.size(); ++i) match(b.results[i], n.results[i], "a block's result");
    }
  }

  void loop(const Node& n) {
    VERIFY(n.args.size() >= 2 && n.blocks.size() == 1, "expected a count, a condition, what is carried and one block");
    const Arg &count = n.args[0], &going = n.args[1];
    VERIFY(count.kind == Arg::Constant
               ? count.constant.is<int64_t>()
               : count.kind == Arg::One && count.values[0] != kNone && type(count.values[0]).kind == Type::Int,
           "expected an int as its count");
    VERIFY(
        going.kind == Arg::Constant ? going.constant.is<bool>() : going.kind == Arg::One && condition(going.values[0]),
        "expected a condition: a bool, or a tensor of one on the CPU");
    const Block& b = n.blocks[0];
    const size_t carried = n.args.size() - 2;
    VERIFY(b.params.size() == carried + 1 && b.results.size() == carried + 1 && n.results.size() == carried, "carries ",
           carried, " values: expected ", carried + 1, " parameters and results of its block and ", carried,
           " results, got ", b.params.size(), ", ", b.results.size(), " and ", n.results.size());
    VERIFY(kind_of(b.params[0]) == Type::Int, "expected an int as its block's first parameter, the turn's number");
    inner(b);
    VERIFY(condition(b.results[0]), "expected a condition as its block's first result");
    for (size_t i = 0; i < carried; ++i) {
      const Arg& a = n.args[i + 2];
      if (a.kind == Arg::Constant) {
        const Type::Kind kind = kind_of(b.params[i + 1]);
        VERIFY(kind == Type::Int     ? a.constant.is<int64_t>()
               : kind == Type::Float ? a.constant.is<double>()
                                     : kind == Type::Bool && a.constant.is<bool>(),
               "expected what it carries to be ", to_string(type(b.params[i + 1])), ", got ", print(a.constant));
      } else {
        VERIFY(a.kind == Arg::One, "carries a list");
        match(a.values[0], b.params[i + 1], "what it carries");
      }
      match(b.results[i + 1], b.params[i + 1], "what its block carries on");
      match(b.params[i + 1], n.results[i], "its result");
    }
  }
  void match(Id a, Id b, std::string_view as) const {
    if (a == kNone && b == kNone) return;
    VERIFY(a != kNone && b != kNone && b >= 0 && size_t(b) < g_.values.size() && ir::same(type(a), type(b)), as,
           ": expected one type, got ", a == kNone ? "None" : to_string(type(a)), " and ",
           b == kNone ? "None" : to_string(type(b)));
  }

  void inner(const Block& b) {
    const size_t outer = scope_.size();
    for (Id v : b.params) define(v);
    nodes(b);
    for (Id v : b.results) use(v, "a block's result");
    for (; scope_.size() > outer; scope_.pop_back()) known_[size_t(scope_.back())] = false;
  }

  // ---- stages
  void functional() {
    const std::vector<Node>& nodes = g_.body.nodes;
    size_t copies = 0;
    std::vector<Id> written, results;
    while (copies < nodes.size()) {
      const Node& n = nodes[nodes.size() - copies - 1];
      if (n.kind != Node::Call || n.op->name != "aten::copy_") break;
      const Id to = n.args[0].values.empty() ? kNone : n.args[0].values[0];
      if (std::ranges::find(g_.body.params, to) == g_.body.params.end() ||
          std::ranges::find(written, to) != written.end())
        break;
      written.push_back(to);
      results.push_back(n.results[0]);
      ++copies;
    }
    size_t i = 0;
    for (const Node& n : nodes) {
      writes_nothing(n, i++ >= nodes.size() - copies);
      each_use(n, [&](Id v) {
        if (std::ranges::find(results, v) != results.end()) refuse(n, str_cat("reads ", name(v), ", a copy's result"));
      });
    }
    for (Id v : g_.body.results)
      if (v != kNone && std::ranges::find(results, v) != results.end())
        throw_error(ErrorKind::Value, str_cat("graph: returns ", name(v), ", a copy's result"));
  }
  [[noreturn]] static void refuse(const Node& n, const std::string& why) {
    throw_error(ErrorKind::Value, str_cat("graph: ", what(n), n.span.empty() ? "" : " (" + n.span + ")", ": ", why,
                                          " in a functional graph"));
  }
  static void writes_nothing(const Node& n, bool last) {
    if (n.kind == Node::Call && n.op->schema().writes() && !last)
      refuse(n, "writes an operand, and is none of the last copies into parameters,");
    for (const Block& b : n.blocks)
      for (const Node& inner : b.nodes) writes_nothing(inner, false);
  }

  const Graph& g_;
  Stage stage_;
  std::vector<bool> defined_, known_;
  std::vector<Id> scope_;
  const Node* node_ = nullptr;
  size_t number_ = 0, count_ = 0;  // of the node, as print() shows them
};

}  // namespace

bool same(const Type& a, const Type& b) {
  if (a.kind != b.kind) return false;
  return a.kind != Type::Tensor || (a.dtype == b.dtype && a.device == b.device && a.number == b.number &&
                                    same(a.sizes, b.sizes) && same(a.strides, b.strides));
}

namespace {

bool told_by_shapes(const Operator& op) {
  const std::optional<OpInfo> i = info(op);
  if (!i || !i->size.empty() || (!i->acts.empty() && i->acts != "raises")) return false;
  for (const Argument& r : op.schema().returns)
    if (!r.type.is_tensor() || r.type.list) return false;
  return i->kind != "composite" && i->kind != "cpu";
}

void types_of_block(const Graph& g, const Memory& memory, const Block& b) {
  for (const Node& n : b.nodes) {
    for (const Block& inner : n.blocks) types_of_block(g, memory, inner);
    if (n.kind != Node::Call || !told_by_shapes(*n.op)) continue;
    if (std::any_of(n.args.begin(), n.args.end(), [](const Arg& a) { return !a.sizes.empty(); })) continue;
    bool changed = false;  // a header that a type does not tell
    for (const Arg& a : n.args)
      for (Id v : a.values) changed |= v != kNone && memory.reshaped(v);
    if (changed) continue;
    const std::optional<std::vector<Type>> types = types_of_call(g, n);
    if (!types || types->size() != n.results.size()) continue;  // it raises in a run, too
    for (size_t i = 0; i < types->size(); ++i) {
      const Id v = n.results[i];
      STRATA_CHECK_VALUE(v == kNone || same((*types)[i], g.values[size_t(v)].type), "graph: ", n.op->name,
                         n.span.empty() ? "" : " (" + n.span + ")", ": gives ", to_string((*types)[i]),
                         ", where the graph says %", v, ": ", to_string(g.values[size_t(v)].type));
    }
  }
}

}  // namespace

void verify_types(const Graph& graph) { types_of_block(graph, Memory(graph), graph.body); }

void verify(const Graph& graph, Stage stage) { Verifier(graph, stage).graph(); }

}  // namespace strata::ir
