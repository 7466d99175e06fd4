// Loops inside of a scheduled kernel's element (ir/carry.h).
#include "lower/print/print_c.h"

namespace strata::lower {

// A loop that goes on while some lane does; lanes that are done keep their values.
void BodyPrinter::emit_repeat(int carry) {
  const Carry& c = pass_.carries[size_t(carry)];
  const std::vector<std::string>& names = carry_names_[size_t(carry)];
  for (size_t v = 0; v < pass_.nodes.size(); ++v) {
    const Node& n = pass_.nodes[v];
    if ((n.op == Op::Carried || n.op == Op::State) && n.imm == uint64_t(carry)) emitted_[v] = 1;
  }
  for (int v : c.start) emit(v);
  // What does not change in the loop stands before it.
  std::vector<char> needed(pass_.nodes.size(), 0);
  for (int v : c.uses()) needed[size_t(v)] = 1;
  for (size_t v = needed.size(); v-- > 0;) {
    const Node& n = pass_.nodes[v];
    if (!needed[v]) continue;
    for (int a : n.arg)
      if (a >= 0) needed[size_t(a)] = 1;
    if (n.op == Op::Carried)
      for (int a : pass_.carries[n.imm].uses()) needed[size_t(a)] = 1;
  }
  for (size_t v = 0; v < needed.size(); ++v)
    if (needed[v] && !(loops_[v] & ~open_)) emit(int(v));
  open_ |= uint64_t(1) << carry;
  for (size_t k = 0; k < names.size(); ++k)
    line(type(pass_.nodes[size_t(c.start[k])].type) + " " + names[k] + " = " + ref(c.start[k], vector_) + ";");
  const int bits = vector_ ? mask_bits(c.going) : 0;
  const std::string on = vector_ ? unique("on") : "";
  if (vector_)
    line(type(mask_lane(bits)) + " " + on + " = " + constant(mask_lane(bits), ~uint64_t(0) >> (64 - bits)) + ";");
  line("for (;;) {");
  indent_ += 2;
  emit(c.going);
  if (vector_) {
    line(on + " &= " + mask(c.going, bits) + ";");
    line("if (!" + helper("any", mask_lane(bits), true) + "(" + on + ")) break;");
  } else {
    line("if (!" + ref(c.going, false) + ") break;");
  }
  for (int v : c.next) emit(v);
  std::vector<std::string> next;
  for (size_t k = 0; k < names.size(); ++k) {
    const DType t = pass_.nodes[size_t(c.next[k])].type;
    std::string value = ref(c.next[k], vector_);
    if (vector_) {
      const int wide = traits(t).bits;
      const std::string lanes = wide == bits ? on : "CONVERT(" + type(mask_lane(wide)) + ", " + on + ")";
      value = helper("select", t, true) + "(" + lanes + ", " + value + ", " + names[k] + ")";
    }
    next.push_back(unique("next"));
    line("const " + type(t) + " " + next[k] + " = " + value + ";");
  }
  for (size_t k = 0; k < names.size(); ++k) line(names[k] + " = " + next[k] + ";");
  indent_ -= 2;
  line("}");
  open_ &= ~(uint64_t(1) << carry);
}

}  // namespace strata::lower
