#include <charconv>
#include <cmath>

#include "ir/graph.h"

namespace strata::ir {

namespace {

std::string text_of(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;  // the shortest that reads back
  const std::string s(buffer, end);
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

std::string text_of(int64_t v) { return std::to_string(v); }
std::string text_of(bool v) { return v ? "True" : "False"; }

std::string text_of(const std::string& v) {
  std::string out = "'";
  for (char c : v) {
    if (c == '\'' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "'";
}

std::string text_of(const Scalar& v) {
  switch (v.kind()) {
    case Scalar::Kind::Bool:
      return text_of(v.to_bool());
    case Scalar::Kind::Int:
      return str_cat(v);
    case Scalar::Kind::Float:
      return text_of(v.to_double());
    default:
      return "complex(" + text_of(v.to_complex().real()) + ", " + text_of(v.to_complex().imag()) + ")";
  }
}

std::string text_of(MemoryFormat f) {
  static constexpr const char* names[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};
  return names[int(f)];
}

template <class T>
std::string text_of(const std::vector<T>& list) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + text_of(T(list[i]));
  return out + "]";
}

std::string name(Id v) { return v == kNone ? "None" : "%" + std::to_string(v); }

std::string names(const std::vector<Id>& ids) {
  std::string out;
  for (Id v : ids) out += (out.empty() ? "" : ", ") + name(v);
  return out;
}

constexpr const char* kGradientWords[] = {"", "no_grad ", "own_grad ", "saved ", "sum ", "total "};

class Printer {
 public:
  explicit Printer(const Graph& g) : g_(g) {}
  std::string text() {
    out_ = "graph(";
    const size_t own = g_.inputs();
    for (size_t i = 0; i < g_.body.params.size(); ++i) {
      if (i) out_ += i == own ? "" : ", ";
      if (i == own) out_ += ") captures(";
      out_ += typed(g_.body.params[i]);
      const std::string& called = g_.values[size_t(g_.body.params[i])].name;
      if (!called.empty()) out_ += " " + text_of(called);
    }
    out_ += ") {\n";
    body(g_.body, 2, "return");
    return out_ + "}\n";
  }

 private:
  std::string typed(Id v) { return v == kNone ? "None" : name(v) + ": " + to_string(g_.values[size_t(v)].type); }
  std::string typed(const std::vector<Id>& ids) {
    std::string out;
    for (Id v : ids) out += (out.empty() ? "" : ", ") + typed(v);
    return out;
  }

  static std::string sized(const Arg& a) {
    if (!a.constant.is<std::vector<int64_t>>()) return a.sizes[0];
    const auto& list = a.constant.get<std::vector<int64_t>>();
    std::string out = "[";
    for (size_t i = 0; i < list.size(); ++i)
      out += (i ? ", " : "") + (i < a.sizes.size() && !a.sizes[i].empty() ? a.sizes[i] : text_of(list[i]));
    return out + "]";
  }

  std::string arg(const Arg& a) {
    if (a.kind == Arg::Constant) return a.sizes.empty() ? print(a.constant) : sized(a);
    return a.kind == Arg::List ? "[" + names(a.values) + "]" : name(a.values[0]);
  }

  void body(const Block& b, int indent, const char* last) {
    for (const Node& n : b.nodes) node(n, indent);
    out_ += std::string(size_t(indent), ' ') + last + (b.results.empty() ? "" : " ") + names(b.results) + "\n";
  }

  void inner(const Block& b, int indent) {
    if (!b.params.empty()) out_ += "(" + typed(b.params) + ") ";
    out_ += "{\n";
    body(b, indent + 2, "yield");
    out_ += std::string(size_t(indent), ' ') + "}";
  }

  void node(const Node& n, int indent) {
    out_ += std::string(size_t(indent), ' ');
    if (!n.results.empty()) out_ += typed(n.results) + " = ";
    switch (n.kind) {
      case Node::Constant:
        out_ += "constant " + print(n.args[0].constant);
        break;
      case Node::Check:
        out_ += "check " + n.args[0].sizes[0];
        break;
      case Node::If:
        out_ += "if " + arg(n.args[0]) + " ";
        inner(n.blocks[0], indent);
        out_ += " else ";
        inner(n.blocks[1], indent);
        break;
      case Node::Loop: {
        out_ += "loop ";
        for (size_t i = 0; i < n.args.size(); ++i) out_ += (i ? ", " : "") + arg(n.args[i]);
        out_ += " ";
        inner(n.blocks[0], indent);
        break;
      }
      case Node::Call: {
        out_ += kGradientWords[n.gradient];
        out_ += n.op->name + "(";
        const Schema& schema = n.op->schema();
        for (size_t i = 0; i < n.args.size(); ++i) {
          if (i) out_ += ", ";
          if (schema.args[i].keyword_only) out_ += schema.args[i].name + "=";
          out_ += arg(n.args[i]);
        }
        out_ += ")";
      }
    }
    if (!n.span.empty()) out_ += "  # " + n.span;
    out_ += "\n";
  }

  const Graph& g_;
  std::string out_;
};

}  // namespace

std::string to_string(const Type& t) {
  switch (t.kind) {
    case Type::Int:
      return "int";
    case Type::Float:
      return "float";
    case Type::Bool:
      return "bool";
    default:
      break;
  }
  if (t.number) return str_cat("number ", traits(t.dtype).cname);
  std::string out = str_cat(traits(t.dtype).cname, "[");
  for (size_t d = 0; d < t.sizes.size(); ++d)
    out += str_cat(d ? ", " : "", d < 64 && (t.varies >> d & 1) ? "?" : "", t.sizes[d].text());
  SymInt step = 1;
  bool contiguous = true;
  for (size_t d = t.sizes.size(); d-- > 0;) {
    contiguous &= t.strides[d].hint() == step.hint();
    if (t.sizes[d].hint() != 0) step = step * t.sizes[d];
  }
  if (!contiguous) {
    out += ";";
    for (size_t d = 0; d < t.sizes.size(); ++d) out += (d ? ", " : " ") + t.strides[d].text();
  }
  out += "]";
  return t.device.is_cpu() ? out : out + "@" + strata::to_string(t.device);
}

std::string print(const IValue& value) {
  return std::visit(
      []<class T>(const T& v) -> std::string {
        if constexpr (std::is_same_v<T, std::monostate>) return "None";
        if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double> || std::is_same_v<T, bool> ||
                      std::is_same_v<T, Scalar> || std::is_same_v<T, std::string> ||
                      std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<double>> ||
                      std::is_same_v<T, std::vector<bool>> || std::is_same_v<T, MemoryFormat>)
          return text_of(v);
        if constexpr (std::is_same_v<T, Device>) return strata::to_string(v);
        if constexpr (std::is_same_v<T, DType>) return std::string(dtype_name(v));
        if constexpr (std::is_same_v<T, Generator>) return "generator";
        return "...";
      },
      value.value());
}

std::string print(const Graph& graph) { return Printer(graph).text(); }

}  // namespace strata::ir
