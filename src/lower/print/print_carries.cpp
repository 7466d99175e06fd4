// Values that a printed nest hands from turn to turn (ir/carry.h).
#include <utility>

#include "lower/print/fill.h"
#include "lower/print/nest_printer.h"

namespace strata::lower {

// Before a loop that carries go along: their states.
void NestPrinter::open_carries(size_t range) {
  for (size_t k = 0; k < nest_.carries.size(); ++k) {
    const Carry& c = nest_.carries[k];
    if (c.kind == Carry::Repeat || c.range != int(range)) continue;
    const std::string type = values_.type(nest_.nodes[size_t(c.start[0])].type);
    const std::vector<std::string>& names = carry_names_.at(int(k));
    if (c.kind == Carry::Blocks) {
      const std::string size = "[" + std::to_string(names.size()) + "]";
      line(type + " block_" + names[0] + size + ", before_" + names[0] + size + ";");
      combine_function(int(k));
    } else {
      for (const std::string& name : names) line(type + " " + name + " = 0;");
    }
  }
}

void NestPrinter::carry(int number, uint64_t ranges, Done& done) {
  const Carry& c = nest_.carries[size_t(number)];
  for (size_t v = 0; v < nest_.nodes.size(); ++v)
    if (nest_.nodes[v].op == Op::Carried && nest_.nodes[v].imm == uint64_t(number)) done[v] = 1;
  const std::vector<std::string>& names = carry_names_.at(number);
  if (c.kind == Carry::Repeat) return repeat(number, ranges, done);
  const std::string type = "const " + values_.type(nest_.nodes[size_t(c.start[0])].type) + " ";
  statements(c.reads(), ranges, done);
  if (c.kind == Carry::Recurrence) {
    const std::string& index = nest_.ranges[size_t(c.range)].name;
    std::vector<std::string> next;
    for (size_t k = 0; k < names.size(); ++k) {
      next.push_back(names_.unique("next"));
      line(type + next[k] + " = " + index + " ? " + ref(c.next[k]) + " : " + ref(c.start[k]) + ";");
    }
    for (size_t k = 0; k < names.size(); ++k) line(names[k] + " = " + next[k] + ";");
  } else {
    scan(number);
  }
  for (size_t v = 0; v < nest_.nodes.size(); ++v) {
    const Node& n = nest_.nodes[v];
    if (n.op != Op::Carried || n.imm != uint64_t(number)) continue;
    const std::string from =
        c.kind == Carry::Blocks ? "part_" + names[0] + "[" + std::to_string(n.part) + "]" : names[n.part];
    line(type + value_names_[v] + " = " + from + ";");
  }
}

void NestPrinter::repeat(int number, uint64_t ranges, const Done& done) {
  const Carry& c = nest_.carries[size_t(number)];
  const std::vector<std::string>& names = carry_names_.at(number);
  auto type = [&](size_t k) { return values_.type(nest_.nodes[size_t(c.start[k])].type); };
  for (size_t k = 0; k < names.size(); ++k) line(type(k) + " " + names[k] + " = " + ref(c.start[k]) + ";");
  const uint64_t inside = ranges | uint64_t(1) << c.range;
  open("for (;;) {");
  Done mine = done;
  statements({c.going}, inside, mine);
  line("if (!" + ref(c.going) + ") break;");
  statements(c.next, inside, mine);
  std::vector<std::string> next;
  for (size_t k = 0; k < names.size(); ++k) {
    next.push_back(names_.unique("next"));
    line("const " + type(k) + " " + next[k] + " = " + ref(c.next[k]) + ";");
  }
  for (size_t k = 0; k < names.size(); ++k) line(names[k] + " = " + next[k] + ";");
  close();
}

// The state of a scan: the block at hand so far, and the total of those before it.
void NestPrinter::scan(int number) {
  const Carry& c = nest_.carries[size_t(number)];
  const std::string name = carry_names_.at(number)[0];
  const std::string type = values_.type(nest_.nodes[size_t(c.start[0])].type);
  std::string elements;
  for (int v : c.start) elements += (elements.empty() ? "" : ", ") + ref(v);
  const Holes holes = {{"i", nest_.ranges[size_t(c.range)].name}, {"e", type},     {"s", name},
                       {"n", std::to_string(c.start.size())},     {"x", elements}, {"f", nest_.symbol() + "_" + name}};
  lines(
      fill("const $e one_$s[$n] = {$x};\n"
           "if ($i & 1023)\n"
           "  $f(block_$s, one_$s, block_$s);\n"
           "else {\n"
           "  if ($i == 1024)\n"
           "    for (int k = 0; k < $n; k++) before_$s[k] = block_$s[k];\n"
           "  else if ($i)\n"
           "    $f(before_$s, block_$s, before_$s);\n"
           "  for (int k = 0; k < $n; k++) block_$s[k] = one_$s[k];\n"
           "}\n"
           "$e part_$s[$n];\n"
           "if ($i < 1024)\n"
           "  for (int k = 0; k < $n; k++) part_$s[k] = block_$s[k];\n"
           "else\n"
           "  $f(before_$s, block_$s, part_$s);\n",
           holes));
}

// What combines two pieces, as a function: to = a, then b.
void NestPrinter::combine_function(int number) {
  const Carry& c = nest_.carries[size_t(number)];
  const std::string name = nest_.symbol() + "_" + carry_names_.at(number)[0];
  const std::string type = values_.type(nest_.nodes[size_t(c.start[0])].type);
  if (functions_.find(" " + name + "(") != std::string::npos) return;
  std::string body;
  std::swap(body, text_);
  const int depth = std::exchange(depth_, 1);
  Done in(nest_.nodes.size(), 0);
  for (int v : c.next) in[size_t(v)] = 1;
  for (size_t v = nest_.nodes.size(); v-- > 0;)
    for (int a : nest_.nodes[v].arg)
      if (in[v] && a >= 0) in[size_t(a)] = 1;
  for (size_t v = 0; v < nest_.nodes.size(); ++v) {
    const Node& n = nest_.nodes[v];
    if (!in[v] || n.leaf()) continue;
    line(
        "const " + values_.type(n.type) + " " + value_names_[v] + " = " +
        values_.expression(n, [&](int a) { return ref(a); }, [&](int a) { return nest_.nodes[size_t(a)].type; }) + ";");
  }
  for (size_t k = 0; k < c.next.size(); ++k) line("to[" + std::to_string(k) + "] = " + ref(c.next[k]) + ";");
  std::swap(body, text_);
  depth_ = depth;
  functions_ += std::string(values_.dialect().helper) + " void " + name + "(const " + type + "* a, const " + type +
                "* b, " + type + "* to) {\n" + body + "}\n\n";
}

}  // namespace strata::lower
