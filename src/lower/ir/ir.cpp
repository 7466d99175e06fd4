#include "lower/ir/ir.h"

#include <bit>
#include <sstream>

namespace strata::lower {

size_t Graph::KeyHash::operator()(const Key& k) const {
  uint64_t h = uint64_t(k.op) << 16 | uint64_t(k.type) << 8 | k.part;
  for (uint64_t word : {uint64_t(uint32_t(k.arg[0])) << 32 | uint32_t(k.arg[1]), uint64_t(uint32_t(k.arg[2])), k.imm})
    h = (h ^ word) * 0x9e3779b97f4a7c15ul ^ h >> 29;
  return size_t(h ^ h >> 32);
}

int Graph::add(Node n) {
  if (int f = fold(*this, n); f >= 0) return f;
  const Key key{n.op, n.type, n.part, n.arg, n.imm};
  auto [at, fresh] = known_.try_emplace(key, int(nodes.size()));  // looks before it makes an entry
  if (!fresh) return at->second;
  bool all = true;
  for (int a : n.arg)
    if (a >= 0 && !nodes[a].uniform) all = false;
  if (n.leaf()) all = n.op == Op::Const || n.op == Op::Param || n.op == Op::Reduced || n.op == Op::Length || n.uniform;
  n.uniform = all && n.op != Op::Carried;
  n.origin = origin;
  nodes.push_back(std::move(n));
  return at->second;
}

int Graph::constant(DType type, uint64_t bits) { return add({Op::Const, type, {-1, -1, -1}, bits}); }

int Graph::real(DType type, double v) {
  if (type == DType::F32) return constant(type, std::bit_cast<uint32_t>(float(v)));
  return constant(type, std::bit_cast<uint64_t>(v));
}

int Graph::integer(DType type, int64_t v) {
  if (is_float(type)) return real(type, double(v));
  int bits = traits(type).bits;
  uint64_t u = type == DType::Bool ? v != 0 : uint64_t(v);
  return constant(type, bits < 64 ? u & ((uint64_t(1) << bits) - 1) : u);
}

bool Graph::implies(int guard, int condition) const {
  if (guard == condition) return true;
  const Node& n = node(guard);
  return n.op == Op::And && n.type == DType::Bool && (implies(n.arg[0], condition) || implies(n.arg[1], condition));
}

int Graph::reduce(Reduction r) {
  for (size_t k = 0; k < reductions.size(); ++k)
    if (reductions[k].combine == r.combine && reductions[k].accumulator == r.accumulator &&
        reductions[k].value == r.value && reductions[k].over == r.over && reductions[k].below == r.below &&
        reductions[k].sequence == r.sequence && reductions[k].guard == r.guard && reductions[k].factor == r.factor)
      return int(k);
  r.origin = origin;
  reductions.push_back(std::move(r));
  return int(reductions.size()) - 1;
}

const char* op_name(Op op) {
  static constexpr const char* names[] = {
      "const",   "param",   "load",       "scratch",     "reduced", "index", "length",  "range", "extent",
      "state",   "stride",  "neg",        "not",         "sqrt",    "floor", "ceil",    "trunc", "rint",
      "convert", "bitcast", "widen_half", "narrow_half", "add",     "sub",   "mul",     "div",   "and",
      "or",      "xor",     "shl",        "shr",         "eq",      "ne",    "lt",      "le",    "gt",
      "ge",      "call",    "fma",        "select",      "rare",    "at",    "carried", "check"};
  return names[int(op)];
}

const char* infix(Op op) {
  switch (op) {
    case Op::Add:
      return "+";
    case Op::Sub:
      return "-";
    case Op::Mul:
      return "*";
    case Op::Div:
      return "/";
    case Op::And:
      return "&";
    case Op::Or:
      return "|";
    case Op::Xor:
      return "^";
    case Op::Shl:
      return "<<";
    case Op::Shr:
      return ">>";
    case Op::Eq:
      return "==";
    case Op::Ne:
      return "!=";
    case Op::Lt:
      return "<";
    case Op::Le:
      return "<=";
    case Op::Gt:
      return ">";
    case Op::Ge:
      return ">=";
    default:
      return nullptr;
  }
}

const char* combine_name(Combine c) {
  static constexpr const char* names[] = {"add", "mul", "max", "min", "or", "and", "argmax", "argmin"};
  return names[int(c)];
}

const char* helper_name(Helper h) {
  static constexpr const char* names[] = {"fmod", "div", "rem", "floordiv", "mod", "pow"};
  return names[int(h)];
}

namespace {
void dump_node(std::ostream& out, const Kernel& k, const Pass& p, int v) {
  const Node& n = p.nodes[v];
  out << "  %" << v << (n.uniform ? " row " : " ") << traits(n.type).cname << " = " << op_name(n.op);
  switch (n.op) {
    case Op::Const: {
      if (n.type == DType::F32)
        out << ' ' << std::bit_cast<float>(uint32_t(n.imm));
      else if (n.type == DType::F64)
        out << ' ' << std::bit_cast<double>(n.imm);
      else
        out << ' ' << int64_t(n.imm);
      break;
    }
    case Op::Param:
      out << ' ' << k.scalars[n.imm].name;
      break;
    case Op::Load:
      out << ' ' << k.inputs[n.imm].name;
      break;
    case Op::Call:
      out << ' ' << helper_name(Helper(n.imm));
      break;
    case Op::Scratch:
    case Op::Reduced:
      out << ' ' << n.imm;
      break;
    default:
      break;
  }
  if (n.part) out << '.' << int(n.part);
  for (int a : n.arg)
    if (a >= 0) out << " %" << a;
  if (!n.name.empty()) out << "  ; " << n.name;
  out << '\n';
}
}  // namespace

std::string dump(const Kernel& k) {
  std::ostringstream out;
  out << "kernel " << k.name << ' ' << traits(k.dtype).cname
      << (k.kind == KernelKind::Rows ? " rows\n" : " pointwise\n");
  auto operands = [&](const char* what, const std::vector<Operand>& list) {
    for (const Operand& o : list)
      out << ' ' << what << ' ' << o.name << ' ' << traits(o.storage).cname
          << (o.per_row ? " row"
              : o.held  ? " held"
                        : "")
          << '\n';
  };
  operands("out", k.outputs);
  operands("in", k.inputs);
  for (const Scalar& s : k.scalars) out << " scalar " << s.name << ' ' << traits(s.type).cname << '\n';
  for (size_t p = 0; p < k.passes.size(); ++p) {
    const Pass& pass = k.passes[p];
    out << " pass " << p << '\n';
    for (size_t v = 0; v < pass.nodes.size(); ++v) dump_node(out, k, pass, int(v));
    for (const Store& s : pass.stores) {
      out << "  store " << (s.scratch ? "scratch " + std::to_string(s.operand) : k.outputs[s.operand].name);
      if (s.part) out << '.' << int(s.part);
      out << " %" << s.value << '\n';
    }
    for (const Reduction& r : pass.reductions) {
      out << "  reduce " << combine_name(r.combine) << ' ' << traits(r.accumulator).cname;
      for (int v : r.value)
        if (v >= 0) out << " %" << v;
      out << '\n';
    }
  }
  return out.str();
}

}  // namespace strata::lower
