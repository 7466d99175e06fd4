// One kernel: its operands, its lines, its outputs, its passes.
#include "lower/expr/build.h"

#include <map>
#include <sstream>

#include "lower/expr/types.h"

namespace strata::lower {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  std::string word;
  std::istringstream in(text);
  while (std::getline(in, word, at))
    if (!word.empty()) out.push_back(word);
  return out;
}

}  // namespace

Builder::Builder(const KernelDesc& desc, DType dtype) : desc_(desc), dtype_(dtype), context_(traits(dtype).compute) {
  kernel_.name = desc.name;
  kernel_.source = desc.source ? desc.source : "";
  kernel_.text = desc.text;
  kernel_.kind = desc.kind;
  kernel_.across = desc.lie != RowsLie::Along;
  kernel_.side_by_side = desc.lie == RowsLie::Anywhere;
  kernel_.dtype = dtype;
}

void Builder::fail(const Expr* at, const std::string& message) const {
  if (!at) at = at_;
  std::string where = path_.empty() ? "" : "in " + path_.back() + ", ";
  if (at) where += "line " + std::to_string(at->line) + ", column " + std::to_string(at->column) + ": ";
  throw_error(ErrorKind::Value, str_cat(desc_.name, " (", type_name(dtype_), "): ", where, message));
}

void Builder::read_operands() {
  auto operands = [&](const char* list, std::vector<Operand>& out) {
    for (const std::string& word : split(list, ' ')) {
      std::vector<std::string> parts = split(word, ':');
      Operand o{parts[0].substr(0, parts[0].find('[')), dtype_, false};
      for (size_t k = 1; k < parts.size(); ++k) {
        const std::string& p = parts[k];
        if (p == "row")
          o.per_row = true;
        else if (p == "held")
          o.held = true;
        else if (p == "shared")
          o.broadcast = true;
        else if (p == "real")
          o.storage = traits(dtype_).component;
        else if (p == "complex")
          o.storage = dtype_ == DType::F64 ? DType::C128 : DType::C64;
        else if (p == "wide")
          o.storage = traits(dtype_).compute;
        else if (p == "truth")
          o.storage = dtype_ == DType::U8 ? DType::U8 : DType::Bool;
        else if (p == "word")
          o.storage = DType::U32;
        else if (p == "word2")
          o.storage = DType::U64;
        else if (!dtype_from_word(p, o.storage))
          fail(nullptr, "operand '" + word + "': unknown suffix '" + p + "'");
      }
      if (o.per_row && kernel_.kind != KernelKind::Rows)
        fail(nullptr, "operand '" + word + "': only Rows kernels have rows");
      if (o.broadcast && (kernel_.kind != KernelKind::Rows || &out != &kernel_.inputs))
        fail(nullptr, "operand '" + word + "': only inputs of Rows kernels are shared by rows");
      const bool single = o.storage == DType::F32 || o.storage == DType::F64;
      if (o.held && (kernel_.kind != KernelKind::Pointwise || &out != &kernel_.inputs || !single || out.size() >= 8))
        fail(nullptr,
             "operand '" + word + "': only float32 and float64 among a pointwise kernel's first 8 inputs are held");
      if (streams && parts.size() > 1 && parts[1].starts_with("word"))
        stream_.push_back(o);
      else
        out.push_back(o);
    }
  };
  operands(desc_.outputs, kernel_.outputs);
  operands(desc_.inputs, kernel_.inputs);
  if (kernel_.outputs.empty()) fail(nullptr, "a kernel needs an output");
  for (const std::string& word : split(desc_.scalars, ' ')) {
    std::vector<std::string> parts = split(word, ':');
    Scalar s{parts[0].substr(0, parts[0].find('[')), traits(dtype_).compute};
    if (parts.size() > 1 && parts[1] == "real")
      s.type = traits(s.type).component;
    else if (parts.size() > 1 && parts[1] == "widest")
      s.type = is_integral(dtype_, true) ? DType::I64 : DType::F64;
    else if (parts.size() > 1 && !dtype_from_word(parts[1], s.type))
      fail(nullptr, "scalar '" + word + "': unknown type '" + parts[1] + "'");
    s.type = traits(s.type).compute;
    kernel_.scalars.push_back(s);
  }
  if (!stream_.empty())
    for (const char* name : {"seed", "offset"}) kernel_.scalars.push_back({name, DType::U64});
  if (kernel_.kind != KernelKind::Space) load_inputs();
  for (size_t k = 0; k < kernel_.scalars.size(); ++k) {
    const Scalar& s = kernel_.scalars[k];
    auto part = [&](uint8_t p) { return g.add({Op::Param, storage_node_type(s.type), {-1, -1, -1}, k, p}); };
    values_[s.name] = is_complex(s.type)      ? pair(part(0), part(1))
                      : s.type == DType::Bool ? real(convert(g, part(0), DType::Bool))
                                              : real(part(0));
  }
  for (const Operand& o : stream_)
    values_[o.name] = apply(o.storage == DType::U32 ? "stream_word" : "stream_pair",
                            {values_.at("seed"), values_.at("offset"), real(g.add({Op::Index, DType::I64}))});
}

void Builder::load_inputs() {
  for (size_t k = 0; k < kernel_.inputs.size(); ++k) {
    const Operand& o = kernel_.inputs[k];
    auto part = [&](uint8_t p) {
      Node n{Op::Load, storage_node_type(o.storage), {-1, -1, -1}, k, p};
      n.uniform = o.per_row;
      int v = from_storage(g, g.add(n), o.storage);
      g.name(v, o.name, false);
      return v;
    };
    values_[o.name] = is_complex(o.storage) ? pair(part(0), part(1)) : real(part(0));
  }
}

std::vector<std::array<int, 2>> Builder::output_nodes() {
  std::vector<std::array<int, 2>> outputs;
  for (const Operand& o : kernel_.outputs) {
    Value v = values_.at(o.name);
    if (!is_complex(o.storage)) {
      DType t = o.storage == DType::F16 || o.storage == DType::BF16 ? DType::F32 : o.storage;
      const int value = cast(v, t).re;
      outputs.push_back({to_storage(g, value, o.storage), -1});
      unrounded.push_back(t == o.storage ? -1 : value);
    } else {
      v = cast(v, o.storage);
      outputs.push_back({v.re, v.im});
      unrounded.push_back(-1);
    }
  }
  return outputs;
}

std::vector<std::array<int, 2>> Builder::build() {
  read_operands();
  std::map<std::string, bool> assigned;
  for (const Statement& s : parse_statements(desc_.text, desc_.name)) {
    Value v = eval(*s.value);
    std::string target = s.name.empty() ? kernel_.outputs[0].name : s.name;
    if (s.name.empty() && kernel_.outputs.size() != 1)
      fail(s.value.get(), "a bare expression gives the only output; this kernel has " +
                              std::to_string(kernel_.outputs.size()) + ": write `name = expression`");
    name(v, target);
    values_[target] = v;
    assigned[target] = true;
  }
  for (const Operand& o : kernel_.outputs)
    if (!assigned[o.name]) fail(nullptr, "no line assigns output '" + o.name + "'");
  return output_nodes();
}

Kernel Builder::run() {
  const std::vector<std::array<int, 2>> outputs = build();
  split_passes(g, outputs, kernel_);
  return std::move(kernel_);
}

Kernel build_kernel(const KernelDesc& desc, DType dtype) { return Builder(desc, dtype).run(); }

}  // namespace strata::lower
